"""A fit in a terminal or a pipe, at most 80 columns: the settings, how well they predict, and what to type to use them."""

from __future__ import annotations

import textwrap

from msgspec.structs import asdict

from inferometer.documents.fit import ComparedFigure, FitDocument, FittedBatch, FittedParameter, NoiseQuantile
from inferometer.metrics.catalogue import METRICS, RATES
from inferometer.report.figures import ascii_only, figure
from inferometer.report.tables import text_table

WIDTH = 79
SHOWN = (0.05, 0.5, 0.95, 0.99, 1.0)
"""Shares of iterations whose noise is shown."""

RESERVATIONS = {
    "simulated": "That run was itself simulated.",
    "incomplete": "That run was interrupted or lost a worker; the simulation goes to the plan's end.",
    "invalid": "That run is INVALID: its report explains why its times are not reliable.",
    "irregular": "{value:.1%} of the tokens did not arrive one iteration after the previous one (the client was late, the"
    " server held text back or preempted requests); iterations where most streams disagree are not used.",
    "stalled": "{value:.1%} of the time is the excess of iterations that took more than twice as long as fitted: something"
    " stalled the engine or the client. The simulated engine stalls as often, but never in a row.",
    "over_budget": "In {value:.1%} of the iterations more prompt tokens were computed than token_budget allows: set the"
    " engine's value with --set token_budget=N.",
    "failed": "{value:.1%} of the requests did not succeed. Those without a token are missing from the iterations.",
    "cached": "{value:.1%} of the prompt tokens came from a prefix cache, which the simulated engine lacks: add --set"
    " prefix_caching=on.",
}
"""What makes a fit less reliable, by its code in fit.json."""

_NOT_ESTIMATED = {
    "not_told_apart": "not separable from {moves_with}",
    "seldom_seen": "too few iterations to estimate",
    "given": "given",
}
_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))


def lines(fit: FitDocument, report: str) -> list[str]:
    """A fit, line by line. `report`: where the simulated run's report is."""
    iterations, held = fit.iterations, fit.held_out
    said = _wrapped(
        f"Fitted to {fit.run.id}: {iterations.used} of {iterations.seen} iterations (the others are the"
        f" warm-up's, or could not be interpreted), their tokens within {iterations.within_ms:.3g} ms."
    )
    for one in fit.reservations:
        said += _wrapped("! " + RESERVATIONS[one.code].format(**asdict(one)), "  ")
    parameters = [("setting", "value", "95 % interval"), *map(_parameter, fit.parameters)]
    said += ["", *text_table([*parameters, _batch(fit.batch)], [False, True, False])]
    said += _noise(fit.noise)
    said += ["", *_wrapped(
        f"Iteration times of the last {held.iterations}, predicted from the others: off by {held.median:.1%}"
        f" (median) and {held.p90:.1%} (P90); R2 {held.r2:.3f}."
    )]  # fmt: skip
    said += ["", "The run's own plan, simulated with these settings:", ""]
    figures = [("", "measured", "simulated", "difference"), *map(_figure, fit.comparison)]
    said += [*text_table(figures, [False, True, True, True]), "", "To use them, with simulate or serve:", ""]
    words = [f"--preset {fit.engine.preset}", *(f"--set {word}" for word in fit.engine.set)]
    said += [f"  {word} \\" for word in words[:-1]] + [f"  {words[-1]}"]
    return [*said, "", f"Report of the simulation: {report}"]


def _noise(quantiles: tuple[NoiseQuantile, ...]) -> list[str]:
    """The noise, by a few of its quantiles."""
    shown = [f"P{100 * one.share:g} {_value(one.ns, 'ns')}" for one in quantiles if one.share in SHOWN]
    if not shown:
        return []
    return ["", *_wrapped(f"Noise, what an iteration takes more than these: {', '.join(shown)}.")]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def _parameter(one: FittedParameter) -> tuple[str, str, str]:
    if one.status == "fitted":
        interval = f"{_value(one.low, one.unit)} to {_value(one.high, one.unit)}"
    elif one.status == "none_seen":
        interval = f"not detected: at most {_value(one.high, one.unit)}"
    else:
        interval = _NOT_ESTIMATED[one.status].format(moves_with=one.moves_with)
    return one.key, _value(one.value, one.unit), interval


def _value(value: float | None, unit: str | None) -> str:
    if value is None:
        return "-"
    if unit != "ns":
        return f"{value:.3g}"
    name, size = next((pair for pair in _UNITS if abs(value) >= pair[1]), _UNITS[-1])
    return f"{value / size:.4g} {name}"


def _batch(batch: FittedBatch) -> tuple[str, str, str]:
    largest = (
        "requests queued while it was full" if batch.seen else f"no queue observed: at least {batch.largest}"
    )
    return "max_batch", str(batch.max_batch), largest


def _figure(one: ComparedFigure) -> tuple[str, str, str, str]:
    name, statistic = one.metric, one.statistic
    title = RATES[name].short if statistic is None else f"{METRICS[name].short} {statistic.upper()} ms"
    measured, simulated = (ascii_only(figure(value)) for value in (one.measured, one.simulated))
    return title, measured, simulated, "-" if one.difference is None else f"{one.difference:+.1%}"
