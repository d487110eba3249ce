"""How often `inferometer history check` raises an alarm where nothing changed, and how soon it finds a change.

A history is a number of results of the five figures that decide for runs: four with log-normal noise between results, half of
whose variance all four share, and a success rate of 1. Each check is that of the product, on the history up to a result.

| kind of noise  | the results                                                                        |
| -------------- | ---------------------------------------------------------------------------------- |
| normal         | are independent; the logarithms are normal                                         |
| own            | the same, and no part of the noise is shared                                       |
| heavy tails    | have Student's distribution with 4 degrees of freedom, of the same variance        |
| slow ones      | are 40 % slower one time in twenty                                                 |
| following 0.3, 0.6 | resemble the result before: the noise is autoregressive with this coefficient  |

A change is a system that is slower by a share from one result on: in all four figures, or in one of them. `python -m
benchmarks.history_power [alarms|found] [--quick]` prints the figures of docs/history.md; everything is drawn from SEED.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.figure import Figure, Note, at_least, at_most
from benchmarks.loads import Bench
from inferometer.judge.history.regression import FigureSeries, Sensitivity, examine
from inferometer.measure.record import Floats
from inferometer.metrics.catalogue import Better

SEED = 20_261_124
NOISE = 0.02
FIGURES: Mapping[str, Better] = {
    "output_tok_s": "more",
    "ttft_p50": "less",
    "ttft_p99": "less",
    "tpot_p50": "less",
}
LENGTHS = (9, 14, 21, 31, 61)
"""Results of a history without a change, the one that is checked included."""
BEFORE = (8, 20, 30)
"""Results before a change."""
LATER = 15
QUIET, SIDE_QUIET, CHANGED = 1_000, 200, 100
"""Histories of each cell: of normal noise, of other noise, with a change."""
QUICK = 20
Noise = Callable[[np.random.Generator, int], Floats]
"""Draws so many results of the four figures, as logarithms: shape (results, figures), standard deviation 1."""


def _normal(random: np.random.Generator, n: int, shared: float = 0.5) -> Floats:
    common, own = random.standard_normal((n, 1)), random.standard_normal((n, len(FIGURES)))
    return np.asarray(np.sqrt(shared) * common + np.sqrt(1 - shared) * own)


def _heavy(random: np.random.Generator, n: int) -> Floats:
    return np.asarray(random.standard_t(4, (n, len(FIGURES))) / np.sqrt(2))


def _slow_ones(random: np.random.Generator, n: int) -> Floats:
    slow = (random.random((n, 1)) < 0.05) * np.log(1.4) / NOISE
    return np.asarray(_normal(random, n) + slow * _signs())


def _following(random: np.random.Generator, n: int, coefficient: float) -> Floats:
    fresh, found = _normal(random, n + 50), np.zeros((n + 50, len(FIGURES)))
    for at in range(1, n + 50):
        found[at] = coefficient * found[at - 1] + np.sqrt(1 - coefficient**2) * fresh[at]
    return found[50:]


def _signs() -> Floats:
    """Which way each figure goes when the system becomes slower."""
    return np.array([1.0 if better == "less" else -1.0 for better in FIGURES.values()])


NOISES: Mapping[str, Noise] = {
    "normal": _normal,
    "own": partial(_normal, shared=0.0),
    "heavy tails": _heavy,
    "slow ones": _slow_ones,
    "following 0.3": partial(_following, coefficient=0.3),
    "following 0.6": partial(_following, coefficient=0.6),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A system that is slower by `share`, in all figures or in TTFT's median alone, which may be the only one that decides."""

    share: float
    all_figures: bool = True
    named: bool = False

    @property
    def label(self) -> str:
        """In words."""
        where = "in all four" if self.all_figures else "in one, named" if self.named else "in one of four"
        return f"{self.share:.0%} {where}"


CHANGES = (
    Change(0.05),
    Change(0.05, all_figures=False),
    Change(0.05, all_figures=False, named=True),
    Change(0.03),
    Change(0.1),
)


def alarm(logarithms: Floats, *, named: bool = False) -> bool:
    """Whether the check of the last result finds it worse."""
    values = np.exp(NOISE * logarithms)
    series = [
        FigureSeries(name, better, "ratio", name == "ttft_p50" or not named, values[:, at])
        for at, (name, better) in enumerate(FIGURES.items())
    ]
    series.append(FigureSeries("success_rate", "more", "ratio", not named, np.ones(len(values))))
    return any(one.verdict == "worse" for one in examine(series, Sensitivity()) if one.series.deciding)


def alarms(noise: Noise, length: int, histories: int) -> int:
    """In how many histories without a change the check of the last result raises an alarm."""
    return sum(
        alarm(noise(np.random.default_rng((SEED, length, number)), length)) for number in range(histories)
    )


def found_after(change: Change, before: int, number: int) -> int:
    """After how many results the change is found; LATER + 1: not within LATER."""
    drawn = _normal(np.random.default_rng((SEED, before, number)), before + LATER)
    size = np.log1p(change.share) / NOISE
    which = (
        np.ones(len(FIGURES)) if change.all_figures else np.array([name == "ttft_p50" for name in FIGURES])
    )
    drawn[before:] += size * _signs() * which
    for k in range(1, LATER + 1):
        if alarm(drawn[: before + k], named=change.named):
            return k
    return LATER + 1


def power(bench: Bench) -> Iterator[Figure | Note]:
    """Both tables."""
    yield from false_alarms(quick=bench.quick)
    yield from changes_found(quick=bench.quick)


def false_alarms(*, quick: bool) -> Iterator[Figure | Note]:
    """Histories without a change that raise an alarm, in per cent, by kind of noise and results before the newest."""
    total = 0
    for name, noise in NOISES.items():
        some = QUICK if quick else QUIET if name == "normal" else SIDE_QUIET
        for length in LENGTHS:
            found = alarms(noise, length, some)
            total += found if name == "normal" else 0
            yield Figure(f"{length - 1} before", 100 * found / some, "%", digits=1, grid="alarms", line=name)
    many = (QUICK if quick else QUIET) * len(LENGTHS)
    yield Figure("false alarms, normal noise", 100 * total / many, "%", at_most(2), 2)


def changes_found(*, quick: bool) -> Iterator[Figure | Note]:
    """Changes that are found within so many results, in per cent, by their size and the results before."""
    for change in CHANGES:
        for before in BEFORE:
            some = QUICK if quick else CHANGED
            ks = [found_after(change, before, number) for number in range(some)]
            for within in (1, 5, LATER):
                share = 100 * sum(k <= within for k in ks) / some
                line = f"{change.label}, {before} before"
                goal = at_least(95) if (change, before, within) == (CHANGES[0], 20, 5) else None
                yield Figure(f"within {within}", share, "%", digits=0, grid="found", line=line)
                if goal is not None:
                    yield Figure("5 % found within 5 results", share, "%", goal, 1)


TABLES = {"alarms": false_alarms, "found": changes_found}


def main(words: list[str]) -> None:
    """Print tables as Markdown, a line for each cell."""
    for name in [word for word in words if word in TABLES] or TABLES:
        for one in TABLES[name](quick="--quick" in words):
            if isinstance(one, Figure):
                place = f"{one.line}, " if one.grid else ""
                print(f"| {place}{one.label} | {one.value:.{one.digits}f} {one.unit} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
