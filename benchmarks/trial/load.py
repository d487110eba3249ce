"""Loads that are not what the plan says: biased, clumped and dropped arrivals, drifting servers, overload, the first wave."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.trial.agents import Silent
from benchmarks.trial.defects import CLOSED, OPEN, Case, Defect, chosen, in_scene, slower
from benchmarks.trial.playing import Arrivals, Floats, Pace, Scene
from benchmarks.trial.records import Bent, bent, latencies, sure
from inferometer.documents.summary import Summary
from inferometer.plan.parse import build
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

SENT = ("arrival_rate", "arrival_dispersion", "arrival_lag1", "load_exact", "lateness")
DRIFT = ("stationary", "drift", "steady", "trend", "concurrency_held")
BUSY = replace(OPEN, rate=40.0)
"""Three quarters of what the engine can do: enough of a queue for arrivals to matter."""


def evenly(due: Floats, random: np.random.Generator) -> Floats:
    """Constant gaps instead of random ones."""
    return np.linspace(due[0], due[-1], len(due))


def uniform(due: Floats, random: np.random.Generator) -> Floats:
    """Gaps between 0 and twice their mean."""
    return np.cumsum(random.uniform(0, 2 * due[-1] / len(due), len(due)))


def bursty(due: Floats, random: np.random.Generator) -> Floats:
    """Gaps with four times the variance."""
    return np.cumsum(random.gamma(0.25, 4 * due[-1] / len(due), len(due)))


def in_tens(due: Floats, random: np.random.Generator) -> Floats:
    """Ten at once."""
    found: Floats = due[np.arange(len(due)) // 10 * 10]
    return found + np.arange(len(due)) % 10 * 1e-5


def in_pairs(due: Floats, random: np.random.Generator) -> Floats:
    """Two workers that draw the same instants."""
    found: Floats = due[np.arange(len(due)) // 2 * 2]
    return found + np.arange(len(due)) % 2 * 1e-5


def slow(share: float) -> Arrivals:
    """Each gap is longer by that share."""
    return lambda due, random: due * (1 + share)


def overhead(each_s: float) -> Arrivals:
    """A loop that sleeps the gap after each send, which takes a while."""
    return lambda due, random: due + np.arange(len(due)) * each_s


def sorted_gaps(due: Floats, random: np.random.Generator) -> Floats:
    """In each ten, the short gaps come first."""
    gaps = np.diff(due, prepend=0.0)
    whole = len(gaps) // 10 * 10
    gaps[:whole] = np.sort(gaps[:whole].reshape(-1, 10), axis=1).ravel()
    return np.cumsum(gaps)


def swinging(by: float, each: int) -> Arrivals:
    """The rate is now higher, now lower, by turns of so many sends."""

    def arrivals(due: Floats, random: np.random.Generator) -> Floats:
        gaps = np.diff(due, prepend=0.0)
        high = np.arange(len(gaps)) // each % 2 == 0
        found: Floats = np.cumsum(np.where(high, gaps * (1 - by), gaps * (1 + by)))
        return found

    return arrivals


def ramping(by: float) -> Arrivals:
    """The rate falls over the run, from so much above to so much below."""
    return lambda due, random: np.cumsum(np.diff(due, prepend=0.0) * np.linspace(1 - by, 1 + by, len(due)))


def dropped(share: float) -> Arrivals:
    """A share of the arrivals is left out, at random."""
    return lambda due, random: np.where(chosen(random, len(due), share), np.nan, due)


def thinned(due: Floats, random: np.random.Generator) -> Floats:
    """Of those that come soon after the one before, half are left out, as a busy client leaves them out."""
    close = np.diff(due, prepend=-1.0) < 0.25 * due[-1] / len(due)
    return np.where(close & (random.random(len(due)) < 0.5), np.nan, due)


def re_anchored(due: Floats, random: np.random.Generator) -> Floats:
    """Six stalls of half a second, after each of which the schedule begins anew."""
    stalls = np.zeros(len(due))
    stalls[np.arange(1, 7) * len(due) // 7] = 0.5
    return due + np.cumsum(stalls)


def caught_up(due: Floats, random: np.random.Generator) -> Floats:
    """Six stalls of a second, after each of which what fell due is sent at once, as if that had been the plan."""
    found = due.copy()
    for begin in due[np.arange(1, 7) * len(due) // 7]:
        inside = (found >= begin) & (found < begin + 1.0)
        found[inside] = begin + 1.0 + np.arange(inside.sum()) * 1e-4
    return np.sort(found)


def floored(due: Floats, random: np.random.Generator) -> Floats:
    """No gap is shorter than a fifth of the mean."""
    gaps = np.diff(due, prepend=0.0)
    return np.cumsum(np.maximum(gaps, 0.2 * gaps.mean()))


ARRIVALS: dict[str, Arrivals] = {
    "constant gaps": evenly,
    "uniform gaps": uniform,
    "gaps of four times the variance": bursty,
    "ten at once": in_tens,
    "workers in step": in_pairs,
    "sorted gaps": sorted_gaps,
    "2 % slow": slow(0.02),
    "5 % slow": slow(0.05),
    "10 % slow": slow(0.1),
    "5 % fast": slow(-0.05),
    "1 ms more a gap": overhead(0.001),
    "rate swings by half": swinging(0.5, 100),
    "rate swings by a fifth": swinging(0.2, 100),
    "rate falls by half": ramping(0.5),
    "rate falls by a fifth": ramping(0.2),
    "2 % of arrivals dropped": dropped(0.02),
    "10 % of arrivals dropped": dropped(0.1),
    "close arrivals dropped": thinned,
    "schedule begins anew after stalls": re_anchored,
    "stalls, then all at once": caught_up,
    "shortest gaps left out": floored,
}


def line(to: float) -> Pace:
    """Ever slower, up to this factor."""
    return lambda share: 1 + (to - 1) * share


def step(to: float, at: float) -> Pace:
    """Slower at once."""
    return lambda share: to if share >= at else 1.0


def swings(by: float, times: float) -> Pace:
    """Slower and faster in turn."""
    return lambda share: 1 + by * float(np.sin(2 * np.pi * times * share))


def bump(to: float, begin: float, end: float) -> Pace:
    """Slower for a while."""
    return lambda share: to if begin <= share < end else 1.0


PACES: dict[str, tuple[Pace, float]] = {
    "line to 1.5": (line(1.5), 1.5),
    "line to 2": (line(2.0), 2.0),
    "line to 0.6, a server that warms up": (line(0.6), 0.6),
    "1.3 times as slow half-way": (step(1.3, 0.5), 1.3),
    "1.5 times as slow for the last fifth": (step(1.5, 0.8), 1.5),
    "half as slow again for the first fifth": (bump(1.5, 0.0, 0.2), 1.0),
    "3 times as slow for the middle tenth": (bump(3.0, 0.45, 0.55), 1.0),
    "twice as slow for the last twentieth": (step(2.0, 0.95), 1.0),
}
"""The pace, and that of the server as it is: at the run's end, or usually."""
SWINGS = (0.5, 2, 8, 40)
"""Swings a run. The truth of a server that swings is what a run LONG times as long shows."""
LONG = 4
"""Where two loads are compared over more requests than are judged, how many times as many."""


