"""An engine's cost parameters out of its iterations (iterations.py): robust least squares, nothing negative.

The model's time of an iteration is linear in what it did (server/engine/costs.py), so with one row an iteration

    y = X b + e        y ns   X columns   b the cost of each   e spread around 0 in proportion to X b

    step_base * steps + step_per_request * decodes * (1 + drafts) + kv_read_per_token * context
    + prefill_base * begun + prefill_per_token * tokens + prefill_attention * pairs + input_check * woken

`input_check` is what lies between sending a request and its prompt's standing in line, and takes in whatever is not the engine:
the network, the server's door, tokenizing. It shows where an idle engine is woken. Where that happened seldom, it is the time
that explains for the most requests why they joined others when they did and not an iteration earlier (`joins`).

Weights      rows are divided by X b, for the spread is in proportion, and by Huber's weights: a row off by more than HUBER
             robust standard deviations counts as if it were just that far off. X b being unknown, this is repeated.
Late ends    an end that was seen late, as by a server that reads a long prompt before it writes its tokens, makes one row
             longer and the next one shorter. No iteration is much shorter than its costs: a row that is, by more than SHORT
             robust standard deviations, is added to the one before, and the sum is right.
Told apart   columns are taken up one after the other in the order of COSTS. One is left out where it is 0 in all but
             SELDOM rows, or where its cost, given those before it, would be uncertain by more than SEPARABLE_ERROR of an
             iteration's time: standard error sigma / |part of the column that the ones before do not explain|. Such a
             parameter keeps the value it had.
Intervals    95 %, by a bootstrap over BLOCKS blocks of neighbouring iterations: what drifts, drifts within a block.
None seen    a parameter whose interval reaches 0 is 0, and what is said of it is the upper end.
Spread       jitter and noise, from the residuals of single iterations (residuals.py); the jitter's interval by the same
             bootstrap.
Stalled      the share of the time, since the first usable iteration, by which those that took more than STALL times their
             prediction were longer than it. Of these the noise has as many, one by one; where they come in a row it has not.
Held out     the last part of the iterations, predicted from a fit to the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inferometer.server.engine.noise import spelled
from inferometer.server.engine.settings import Settings
from inferometer.simulation.iterations import Ints, Iterations, Mask, batch_limit
from inferometer.simulation.residuals import spread

Floats = NDArray[np.float64]
Status = Literal["fitted", "none_seen", "not_told_apart", "seldom_seen", "given"]

COSTS = (
    "step_base_ns",
    "prefill_per_token_ns",
    "step_per_request_ns",
    "input_check_ns",
    "kv_read_per_token_ns",
    "prefill_base_ns",
    "prefill_attention_ns",
)
LEAST_ITERATIONS = 100
SELDOM = 10
LEAST_JOINS = 50
HUBER = 2.5
SHORT = 3.0
SEPARABLE_ERROR = 0.05
HELD_OUT = 0.3
STALL = 2
BLOCKS = 50
RESAMPLES = 300
_ROUNDS = 12
_NORMAL_IQR = 1.349
_LEAST_SHARE = 0.1
"""No row counts as faster than this share of the median one: it would weigh more than all others."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting: `value`, and `low` to `high` where the run says so much (95 %). Times in ns.

    status    fitted          estimated
              none_seen       0, at most `high`
              not_told_apart  not estimated: it moves as `moves_with` does
              seldom_seen     not estimated: what it is about happened never, or hardly ever
              given           not estimated: the user said it
    """

    field: str
    value: float
    status: Status
    low: float | None = None
    high: float | None = None
    moves_with: str | None = None


@dataclass(frozen=True, slots=True)
class Errors:
    """Of predicted iteration times: medians and P90 of |predicted - seen| / seen, and R^2 = 1 - SS(error) / SS(seen)."""

    iterations: int
    median: float
    p90: float
    r2: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What a run says of the settings. `max_batch` None: no queue was seen, so it is at least `largest_batch`. `noise`:
    quantiles in ns (server/engine/noise.py), none where there is none, or the user has set it.

    `used`: iterations. `stalled`: share of the time, see above.
    """

    parameters: tuple[Parameter, ...]
    max_batch: int | None
    largest_batch: int
    used: int
    stalled: float
    held_out: Errors
    noise: tuple[float, ...] = ()

    def values(self) -> dict[str, float | str]:
        """By field, what is to be set: all but what the user has set."""
        found: dict[str, float | str] = {
            one.field: one.value for one in self.parameters if one.status != "given"
        }
        if self.noise:
            found["noise"] = spelled(self.noise)
        return found if self.max_batch is None else found | {"max_batch": self.max_batch}


