"""The engine in virtual time, against its own definition: instants worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from engine_play import Change, Job, drain, history, play

from inferometer.server.engine.emission import REFUSED
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.preemption import Preempted
from inferometer.server.engine.settings import Settings

EXACT = Settings(
    prefill_base_ns=1_000,
    prefill_per_token_ns=10,
    step_base_ns=100,
    step_per_request_ns=7,
    token_budget=10**6,
    jitter=0,
)


def instants(job: Job) -> list[int]:
    return [at for _, at in job.tokens]


def test_one_request_alone_takes_its_prefill_and_its_steps() -> None:
    """Token 0 at a step + base + per token * prompt; each further one a step of a batch of one later."""
    (job,) = play(EXACT, [Job(50, 3, 40)])
    assert job.tokens == [(0, 40 + 1_600), (1, 40 + 1_600 + 107), (2, 40 + 1_600 + 214)]


def test_a_newcomer_is_prefilled_beside_the_batch_and_then_joins_it() -> None:
    """Continuous batching by iteration: one iteration decodes the one and prefills the other, the next decodes both."""
    first, second = play(EXACT, [Job(10, 4, 0), Job(20, 2, 1_250)])
    mixed = 1_200 + 107 + (100 + 7 + 1_000 + 200)  # the step under way at 1250 ends at 1307
    assert second.tokens == [(0, mixed), (1, mixed + 114)]
    assert first.tokens == [(0, 1_200), (1, 1_307), (2, mixed), (3, mixed + 114)]


def test_a_prompt_beyond_the_budget_is_computed_in_chunks() -> None:
    """A budget of 30: 29 beside one decoded request, who gets a token with each chunk; the base is paid once."""
    engine = replace(EXACT, token_budget=30, prefill_base_ns=0, step_per_request_ns=0)
    first, second = play(engine, [Job(10, 9, 0), Job(60, 1, 100)])
    assert instants(first)[:4] == [200, 200 + 390, 200 + 390 * 2, 200 + 390 * 2 + 120]
    assert second.tokens == [(0, 200 + 390 * 2 + 120)]


def test_without_chunks_prompts_beyond_the_budget_wait_for_the_next_iteration() -> None:
    """Room for 20 tokens beside one decoded request: two prompts of 10 go, the third waits. One that is larger than the budget
    goes alone."""
    engine = replace(EXACT, token_budget=21, prefill_base_ns=0, step_per_request_ns=0, chunked_prefill=False)
    a, b, c, d = play(engine, [Job(10, 9, 0), Job(10, 9, 1), Job(10, 9, 1), Job(50, 9, 1)])
    assert [job.tokens[0][1] for job in (a, b, c, d)] == [200, 500, 500, 1_100]


def test_attention_costs_by_the_tokens_before() -> None:
    """A prompt of n tokens has n (n + 1) / 2 pairs, in chunks or whole; a decoded token reads the context of its request."""
    engine = replace(EXACT, prefill_attention_ns=2, kv_read_per_token_ns=3, prefill_base_ns=0)
    (job,) = play(engine, [Job(40, 3, 0)])
    first = 100 + 400 + 2 * 820
    assert instants(job) == [first, first + 107 + 3 * 41, first + 2 * 107 + 3 * (41 + 42)]
    (cut,) = play(replace(engine, token_budget=16), [Job(40, 1, 0)])
    assert instants(cut) == [first + 2 * 100]


def test_a_cached_prefix_is_not_computed_again() -> None:
    """Blocks of 16: a prompt of 100 that shares its first 48 tokens pays for 52."""
    engine = replace(EXACT, prefix_caching=True)
    first, second = play(engine, [Job(100, 1, 0, prefix=1), Job(100, 1, 5_000, prefix=1)])
    assert instants(first) == [100 + 1_000 + 1_000]
    assert instants(second) == [5_000 + 100 + 1_000 + 520]
    assert (first.cached, second.cached) == (0, 48)
    (alone,) = play(replace(engine, prefix_caching=False), [Job(100, 1, 0, prefix=1)])
    assert alone.cached == 0


def test_what_was_used_longest_ago_leaves_the_cache_first() -> None:
    """Six blocks, prompts of two and a piece: with a third prompt one block must go. It is the second's, not the first's, which
    was used again; and the end of the second's, not its beginning."""
    engine: Engine[Job] = Engine(replace(EXACT, prefix_caching=True, kv_blocks=6), 0)
    asked = {
        "a": (1, 2),
        "b": (3, 4),
        "a again": (1, 2),
        "c": (5, 6),
        "a at last": (1, 2),
        "b at last": (3, 4),
    }
    cached = {}
    for number, (name, hashes) in enumerate(asked.items()):
        job = Job(33, 1, number * 10_000)
        engine.submit(job, 33, 1, job.arrives, hashes=hashes)
        drain(engine)
        cached[name] = job.cached
    assert cached == {"a": 0, "b": 0, "a again": 32, "c": 0, "a at last": 32, "b at last": 16}
    assert (engine.prefix_queries, engine.prefix_hits) == (6 * 33, 32 + 32 + 16)
    engine.flush(10**6)
    assert engine.blocks == {"free": 6, "own": 0, "shared": 0, "idle": 0}


