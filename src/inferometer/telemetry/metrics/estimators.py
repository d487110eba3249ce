"""The percentile estimators of histograms, by name."""

from __future__ import annotations

from inferometer.telemetry.metrics import four_phase, linear, smooth
from inferometer.telemetry.metrics.statistics import Estimator

DEFAULT = "four-phase"
ESTIMATORS: dict[str, Estimator] = {
    "four-phase": four_phase.estimate,
    "smooth": smooth.estimate,
    "linear": linear.estimate,
}
