"""Campaigns: has procedures' steps carried out at a test stand, and makes documents of their outcomes.

    campaign -> procedures <-> stand (live or simulated) -> judge (verdict, compliance) -> report

After each test the campaign is written anew, so that nothing measured is ever lost.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from inferometer import __version__, whole_file
from inferometer.documents.campaign import (
    TEST_SCHEMA,
    EndedBy,
    ProcedureDocument,
    ProcedureVerdict,
    Reproduction,
    SpoiltRun,
    WorkloadPrint,
)
from inferometer.documents.campaign import Campaign as CampaignDocument
from inferometer.documents.summary import Summary
from inferometer.errors import CannotSwitch, InstrumentError, PeerError, PlanError, RecordError
from inferometer.journal import hold
from inferometer.journal.folder import RunFolder
from inferometer.judge.compliance.evidence import TESTS, Evidence, MeasuredRun, of_test
from inferometer.judge.compliance.statement import campaign as campaign_statement
from inferometer.judge.compliance.statement import comply, deviations_of
from inferometer.judge.counted_checks import ESTIMATES
from inferometer.judge.spoilt import spoilt_by
from inferometer.plan import campaign as campaigns
from inferometer.plan.campaign import Campaign
from inferometer.plan.procedure_parameters import NAMES, Parameters
from inferometer.plan.saved import plan_hash, resolved
from inferometer.plan.schema import Plan
from inferometer.plan.workload import FileWorkload
from inferometer.procedures.registry import PROCEDURES, Procedure
from inferometer.procedures.results import Results
from inferometer.procedures.setup import WARMUP_PART, Setup
from inferometer.procedures.shared_warm_up import sharing
from inferometer.procedures.step import (
    KnownLimits,
    Measured,
    Performed,
    PerformedRun,
    Refused,
    RefusedRun,
    Run,
    Step,
    Steps,
    Switch,
    Switched,
    is_run,
    runs,
)
from inferometer.report import compliance_notes
from inferometer.report.campaign import notes
from inferometer.report.campaign.document import compose
from inferometer.report.campaign.files import write_reports
from inferometer.report.campaign.purposes import PURPOSES
from inferometer.report.campaign.redaction import redact
from inferometer.report.campaign.verdict import verdict_of
from inferometer.report.compliance import statement_document
from inferometer.report.run.composition import moment
from inferometer.run.evaluate import RunResult
from inferometer.run.ui import Ui
from inferometer.simulation.engine import choose
from inferometer.studies import procedure_document as shown
from inferometer.studies.stand import START, Confirm, Stand, stand_of
from inferometer.studies.state_cautions import state_cautions
from inferometer.studies.workload_cautions import workload_cautions

SHAREABLE = "shareable"
"""In a campaign's folder: the reports without what was to be left out of them."""

TRIES = 4
"""Of a run, before what the machine does to it is taken as it is."""

EXIT_CODES = {"VALID": 0, "INVALID": 3, "INCONCLUSIVE": 4}


class Interrupted(Exception):
    """A run was interrupted."""


@dataclass(slots=True)
class Tested:
    """A campaign so far: its folder and its document."""

    __test__: ClassVar[bool] = False  # a name that pytest would collect

    folder: Path
    document: CampaignDocument

    @property
    def exit_code(self) -> int:
        """130 interrupted, 5 ended by the server, 2 by the plan, else by the verdict."""
        ended = {test.ended_by for test in self.document.tests}
        if "interrupted" in ended:
            return 130
        if "server" in ended:
            return 5
        return 2 if "plan" in ended else EXIT_CODES[self.document.verdict.status]


def foreseen(campaign: Campaign) -> list[str]:
    """What the plan itself already breaks of the draft, to be shown before anything is sent: a line for each MUST, and how many
    rules of other kinds. Also what its workload may do to a test. Raises PlanError where a test has nothing to measure with it.
    """
    lines = [*workload_cautions(campaign), *state_cautions(campaign)]
    for name in campaign.names:
        if name not in TESTS:
            continue
        procedure = PROCEDURES[name]
        setup = Setup(campaign.plan, campaign.tests)
        findings = deviations_of(name, parameters_of(setup, name), procedure.planned(setup))
        broken = [one for one in findings if one.state == "violated"]
        must = [one for one in broken if one.rule.weight == "MUST"]
        for note in dict.fromkeys(
            compliance_notes.worded(one.note) for one in must
        ):  # one thing may break several rules
            rules = [one.rule for one in must if compliance_notes.worded(one.note) == note]
            named = ", ".join(rule.id for rule in rules)
            sections = ", ".join(dict.fromkeys(rule.section for rule in rules))
            lines.append(f"{name}: deviates from {rules[0].level} {named} (draft {sections}): {note}")
        others, undeclared = len(broken) - len(must), len(findings) - len(broken)
        summary = [f"deviates from {_counted(others)} of lesser weight than MUST"] if others else []
        summary += (
            [f"whether it keeps {_counted(undeclared)} hangs on what is not declared"] if undeclared else []
        )
        if summary:
            lines.append(f"{name}: {'; '.join(summary)}")
    return lines


