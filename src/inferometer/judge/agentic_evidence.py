"""What speaks against a verdict on prefix reuse: counts that cannot be, the clock, and the prefix tests among themselves.

| remark                 | when                                                                                              |
| ---------------------- | ------------------------------------------------------------------------------------------------- |
| `cached_impossible`    | a tenth or more of `cold` or `cold-prefix` is said to be cached, whose texts are new                |
| `cached_but_slow`      | a tenth or more is said to be cached, and less than half of the time for it was saved             |
| `uncached_but_fast`    | much more time was saved than the cached share explains: by the clock, the verdict would be better |
| `prefix_tests_differ`  | one prefix test alone would be `yes` and another `no`                                             |
| `cold_slow`            | by `cold-prefix`, which is as cold as `cold`, the verdict by TTFT would be worse                    |
| `ttft_floor`           | so much of TTFT is not reading the prompt that reuse hardly shows in it                           |
| `early_first_text`     | a pause follows the first text of all prefix tests, or of `cold`: by the next, the verdict changes  |

Time saved is 1 - TTFT / TTFT without the cache. Where a share s is cached and reading the prompt is all of TTFT it is s, and
less where reading is only a part: so it is a lower bound of the share. TTFT without the cache is that of the faster cold phase:
what is as cold and slower was slow for another reason.

For `long-prefix` it is that of `long-context`, the same prompt, with what was cached of it added. Of a short USER_L, half or
more of `long-context` may be the system prompt, and cached already: then it is the cold phases' shorter TTFT per token, times
the tokens of `long-prefix`. A long prompt's beginning is read faster than its end, so nothing is said of less than half of it.

The part of TTFT that does not grow with the prompt follows from `long-context`, which has more new tokens than `cold` by those
of USER_L less, at most, those of the system prompt: as that many, it is never taken to be larger than it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from inferometer.documents.agentic import AgenticSample, PrefixCacheReuse, Verdict
from inferometer.documents.bench import Remark
from inferometer.judge.agentic import (
    PARTIAL_SHARE,
    PREFIX_TESTS,
    WORST_FIRST,
    YES_SHARE,
    by_ratio,
    by_share,
    prefix_cache_reuse,
)
from inferometer.judge.agentic_means import mean_known

COLD = ("cold", "cold-prefix")
SAVED = 0.5
"""Of the time that the cached share should save: below it, reading prompts is the smaller part of TTFT, or a count is wrong."""
UNEXPLAINED = 0.25
"""Of TTFT: two cold phases are hardly both slow by so much for another reason."""
READING = 0.1
"""Of TTFT: where reading the prompt is no more, chance hides whether it was read."""


def contradictions(
    samples: Sequence[AgenticSample], reuse: PrefixCacheReuse, pauses: Mapping[int, float] | None = None
) -> tuple[Remark, ...]:
    """See the table above. `pauses`: how long nothing followed the first text, in ms, by the row of a sample in which that is
    odd (measure/generation_checks.py)."""
    found = [*_impossible(samples), *_against_the_clock(samples, reuse)]
    found += _early(samples, reuse, pauses or {})
    if differ := _differing(samples, reuse):
        found.append(Remark("prefix_tests_differ", differ))
    if reuse.source == "ttft":
        found += _of_ttft(samples, reuse)
    return tuple(found)


def _impossible(samples: Sequence[AgenticSample]) -> Iterable[Remark]:
    for phase in COLD:
        share = mean_known(one.cached_share for one in samples if one.phase == phase)
        if share is not None and share >= PARTIAL_SHARE:
            yield Remark("cached_impossible", {"phase": phase, "share": share})


def _against_the_clock(samples: Sequence[AgenticSample], reuse: PrefixCacheReuse) -> Iterable[Remark]:
    """What the engine reports as cached, against the time that it took."""
    share = mean_known(one.cached_share for one in reuse.repeats)
    ratios = [
        ratio
        for ratio in (
            mean_known(one.ttft_ratio for one in reuse.repeats),
            mean_known(one.ttft_ratio_second for one in reuse.repeats),
        )
        if ratio is not None
    ]
    if share is not None and ratios:
        ratio = max(ratios)
        if _slow(share, ratio):
            yield Remark("cached_but_slow", {"phase": "the prefix tests", "share": share, "ratio": ratio})
        saved = 1 - ratio
        if saved - share >= UNEXPLAINED and _better(by_share(saved), by_share(share)):
            yield Remark("uncached_but_fast", {"share": share, "ratio": ratio})
    again = [one for one in samples if one.phase == "long-prefix"]
    share = mean_known(one.cached_share for one in again)
    before = mean_known(_uncached_ms(samples, one) for one in again)
    after = mean_known(one.ttft_ms for one in again)
    if share is None or share < YES_SHARE or not before or after is None:
        return
    if _slow(share, after / before):
        yield Remark("cached_but_slow", {"phase": "long-prefix", "share": share, "ratio": after / before})


def _slow(share: float, ratio: float) -> bool:
    return share >= PARTIAL_SHARE and 1 - ratio <= SAVED * share


def _uncached_ms(samples: Sequence[AgenticSample], again: AgenticSample) -> float | None:
    """TTFT of long-prefix without the cache; see the module's text."""
    mine = {one.phase: one for one in samples if one.repeat == again.repeat}
    first = mine.get("long-context")
    if first is None or first.ttft_ms is None:
        return None
    cached = first.cached_share or 0.0
    if cached < YES_SHARE:
        return first.ttft_ms / (1 - cached)
    cold = [mine[phase] for phase in COLD if phase in mine]
    rates = [one.ttft_ms / one.prompt_tokens for one in cold if one.ttft_ms is not None and one.prompt_tokens]
    return min(rates) * again.prompt_tokens if rates and again.prompt_tokens else None


