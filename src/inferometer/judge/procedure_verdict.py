"""The verdict of a test, out of those of its runs: may the test's answer be believed?

A test drives a system where it fails, on purpose. So much of what a run's verdict says of the system (it failed requests, its
queue grew, few samples came of it) is the test's own subject; which checks of which runs count is a table of its own
(counted_checks.py). Beside them counts whether the value that stands for the test is known. Tests that stay where a system
works are about its latencies, and these are of the requests that succeeded: failures leave them open.

| reason          | when                                                                    | makes the test |
| --------------- | ----------------------------------------------------------------------- | -------------- |
| a check's code  | it failed, or is unsure, where it counts                                | as in the run  |
| `contradicted`  | the system was not in the state that it was switched to, or that was    | INVALID        |
|                 | declared of its cache                                                   |                |
| `model_changed` | its runs were answered by several models, in one state                  | INVALID        |
| `server_changed` | the server called itself by several names or versions, in one state    | INCONCLUSIVE   |
| `failures`      | a test of SERVING, and surely more than 1 % of a run's requests failed  | INCONCLUSIVE   |
|                 | or were refused, the latter without filters that the test switched on   |                |
| `partial`       | the test did not come to its end                                        | INCONCLUSIVE   |
| `undecided`     | its runs do not settle what the test is about                           | INCONCLUSIVE   |
| `unmeasured`    | its headline was not measured, and nothing of the above says why        | INCONCLUSIVE   |
| `unanswered`    | not one request of the runs that count was answered                     | INCONCLUSIVE   |
| `few_samples`   | its headline is a percentile of fewer samples than that needs, or rests | INCONCLUSIVE   |
|                 | on medians of fewer                                                     |                |
| `no_interval`   | its headline has no 95 % interval, and is of a kind that has one        | INCONCLUSIVE   |
| `wide_interval` | the interval of its headline holds 0, or its ends are a factor WIDE off | INCONCLUSIVE   |
|                 | and it is wider than SMALL of what the headline is a difference in      |                |

A campaign is as good as its worst test, and as what its tests say of each other: `maximum_exceeded`, where a run of another
test on the same workload, in the same state and with all but 1 % of its requests answered, gave more output tokens per second
than 5.2's maximum, beyond the intervals of both: the maximum is then none, and the campaign INCONCLUSIVE. So it is with
`maximum_not_sustained`, where another test offered no more than HELD of that maximum, and surely fewer than HELD of its
requests ended. `model_changed` and `server_changed` hold of the runs of all tests, too. `incomplete`: tests that were asked for
were not carried out, since the program was ended before them; INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from inferometer.documents.campaign import ProcedureDocument, ProcedureReason, ProcedureVerdict, ReportedValue
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.documents.verdict import RunStatus
from inferometer.judge.checks import ERROR_RATE
from inferometer.judge.compliance.evidence import MeasuredRun
from inferometer.judge.counted_checks import ESTIMATES, OF_LATENCIES, SERVING, counted, headlines
from inferometer.judge.delivery import AT_ONCE_SHARE
from inferometer.measure.measurement import OF_FILTERS
from inferometer.measure.stats import wilson
from inferometer.metrics.statistics import ENOUGH
from inferometer.plan.saved import part_values
from inferometer.plan.schema import Plan

OF_SINGLE_REQUESTS = {"cold-start"}
"""Tests whose runs have one request each: whether answers were held back shows over all of them together."""
CACHED_SHARE = 0.001
"""Prompt tokens from a cache that is off: none, but for a rounding."""
USUAL_STATES = {"prefix_cache": "disabled", "guardrails": "baseline"}
"""A run in another state than these is of another system than the one whose maximum was measured; so is one that discloses
other filters than that had, as the baseline of a system which usually has some."""
MAXIMUM, MAXIMUM_VALUE, RATE_VALUE = "throughput", "max_output_tok_s", "max_request_s"
HELD = 0.9
"""Draft 5.2.3.1: the share of requests that a sustained load completes. A maximum was offered as much of itself."""
ANSWERED = 0.99
"""Of the requests of a run whose throughput is held against the maximum."""
WITH_INTERVAL = {
    "ttft", "throughput", "itl", "capacity", "fairness", "prefix-cache", "memory-pressure", "long-context", "guardrail",
    "cold-start",
}  # fmt: skip
"""Tests whose headline has an interval, unless there is too little for one."""
OF_MEDIANS = {"fairness", "prefix-cache", "guardrail"}
"""Tests whose headline is reckoned with medians of several runs."""
WIDE = 2.0
"""Of an interval's ends: a value that may as well be twice as much is not known."""
SMALL = 0.1
"""Of what a headline is a difference in (the fact `of` of its note): an interval no wider than that tells that there is next to
no difference, which is an answer, though as a share of a difference of 0 no interval is narrow."""
WORST: tuple[RunStatus, ...] = ("INVALID", "INCONCLUSIVE", "VALID")


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a test is not VALID, the first run that shows it and how many do. `reason`: a note, or the sentence that a run's
    summary has for it."""

    code: str
    status: RunStatus
    run: str | None
    reason: Note | str
    runs: int = 1


@dataclass(frozen=True, slots=True)
class ProcedureJudgement:
    """Whether to believe a test's answer. `objections`: worst first."""

    status: RunStatus
    objections: tuple[Objection, ...]


