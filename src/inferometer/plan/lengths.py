"""Length distributions: what may be asked for, and how it is spelled. `workload/` draws from them.

| spelled                              | tokens                                                          |
| ------------------------------------ | --------------------------------------------------------------- |
| `320`                                | always 320                                                      |
| `uniform(128,512)`                   | every integer from 128 to 512, both included, equally likely    |
| `normal(550,150)`                    | mean, standard deviation                                        |
| `lognormal(5.5,1.0,min=32,max=4096)` | mu and sigma of the logarithm                                   |
| `histogram(128:1,256:3)`             | value:weight pairs                                              |
| `quantiles(0:8,50:156,100:4096)`     | percent:value pairs; log-linear in between                      |
| `empirical`                          | each prompt's own: those of the texts that are sent             |

`min=` and `max=` clamp any of them but the first and the last, after rounding to the nearest integer (draft 4.3.2.2 says
"capped"; docs/method.md). Without them a length still stays within 1 and 10,000,000: nothing shorter can be sent, nothing
longer is meant. With `within=redraw` a log-normal is drawn again, after rounding, until it lies within them: what comes out
is the part of the distribution between its bounds, as it is (draft 5.6.2's classes).
A plan file may also write a mapping with the parameters' names: `{kind: normal, mean: 550, std: 150, min: 16}`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, NoReturn, cast

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

Within = Literal["clamp", "redraw"]
"""What becomes of a draw beyond a bound."""

LONGEST = 10_000_000
"""No length is above this, in tokens."""

EXAMPLES = {
    "fixed": "320",
    "uniform": "uniform(128,512)",
    "normal": "normal(550,150)",
    "lognormal": "lognormal(5.5,1.0,min=32,max=4096)",
    "histogram": "histogram(128:1,256:3)",
    "quantiles": "quantiles(0:8,50:156,95:892,100:4096)",
    "empirical": "empirical",
}
_PARAMETERS = {
    "fixed": ("tokens",),
    "uniform": ("low", "high"),
    "normal": ("mean", "std"),
    "lognormal": ("mu", "sigma"),
    "empirical": (),
}
_PAIRS = {"histogram": "bins", "quantiles": "points"}
_PAIR = {"histogram": "value:weight", "quantiles": "percent:value"}
_BOUNDS = ("min", "max")
_WITHIN = ("clamp", "redraw")
_RAREST = 1e-3
"""A redrawn length takes no more than a thousand draws on average."""
_CALL = re.compile(r"^(?P<kind>[A-Za-z_-]+)\s*\((?P<args>[^()]*)\)$")


def _refuse(kind: str, reason: str) -> NoReturn:
    raise ValueError(f"{reason}; for example {EXAMPLES[kind]}")


def _whole(kind: str, name: str, value: object) -> int:
    """A token count: a whole number from 1 to LONGEST. Strings of digits count; truth values do not."""
    number = _real(kind, name, value)
    if not number.is_integer() or not 1 <= number <= LONGEST:
        _refuse(kind, f"{name} must be a whole number from 1 to {LONGEST}, not {value}")
    return int(number)


def _real(kind: str, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        _refuse(kind, f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        _refuse(kind, f"{name} must be a number, not {value!r}")
    if not math.isfinite(number):
        _refuse(kind, f"{name} must be a finite number, not {value}")
    return number


def _spell(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _phi(z: float) -> float:
    """Density of the standard normal distribution."""
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _cdf(z: float) -> float:
    """Distribution function of the standard normal distribution, accurate in the lower tail."""
    return math.erfc(-z / math.sqrt(2)) / 2


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always `tokens`."""

    kind: ClassVar[str] = "fixed"
    tokens: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", _whole(self.kind, "the length", self.tokens))

    def __str__(self) -> str:
        return str(self.tokens)

    def mean(self) -> float:
        """The length itself, in tokens."""
        return float(self.tokens)

    def most(self) -> int:
        """The length itself, in tokens."""
        return self.tokens


