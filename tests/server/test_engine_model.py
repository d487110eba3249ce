"""The engine's model in virtual time, against its own definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.server.model import Engine, Speeds

EXACT = Speeds(
    prefill_base_ns=1_000,
    prefill_per_token_ns=10,
    step_base_ns=100,
    step_per_request_ns=7,
    max_batch=256,
    prefill_budget=10**6,
    jitter=0,
)


@dataclass(eq=False)
class Job:
    """A request and what became of it; `cancelled_at` counts from its arrival."""

    prompt: int
    output: int
    arrives: int
    cancelled_at: int | None = None
    tokens: list[tuple[int, int]] = field(default_factory=list)  # (index, instant)
    ended_at: int | None = None


JOBS = st.lists(
    st.builds(
        Job,
        st.integers(1, 400),
        st.integers(1, 12),
        st.integers(0, 5_000),
        st.none() | st.integers(0, 5_000),
    ),
    max_size=14,
)
SPEEDS = st.builds(
    Speeds,
    st.integers(0, 2_000),
    st.integers(0, 20),
    st.integers(1, 500),
    st.integers(0, 50),
    st.integers(1, 5),
    st.integers(1, 900),
    st.sampled_from([0.0, 0.1, 0.9]),
)


def drain(engine: Engine[Job], until: int | None) -> None:
    """Let time pass operation by operation, up to `until` or to the end."""
    while (due := engine.next_due()) is not None and (until is None or due <= until):
        emission = engine.advance(max(due, engine.now))
        assert emission is not None
        assert emission.at == due
        for job, index, last in emission.tokens:
            job.tokens.append((index, due))
            if last:
                job.ended_at = due


def play(speeds: Speeds, jobs: list[Job], seed: int = 0, lazily: bool = False) -> list[Job]:
    """Copies of the jobs after the engine has served them, cancellations included.

    `lazily`: fetch no token before the last arrival.
    """
    jobs = [Job(job.prompt, job.output, job.arrives, job.cancelled_at) for job in jobs]
    engine: Engine[Job] = Engine(speeds, seed)
    events = [(job.arrives, 0, n, job) for n, job in enumerate(jobs)]
    events += [
        (job.arrives + job.cancelled_at, 1, n, job)
        for n, job in enumerate(jobs)
        if job.cancelled_at is not None
    ]
    for at, kind, _, job in sorted(events, key=lambda event: event[:3]):
        if not lazily:
            drain(engine, at)
        if kind == 0:
            engine.submit(job, job.prompt, job.output, at)
        else:
            assert engine.cancel(job, at) == (job.ended_at is None)
    drain(engine, None)
    assert (engine.running, engine.waiting) == (0, 0)
    return jobs


def history(jobs: list[Job]) -> list[list[tuple[int, int]]]:
    return [job.tokens for job in jobs]


def test_one_request_alone_takes_its_prefill_and_its_steps() -> None:
    """Token 0 at base + per token * prompt; each further one a step of a batch of one later."""
    (job,) = play(EXACT, [Job(50, 3, 40)])
    assert job.tokens == [(0, 40 + 1_500), (1, 40 + 1_500 + 107), (2, 40 + 1_500 + 214)]


def test_a_newcomer_stalls_the_batch_for_its_prefill_and_then_joins_it() -> None:
    """Continuous batching: the prefill comes between two steps, and the step after it serves both."""
    first, second = play(EXACT, [Job(10, 4, 0), Job(20, 2, 1_150)])
    joined = 1_100 + 107 + 1_200  # the step under way at 1150 ends at 1207, then the newcomer's prefill
    assert second.tokens == [(0, joined), (1, joined + 114)]
    assert first.tokens == [(0, 1_100), (1, 1_207), (2, joined + 114), (3, joined + 114 + 107)]


def test_prompts_beyond_the_budget_wait_for_the_next_step() -> None:
    """With room for two prompts between steps, the third is prefilled after one step of the first two."""
    speeds = Speeds(0, 10, 100, 0, 256, 20, 0)
    a, b, c = play(speeds, [Job(10, 9, 0), Job(10, 9, 0), Job(10, 9, 0)])
    assert [job.tokens[0][1] for job in (a, b, c)] == [100, 200, 400]
    assert [at for _, at in a.tokens[1:3]] == [300, 500]


def test_a_request_cancelled_in_the_queue_costs_the_others_nothing() -> None:
    """Those behind it are served as if it had never come."""
    behind = [Job(10, 3, 0), Job(30, 2, 20)]
    with_it = play(EXACT, [behind[0], Job(999, 5, 10, 100), behind[1]])
    assert history([with_it[0], with_it[2]]) == history(play(EXACT, behind))
    assert with_it[1].tokens == []


def test_a_request_cancelled_in_its_prefill_costs_the_prefill() -> None:
    """The engine notices at the end of the operation: the next one starts no earlier, and no token comes of it."""
    gone, other = play(EXACT, [Job(10, 5, 0, 500), Job(10, 1, 20)])
    assert (gone.tokens, other.tokens) == ([], [(0, 2 * 1_100)])


@given(SPEEDS, JOBS)
def test_every_request_gets_its_tokens_in_order_and_no_others(speeds: Speeds, jobs: list[Job]) -> None:
    """Tokens are conserved: indices 0 to output - 1 for a served request, a prefix of them for a cancelled one."""
    for job in play(speeds, jobs):
        indices = [index for index, _ in job.tokens]
        assert indices == list(range(len(indices)))
        if job.cancelled_at is None:
            assert len(indices) == job.output
        if job.ended_at is None:
            assert len(indices) < job.output
            assert all(at <= job.arrives + (job.cancelled_at or 0) for _, at in job.tokens)


@given(SPEEDS, JOBS)
def test_time_never_runs_backwards(speeds: Speeds, jobs: list[Job]) -> None:
    """A request's tokens come after its arrival and each after the one before."""
    for job in play(speeds, jobs):
        assert all(a < b for a, b in pairwise([job.arrives, *(at for _, at in job.tokens)]))


