"""Plain interpolation: the observations of a bucket lie evenly between its bounds, as PromQL's histogram_quantile has it.

Those above the last finite bound lie at that bound.
"""

from __future__ import annotations

import numpy as np

from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Floats, Observed


def estimate(observed: Observed) -> Floats | None:
    """The nine percentiles, None where there is nothing to estimate from."""
    number = int(np.isfinite(observed.bounds).sum())
    if observed.count <= 0 or number == 0 or observed.cumulative[-1] <= 0:
        return None
    edges = np.concatenate([[min(0.0, float(observed.bounds[0]))], observed.bounds[:number]])
    cumulative = np.concatenate([[0.0], np.maximum.accumulate(observed.cumulative[:number])])
    ranks = np.array(PERCENTILES) / 100 * observed.cumulative[-1]
    # The first edge at which a rank is reached: among equal counts, the lowest bound.
    upper = np.clip(np.searchsorted(cumulative, ranks, "left"), 1, number)
    held = cumulative[upper] - cumulative[upper - 1]
    share = np.clip((ranks - cumulative[upper - 1]) / np.where(held > 0, held, 1.0), 0.0, 1.0)
    inside = edges[upper - 1] + (edges[upper] - edges[upper - 1]) * share
    found: Floats = np.where(ranks > cumulative[-1], edges[-1], inside)
    return found
