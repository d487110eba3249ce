"""Planted engines in a linear world: what is said of their prefix cache is true of them, or the result is INCONCLUSIVE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from inferometer.documents.agentic import AgenticSample
from inferometer.judge.agentic import CONTRADICTIONS, by_ratio, by_share, prefix_cache_reuse
from inferometer.judge.agentic_evidence import contradictions, floor_share

PROMPTS = {
    "cold": ("A", "X"), "warm": ("A", "X"), "prefix-test-1": ("A", "Y"), "prefix-test-2": ("A", "X"),
    "prefix-test-3": ("A", "Y"), "cold-prefix": ("B", "X"), "long-context": ("A", "L"), "long-prefix": ("A", "L"),
}  # fmt: skip
TOKENS = {"A": 6_400, "B": 6_400, "X": 40, "Y": 40}


@dataclass(frozen=True)
class Planted:
    """An engine that takes `floor_ms` and a time for each token that it reads, and does not read `reuse` of what it has seen.
    `whole`: it keeps whole prompts only; `loses`: its cache, before each so-manieth request; `says`: the share it reports
    of what was seen, None for nothing at all; `first_ms`: what its first request takes longer."""

    reuse: float = 1.0
    floor_ms: float = 10.0
    token_ms: float = 0.03
    whole: bool = False
    loses: int = 0
    says: Callable[[float], float | None] = float
    first_ms: float = 0.0
    long_tokens: int = 50_000
    seen_before: bool = False

    def samples(self) -> tuple[AgenticSample, ...]:
        """Its answers to the eight phases."""
        tokens = {**TOKENS, "L": self.long_tokens}
        seen = set(PROMPTS.values()) if self.seen_before else set()
        found = []
        for at, (phase, prompt) in enumerate(PROMPTS.items()):
            if self.loses and at % self.loses == self.loses - 1:
                seen.clear()
            size = sum(tokens[part] for part in prompt)
            had = (
                size if prompt in seen else tokens[prompt[0]] if prompt[0] in {one for one, _ in seen} else 0
            )
            known = (size if prompt in seen else 0) if self.whole else self.reuse * had
            seen.add(prompt)
            said = self.says(known / size)
            wait = self.floor_ms + self.token_ms * (size - known) + (self.first_ms if at == 0 else 0)
            found.append(
                AgenticSample(
                    phase=phase, repeat=1, row=at, max_tokens=400, outcome="ok", ttft_ms=wait, total_ms=wait + 1_000,
                    prompt_tokens=size, cached_tokens=None if said is None else round(said * size), cached_share=said,
                    completion_tokens=400, finish_reason="length", short=False,
                )
            )  # fmt: skip
        return tuple(found)


def silent(share: float) -> None:
    """An engine that reports nothing of its cache."""


def codes(engine: Planted) -> set[str]:
    samples = engine.samples()
    return {one.code for one in contradictions(samples, prefix_cache_reuse(samples))}


@given(st.floats(0, 1), st.floats(0, 150), st.sampled_from([2_000, 8_000, 50_000]))
def test_an_engine_that_tells_the_truth_is_not_accused(reuse: float, floor_ms: float, size: int) -> None:
    """Law: where most of TTFT is reading the prompt, an honest count contradicts nothing, however much is reused."""
    engine = Planted(reuse, floor_ms, long_tokens=size)
    assert codes(engine) == set()
    shares = [one.cached_share or 0.0 for one in engine.samples() if one.phase.startswith("prefix-test")]
    assert shares == pytest.approx([reuse * 6_400 / 6_440, reuse, reuse])
    assert prefix_cache_reuse(engine.samples()).verdict == by_share(sum(shares) / 3)


@example(0.53125, 0.125, 12.0).via("saved 0.497 of the time: partial, as said")
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 20))
def test_a_count_that_changes_the_verdict_is_contradicted_by_the_clock(
    reuse: float, said: float, floor_ms: float
) -> None:
    """Law: a count that gives another verdict than the time saved does, and is off by more than half of itself or of the
    prompt, is found, whether it is too high or too low."""
    saved = 6_400 * 0.03 * reuse / (floor_ms + 6_440 * 0.03)
    assume(by_share(said) != by_share(saved if saved > said else reuse))
    assume(reuse < 0.45 * said or reuse - said > 0.4)
    engine = Planted(reuse, floor_ms, says=lambda share: said if share > 0 or reuse == 0 else 0.0)
    samples = tuple(one for one in engine.samples())
    samples = tuple(
        one if one.phase not in ("cold", "cold-prefix", "long-context") else _uncached(one) for one in samples
    )
    found = {one.code for one in contradictions(samples, prefix_cache_reuse(samples))}
    assert found & {"cached_but_slow", "uncached_but_fast"}


def _uncached(one: AgenticSample) -> AgenticSample:
    return AgenticSample(
        phase=one.phase, repeat=1, row=one.row, max_tokens=400, outcome="ok", ttft_ms=one.ttft_ms, total_ms=one.total_ms,
        prompt_tokens=one.prompt_tokens, cached_tokens=0, cached_share=0.0, completion_tokens=400, finish_reason="length",
        short=False,
    )  # fmt: skip


@pytest.mark.parametrize("says", [float, silent])
@pytest.mark.parametrize("engine", [{"whole": True}, {"loses": 2}, {"loses": 3}])
def test_a_cache_of_whole_prompts_or_one_that_is_lost_is_no_reuse_of_prefixes(
    engine: dict[str, bool | int], says: Callable[[float], float | None]
) -> None:
    """The mean of the three tests would be yes or partial; the tests by themselves contradict each other."""
    assert "prefix_tests_differ" in codes(Planted(says=says, **engine))  # type: ignore[arg-type]


@given(st.floats(0, 1), st.floats(0, 5_000), st.sampled_from([14_000, 50_000]))
def test_ttft_gives_no_worse_verdict_than_the_truth_for_want_of_reading(
    reuse: float, floor_ms: float, size: int
) -> None:
    """Law: without counts, a verdict that only the rest of TTFT made worse is INCONCLUSIVE."""
    engine = Planted(reuse, floor_ms, says=silent, long_tokens=size)
    bare = prefix_cache_reuse(Planted(reuse, 0.0, says=silent, long_tokens=size).samples())
    floor = floor_share(engine.samples())
    assert floor is not None
    assert floor <= floor_ms / (floor_ms + 0.03 * 6_440) + 1e-9
    if reuse > 0.95 and bare.verdict == "yes" and prefix_cache_reuse(engine.samples()).verdict != "yes":
        assert "ttft_floor" in codes(engine)
    if floor_ms < 10:
        assert "ttft_floor" not in codes(engine)


def test_prompts_that_were_sent_before_are_found_without_counts() -> None:
    """All phases are then equally fast, which looks like an engine that reuses nothing."""
    engine = Planted(says=silent, seen_before=True)
    assert prefix_cache_reuse(engine.samples()).verdict == "no"
    assert codes(engine) == {"ttft_floor"}


def test_a_slow_first_request_makes_no_cache_and_hides_no_lie() -> None:
    """By TTFT the verdict would be yes; by the other cold phase it is no. A count is held against the faster one."""
    assert codes(Planted(0.0, says=silent, first_ms=1_500)) == {"cold_slow"}
    assert codes(Planted(1.0, says=silent, first_ms=1_500)) == set()
    liar = Planted(0.0, first_ms=1_500).samples()
    liar = tuple(one if not one.phase.startswith("prefix-test") else _claiming(one, 0.3) for one in liar)
    assert {one.code for one in contradictions(liar, prefix_cache_reuse(liar))} == {"cached_but_slow"}


def _claiming(one: AgenticSample, share: float) -> AgenticSample:
    return AgenticSample(
        phase=one.phase, repeat=1, row=one.row, max_tokens=400, outcome="ok", ttft_ms=one.ttft_ms, total_ms=one.total_ms,
        prompt_tokens=one.prompt_tokens, cached_tokens=1, cached_share=share, completion_tokens=400, finish_reason="length",
        short=False,
    )  # fmt: skip


PREFIX_TESTS = ("prefix-test-1", "prefix-test-2", "prefix-test-3")


@pytest.mark.parametrize("says", [silent, float, lambda share: 1.0 if share else 0.0])
@pytest.mark.parametrize("phases", [PREFIX_TESTS, ("cold",)])
@given(st.floats(0, 1), st.floats(0.5, 50))
def test_a_text_sent_ahead_of_the_answer_is_no_evidence_of_reuse(
    phases: tuple[str, ...], says: Callable[[float], float | None], reuse: float, ahead_ms: float
) -> None:
    """Law: an engine that answers some phases at once with a blank or a word, and then reads the prompt, gets no other verdict
    than without it, or a remark; whatever it counts."""
    honest = Planted(reuse, says=says).samples()
    samples, pauses = [], dict[int, float]()
    for one in honest:
        if one.phase in phases and one.ttft_ms is not None and one.ttft_ms > ahead_ms:
            pauses[one.row] = one.ttft_ms - ahead_ms
            one = replace(one, ttft_ms=ahead_ms)
        samples.append(one)
    found, true = prefix_cache_reuse(samples), prefix_cache_reuse(honest)
    ratios = [one.repeats[0].ttft_ratio for one in (found, true)]
    assert None not in ratios
    apart = len({by_ratio(ratio) for ratio in ratios if ratio is not None}) > 1
    said = {one.code for one in contradictions(samples, found, pauses)}
    assert ("early_first_text" in said) == (
        apart and {one.phase for one in samples if one.row in pauses} == {*phases}
    )
    assert "early_first_text" in CONTRADICTIONS


def test_a_stall_of_one_answer_is_no_early_text() -> None:
    """Three tests are not late by chance; one is."""
    samples = Planted(0.0, says=silent).samples()
    late = next(one.row for one in samples if one.phase == "prefix-test-2")
    found = contradictions(samples, prefix_cache_reuse(samples), {late: 10_000.0})
    assert "early_first_text" not in {one.code for one in found}


def test_each_of_them_makes_a_result_inconclusive() -> None:
    """What may be said against a verdict counts against the result."""
    assert {"prefix_tests_differ", "cold_slow", "ttft_floor"} <= set(CONTRADICTIONS)
