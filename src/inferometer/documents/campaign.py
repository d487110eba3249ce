"""Documents of the draft's tests: one test, and a campaign of several (`campaign.json`).

In a redacted document (`redacted` names what was left out) WITHHELD stands where a value was, and instants are days.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from inferometer.documents.note import Withheld, WordedNote
from inferometer.documents.part import Part
from inferometer.documents.results import Cell, Column, Figure, Interval
from inferometer.documents.statement import ComplianceStatement
from inferometer.documents.summary import Sut, TokenizerAccount
from inferometer.documents.verdict import RunStatus
from inferometer.telemetry.host import Environment

TEST_SCHEMA: Final = "inferometer/test/4"
CAMPAIGN_SCHEMA: Final = "inferometer/campaign/4"

EndedBy = Literal["interrupted", "server", "plan", "instrument"]
"""Why a test is partial."""
Unchecked = Literal["redacted", "version", "runs_missing", "runs_unreadable"]
"""Why a document's figures could not be held against its runs when it was read."""


class ProcedureReason(Part, frozen=True):
    """Why a test or a campaign is not VALID: a check's code or one of judge/procedure_verdict.py, the first run that shows it
    and how many do. `capacity`: the message may tell a load, as those of runs' checks do."""

    code: str
    status: RunStatus
    run: str | None
    message: str
    runs: int = 1
    capacity: bool = True


class ProcedureVerdict(Part, frozen=True):
    """Whether to believe a test's answer."""

    status: RunStatus
    reasons: tuple[ProcedureReason, ...]


class ReportedValue(Part, frozen=True):
    """A figure that the test is about. `ci`: its 95 % interval; `note`: how it was found, or why it is None; `at`: the load it
    is of, in words, shown behind the label; `few`: it is a percentile of too few samples."""

    name: str
    label: str
    value: Cell
    unit: str
    ci: Interval | None
    note: WordedNote | None
    capacity: bool
    at: str = ""
    few: bool = False


class ReportedTable(Part, frozen=True):
    """A table. `section`: where the draft asks for it; each row has a cell for each column; `at`: the load it is of, in
    words; `few`: the cells, by row and column from 0, that are percentiles of too few samples."""

    name: str
    title: str
    section: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[WordedNote, ...]
    capacity: bool
    at: str = ""
    few: tuple[tuple[int, int], ...] = ()


class StateSwitch(Part, frozen=True):
    """The system brought into a state before a run. `seconds`: of a server that was started, to its first healthy answer;
    `runs_before`: how many of the test's runs came before."""

    what: str
    state: str
    status: Literal["verified", "declared", "contradicted"]
    how: str | None
    evidence: str | None
    seconds: float | None = None
    runs_before: int | None = None


class Conditions(Part, frozen=True, omit_defaults=True, rename={"class_name": "class"}):
    """What a run of a test was made at, in the test's own terms; a document has those that the test has.

    `class`: the class of requests that was alone (5.6). `configuration`: of the guardrails (5.10). `cache`: the state of the
    prefix cache (5.7). `start`: of the server, from 1 (4.5.3). `context`: tokens of a prompt (5.9). `percent`: of the
    saturation rate, or in 5.8 of the highest concurrency. `rate`: requests per second, or, where these come as conversations
    or sessions, those. `concurrency`: requests in flight, or conversations or sessions at once. `times`: how many times as long
    as usual the level lasted.
    """

    class_name: str | None = None
    configuration: str | None = None
    cache: str | None = None
    start: int | None = None
    context: int | None = None
    percent: float | None = None
    rate: float | None = None
    concurrency: int | None = None
    times: int | None = None


class ProcedureRun(Part, frozen=True):
    """A run of a test. `part`: what for; `at`: the conditions it was made at; `state`: of the system."""

    run: str
    part: str
    at: Conditions | Withheld
    why: str
    state: Mapping[str, str]
    verdict: RunStatus
    fingerprint: str | None