@dataclass(frozen=True, slots=True)
class Clamped:
    """Base of every distribution that can be clamped. `min` and `max` are tokens, or None for the widest bound."""

    kind: ClassVar[str] = ""
    min: int | None = field(default=None, kw_only=True)
    max: int | None = field(default=None, kw_only=True)

    @property
    def floor(self) -> int:
        """The smallest length that can come out, in tokens."""
        return 1 if self.min is None else self.min

    @property
    def cap(self) -> int:
        """The largest length that can come out, in tokens."""
        return LONGEST if self.max is None else self.max

    def most(self) -> int:
        """The largest length that is drawn, in tokens."""
        return self.cap

    def clamp(self, value: float) -> int:
        """A drawn value as a length: nearest integer, then clamped.

        Done in the other order, which is the same because the bounds are integers and rounding is monotone, and lets
        an infinite draw through.
        """
        return round(min(max(value, self.floor), self.cap))

    def _check_bounds(self) -> None:
        for name in _BOUNDS:
            bound = getattr(self, name)
            if bound is not None:
                object.__setattr__(self, name, _whole(self.kind, name, bound))
        if self.floor > self.cap:
            _refuse(self.kind, f"min={self.floor} is above max={self.cap}")

    def _call(self, *args: str) -> str:
        bounds = [f"{name}={getattr(self, name)}" for name in _BOUNDS if getattr(self, name) is not None]
        return f"{self.kind}({','.join([*args, *bounds])})"


@dataclass(frozen=True, slots=True)
class Uniform(Clamped):
    """Every integer from `low` to `high`, both included, with equal chance."""

    kind: ClassVar[str] = "uniform"
    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _whole(self.kind, "the lower end", self.low))
        object.__setattr__(self, "high", _whole(self.kind, "the upper end", self.high))
        if self.low > self.high:
            _refuse(self.kind, f"the lower end {self.low} is above the upper end {self.high}")
        self._check_bounds()

    def __str__(self) -> str:
        return self._call(str(self.low), str(self.high))

    def mean(self) -> float:
        """Expected length in tokens, clamping included. Exact."""
        inner_low, inner_high = max(self.low, self.floor), min(self.high, self.cap)
        if inner_low > inner_high:  # everything lies beyond one bound
            return float(self.clamp(self.low))
        inner = (inner_low + inner_high) * (inner_high - inner_low + 1) / 2
        below, above = inner_low - self.low, self.high - inner_high
        return (below * self.floor + inner + above * self.cap) / (self.high - self.low + 1)

    def most(self) -> int:
        """See Clamped."""
        return self.clamp(self.high)


@dataclass(frozen=True, slots=True)
class Normal(Clamped):
    """Gaussian with mean `mu` and standard deviation `sigma`, in tokens, before rounding and clamping."""

    kind: ClassVar[str] = "normal"
    mu: float
    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _real(self.kind, "the mean", self.mu))
        object.__setattr__(self, "sigma", _real(self.kind, "the standard deviation", self.sigma))
        if not abs(self.mu) <= LONGEST or not 0 < self.sigma <= LONGEST:
            _refuse(self.kind, "the standard deviation must be above 0 and neither number above 10,000,000")
        self._check_bounds()

    def __str__(self) -> str:
        return self._call(_spell(self.mu), _spell(self.sigma))

    def mean(self) -> float:
        """Expected length in tokens, clamping included, rounding neglected.

        E = floor P(X < floor) + cap P(X > cap) + mu (P(X < cap) - P(X < floor)) - sigma (phi(b) - phi(a)).
        """
        a, b = (self.floor - self.mu) / self.sigma, (self.cap - self.mu) / self.sigma
        inner = self.mu * (_cdf(b) - _cdf(a)) - self.sigma * (_phi(b) - _phi(a))
        return self.floor * _cdf(a) + inner + self.cap * _cdf(-b)