class TooFewError(ValueError):
    """Fewer usable iterations than LEAST_ITERATIONS."""


def fit(iterations: Iterations, settings: Settings, given: Collection[str], seed: int) -> Fit:
    """Estimate the COSTS, the jitter and the batch. Raises TooFewError.

    `given`: fields the user has set, which are taken as they are in `settings`. What cannot be told apart keeps its value
    there. `seed`: of the bootstrap.
    """
    rows = iterations.usable
    count = int(rows.sum())
    if count < LEAST_ITERATIONS:
        raise TooFewError(f"{count} iterations can be used; {LEAST_ITERATIONS} are needed")
    start = {name: float(getattr(settings, name)) for name in COSTS}
    follows = np.diff(np.flatnonzero(rows), prepend=-1) == 1
    columns, observed = _mended(
        _columns(iterations, settings, rows),
        iterations.ns[rows].astype(np.float64),
        follows & ~iterations.woken[rows],
        {name: start[name] for name in given if name in start},
    )
    draw = np.random.default_rng(seed)
    door = None
    if "input_check_ns" not in given and np.count_nonzero(columns["input_check_ns"]) <= SELDOM:
        door = _door(iterations.joins, draw)
    if door is not None:
        start["input_check_ns"] = door.value
    parameters = _estimate(columns, observed, start, given, draw)
    cut = round(len(observed) * (1 - HELD_OUT))
    early = {name: column[:cut] for name, column in columns.items()}
    learnt = _estimate(early, observed[:cut], start, given, draw)
    predicted = _predict({name: column[cut:] for name, column in columns.items()}, learnt)
    awake = columns["input_check_ns"] == 0
    if door is not None:
        parameters = tuple(door if one.field == door.field else one for one in parameters)
    predicted_all = _predict(columns, parameters)
    # What several iterations are off by is not what one is, unless there are hardly any single ones.
    single = awake & (columns["step_base_ns"] == 1)
    chosen = single if np.count_nonzero(single) >= LEAST_ITERATIONS else awake
    jitter, noise = _spread(observed[chosen], predicted_all[chosen], settings, given, draw)
    return Fit(
        (*parameters, jitter),
        None if "max_batch" in given else batch_limit(iterations),
        int(iterations.running.max()),
        count,
        _stalled(
            iterations,
            _columns(iterations, settings, np.arange(len(iterations)) >= np.argmax(rows)),
            parameters,
        ),
        _errors(observed[cut:], predicted),
        noise,
    )


def _columns(iterations: Iterations, settings: Settings, rows: Mask) -> dict[str, Floats]:
    by_field = {
        "step_base_ns": iterations.steps,
        "step_per_request_ns": iterations.decodes * (1 + settings.draft_tokens),
        "kv_read_per_token_ns": iterations.context,
        "prefill_base_ns": iterations.begun,
        "prefill_per_token_ns": iterations.tokens,
        "prefill_attention_ns": iterations.pairs,
        "input_check_ns": iterations.woken,
    }
    return {name: by_field[name][rows].astype(np.float64) for name in COSTS}


def _matrix(columns: Mapping[str, Floats], names: list[str]) -> Floats:
    """The columns of these names beside each other; they may be none."""
    return np.reshape([columns[name] for name in names], (len(names), len(columns[COSTS[0]]))).T


