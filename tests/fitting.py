"""Requests that a model of an engine has served, as the streams of a record."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from engine_play import Job, play

from inferometer.server.engine.settings import Settings
from inferometer.simulation.iterations import Iterations, Limits, Streams, reconstruct


def streams(jobs: Sequence[Job]) -> Streams:
    """Of jobs that were played; all are measured."""
    served = [job for job in jobs if job.tokens]
    return Streams(
        submit=np.array([job.arrives for job in served], np.int64),
        prompt=np.array([job.prompt for job in served], np.int64),
        cached=np.array([job.cached for job in served], np.int64),
        measured=np.ones(len(served), np.bool_),
        offsets=np.cumsum([0, *(len(job.tokens) for job in served)]),
        token_ns=np.array([at for job in served for _, at in job.tokens], np.int64),
    )


def limits(settings: Settings) -> Limits:
    """What the reconstruction has to be told."""
    return Limits(settings.token_budget, settings.chunked_prefill, settings.max_batch)


def load(
    count: int, gap_ns: float, prompts: tuple[int, int], outputs: tuple[int, int], seed: int = 1
) -> list[Job]:
    """Poisson arrivals with uniform lengths."""
    draw = random.Random(seed)
    at, jobs = 0.0, []
    for _ in range(count):
        at += draw.expovariate(1 / gap_ns)
        jobs.append(Job(draw.randint(*prompts), draw.randint(*outputs), round(at)))
    return jobs


def served(settings: Settings, jobs: Sequence[Job]) -> Iterations:
    """The iterations read back from what an engine put out."""
    return reconstruct(streams(play(settings, jobs, seed=3)), limits(settings))