@given(SPEEDS, JOBS)
def test_nobody_is_overtaken(speeds: Speeds, jobs: list[Job]) -> None:
    """First come, first served: first tokens come in order of arrival."""
    served = [job for job in play(speeds, jobs) if job.tokens]
    served.sort(key=lambda job: job.arrives)  # stable: equal arrivals keep the order they were submitted in
    firsts = [job.tokens[0][1] for job in served]
    assert firsts == sorted(firsts)


@given(SPEEDS, JOBS)
def test_the_batch_never_exceeds_its_limit(speeds: Speeds, jobs: list[Job]) -> None:
    """No instant has more tokens than the batch may have requests."""
    instants: dict[int, int] = {}
    for job in play(speeds, jobs):
        for _, at in job.tokens:
            instants[at] = instants.get(at, 0) + 1
    assert max(instants.values(), default=0) <= speeds.max_batch


@given(SPEEDS, JOBS, st.integers(0, 3))
def test_the_same_seed_gives_the_same_schedule(speeds: Speeds, jobs: list[Job], seed: int) -> None:
    """The schedule is a function of seed and submissions."""
    assert history(play(speeds, jobs, seed)) == history(play(speeds, jobs, seed))


@given(SPEEDS, JOBS)
def test_the_schedule_does_not_depend_on_how_late_tokens_are_fetched(speeds: Speeds, jobs: list[Job]) -> None:
    """A server that comes late finds every token at the instant it would have had."""
    jobs = [Job(job.prompt, job.output, job.arrives) for job in jobs]
    assert history(play(speeds, jobs, lazily=True)) == history(play(speeds, jobs))


@given(JOBS)
def test_the_engine_works_without_a_pause_while_there_is_work(jobs: list[Job]) -> None:
    """Without jitter, the time of all operations fills the span from the first arrival to the end when all arrive at once."""
    jobs = [Job(job.prompt, job.output, 0) for job in jobs]
    end = max((job.tokens[-1][1] for job in play(EXACT, jobs)), default=0)
    steps = {at for job in play(EXACT, jobs) for index, at in job.tokens if index > 0}
    batched = sum(1 for job in jobs for _ in range(job.output - 1))
    prefills = sum(EXACT.prefill_base_ns + EXACT.prefill_per_token_ns * job.prompt for job in jobs)
    assert end == prefills + len(steps) * EXACT.step_base_ns + batched * EXACT.step_per_request_ns


def test_jitter_moves_durations_by_its_share_at_most_and_differs_by_seed() -> None:
    """A step of 100 ns with a jitter of 0.1 takes 90 to 110, not always the same, and other values for another seed."""
    speeds = Speeds(0, 0, 100, 0, 1, 1, 0.1)
    gaps = []
    for seed in (1, 2):
        (job,) = play(speeds, [Job(1, 200, 0)], seed)
        gaps.append([b - a for (_, a), (_, b) in pairwise(job.tokens)])
    assert gaps[0] != gaps[1]
    assert 90 <= min(map(min, gaps)) < 95
    assert 105 < max(map(max, gaps)) <= 110


def test_what_makes_no_sense_is_refused() -> None:
    """Lengths below one, a key in use, an instant before an earlier one: ValueError, and the engine is unharmed."""
    engine: Engine[Job] = Engine(EXACT, 0)
    job = Job(1, 1, 100)
    engine.submit(job, 1, 1, 100)
    new = Job(1, 1, 0)
    for key, prompt, output, at in ((new, 0, 1, 100), (new, 1, 0, 100), (job, 1, 1, 100), (new, 1, 1, 99)):
        with pytest.raises(ValueError, match=r"."):
            engine.submit(key, prompt, output, at)
    drain(engine, None)
    assert job.tokens == [(0, 100 + 1_010)]
    assert not engine.cancel(job, 5_000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_base_ns": 0},
        {"prefill_base_ns": -1},
        {"prefill_per_token_ns": -1},
        {"step_per_request_ns": -1},
        {"max_batch": 0},
        {"prefill_budget": 0},
        {"jitter": 1.0},
        {"jitter": -0.1},
    ],
)
def test_speeds_that_make_no_engine_are_refused(wrong: dict[str, float]) -> None:
    """Time must pass at every step, and no duration may be negative."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Speeds(**wrong)  # type: ignore[arg-type]  # wrong on purpose