def _counted(rules: int) -> str:
    return f"{rules} rule{'' if rules == 1 else 's'}"


def parameters_of(setup: Setup, name: str) -> Parameters:
    """Those of one test."""
    attribute = next(attribute for attribute, test in NAMES.items() if test == name)
    parameters: Parameters = getattr(setup.tests, attribute)
    return parameters


def conduct_campaign(campaign: Campaign, out: Path, ui: Ui, confirm: Confirm, command: str) -> Tested:
    """A campaign in a folder of its own under `out`. Raises PlanError, PeerError, RecordError."""
    return conduct_in(folder_of(campaign, out), campaign, ui, confirm, command)


def folder_of(campaign: Campaign, out: Path) -> Path:
    """A new folder under `out`, named after the campaign and the time. Raises RecordError."""
    name = campaign.plan.name if campaign.plan.name != "run" else "test"
    folder = RunFolder.create(out, name, time.time_ns()).path
    (folder / "journal").rmdir()
    return folder


def conduct_in(folder: Path, campaign: Campaign, ui: Ui, confirm: Confirm, command: str) -> Tested:
    """A campaign in this folder, which exists. Raises PlanError, PeerError, RecordError."""
    with hold.joined(folder), stand_of(campaign, ui, folder / "log.txt", confirm) as stand:
        return carry_out(campaign, stand, folder, ui, command)


def carry_out(requested: Campaign, stand: Stand, folder: Path, ui: Ui, command: str) -> Tested:
    """All tests of a campaign, one after the other, into `folder`, which exists. A system that fails ends its test, and so does
    a plan that this test cannot carry out; the campaign goes on with the next. Raises PlanError when so nothing at all was
    measured, but for a warm-up; RecordError and InstrumentError after what was measured has been reported."""
    started = time.time_ns()
    whole_file.write(folder / "tests.json", campaigns.to_json(requested))
    tested, known = None, KnownLimits()
    documents: list[ProcedureDocument] = []
    summaries: dict[str, Summary] = {}
    evidence: list[Evidence] = []
    refused: PlanError | None = None
    warm: dict[State, Measured] = {}
    state: dict[str, str] = {}
    for number, name in enumerate(requested.names):
        ui.note(
            f"test {number + 1} of {len(requested.names)}: {PURPOSES[name].title} (draft {PROCEDURES[name].section})"
        )
        one = _Test(
            requested,
            PROCEDURES[name],
            Setup(requested.plan, requested.tests, known, max_batch(requested), quick=requested.quick),
            stand,
            folder,
            ui,
            warm,
            state=state,
        )
        document, state = one.carry_out(), one.state
        known = known | one.results.known
        summaries |= {ran.outcome.run: ran.outcome.summary for ran in runs(one.done)}
        if name in TESTS:
            evidence.append(of_test(document, summaries))
            document = replace(document, compliance=statement_document(comply(evidence[-1])))
        documents.append(document)
        tested = Tested(
            folder,
            compose(
                name=folder.name,
                label="tests" if requested.plan.name == "run" else requested.plan.name,
                started=started,
                ended=time.time_ns(),
                simulated=stand.simulated,
                quick=requested.quick,
                tests=documents,
                summaries=summaries,
                verdict=verdict_of(documents, summaries, requested.names),
                compliance=statement_document(campaign_statement(evidence)) if evidence else None,
                reproduction=reproduction(requested, command, documents),
            ),
        )
        write(tested, requested.redact)
        if isinstance(one.failure, RecordError | InstrumentError):
            raise one.failure
        if document.ended_by == "interrupted":
            break
        refused = refused or (one.failure if isinstance(one.failure, PlanError) else None)
    made = (run for document in documents for run in document.runs)
    if refused is not None and all(run.part == WARMUP_PART for run in made):
        raise refused
    assert tested is not None  # a campaign has at least one test
    return tested


def max_batch(requested: Campaign) -> int | None:
    """The largest batch of the reference engine, where that is what is tested."""
    own = requested.simulated or requested.plan.target.url is None
    engine = requested.engine
    if (
        not own or engine.system is not None
    ):  # what is in flight at a system is tasks, not requests of its engine
        return None
    return choose(engine.preset, engine.settings).settings.max_batch


