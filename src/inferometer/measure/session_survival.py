"""How long sessions last, with those that were begun and did not finish.

Figures of sessions are those of finished ones. Sessions that a load's end cut short, or that broke off, are no random choice:
the longer a session lasts, the more often it is among them. Of each it is known that it lasted longer than w, from its start to
the end of its last step or to the instant at which its next step was due: a censored observation. Durations d of finished ones
and waits w of the others together give the product-limit estimate (Kaplan and Meier, 1958) of the share that lasts longer:

    S(t) = product over finished d_i <= t of (1 - 1 / r_i),    r_i: sessions with a duration or a wait of at least d_i

Percentiles and mean of this distribution are compared with those of the finished sessions alone. What S leaves behind the last
duration is taken to last as long as the longest wait, so that they are lower bounds then. The estimate takes the unfinished
ones to be like the others that had lasted as long; without any, it is the finished ones' own distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats
from inferometer.measure.session_steps import SessionRuns
from inferometer.measure.stats import percentile
from inferometer.units import NS_PER_MS

_NOTHING = 1e-9
_Z95 = 1.96
POINTS = {"P50": 0.5, "P90": 0.9, "P99": 0.99}
"""Those that reports show, beside the mean."""


@dataclass(frozen=True, slots=True)
class Survival:
    """The figure of the duration that unfinished sessions lengthen most (`point`): `stated_ms` of the `finished` ones, of which
    as many others may have up to `upper_ms` by chance, `ms` with the `unfinished`; `bound`: some of these waited longer than
    all finished ones lasted."""

    point: str
    stated_ms: float
    upper_ms: float
    ms: float
    bound: bool
    finished: int
    unfinished: int

    @property
    def share(self) -> float:
        """By how much it is longer than chance makes it, as a share."""
        return max(0.0, self.ms / self.upper_ms - 1.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The product-limit estimate: `masses`, by which S falls at each of the ascending `values`; what is left of it behind the
    last, the `rest`, is taken to stand at `last`."""

    values: Floats
    masses: Floats
    rest: float
    last: float

    @property
    def bound(self) -> bool:
        """Whether S does not fall to 0: the highest percentiles and the mean are lower bounds."""
        return self.rest > _NOTHING

    def percentile(self, share: float) -> float:
        """Interpolated as that of samples is, which it is where all masses are equal."""
        least = float(self.masses[0])  # a session's own, before any is left out
        if least >= 1.0:
            return float(self.values[0])
        places = np.concatenate((np.cumsum(self.masses) - self.masses, [1.0 - self.rest]))
        return float(np.interp(share, places / (1.0 - least), np.append(self.values, self.last)))

    def mean(self) -> float:
        """The area under S, up to the longest of all."""
        return float((self.masses * self.values).sum() + self.rest * self.last)


def survival(runs: SessionRuns) -> Survival | None:
    """Of the sessions of a record; None where none finished, or all did."""
    waits_ms = _lasted_ms(runs)
    finished = np.bincount(runs.run[~runs.ok], minlength=len(runs)) == 0
    done, open_ = np.sort(waits_ms[finished]), waits_ms[~finished]
    if not len(done) or not len(open_) or done[0] <= 0:
        return None
    of_all = estimate(done, open_)
    stated = {
        name: (percentile(done, at), percentile(done, _upper(at, len(done))), of_all.percentile(at))
        for name, at in POINTS.items()
    }
    mean = float(done.mean())
    stated["mean"] = mean, mean, of_all.mean()
    point, (own, upper, longer) = max(stated.items(), key=lambda one: one[1][2] / one[1][1])
    return Survival(point, own, upper, longer, of_all.bound, len(done), len(open_))


def _upper(share: float, count: int) -> float:
    """The place of a percentile's upper limit of 95 %, by the normal approximation of its rank: a median between two humps is
    anywhere between them, with or without a few unfinished sessions."""
    return min(1.0, share + _Z95 * float(np.sqrt(share * (1.0 - share) / count)))


def _lasted_ms(runs: SessionRuns) -> Floats:
    """Of each session, from its start to its end, as far as it is known to have lasted."""
    if not len(runs):
        return np.zeros(0)
    due = np.where(~runs.sent & runs.ready, runs.due_ns, 0)
    reached = np.maximum.reduceat(np.maximum(runs.end_ns, due), runs.offsets[:-1])
    lasted: Floats = (reached - runs.start_ns) / NS_PER_MS
    return lasted


def estimate(done: Floats, waits: Floats) -> Estimate:
    """Of ascending durations and of waits in any order."""
    risk = len(done) - np.searchsorted(done, done) + len(waits) - np.searchsorted(np.sort(waits), done)
    _, first, tied = np.unique(done, return_index=True, return_counts=True)
    left = np.cumprod(1.0 - tied / risk[first])
    falls = -np.diff(np.concatenate(([1.0], left)))
    last = max(float(done[-1]), float(waits.max(initial=0.0)))
    return Estimate(done, np.repeat(falls / tied, tied), float(left[-1]), last)
