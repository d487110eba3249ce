"""Workloads as files: made from a plan without a server, read for their statistics, and held against the reports of runs.

    plan -> workload -> workload.arrow and workload.jsonl

Nothing here depends on the machine: the salt comes from the seed, no time and no path is written, and order and bytes do not
depend on how many processes make the prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow.compute as pc

from inferometer import whole_file
from inferometer.documents.part import named_by_schema, to_data
from inferometer.documents.run_facts import RUN_SCHEMA, RunFacts
from inferometer.documents.summary import SCHEMA as SUMMARY_SCHEMA
from inferometer.documents.summary import Summary
from inferometer.errors import PlanError, Problem, RecordError
from inferometer.journal.documents import holds, place_of
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import asked
from inferometer.journal.schema import Phase
from inferometer.plan import saved
from inferometer.plan.schema import AUTO_TOKENIZER, REFERENCE_TOKENIZER, Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import AnyWorkload, TasksWorkload
from inferometer.run.facts import read_facts
from inferometer.run.request_writer import warm_salt
from inferometer.run.requests import contexts_of, drawn, with_enough_warm_up
from inferometer.workload import tokenizers, workload_file
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.nonces import valuer
from inferometer.workload.parallel import DEFAULT, Processes
from inferometer.workload.prompts import Fingerprint, Prompt, salt_of
from inferometer.workload.request_statistics import BLOCK, Account
from inferometer.workload.sources import Rendering, RequestSource, TraceRows, sourced
from inferometer.workload.workload_file import Declared, Fields, From, Header, Made, PhaseName, Row

PATHS = ("prompts", "dataset")
"""Keys of a plan's workload that are paths, of which a file keeps the last part."""
_COLUMNS = ("input_tokens_asked", "input_tokens_sent", "output_tokens_asked")
UNKNOWN: dict[str, Any] = {"requests": None, "fraction": None, "tokens": None, "groups": None, "curve": []}
"""What is shared where nobody worked it out."""


def make(plan: Plan, folder: Path, note: Callable[[str], None], processes: Processes = DEFAULT) -> Header:
    """Write the plan's requests into a folder. Raises PlanError, and OSError where they cannot be written.

    `note` is told what takes time. `processes`: when other processes help; the files do not depend on it.
    """
    _refuse(plan)
    plan, source = sourced(plan)
    assert not isinstance(source, TraceRows | SessionRows), "which are refused"
    tokenizer = tokenizers.load(plan.tokenizer)
    ids = plan.target.interface.takes_ids and not plan.workload.text_only
    making = _Making(plan, source, Rendering(tokenizer, "ids" if ids else "text", processes=processes))
    folder.mkdir(parents=True, exist_ok=True)
    note("generating the requests")
    return workload_file.write(folder, making.rows(), making.header)


def _refuse(plan: Plan) -> None:
    """What cannot be made."""
    problems: list[Problem] = []
    if plan.trace is not None or plan.load.arrival == "trace":
        message = "a trace is already a sequence of requests, and runs record its SHA-256: there is nothing to generate"
        problems.append(Problem("--trace", message))
    if plan.workload.file is not None:
        problems.append(Problem("--workload-file", "that workload is already a file"))
    if isinstance(plan.workload, SessionsWorkload):
        message = (
            "recorded sessions are already a file, and runs record its SHA-256: there is nothing to generate"
        )
        problems.append(Problem("--sessions", message))
    if isinstance(plan.workload, TasksWorkload):
        message = "tasks are already a file, whose criteria a workload file has no place for: there is nothing to generate"
        problems.append(Problem("--tasks", message))
    if plan.workload.count_template:
        message = (
            "only a server knows what its chat template adds, and none is contacted: give --count-template no, "
            "here and for the runs"
        )
        problems.append(Problem("--count-template", message))
    if problems:
        raise PlanError(problems)


