"""Which figures of the draft's tests are compared, which way each is better, and which one stands for its test.

| test            | stands for it                                            | better | differences are               |
| --------------- | -------------------------------------------------------- | ------ | ----------------------------- |
| throughput      | maximum output tokens per second (5.2.4.1)               | more   | relative                      |
| capacity        | most requests in flight (5.5.4)                          | more   | relative, beyond one level    |
| ttft            | P50 of TTFT at the first load (5.1.4.1)                  | less   | relative                      |
| tradeoff        | optimum, else knee, saturation, peak (5.3.4)             | more   | relative, beyond one level    |
| itl             | P99 at the first load (5.4.4.1)                          | less   | relative                      |
| fairness        | Jain's index (5.6.4)                                     | more   | relative                      |
| prefix-cache    | TTFT reduction with a cold cache (5.7.4)                 | more   | in percentage points          |
| memory-pressure | most requests in flight of the base (5.8.3)              | more   | relative, beyond one level    |
| long-context    | time per input token (5.9.4)                             | less   | relative                      |
| guardrail       | overhead of the input filter at the first load (5.10.4)  | less   | relative                      |
| cold-start      | load time, else the latency of the first request (4.5.3) | less   | relative                      |

These are the headlines of the tests' reports, except of long-context: its headline is the exponent k, which rises when short
prompts become faster; nobody would call that a regression. So k is shown, and does not decide.

Where tests send tasks, the share that succeeded in all runs of a test decides as well, in percentage points.

Figures of runs at a percentage of the system's own maximum (`loads`) depend on the absolute load that this is. A maximum, a
capacity, a level found under limits and the loads of 5.3 do not: they are what is found. Except the knee, which is the load at
which latency is twice that of the lightest level: another lightest level gives another knee.

A figure that is found among levels that were tried (`level`) is known no better than to the next level: what is smaller than
that is noise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.documents.campaign import ProcedureDocument, ReportedValue
from inferometer.documents.note import WITHHELD
from inferometer.metrics.catalogue import TASK_SHARE
from inferometer.metrics.statistics import Interval

PER_DOLLAR, PER_GPU = "output_tok_dollar_h", "tok_per_gpu_s"
MAXIMUM = "max_output_tok_s"


Least = Literal["above 0", "from 0", "any"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What figures whose name matches `pattern` are. `more`: more is better; `points`: they are in per cent, and differences
    are percentage points; `level`: they are levels that were tried, `rate` or `concurrency`; `tokens`: they hang on how tokens
    are counted; `least`: what they can be, above 0, from 0 on, or as differences any number; `loads`: the parts of the test
    whose runs' loads they depend on."""

    pattern: str
    more: bool
    points: bool = False
    level: str | None = None
    tokens: bool = False
    least: Least = "above 0"
    loads: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        """Whether a value of this name is such a figure."""
        return re.fullmatch(self.pattern, name) is not None


_SUCCESS = Kind(TASK_SHARE, more=True, points=True, least="from 0")
"""Of tests with tasks. It decides beside what stands for the test: answers that come as fast and are wrong are a regression."""
_LEVEL = ("level",)
_MIX, _PASSES = ("isolated", "mixed"), ("disabled", "cold", "warm")

KINDS: Mapping[str, tuple[Kind, ...]] = {
    "ttft": (Kind(r"ttft_p\d+(_9)?", more=False, loads=_LEVEL), _SUCCESS),
    "throughput": (
        Kind(
            r"max_(output|input)_tok_s|limited_output_tok_s|throughput_at_ttft_limit", more=True, tokens=True
        ),
        Kind(f"{PER_GPU}|{PER_DOLLAR}", more=True, tokens=True),
        Kind(r"max_request_s|limited_rate", more=True),
        Kind(r"limited_concurrency", more=True, level="concurrency"),
        _SUCCESS,
    ),
    "tradeoff": (
        Kind(r"optimum|saturation|peak_rate", more=True, level="rate"),
        Kind(r"knee(_tpot|_e2e)?", more=True, level="rate", loads=_LEVEL),
        Kind(r"peak_output_tok_s", more=True, tokens=True),
        _SUCCESS,
    ),
    "itl": (
        Kind(r"itl_([bc]_)?p(50|99)_[\d.]+|tail_ratio_[\d.]+", more=False, least="from 0", loads=_LEVEL),
        _SUCCESS,
    ),
    "capacity": (
        Kind(r"max_concurrency", more=True, level="concurrency"),
        Kind(r"throughput_at_max", more=True, tokens=True),
        _SUCCESS,
    ),
    "fairness": (
        Kind(r"jain", more=True, loads=_MIX),
        Kind(r"jain_e2e", more=True, tokens=True, loads=_MIX),
        Kind(r"starvation_.+", more=False, points=True, least="from 0", loads=_MIX),
        Kind(r"(inflation|slowdown)_.+", more=False, loads=_MIX),
    ),
    "prefix-cache": (
        Kind(r"ttft_reduction_.+", more=True, points=True, least="any", loads=_PASSES),
        Kind(r"throughput_improvement", more=True, points=True, least="any", loads=("throughput",)),
        Kind(r"hit_rate_.+", more=True, points=True, least="from 0", loads=_PASSES),
    ),
    "memory-pressure": (
        Kind(r"base_concurrency", more=True, level="concurrency"),
        Kind(r"ttft_p99_growth", more=False, loads=_LEVEL),
    ),
    "long-context": (Kind(r"us_per_token|exponent", more=False, tokens=True, least="any"),),
    "guardrail": (
        Kind(r".+_overhead_[\d.]+", more=False, least="any", loads=_LEVEL),
        Kind(r"throughput_reduction_.+", more=False, points=True, least="any"),
        _SUCCESS,
    ),
    "cold-start": (Kind(r"load_time|cold_start_latency|second_ttft", more=False), _SUCCESS),
}
"""By test, in the order of the draft's sections. Values that none of these is are shown in the campaigns' own reports only:
loads that a test was made at, shapes, and what has no better."""

