"""The percentile estimators of histograms, by name."""

from __future__ import annotations

from inferometer.telemetry.metrics import four_phase, linear, smooth
from inferometer.telemetry.metrics.statistics import Estimator

DEFAULT = "four-phase"
"""Of the exports, whose readers expect AIPerf's numbers."""
BEST = "smooth"
"""Of the figures of a run: the one with the smallest error (docs/server-metrics-export.md)."""
ESTIMATORS: dict[str, Estimator] = {
    "four-phase": four_phase.estimate,
    "smooth": smooth.estimate,
    "linear": linear.estimate,
}
