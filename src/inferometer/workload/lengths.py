"""Drawing lengths: one number of tokens from a distribution of `plan/lengths.py`.

Everything comes from one `random.Random`, so a seed gives the same lengths on every machine. What each kind takes from it,
in this order, decides what the draws after it are:

| kind      | taken from the generator       | then                                                |
| --------- | ------------------------------ | --------------------------------------------------- |
| fixed     | nothing                        |                                                     |
| uniform   | `randint(low, high)`           | clamped                                             |
| normal    | `normalvariate(mean, std)`     | rounded to the nearest integer, clamped             |
| lognormal | `lognormvariate(mu, sigma)`    | rounded to the nearest integer, clamped (draft A.2) |
| - redrawn | the same, again and again      | rounded, until it lies within the bounds            |
| histogram | `choices(values, weights)`     | clamped                                             |
| quantiles | `random()`                     | Q of it, rounded to the nearest integer, clamped    |
| empirical | nothing                        | not here: the text decides (texts.py)               |

`normalvariate` rather than `gauss`: the latter keeps every other value for its next call, so what a draw takes would
depend on the one before. No length is below 1 token.
"""

from __future__ import annotations

import random

from inferometer.plan.lengths import (
    Distribution,
    Empirical,
    Fixed,
    Histogram,
    Lognormal,
    Normal,
    Quantiles,
    Uniform,
)


def draw(length: Distribution, rng: random.Random, *, truncate: bool = False) -> int:
    """One length in tokens, 1 or more. `truncate` drops the fraction of a normal draw instead of rounding it."""
    match length:
        case Fixed(tokens=tokens):
            return tokens
        case Uniform(low=low, high=high):
            return length.clamp(rng.randint(low, high))
        case Normal(mu=mu, sigma=sigma):
            value = rng.normalvariate(mu, sigma)
            return length.clamp(int(value) if truncate else value)
        case Lognormal(mu=mu, sigma=sigma):
            value = rng.lognormvariate(mu, sigma)
            while length.within == "redraw" and not length.floor <= round(value) <= length.cap:
                value = rng.lognormvariate(mu, sigma)
            return length.clamp(value)
        case Histogram(bins=bins):
            values, weights = zip(*bins, strict=True)
            return length.clamp(rng.choices(values, weights)[0])
        case Quantiles():
            return length.clamp(length.at(rng.random()))
        case Empirical():
            raise ValueError("an empirical length is a text's own and is not drawn")
