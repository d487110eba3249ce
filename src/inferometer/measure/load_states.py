"""How many states of the load a run has met, and what it may have missed.

Latency follows the load, and the load has a memory: the number of requests in flight, at each send, is a correlated series. Its
effective size E (dependence.py) is how many independent states of the load a run has met. Three things follow.

**Whether E can be believed.** A short run underestimates a long memory, for it has not seen the memory's end. Two cases are
told apart by the requests' own lives. Poisson arrivals to a server without a queue are remembered as long as requests live:
over a span T there are T E[S] / E[S^2] such lives, S the time from send to end (M/G/infinity; Takacs 1962). A server near
saturation remembers much longer: work is left over when the requests that brought it are gone, and the longer it lasts the
fewer bursts a run sees of it. So E is believed with

    E >= STATES_LEAST            if E >= LIFE_SHARE T E[S] / E[S^2]: the load is forgotten with its requests
    E >= BACKLOG_STATES          otherwise: E is too large by a factor of two or more in an M/M/1 queue below that

**How large E is at least.** An estimated correlation is too small by about 4 / n (Marriott and Pope 1954), which makes E too
large by 2 for a first-order autoregression, and it has a standard error of sqrt(E): E_low = E - 2 - 1.64 sqrt(E - 2).

**What the run may have missed.** States that make up a share u of the time are all missed with probability (1 - u)^E_low. With
u = 1 - MISSED^(1 / E_low) that is MISSED; together with E's own limit the chance is about 1 %. The intervals of latencies that
include a wait for the server allow for it (stats.py): in a share u of the time every request may wait as long as the longest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from inferometer.measure.dependence import binned, long_run_variance
from inferometer.measure.record import Floats

STATES_LEAST = 10.0
"""Below this, five blocks would hold fewer than two states each."""

LIFE_SHARE = 0.35
"""The engine at 50 %, 75 % and 90 % of its capacity has 0.75, 0.6 and 0.5 states a life in the median run, M/M/1 at rho 0.5 to
0.95 has 0.25 to 0.05, for every departure there leaves the queue behind."""

BACKLOG_STATES = 65.0
"""An M/M/1 queue at rho 0.8 shows 26 states in 1,000 requests in the median run, 66 in one of a hundred, and has 12."""

MISSED = 0.25
ONE_SIDED_95 = 1.6448536269514722
BIAS = 2.0


@dataclass(frozen=True, slots=True)
class LoadStates:
    """`count`: independent states met; `believed`: whether the run is long enough to tell; `unseen`: a share of the time that
    may have shown other states. The default is samples that no load connects."""

    count: float = math.inf
    believed: bool = True
    unseen: float = 0.0


INDEPENDENT = LoadStates()


def load_states(in_flight: Floats, lives: Floats, span: float) -> LoadStates:
    """The states of a run with `in_flight` requests right after each send, whose requests took `lives` from send to end, over
    a `span` from the first send to the last, in the unit of `lives`."""
    sends = len(in_flight)
    variance = float(in_flight.var()) if sends > 2 else 0.0
    if variance == 0:  # a load that never changes has one state, and every request meets it anew
        return LoadStates(float(sends), True, unseen_share(sends)) if sends else INDEPENDENT
    series = binned(in_flight)
    effective = min(len(series) * variance / max(long_run_variance(series), 1e-300), float(sends))
    count = max(effective - BIAS, 0.0)
    remembered = span * float(lives.mean()) / float((lives * lives).mean()) if lives.any() else math.inf
    believed = count >= (STATES_LEAST if count >= LIFE_SHARE * remembered else BACKLOG_STATES)
    return LoadStates(count, believed, unseen_share(count - ONE_SIDED_95 * math.sqrt(count)))


def unseen_share(count: float) -> float:
    """The share of the time of which `count` independent instants show nothing with probability MISSED."""
    return float(1 - MISSED ** (1 / max(count, 1.0)))