def write(tested: Tested, redacted: Sequence[str]) -> None:
    """The reports of a campaign, and a copy without what is `redacted`. Raises RecordError."""
    write_reports(tested.folder, tested.document)
    if redacted:
        document = tested.document
        for what in redacted:
            document = redact(document, what)
        copy = tested.folder / SHAREABLE
        if copy.is_symlink():
            raise RecordError(
                f"{copy}: is a link, and what is written there would leave the campaign's folder"
            )
        copy.mkdir(exist_ok=True)
        write_reports(copy, document)


State = frozenset[tuple[str, str]]
"""Of a system: what was switched to another state than its usual one, with that."""


@dataclass(slots=True)
class _Test:
    """One test under way. `warm`: the states that the system was warmed up in and has stayed warm in, each with the run that
    did it; all tests of a campaign have one. `state`: what was switched and is not known to be as usual,
    by earlier tests too."""

    campaign: Campaign
    procedure: Procedure
    setup: Setup
    stand: Stand
    folder: Path
    ui: Ui
    warm: dict[State, Measured]
    done: list[Performed] = field(default_factory=list)
    state: dict[str, str] = field(default_factory=dict)
    states: list[dict[str, str]] = field(default_factory=list)
    ended_by: EndedBy | None = None
    problem: str | None = None
    failure: PlanError | RecordError | InstrumentError | None = None
    results: Results = field(default_factory=Results)
    spoilt: list[SpoiltRun] = field(default_factory=list)
    in_vain: bool = False

    def carry_out(self) -> ProcedureDocument:
        """The test's document."""
        started = time.time_ns()
        try:
            steps = self.procedure.steps(self.setup)
            self._go_through(sharing(steps) if self.setup.quick else steps)
        except (PeerError, CannotSwitch) as why:
            self.ended_by, self.problem = "server", str(why)
            self.warm.clear()  # it may have to be started again
        except PlanError as why:
            self.ended_by, self.problem, self.failure = "plan", str(why), why
        except (Interrupted, KeyboardInterrupt):
            self.ended_by, self.problem = "interrupted", "interrupted"
        except (RecordError, InstrumentError) as why:
            # Ctrl-C while a run that is over was being read.
            if isinstance(why.__cause__, KeyboardInterrupt):
                self.ended_by, self.problem = "interrupted", str(why)
            else:
                self.ended_by, self.problem, self.failure = "instrument", str(why), why
        if self.problem is not None:
            self.ui.note(f"this test ends here: {self.problem}")
        self._back()
        self.results = self.procedure.results(self.setup, self.done)
        return self._document(started)

    def _back(self) -> None:
        """Leave the system as it was found, and where that is not known, as the reference engine begins. The states that it
        stays in, and those of which nobody knew what they were before, later tests record."""
        left: dict[str, str] = {}
        for what, state in self.state.items():
            usual = self.stand.usual(what)
            back = START.get(what, state) if usual is None else usual
            if back != state:
                try:
                    self._switch(what, back)
                except (PeerError, CannotSwitch) as why:
                    self.ui.note(f"{what} could not be switched back to {back}, and stays {state}: {why}")
                    left[what] = state
                    continue
                if usual is None:
                    self.ui.note(
                        f"{what} was switched to {back}: the plan does not say in which state it was before"
                    )
            if usual is None:
                left[what] = back
        self.state = left

    def _go_through(self, steps: Steps) -> None:
        outcome: Measured | Switched | PlanError | CannotSwitch | None = None
        while True:
            try:
                step: Step = steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
            except StopIteration:
                return
            try:
                outcome = self._do(step)
            except (
                PlanError,
                CannotSwitch,
            ) as why:  # no room in the model, say: the procedure may know better
                outcome = why
            self.done.append(_done(step, outcome))

    def _do(self, step: Step) -> Measured | Switched:
        if isinstance(step, Switch):
            self.ui.note(f"switching {step.what}: {step.state}")
            switched = self._switch(step.what, step.state)
            self.state = {**self.state, step.what: step.state}
            return switched
        shared = self.setup.quick and step.part == WARMUP_PART
        if shared and (before := self.warm.get(self._state())) is not None:
            self.states.append(self.state)
            return before
        self.ui.note(notes.worded(step.why))
        finding = self._measured(step)
        self.states.append(self.state)
        requests = finding.requests if self.procedure.by_request else None
        measured = Measured(finding.folder.name, finding.summary, requests)
        if shared:
            self.warm[self._state()] = measured
        return measured

    def _measured(self, step: Run) -> RunResult:
        """A run; one that the client's machine spoilt is made again once that is on time, unless one of this test was in vain
        made again already. Where a cache may know the prompts, a run is made once: when the machine is on time."""
        named = step.plan.model_copy(update={"name": f"{self.procedure.name}-{step.part}"[:64]})
        hasty = self.setup.quick or step.part in ESTIMATES
        once = hasty or self.in_vain or (_same_prompts(step.plan) and not self._without_cache())
        if once and not hasty:
            self.stand.settle()
        for left in reversed(range(1 if once else TRIES)):
            finding = self.stand.measure(named, self.folder / "runs")
            if finding.summary.run.interrupted:
                raise Interrupted
            checks = spoilt_by(finding.summary)
            if not left or not checks:
                self.in_vain = self.in_vain or (bool(checks) and not once)
                break
            before = sum(map(is_run, self.done))
            self.spoilt.append(SpoiltRun(finding.folder.name, step.part, step.at, checks, before))
            self.ui.note(
                f"the client's machine spoilt this run ({', '.join(checks)}): it is made again once that is on time"
            )
            self.stand.settle()
        return finding

    def _without_cache(self) -> bool:
        usual = self.stand.usual("prefix_cache")
        return self.state.get("prefix_cache", usual) == "disabled"

    def _state(self) -> State:
        return frozenset(
            (what, state) for what, state in self.state.items() if state != self.stand.usual(what)
        )

    def _switch(self, what: str, state: str) -> Switched:
        """Bring the system into a state. Only one that says itself that it was switched, and was not started for it, is known
        to be as warm as before."""
        kept = dict(self.warm)
        self.warm.clear()
        switched = self.stand.switch(what, state)
        if switched.status == "verified" and what != "server" and self.stand.usual(what) is not None:
            self.warm.update(kept)
        return switched

    def _document(self, started: int) -> ProcedureDocument:
        procedure, base = self.procedure, self.setup.plan
        made = list(zip(runs(self.done), self.states, strict=True))
        title, objective = PURPOSES[procedure.name]
        empty = ProcedureDocument(
            schema=TEST_SCHEMA,
            version=__version__,
            test=procedure.name,
            section=procedure.section,
            title=title,
            objective=objective,
            started=moment(started),
            ended=moment(time.time_ns()),
            simulated=self.stand.simulated,
            quick=self.campaign.quick,
            ended_by=self.ended_by,
            problem=self.problem,
            parameters=parameters_of(self.setup, procedure.name).model_dump(mode="json"),
            plan=resolved(base),
            plan_hash=plan_hash(base),
            verdict=ProcedureVerdict("VALID", ()),
            compliance=None,
            switches=shown.switches(self.done),
            runs=tuple(shown.measured_run(one, state) for one, state in made),
            values=(),
            tables=(),
            figures=(),
            notes=(),
            undecided=(),
            refused=shown.refused(self.done),
            spoilt=tuple(self.spoilt),
        )
        measured = [
            MeasuredRun(one.outcome.run, one.step.part, one.step.at, one.outcome.summary, state)
            for one, state in made
        ]
        return shown.with_results(empty, measured, self.results)


