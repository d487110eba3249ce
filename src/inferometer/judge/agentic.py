"""Does an engine reuse the prefix that requests share, and can its word on that be trusted (asiai's methodology, Agentic Mode)?

| signal                                                   | yes         | partial     | no   |
| -------------------------------------------------------- | ----------- | ----------- | ---- |
| cached / prompt tokens, mean over the prefix tests       | >= 0.5      | >= 0.1      | else |
| mean TTFT of the prefix tests / TTFT of `cold`           | < 1/5       | < 1/2       | else |

The first is used if each reply to a prefix test reports its cached tokens, and otherwise the second. Both are the mean over
the repetitions, whose texts are unrelated: so their interval is Student's.

What speaks against a verdict is found in agentic_evidence.py, and makes a result INCONCLUSIVE.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from inferometer.documents.agentic import (
    AgenticSample,
    EarlyStop,
    PrefixCacheReuse,
    QualityGates,
    Reuse,
    Signal,
    Verdict,
)
from inferometer.documents.bench import Remark
from inferometer.documents.verdict import RunStatus
from inferometer.judge.procedure_verdict import worst
from inferometer.measure.stats import mean_interval

PREFIX_TESTS = ("prefix-test-1", "prefix-test-2", "prefix-test-3")
YES_SHARE, PARTIAL_SHARE = 0.5, 0.1
YES_RATIO, PARTIAL_RATIO = 1 / 5, 1 / 2
SHORT_SHARE = 0.5
SHORT_SAMPLES = 2
CONTRADICTIONS = (
    "cached_impossible",
    "cached_but_slow",
    "uncached_but_fast",
    "prefix_tests_differ",
    "cold_slow",
    "ttft_floor",
    "early_first_text",
)
WORST_FIRST: tuple[Verdict, ...] = ("no", "partial", "yes")


def by_share(share: float) -> Verdict:
    """The verdict by cached tokens."""
    return "yes" if share >= YES_SHARE else "partial" if share >= PARTIAL_SHARE else "no"


def by_ratio(ratio: float) -> Verdict:
    """The verdict by TTFT."""
    return "yes" if ratio < YES_RATIO else "partial" if ratio < PARTIAL_RATIO else "no"


def prefix_cache_reuse(samples: Sequence[AgenticSample]) -> PrefixCacheReuse:
    """The verdict over all repetitions whose prefix tests were all answered."""
    tests = [one for one in samples if one.phase in PREFIX_TESTS]
    numbers = sorted({one.repeat for one in samples})
    whole = [
        number
        for number in numbers
        if sum(one.repeat == number and one.outcome == "ok" for one in tests) == 3
    ]
    reported = all(one.cached_share is not None for one in tests if one.repeat in whole)
    signal: Signal = "cached_tokens" if reported else "ttft"
    repeats = tuple(_reuse(samples, number, signal, whole=number in whole) for number in numbers)
    values = [
        value
        for one in repeats
        if one.verdict is not None and (value := one.cached_share if reported else one.ttft_ratio) is not None
    ]
    if not values:
        return PrefixCacheReuse(None, None, None, None, None, None, None, repeats)
    rate = by_share if reported else by_ratio
    mean = statistics.fmean(values)
    interval = mean_interval(len(values), mean, statistics.stdev(values) if len(values) > 1 else None)
    if interval is None:
        return PrefixCacheReuse(rate(mean), signal, mean, None, None, None, None, repeats)
    low, high = sorted(map(rate, interval), key=WORST_FIRST.index)
    return PrefixCacheReuse(rate(mean), signal, mean, interval, low, high, low == high, repeats)


def _reuse(samples: Sequence[AgenticSample], number: int, signal: Signal, *, whole: bool) -> Reuse:
    mine = {one.phase: one for one in samples if one.repeat == number}
    shares = [mine[name].cached_share for name in PREFIX_TESTS if name in mine]
    known = [share for share in shares if share is not None]
    share = statistics.fmean(known) if whole and len(known) == len(PREFIX_TESTS) else None
    first, second = (_ratio(mine, name) if whole else None for name in ("cold", "cold-prefix"))
    verdict: Verdict | None = None
    if signal == "cached_tokens" and share is not None:
        verdict = by_share(share)
    elif signal == "ttft" and first is not None:
        verdict = by_ratio(first)
    return Reuse(number, verdict, None if verdict is None else signal, share, first, second)


def _ratio(mine: Mapping[str, AgenticSample], cold: str) -> float | None:
    """The mean TTFT of the prefix tests over that of a cold phase."""
    waits = [mine[name].ttft_ms for name in PREFIX_TESTS]
    known = [wait for wait in waits if wait is not None]
    base = mine[cold].ttft_ms if cold in mine else None
    return statistics.fmean(known) / base if base and len(known) == len(waits) else None


def early_stop(samples: Sequence[AgenticSample]) -> EarlyStop:
    """The gate of the same name: two or more answers with fewer than half of the tokens asked for."""
    counted = [one for one in samples if one.short is not None]
    short = [one for one in counted if one.short]
    tripped = True if len(short) >= SHORT_SAMPLES else False if len(counted) == len(samples) > 0 else None
    return EarlyStop(tripped, len(short), len(counted), tuple(dict.fromkeys(one.phase for one in short)))


def is_short(completion_tokens: int | None, max_tokens: int) -> bool | None:
    """Whether an answer has fewer than half of the tokens asked for; None: nobody counted them."""
    return None if completion_tokens is None else completion_tokens < SHORT_SHARE * max_tokens


def status(
    run: Mapping[str, RunStatus],
    reuse: PrefixCacheReuse,
    gates: QualityGates,
    remarks: Iterable[Remark],
    *,
    finished: bool,
) -> tuple[RunStatus, tuple[str, ...]]:
    """Whether to rely on an engine's verdict, and the codes of what speaks against it. `run`: what its run's checks give."""
    found = dict(run)
    codes = [one.code for one in remarks if one.code in CONTRADICTIONS]
    codes += gates.tripped
    codes += ["no_verdict"] if reuse.verdict is None else []
    codes += ["verdict_undecided"] if reuse.decided is False else []
    codes += [] if finished else ["not_finished"]
    for code in codes:
        found.setdefault(code, "INCONCLUSIVE")
    return worst(found.values()), tuple(sorted(found, key=lambda code: found[code] != "INVALID"))