def _early(
    samples: Sequence[AgenticSample], reuse: PrefixCacheReuse, pauses: Mapping[int, float]
) -> Iterable[Remark]:
    """Whether TTFT is that of a blank or a word which is sent before there is an answer. Counts are held against TTFT, too, so
    it does not matter which of the two the verdict is by."""
    kinds = [[one for one in samples if one.phase in phases] for phases in (PREFIX_TESTS, ("cold",))]
    early = [one for kind in kinds if all(one.row in pauses for one in kind) for one in kind]
    rows = {one.row for one in early}
    later = [
        replace(one, ttft_ms=one.ttft_ms + pauses[one.row])
        if one.row in rows and one.ttft_ms is not None
        else one
        for one in samples
    ]
    first, then = (
        mean_known(one.ttft_ratio for one in found.repeats) for found in (reuse, prefix_cache_reuse(later))
    )
    if first is None or then is None or by_ratio(first) == by_ratio(then):
        return
    phases = ", ".join(dict.fromkeys(one.phase for one in early))
    pause = mean_known(pauses[row] for row in rows)
    yield Remark("early_first_text", {"phases": phases, "pause": pause, "verdict": by_ratio(then)})


def _differing(samples: Sequence[AgenticSample], reuse: PrefixCacheReuse) -> Mapping[str, str] | None:
    """The prefix tests that say no and those that say yes, if there are both: by the counts of any repetition, or by the mean
    TTFT of all."""
    if reuse.source == "cached_tokens":
        found = [
            _by_counts(one for one in samples if one.repeat == repeat.repeat) for repeat in reuse.repeats
        ]
    elif reuse.source == "ttft" and (base := _waits(samples, "cold")):
        waits = {phase: _waits(samples, phase) for phase in PREFIX_TESTS}
        found = [{phase: by_ratio(wait / base) for phase, wait in waits.items() if wait is not None}]
    else:
        return None
    for verdicts in found:
        no, yes = (", ".join(phase for phase in verdicts if verdicts[phase] == end) for end in ("no", "yes"))
        if no and yes:
            return {"no": no, "yes": yes}
    return None


def _of_ttft(samples: Sequence[AgenticSample], reuse: PrefixCacheReuse) -> Iterable[Remark]:
    """Where a verdict by TTFT rests on something else than reading prompts."""
    first = mean_known(one.ttft_ratio for one in reuse.repeats)
    second = mean_known(one.ttft_ratio_second for one in reuse.repeats)
    if first is not None and second is not None and _better(by_ratio(first), by_ratio(second)):
        yield Remark("cold_slow", {"ratio": first, "second": second, "verdict": by_ratio(second)})
    floor = floor_share(samples)
    if first is None or floor is None or by_ratio(first) == "yes":
        return
    reading = 1 - floor
    if reading <= READING or _better(by_ratio((first - floor) / reading), by_ratio(first)):
        yield Remark("ttft_floor", {"share": floor})


def floor_share(samples: Sequence[AgenticSample]) -> float | None:
    """At least this part of the faster cold phase's TTFT does not come from the prompt's length; None: nothing shows it."""
    waits = [wait for phase in COLD if (wait := _waits(samples, phase))]
    long_ms = _waits(samples, "long-context")
    tokens = mean_known(one.prompt_tokens for one in samples if one.phase == "cold")
    long_tokens = mean_known(one.prompt_tokens for one in samples if one.phase == "long-context")
    if not waits or long_ms is None or tokens is None or long_tokens is None:
        return None
    cold_ms, new = min(waits), long_tokens - 2 * tokens
    if new <= 0:
        return None
    reading_ms = max(0.0, long_ms - cold_ms) / new * tokens
    return max(0.0, 1 - reading_ms / cold_ms)


def _by_counts(samples: Iterable[AgenticSample]) -> dict[str, Verdict]:
    return {
        one.phase: by_share(one.cached_share)
        for one in samples
        if one.phase in PREFIX_TESTS and one.cached_share is not None
    }


def _waits(samples: Sequence[AgenticSample], phase: str) -> float | None:
    return mean_known(one.ttft_ms for one in samples if one.phase == phase)


def _better(one: Verdict, other: Verdict) -> bool:
    return WORST_FIRST.index(one) > WORST_FIRST.index(other)
