"""Campaigns from their folders or files to a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from inferometer import __version__
from inferometer.documents.campaign import Campaign
from inferometer.documents.campaign_comparison import CampaignComparison
from inferometer.documents.note import WITHHELD
from inferometer.documents.workload import UNDECLARED_KINDS
from inferometer.errors import PlanError, Problem, RecordError
from inferometer.journal.documents import holds, not_elsewhere
from inferometer.judge.comparison.campaign_figures import KINDS
from inferometer.judge.comparison.campaigns import CampaignCriteria, Repeat, compare_campaigns
from inferometer.judge.comparison.equivalence import Instrument, RunFacts, TokenCounting
from inferometer.judge.compliance.of_comparison import complied_by
from inferometer.plan.saved import restored
from inferometer.report.campaign.comparison.document import compose
from inferometer.report.compliance import statement_document
from inferometer.studies.campaign_runs import read_held
from inferometer.studies.comparison import (
    Question,
    declared_by,
    name_of,
    refuse_copies,
    refuse_twice,
)
from inferometer.units import NS_PER_S

FILE = "campaign.json"


def is_campaign(side: str) -> bool:
    """Whether a side, or the first part of it, is a campaign: its folder, its campaign.json, or a folder of campaigns."""
    path = Path(side.partition(",")[0].strip())
    if path.name == FILE:
        return holds(path.parent, FILE)
    return holds(path, FILE) or any(path.glob(f"*/{FILE}"))


def compare_campaign_folders(sides: Sequence[str], question: Question) -> CampaignComparison:
    """Compare sides, each a campaign's folder or campaign.json, several with commas between, or a folder of repeats.

    Raises PlanError for what cannot be compared, RecordError for what cannot be read.
    """
    problems: list[Problem] = []
    for name in question.metrics:
        test, _, figure = name.partition(".")
        kinds = KINDS.get(test, ())
        if not kinds or (figure and not any(kind.matches(figure.partition("#")[0]) for kind in kinds)):
            known = ", ".join(KINDS)
            problems.append(
                Problem(
                    "--metric",
                    f"{name!r} is no figure of a test: name a test ({known}) or one of its figures, such as "
                    "throughput.max_output_tok_s",
                )
            )
    declared = declared_by(question, len(sides), problems)
    paths = [list(_files(side)) for side in (*sides, *question.noise)]
    refuse_twice([[path.parent for path in side] for side in paths])
    found = [[read(path) for path in side] for side in paths]
    refuse_copies([[one.facts for one in side] for side in found])
    noise = tuple(tuple(side) for side in found[len(sides) :])
    metrics = tuple(dict.fromkeys(question.metrics))
    criteria = CampaignCriteria(metrics, question.threshold / 100, noise, declared)
    compared = compare_campaigns(found[: len(sides)], criteria)
    for name in metrics:
        if not any(name in (one, one.partition(".")[0]) for one in compared.deciding):
            raise PlanError(
                [Problem("--metric", f"the baseline has no {name}: it did not carry that test out")]
            )
    tests = {one.test for row in compared.contrasts for one in row if one.test is not None}
    statement = statement_document(complied_by(compared.items, compared.least, tests))
    names = [name_of(_named(side)) for side in (*sides, *question.noise)]
    return compose(__version__, names, found[: len(sides)], criteria, compared, statement)


def _named(side: str) -> str:
    """The side with folders in the place of their files."""
    parts = [Path(part.strip()) for part in side.split(",") if part.strip()]
    return ",".join(str(path.parent if path.name == FILE else path) for path in parts)


def _files(side: str) -> Iterator[Path]:
    """The campaign.json of each campaign of a side. Raises RecordError."""
    texts = [part.strip() for part in side.split(",") if part.strip()]
    if not texts:
        raise RecordError(f"{side!r}: names no campaign")
    for text in texts:
        path = Path(text)
        if path.name == FILE and holds(path.parent, FILE):
            yield path
        elif holds(path, FILE):
            yield path / FILE
        else:
            inside = [not_elsewhere(one.parent, path) / FILE for one in path.glob(f"*/{FILE}")]
            inside.sort(key=lambda one: (len(one.parent.name), one.parent.name))
            if not inside:
                raise RecordError(f"{path}: neither a campaign of tests nor a folder that holds campaigns")
            yield from (one for one in inside if holds(one.parent, FILE))


def read(path: Path) -> Repeat:
    """One campaign, from its document, held against its runs. Raises RecordError."""
    return repeat_of(read_held(path), path)


def repeat_of(document: Campaign, path: Path) -> Repeat:
    """One campaign, by the document that `path` holds. Raises RecordError for one that is redacted, or measured nothing."""
    if document.redacted or document.reproduction.plan_file == WITHHELD:
        raise RecordError(f"{path}: is redacted, so figures are missing: compare the campaign itself")
    file = document.reproduction.plan_file
    assert not isinstance(file, str)
    try:
        plan = restored(file["plan"])
    except (ValueError, KeyError) as cause:
        raise RecordError(f"{path}: its plan cannot be read by this version") from cause
    if document.sut is None or document.started is None:
        raise RecordError(f"{path}: nothing was measured in this campaign")
    tokenizer = document.tokenizer
    counted = next((row.value for row in document.disclosed if row.key == "token_counts"), None)
    ended = [one.ended_by for one in document.tests]
    facts = RunFacts(
        id=document.id,
        seed=document.reproduction.seeds[0] if document.reproduction.seeds else plan.workload.seed,
        started_ns=_instant(document.started),
        ended_ns=_instant(document.ended or document.started),
        status=document.verdict.status,
        reasons=tuple(one.code for one in document.verdict.reasons),
        interrupted="interrupted" in ended,
        simulated=document.simulated,
        fingerprint=None,  # what is sent follows from what the system does, so the plans have to agree
        plan=plan,
        sut=document.sut,
        tokens=TokenCounting(
            None if tokenizer is None else tokenizer.method,
            None if tokenizer is None else "server" if tokenizer.kind in UNDECLARED_KINDS else tokenizer.name,
            None if counted is None else counted.partition(";")[0].removeprefix("from "),
            None,
        ),
        instrument=Instrument("as in the runs", document.version),
    )
    return Repeat(facts, document, dict(_configuration(file)))


def _configuration(file: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """What is configured beside the plan: the reference engine, and the parameters of the tests that were carried out."""
    engine, tests, names = file.get("engine"), file.get("tests"), file.get("names")
    if isinstance(engine, Mapping):
        yield from ((f"engine.{key}", _plain(value)) for key, value in engine.items())
    if isinstance(tests, Mapping) and isinstance(names, list | tuple):
        for test, parameters in tests.items():
            if test in (*names, "search") and isinstance(parameters, Mapping):
                yield from ((f"tests.{test}.{key}", _plain(value)) for key, value in parameters.items())


def _plain(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _instant(text: str) -> int:
    """Nanoseconds of the wall clock of an instant that a document names."""
    return int(datetime.fromisoformat(text).timestamp() * NS_PER_S)
