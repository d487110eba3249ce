"""The metrics of the engine benchmark: M1 to M8 of asiai's metric specification 0.4.0, for one generation and over several.

| metric                       | of an engine that times itself (Ollama)  | of any other, by the client's clock               |
| ---------------------------- | ----------------------------------------- | ------------------------------------------------- |
| M2 ttft_ms                   | its prefill duration                      | last byte of the request to the first text        |
| M3 total_duration_ms         | its total duration                        | last byte of the request to the end of the stream |
| M5 generation_duration_ms    | its decode duration                       | max(0, M3 - M2)                                   |
| M4 tokens_generated          | the engine's count; without one max(1, characters // 4), marked as an estimate  |   |
| M1 tok_per_sec               | M4 / M5, 0 where M5 is below 10 ms                                             |   |

The three durations of one generation come from one source, all or none: a total by one clock says nothing of a first token by
another. An engine's own total also holds the time for loading the model: `load_ms` is what its parts leave of it.

M8 is the standard deviation of M1 within prompts: each prompt's variance, averaged over the prompts with two generations or
more. Specification 0.4.0 divides by n, asiai's later methodology by n - 1 (Bessel): the second is used, both are reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.measure.stats import student
from inferometer.metrics.statistics import Interval

SHORTEST_S = 0.01
"""M1: a generation shorter than this has no speed."""
CHARACTERS_A_TOKEN = 4
STABLE, VARIABLE = 0.05, 0.10
"""Coefficients of variation below which an engine is stable, or variable."""

Source = Literal["server", "client"]
"""The engine's own timing, or the client's clock."""
Stability = Literal["stable", "variable", "unstable"]


@dataclass(frozen=True, slots=True)
class Durations:
    """Three durations of one generation, ms, by one clock. `load_ms`: the engine's time for loading the model, by its own."""

    source: Source
    ttft_ms: float
    total_ms: float
    generation_ms: float
    load_ms: float | None = None


def client_durations(ttft_ms: float, total_ms: float) -> Durations:
    """M2, M3, M5 of a stream. Raises ValueError if the end lies before the first text (M3's invariant)."""
    if total_ms < ttft_ms:
        raise ValueError(f"a total of {total_ms} ms is shorter than the TTFT of {ttft_ms} ms")
    return Durations("client", ttft_ms, total_ms, max(0.0, total_ms - ttft_ms))


def server_durations(prefill_ms: float, decode_ms: float, total_ms: float) -> Durations:
    """M2, M3, M5 by the engine's own account. Raises ValueError if its parts are longer than its total."""
    if total_ms < prefill_ms + decode_ms:
        raise ValueError(
            f"a total of {total_ms} ms is shorter than prefill and decode, {prefill_ms + decode_ms} ms"
        )
    return Durations("server", prefill_ms, total_ms, decode_ms, total_ms - prefill_ms - decode_ms)


def tokens_generated(counted: int | None, characters: int) -> tuple[int, Literal["server", "estimate"]]:
    """M4: the engine's count, else an estimate; never the number of events."""
    if counted is not None:
        return counted, "server"
    return max(1, characters // CHARACTERS_A_TOKEN), "estimate"


def tok_per_sec(tokens: int, generation_ms: float) -> float:
    """M1."""
    seconds = generation_ms / 1_000
    return tokens / seconds if seconds >= SHORTEST_S else 0.0


@dataclass(frozen=True, slots=True)
class Pooled:
    """M8 and what follows from it. `cv`: `bessel` over the mean, a share; None where no prompt has two generations,
    or the mean is 0. `ci95`: of the mean over prompts."""

    mean: float
    bessel: float | None
    population: float | None
    cv: float | None
    stability: Stability | None
    ci95: Interval | None


def pooled(by_prompt: Mapping[str, Sequence[float]]) -> Pooled:
    """Statistics over the generations of each prompt; at least one generation in all.

    The interval is Student's for the mean of the prompts' means. Its variance is that of the generations within each prompt,
    since the prompts themselves are the benchmark's and no sample of anything; or that of the rounds' means, if that makes it
    wider.
    """
    groups = [list(values) for values in by_prompt.values() if values]
    means = [math.fsum(values) / len(values) for values in groups]
    mean = math.fsum(means) / len(means)
    every = [value for values in groups for value in values]
    average = math.fsum(every) / len(every)
    spread = [(_squares(values), len(values)) for values in groups if len(values) > 1]
    if not spread:
        return Pooled(mean, None, None, None, None, None)
    bessel = math.sqrt(math.fsum(squares / (n - 1) for squares, n in spread) / len(spread))
    population = math.sqrt(math.fsum(squares / n for squares, n in spread) / len(spread))
    cv = bessel / average if average > 0 else None
    return Pooled(mean, bessel, population, cv, stability(cv), _interval(groups, mean))


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _interval(groups: Sequence[Sequence[float]], mean: float) -> Interval | None:
    """None if a prompt has a single generation: nothing tells how much it varies."""
    if any(len(values) < 2 for values in groups):
        return None
    half = max(_half_within(groups), _half_between_rounds(groups))
    return (max(0.0, mean - half), mean + half)  # no speed or time is below 0


def _half_within(groups: Sequence[Sequence[float]]) -> float:
    """Half the width by the variance within each prompt, as of generations that vary each for itself."""
    variances = [_squares(values) / (len(values) - 1) / len(values) for values in groups]
    error = math.sqrt(math.fsum(variances)) / len(groups)
    # Welch and Satterthwaite's degrees of freedom: prompts may vary differently.
    weights = math.fsum(
        variance**2 / (len(values) - 1) for variance, values in zip(variances, groups, strict=True)
    )
    freedom = math.fsum(variances) ** 2 / weights if weights > 0 else 1.0
    return student(freedom) * error


def _half_between_rounds(groups: Sequence[Sequence[float]]) -> float:
    """Half the width by the variance of the rounds' means, as of a machine that is slower for a while: the prompts of a round
    are then slow together. 0 where prompts lack generations, so that rounds cannot be told."""
    rounds = {len(values) for values in groups}
    if len(rounds) > 1:
        return 0.0
    means = [math.fsum(values) / len(values) for values in zip(*groups, strict=True)]
    return student(len(means) - 1) * math.sqrt(_squares(means) / (len(means) - 1) / len(means))


def stability(cv: float | None) -> Stability | None:
    """M8: stable below 5 %, variable below 10 %, else unstable."""
    if cv is None:
        return None
    return "stable" if cv < STABLE else "variable" if cv < VARIABLE else "unstable"


def monotone_fall(values: Sequence[float], least: float = 0.05) -> float | None:
    """How far values fell from the first to the last, as a share, if each is below the one before and the fall is `least` or
    more; else None. Of at least three: two values fall by chance every other time (asiai's methodology, Protocol 9)."""
    if len(values) < 3 or values[0] <= 0 or any(b >= a for a, b in itertools.pairwise(values)):
        return None
    fall = 1 - values[-1] / values[0]
    return fall if fall >= least else None
