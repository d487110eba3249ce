"""When open-loop requests are due: arrival processes as pure arrays (draft 4.2.3).

Gaps between arrivals are independent and, with rate r per second and shape k,

    gap ~ Gamma(shape k, scale 1 / (r k))        mean 1 / r,  CV^2 = 1 / k

| arrival    | k          | seen as                                                             |
| ---------- | ---------- | ------------------------------------------------------------------- |
| `poisson`  | 1          | exponential gaps; counts in any interval of length t ~ Poisson(r t) |
| `gamma`    | burstiness | k < 1 bunched, k > 1 more even, k -> infinity constant              |
| `constant` | -          | exactly 1 / r apart, the first at 0; nothing is drawn               |

A user's requests follow each other as an open loop's do, at the user's own rate. Constant ones of N users begin 1 / (N r)
apart, so that together they are constant at N r; drawn ones have a generator for each user, over PCG64, whose state is small.

The arrivals of a `trace` are not drawn: `Window` says which of them belong to a run, and when each is due.

The first drawn arrival comes one gap after the phase's start: starting at 0 would put an arrival there with certainty.

Generator: numpy's RandomState over MT19937, seeded by SeedSequence(seed, stream). Its stream is frozen by numpy's compatibility
policy (NEP 19), so a seed gives the same instants under every numpy; the newer Generator promises no such thing. All instants
of a phase are drawn from this one generator before the start and dealt out by index, so that the process offered is the same
for any number of workers. (Workers that each draw their own gaps from one seed send in step, which no longer is Poisson.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from inferometer.plan.schema import Load, Trace
from inferometer.units import NS_PER_S, seconds_to_ns

_CHUNK = 4096
_FEW = 16
_LONGEST_GAP_NS = 10**15
"""11.6 days, above the longest phase (7 days). A chunk of such gaps still fits an int64."""


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a trace that is replayed, in ns of trace time, and how much faster than it was recorded.

    An arrival at `at` is due (at - start) / speed after the measurement's start, rounded to the nearest ns. So the gaps are
    the trace's, each divided by the speed; none is closed because the first arrival is late, or a gap long.
    """

    start_ns: int
    end_ns: int | None
    speed: float

    @classmethod
    def of(cls, trace: Trace) -> Window:
        """The window a plan names."""
        end = None if trace.end_s is None else int(seconds_to_ns(trace.end_s))
        return cls(int(seconds_to_ns(trace.start_s)), end, trace.speed)

    def holds(self, at_ns: int) -> bool:
        """Whether an arrival at this trace time is replayed."""
        return at_ns >= self.start_ns and (self.end_ns is None or at_ns < self.end_ns)

    def due_ns(self, at_ns: int) -> int:
        """When it is due, in ns from the start of the measurement."""
        since = at_ns - self.start_ns
        return since if self.speed == 1 else round(since / self.speed)


def instants(
    load: Load, seed: int, n: int | None, duration_ns: int | None, *, stream: int = 0
) -> NDArray[np.int64]:
    """Due offsets of an open-loop phase, in ns from its start: int64, shape (m,), ascending.

    m is `n` when only that is given; with `duration_ns` it is the number of arrivals before that offset, at most `n`.
    `stream` keeps phases of one run independent of each other (0 for the measurement, 1 for warm-up). Asking for more
    gives the same instants first. ValueError without a rate, or when neither end is given.
    """
    if load.rate is None:
        raise ValueError("arrivals need a rate: closed loop has none")
    if n is None and duration_ns is None:
        raise ValueError("arrivals need an end: n, duration_ns or both")
    if load.arrival == "constant":
        return _constant(load.rate, n, duration_ns)
    shape = load.burstiness if load.arrival == "gamma" else 1.0
    return _drawn(load.rate, shape, _generator(seed, stream), n, duration_ns)


def phase_instants(load: Load, seed: int, *, warmup: bool = False) -> NDArray[np.int64]:
    """`instants` of the measurement phase of a plan, or of its warm-up, which is counted in requests alone."""
    if warmup:
        return instants(load, seed, load.warmup, None, stream=1)
    duration_ns = None if load.duration_s is None else int(seconds_to_ns(load.duration_s))
    return instants(load, seed, load.requests, duration_ns)


def user_instants(load: Load, seed: int, user: int, *, stream: int = 0) -> Iterator[int]:
    """When the requests of one of the plan's users are due, without end, as `instants`; `user` counts from 0.

    ValueError without users or their rate.
    """
    if load.users is None or load.user_rate is None:
        raise ValueError("users need their number and a rate")
    if load.arrival == "constant":
        # On all users' own grid, so that no error adds up and no two of them coincide.
        every = NS_PER_S / (load.users * load.user_rate)
        return (round((user + turn * load.users) * every) for turn in count())
    shape = load.burstiness if load.arrival == "gamma" else 1.0
    # A small generator, and few instants at a time: there may be many users.
    generator = np.random.RandomState(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream, user))))
    chunks = _chunks(load.user_rate, shape, generator, _FEW)
    return chain.from_iterable(chunk.tolist() for chunk in chunks)


def _generator(seed: int, stream: int) -> np.random.RandomState:
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed, spawn_key=(stream,))))


def _constant(rate: float, n: int | None, duration_ns: int | None) -> NDArray[np.int64]:
    # i / rate rather than a running sum: no error adds up. i * 1e9 is exact up to 10 million arrivals and more.
    if duration_ns is not None:
        enough = math.ceil(duration_ns * rate / NS_PER_S) + 1
        n = enough if n is None else min(n, enough)
    assert n is not None
    due = np.rint(np.arange(n, dtype=np.float64) * NS_PER_S / rate).astype(np.int64)
    return due if duration_ns is None else due[due < duration_ns]


def _drawn(
    rate: float, shape: float, generator: np.random.RandomState, n: int | None, duration_ns: int | None
) -> NDArray[np.int64]:
    chunks: list[NDArray[np.int64]] = []
    left = n
    for chunk in _chunks(rate, shape, generator) if n != 0 else ():
        due = chunk[:left]
        left = None if left is None else left - len(due)
        if duration_ns is not None and int(chunk[-1]) >= duration_ns:
            chunks.append(due[due < duration_ns])
            break
        chunks.append(due)
        if left == 0:
            break
    return np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int64)


def _chunks(
    rate: float, shape: float, generator: np.random.RandomState, size: int = _CHUNK
) -> Iterator[NDArray[np.int64]]:
    """Instants without end. Whole chunks always, so that the values do not depend on how many were asked for."""
    now = 0
    while True:
        gaps = generator.standard_gamma(shape, size) * (NS_PER_S / (rate * shape))
        due = now + np.cumsum(np.rint(np.minimum(gaps, _LONGEST_GAP_NS)).astype(np.int64))
        now = int(due[-1])
        yield due