class _Making:
    """The rows of a plan, and what is known of them once they have passed."""

    def __init__(self, plan: Plan, source: RequestSource, rendering: Rendering) -> None:
        self._plan, self._source, self._rendering = plan, source, rendering
        self._tokenizer, self._format = rendering.tokenizer, rendering.prompt_format
        self._salt = salt_of(plan.workload.seed)
        self._account = Account(repeatable=plan.workload.repeatable_prompts)
        self._fingerprint = Fingerprint()
        self._counts: Counter[str] = Counter()

    def rows(self) -> Iterator[Fields]:
        """The warm-up's, then the measurement's."""
        yield from self._phase("warmup", Phase.WARMUP, warm_salt(self._salt))
        yield from self._phase("measure", Phase.MEASURE, self._salt)

    def _phase(self, name: PhaseName, phase: Phase, salt: int) -> Iterator[Fields]:
        if phase is Phase.WARMUP and not self._plan.load.warmup:
            return
        value = valuer(self._tokenizer, self._format)
        warm = phase is Phase.WARMUP
        plan, contexts = self._plan, None
        if warm:
            contexts = contexts_of(plan, self._source, self._tokenizer, self._salt)
            plan = with_enough_warm_up(plan, self._source, contexts)
        prompts, _ = drawn(plan, self._source, self._rendering, phase, salt, contexts)
        if warm:
            prompts = self._account.before(prompts)
        else:
            prompts = self._account.of(self._fingerprint.of(self._source.counted(prompts)))
        for index, prompt in enumerate(prompts):
            self._counts[name] += 1
            yield workload_file.row_of(prompt, name, index, self._source.classes, salt, value)

    def header(self, rows_sha256: str) -> Header:
        """See made.write."""
        plan = self._plan
        workload = saved.resolved(plan)["workload"]
        workload |= {key: Path(workload[key]).name for key in PATHS if workload.get(key) is not None}
        tokenizer = tokenizers.facts(self._tokenizer)
        named = plan.tokenizer.name if tokenizer.kind != "file" else None
        declared = Declared(name=named, method=plan.tokenizer.method)
        if named == AUTO_TOKENIZER:  # there is no server yet whose tokens these could be
            declared = Declared(name=REFERENCE_TOKENIZER, method="reference")
        source = self._source.facts()
        return Header(
            workload={key: value for key, value in workload.items() if value is not None},
            api=plan.target.api,
            prompt_format=self._format,
            declared=declared,
            tokenizer=tokenizer,
            salt=self._salt,
            warmup=self._counts["warmup"],
            requests=self._counts["measure"],
            prefix_hits=self._account.facts().prefix_hits,
            source=From(classes=source.classes, prompts=to_data(source.prompts), texts=to_data(source.texts)),
            fingerprint=str(self._fingerprint),
            rows_sha256=rows_sha256,
        )


# Reading.


def pictured(path: Path) -> dict[str, Any]:
    """The account of a file's requests, with its histograms, as the page with pictures wants it. Raises RecordError."""
    if holds(path, "plan.json"):
        raise RecordError(f"{path}: is a run's folder: its report.html has the charts")
    account: dict[str, Any] = show(path)["account"]
    return account


def show(path: Path) -> dict[str, Any]:
    """What is in a file, in the folder of one, or in a run's, and the account of its requests. Raises RecordError."""
    if holds(path, "plan.json"):
        return _of_run(path)
    workload, account = _opened(path), Account()

    def see(row: Row) -> None:
        if row.phase == "measure":
            group = -1 if row.group is None else row.group
            one = Prompt(
                "", row.input_tokens, row.input_tokens_sent, row.output_tokens, "",
                shared=row.input_tokens_shared, group=group, repeated=row.input_tokens_repeated,
            )  # fmt: skip
            _take(account, one)

    _sound(workload, see)
    return _facts(workload.header, path.resolve().name) | _with_sums(
        to_data(account.facts()) | {"prefix_hits": to_data(workload.header.prefix_hits)}
    )


def _take(account: Account, prompt: Prompt) -> None:
    for _ in account.of([prompt]):
        pass


def _with_sums(account: dict[str, Any]) -> dict[str, Any]:
    """An account, and the sums of its prompt tokens."""
    kept = {name: value for name, value in account.items() if name != "published"}
    sums = {
        name: 0 if of is None else round(of["mean"] * count)
        for name, of, count in (
            ("input_tokens", account["input_tokens"], account["requests"]),
            ("shared_input_tokens", account["shared"]["tokens"], account["shared"]["requests"]),
        )
    }
    return {"account": kept, "tokens": sums}


def files(path: Path) -> list[Path]:
    """The files of a workload: both, or those that are left, of a folder, or the one that is named."""
    if not path.is_dir():
        return [path]
    both = [path / f"{workload_file.NAME}.{form}" for form in workload_file.FORMATS]
    return [one for one in both if holds(path, one.name)] or both[:1]


def _opened(path: Path) -> Made:
    try:
        return workload_file.opened(files(path)[0])
    except PlanError as wrong:
        raise RecordError(str(wrong)) from None


def _sound(workload: Made, see: Callable[[Row], None]) -> workload_file.Reading:
    """Read a file through. Raises RecordError where a row is none."""
    reading = workload_file.read_through(workload, see)
    if reading.problems:
        raise RecordError("\n".join(map(str, reading.problems)))
    return reading