def _estimate(
    columns: Mapping[str, Floats],
    observed: Floats,
    start: Mapping[str, float],
    given: Collection[str],
    draw: np.random.Generator,
) -> tuple[Parameter, ...]:
    """Each of COSTS, in that order."""
    free = [name for name in COSTS if name not in given and np.count_nonzero(columns[name]) > SELDOM]
    rest = observed - sum(start[name] * columns[name] for name in COSTS if name not in free)
    matrix = _matrix(columns, free)
    weights, sigma, _ = _weights(matrix, rest)
    kept, confused = _separable(free, matrix * weights[:, None], sigma)
    rest = rest - sum(start[name] * columns[name] for name in confused)
    bounds: dict[str, float] = {}
    costs = low = high = np.zeros(0)
    while kept:
        matrix = _matrix(columns, kept)
        weights, _, _ = _weights(matrix, rest)
        costs, low, high = _bootstrapped(matrix * weights[:, None], rest * weights, draw)
        nothing = [at for at, name in enumerate(kept) if low[at] <= 0 and name != COSTS[0]]
        if not nothing:
            break
        least = min(nothing, key=lambda at: costs[at] * matrix[:, at].sum())
        bounds[kept.pop(least)] = float(high[least])
    found = {
        name: Parameter(name, float(costs[at]), "fitted", float(low[at]), float(high[at]))
        for at, name in enumerate(kept)
    }
    found |= {name: Parameter(name, 0.0, "none_seen", 0.0, most) for name, most in bounds.items()}
    for name in COSTS:
        if name in given:
            found[name] = Parameter(name, start[name], "given")
        elif name not in found:
            status: Status = "not_told_apart" if name in confused else "seldom_seen"
            found[name] = Parameter(name, start[name], status, moves_with=confused.get(name))
    base = found[COSTS[0]]
    if base.status == "fitted" and base.value < 1:  # a step that takes no time never lets time pass
        found[COSTS[0]] = Parameter(base.field, 1.0, "fitted", base.low, base.high)
    return tuple(found[name] for name in COSTS)


def _mended(
    columns: dict[str, Floats], observed: Floats, follows: Mask, given: Mapping[str, float]
) -> tuple[dict[str, Floats], Floats]:
    """Rows with those added to them that began late. `follows`: a row begins where the one before ended."""
    follows[0] = False
    for _ in range(_ROUNDS):
        known = sum((cost * columns[name] for name, cost in given.items()), np.zeros(len(observed)))
        matrix = _matrix(columns, [name for name in COSTS if name not in given and columns[name].any()])
        _, sigma, predicted = _weights(matrix, observed - known)
        short = follows & (observed - known < (1 - SHORT * sigma) * predicted)
        if not short.any():
            break
        starts = np.flatnonzero(~short)
        columns = {name: np.add.reduceat(column, starts) for name, column in columns.items()}
        observed, follows = np.add.reduceat(observed, starts), follows[starts]
    return columns, observed


def _weights(matrix: Floats, observed: Floats) -> tuple[Floats, float, Floats]:
    """What each row is to be multiplied with; the robust standard deviation of the relative residuals; X b."""
    typical = np.abs(matrix).max(axis=0)
    floor = _LEAST_SHARE * float(np.median(np.abs(observed)))
    predicted = np.full(len(observed), float(np.median(observed)))
    huber = np.ones(len(observed))
    sigma = 0.0
    for _ in range(_ROUNDS):
        weights = np.sqrt(huber) / np.maximum(predicted, floor)
        costs = (
            np.linalg.lstsq(matrix * weights[:, None] / typical, observed * weights, rcond=1e-10)[0] / typical
        )
        predicted = matrix @ costs
        off = (observed - predicted) / np.maximum(predicted, floor)
        sigma = max(float(np.subtract(*np.percentile(off, (75, 25)))) / _NORMAL_IQR, 1e-9)
        huber = np.minimum(1.0, HUBER * sigma / np.maximum(np.abs(off), 1e-300))
    return np.sqrt(huber) / np.maximum(predicted, floor), sigma, predicted


def _separable(names: list[str], weighted: Floats, sigma: float) -> tuple[list[str], dict[str, str]]:
    """The names whose cost can be told, and of the others, with which of these they move."""
    kept: list[int] = []
    confused: dict[str, str] = {}
    for at, name in enumerate(names):
        column = weighted[:, at]
        alone = column
        if kept:
            before = weighted[:, kept] / np.linalg.norm(weighted[:, kept], axis=0)
            shares = np.linalg.lstsq(before, column, rcond=1e-10)[0]
            alone = column - before @ shares
        share = float(column[column > 0].mean())  # of an iteration's time, for a cost of 1
        error = sigma / max(float(np.linalg.norm(alone)), 1e-9 * float(np.linalg.norm(column)))
        if kept and error * share > SEPARABLE_ERROR:
            confused[name] = names[kept[int(np.argmax(np.abs(shares)))]]
        else:
            kept.append(at)
    return [names[at] for at in kept], confused