@dataclass(frozen=True, slots=True)
class Lognormal(Clamped):
    """exp of a Gaussian with mean `mu` and standard deviation `sigma`: the median is exp(mu) tokens.

    `within`: whether what lies beyond a bound is clamped to it, or drawn again.
    """

    kind: ClassVar[str] = "lognormal"
    mu: float
    sigma: float
    within: Within = field(default="clamp", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _real(self.kind, "mu", self.mu))
        object.__setattr__(self, "sigma", _real(self.kind, "sigma", self.sigma))
        if not abs(self.mu) <= 16 or not 0 < self.sigma <= 10:
            # exp(16) is 8.9 million tokens. A mean in tokens here is the likeliest mistake.
            _refuse(
                self.kind,
                "mu and sigma describe the logarithm of the length: mu from -16 to 16, sigma above 0 to 10",
            )
        self._check_bounds()
        if self.within not in _WITHIN:
            _refuse(self.kind, f"within must be {' or '.join(_WITHIN)}, not {self.within!r}")
        if self.within == "redraw":
            self._check_redraw()

    def _check_redraw(self) -> None:
        if self.min is None and self.max is None:
            _refuse(self.kind, "within=redraw needs min or max")
        if self.kept < _RAREST:
            _refuse(
                self.kind,
                f"of this log-normal a share of {self.kept:.2g} lies from {self.floor} to {self.cap}, too little to draw until "
                "one does",
            )

    def __str__(self) -> str:
        return self._call(repr(self.mu), repr(self.sigma))

    def _call(self, *args: str) -> str:
        spelled = Clamped._call(self, *args)
        return spelled if self.within == "clamp" else f"{spelled[:-1]},within={self.within})"

    def _z(self, tokens: float) -> float:
        return (math.log(tokens) - self.mu) / self.sigma

    @property
    def kept(self) -> float:
        """The share of all draws that lies within the bounds once rounded."""
        a, b = self._z(self.floor - 0.5), self._z(self.cap + 0.5)
        return _cdf(b) - _cdf(a) if a < 0 else _cdf(-a) - _cdf(-b)

    def mean(self) -> float:
        """Expected length in tokens, clamping or redrawing included, rounding neglected.

        The part of the mean that lies below x is exp(mu + sigma^2 / 2) Phi((ln x - mu - sigma^2) / sigma). Redrawn, the part
        between the bounds is over the chance to be there.
        """
        whole = math.exp(self.mu + self.sigma**2 / 2)
        if self.within == "redraw":
            a, b = self._z(self.floor - 0.5), self._z(self.cap + 0.5)
            return whole * (_cdf(b - self.sigma) - _cdf(a - self.sigma)) / self.kept
        a, b = self._z(self.floor), self._z(self.cap)
        inner = whole * (_cdf(b - self.sigma) - _cdf(a - self.sigma))
        return self.floor * _cdf(a) + inner + self.cap * _cdf(-b)


@dataclass(frozen=True, slots=True)
class Histogram(Clamped):
    """Each value with a chance in proportion to its weight. `bins` is ((tokens, weight), ...), ascending."""

    kind: ClassVar[str] = "histogram"
    bins: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        bins = sorted(
            (_whole(self.kind, "a value", value), _real(self.kind, "a weight", weight))
            for value, weight in self.bins
        )
        if not bins:
            _refuse(self.kind, "a histogram needs at least one value:weight pair")
        if any(not 0 < weight <= 1e15 for _, weight in bins):
            _refuse(self.kind, "every weight must be above 0")
        for (value, _), (following, _) in pairwise(bins):
            if value == following:
                _refuse(self.kind, f"the value {value} occurs twice")
        object.__setattr__(self, "bins", tuple(bins))
        self._check_bounds()

    def __str__(self) -> str:
        return self._call(*(f"{value}:{_spell(weight)}" for value, weight in self.bins))

    def mean(self) -> float:
        """Expected length in tokens, clamping included. Exact."""
        total = math.fsum(weight for _, weight in self.bins)
        return math.fsum(self.clamp(value) * weight for value, weight in self.bins) / total

    def most(self) -> int:
        """See Clamped."""
        return self.clamp(self.bins[-1][0])


