"""Faults on request: what a server can do wrong, said in one word each, and which requests meet it. Pure.

    NAME[:key=value,...]        reset:after=3,share=0.1
    NAME=value[,key=value,...]  glue=4,share=0.5      (the value of the fault's main parameter)

A generation (`/v1/chat/completions` and the like) has a number, from 0 in the order of arrival; nothing else is ever hit. For
each fault a number in [0, 1) is drawn from seed, place of the fault on the command line and number of the request, so the
same requests in the same order meet the same faults. A request meets one fault at most: the first in the order given that
applies to it and draws it. `drop` counts connections instead, and `refuse` draws nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inferometer.errors import PlanError, Problem

_MANY = 1_000_000_000
_HOUR_MS = 3_600_000.0
_YEARS_MS = 300_000_000_000.0  # nearly ten
_PLACES = ("share", "skip")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that a fault takes. Whole if `default` is an int. `only`: the values it may have, if they are few."""

    default: float
    low: float
    high: float
    only: tuple[float, ...] = ()

    def read(self, text: str) -> float:
        """The value. Raises ValueError, whose words say what it may be."""
        whole = isinstance(self.default, int)
        try:
            value: float = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(f"is {text!r}, not a {'whole number' if whole else 'number'}") from None
        if self.only and value not in self.only:
            raise ValueError(f"is {text}, not {' or '.join(map(str, self.only))}")
        if not self.low <= value <= self.high:  # not a number is caught too
            raise ValueError(f"is {text}, not between {self.low:g} and {self.high:g}")
        return value


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault that exists. `main`: the parameter of `NAME=value`. `unstreamed`: answers that are not streamed meet it too.

    `where`: which of `share` and `skip` it takes.
    """

    does: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    main: str = ""
    unstreamed: bool = False
    where: tuple[str, ...] = _PLACES


_AFTER = Parameter(0, 0, _MANY)
_LATER = Parameter(1, 0, _MANY)
_CODES = (400, 401, 404, 429, 500, 502, 503, 504)

KINDS: dict[str, Kind] = {
    "refuse": Kind("stops listening after N connections", {"after": _AFTER}, main="after", where=()),
    "drop": Kind("resets connections as soon as they are accepted"),
    "reset": Kind(
        "resets the connection after N tokens; 0: before the head", {"after": _LATER}, unstreamed=True
    ),
    "sit": Kind(
        "resets the connection N ms after the answer was ready, without having sent any of it",
        {"ms": Parameter(800.0, 0.0, _HOUR_MS)},
        main="ms",
        unstreamed=True,
    ),
    "close": Kind("closes the connection after the answer, which did not announce it", unstreamed=True),
    "hang": Kind(
        "sends nothing more after N tokens and keeps the connection", {"after": _LATER}, unstreamed=True
    ),
    "slow-headers": Kind(
        "delays the head, and what is ready after it, by N ms",
        {"ms": Parameter(100.0, 0.0, _HOUR_MS)},
        unstreamed=True,
    ),
    "trickle": Kind(
        "sends N bytes at a time, with a pause before each",
        {"bytes": Parameter(64, 1, _MANY), "ms": Parameter(1.0, 0.0, _HOUR_MS)},
        unstreamed=True,
    ),
    "status": Kind(
        f"answers with an error; CODE=SHARE for one or more of {', '.join(map(str, _CODES))}",
        {"retry-after": Parameter(1, 0, 86_400), **{str(code): Parameter(0.0, 0.0, 1.0) for code in _CODES}},
        unstreamed=True,
        where=("skip",),
    ),
    "html": Kind(
        "answers with an HTML page", {"status": Parameter(200, 200, 502, only=(200, 502))}, unstreamed=True
    ),
    "malformed-json": Kind("leaves the last brace out of an event", {"after": _LATER}),
    "broken-chunk": Kind("writes a non-numeric chunk size", {"after": _LATER}),
    "invalid-utf8": Kind("puts a byte into a token's text that UTF-8 does not know", {"after": _LATER}),
    "huge-event": Kind(
        "pads an event to N bytes", {"bytes": Parameter(2_000_000, 1, 1 << 26), "after": _LATER}
    ),
    "no-done": Kind("leaves [DONE] out"),
    "double-done": Kind("sends [DONE] twice"),
    "wrong-usage": Kind(
        "adds N to the output tokens in `usage`",
        {"by": Parameter(1, -_MANY, _MANY)},
        main="by",
        unstreamed=True,
    ),
    "tokens-per-event": Kind(
        "puts N tokens into one event", {"tokens": Parameter(2, 2, _MANY)}, main="tokens"
    ),
    "glue": Kind("puts N events into one send", {"events": Parameter(2, 2, _MANY)}, main="events"),
    "split": Kind(
        "splits everything into pieces of N bytes, one send each",
        {"bytes": Parameter(1, 1, _MANY)},
        main="bytes",
        unstreamed=True,
    ),
    "comments": Kind(
        "sends a comment, `: ping`, so often while it answers", {"ms": Parameter(10.0, 0.1, _HOUR_MS)}
    ),
    "clock-skew": Kind(
        "moves `created` and `Date` by so much, in whole seconds",
        {"ms": Parameter(60_000.0, -_YEARS_MS, _YEARS_MS)},
        unstreamed=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault asked for. `values`: every parameter of its kind. `share`: of the requests from number `skip` on."""

    name: str
    values: Mapping[str, float]
    share: float = 1.0
    skip: int = 0

    def whole_number(self, key: str) -> int:
        """A parameter that is a whole number."""
        return int(self.values[key])

    def ns(self) -> int:
        """The parameter `ms` in nanoseconds."""
        return round(self.values["ms"] * 1_000_000)

    def statuses(self) -> list[tuple[int, float]]:
        """The status codes that have a share, and the share."""
        return [(code, self.values[str(code)]) for code in _CODES if self.values[str(code)]]