class SpoiltRun(Part, frozen=True):
    """A run that the client's machine spoilt, and that was made again. `part`, `at`: of the run in
    its place, too; `checks`: the codes of those that it failed; `runs_before`: how many of the test's runs came before."""

    run: str
    part: str
    at: Conditions | Withheld
    checks: tuple[str, ...]
    runs_before: int


class RefusedStep(Part, frozen=True):
    """A run of which nothing could be sent (`part`, `at`), or a state that the system could not be brought into (`what`,
    `state`). `why`: the message; `runs_before`: how many of the test's runs came before."""

    part: str | None
    at: Conditions | None
    what: str | None
    state: str | None
    why: str
    runs_before: int


class ProcedureDocument(Part, frozen=True):
    """One test of the draft. `ended_by`, `problem`: why it is partial; None: it is whole. `parameters`: those of the test;
    `plan`: the resolved base plan, as `plan.json` has it; `refused`: steps that could not be carried out; `spoilt`: runs
    that were made again."""

    schema: Literal["inferometer/test/4"]
    version: str
    test: str
    section: str
    title: str
    objective: str
    started: str | None
    ended: str | None
    simulated: bool
    quick: bool
    ended_by: EndedBy | None
    problem: str | None
    parameters: Mapping[str, Any]
    plan: Mapping[str, Any]
    plan_hash: str | None
    verdict: ProcedureVerdict
    compliance: ComplianceStatement | None
    switches: tuple[StateSwitch, ...]
    runs: tuple[ProcedureRun, ...]
    values: tuple[ReportedValue, ...]
    tables: tuple[ReportedTable, ...]
    figures: tuple[Figure, ...]
    notes: tuple[WordedNote, ...]
    undecided: tuple[WordedNote, ...]
    refused: tuple[RefusedStep, ...] = ()
    spoilt: tuple[SpoiltRun, ...] = ()


class MethodRow(Part, frozen=True):
    """A row of a run's method, such as how tokens were counted. `key`: a stable name; `capacity`: it tells a load."""

    key: str
    name: str
    value: str
    capacity: bool


class MinimumReport(Part, frozen=True):
    """The lines of draft C.1; None: not measured. `of_run`: the run whose latencies they are; `few`: the members that are
    percentiles of too few samples; `answered`: of the requests, which latencies are of."""

    model: str | None
    hardware: str | None
    software: str | None
    boundary: str | None
    workload: str | None
    load_model: str | None
    request_count: int | Withheld | None
    test_duration_s: float | Withheld | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    tpot_p50_ms: float | None
    tpot_p99_ms: float | None
    max_throughput_tok_s: float | Withheld | None
    throughput_at_p99_ttft_500ms_tok_s: float | Withheld | None
    notes: tuple[str, ...]
    of_run: str | None
    seed: int | None
    few: tuple[str, ...] = ()
    answered: int | Withheld | None = None


class WorkloadPrint(Part, frozen=True):
    """The fingerprint of a test's requests."""

    test: str
    fingerprint: str


class Reproduction(Part, frozen=True):
    """All that is needed to do it again (draft C.2, section 6). `plan_file`: tests.json, resolved."""

    command: str
    plan_file: Mapping[str, Any] | Withheld
    versions: Mapping[str, str]
    seeds: tuple[int, ...]
    workloads: tuple[WorkloadPrint, ...]
    run_folders: tuple[str, ...]


class Campaign(Part, frozen=True):
    """Several tests of one system, in the order they were carried out. `unchecked`: of one that was read, why its figures could
    not be held against its runs; None: they were, or it was just carried out."""

    schema: Literal["inferometer/campaign/4"]
    version: str
    id: str
    name: str
    started: str | None
    ended: str | None
    simulated: bool
    quick: bool
    sut: Sut | None
    environment: Environment | None
    tokenizer: TokenizerAccount | None
    disclosed: tuple[MethodRow, ...]
    verdict: ProcedureVerdict
    minimum: MinimumReport
    tests: tuple[ProcedureDocument, ...]
    compliance: ComplianceStatement | None
    reproduction: Reproduction
    redacted: tuple[Literal["capacity"], ...] | None
    unchecked: Unchecked | None = None
