"""Generations of one prompt against each other: clocks that should agree, and a first run unlike all others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.bench_metrics import client_durations, server_durations, tok_per_sec
from inferometer.measure.generation_checks import (
    ClocksApart,
    clocks_apart,
    early_text_ms,
    faster_later,
    held_back_ms,
    sooner_later,
)
from inferometer.measure.generations import Generation
from inferometer.measure.measured_requests import Pause


def generation(
    run: int, ttft_ms: float, span_ms: float, own: tuple[float, float, float] | None = None
) -> Generation:
    """A hundred tokens. `own`: prefill, decode and total by the engine."""
    client = client_durations(ttft_ms, ttft_ms + span_ms)
    by = client if own is None else server_durations(*own)
    return Generation(
        prompt=0, run=run, row=run, outcome="ok", submitted_ns=0, ended_ns=1, by=by, client=client,
        speed=tok_per_sec(100, by.generation_ms), tokens=100, tokens_counted=True, prompt_tokens=10, cached_tokens=None,
        finish_reason="length", discarded=None, warnings=(),
    )  # fmt: skip


@given(st.floats(100, 10_000), st.floats(0.1, 10), st.floats(0, 500))
def test_an_engines_own_time_for_generating_agrees_with_the_clients_or_is_named(
    span_ms: float, factor: float, ttft_ms: float
) -> None:
    """Law: a speed by the engine's word that is off by more than 5 % and 10 ms is found, and one that is off by less is not."""
    decode = factor * span_ms
    found = clocks_apart([generation(run, ttft_ms, span_ms, (0.0, decode, decode)) for run in (1, 2, 3)])
    off = abs(decode - span_ms) - max(0.05 * span_ms, 10.0)
    if off > 1e-6:
        assert found is not None
        assert found.what == "generating"
    if off < -1e-6:
        assert found is None or found.what == "the whole"


@given(st.floats(2, 500), st.lists(st.floats(1, 400), min_size=2, max_size=4))
def test_a_first_text_that_nothing_follows_in_every_run_is_early(usual_ms: float, times: list[float]) -> None:
    """Law: a pause of more than ten usual gaps, and of 20 ms; one run without it makes it a stall of the machine."""
    mine = [
        replace(generation(run, 1, 4_000), pause=Pause(usual_ms * one, usual_ms))
        for run, one in enumerate(times, 1)
    ]
    odd = all(usual_ms * one > max(20.0, 10 * usual_ms) for one in times)
    assert (early_text_ms(mine) is not None) == odd
    assert early_text_ms([*mine, generation(9, 1, 4_000)]) is None


def test_a_total_longer_than_the_client_waited_is_named_and_a_shorter_one_is_not() -> None:
    """The client waits for all that the engine does; what lies between them only makes its own time longer."""
    long, short = (5.0, 1_000.0, 1_500.0), (5.0, 1_000.0, 1_005.0)
    assert clocks_apart([generation(1, 50, 1_000, long)]) == ClocksApart("the whole", 1_500.0, 1_050.0)
    assert clocks_apart([generation(1, 50, 1_000, short)]) is None
    assert clocks_apart([generation(1, 50, 1_000)]) is None


@given(st.lists(st.floats(0.5, 10), min_size=1, max_size=4))
def test_a_first_run_is_odd_only_if_all_later_ones_are_twice_as_fast(factors: list[float]) -> None:
    """Law: by speed, and by TTFT; a later run that is like the first acquits them all."""
    mine = [generation(1, 400, 4_000)]
    mine += [generation(at, 400 / times, 4_000 / times) for at, times in enumerate(factors, 2)]
    assert (faster_later(mine) is not None) == sooner_later(mine) == (min(factors) >= 2)
    assert faster_later(mine[1:]) is None
    assert not sooner_later(mine[1:])


@given(st.floats(1, 200), st.floats(0, 1), st.floats(0.1, 10), st.integers(1, 4))
def test_an_answer_kept_until_it_is_whole_is_told_from_one_that_is_sent_as_it_comes(
    first_ms: float, kept: float, pace: float, runs: int
) -> None:
    """Law: whatever share of 4 s of generating comes before the first text, it is found where that is a tenth of the run and
    longer than the first token took; a single run without it acquits the prompt."""
    mine = [
        generation(run, first_ms + kept * 4_000, (1 - kept + kept * pace) * 4_000)
        for run in range(1, runs + 1)
    ]
    whole_ms = first_ms + kept * 4_000 + (1 - kept + kept * pace) * 4_000
    found = held_back_ms(mine, first_ms) is not None
    if kept * 4_000 > 1.001 * max(first_ms, 0.1 * whole_ms, 10):
        assert found
    if kept * 4_000 < 0.999 * max(first_ms, 0.1 * whole_ms, 10):
        assert not found
    assert held_back_ms([*mine, generation(9, first_ms, 4_000)], first_ms) is None
