"""95 % intervals of draft 5.6's figures, from the requests of the mix and of the isolated runs (measure/jackknife.py).

The runs are independent of each other, and each loses one stretch of time after the other; the curves of what lengths cost are
fitted anew each time. What holds for the mix in fairness.py is worked out here in the same way, of fewer requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inferometer.documents.results import Interval
from inferometer.measure.jackknife import jackknife_intervals
from inferometer.measure.jain import Shares, jain_of_shares
from inferometer.measure.length_cost import by_length, cost_of, slowdowns_of
from inferometer.measure.record import Ints
from inferometer.measure.request_times import RequestTimes

JAIN, JAIN_ALONE = "jain", "jain_alone"


def fairness_intervals(
    names: Sequence[str], mixed: RequestTimes | None, alone: Mapping[str, RequestTimes | None]
) -> dict[str, Interval]:
    """By the names of the test's values. `names`: of the classes, by their numbers in the mix; `alone`: their isolated runs.
    Empty where a class has none."""
    runs = [alone.get(name) for name in names]
    isolated = [_answered(run) for run in runs if run is not None]
    if mixed is None or len(isolated) < len(names) or not names:
        return {}
    together = _answered(mixed)

    def figures(places: Sequence[Ints]) -> Mapping[str, float | None]:
        left = together.where(places[0])
        return _figures(
            names,
            [left.where(np.flatnonzero(left.classes == number)) for number in range(len(names))],
            [run.where(kept) for run, kept in zip(isolated, places[1:], strict=True)],
        )

    found = jackknife_intervals([len(together), *map(len, isolated)], figures)
    most = {name: 1.0 if name in (JAIN, JAIN_ALONE) else np.inf for name in found}
    return {name: (max(0.0, low), min(most[name], high)) for name, (low, high) in found.items()}


def _answered(run: RequestTimes) -> RequestTimes:
    """Its requests with a TTFT."""
    return run.where(np.flatnonzero(~np.isnan(run.ttft_ms)))


def _figures(
    names: Sequence[str], mixed: Sequence[RequestTimes], alone: Sequence[RequestTimes]
) -> dict[str, float | None]:
    in_the_mix: list[Shares | None] = []
    by_themselves: list[Shares | None] = []
    found: dict[str, float | None] = {}
    for name, here, isolated in zip(names, mixed, alone, strict=True):
        groups = by_length(isolated.prompt, isolated.ttft_ms)
        cost = cost_of(groups)
        if cost is None:
            return {}
        shares = slowdowns_of(by_length(here.prompt, here.ttft_ms), cost)
        apart = slowdowns_of(groups, cost)
        in_the_mix.append(shares)
        by_themselves.append(apart if apart is None or not len(here) else apart.weighed(len(here)))
        found[f"slowdown_{name}"] = None if shares is None else shares.mean
        if len(here) and len(isolated):
            found[f"inflation_{name}"] = float(np.median(here.ttft_ms)) / float(np.median(isolated.ttft_ms))
    found[JAIN] = jain_of_shares([one for one in in_the_mix if one is not None])
    found[JAIN_ALONE] = jain_of_shares([one for one in by_themselves if one is not None])
    return found
