"""Requests played to an engine in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import strategies as st

from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import GUARDRAILS, Settings


@dataclass(eq=False)
class Job:
    """A request and what became of it; `cancelled_at` counts from its arrival. `prefix`: prompts with the same one share
    their first blocks."""

    prompt: int
    output: int
    arrives: int
    cancelled_at: int | None = None
    prefix: int = 0
    priority: int = 0
    tokens: list[tuple[int, int]] = field(default_factory=list)  # (index, instant)
    accepted: bool = True
    fits: bool = True
    cached: int = 0
    end: int = 0

    def hashes(self, block_tokens: int) -> tuple[int, ...]:
        """As of a prompt whose first half is the prefix, and whose second half is its own."""
        blocks = self.prompt // block_tokens
        return tuple(hash((self.prefix if n < blocks / 2 else id(self), n)) for n in range(blocks))


def jobs_of(most: int = 14, latest: int = 5_000, output: int = 12) -> st.SearchStrategy[list[Job]]:
    """Any requests."""
    return st.lists(
        st.builds(
            Job,
            st.integers(1, 200),
            st.integers(1, output),
            st.integers(0, latest),
            st.none() | st.integers(0, 5_000),
            st.integers(0, 2),
            st.integers(-1, 1),
        ),
        max_size=most,
    )


JOBS = jobs_of()

SETTINGS = st.builds(
    Settings,
    step_base_ns=st.integers(1, 500),
    step_per_request_ns=st.integers(0, 50),
    kv_read_per_token_ns=st.floats(0, 2),
    prefill_base_ns=st.integers(0, 2_000),
    prefill_per_token_ns=st.integers(0, 20),
    prefill_attention_ns=st.floats(0, 1),
    jitter=st.sampled_from([0.0, 0.1, 0.8]),
    jitter_load=st.sampled_from([0.0, 0.1]),
    max_batch=st.integers(1, 5),
    token_budget=st.integers(1, 300),
    chunked_prefill=st.booleans(),
    kv_blocks=st.integers(30, 60),
    block_tokens=st.sampled_from([8, 16]),
    prefix_caching=st.booleans(),
    preemption=st.sampled_from(["recompute", "swap"]),
    swap_per_block_ns=st.integers(0, 20),
)
"""Engines without guards, drafts or priorities. They hold a request of 200 + 12 tokens, and few of them at a time."""

ANY = st.builds(
    replace,
    SETTINGS,
    policy=st.sampled_from(["fcfs", "priority"]),
    queue_limit=st.integers(0, 4),
    draft_tokens=st.integers(0, 3),
    acceptance=st.sampled_from([0.0, 0.5, 1.0]),
    input_check_ns=st.sampled_from([0, 300]),
    input_check_per_token_ns=st.integers(0, 3),
    output_check_tokens=st.integers(0, 4),
    output_check_ns=st.integers(0, 900),
    refusal_share=st.sampled_from([0.0, 0.3]),
    refusal_tokens=st.integers(1, 4),
    preloaded=st.booleans(),
    load_ns=st.integers(0, 2_000),
    cold_steps=st.integers(0, 3),
    cold_factor=st.sampled_from([1.0, 3.0]),
)
"""Engines with everything."""


@dataclass(frozen=True)
class Change:
    """Other settings from an instant on; `guards`: on or off."""

    at: int
    max_batch: int
    token_budget: int
    kv_blocks: int
    prefix_caching: bool
    guards: bool

    def of(self, now: Settings, start: Settings) -> Settings:
        """The settings after it, for an engine that has `now` and was started with `start`."""
        guards: dict[str, Any] = {name: getattr(start, name) if self.guards else 0 for name in GUARDRAILS}
        return replace(
            now,
            max_batch=self.max_batch,
            token_budget=self.token_budget,
            kv_blocks=self.kv_blocks,
            prefix_caching=self.prefix_caching,
            **guards,
        )


CHANGES = st.lists(
    st.builds(
        Change,
        st.integers(0, 8_000),
        st.integers(1, 5),
        st.integers(1, 300),
        st.integers(2, 60),
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
)
"""Changes in mid-run. The smallest caches hold hardly any request, those from 27 blocks up any of them alone."""


def apply(engine: Engine[Job], settings: Settings, now: int, jobs: Sequence[Job]) -> None:
    """Change an engine. It may refuse only where one of the jobs does not fit any more, and then nothing has changed."""
    before, blocks = engine.settings, sum(engine.blocks.values())
    try:
        engine.change(settings, now)
        return
    except ValueError as error:
        reason = str(error)
    assert "kv_blocks" in reason
    assert any(job.prompt + job.output > settings.capacity_tokens for job in jobs)
    assert engine.settings == before
    assert sum(engine.blocks.values()) <= blocks


def open_at(jobs: Sequence[Job], now: int) -> list[Job]:
    """The jobs that are under way, by what came out."""
    return [
        job
        for job in jobs
        if job.arrives <= now
        and job.accepted
        and not job.end
        and (job.cancelled_at is None or job.arrives + job.cancelled_at > now)
    ]


def submit(engine: Engine[Job], job: Job, now: int) -> None:
    """Submit a job; one that the cache cannot hold is refused."""
    hashes = job.hashes(engine.settings.block_tokens)
    job.fits = job.prompt + job.output <= engine.settings.capacity_tokens
    if job.fits:
        job.accepted = engine.submit(job, job.prompt, job.output, now, hashes=hashes, priority=job.priority)
        return
    job.accepted = False
    with pytest.raises(ValueError, match="KV cache"):
        engine.submit(job, job.prompt, job.output, now, hashes=hashes, priority=job.priority)


def audit(engine: Engine[Job]) -> None:
    """The blocks add up, none is negative, and there are no more than there should be, but for those in use."""
    blocks = engine.blocks
    used = blocks["own"] + blocks["shared"]
    assert sum(blocks.values()) == max(engine.settings.kv_blocks, used)
    assert min(blocks.values()) >= 0
    assert engine.kv_usage == used / sum(blocks.values())


def drain(engine: Engine[Job], until: int | None = None, most: int | None = None) -> None:
    """Let time pass event by event, up to `until` or to the end, and at most so many."""
    done = 0
    while (due := engine.next_due()) is not None and (until is None or due <= until) and done != most:
        done += 1
        emission = engine.advance(max(due, engine.now))
        assert emission is not None
        assert emission.at == due
        audit(engine)
        for job, cached in emission.cached:
            assert not job.tokens
            job.cached = cached
        for job, index, count, end in emission.tokens:
            assert not job.end
            job.tokens += [(index + n, due) for n in range(count)]
            job.end = end


def play(
    settings: Settings,
    jobs: Sequence[Job],
    seed: int = 0,
    lazily: bool = False,
    eagerly: bool = False,
    changes: Sequence[Change] = (),
) -> list[Job]:
    """Copies of the jobs after the engine has served them, cancellations and changes included.

    `lazily`: fetch no token before the last arrival. `eagerly`: fetch what an iteration yields before telling of those that
    arrive while it lasts.
    """
    found = [
        Job(job.prompt, job.output, job.arrives, job.cancelled_at, job.prefix, job.priority) for job in jobs
    ]
    engine: Engine[Job] = Engine(settings, seed)
    fetched: int | None = None
    events = [(job.arrives, 0, n, job) for n, job in enumerate(found)]
    events += [
        (job.arrives + job.cancelled_at, 1, n, job)
        for n, job in enumerate(found)
        if job.cancelled_at is not None
    ]
    merged: list[tuple[int, int, int, Job | Change]] = [*events]
    merged += [(change.at, 2, n, change) for n, change in enumerate(changes)]
    for at, kind, _, job in sorted(merged, key=lambda event: event[:3]):
        if not lazily:
            drain(engine, at)
        if eagerly and (due := engine.next_due()) is not None and due != fetched:
            drain(engine, due, most=1)
            fetched = due  # the next event at this instant is the next iteration's beginning
        if eagerly:
            at = max(at, engine.now)  # an idle engine may have been woken up too early for it
        if isinstance(job, Change):
            at = max(
                [at, *(one.tokens[-1][1] for one in found if one.tokens)]
            )  # read when these had been sent
            apply(engine, job.of(engine.settings, settings), at, found if lazily else open_at(found, at))
        elif kind == 0:
            submit(engine, job, at)
        elif lazily:
            engine.cancel(job, at)
        else:
            assert engine.cancel(job, at) == (job.accepted and not job.end)
        audit(engine)
    drain(engine)
    assert (engine.running, engine.waiting) == (0, 0)
    assert engine.kv_usage == 0
    return found


def history(jobs: list[Job]) -> list[list[tuple[int, int]]]:
    """Every token's index and instant."""
    return [job.tokens for job in jobs]
