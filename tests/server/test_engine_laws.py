"""The engine in virtual time: laws that hold for any requests and any settings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from engine_play import ANY, JOBS, SETTINGS, Job, drain, history, jobs_of, play
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.server.engine.emission import LENGTH, REFUSED
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings


@given(ANY, JOBS)
def test_every_request_gets_its_tokens_in_order_and_no_others(engine: Settings, jobs: list[Job]) -> None:
    """Tokens are conserved: indices 0 to output - 1 for a served request, a prefix of them for a cancelled one, those of the
    fixed answer for a refused one, none for one that found the queue full. Blocks are conserved: `play` audits them after
    every event, and finds none in use at the end."""
    for job in play(engine, jobs):
        indices = [index for index, _ in job.tokens]
        assert indices == list(range(len(indices)))
        if job.end == LENGTH:
            assert len(indices) == job.output
        elif job.end == REFUSED:
            assert len(indices) == min(engine.refusal_tokens, job.output)
        elif job.cancelled_at is None:
            assert not job.accepted
            assert engine.queue_limit
        if job.cancelled_at is not None and not job.end:
            assert all(at <= job.arrives + job.cancelled_at for _, at in job.tokens)
        if not job.accepted:
            assert indices == []


@given(ANY, JOBS)
def test_time_never_runs_backwards(engine: Settings, jobs: list[Job]) -> None:
    """A request's tokens come no earlier than its arrival, and none before the one before."""
    for job in play(engine, jobs):
        assert all(a <= b for a, b in pairwise([job.arrives, *(at for _, at in job.tokens)]))


@given(SETTINGS, JOBS, st.integers(0, 2), st.sampled_from([0, 300]))
def test_nobody_is_overtaken(engine: Settings, jobs: list[Job], drafts: int, check: int) -> None:
    """First come, first served: first tokens come in order of arrival, in the face of preemption and a check of the prompts."""
    engine = replace(engine, draft_tokens=drafts, input_check_ns=check, input_check_per_token_ns=check / 100)
    served = [job for job in play(engine, jobs) if job.tokens]
    served.sort(key=lambda job: job.arrives)  # stable: equal arrivals keep the order they were submitted in
    firsts = [job.tokens[0][1] for job in served]
    assert firsts == sorted(firsts)


@given(SETTINGS, JOBS)
def test_the_batch_never_exceeds_its_limit(engine: Settings, jobs: list[Job]) -> None:
    """No instant has more tokens than the batch may have requests."""
    instants: dict[int, int] = {}
    for job in play(engine, jobs):
        for _, at in job.tokens:
            instants[at] = instants.get(at, 0) + 1
    assert max(instants.values(), default=0) <= engine.max_batch


@given(ANY, JOBS, st.integers(0, 3))
def test_the_same_seed_gives_the_same_schedule(engine: Settings, jobs: list[Job], seed: int) -> None:
    """The schedule is a function of seed and submissions."""
    assert history(play(engine, jobs, seed)) == history(play(engine, jobs, seed))


@given(ANY, JOBS)
def test_the_schedule_does_not_depend_on_how_late_tokens_are_fetched(
    engine: Settings, jobs: list[Job]
) -> None:
    """A server that comes late finds every token at the instant it would have had. Who cancels loses what was not fetched."""
    late, punctual = play(engine, jobs, lazily=True), play(engine, jobs)
    assert [job.accepted for job in late] == [job.accepted for job in punctual]
    for one, other in zip(late, punctual, strict=True):
        if one.cancelled_at is None:
            assert one.tokens == other.tokens
        else:
            assert set(one.tokens) <= set(other.tokens)


@given(SETTINGS, JOBS)
def test_the_schedule_does_not_depend_on_how_late_arrivals_are_told(
    engine: Settings, jobs: list[Job]
) -> None:
    """A server that has sent what an iteration yields before it read a request that arrived meanwhile serves it as if it had
    read it at once."""
    jobs = [replace(job, cancelled_at=None, tokens=[]) for job in jobs]
    assert history(play(engine, jobs, eagerly=True)) == history(play(engine, jobs))


