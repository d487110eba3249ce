"""`fit.json`: an engine's costs, fitted to a run, and how a simulation with them compares. Shares lie between 0 and 1."""

from __future__ import annotations

from typing import Final, Literal

from inferometer.documents.part import Part

SCHEMA: Final = "inferometer/fit/1"

ParameterStatus = Literal["fitted", "none_seen", "not_told_apart", "seldom_seen", "given"]
ReservationCode = Literal[
    "simulated", "incomplete", "invalid", "irregular", "stalled", "over_budget", "failed", "cached"
]


class FittedRun(Part, frozen=True):
    """The run that was fitted."""

    id: str
    plan_hash: str
    model: str
    simulated: bool


class SimulatedRun(Part, frozen=True):
    """The run of the same plan on the fitted engine, in whose folder the document lies."""

    id: str


class FittedEngine(Part, frozen=True):
    """What to give to `simulate` or `serve`, as `--preset` and `--set`."""

    preset: str
    set: tuple[str, ...]


class FittedParameter(Part, frozen=True):
    """One setting of the engine. `low`, `high`: its 95 % interval; `moves_with`: the setting it cannot be separated from."""

    key: str
    unit: Literal["ns"] | None
    value: float
    low: float | None
    high: float | None
    status: ParameterStatus
    moves_with: str | None


class NoiseQuantile(Part, frozen=True):
    """What an iteration takes more than its costs and its jitter, ns: a quantile, and the share below it."""

    share: float
    ns: float


class FittedBatch(Part, frozen=True):
    """The batch limit. `seen`: requests queued for it, otherwise it was not estimated; `largest`: the largest batch."""

    max_batch: int
    seen: bool
    largest: int


class IterationAccount(Part, frozen=True):
    """The iterations reconstructed from the record. `stalled`: share of the time beyond the prediction, of iterations that
    took over twice as long as predicted; `within_ms`: arrivals this close together belong to one iteration; `regular`: share
    of the tokens one iteration after the one before."""

    seen: int
    used: int
    stalled: float
    within_ms: float
    regular: float


class HeldOut(Part, frozen=True):
    """Iteration times of the last part, predicted from the others: |predicted - observed| / observed, and R^2."""

    iterations: int
    median: float
    p90: float
    r2: float


class ComparedFigure(Part, frozen=True):
    """A figure of the run and of its plan simulated. `difference`: simulated / measured - 1."""

    metric: str
    statistic: Literal["p50", "p90", "p99"] | None
    measured: float | None
    simulated: float | None
    difference: float | None


class Reservation(Part, frozen=True):
    """What makes the fit worth less than it looks, with its share and the limit of that."""

    code: ReservationCode
    value: float | None = None
    limit: float | None = None


class FitDocument(Part, frozen=True):
    """An engine fitted to a run."""

    schema: Literal["inferometer/fit/1"]
    version: str
    run: FittedRun
    simulation: SimulatedRun
    engine: FittedEngine
    parameters: tuple[FittedParameter, ...]
    batch: FittedBatch
    iterations: IterationAccount
    held_out: HeldOut
    comparison: tuple[ComparedFigure, ...]
    reservations: tuple[Reservation, ...]
    noise: tuple[NoiseQuantile, ...] = ()
