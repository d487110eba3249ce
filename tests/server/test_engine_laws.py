"""The engine in virtual time: laws that hold for any requests and any settings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from engine_play import ANY, CHANGES, JOBS, SETTINGS, Change, Job, drain, history, jobs_of, open_at, play
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inferometer.server.engine.blocks import BlockPool
from inferometer.server.engine.emission import LENGTH, REFUSED
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings


def check_tokens(engine: Settings, jobs: list[Job]) -> None:
    """Indices 0 to output - 1 for a served request, a prefix of them for a cancelled one, those of the fixed answer for a
    refused one, none for one that found the queue full or is larger than the cache."""
    for job in jobs:
        indices = [index for index, _ in job.tokens]
        assert indices == list(range(len(indices)))
        if job.end == LENGTH:
            assert len(indices) == job.output
        elif job.end == REFUSED:
            assert len(indices) == min(engine.refusal_tokens, job.output)
        elif job.cancelled_at is None:
            assert not job.accepted
            assert engine.queue_limit or not job.fits
        if job.cancelled_at is not None and not job.end:
            assert all(at <= job.arrives + job.cancelled_at for _, at in job.tokens)
        if not job.accepted:
            assert indices == []


@given(ANY, JOBS)
def test_every_request_gets_its_tokens_in_order_and_no_others(engine: Settings, jobs: list[Job]) -> None:
    """Tokens are conserved. Blocks are conserved: `play` audits them after every event, and finds none in use at the end."""
    check_tokens(engine, play(engine, jobs))


@given(ANY, JOBS, CHANGES)
def test_a_change_in_mid_run_loses_and_reorders_no_token(
    engine: Settings, jobs: list[Job], changes: list[Change]
) -> None:
    """Whatever is switched, grown or shrunk under requests in their check, in the queue, in prefill, decoded, swapped out, or
    held back, in iterations whose end was told of before or after: the same laws, and no token before its predecessor."""
    at_once = play(engine, jobs, changes=changes)
    jobs = [replace(job, cancelled_at=None) for job in jobs]
    after_sending = play(engine, jobs, changes=changes, eagerly=True)
    check_tokens(engine, at_once)
    check_tokens(engine, after_sending)
    for job in (*at_once, *after_sending):
        assert all(a <= b for a, b in pairwise([job.arrives, *(at for _, at in job.tokens)]))


@given(ANY, JOBS, CHANGES)
def test_changes_too_happen_at_their_instants(
    engine: Settings, jobs: list[Job], changes: list[Change]
) -> None:
    """However late tokens are fetched, a change is made to the engine as it was at that instant."""
    jobs = [replace(job, cancelled_at=None) for job in jobs]
    late = play(engine, jobs, lazily=True, changes=changes)
    assert history(late) == history(play(engine, jobs, changes=changes))


@given(SETTINGS, JOBS, CHANGES, st.sampled_from([0, 300]))
def test_a_change_lets_nobody_overtake(
    engine: Settings, jobs: list[Job], changes: list[Change], check: int
) -> None:
    """First tokens come in order of arrival, though checks of prompts are switched and a shrinking cache preempts."""
    engine = replace(engine, input_check_ns=check)
    served = [job for job in play(engine, jobs, changes=changes) if job.tokens]
    served.sort(key=lambda job: job.arrives)
    firsts = [job.tokens[0][1] for job in served]
    assert firsts == sorted(firsts)


@given(ANY, JOBS, st.lists(st.integers(0, 8_000), max_size=6))
def test_a_change_to_what_it_is_changes_nothing(engine: Settings, jobs: list[Job], times: list[int]) -> None:
    """The same settings again, at any instants: the same schedule."""
    same = [
        Change(at, engine.max_batch, engine.token_budget, engine.kv_blocks, engine.prefix_caching, True)
        for at in times
    ]
    assert history(play(engine, jobs, changes=same)) == history(play(engine, jobs))


@given(SETTINGS, st.integers(10, 60), st.data())
def test_a_shrunk_cache_is_as_small_as_asked_when_the_next_iteration_begins(
    engine: Settings, blocks: int, data: st.DataObject
) -> None:
    """Over-committed until then at most, and only by what requests held; the first in rank is never preempted for it."""
    model: Engine[Job] = Engine(replace(engine, token_budget=1_000, max_batch=5), 0)
    room = blocks * engine.block_tokens
    jobs = data.draw(
        st.lists(st.builds(Job, st.integers(1, min(200, room - 12)), st.just(12), st.just(0)), max_size=8)
    )
    for job in jobs:
        model.submit(job, job.prompt, job.output, 0, hashes=job.hashes(engine.block_tokens))
    for _ in range(data.draw(st.integers(0, 10))):
        if (due := model.next_due()) is not None:
            drain(model, due)
    held = model.blocks["own"] + model.blocks["shared"]
    model.change(replace(model.settings, kv_blocks=blocks), model.now)
    assert model.blocks["own"] + model.blocks["shared"] == held
    assert sum(model.blocks.values()) == max(blocks, held)
    first = next(iter(open_at(jobs, 0)), None)
    came = 0 if first is None else len(first.tokens)
    if (due := model.next_due()) is not None:
        drain(model, due)
        assert sum(model.blocks.values()) == blocks
        if came and first is not None and not first.end:
            due = model.next_due()
            assert due is not None
            drain(model, due)
            assert len(first.tokens) > came + 1 or first.end
    drain(model)
    assert all(len(job.tokens) == 12 for job in jobs)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(1, 6)), max_size=40))
def test_a_pool_gives_up_what_nobody_uses_and_no_more(steps: list[tuple[int, int, int]]) -> None:
    """Leases taken, grown, published, released and the pool resized in any order: max(size, used) blocks, none negative."""
    pool, size, leases = BlockPool(10), 10, []
    for kind, number, amount in steps:
        if kind == 0 and (lease := pool.take((), amount)) is not None:
            pool.publish(lease, range(number, number + min(amount, 3)))
            leases.append(lease)
        elif kind == 1 and leases:
            pool.release(leases.pop(number % len(leases)))
        elif kind == 2 and leases:
            pool.grow(leases[number % len(leases)], amount)
        elif kind == 3:
            size = number + 1
            pool.resize(size)
        assert pool.used == pool.own + pool.shared <= pool.blocks == max(size, pool.used)
        assert min(pool.free, pool.own, pool.shared, pool.idle) >= 0
        assert pool.free + pool.idle == pool.blocks - pool.used
        assert pool.excess == (pool.used > size)
        assert sum(lease.own for lease in leases) == pool.own


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


@given(SETTINGS, JOBS)
def test_counts_of_preemption_add_up(engine: Settings, jobs: list[Job]) -> None:
    """Who was preempted was so once at least, and has ended when all have; nobody loses more than there is of him."""
    tight = replace(engine, kv_blocks=-(-213 // engine.block_tokens), max_batch=5)
    model: Engine[Job] = Engine(tight, 0)
    for job in jobs:
        model.submit(job, job.prompt, 12, 0)
    drain(model)
    seen = model.preempted
    assert seen.events == model.preemptions
    assert seen.finished == seen.requests <= min(len(jobs), seen.events)
    assert (seen.requests == 0) == (seen.events == 0)
    longest = max((job.prompt + 12 for job in jobs), default=0)
    assert 0 <= seen.discarded <= seen.events * longest


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


def test_what_a_cancelled_request_left_is_not_of_its_next_life() -> None:
    """A key that was cancelled with tokens not fetched, and is submitted again, has the tokens of the second time alone; others
    lose none."""
    engine: Engine[str] = Engine(Settings(jitter=0, preloaded=True), 1)
    for key in ("one", "other"):
        engine.submit(key, 10, 30, 0)
    assert engine.cancel("one", 10**9)
    engine.submit("one", 10, 3, 10**9)
    seen: dict[str, list[int]] = {"one": [], "other": []}
    while (at := engine.next_due()) is not None:
        emission = engine.advance(at)
        assert emission is not None
        for key, index, count, _ in emission.tokens:
            seen[key] += range(index, index + count)
    assert seen == {"one": [0, 1, 2], "other": list(range(30))}
    assert not engine.cancel("one", engine.now)


@given(SETTINGS, JOBS, st.integers(0, 10**10))
def test_a_client_that_goes_gets_nothing_more_of_what_was_not_fetched(
    engine: Settings, jobs: list[Job], at: int
) -> None:
    """Law: whether its request waits, runs, is in a check or has ended: not a token of it is left, others lose none, and going
    twice is going once."""
    assume(jobs)
    model: Engine[Job] = Engine(engine, 1)
    for job in sorted(jobs, key=lambda job: job.arrives):
        model.submit(job, job.prompt, job.output, job.arrives)
    at = max(at, model.now)
    gone = jobs[0]
    assert model.cancel(gone, at)
    assert not model.cancel(gone, at)
    left: dict[int, int] = {}
    while (emission := model.advance(max(at, model.next_due() or at))) is not None:
        for key, _, count, _ in emission.tokens:
            left[id(key)] = left.get(id(key), 0) + count
    assert id(gone) not in left
    assert all(left.get(id(job), 0) > 0 for job in jobs[1:])