@pytest.mark.parametrize("how", ["recompute", "swap"])
def test_the_latest_is_preempted_where_blocks_run_out(how: str) -> None:
    """Four blocks of 8, two requests of 8 + 16 tokens. The later one is preempted when the earlier needs its third, and goes on
    when that has ended: after its tokens so far are computed again, or its two blocks are moved back in."""
    engine = replace(EXACT, kv_blocks=4, block_tokens=8, preemption=how, swap_per_block_ns=5)
    model: Engine[Job] = Engine(engine, 0)
    first, second = Job(8, 16, 0), Job(8, 16, 0)
    for job in (first, second):
        model.submit(job, 8, 16, 0)
    drain(model)
    assert model.preemptions == 1
    ended = instants(first)[-1]
    before = instants(second)[0] - instants(first)[0]
    assert before == 100 + 7 + 1_080
    resumed = next(at for at in instants(second) if at > ended)
    lost = len([at for at in instants(second) if at <= ended])
    # Its latest token was out and not in the cache yet.
    assert model.preempted == Preempted(1, 1, 1, 0 if how == "swap" else 8 + lost - 1)
    cost = 100 + (1_000 + 10 * (8 + lost) if how == "recompute" else 7 + 5 * 2)
    assert resumed == ended + cost


@pytest.mark.parametrize("check", [0, 4])
def test_a_prompts_wait_and_its_computing_are_told_apart(check: int) -> None:
    """One at a time: the second begins when the first has ended and is told once, at the end of its prompt's last iteration,
    whether a filter then holds its tokens back or not."""
    engine = replace(EXACT, max_batch=1, token_budget=16, output_check_tokens=check, output_check_ns=9)
    model: Engine[Job] = Engine(engine, 0)
    jobs = [Job(10, 3, 0), Job(30, 2, 20)]
    for job in jobs:
        model.submit(job, job.prompt, job.output, job.arrives)
    told: list[tuple[Job, int, int]] = []
    while (due := model.next_due()) is not None:
        emission = model.advance(due)
        assert emission is not None
        told += [(job, scheduled, emission.at) for job, scheduled in emission.prefilled]
    step, prompts = 100 + 7, 100 + 1_000
    first, second = prompts + 10 * 10, 2 * 100 + 1_000 + 10 * 30
    begun = first + 2 * step
    assert told == [(jobs[0], 0, first), (jobs[1], begun, begun + second)]


def test_a_request_cancelled_in_the_queue_costs_the_others_nothing() -> None:
    """Those behind it are served as if it had never come."""
    engine = replace(EXACT, max_batch=1)
    behind = [Job(10, 3, 0), Job(30, 2, 20)]
    with_it = play(engine, [behind[0], Job(999, 5, 10, 100), behind[1]])
    assert history([with_it[0], with_it[2]]) == history(play(engine, behind))
    assert with_it[1].tokens == []


def test_a_request_cancelled_in_its_prefill_costs_the_prefill() -> None:
    """The engine notices at the end of the iteration: the next one starts no earlier, and no token comes of it."""
    gone, other = play(EXACT, [Job(10, 5, 0, 500), Job(10, 1, 20)])
    assert (gone.tokens, other.tokens) == ([], [(0, 2 * 1_200)])


def test_a_full_queue_takes_nobody() -> None:
    """A limit of one: one is served, one waits, the third is refused; later there is room again."""
    engine = replace(EXACT, max_batch=1, queue_limit=1)
    jobs = play(engine, [Job(10, 1, 0), Job(10, 1, 1), Job(10, 1, 2), Job(10, 1, 1_300)])
    assert [job.accepted for job in jobs] == [True, True, False, True]