@dataclass(frozen=True, slots=True)
class Quantiles(Clamped):
    """The distribution with these quantiles: `points` is ((percent, tokens), ...) from 0 to 100, both ascending.

    Between two points (p, v) and (q, w) the logarithm of the length is linear in the percentage:
    Q(x) = v (w / v)^((x - p) / (q - p)).
    """

    kind: ClassVar[str] = "quantiles"
    points: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        points = tuple(
            (_real(self.kind, "a percentage", percent), _whole(self.kind, "a value", value))
            for percent, value in self.points
        )
        percents = [percent for percent, _ in points]
        if len(points) < 2 or percents[0] != 0 or percents[-1] != 100:
            _refuse(self.kind, "the first percentage must be 0 and the last 100")
        for (percent, value), (next_percent, next_value) in pairwise(points):
            if percent >= next_percent or value > next_value:
                _refuse(self.kind, "percentages and values must increase")
        object.__setattr__(self, "points", points)
        self._check_bounds()

    def __str__(self) -> str:
        return self._call(*(f"{_spell(percent)}:{value}" for percent, value in self.points))

    def at(self, share: float) -> float:
        """The length, before rounding and clamping, that a share of 0 to 1 of all lengths stays below."""
        last = len(self.points) - 2
        for place, ((percent, value), (next_percent, next_value)) in enumerate(pairwise(self.points)):
            if 100 * share <= next_percent or place == last:
                part = (100 * share - percent) / (next_percent - percent)
                return float(value * (next_value / value) ** part)
        raise AssertionError("at least two points are needed")

    def mean(self) -> float:
        """Expected length in tokens, clamping included, rounding neglected: over one piece without a bound in it it is
        (w - v) / ln(w / v)."""
        return math.fsum((q - p) / 100 * self._piece(v, w) for (p, v), (q, w) in pairwise(self.points))

    def _piece(self, v: float, w: float) -> float:
        """The mean of the piece from v to w: what lies beyond a bound has the bound's length."""
        if v == w:
            return min(max(v, self.floor), self.cap)
        rise = math.log(w / v)
        low, high = (min(max(bound, v), w) for bound in (self.floor, self.cap))
        below, above = math.log(low / v) / rise, math.log(w / high) / rise
        return self.floor * below + (high - low) / rise + self.cap * above

    def most(self) -> int:
        """See Clamped."""
        return self.clamp(self.points[-1][1])


@dataclass(frozen=True, slots=True)
class Empirical:
    """Each text is as long as it is: only whoever has the texts knows the lengths."""

    kind: ClassVar[str] = "empirical"
    TYPICAL: ClassVar[float] = 300.0
    """Tokens of a text whose length nobody has counted yet, to estimate by."""

    def __str__(self) -> str:
        return self.kind

    def mean(self) -> float:
        """Not known here: NaN."""
        return math.nan

    def most(self) -> int:
        """Not known here: LONGEST."""
        return LONGEST


Distribution = Fixed | Uniform | Normal | Lognormal | Histogram | Quantiles | Empirical
"""Any length distribution: for `isinstance` and `match`."""


def estimated_mean(lengths: Distribution) -> float:
    """The mean in tokens, or what is typical where nobody knows it before the texts are drawn."""
    mean = lengths.mean()
    return Empirical.TYPICAL if math.isnan(mean) else mean


def fixed(tokens: int) -> Fixed:
    """Always `tokens`. ValueError when it is no length."""
    return Fixed(tokens)


def uniform(low: int, high: int, *, min: int | None = None, max: int | None = None) -> Uniform:
    """Integers from `low` to `high`, both included. ValueError when they are the wrong way round."""
    return Uniform(low, high, min=min, max=max)


def normal(mean: float, std: float, *, min: int | None = None, max: int | None = None) -> Normal:
    """Gaussian lengths, in tokens. ValueError unless `std` is above 0."""
    return Normal(mean, std, min=min, max=max)


def lognormal(
    mu: float,
    sigma: float,
    *,
    min: int | None = None,
    max: int | None = None,
    within: Within = "clamp",
) -> Lognormal:
    """Log-normal lengths; `mu` and `sigma` are of the logarithm. ValueError when they are out of range."""
    return Lognormal(mu, sigma, min=min, max=max, within=within)


def histogram(
    bins: Iterable[tuple[int, float]], *, min: int | None = None, max: int | None = None
) -> Histogram:
    """Weighted values, each (tokens, weight). ValueError when a value repeats or a weight is not above 0."""
    return Histogram(tuple(bins), min=min, max=max)


def quantiles(
    points: Iterable[tuple[float, int]], *, min: int | None = None, max: int | None = None
) -> Quantiles:
    """Lengths with these quantiles, each (percent, tokens). ValueError unless they go up from 0 to 100 percent."""
    return Quantiles(tuple(points), min=min, max=max)