@given(SETTINGS, st.integers(17, 200), st.integers(1, 12), st.integers(0, 25))
def test_a_cached_prefix_never_costs_more_than_an_uncached_one(
    engine: Settings, prompt: int, output: int, blocks: int
) -> None:
    """The same request alone, some of its prompt's blocks known or none: no token comes later with them."""
    engine = replace(engine, prefix_caching=True, jitter=0, jitter_load=0)
    hashes = tuple(range(100, 100 + prompt // engine.block_tokens))
    runs = []
    for known in (hashes[:blocks], ()):
        model: Engine[Job] = Engine(engine, 0)
        before, job = Job(prompt, 1, 0), Job(prompt, output, 10**9)
        model.submit(before, prompt, 1, 0, hashes=known)
        drain(model)
        model.submit(job, prompt, output, 10**9, hashes=hashes)
        drain(model)
        runs.append(job)
    cached, uncached = runs
    most = (prompt - 1) // engine.block_tokens
    assert cached.cached == min(blocks, len(hashes), most) * engine.block_tokens
    assert uncached.cached == 0
    assert all(a <= b for (_, a), (_, b) in zip(cached.tokens, uncached.tokens, strict=True))


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 30)), min_size=1, max_size=25),
    st.integers(1, 6),
    st.integers(4, 24),
    st.integers(0, 3),
    st.integers(0, 12),
    SETTINGS,
)
def test_throughput_never_falls_when_capacity_grows(
    work: list[tuple[int, int]], batch: int, blocks: int, more_batch: int, more_blocks: int, engine: Settings
) -> None:
    """All requests there at once, prompts within the budget, footprints constant (an answer fits into its prompt's last block),
    no cache, no jitter: then more places or more blocks let every request start in the same iteration or an earlier one, and
    the last token comes no later.

    (By induction: who ran before ran no later, so that no more is in use; and time is linear in what is done, so that fewer
    iterations take less. Beyond this, a greedy scheduler has the anomalies that Graham described.)
    """
    size = 32
    jobs = [Job(size * held - size + 1, output, 0) for held, output in ((min(h, 4), o) for h, o in work)]
    small = replace(
        engine,
        max_batch=batch,
        kv_blocks=blocks,
        block_tokens=size,
        token_budget=10**6,
        prefix_caching=False,
        jitter=0,
        jitter_load=0,
        kv_read_per_token_ns=round(engine.kv_read_per_token_ns),  # whole ns: else each iteration is rounded
        prefill_attention_ns=round(engine.prefill_attention_ns),
    )
    small = replace(small, kv_blocks=max(small.kv_blocks, 5))
    large = replace(small, max_batch=batch + more_batch, kv_blocks=small.kv_blocks + more_blocks)
    slow, fast = play(small, jobs), play(large, jobs)
    assert max(job.tokens[-1][1] for job in fast) <= max(job.tokens[-1][1] for job in slow)


@given(SETTINGS, JOBS)
def test_preemption_delays_and_loses_nothing(engine: Settings, jobs: list[Job]) -> None:
    """A cache that is almost too small for one request: all are served all the same, whatever the preemption."""
    jobs = [Job(job.prompt, 12, 0, None, job.prefix) for job in jobs]
    tight = replace(engine, kv_blocks=-(-213 // engine.block_tokens), max_batch=5)
    assert all(len(job.tokens) == 12 for job in play(tight, jobs))


@given(ANY, jobs_of(8, 2_000))
@settings(max_examples=50)
def test_priorities_come_first_among_those_that_wait(engine: Settings, jobs: list[Job]) -> None:
    """All there at once, behind one that keeps the engine busy: first tokens come in order of priority, then of arrival."""
    engine = replace(
        engine, policy="priority", queue_limit=0, refusal_share=0, output_check_tokens=0, preloaded=True
    )
    busy = Job(200, 1, 0, None, 0, -9)
    jobs = [Job(job.prompt, job.output, 1, None, 0, job.priority) for job in jobs]
    _, *served = play(engine, [busy, *jobs])
    order = sorted(served, key=lambda job: job.priority)
    firsts = [job.tokens[0][1] for job in order]
    if not engine.input_check_ns and not engine.input_check_per_token_ns:
        assert firsts == sorted(firsts)


@given(SETTINGS, JOBS)
def test_littles_law(engine: Settings, jobs: list[Job]) -> None:
    """The time integral of the requests in the system is the sum of the times they spent there."""
    model: Engine[Job] = Engine(engine, 1)
    arrivals = sorted((Job(job.prompt, job.output, job.arrives) for job in jobs), key=lambda job: job.arrives)
    area = last = 0
    left = list(arrivals)
    while left or model.next_due() is not None:
        due = model.next_due()
        at = left[0].arrives if left and (due is None or left[0].arrives < due) else due
        assert at is not None
        area += (at - last) * (model.running + model.waiting)
        last = at
        if at == due:
            drain(model, at)
        else:
            job = left.pop(0)
            model.submit(job, job.prompt, job.output, at)
    assert area == sum(job.tokens[-1][1] - job.arrives for job in arrivals)
