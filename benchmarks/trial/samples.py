"""Samples that say little of what they are called: too few, with rare outliers, with stalls; and two defects at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.trial.client import late_sends, read_late
from benchmarks.trial.defects import CLOSED, OPEN, Defect, Plant, both, chosen, in_record, in_scene
from benchmarks.trial.delivery import every, through, whole
from benchmarks.trial.lies import cached, cut, failing, share_of, shorter, times
from benchmarks.trial.load import BUSY, LONG, line, swings
from benchmarks.trial.playing import MS
from benchmarks.trial.records import Recorded

FEW = ("few_samples", "samples_p99", "samples_p99_9")


def outliers(share: float, ms: float, together: int = 1, begin: float = 0.0) -> Plant:
    """A share of the requests waits so much longer for its first token; so many in a row. `begin`: the part of the measured
    requests before which none does."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        n = len(recorded.measured)
        hit = np.repeat(chosen(random, n // together + 1, share), together)[:n]
        hit &= np.cumsum(recorded.measured) > begin * recorded.measured.sum()
        late = np.where(hit, round(ms * MS), 0)
        events = [
            np.concatenate((t[:1], t[1:] + int(by)))
            for t, by in zip(recorded.columns["event_ns"], late, strict=True)
        ]
        return recorded.but(event_ns=events, t_end=recorded.columns["t_end"] + late)

    return plant


def defects() -> Iterator[Defect]:
    """All of them."""
    yield from _few()
    yield from _tails()
    yield from _mixed()


def _few() -> Iterator[Defect]:
    truth = replace(OPEN, requests=LONG * 1_000)
    for n in (1, 30, 200, 900):
        scene = replace(OPEN, seed=41 + n, requests=n)
        yield in_scene(f"{n} requests", "few samples", scene, truth, FEW, sampled=True, quick=n == 200)
    truth_of_outliers = {
        "1 % wait 300 ms longer": outliers(0.01, 300.0),
        "3 % wait 300 ms longer": outliers(0.03, 300.0),
        "3 % wait 300 ms longer, 30 in a row": outliers(0.03, 300.0, 30),
    }
    for name, plant in truth_of_outliers.items():
        yield in_record(name, "outliers", plant, FEW, honest=plant)


def _tails() -> Iterator[Defect]:
    """Slow tails that begin half-way. The truth is the server as it is at the end."""
    for share in (0.03, 0.05, 0.1):
        for requests in (OPEN.requests, 5_000):
            name = f"{share:.0%} wait 300 ms longer from half-way on, {requests:,} requests".replace(
                "%", " %", 1
            )
            yield in_record(
                name,
                "slow tail",
                outliers(share, 300.0, begin=0.5),
                ("drift",),
                replace(OPEN, requests=requests),
                honest=outliers(share, 300.0),
            )


def _mixed() -> Iterator[Defect]:
    family = "two at once"
    stays = {"usage_output": lambda columns, kept: columns["output_tokens_asked"]}
    pairs: dict[str, tuple[Plant, Plant, tuple[str, ...]]] = {
        "shorter answers, usage as asked; prompts cut": (
            shorter(share_of(1.0, 0.5), **stays),
            cut(lambda n, _: np.minimum(n, 200)),
            ("output_length", "token_counts", "prompt_length"),
        ),
        "half of the prompts cached, all answers held": (
            cached(0.5),
            through(whole),
            ("cache_hits", "streamed"),
        ),
        "usage a tenth more, late reads": (
            times(1.1),
            read_late(20.0, 50.0, 1.0),
            ("token_counts", "output_length", "receive_lag"),
        ),
        "late sends, every 8 events": (
            late_sends(0.05, 20.0),
            through(every(8)),
            ("lateness", "load_exact", "streamed"),
        ),
        "5 % fail, 5 % held": (failing(0.05, 2.0), through(whole, 0.05), ("error_rate", "streamed")),
        "0.9 % fail, 0.9 % held": (failing(0.009, 2.0), through(whole, 0.009), ("error_rate", "streamed")),
    }
    for name, (first, second, expects) in pairs.items():
        yield in_record(name, family, both(first, second), expects, quick=name.startswith("half"))
    yield in_record(
        "late sends in closed loop, every 8 events",
        family,
        both(late_sends(0.05, 20.0), through(every(8))),
        ("lateness", "streamed"),
        CLOSED,
    )
    slow_and_few = replace(OPEN, pace=line(1.5), requests=300)
    yield in_scene(
        "slower by half, 300 requests", family, slow_and_few, replace(OPEN, pace=line(1.5)), (*FEW, "drift")
    )
    relieved = replace(
        BUSY,
        pace=line(1.4),
        arrivals=lambda due, random: np.cumsum(np.diff(due, prepend=0.0) * np.linspace(0.9, 1.3, len(due))),
    )
    yield in_scene(
        "slower by 40 % while the rate falls",
        family,
        relieved,
        replace(BUSY, pace=lambda _: 1.4),
        ("drift", "load_exact", "arrival_rate"),
    )
    uneven = replace(BUSY, pace=swings(0.3, 1), arrivals=lambda due, random: due * 1.05)
    yield in_scene(
        "5 % slow arrivals, a server that swings once",
        family,
        uneven,
        BUSY,
        ("drift", "load_exact", "arrival_rate"),
    )