def parse(value: object) -> Distribution:
    """Read a length from an int, a string of the table above, or a mapping with `kind`.

    Raises ValueError saying what is wrong, with a right example.
    """
    if isinstance(value, Distribution):
        return value
    if isinstance(value, str):
        return _parse_text(value.strip())
    if isinstance(value, Mapping):
        given = dict(value)
        return _build(_known_kind(given.pop("kind", None)), given)
    return Fixed(cast(int, value))  # Fixed checks it


def _known_kind(name: object) -> str:
    if isinstance(name, str) and name in EXAMPLES:
        return name
    near = difflib.get_close_matches(str(name), EXAMPLES, n=1)
    hint = f"did you mean {EXAMPLES[near[0]]}?" if near else f"write {' or '.join(EXAMPLES.values())}"
    raise ValueError(f"{name!r} is not a length distribution; {hint}")


def _parse_text(text: str) -> Distribution:
    if re.fullmatch(r"[-+]?[0-9.]+", text):
        return Fixed(cast(int, text))  # Fixed checks it
    if text == Empirical.kind:
        return Empirical()
    call = _CALL.match(text)
    if call is None:
        raise ValueError(f"{text!r} is not a length; write {' or '.join(EXAMPLES.values())}")
    kind = _known_kind(call["kind"])
    given: dict[str, object] = {}
    positional: list[str] = []
    for part in [part.strip() for part in call["args"].split(",")] if call["args"].strip() else []:
        name, is_named, argument = part.partition("=")
        if not is_named:
            if given:
                _refuse(kind, f"{part!r} stands after {next(iter(given))}=")
            positional.append(part)
        elif name.strip() in given:
            _refuse(kind, f"{name.strip()} occurs twice")
        else:
            given[name.strip()] = argument.strip()
    if kind in _PAIRS:
        return _build(kind, {_PAIRS[kind]: [_pair(kind, part) for part in positional], **given})
    names = _PARAMETERS[kind]
    if len(positional) > len(names) or any(name in given for name in names[: len(positional)]):
        _refuse(kind, f"{kind} takes {len(names)} numbers: {', '.join(names)}")
    return _build(kind, {**dict(zip(names, positional, strict=False)), **given})


def _pair(kind: str, part: str) -> tuple[str, str]:
    first, colon, second = part.partition(":")
    if not colon:
        _refuse(kind, f"{part!r} is no {_PAIR[kind]} pair")
    return first.strip(), second.strip()


def _build(kind: str, given: dict[str, object]) -> Distribution:
    """Build from named parameters as they were written, still unchecked."""
    names = (_PAIRS[kind],) if kind in _PAIRS else _PARAMETERS[kind]
    options = (
        () if kind in ("fixed", "empirical") else (*_BOUNDS, *(("within",) if kind == "lognormal" else ()))
    )
    allowed = {*names, *options}
    for name in given:
        if name not in allowed:
            only = f", only {', '.join(sorted(allowed))}" if allowed else ""
            _refuse(kind, f"{kind} has no {name!r}{only}")
    for name in names:
        if name not in given:
            _refuse(kind, f"{kind} needs {name}")
    bounds: Any = {name: given[name] for name in options if name in given}
    if kind == "empirical":
        return Empirical()
    if kind in _PAIRS:
        pairs = _pairs(kind, given[_PAIRS[kind]])
        return Histogram(pairs, **bounds) if kind == "histogram" else Quantiles(pairs, **bounds)
    first, *rest = (cast(int, given[name]) for name in names)
    if kind == "fixed":
        return Fixed(first)
    if kind == "uniform":
        return Uniform(first, rest[0], **bounds)
    return (Normal if kind == "normal" else Lognormal)(first, rest[0], **bounds)


def _pairs(kind: str, given: object) -> Any:
    """Pairs as they were written, still unchecked."""
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, list | tuple) or any(
        not isinstance(p, list | tuple) or len(p) != 2 for p in pairs
    ):
        _refuse(kind, f"{_PAIRS[kind]} must be {_PAIR[kind]} pairs")
    return tuple((first, second) for first, second in pairs)


Length = Annotated[
    Distribution,
    PlainValidator(parse),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "integer", "minimum": 1},
                {"type": "object"},
                {"type": "null"},
            ],
            "description": "Number of tokens; null where a file of prompts or classes say it",
            "examples": list(EXAMPLES.values()),
        }
    ),
]
"""A field of a plan: read by `parse`, written back as the canonical string."""