def verdict_of_test(
    test: str,
    runs: Sequence[MeasuredRun],
    problem: str | None,
    undecided: Iterable[Note],
    headline: ReportedValue | None = None,
) -> ProcedureJudgement:
    """The verdict of a test. `problem`: why it did not come to its end; `undecided`: what its runs do not settle; `headline`:
    the value that stands for it. What kept a test from its answer comes before what its runs alone are unsure of."""
    objections: list[Objection] = []
    if problem is not None:
        objections.append(
            Objection("partial", "INCONCLUSIVE", None, Note("partial", {"problem": problem}, True))
        )
    completed = [one.summary.requests.completed for one in runs if one.part not in ESTIMATES]
    if completed and not any(completed):
        objections.append(Objection("unanswered", "INCONCLUSIVE", None, Note("unanswered")))
    objections += (Objection("undecided", "INCONCLUSIVE", None, note) for note in undecided)
    objections += changes([(one.name, one.state, one.summary) for one in runs])
    objections += _failures(test, runs)
    for one in runs:
        objections += (
            Objection("contradicted", "INVALID", one.name, note)
            for note in contradictions(one.part, one.state, one.summary)
        )
    objections += _of_checks(test, runs)
    objections += (
        Objection(code, "INCONCLUSIVE", None, note) for code, note in _of_headline(test, runs, headline)
    )
    if not objections and headline is not None and headline.value is None:
        unknown = Note("headline_not_measured", {"label": headline.label})
        objections.append(Objection("unmeasured", "INCONCLUSIVE", None, unknown))
    return ProcedureJudgement(worst(one.status for one in objections), _merged(objections))


def _of_checks(test: str, runs: Sequence[MeasuredRun]) -> Iterator[Objection]:
    """What the checks of the runs say, where they count."""
    headlined = {one.name for one in headlines(test, runs)}
    together = test in OF_SINGLE_REQUESTS and _streamed_together(runs)
    for one in runs:
        for check in counted(test, one, headlined):
            if not (together and check.code == "streamed"):
                status: RunStatus = "INVALID" if check.status == "fail" else "INCONCLUSIVE"
                yield Objection(check.code, status, one.name, check.message)


def _streamed_together(runs: Sequence[MeasuredRun]) -> bool:
    """Whether runs that were each too short to tell show together that not more than half of the answers were held back."""
    checks = [check for one in runs for check in one.summary.verdict.checks if check.code == "streamed"]
    unsure = [check for check in checks if check.status in ("fail", "unsure")]
    if any(check.status == "fail" or check.facts.get("of") != "few" for check in unsure):
        return False
    held, judged = (sum(check.facts.get(name) or 0 for check in checks) for name in ("held", "judged"))
    interval = wilson(held, judged)
    return interval is not None and interval[1] <= AT_ONCE_SHARE


def _failures(test: str, runs: Sequence[MeasuredRun]) -> Iterator[Objection]:
    """Runs in which surely more requests failed than a run may lose and still tell of latencies. What was refused is no sample
    either; only filters that the test switched on are to refuse, and are compared by what was answered with and without."""
    for one in runs if test in SERVING else ():
        counts, refused = one.summary.requests, one.summary.refusals.requests
        filtered = one.state.get("guardrails", "baseline") != "baseline"
        lost = counts.failed + counts.cancelled
        failed = max(0, lost - refused) if filtered else lost
        ended = counts.completed + lost
        interval = wilson(failed, ended)
        if one.part in OF_LATENCIES and interval is not None and interval[0] > ERROR_RATE:
            facts: dict[str, Fact] = {"failed": failed, "ended": ended, "refused": 0 if filtered else refused}
            yield Objection("failures", "INCONCLUSIVE", one.name, Note("failures", facts, True))