def defects() -> Iterator[Defect]:
    """All of them."""
    for name, arrivals in ARRIVALS.items():
        yield in_scene(
            name,
            "arrivals",
            replace(BUSY, arrivals=arrivals),
            BUSY,
            SENT,
            long=LONG,
            quick=name in QUICK,
        )
    for loop, scene in (("open", OPEN), ("closed", CLOSED)):
        for name, (pace, true) in PACES.items():
            quick = loop == "closed" and name in QUICK
            yield in_scene(
                f"{name}, {loop} loop",
                "drift",
                replace(scene, pace=pace),
                slower(scene, true),
                DRIFT,
                quick=quick,
            )
        for times in SWINGS:
            yield in_scene(
                f"swings by 30 %, {times:g} times a run, {loop} loop",
                "drift",
                replace(scene, pace=swings(0.3, times)),
                replace(scene, pace=swings(0.3, LONG * times), requests=LONG * scene.requests),
                DRIFT,
                sampled=True,
            )
    capacity = CAPACITY
    settled = replace(OPEN, rate=0.95 * capacity, requests=1_000, warm=4_000)
    for over, requests in ((1.05, 1_000), (1.05, 5_000), (1.1, 1_000), (1.1, 5_000), (1.3, 1_000)):
        scene = replace(OPEN, rate=over * capacity, requests=requests)
        yield in_scene(
            f"{over:.0%} of capacity, {requests:,} requests",
            "overload",
            scene,
            settled,
            DRIFT,
            quick=over == 1.3,
        )
    yield from _standing_still()
    yield Defect("50 users at once on an idle server", "first wave", ("first_wave",), _users)
    yield Defect("64 slots at once on an idle server", "first wave", ("samples_p99",), _wave)
    for name, (flags, turns) in UNFILLED.items():
        yield Defect(name, "idle beginning", ("filling",), partial(_unfilled, flags, turns), quick=turns == 1)