def _facts(header: Header, name: str) -> dict[str, Any]:
    spec = header.spec
    return {
        "name": name,
        **_workload_name(spec),
        "seed": spec.seed,
        "api": header.api,
        "prompt_format": header.prompt_format,
        "tokenizer": to_data(header.tokenizer),
        "warmup": header.warmup,
        "requests": header.requests,
        "fingerprint": header.fingerprint,
        "digest": header.digest,
        "classes": list(header.classes),
    }


def _workload_name(workload: AnyWorkload) -> dict[str, str | None]:
    return {"workload": workload.name, "based_on": workload.based_on}


def _of_run(path: Path) -> dict[str, Any]:
    folder = RunFolder.open(path)
    plan, run = saved.read(folder.plan), read_facts(folder)
    table = asked(folder.schedule, ["phase", *_COLUMNS])
    warm, measured = (
        table.filter(pc.field("phase") == int(phase)) for phase in (Phase.WARMUP, Phase.MEASURE)
    )
    if run.requests is not None:
        account = to_data(run.requests)
    else:  # of a trace
        lengths = Account()
        for wanted, sent, output in zip(
            *(measured.column(name).to_pylist() for name in _COLUMNS), strict=True
        ):
            _take(lengths, Prompt("", wanted, sent, output, ""))
        unknown = {"prefix_hits": {"exact": None, "blocks": None, "block_tokens": BLOCK}, "shared": UNKNOWN}
        account = to_data(lengths.facts()) | unknown
    return {
        "name": path.resolve().name,
        **_workload_name(plan.workload),
        "seed": plan.workload.seed,
        "api": plan.target.api,
        "prompt_format": run.prompt_format,
        "tokenizer": to_data(run.tokenizer),
        "warmup": warm.num_rows,
        "requests": measured.num_rows,
        "fingerprint": run.fingerprint,
        "digest": None if run.made is None else run.made.digest,
        "classes": list(run.classes),
        **_with_sums(account),
    }


# Verifying.


@dataclass(frozen=True, slots=True)
class Check:
    """One hash of a file: what it says of itself, or a report of it, and what its rows come to."""

    what: Literal["rows", "digest", "fingerprint", "report"]
    said: str
    found: str

    @property
    def same(self) -> bool:
        """Whether they agree."""
        return self.said == self.found


def verify(path: Path, report: Path | None = None) -> list[Check]:
    """Work out the hashes of a file from its rows, beside those it says, and beside the fingerprint that a run's folder,
    summary.json or run.json names. Raises RecordError where one of them cannot be read."""
    named = None if report is None else _named(report)
    workload, fingerprint = _opened(path), Fingerprint()
    numbers = {name: number for number, name in enumerate(workload.header.classes)}

    def see(row: Row) -> None:
        if row.phase == "measure":
            for _ in fingerprint.of([_bare(row, numbers)]):
                pass

    reading = _sound(workload, see)
    header, measured = workload.header, str(fingerprint)
    checks = [
        Check("rows", header.rows_sha256, reading.rows_sha256),
        Check("digest", header.digest, header.sealed().digest),
        Check("fingerprint", header.fingerprint, measured),
    ]
    return [*checks, *([Check("report", named, measured)] if named is not None else [])]


def _bare(row: Row, classes: dict[str, int]) -> Prompt:
    """As much of a prompt as the fingerprint covers."""
    roles = None if row.messages is None else tuple((one.role, "") for one in row.messages)
    return Prompt(
        "", row.input_tokens, 0, row.output_tokens, "", roles,
        request_class=None if row.class_ is None else classes[row.class_], fields=row.extra_body, bare=row.bare(),
        place=row.place, reply=row.reply,
    )  # fmt: skip


def _named(report: Path) -> str:
    """The fingerprint that a report names."""
    path = place_of(report, "run.json") if report.is_dir() else report
    try:
        text = whole_file.read(path)
    except OSError as cause:
        raise RecordError(
            f"{report}: cannot be read: {(cause.strerror or 'unknown error').lower()}"
        ) from cause
    kinds: dict[str, type[RunFacts | Summary]] = {RUN_SCHEMA: RunFacts, SUMMARY_SCHEMA: Summary}
    try:
        found = named_by_schema(text, kinds, str(report))
    except RecordError as cause:
        raise RecordError(f"{cause}: give a run folder, or its summary.json or run.json") from cause
    name = found.fingerprint if isinstance(found, RunFacts) else found.workload.fingerprint
    if name is None:
        raise RecordError(f"{report}: names no fingerprint of its requests")
    return name