def _same_prompts(plan: Plan) -> bool:
    """Whether a run made again may send the prompts of the first one, and not others of the same lengths (nonces.py)."""
    return plan.workload.repeatable_prompts or isinstance(plan.workload, FileWorkload)


def _done(step: Step, outcome: Measured | Switched | PlanError | CannotSwitch) -> Performed:
    if isinstance(step, Run) and isinstance(outcome, Measured):
        return PerformedRun(step, outcome)
    if isinstance(outcome, Exception):
        refused = Refused(str(outcome))
        return RefusedRun(step, refused) if isinstance(step, Run) else Performed(step, refused)
    return Performed(step, outcome)


def reproduction(campaign: Campaign, command: str, tests: Sequence[ProcedureDocument]) -> Reproduction:
    """All that is needed to do it again (draft C.2, section 6)."""
    prints = dict.fromkeys(
        (test.test, run.fingerprint) for test in tests for run in test.runs if run.fingerprint is not None
    )
    return Reproduction(
        command=command,
        plan_file=json.loads(campaigns.to_json(campaign)),
        versions={"inferometer": __version__, "python": platform.python_version()},
        seeds=(campaign.plan.workload.seed,),
        workloads=tuple(WorkloadPrint(test, fingerprint) for test, fingerprint in prints),
        run_folders=tuple(run.run for test in tests for run in test.runs),
    )