def still(seconds: float, scene: Scene, times: float = 1.0, begin: float | None = None) -> Pace:
    """The server stands still for so long, so many times a run at equal distances, or once from `begin` on."""
    long = seconds * (scene.rate or 0.0) / scene.requests
    begins = [(at + 0.5) / times for at in range(round(times))] if begin is None else [begin]
    return lambda share: STILL if any(at <= share < at + long for at in begins) else 1.0


STILL = 1e6
"""How many times as long everything takes of a server that does nothing."""


def _standing_still() -> Iterator[Defect]:
    """A cold start, whose truth is the server once it is warm; and one stall a run, whose truth is what a run LONG times as
    long shows, with as many stalls an hour."""
    for seconds in (5.0, 2.0):
        name = f"a model that loads for {seconds:g} s, no warm-up"
        scene = replace(OPEN, warm=0)
        loading = replace(scene, pace=still(seconds, scene, begin=0.0))
        yield in_scene(name, "cold start", loading, scene, DRIFT)
    much = replace(OPEN, requests=LONG * OPEN.requests)
    for seconds in (0.3, 1.0, 3.0):
        scene = replace(OPEN, pace=still(seconds, OPEN))
        truth = replace(much, pace=still(seconds, much, LONG))
        name = f"stands still once for {seconds:g} s"
        yield in_scene(name, "stalls", scene, truth, DRIFT, sampled=True)


def _wave() -> Case:
    """A plan of 64 slots on an idle server, carried out by the product in virtual time. The truth is what five times as many
    requests show, of which the first are a lesser part; a headline is bent where its interval leaves that out."""
    summary = _of_slots(1_000, 31)
    reasons = tuple(dict.fromkeys(reason.code for reason in summary.verdict.reasons))

    def bend() -> Bent:
        return sure(latencies(summary.metrics), latencies(_of_slots(5_000, 32).metrics))

    return Case(summary.verdict.status, reasons, bend)


def _users() -> Case:
    """The same of users who mostly wait for their answers, and all begin at once."""
    load = {"--users": "50", "--user-rate": "50"}
    summary = _of(load, 1_000, 33)
    reasons = tuple(dict.fromkeys(reason.code for reason in summary.verdict.reasons))
    return Case(
        summary.verdict.status,
        reasons,
        lambda: bent(latencies(summary.metrics), latencies(_of(load, 5_000, 34).metrics)),
    )


def _of_slots(requests: int, seed: int) -> Summary:
    return _of({"--concurrency": "64"}, requests, seed)


def _of(kind: dict[str, str], requests: int, seed: int) -> Summary:
    engine = ("step_base=4ms", "step_per_request=50us", "prefill_per_token=20us", "max_batch=128")
    lengths = {"--input-tokens": "uniform(100,500)", "--output-tokens": "uniform(30,90)"}
    load = {**kind, "--requests": f"{requests}", "--seed": f"{seed}"}
    with tempfile.TemporaryDirectory() as place:
        return simulate(
            build(None, load | lengths), choose("tiny-cpu", engine), Path(place), Silent()
        ).summary


UNFILLED: dict[str, tuple[dict[str, str], int]] = {
    "long-tailed answers to an open loop": (
        {"--rate": "150", "--output-tokens": "lognormal(3.5,1.4,max=1500)"},
        1,
    ),
    "conversations of 6 s in a run of 17 s": (
        {"--rate": "15", "--turns": "6", "--think-ms": "1000", "--output-tokens": "20"},
        6,
    ),
}
"""Flags of a load that is filling the server for much of its run, and requests for each that its rate is of."""


def _unfilled(flags: dict[str, str], turns: int) -> Case:
    """An open loop on an idle server with room for all. The truth is what was asked for: all of it is answered."""
    engine = (
        "step_base=10ms",
        "step_per_request=1us",
        "prefill_base=1us",
        "prefill_per_token=1us",
        "max_batch=512",
    )
    plan = build(None, flags | {"--arrival": "constant", "--input-tokens": "20", "--requests": "1000"})
    with tempfile.TemporaryDirectory() as place:
        summary = simulate(plan, choose("tiny-cpu", engine), Path(place), Silent()).summary
    reasons = tuple(dict.fromkeys(reason.code for reason in summary.verdict.reasons))

    def bend() -> Bent:
        lengths, rate = summary.metrics.output_tokens, summary.throughput.output_tok_s
        assert lengths is not None
        assert rate is not None
        return Bent("output tokens/s", rate / (float(flags["--rate"]) * turns * lengths.mean) - 1, 0)

    return Case(summary.verdict.status, reasons, bend)


CAPACITY = 53.0
"""Requests a second that the engine of playing.py ends with all places taken."""
QUICK = (
    "ten at once",
    "10 % of arrivals dropped",
    "line to 1.5",
    "1.3 times as slow half-way",
)