def changes(runs: Iterable[tuple[str, Mapping[str, str], Summary]]) -> Iterator[Objection]:
    """That runs were not all of one system, by what it called itself: each by its name, the state it was made in, and its
    summary. Another state may be another server's: it is held against its own runs alone. Only a prefix cache makes no other
    model, however it is switched. A model is what answered, where that is another name than the one asked for."""
    models: dict[object, str] = {}
    servers: dict[object, str] = {}
    for name, state, summary in runs:
        key, server = tuple(sorted(state.items())), summary.sut.observed.server
        named = summary.sut.observed.answered_as or summary.sut.model or ""
        model = models.setdefault(tuple(one for one in key if one[0] != "prefix_cache"), named)
        if named != model:
            facts: dict[str, Fact] = {"first": model, "then": named}
            yield Objection("model_changed", "INVALID", name, Note("model_changed", facts))
        if server is not None and servers.setdefault(key, server) != server:
            said: dict[str, Fact] = {"first": servers[key], "then": server}
            yield Objection("server_changed", "INCONCLUSIVE", name, Note("server_changed", said))


def _of_headline(
    test: str, runs: Sequence[MeasuredRun], headline: ReportedValue | None
) -> Iterator[tuple[str, Note]]:
    """Why the value that stands for a test is not known well enough to stand for it."""
    counts = [_fewest(one.summary) for one in runs if one.part not in ESTIMATES]
    least = ENOUGH["p50"]
    if test in OF_MEDIANS and counts and 0 < min(counts) < least:
        yield "few_samples", Note("headline_of_few_requests", {"requests": min(counts), "least": least})
    if headline is None or isinstance(headline.value, bool | str | None):
        return
    facts: dict[str, Fact] = {"label": headline.label}
    if headline.few:
        yield "few_samples", Note("headline_of_few_samples", facts)
    if headline.ci is not None:
        low, high = headline.ci
        whole = None if headline.note is None else headline.note.facts.get("of")
        small = isinstance(whole, int | float) and high - low <= SMALL * whole
        if (low <= 0 or high > WIDE * low) and not small:
            ends: dict[str, Fact] = {"low": low, "high": high}
            yield "wide_interval", Note("headline_interval_wide", facts | ends, True)
    elif test in WITH_INTERVAL:
        yield "no_interval", Note("headline_without_interval", facts)


def _fewest(summary: Summary) -> int:
    """Requests completed, of the class with fewest where there are classes."""
    return min([summary.requests.completed, *(one.requests.completed for one in summary.by_class)])


def contradictions(
    part: str, state: Mapping[str, str], summary: Summary, what: str | None = None
) -> list[Note]:
    """What a run shows that the state it was made in rules out; of `what` was switched, or of all. A cache that nobody switched
    is in the state that was declared."""
    declared = {"prefix_cache": summary.sut.prefix_caching} if what is None else {}
    known: dict[str, str | None] = {**declared, **state}
    state = {name: one for name, one in known.items() if one is not None and what in (None, name)}
    notes = []
    cached = summary.throughput.cached_input_share
    if state.get("prefix_cache") == "disabled" and cached is not None and cached > CACHED_SHARE:
        notes.append(Note("cache_used_while_off", {"share": cached}))
    if part == "warm" and state.get("prefix_cache") in ("enabled", "flushed") and cached == 0.0:
        drawn = summary.workload.drawn
        shared = None if drawn is None else drawn.shared.tokens
        notes.append(Note("cache_unused_while_on", {"tokens": None if shared is None else shared.max}))
    refused = sum(summary.refusals.by_signal.get(name, 0) for name in OF_FILTERS)
    if state.get("guardrails") == "baseline" and refused:
        notes.append(Note("refused_while_off", {"requests": refused}, True))
    return notes


def worst(statuses: Iterable[RunStatus]) -> RunStatus:
    """The worst of some statuses; VALID of none."""
    given = set(statuses)
    return next((status for status in WORST if status in given), "VALID")


def of_maximum(tests: Sequence[ProcedureDocument], summaries: Mapping[str, Summary]) -> Iterator[Objection]:
    """What other tests of a campaign say against 5.2's maximum. `summaries`: of the runs, by their names."""
    mine = next((one for one in tests if one.test == MAXIMUM and one.runs), None)
    if mine is None:
        return
    first = summaries[mine.runs[0].run]
    asked, filters = _asked(first.plan), _filters(first)
    others = [
        (test, run.run, summaries[run.run])
        for test in tests
        if test is not mine
        for run in test.runs
        if all(USUAL_STATES.get(name) == state for name, state in run.state.items())
        and _filters(summaries[run.run]) == filters
        and _asked(summaries[run.run].plan) == asked
    ]
    yield from _exceeded(mine, others)
    if mine.parameters.get("loop") == "open":  # a closed loop holds back what an open one piles up
        yield from _not_sustained(mine, others)


_Others = Sequence[tuple[ProcedureDocument, str, Summary]]
"""Runs of other tests on the workload of 5.2, in the same state: the test, the run's name and its summary."""