@dataclass(frozen=True, slots=True)
class Met:
    """What a request met. `label` stands in the truth log: the fault's name, with the code if it is `status`."""

    fault: Fault
    label: str
    status: int = 0


def parse(specs: Sequence[str], flag: str = "--fault") -> tuple[Fault, ...]:
    """The faults asked for. Raises PlanError with everything wrong with any of them."""
    problems: list[Problem] = []
    found: list[Fault] = []
    for spec in specs:
        wrong: list[str] = []
        fault = _parse(spec, wrong)
        problems += [Problem(flag, f"{spec!r}: {words}") for words in wrong]
        if fault is not None:
            found.append(fault)
    if problems:
        raise PlanError(problems)
    return tuple(found)


def _parse(spec: str, wrong: list[str]) -> Fault | None:
    """One fault; what is wrong with it is added to `wrong`."""
    cut = min((at for at in (spec.find(":"), spec.find("=")) if at >= 0), default=len(spec))
    name, sign, rest = spec[:cut].strip(), spec[cut : cut + 1], spec[cut + 1 :]
    kind = KINDS.get(name)
    if kind is None:
        wrong.append(f"there is no fault {name!r}; there are {', '.join(KINDS)}")
        return None
    pairs = [pair.partition("=") for pair in rest.split(",")] if sign else []
    if sign == "=":
        if not kind.main:
            wrong.append(f"{name} takes no bare value; write {_usage(name)}")
            return None
        pairs[0] = (kind.main, "=", rest.split(",")[0])
    given = {key.strip(): value.strip() for key, _, value in pairs}
    if len(given) < len(pairs):
        wrong.append("a parameter is given twice")
    known = dict(kind.parameters)
    known |= {"share": Parameter(1.0, 0.0, 1.0)} if "share" in kind.where else {}
    known |= {"skip": Parameter(0, 0, _MANY)} if "skip" in kind.where else {}
    values: dict[str, float] = {key: parameter.default for key, parameter in known.items()}
    for key, text in given.items():
        if key not in known:
            wrong.append(f"{name} has no parameter {key!r}; write {_usage(name)}")
            continue
        try:
            values[key] = known[key].read(text)
        except ValueError as error:
            wrong.append(f"{key} {error}")
    share, skip = values.pop("share", 1.0), int(values.pop("skip", 0))
    fault = Fault(name, values, share, skip)
    if name == "status" and not wrong:
        total = sum(part for _, part in fault.statuses())
        if not 0 < total <= 1 + 1e-9:
            wrong.append(
                f"the shares come to {total:g}; write {_usage(name)} with shares of 1 at most in all"
            )
    return fault


def _usage(name: str) -> str:
    """How the fault is written, in the shortest form that shows everything it takes."""
    kind = KINDS[name]
    keys = ["CODE", "retry-after"] if name == "status" else list(kind.parameters)
    inner = ",".join(f"{key}={'SHARE' if key == 'CODE' else 'N'}" for key in [*keys, *kind.where])
    return f"{name}:{inner}" if inner else name


def manual() -> str:
    """Every fault with its parameters, a line each, for `--help`."""
    return "\n".join(f"  {_usage(name)}\n      {kind.does}" for name, kind in KINDS.items())


class Faults:
    """The faults of one server. Draws are repeatable: each has a generator of its own."""

    def __init__(self, faults: Sequence[Fault], seed: int) -> None:
        self._faults = tuple(enumerate(faults))
        self._seed = seed

    @property
    def refuse_after(self) -> int | None:
        """Connections taken before the server stops listening; None: it never does."""
        limits = [fault.whole_number("after") for _, fault in self._faults if fault.name == "refuse"]
        return min(limits, default=None)

    def drops(self, number: int) -> bool:
        """Whether connection `number`, from 0, is reset at once."""
        return any(
            fault.name == "drop" and number >= fault.skip and self._draw(place, number) < fault.share
            for place, fault in self._faults
        )

    def met_by(self, number: int, stream: bool) -> Met | None:
        """What request `number`, from 0, meets."""
        for place, fault in self._faults:
            if fault.name in ("refuse", "drop") or number < fault.skip:
                continue
            if not stream and not KINDS[fault.name].unstreamed:
                continue
            drawn = self._draw(place, number)
            if fault.name != "status":
                if drawn < fault.share:
                    return Met(fault, fault.name)
                continue
            for code, share in fault.statuses():
                if drawn < share:
                    return Met(fault, f"status:{code}", code)
                drawn -= share
        return None

    def _draw(self, place: int, number: int) -> float:
        return random.Random(f"{self._seed}/{place}/{number}").random()  # noqa: S311 - repeatable, not secret