def test_accepted_drafts_come_out_together() -> None:
    """Three drafts, all accepted: four tokens a step, whose time counts all four; none accepted: one a step, at the same price.
    Between, a share of a: (1 - a^4) / (1 - a) tokens a step on average."""
    engine = replace(EXACT, draft_tokens=3, draft_per_token_ns=11, acceptance=1)
    step = 100 + 4 * 7 + 3 * 11
    (job,) = play(engine, [Job(10, 8, 0)])
    assert instants(job) == [1_200] + [1_200 + step] * 4 + [1_200 + 2 * step] * 3
    (job,) = play(replace(engine, acceptance=0), [Job(10, 3, 0)])
    assert instants(job) == [1_200, 1_200 + step, 1_200 + 2 * step]
    (job,) = play(replace(engine, acceptance=0.6), [Job(10, 20_001, 0)])
    assert 20_000 / (len(set(instants(job))) - 1) == pytest.approx((1 - 0.6**4) / 0.4, rel=0.02)


def test_an_answer_is_held_back_until_it_is_checked() -> None:
    """Chunks of two tokens, 1,000 + 10 a token later; each check of a request begins after the one before it. The engine goes
    on meanwhile."""
    engine = replace(EXACT, output_check_tokens=2, output_check_ns=1_000, output_check_per_token_ns=10)
    (job,) = play(engine, [Job(10, 5, 0)])
    first = 1_200 + 107 + 1_020
    assert instants(job) == [first] * 2 + [first + 1_020] * 2 + [first + 1_020 + 1_010]


def switched(engine: Settings, **at: int) -> list[Change]:
    """Guardrails off, and on again, at these instants."""
    as_it_is = engine.max_batch, engine.token_budget, engine.kv_blocks, engine.prefix_caching
    return [Change(instant, *as_it_is, guards=name == "on") for name, instant in at.items()]


def test_guardrails_switched_off_let_go_what_they_hold_at_once() -> None:
    """Two batches in their checks and one token held back for a third: all come at 1,700, in order, and the next without delay.
    Switched on again they know nothing of the checks that were given up."""
    engine = replace(EXACT, output_check_tokens=2, output_check_ns=1_000)
    (job,) = play(engine, [Job(10, 7, 0)], changes=switched(engine, off=1_700))
    assert job.tokens == [*((n, 1_700) for n in range(5)), (5, 1_735), (6, 1_842)]
    (job,) = play(engine, [Job(10, 7, 0)], changes=switched(engine, off=1_700, on=1_710))
    assert job.tokens == [*((n, 1_700) for n in range(5)), (5, 2_842), (6, 2_842)]
    model: Engine[Job] = Engine(engine, 0)
    early = Job(10, 2, 0)
    model.submit(early, 10, 2, 0)
    drain(model, 1_200, most=1)  # the iteration that yields token 0 has been worked out, and it is held back
    model.change(replace(engine, output_check_tokens=0), 1_100)
    drain(model)
    assert early.tokens == [(0, 1_200), (1, 1_307)]  # none before it came to be


def test_prompts_whose_check_is_switched_off_stand_in_line_at_once() -> None:
    """An idle engine begins right then; a busy one keeps them before those who came later."""
    engine = replace(EXACT, input_check_ns=400, max_batch=1)
    (job,) = play(engine, [Job(10, 1, 0)], changes=switched(engine, off=100))
    assert instants(job) == [100 + 1_200]
    jobs = [Job(10, 1, 0), Job(10, 1, 1_000), Job(10, 1, 1_200)]
    assert history(play(engine, jobs, changes=switched(engine, off=1_100))) == [
        [(0, 1_600)],
        [(0, 2_800)],
        [(0, 4_000)],
    ]
    slow = replace(EXACT, input_check_ns=40_000)
    *_, late = play(
        slow, [*[Job(10, 1, 0)] * 3, Job(10, 1, 9_000)], changes=switched(slow, off=100, on=5_000)
    )
    assert instants(late) == [49_000 + 1_200]


@pytest.mark.parametrize("how", ["recompute", "swap"])
def test_a_cache_that_shrinks_preempts_from_the_end(how: str) -> None:
    """Three requests of two blocks each, 8 tokens a block; then there are four blocks. The iteration under way
    ends as it was begun, the last request goes, and comes back when the first two have ended."""
    engine = replace(EXACT, kv_blocks=60, block_tokens=8, preemption=how, swap_per_block_ns=5)
    model: Engine[Job] = Engine(engine, 0)
    jobs = [Job(10, 5, 0) for _ in range(3)]
    first = Job(10, 1, 0)
    for job in (first, *jobs):
        model.submit(job, 10, job.output, 0)
    drain(model, 1_200 + 100 + 3 * 1_100)
    begun = 2 * 1_200 + 2 * 1_100
    assert [instants(job) for job in jobs] == [[begun]] * 3
    with pytest.raises(ValueError, match="15 tokens"):
        model.change(replace(engine, kv_blocks=1), begun + 50)
    model.change(replace(engine, kv_blocks=4), begun + 50)
    assert model.blocks == {"free": 0, "own": 6, "shared": 0, "idle": 0}
    drain(model, begun + 121)
    assert model.blocks == {"free": 0, "own": 4, "shared": 0, "idle": 0}
    drain(model)
    swapped = 10 if how == "swap" else 0
    steps = [
        begun + 121,
        begun + 121 + swapped + 114,
        begun + 121 + swapped + 2 * 114,
        begun + 121 + swapped + 3 * 114,
    ]
    assert [instants(job)[1:] for job in jobs[:2]] == [steps] * 2
    back = steps[-1] + (100 + 7 + 10 if how == "swap" else 100 + 1_000 + 10 * 12)
    assert instants(jobs[2])[1:] == [steps[0], back, back + 107, back + 214]
    assert model.preemptions == 1


