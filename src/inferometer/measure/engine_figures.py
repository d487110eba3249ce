"""One engine's figures over some of its requests, by the client's clock and by the engine's own durations.

A speed is all tokens over all time, R = sum(tokens) / sum(time), as counters have it: short answers weigh little. Its values by
request are those of the linearised ratio (Cochran 1977, 6.4), tokens and time of request i being a and b:

    x_i = R + (a_i - R b_i) / mean(b)

Their mean is R, and their spread over sqrt(n) is the error of R, so that ratios and means have intervals by one method.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.measure.bench_metrics import tok_per_sec
from inferometer.measure.measured_requests import MeasuredRequest
from inferometer.units import NS_PER_MS

Figure = Literal["tok_per_sec", "ttft_ms", "total_ms"]
FIGURES: tuple[Figure, ...] = ("tok_per_sec", "ttft_ms", "total_ms")


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure over `n` requests: its mean, and the standard deviation over them (n - 1).

    `values`: one of each request, whose mean is the figure; `rows`: the requests' places in their record. Both are empty where
    only a total is known.
    """

    n: int
    mean: float
    sd: float | None = None
    values: tuple[float, ...] = ()
    rows: tuple[int, ...] = ()


Figures = Mapping[Figure, Measured]
_Timed = Sequence[tuple[MeasuredRequest, float]]
"""Requests, each with a duration in ms."""


def by_client(requests: Sequence[MeasuredRequest]) -> Figures:
    """Streamed answers by the client's clock. Tokens are the engine's count; without one there is no speed."""
    timed = [(one, one.client) for one in requests if one.answered]
    known = [(one, times) for one, times in timed if times is not None]
    return _figures(
        [(one, times.generation_ms) for one, times in known],
        [(one, times.ttft_ms) for one, times in known],
        [(one, times.total_ms) for one, times in known],
    )


def of_whole(requests: Sequence[MeasuredRequest]) -> Figures:
    """Whole answers by the client's clock: their speed is over their whole time, since no first token shows."""
    totals = [(one, one.total_ms) for one in requests if one.answered]
    known = [(one, total) for one, total in totals if total is not None]
    return _figures(known, [], known)


def by_timings(requests: Sequence[MeasuredRequest]) -> Figures:
    """The engine's own durations, of the answers that have them."""
    ended = [one for one in requests if one.answered]
    return _figures(
        [(one, one.own_decode_ns / NS_PER_MS) for one in ended if one.own_decode_ns is not None],
        [(one, one.own_prefill_ns / NS_PER_MS) for one in ended if one.own_prefill_ns is not None],
        [(one, one.own_total_ns / NS_PER_MS) for one in ended if one.own_total_ns is not None],
    )


def _figures(generations: _Timed, waits: _Timed, totals: _Timed) -> Figures:
    found = {"tok_per_sec": _speed(generations), "ttft_ms": _mean(waits), "total_ms": _mean(totals)}
    return {name: one for name in FIGURES if (one := found[name]) is not None}


def _mean(timed: _Timed) -> Measured | None:
    if not timed:
        return None
    values = [value for _, value in timed]
    mean = math.fsum(values) / len(values)
    return Measured(len(values), mean, _sd(values), tuple(values), tuple(one.row for one, _ in timed))


def _speed(timed: _Timed) -> Measured | None:
    """None without an answer that has both a token count and a duration."""
    good = [(one.output_tokens, ms, one.row) for one, ms in timed if one.output_tokens]
    good = [(tokens, ms, row) for tokens, ms, row in good if tok_per_sec(tokens, ms)]
    if not good:
        return None
    seconds = [ms / 1_000 for _, ms, _ in good]
    mean_s = math.fsum(seconds) / len(good)
    ratio = sum(tokens for tokens, _, _ in good) / math.fsum(seconds)
    values = tuple(
        ratio + (tokens - ratio * s) / mean_s for (tokens, _, _), s in zip(good, seconds, strict=True)
    )
    spread = _sd([tok_per_sec(tokens, ms) for tokens, ms, _ in good])
    return Measured(len(good), ratio, spread, values, tuple(row for _, _, row in good))


def _sd(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
