"""How far the figures of one engine by several methods lie apart, and whether that is more than chance.

| pair                                   | interval of the difference, 95 %                                            |
| -------------------------------------- | --------------------------------------------------------------------------- |
| `timings` and `streamed`               | Student's t of the differences of pairs: both are of the same requests      |
| one of them and `whole`                | Welch's t: other requests                                                   |
| `counters` and `streamed`              | Student's t of the client's values: counters give a total of the same       |
|                                        | requests, so the difference is exact and its spread is not known            |
| `counters` and `whole`                 | none: nothing tells how much the engine's own figure varies                 |

What the client adds to a request varies less than the whole that the client measures, unless it shrinks as the engine's part
grows: the spread of the client's values is an upper bound, and the interval of the third row is wide rather than narrow.

Requests are sent one at a time, so none waits for another, and are taken as independent. A speed enters by the values of its
linearised ratio (measure/engine_figures.py); a share is the difference over the reference, whose own error counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inferometer.documents.cross_validation import METHODS, Difference, Method, Overhead, Row, Table
from inferometer.documents.verdict import CheckResult, RunStatus
from inferometer.judge.bench import of_the_checks
from inferometer.judge.comparison.welch import paired, welch
from inferometer.judge.procedure_verdict import worst
from inferometer.measure.engine_figures import FIGURES, Figure, Measured
from inferometer.measure.record import Floats
from inferometer.measure.stats import mean_interval
from inferometer.metrics.statistics import Interval

Found = Mapping[tuple[Figure, Method], Measured]
"""What there is, by figure and method."""


def verdict(runs: Sequence[Sequence[CheckResult]]) -> tuple[RunStatus | None, tuple[str, ...]]:
    """Whether to rely on the figures by the client's clock, and the codes of the checks that speak against it: of those of all
    runs, by the rules of a benchmark (judge/bench.py). None without a run."""
    found: dict[str, RunStatus] = {}
    for checks in runs:
        for code, status in of_the_checks(checks).items():
            found[code] = worst((status, found.get(code, "VALID")))
    codes = sorted(found, key=lambda code: found[code] != "INVALID")
    return (worst(found.values()) if runs else None), tuple(codes)


def tables(found: Found) -> tuple[Table, ...]:
    """Each figure by all methods that have it, against the first of them."""
    return tuple(_table(figure, found) for figure in FIGURES)


def _table(figure: Figure, found: Found) -> Table:
    rows = [(method, found[figure, method]) for method in METHODS if (figure, method) in found]
    if not rows:
        return Table(figure, None, ())
    reference, _ = rows[0]
    return Table(
        figure,
        reference,
        tuple(
            Row(
                method,
                one.n,
                one.mean,
                one.sd,
                None if method == reference else _difference(found, figure, reference, method),
            )
            for method, one in rows
        ),
    )


def overhead(found: Found) -> Overhead:
    """What lies between the engine and the client."""

    def beside(figure: Figure) -> Difference | None:
        own: tuple[Method, ...] = ("timings", "counters")
        reference = next((method for method in own if (figure, method) in found), None)
        return None if reference is None else _difference(found, figure, reference, "streamed")

    return Overhead(
        beside("ttft_ms"), beside("tok_per_sec"), _difference(found, "total_ms", "whole", "streamed")
    )


def _difference(found: Found, figure: Figure, reference: Method, method: Method) -> Difference | None:
    """None if one of them is missing."""
    base, other = found.get((figure, reference)), found.get((figure, method))
    if base is None or other is None:
        return None
    apart = "whole" in (reference, method)
    absolute = _interval(base, other, 1.0, 1.0, apart=apart)
    share, of_share = None, None
    if base.mean > 0:
        share = other.mean / base.mean - 1
        # The mean of each side in this scale is the ratio: their difference is 0, with the error of the ratio.
        around = _interval(base, other, other.mean / base.mean**2, 1 / base.mean, apart=apart, centre=0.0)
        of_share = None if around is None else (share + around[0], share + around[1])
    if absolute is None or absolute[0] <= 0 <= absolute[1]:
        return Difference(other.mean - base.mean, absolute, share, of_share, "open")
    return Difference(
        other.mean - base.mean, absolute, share, of_share, "above" if absolute[0] > 0 else "below"
    )


def _interval(
    base: Measured,
    other: Measured,
    scale: float,
    other_scale: float,
    *,
    apart: bool,
    centre: float | None = None,
) -> Interval | None:
    """Of `other` less `base`, each in its scale; `apart`: they are of different requests. None: too little to tell."""
    if not base.values:
        if apart or base.n != other.n or not other.values:
            return None
        spread = float(np.std(other.values, ddof=1)) * other_scale if other.n > 1 else None
        middle = other.mean * other_scale - base.mean * scale if centre is None else centre
        return mean_interval(other.n, middle, spread)
    first, second = _scaled(base, scale), _scaled(other, other_scale)
    same = not apart and base.rows == other.rows
    test = paired(first, second) if same else welch(first, second)
    return None if test is None else test.interval


def _scaled(one: Measured, scale: float) -> Floats:
    return np.asarray(one.values, dtype=np.float64) * scale
