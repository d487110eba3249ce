"""Service level objectives: what has to hold for the server to be good enough, one comparison each.

    ttft_p99<500ms    tpot_p50<=40ms    e2e_mean<3s    success_rate>0.99    output_tok_s>1000    request_s>=20

A latency is `metric_stat` with an upper limit and a unit (us, ms, s); it is kept in milliseconds. The other three are plain
numbers with a lower limit; a success rate, of requests or of tasks (`task_success_rate`), may be written as a percentage. A
comparison in the direction that a worse server would meet is refused, for it is always a slip.
"""

import difflib
import functools
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_serializer, model_validator

STATS = ("mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "max")
_MS_PER = {"us": Decimal("0.001"), "ms": Decimal(1), "s": Decimal(1000)}
_FORM = re.compile(
    r"^\s*(?P<what>[A-Za-z][A-Za-z0-9_.]*)\s*(?P<op><=|>=|<|>|==?|≤|≥)\s*(?P<number>[0-9.]+(?:[eE][+-]?[0-9]+)?)"
    r"\s*(?P<unit>[a-zA-Z%/]*)\s*$"
)
_EXAMPLES = "ttft_p99<500ms, e2e_mean<3s or success_rate>0.99"

Stat = Literal["mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "max"]


@functools.cache
def latencies() -> tuple[str, ...]:
    """The metrics that an objective may bound. Read when they are needed: help does not wait for the catalogue."""
    from inferometer.metrics.catalogue import METRICS, stem

    return tuple(stem(name) for name, metric in METRICS.items() if metric.objective)


@functools.cache
def rates() -> dict[str, str]:
    """The rates that an objective may bound, with the unit that may be spelled behind the limit."""
    from inferometer.metrics.catalogue import RATES, SUCCESS, TASK_SUCCESS

    return {SUCCESS: "", TASK_SUCCESS: ""} | {
        name: rate.objective for name, rate in RATES.items() if rate.objective is not None
    }


def _shares() -> tuple[str, ...]:
    from inferometer.metrics.catalogue import SUCCESS, TASK_SUCCESS

    return SUCCESS, TASK_SUCCESS


class Slo(BaseModel):
    """One objective, `metric[_stat] op limit`.

    `metric` is a name of `latencies` with a `stat` and a `limit` in ms, or one of `rates` with `stat` None and a plain `limit`.
    Made with `Slo.parse("ttft_p99<500ms")`; `str()` gives the canonical form back, which is also how it is saved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    metric: str
    stat: Stat | None
    op: Literal["<", "<=", ">", ">="]
    limit: float
    unit: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an objective. Raises ValueError saying what is wrong, with a right example."""
        return cls(**_fields(text))

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return _fields(value)
        if isinstance(value, Slo) or (isinstance(value, dict) and value.keys() == cls.model_fields.keys()):
            return value
        raise ValueError(f"an objective is text such as {_EXAMPLES}, not {value!r}")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _check(self.metric, self.stat, self.op, self.limit)
        unit = "ms" if self.stat else rates()[self.metric]
        if self.unit != unit:
            raise ValueError(
                f"the limit of {self.metric} has the unit {unit!r}, not {self.unit!r}; write for example {_EXAMPLES}"
            )
        return self

    @model_serializer
    def _to_text(self) -> str:
        return str(self)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """In a plan file an objective is text."""
        return {"type": "string", "description": "Service level objective", "examples": ["ttft_p99<500ms"]}

    def __str__(self) -> str:
        name = self.metric if self.stat is None else f"{self.metric}_{self.stat}"
        limit = str(int(self.limit)) if self.limit.is_integer() and self.limit < 2**53 else repr(self.limit)
        return f"{name}{self.op}{limit}{self.unit if self.stat else ''}"

    def met_by(self, value: float) -> bool:
        """Whether `value`, in the objective's unit, meets it. NaN meets nothing."""
        return {
            "<": value < self.limit,
            "<=": value <= self.limit,
            ">": value > self.limit,
            ">=": value >= self.limit,
        }[self.op]


def _fields(text: str) -> dict[str, Any]:
    form = _FORM.match(text)
    if form is None:
        raise ValueError(f"{text!r} is not an objective; write for example {_EXAMPLES}")
    metric, stat = _split(form["what"])
    op = {"≤": "<=", "≥": ">="}.get(form["op"], form["op"])
    try:
        number = Decimal(form["number"])
    except InvalidOperation:
        raise ValueError(f"{form['number']!r} is not a number; write for example {_EXAMPLES}") from None
    unit = form["unit"]
    if stat is not None:
        if unit not in _MS_PER:
            reason = f"{unit!r} is not a unit of time" if unit else "a latency needs a unit"
            raise ValueError(f"{reason}: us, ms or s, for example {form['what']}{op}{form['number']}ms")
        limit, unit = float(number * _MS_PER[unit]), "ms"
    else:
        if metric in _shares() and unit == "%":
            number, unit = number / 100, ""
        if unit not in ("", rates()[metric]):
            raise ValueError(f"{metric} is a plain number, without {unit!r}: {metric}{op}{form['number']}")
        limit, unit = float(number), rates()[metric]
    _check(metric, stat, op, limit)
    return {"metric": metric, "stat": stat, "op": op, "limit": limit, "unit": unit}


def _split(what: str) -> tuple[str, str | None]:
    """`ttft_p99.9` is ("ttft", "p99_9"); the rates have no statistic."""
    name = what.lower().replace("p99.9", "p99_9")
    if name in rates():
        return name, None
    for stat in STATS:
        metric = name.removesuffix(f"_{stat}")
        if metric != name and metric in latencies():
            return metric, stat
    if name in latencies():
        raise ValueError(f"{what} needs a statistic, one of {', '.join(STATS)}: for example {name}_p99<500ms")
    known = [f"{metric}_{stat}" for metric in latencies() for stat in STATS] + list(rates())
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"metrics are {', '.join((*latencies(), *rates()))}"
    raise ValueError(f"{what!r} is not a metric with a statistic; {hint}")


def _check(metric: str, stat: str | None, op: str, limit: float) -> None:
    if (metric in latencies()) != (stat is not None) or metric not in (*latencies(), *rates()):
        raise ValueError(f"{metric!r} with statistic {stat!r} is not a metric; write for example {_EXAMPLES}")
    name = metric if stat is None else f"{metric}_{stat}"
    wanted = "<" if stat is not None else ">"
    if not op.startswith(wanted):
        why = "a latency has an upper limit" if stat is not None else "a rate has a lower limit"
        raise ValueError(f"{name} is compared with {op}, but {why}: write {name}{wanted}…")
    if not 0 < limit < float("inf"):
        raise ValueError(f"the limit of {name} must be above 0")
    if metric in _shares() and (limit > 1 or (limit == 1 and op == ">")):
        raise ValueError(f"a success rate is at most 1: write {metric}>0.99, {metric}>99% or {metric}>=1")
