"""Draft 4.5.3: load time and latency of the first request, against the engine's setting `load` and the median of 300 starts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.headlines.headline import TRUTH_SEED, Headline, Truth
from benchmarks.played import plan_of, played
from inferometer.plan.procedure_parameters import Tests
from inferometer.procedures import cold_start
from inferometer.procedures.setup import Setup
from inferometer.simulation.engine import choose
from inferometer.units import NS_PER_S

STARTS, QUICK_STARTS = 300, 20


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """The default number of starts."""
    del preset, quick
    return {}


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """The median of many starts; its error is that of a median, sqrt(pi / 2) s / sqrt(n)."""
    starts = QUICK_STARTS if quick else STARTS
    setup = Setup(plan_of(TRUTH_SEED), Tests.model_validate({"cold-start": {"starts": starts}}))
    done = played(preset, cold_start.steps(setup), most=4 * starts)
    (table,) = cold_start.results(setup, done).tables
    found = {"load_time": Truth(choose(preset).settings.load_ns / NS_PER_S)}
    for name, column in (("cold_start_latency", 2), ("second_ttft", 3)):
        values = [float(row[column] or 0) for row in table.rows]
        error = statistics.stdev(values) * (1.5708 / starts) ** 0.5
        found[name] = Truth(statistics.median(values), error)
    return found


HEADLINE = Headline("cold-start", parameters, truths, ("a100-8b", "h100-70b-tp4", "m4-laptop-8b"))
