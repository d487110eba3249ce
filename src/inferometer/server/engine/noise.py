"""Time that an iteration takes more or less than its costs, whatever it does: the setting `noise`.

A distribution is given by its quantiles at PROBABILITIES, in ns, and is drawn from by interpolating linearly between them. It
stands beside `jitter`, which is in proportion to the costs: a host that is interrupted for 3 ms loses 3 ms, in a long iteration
as in a short one.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

PROBABILITIES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1.0)
LONGEST_NS = 86_400 * 1e9
"""Of any time that an engine or a client is given: a day. No sum of products of these leaves what a float holds."""
LEAST_SHARE = 0.1
"""No iteration is done in less than this share of its costs, however far below 0 the noise reaches."""
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_TIME = re.compile(r"(-?[0-9.]+(?:e[+-]?\d+)?)(ns|us|ms|s)")


@lru_cache(maxsize=64)
def quantiles(text: str) -> tuple[float, ...]:
    """The quantiles (ns) that a setting spells, `-1ms,-0.2ms,...`; none for an empty one. Raises ValueError."""
    if not text:
        return ()
    forms = [_TIME.fullmatch(word.strip()) for word in text.split(",")]
    if len(forms) != len(PROBABILITIES) or None in forms:
        raise ValueError(
            f"noise has {len(PROBABILITIES)} times with their units, parted by commas: the quantiles at "
            f"{', '.join(f'{100 * one:g}' for one in PROBABILITIES)} %"
        )
    values = tuple(float(form[1]) * _UNITS[form[2]] for form in forms if form is not None)
    if not all(abs(value) <= LONGEST_NS for value in values) or list(values) != sorted(values):
        raise ValueError("the quantiles of noise must ascend, and be at most a day")
    return values


def spelled(values: Sequence[float]) -> str:
    """Quantiles (ns) as the setting has them, to the ns and four digits."""
    rounded = [round(float(f"{one:.4g}")) for one in values]
    return ",".join(f"{one / 1000:g}us" for one in rounded)


def drawn(values: Sequence[float], draw: random.Random) -> float:
    """One value (ns) of the distribution with these quantiles."""
    at = draw.random()
    above = min(bisect_right(PROBABILITIES, at), len(PROBABILITIES) - 1)
    low, high = PROBABILITIES[above - 1], PROBABILITIES[above]
    part = (at - low) / (high - low)
    return values[above - 1] + part * (values[above] - values[above - 1])