def _bootstrapped(
    weighted: Floats, observed: Floats, draw: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """(costs, low, high): least squares without negative costs, and 95 % intervals over blocks of rows."""
    scale = np.linalg.norm(weighted, axis=0)
    rows = np.array_split(np.arange(len(observed)), min(BLOCKS, len(observed)))
    scaled = weighted / scale
    squares = np.array([scaled[some].T @ scaled[some] for some in rows])
    products = np.array([scaled[some].T @ observed[some] for some in rows])
    costs = _solve(squares.sum(axis=0), products.sum(axis=0))
    again = np.empty((RESAMPLES, len(costs)))
    for one in range(RESAMPLES):
        chosen = draw.integers(0, len(rows), len(rows))
        again[one] = _solve(squares[chosen].sum(axis=0), products[chosen].sum(axis=0))
    low, high = np.percentile(again, (2.5, 97.5), axis=0)
    return costs / scale, low / scale, high / scale


def _solve(squares: Floats, products: Floats) -> Floats:
    """The b >= 0 of the least b' S b - 2 b' p: as |L' b - L^-1 p|^2 with S = L L'."""
    from scipy.optimize import nnls  # here, since it takes longer to import than all the rest

    root = np.linalg.cholesky(squares + 1e-12 * np.trace(squares) * np.eye(len(squares)))
    solved: Floats = nnls(root.T, np.linalg.solve(root, products))[0]
    return solved


def _door(joins: Ints, draw: np.random.Generator) -> Parameter | None:
    """The time h with begin(k - 1) - a <= h < begin(k) - a for the most requests; None for fewer than LEAST_JOINS of them."""
    if len(joins) < LEAST_JOINS:
        return None
    again = [_agreed(joins[draw.integers(0, len(joins), len(joins))]) for _ in range(RESAMPLES)]
    low = float(np.percentile([one[0] for one in again], 2.5))
    high = float(np.percentile([one[1] for one in again], 97.5))
    if low <= 0:
        return Parameter("input_check_ns", 0.0, "none_seen", 0.0, high)
    return Parameter("input_check_ns", sum(_agreed(joins)) / 2, "fitted", low, high)


def _agreed(joins: Ints) -> tuple[float, float]:
    """From where to where the times lie that most requests allow."""
    lows, highs = np.sort(joins[:, 0]), np.sort(joins[:, 1])
    times = np.concatenate(([0], lows[lows > 0]))
    counts = np.searchsorted(lows, times, side="right") - np.searchsorted(highs, times, side="right")
    best = int(np.argmax(counts))
    return float(times[best]), float(highs[np.searchsorted(highs, times[best], side="right")])


def _predict(columns: Mapping[str, Floats], parameters: tuple[Parameter, ...]) -> Floats:
    predicted: Floats = np.sum([one.value * columns[one.field] for one in parameters], axis=0)
    return predicted


def _spread(
    observed: Floats,
    predicted: Floats,
    settings: Settings,
    given: Collection[str],
    draw: np.random.Generator,
) -> tuple[Parameter, tuple[float, ...]]:
    """The jitter, and the noise's quantiles."""
    residuals = observed - predicted
    found = spread(residuals, predicted)
    noise = () if "noise" in given else found.noise
    if "jitter" in given:
        return Parameter("jitter", settings.jitter, "given"), noise
    blocks = np.array_split(np.arange(len(residuals)), BLOCKS)
    again = []
    for _ in range(RESAMPLES // 3):
        rows = np.concatenate([blocks[at] for at in draw.integers(0, BLOCKS, BLOCKS)])
        again.append(spread(residuals[rows], predicted[rows]).jitter)
    most = 0.99 - settings.jitter_load
    low, high = np.percentile(again, (2.5, 97.5))
    low, value, high = (min(most, float(one)) for one in (low, found.jitter, high))
    return Parameter("jitter", value, "fitted", low, high), noise


def _stalled(
    iterations: Iterations, columns: Mapping[str, Floats], parameters: tuple[Parameter, ...]
) -> float:
    predicted = _predict(columns, parameters)
    observed = iterations.ns[-len(predicted) :].astype(np.float64)
    return float((observed - predicted)[observed > STALL * predicted].sum() / observed.sum())


def _errors(observed: Floats, predicted: Floats) -> Errors:
    off = np.abs(predicted - observed) / observed
    spread = float(((observed - observed.mean()) ** 2).sum())
    r2 = 1 - float(((observed - predicted) ** 2).sum()) / spread if spread else 0.0
    return Errors(len(observed), float(np.median(off)), float(np.percentile(off, 90)), r2)
