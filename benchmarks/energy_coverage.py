"""How often the interval of energy per token holds the truth, and what the meter's rate costs: seeded simulations.

A run is a server under an open load of 4 requests/s. Requests arrive at random (Poisson), in bursts (on for 5 s, off for 5 s,
on average), or at a rate that rises by half during the run; each lasts 4 s on average (exponential) and emits 50 tokens a
second. The power follows the number n in flight: P = 70 W + 600 W (1 - exp(-n / 16)), with noise of 10 W that lasts 1 s. The
meter reads the mean of the last second, as NVML does, or a counter of the energy, and stamps it up to 20 ms late. The truth is
the ratio of the expected energy and the expected tokens of such a run, from 120,000 s of simulated runs. `memory` is what
energy_figure is given as the load's memory: the mean latency, or 0 s, which is wrong here.

| column     | is                                                                                  |
| ---------- | ----------------------------------------------------------------------------------- |
| intervals  | share of the runs that have one                                                     |
| coverage   | share of those whose interval holds the truth; 95 % is the aim                      |
| half-width | half an interval's median length, as a share of the figure                          |
| energy     | mean and largest error of the run's energy against the simulated power, in percent  |

`python -m benchmarks.energy_coverage [RUNS]` prints the table of docs/power-and-energy.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inferometer.measure.energy_figure import EnergyFigure, Tokens, energy_figure
from inferometer.measure.power_series import PowerSeries
from inferometer.measure.record import Floats
from inferometer.telemetry.power.readings import Method
from inferometer.units import NS_PER_S

STEP_S = 0.02
RATE = 4.0
TOKENS_PER_S = 50.0
LATENCY_S = 4.0
LEAD_S = 60.0
"""Before a run, so that it starts in a steady state."""
MARGIN_S = 3.0
"""Before and after the span, while the meter reads."""
TRUTH_S = 120_000.0
INSIDE = slice(round(MARGIN_S / STEP_S), -round(MARGIN_S / STEP_S))


@dataclass(frozen=True)
class Case:
    """One row: the load, the run's length, and the meter."""

    load: str
    seconds: float
    memory_s: float
    method: Method
    hz: float


def in_flight(case: Case, random: np.random.Generator) -> Floats:
    """Requests in flight at each step of the run and its margins."""
    lead, inner = round((LEAD_S + MARGIN_S) / STEP_S), round(case.seconds / STEP_S)
    steps = lead + inner + round(MARGIN_S / STEP_S)
    rate = np.full(steps, RATE)
    if case.load == "bursts":
        edges = np.cumsum(random.exponential(5.0, int(steps * STEP_S) + 50))
        rate = np.where(np.searchsorted(edges, np.arange(steps) * STEP_S) % 2 == 0, 2 * RATE, 0.0)
    elif case.load == "rising":
        rate *= np.interp(np.arange(steps), [lead, lead + inner], [0.8, 1.2])
    starts = np.repeat(np.arange(steps), random.poisson(rate * STEP_S))
    ends = starts + np.ceil(random.exponential(LATENCY_S, len(starts)) / STEP_S).astype(np.int64)
    change = np.bincount(starts, minlength=steps + 1) - np.bincount(
        np.minimum(ends, steps), minlength=steps + 1
    )
    return np.cumsum(change)[round(LEAD_S / STEP_S) : steps].astype(np.float64)


def drawn_power(flying: Floats, random: np.random.Generator) -> Floats:
    """Watts at each step."""
    noise = np.repeat(random.normal(0.0, 10.0, int(len(flying) * STEP_S) + 1), round(1 / STEP_S))
    return 70.0 + 600.0 * (1 - np.exp(-flying / 16)) + noise[: len(flying)]


def metered(case: Case, power: Floats, random: np.random.Generator) -> PowerSeries:
    """What the meter reads from a second after the beginning on, stamped a little late."""
    charge = np.concatenate([[0.0], np.cumsum(power * STEP_S)])
    read = np.arange(1.0, len(power) * STEP_S - 0.05, 1 / case.hz)
    at = np.round(read / STEP_S).astype(np.int64)
    second = round(1 / STEP_S)
    t_ns = ((read + random.uniform(0, 0.02, len(read))) * NS_PER_S).astype(np.int64)
    watts = charge[at] - charge[at - second]
    joules = charge[at] if case.method == "counter" else np.full(len(at), np.nan)
    return PowerSeries("nvml", "accelerator", "0", case.method, t_ns, watts, joules)


def measured(case: Case, random: np.random.Generator) -> tuple[EnergyFigure, float]:
    """The figure of one run, and its energy by the simulated power."""
    flying = in_flight(case, random)
    power = drawn_power(flying, random)
    counts = random.poisson(flying * TOKENS_PER_S * STEP_S)
    t_ns = ((np.arange(len(flying)) + 0.5) * STEP_S * NS_PER_S).astype(np.int64)
    figure = energy_figure(
        [metered(case, power, random)],
        round(MARGIN_S * NS_PER_S),
        round((MARGIN_S + case.seconds) * NS_PER_S),
        output=Tokens(t_ns, counts),
        memory_s=case.memory_s,
    )
    return figure, float(power[INSIDE].sum() * STEP_S)


def truth(case: Case) -> float:
    """Joules per token over many runs."""
    random = np.random.default_rng(7)
    joules = tokens = 0.0
    for _ in range(math.ceil(TRUTH_S / case.seconds)):
        flying = in_flight(case, random)
        joules += float(drawn_power(flying, random)[INSIDE].sum())
        tokens += float(flying[INSIDE].sum()) * TOKENS_PER_S
    return joules / tokens


def cases() -> Iterator[Case]:
    """The rows of the table."""
    methods: tuple[Method, ...] = ("counter", "power")
    for load in ("poisson", "bursts", "rising"):
        for seconds, memory_s in ((60.0, 0.0), (120.0, LATENCY_S), (600.0, LATENCY_S)):
            for method in methods:
                yield Case(load, seconds, memory_s, method, 1.0)
    yield Case("bursts", 60.0, 0.0, "power", 10.0)


def row(case: Case, runs: int) -> str:
    """One row of the table."""
    expected = truth(case)
    held = with_interval = 0
    widths, errors = [], []
    for number in range(runs):
        figure, spent = measured(case, np.random.default_rng([number, round(case.seconds), len(case.load)]))
        assert figure.joules is not None
        assert figure.joules_per_output_token is not None
        errors.append(100 * (figure.joules / spent - 1))
        interval = figure.joules_per_output_token.interval
        if interval is not None:
            with_interval += 1
            held += interval[0] <= expected <= interval[1]
            widths.append((interval[1] - interval[0]) / 2 / figure.joules_per_output_token.value)
    cells = [
        case.load, f"{case.seconds:.0f} s", f"{case.memory_s:.0f} s", f"{case.method}, {case.hz:.0f} Hz",
        f"{100 * with_interval / runs:.0f} %",
        f"{100 * held / with_interval:.1f} %" if with_interval else "-",
        f"{100 * float(np.median(widths)):.1f} %" if widths else "-",
        f"{np.mean(errors):+.2f} %, {np.abs(errors).max():.2f} %",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print("| load | run | memory | meter | intervals | coverage | half-width | energy: mean, largest error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in cases():
        print(row(case, runs), flush=True)


if __name__ == "__main__":
    main()