def _exceeded(mine: ProcedureDocument, others: _Others) -> Iterator[Objection]:
    """That they saw more output tokens a second."""
    value, ends = _number(mine, MAXIMUM_VALUE)
    if value is None:
        return
    most = value if ends is None else ends[1]
    found = [
        (rate, test.title, run)
        for test, run, summary in others
        if summary.success_rate.value is not None
        and summary.success_rate.value >= ANSWERED
        and (rate := summary.throughput.output_tok_s) is not None
        and _least(summary) > most
    ]
    if found:
        rate, title, run = max(found)
        facts: dict[str, Fact] = {"output_tok_s": rate, "test": title, "maximum": value}
        note = Note("maximum_exceeded", facts, True)
        yield Objection("maximum_exceeded", "INCONCLUSIVE", run, note, len(found))


def _not_sustained(mine: ProcedureDocument, others: _Others) -> Iterator[Objection]:
    """That they offered less, and it was not kept up with."""
    value, ends = _number(mine, RATE_VALUE)
    if value is None:
        return
    least = value if ends is None else ends[0]
    found = [
        (rate * summary.requests_each, test.title, run)
        for test, run, summary in others
        if (rate := summary.plan.load.rate) is not None
        and summary.plan.load.model == "open"
        and rate * summary.requests_each <= HELD * least
        and summary.steady is not None
        and (ratio := summary.steady.completion_ratio_ci95) is not None
        and ratio[1] < HELD
    ]
    if found:
        rate, title, run = min(found)
        facts: dict[str, Fact] = {"rate": rate, "test": title, "maximum": value}
        note = Note("maximum_not_sustained", facts, True)
        yield Objection("maximum_not_sustained", "INCONCLUSIVE", run, note, len(found))


def _number(test: ProcedureDocument, name: str) -> tuple[float | None, Interval | None]:
    """A value of a test and its interval; None: it has no such number."""
    for one in test.values:
        if one.name == name and isinstance(one.value, int | float):
            return float(one.value), one.ci
    return None, None


def unfinished(asked: Sequence[str], tests: Sequence[ProcedureDocument]) -> Iterator[Objection]:
    """That tests which were asked for, by their names, are not among those of a campaign."""
    done = {one.test for one in tests}
    missing = tuple(name for name in asked if name not in done)
    if missing:
        yield Objection("incomplete", "INCONCLUSIVE", None, Note("tests_not_carried_out", {"tests": missing}))


def of_one_system(
    tests: Sequence[ProcedureDocument], summaries: Mapping[str, Summary]
) -> tuple[Objection, ...]:
    """That the tests of a campaign were not all of one system. `summaries`: of the runs, by their names."""
    made = [(run.run, run.state, summaries[run.run]) for test in tests for run in test.runs]
    return _merged(list(changes(made)))


def _least(summary: Summary) -> float:
    """The lower end of a run's output tokens a second; the value where it has no interval."""
    ends = summary.throughput.ci95.output_tok_s
    return (summary.throughput.output_tok_s or 0.0) if ends is None else ends[0]


def _filters(summary: Summary) -> tuple[bool, bool]:
    """Whether the run disclosed filters of input and of output."""
    rails = summary.sut.guardrails
    return bool(rails.input_filter), bool(rails.output_filter)


def _asked(plan: Plan) -> dict[str, object]:
    """What is asked for, but for the seed."""
    return {name: one for name, one in part_values(plan.workload).items() if name != "seed"}


def verdict_of_campaign(
    tests: Sequence[tuple[str, str, ProcedureVerdict]], across: Sequence[ProcedureReason] = ()
) -> ProcedureVerdict:
    """The worst of its tests' verdicts, and whose that is. `tests`: name, title and verdict of each; `across`: what its
    tests say of each other."""
    status = worst([*(verdict.status for _, _, verdict in tests), *(one.status for one in across)])
    reasons = tuple(
        ProcedureReason(
            name, status, None, f"{title}: {_first(verdict).message}", 1, _first(verdict).capacity
        )
        for name, title, verdict in tests
        if verdict.status == status != "VALID"
    )
    return ProcedureVerdict(status, (*reasons, *(one for one in across if one.status == status)))


def _first(verdict: ProcedureVerdict) -> ProcedureReason:
    return next(one for one in verdict.reasons if one.status == verdict.status)


def _merged(objections: Sequence[Objection]) -> tuple[Objection, ...]:
    """Worst first; of one code and status the first run's, with how many more show it."""
    kept: dict[tuple[object, ...], list[Objection]] = {}
    for objection in sorted(objections, key=lambda one: WORST.index(one.status)):
        own = str(objection.reason) if objection.run is None else ""
        kept.setdefault((objection.code, objection.status, own), []).append(objection)
    return tuple(replace(same[0], runs=len(same)) for same in kept.values())
