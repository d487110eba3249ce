"""Which checks of its runs count in the verdict of a test, and why the others do not.

| check                                | counts in                                                                          |
| ------------------------------------ | ---------------------------------------------------------------------------------- |
| of the instrument (judge.py)         | every run, but for LEFT_OUT                                                        |
| `error_rate`, by this machine's own  | every run: what it could not connect was not sent                                  |
| `cache_hits`                         | every run but those of a state whose cache is on: what it finds is their subject   |
| `drift`, `stationary`, `server_ttft` | runs whose latencies are the headline: of SERVING, of OF_LATENCIES, and where      |
|                                      | there are levels (BY_LEVEL) of the headline's                                      |
| `session_ends`, `session_cache`      | the same, of recorded sessions: an overload cuts them short and empties caches     |
| `filling`                            | the same, of conversations and sessions, and levels of 5.3 up to CARRIED per cent: |
|                                      | a run not much longer than they last is of a system that they never filled; of     |
|                                      | requests it is of a throughput, and 5.2 has its own rule for the run that decides  |
| those of NOT_COUNTED                 | none, for the reason that stands there                                             |

Runs that only estimate where to look do not count. A run beyond what a system sustains drifts, and its queue grows: that is why
it is made, and no headline is of its latencies. Where a run is too short to tell whether the system changed, nothing says that
it did, and the interval says how much is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from inferometer.documents.verdict import CheckResult
from inferometer.judge.compliance.evidence import MeasuredRun
from inferometer.judge.judge import OF_THE_INSTRUMENT

LEFT_OUT = {"cold-start": {"receive_lag", "error_bound"}}
"""What a test is not about: a cold start is a time of one first token, of seconds at least, and reads no gaps."""
OF_FILTERS_COST = {"guardrail"}
"""Tests of what filters cost in TTFT, end-to-end time and throughput: a disclosed one that holds answers back is expected."""
ESTIMATES = ("pilot", "base-pilot", "full-again", "warm-up", "session-length")
"""Parts that look where a system is full, before the runs that count or behind them: few requests do."""
SERVING = {"ttft", "itl", "fairness", "prefix-cache", "long-context", "guardrail"}
"""Tests at loads that the system is to carry, headlined by latencies."""
OF_LATENCIES = {"level", "isolated", "mixed", "disabled", "cold", "warm", "again"}
"""Parts of their runs whose latencies the headlines are of."""
BY_LEVEL = {"ttft", "itl", "guardrail"}
"""Tests of several loads, headlined by the first of them that was answered."""
OF_STEADINESS = frozenset({"drift", "stationary", "server_ttft"})
"""Whether latencies are of one state of the system, and the system's own figures of them agree."""
OF_SESSIONS = frozenset({"session_ends", "session_cache"})
"""What holds of sessions that the system keeps up with."""
CARRIED = 90.0
"""Of saturation: a level of 5.3 that the system is to carry."""
NOT_COUNTED: Mapping[str, str] = {
    "interrupted": "the test is then partial, which is a reason of its own",
    "error_rate": "a test drives a system where it fails; one that it is to carry has `failures`",
    "few_samples": "the headline's own number of samples counts",
    "users_held": "a note at most",
    "own_cpu": "a note at most",
    "round_trip": "a note at most",
    "task_results": "no test is headlined by the success of tasks",
    "workload_lengths": "a note at most",
    "server_queue": "a note at most",
    "samples_p99": "a headline that is a P99 of too few samples has its own reason",
    "samples_p99_9": "a note at most",
    "tokens_per_event": "gaps that are none of single tokens are named by chunk, and 5.4 says so",
    "ttft_variants": "a note at most",
    "stale_connections": "a note at most",
    "throttled": "a note at most",
    "warmup": "a note at most",
}
"""Why a check does not count, whatever the test."""


def counted(test: str, one: MeasuredRun, headlined: Collection[str]) -> list[CheckResult]:
    """The checks of a run that make its test what they make the run. `headlined`: the runs of `headlines`, by name."""
    if one.part in ESTIMATES:
        return []
    checks = [check for check in one.summary.verdict.checks if check.status in ("fail", "unsure")]
    return [check for check in checks if _counts(test, one, check, of_headline=one.name in headlined)]


def _counts(test: str, one: MeasuredRun, check: CheckResult, *, of_headline: bool) -> bool:
    of = check.facts.get("of")
    if check.code in OF_SESSIONS:
        return of_headline
    if check.code == "filling":
        carried = test == "tradeoff" and one.at.percent is not None and one.at.percent <= CARRIED
        return one.summary.requests_each > 1 and (of_headline or carried)
    if check.code in OF_THE_INSTRUMENT - LEFT_OUT.get(test, set()):
        return not (check.code == "streamed" and test in OF_FILTERS_COST and of == "filter")
    if check.code == "error_rate":
        return of == "own"
    if check.code == "cache_hits":
        return one.state.get("prefix_cache") in (None, "disabled")
    return check.code in OF_STEADINESS and of_headline and of != "short"


def headlines(test: str, runs: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """The runs whose latencies are a test's headline; none of a test that is not headlined by latencies."""
    mine = [one for one in runs if test in SERVING and one.part in OF_LATENCIES]
    if test not in BY_LEVEL:
        return mine
    first = next((one for one in mine if one.summary.requests.completed), None)
    return [] if first is None else [one for one in mine if _load(one) == _load(first)]


def _load(one: MeasuredRun) -> tuple[float | None, ...]:
    return one.at.percent, one.at.rate, one.at.concurrency
