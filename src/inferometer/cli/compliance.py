"""`inferometer compliance RUN`: how a run or a campaign stands by the draft's rules; `--list`: the rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.cli.command import Command
from inferometer.cli.outlet import say, say_json
from inferometer.errors import PlanError, Problem, RecordError

if TYPE_CHECKING:  # help does not wait for what only a statement needs
    from inferometer.documents.statement import ComplianceStatement
    from inferometer.documents.summary import Summary

EXAMPLES = (
    "inferometer compliance runs/20260102T030405Z-run",
    "inferometer compliance runs/20260102T030405Z-campaign --test ttft --json",
    "inferometer compliance --list --level MUST",
)
HELP = """\
Check a run or a campaign against the IETF draft's rules: label, deviations, and every rule with its observation. RUN is
the folder of either, or a campaign.json. A run by itself is judged as the test of TTFT (section 5.1) with its own load.
"""
FILES = ("plan.json", "run.json", "summary.json")
"""Of a run's folder: one by itself is not enough."""
LEVELS = ("MUST", "REQUIRED", "SHOULD", "RECOMMENDED", "states")
"""Those of judge/compliance/evidence.py, which help does not import."""


@click.command("compliance", cls=Command, help=HELP, examples=EXAMPLES)
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--test", metavar="NAME", help="Of a campaign: only this test.")
@click.option("--list", "as_list", is_flag=True, help="Print the rules, and how each is checked.")
@click.option("--level", type=click.Choice(LEVELS), help="With --list: only the rules of this level.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(run: Path | None, test: str | None, as_list: bool, level: str | None, as_json: bool) -> int:
    """See HELP."""

    if as_list:
        if run is not None or test is not None:
            raise PlanError([Problem("--list", "prints the rules of the draft: omit RUN and --test")])
        _say_rules(level, as_json=as_json)
        return 0
    if run is None or level is not None:
        wanted = "RUN, or --list" if run is None else "--list, of which it is a part"
        raise PlanError([Problem("--level" if level else "RUN", f"needs {wanted}")])
    tests, together, remark = _statements(run)
    if test is not None:
        tests, known = [one for one in tests if one.test == test], [one.test for one in tests]
        if not tests:
            raise PlanError([Problem("--test", f"{test} is not in {run}, which has {', '.join(known)}")])
        together = None
    if as_json:
        _say_json(tests, together, remark)
    else:
        say(_text(tests, together, remark))
    return 0


def _say_rules(level: str | None, *, as_json: bool) -> None:
    from inferometer.documents.part import to_data
    from inferometer.judge.compliance.evidence import catalogue
    from inferometer.report.compliance import catalogue_lines

    rules = [one for one in catalogue() if level in (None, one.level)]
    if as_json:
        say_json(to_data(rules))
    else:
        say("\n".join(catalogue_lines(rules)))


Statements = tuple[list["ComplianceStatement"], "ComplianceStatement | None", str]
"""Of each test, of all together, and a remark on how much is known of them, or nothing."""


def _say_json(tests: list[ComplianceStatement], together: ComplianceStatement | None, remark: str) -> None:
    from inferometer.documents.part import to_data

    say_json({"tests": to_data(tests), "campaign": to_data(together), "remark": remark or None})


def _text(tests: list[ComplianceStatement], together: ComplianceStatement | None, remark: str) -> str:
    from inferometer.report.compliance import lines

    shown = [*tests, *([] if together is None else [together])]
    return "\n\n".join([*filter(None, [remark]), *("\n".join(lines(one)) for one in shown)])


def _statements(path: Path) -> Statements:
    """The statements on the tests that are there, and the one on all of them. Raises RecordError."""
    from inferometer.journal.documents import holds
    from inferometer.judge.compliance.evidence import of_run
    from inferometer.judge.compliance.statement import comply
    from inferometer.report.compliance import statement_document

    whole = path / "campaign.json" if path.is_dir() else path
    campaign = whole.name not in FILES and holds(whole.parent, whole.name)
    if campaign and not (path.is_dir() and holds(path, "summary.json")):
        return _campaign(whole)
    return [statement_document(comply(of_run(_summary(path))))], None, ""


def _campaign(path: Path) -> Statements:
    """As the campaign's document has them; what it lacks is worked out from its run folders."""
    from inferometer.journal.folder import inside
    from inferometer.judge.compliance.evidence import of_test
    from inferometer.judge.compliance.statement import campaign, comply
    from inferometer.report.campaign.overview import unchecked
    from inferometer.report.compliance import statement_document
    from inferometer.studies.campaign_runs import read_held

    document = read_held(path)
    stored = [test.compliance for test in document.tests if test.compliance is not None]
    if document.compliance is not None and len(stored) == len(document.tests):
        return stored, document.compliance, unchecked(document.unchecked)
    folder = inside(path.parent, "runs")
    evidence = [
        of_test(test, {ran.run: _summary(inside(folder, ran.run)) for ran in test.runs})
        for test in document.tests
    ]
    tests = [statement_document(comply(one)) for one in evidence]
    return tests, statement_document(campaign(evidence)), unchecked(document.unchecked)


def _summary(folder: Path) -> Summary:
    from inferometer import whole_file
    from inferometer.documents.part import from_json
    from inferometer.documents.summary import SCHEMA, Summary
    from inferometer.journal import hold
    from inferometer.journal.documents import holds
    from inferometer.journal.folder import RunFolder
    from inferometer.journal.unfinished import unfinished

    if folder.is_file() and folder.name in FILES:
        raise RecordError(f"{folder}: is a file of a run: give the run's folder, {folder.parent}")
    if not folder.is_dir():
        raise RecordError(f"{folder}: not a folder of a run or a campaign")
    path = folder / "summary.json"
    if holds(folder, "tests.json"):
        raise RecordError(f"{folder}: a campaign that has no campaign.json{unfinished(folder)}")
    if not holds(folder, "summary.json"):
        RunFolder.open(folder)
        if hold.held(folder / "journal"):
            raise RecordError(f"{folder}: {hold.GOING}")
        raise RecordError(
            f"{folder}: holds no summary.json; `inferometer recover` rebuilds it for a run whose process was killed"
        )
    try:
        return from_json(whole_file.read(path), Summary, SCHEMA, str(path))
    except RecordError as cause:
        raise RecordError(f"{cause}; `inferometer report {folder}` rewrites it") from cause