HEADLINES: Mapping[str, tuple[str, ...]] = {
    "ttft": (r"ttft_p50",),
    "throughput": (MAXIMUM,),
    "tradeoff": ("optimum", "knee", "saturation", "peak_rate"),
    "itl": (r"itl_([bc]_)p99_.+", r"itl_p99_.+"),
    "capacity": ("max_concurrency",),
    "fairness": ("jain",),
    "prefix-cache": ("ttft_reduction_cold",),
    "memory-pressure": ("base_concurrency",),
    "long-context": ("us_per_token",),
    "guardrail": (r"input_overhead_.+", r".+_overhead_.+"),
    "cold-start": ("load_time", "cold_start_latency"),
}
"""By test, the names of what stands for it, best first: the first that every campaign has a number of."""

BOUNDS: Mapping[str, tuple[str, ...]] = {
    "capacity_above_maximum": ("max_concurrency", "throughput_at_max"),
    "base_above_maximum": ("base_concurrency",),
    "maximum_above_highest_load": (".+",),
    "throughput_still_rose": (".+",),
    "lowest_load_not_sustained": (".+",),
    "lowest_level_is_the_answer": (".+",),
}
"""By the code of what a test could not settle, the figures that are then a bound, not a value."""


@dataclass(frozen=True, slots=True)
class Named:
    """A number of one campaign. `name`: `test.figure`, with `#2` behind it for the second of a name, at another load; `step`:
    how far the nearest other level that was tried is; None: it is no level."""

    name: str
    kind: Kind
    value: ReportedValue
    number: float
    step: float | None


def figures_of(test: ProcedureDocument) -> Iterator[Named]:
    """The numbers of a test that are compared, in the order of its values."""
    seen: dict[str, int] = {}
    for value in test.values:
        seen[value.name] = seen.get(value.name, 0) + 1
        kind = next((one for one in KINDS.get(test.test, ()) if one.matches(value.name)), None)
        number = value.value
        if kind is None or isinstance(number, bool | str | None):
            continue
        again = f"#{seen[value.name]}" if seen[value.name] > 1 else ""
        step = None if kind.level is None else _step(test, kind.level, float(number))
        yield Named(f"{test.test}.{value.name}{again}", kind, value, float(number), step)


def unmeasurable(test: ProcedureDocument) -> ReportedValue | None:
    """The first value of a test that is no number, or one that nothing measured can be, where it is one of those compared."""
    for value in test.values:
        kind = next((one for one in KINDS.get(test.test, ()) if one.matches(value.name)), None)
        if kind is None or value.value in (None, WITHHELD):
            continue
        number = value.value
        if isinstance(number, bool | str) or (number < 0 and kind.least != "any"):
            return value
        if number == 0 and kind.least == "above 0":
            return value
    return None


def successes_of(test: ProcedureDocument) -> Interval | None:
    """Between which shares, in %, task success lies, whichever way answers that could not be judged would have been; None: the
    document does not say."""
    facts = next((note.facts for note in test.notes if note.code == "tasks_succeeded"), {})
    ended, succeeded, unjudged = (facts.get(name) for name in ("ended", "succeeded", "unjudged"))
    if not (
        isinstance(ended, int) and isinstance(succeeded, int) and isinstance(unjudged, int) and ended > 0
    ):
        return None
    return 100 * succeeded / ended, 100 * (succeeded + unjudged) / ended


def headline_among(test: str, names: Sequence[str]) -> str | None:
    """Which of these names, `test.figure`, stands for the test."""
    for pattern in HEADLINES.get(test, ()):
        for name in names:
            if name.startswith(f"{test}.") and re.fullmatch(pattern, name[len(test) + 1 :]):
                return name
    return None


def is_bound(test: ProcedureDocument, name: str) -> bool:
    """Whether what the test could not settle makes a figure of it, `test.figure`, a bound."""
    figure = name.partition(".")[2]
    if figure == TASK_SHARE:
        return False
    codes = [note.code for note in test.undecided]
    return any(re.fullmatch(pattern, figure) for code in codes for pattern in BOUNDS.get(code, ()))


def _step(test: ProcedureDocument, level: str, number: float) -> float | None:
    """How far a level's nearest neighbour among those tried is; None: there is no other."""
    tried: list[float | None] = [getattr(run.at, level, None) for run in test.runs]
    apart = [abs(one - number) for one in tried if one is not None and abs(one - number) > 1e-4 * abs(number)]
    return min(apart, default=None)
