"""Iterations read back from token arrivals, against the engine that made them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from engine_play import Job, play
from fitting import limits, load, served, streams
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from inferometer.server.engine.settings import Settings
from inferometer.simulation.iterations import Iterations, batch_limit, reconstruct

MS = 1_000_000
JOBS = st.lists(
    st.builds(Job, st.integers(1, 200), st.integers(1, 12), st.integers(0, 100 * MS)), min_size=1, max_size=14
).filter(lambda jobs: any(job.output > 1 for job in jobs))
ENGINES = st.builds(
    Settings,
    step_base_ns=st.integers(1 * MS, 5 * MS),
    step_per_request_ns=st.integers(0, 100_000),
    kv_read_per_token_ns=st.integers(0, 900),
    prefill_base_ns=st.integers(0, 5 * MS),
    prefill_per_token_ns=st.integers(0, 50_000),
    prefill_attention_ns=st.integers(0, 90),
    jitter=st.just(0.0),
    max_batch=st.integers(1, 5),
    token_budget=st.integers(205, 400),
    chunked_prefill=st.booleans(),
)
"""Budgets that hold any one prompt beside the rest of the batch, so that each iteration puts something out."""


def predicted(settings: Settings, found: Iterations) -> NDArray[np.float64]:
    """docs/engine.md's sum."""
    return np.asarray(
        settings.step_base_ns * found.steps
        + settings.step_per_request_ns * found.decodes
        + settings.kv_read_per_token_ns * found.context
        + settings.prefill_base_ns * found.begun
        + settings.prefill_per_token_ns * found.tokens
        + settings.prefill_attention_ns * found.pairs
    )


@given(ENGINES, JOBS)
def test_what_is_read_back_takes_as_long_as_the_model_says(settings: Settings, jobs: list[Job]) -> None:
    """Without jitter, to the nanosecond, in each iteration that is said to be understood; and most are."""
    found = served(settings, jobs)
    off = np.abs(predicted(settings, found) - found.ns)
    assert off[found.usable].max(initial=0) <= 1
    assert found.regular == 1


@given(ENGINES, JOBS)
def test_nothing_is_computed_twice_or_not_at_all(settings: Settings, jobs: list[Job]) -> None:
    """Every prompt is begun once, each of its tokens computed once; every token but the first of an answer is a decode."""
    found = served(settings, jobs)
    prompts = [job.prompt for job in jobs]
    assert found.begun.sum() == len(jobs)
    assert found.tokens.sum() == sum(prompts)
    assert found.decodes.sum() == sum(job.output - 1 for job in jobs)
    assert found.pairs.sum() == sum(n * (n + 1) // 2 for n in prompts)


@given(JOBS, st.integers(20, 120))
def test_prompts_larger_than_the_budget_leave_iterations_unseen(jobs: list[Job], budget: int) -> None:
    """Nothing is lost then either, and one prompt alone takes as many steps as the budget makes of it."""
    settings = Settings(jitter=0, token_budget=budget)
    found = served(settings, jobs)
    assert found.begun.sum() == len(jobs)
    assert found.tokens.sum() == sum(job.prompt for job in jobs)
    alone = served(settings, [Job(200, 2, 0)])
    assert alone.steps[0] == -(-200 // budget)
    assert abs(alone.ns[0] - predicted(settings, alone)[0]) <= alone.steps[0]


def test_tokens_of_one_iteration_may_come_one_after_the_other() -> None:
    """Half a millisecond of scatter in steps of two moves no token to another iteration."""
    settings = Settings()
    exact = streams(play(settings, load(100, 20 * MS, (10, 200), (5, 60)), seed=3))
    scatter = np.random.default_rng(5).integers(0, MS // 2, len(exact.token_ns))
    late = dataclasses.replace(exact, token_ns=exact.token_ns + scatter)
    one, other = (reconstruct(each, limits(settings)) for each in (exact, late))
    assert other.regular == one.regular == 1
    assert (other.decodes == one.decodes).all()
    assert (other.context == one.context).all()


def test_an_iteration_that_most_streams_contradict_is_not_used() -> None:
    """A client that slept through ten iterations gave their tokens one stamp."""
    settings = Settings()
    exact = streams(play(settings, [Job(50, 200, 0), Job(50, 200, 1), Job(50, 200, 2)], seed=3))
    asleep = (exact.token_ns > 200 * MS) & (exact.token_ns <= 220 * MS)
    merged = dataclasses.replace(
        exact, token_ns=np.where(asleep, exact.token_ns[asleep].max(), exact.token_ns)
    )
    found = reconstruct(merged, limits(settings))
    long = found.ns > 10 * MS
    assert long.sum() == 1
    assert not found.usable[long].any()
    assert found.usable.mean() > 0.9


def test_tokens_that_keep_no_common_time_are_not_regular() -> None:
    """Streams that tick each for itself, as behind a server without a batch, fit no width."""
    draw = np.random.default_rng(1)
    exact = streams(play(Settings(), load(60, 5 * MS, (10, 20), (40, 60)), seed=3))
    ticks = [np.cumsum(draw.exponential(8 * MS, n)).astype(np.int64) for n in np.diff(exact.offsets)]
    times = np.concatenate([sent + MS + tick for sent, tick in zip(exact.submit, ticks, strict=True)])
    assert reconstruct(dataclasses.replace(exact, token_ns=times), limits(Settings())).regular < 0.4


def test_the_batch_is_seen_where_requests_queue_for_it() -> None:
    """Six places under twice their load; and nothing is said where nobody waited."""
    jobs = load(200, 20 * MS, (10, 100), (60, 120))
    assert batch_limit(served(Settings(max_batch=6), jobs)) == 6
    assert batch_limit(served(Settings(), jobs)) is None


def test_no_second_token_no_iterations() -> None:
    """One token a request says nothing of what lies between two."""
    with pytest.raises(ValueError, match="second token"):
        served(Settings(), [Job(5, 1, 0), Job(5, 1, 9)])