def test_a_prompt_is_checked_before_it_stands_in_line() -> None:
    """400 + 1 a token; a shorter prompt that comes later does not pass. A refused one gets the fixed answer then, at once."""
    engine = replace(EXACT, input_check_ns=400, input_check_per_token_ns=1)
    (job,) = play(engine, [Job(10, 1, 0)])
    assert instants(job) == [410 + 1_200]
    refused = replace(engine, refusal_share=1, refusal_tokens=3)
    long, short = play(refused, [Job(10, 9, 0), Job(10, 2, 50)])
    assert (instants(long), instants(short)) == ([410] * 3, [460] * 2)
    assert long.end == short.end == REFUSED


def test_a_model_that_is_not_loaded_is_loaded_on_use_and_cold_at_first() -> None:
    """Loading takes 5,000; the first two iterations then take three times as long. An idle engine can be unloaded."""
    engine = replace(EXACT, preloaded=False, load_ns=5_000, cold_steps=2, cold_factor=3)
    model: Engine[Job] = Engine(engine, 0)
    job = Job(10, 3, 100)
    assert not model.loaded(100)
    model.submit(job, 10, 3, 100)
    assert not model.unload(100)
    drain(model)
    assert instants(job) == [5_100 + 3_600, 5_100 + 3_600 + 321, 5_100 + 3_600 + 321 + 107]
    assert model.loaded(20_000)
    assert model.unload(20_000)
    assert model.load(20_000) == 25_000
    assert not model.loaded(20_000)


def test_jitter_moves_durations_by_its_share_at_most_and_differs_by_seed() -> None:
    """A step of 100 ns with a jitter of 0.1 takes 90 to 110, not always the same, and other values for another seed."""
    engine = Settings(
        step_base_ns=100, step_per_request_ns=0, prefill_base_ns=0, prefill_per_token_ns=0, jitter=0.1
    )
    gaps = []
    for seed in (1, 2):
        (job,) = play(engine, [Job(1, 200, 0)], seed)
        gaps.append([b - a for a, b in pairwise(instants(job))])
    assert gaps[0] != gaps[1]
    assert 90 <= min(map(min, gaps)) < 95
    assert 105 < max(map(max, gaps)) <= 110


def test_jitter_grows_with_the_batch() -> None:
    """A jitter of load: next to nothing for one request in a batch of 100, its whole share for a full one."""
    engine = Settings(
        step_base_ns=10_000,
        step_per_request_ns=0,
        prefill_base_ns=0,
        prefill_per_token_ns=0,
        jitter=0,
        jitter_load=0.5,
        max_batch=100,
    )
    spreads = []
    for size in (1, 100):
        job, *_ = play(engine, [Job(1, 100, 0) for _ in range(size)])
        gaps = [b - a for a, b in pairwise(instants(job))]
        spreads.append(max(abs(gap - 10_000) for gap in gaps[2:]))
    assert spreads[0] <= 50
    assert 4_000 < spreads[1] <= 5_000


def test_what_makes_no_sense_is_refused() -> None:
    """Lengths below one or beyond the cache, a key in use, an instant before an earlier one: ValueError, and the engine is
    unharmed."""
    engine: Engine[Job] = Engine(EXACT, 0)
    job = Job(1, 1, 100)
    engine.submit(job, 1, 1, 100)
    new = Job(1, 1, 0)
    for key, prompt, output, at in (
        (new, 0, 1, 100),
        (new, 1, 0, 100),
        (new, 1, EXACT.capacity_tokens, 100),
        (job, 1, 1, 100),
        (new, 1, 1, 99),
    ):
        with pytest.raises(ValueError, match=r"."):
            engine.submit(key, prompt, output, at)
    drain(engine)
    assert instants(job) == [100 + 1_110]
    assert not engine.cancel(job, 5_000)
