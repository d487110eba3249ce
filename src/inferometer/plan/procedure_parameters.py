"""What each test is to do: draft section 5's parameters, with the section's own defaults, and what a quick run has in their
place.

A quick run is for trying out: it breaks rules of the draft by its numbers, and the compliance statement says which, as it would
of any other plan with such numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from inferometer.plan.lengths import Length, Lognormal, lognormal
from inferometer.plan.part import HARMLESS, NUMBER, SECONDS, Part, Values, harmless, parts_in
from inferometer.plan.standard import STANDARD
from inferometer.plan.target import Priority

Count = Annotated[int, Field(ge=1, le=10_000_000), NUMBER]
Seconds = Annotated[float, Field(gt=0, le=604_800), SECONDS]
Rate = Annotated[float, Field(ge=1e-6, le=1_000_000), NUMBER]
Concurrency = Annotated[int, Field(ge=1, le=100_000), NUMBER]
LEAST_PERCENT = 0.1
"""Of what a system sustains. At a thousandth of 10 requests/s, 100 requests take close to three hours already."""
Percent = Annotated[float, Field(ge=LEAST_PERCENT, le=1_000), NUMBER]
Share = Annotated[float, Field(gt=0, le=1), NUMBER]


LEAST_OUTPUT = 50
"""Draft 5.4.2: answers of fewer tokens give no meaningful gaps."""


class Parameters(Part):
    """Of one test. `quick`: what a quick run has in place of the defaults; what was asked for stands either way."""

    quick: ClassVar[Values] = {}


def _in_order(part: Parameters, low: str, high: str) -> None:
    """Raises ValueError where a range ends below its beginning."""
    first, last = getattr(part, low), getattr(part, high)
    if first is not None and last is not None and first > last:
        raise ValueError(f"{low} is {first:g}, above {high}, {last:g}: lower the first or raise the second")


class Search(Parameters):
    """How to look for the highest load that a system sustains.

    A climb in closed loop measures it: `pilot_requests` a concurrency, from `pilot_concurrency` in flight on. A level of
    a search for 100 % lasts `level_s`; any level in open loop has `least_requests` at least, for a few requests say little of
    a rate. One whose intervals do not settle it is done again, twice as long, up to `longer` times. The highest
    load sustained and the lowest that was not lie `resolution` apart at most.
    """

    level_s: Seconds = 60.0
    least_requests: Count = 100
    pilot_requests: Count = 256
    pilot_concurrency: Concurrency = 8
    longer: Annotated[int, Field(ge=0, le=6), NUMBER] = 2
    resolution: Share = 0.05

    quick: ClassVar[Values] = {
        "level_s": 6.0,
        "least_requests": 30,
        "pilot_requests": 64,
        "pilot_concurrency": 32,
        "longer": 0,
        "resolution": 0.35,
    }


class Ttft(Parameters):
    """Draft 5.1. Levels are those of the plan's load unless `rates`, `concurrencies` or `percent` (of saturation) say more."""

    requests: Annotated[Count, HARMLESS] = 10_000
    rates: tuple[Rate, ...] = ()
    concurrencies: tuple[Concurrency, ...] = ()
    percent: Annotated[tuple[Percent, ...], HARMLESS] = ()

    quick: ClassVar[Values] = {"requests": 80}


class Throughput(Parameters):
    """Draft 5.2. Without a range, the climb gives one: levels about what it measured, within a 64th and 64 times of it.

    The climb ends with `saturated_runs` of a full system. A level under a limit of latency has `limit_requests`, the reference
    of the ten-times rule `reference_requests`; either limit has `limit_levels` at most.
    """

    loop: Annotated[Literal["open", "closed"], HARMLESS] = "open"
    duration_s: Seconds = 300.0
    min_rate: Rate | None = None
    max_rate: Rate | None = None
    rate_step: Rate | None = None
    min_concurrency: Concurrency = 8
    max_concurrency: Concurrency = 512
    concurrency_step: Concurrency = 8
    success_rate: Annotated[Share, HARMLESS] = 0.99
    saturated_runs: Annotated[int, Field(ge=0, le=100), NUMBER, HARMLESS] = 2
    limit_requests: Annotated[Count, HARMLESS] = 1_000
    limit_levels: Annotated[Count, HARMLESS] = 8
    reference_requests: Annotated[Count, HARMLESS] = 200
    ttft_p99_ms: Annotated[float, Field(gt=0), NUMBER] = 500.0
    """C.1's operating point: `Throughput at P99 TTFT < 500ms`. No objective of the test."""
    max_batch: Count | None = None
    """The engine's largest batch, declared: what batch utilisation is a share of (5.2.4.2)."""

    quick: ClassVar[Values] = {
        "duration_s": 6.0,
        "saturated_runs": 0,
        "limit_requests": 30,
        "limit_levels": 2,
        "reference_requests": 12,
    }

    @model_validator(mode="after")
    def _ranges(self) -> Throughput:
        _in_order(self, "min_rate", "max_rate")
        _in_order(self, "min_concurrency", "max_concurrency")
        return self


class Tradeoff(Parameters):
    """Draft 5.3. Percentages of the saturation rate, or of `capacity_rate` where that is published; more follow in steps of
    10 up to `most_percent`, until throughput falls."""

    duration_s: Seconds = 60.0
    percent: Annotated[tuple[Percent, ...], Field(min_length=1), HARMLESS] = (
        10,
        20,
        30,
        40,
        50,
        60,
        70,
        80,
        90,
        100,
        110,
        120,
    )
    most_percent: Annotated[Percent, HARMLESS] = 200.0
    capacity_rate: Rate | None = None

    quick: ClassVar[Values] = {
        "duration_s": 6.0,
        "percent": (40, 70, 100, 130),
        "most_percent": 130.0,
    }


class Itl(Parameters):
    """Draft 5.4. `output_tokens` in place of the workload's, so that answers have at least 50 tokens; None: the workload's
    own. `option`: of 4.6.3, by which gaps are measured (5.4.2)."""

    requests: Annotated[Count, HARMLESS] = 1_000
    percent: Annotated[tuple[Percent, ...], Field(min_length=1), HARMLESS] = (25, 50, 75, 90)
    output_tokens: Annotated[Length | None, HARMLESS] = None
    option: Annotated[Literal["A", "B", "C"], HARMLESS] = "A"

    quick: ClassVar[Values] = {"requests": 80, "percent": (50,)}


class Capacity(Parameters):
    """Draft 5.5. The threshold of TTFT is the tester's: without `ttft_p99_ms` none is held, and the report says so."""

    initial: Concurrency = 8
    maximum: Concurrency = 512
    output_tokens: Annotated[Count, HARMLESS] = 256
    success_rate: Annotated[Share, HARMLESS] = 0.99
    ttft_p99_ms: Annotated[float, Field(gt=0), NUMBER] | None = None
    duration_s: Seconds = 60.0
    completions_per_slot: Count = 100

    quick: ClassVar[Values] = {
        "duration_s": 4.0,
        "completions_per_slot": 2,
        "maximum": 256,
        "output_tokens": 64,
        "ttft_p99_ms": 1_000.0,
    }

    @model_validator(mode="after")
    def _range(self) -> Capacity:
        _in_order(self, "initial", "maximum")
        return self


class FairnessClass(Part):
    """Ranges in tokens, both ends included, within which a draw of Synthetic-Skewed belongs to this class. `priority`: sent
    with its requests, where the system has priorities."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,32}$"), HARMLESS]
    input_tokens: Annotated[tuple[Count, Count], Field(), HARMLESS]
    output_tokens: Annotated[tuple[Count, Count], Field(), HARMLESS]
    share: Annotated[Share, HARMLESS]
    priority: Annotated[Priority | None, HARMLESS] = None

    @property
    def lengths(self) -> tuple[Lognormal, Lognormal]:
        """Input and output: Synthetic-Skewed draws both apart, so each is its own, drawn again until within the range.

        ValueError where next to nothing of it is.
        """
        found = []
        ranges = (self.input_tokens, self.output_tokens)
        for whole, (low, high) in zip(STANDARD["synthetic-skewed"], ranges, strict=True):
            assert isinstance(whole, Lognormal)
            found.append(lognormal(whole.mu, whole.sigma, min=low, max=high, within="redraw"))
        return found[0], found[1]

    @property
    def mean_tokens(self) -> float:
        """Of a request, input and output together."""
        return sum(length.mean() for length in self.lengths)

    @model_validator(mode="after")
    def _possible(self) -> FairnessClass:
        _ = self.lengths
        return self


class Fairness(Parameters):
    """Draft 5.6. `percent` of the saturation rate of the mix."""

    percent: Annotated[Percent, HARMLESS] = 80.0
    duration_s: Seconds = 300.0
    requests_per_class: Count = 500
    classes: Annotated[tuple[FairnessClass, ...], Field(min_length=2, max_length=16), HARMLESS] = (
        FairnessClass(name="short", input_tokens=(64, 256), output_tokens=(32, 128), share=0.8),
        FairnessClass(name="long", input_tokens=(1024, 4096), output_tokens=(256, 1024), share=0.2),
    )

    quick: ClassVar[Values] = {
        "percent": 45.0,
        "duration_s": 6.0,
        "requests_per_class": 10,
        "classes": (
            {"name": "short", "input_tokens": (64, 256), "output_tokens": (32, 128), "share": 0.8},
            {"name": "long", "input_tokens": (1024, 4096), "output_tokens": (128, 256), "share": 0.2},
        ),
    }

    @field_validator("classes")
    @classmethod
    def _told_apart(cls, classes: tuple[FairnessClass, ...]) -> tuple[FairnessClass, ...]:
        names = [one.name for one in classes]
        if len({*names}) < len(names):
            raise ValueError("class names must be unique")
        return classes


class PrefixCache(Parameters):
    """Draft 5.7. TTFT at `percent` of what the system sustains without cache; throughput at `concurrency` in closed loop.
    `output_tokens` in place of the workload's; None: its own."""

    requests: Annotated[Count, HARMLESS] = 1_000
    percent: Annotated[Percent, HARMLESS] = 50.0
    concurrency: Concurrency = 32
    throughput_s: Seconds = 60.0
    output_tokens: Annotated[Length | None, HARMLESS] = None

    quick: ClassVar[Values] = {
        "requests": 60,
        "concurrency": 16,
        "throughput_s": 5.0,
        "output_tokens": 64,
    }


class MemoryPressure(Parameters):
    """Draft 5.8. Percentages of the highest concurrency that 5.5's search finds on this test's own workload; 100 comes
    first. A level lasts until about `requests` have ended, at the rate of the base: a P99 with an interval takes as many."""

    percent: Annotated[tuple[Percent, ...], Field(min_length=1), HARMLESS] = (110, 125, 150)
    duration_s: Seconds = 120.0
    requests: Count = 2_000
    initial: Concurrency = 1
    maximum: Concurrency = 256
    success_rate: Annotated[Share, HARMLESS] = 0.99
    ttft_p99_ms: Annotated[float, Field(gt=0), NUMBER] | None = None
    level_s: Seconds = 60.0
    completions_per_slot: Count = 100
    input_tokens: Annotated[Length | None, HARMLESS] = None
    output_tokens: Annotated[Length | None, HARMLESS] = None

    quick: ClassVar[Values] = {
        "percent": (125,),
        "duration_s": 6.0,
        "requests": 1,
        "level_s": 4.0,
        "completions_per_slot": 1,
        "initial": 8,
        "maximum": 64,
        "ttft_p99_ms": 1_500.0,
        "input_tokens": 4_096,
        "output_tokens": 32,
    }


class LongContext(Parameters):
    """Draft 5.9, with the target lengths of A.5.1. Lengths that the model does not take are left out, and the report says
    so. `search`: of the maximum throughput at each length (5.9.4), with up to `most_in_flight`."""

    lengths: Annotated[tuple[Count, ...], Field(min_length=1), HARMLESS] = (8192, 16384, 32768, 65536, 131072)
    output_tokens: Annotated[Count, HARMLESS] = 256
    concurrency: Concurrency = 1
    requests: Annotated[Count, HARMLESS] = 20
    search: Annotated[bool, HARMLESS] = False
    most_in_flight: Concurrency = 256

    quick: ClassVar[Values] = {
        "lengths": (1024, 2048, 4096, 8192),
        "requests": 4,
        "output_tokens": 16,
    }

    @field_validator("lengths")
    @classmethod
    def _ascending(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        """Draft 5.9.3: in ascending order."""
        return tuple(sorted(set(lengths)))


Configuration = Literal["baseline", "input", "output", "full"]


class Guardrail(Parameters):
    """Draft 5.10. `percent` of the baseline's saturation rate; the most throughput is searched for in closed loop, unless it is
    measured at one `concurrency`.

    `workload`: the plan's own, or Conversation, which draft 5.10.2 recommends. None: the plan's if it has chosen one."""

    workload: Annotated[Literal["plan", "conversation"] | None, HARMLESS] = None
    configurations: Annotated[tuple[Configuration, ...], Field(min_length=1), HARMLESS] = (
        "baseline",
        "input",
        "output",
        "full",
    )
    percent: Annotated[tuple[Percent, ...], Field(min_length=1), HARMLESS] = (25, 50, 75)
    duration_s: Seconds = 60.0
    concurrency: Concurrency | None = None
    throughput_s: Seconds = 60.0

    quick: ClassVar[Values] = {
        "workload": "plan",
        "percent": (50,),
        "duration_s": 5.0,
        "throughput_s": 5.0,
        "concurrency": 32,
    }


class ColdStart(Parameters):
    """Draft 4.5.3: starts, each measured from the command to the first healthy answer and the first token after it. How long
    to wait for that answer is said by the way of starting (plan/switching.py)."""

    starts: Annotated[Count, HARMLESS] = 6
    """The fewest that give their medians a 95 % interval (measure/median_interval.py)."""

    quick: ClassVar[Values] = {"starts": 2}


class Tests(Part):
    """Parameters of all tests, by name."""

    __test__: ClassVar[bool] = False  # a name that pytest would collect

    search: Search = Search()
    ttft: Ttft = Ttft()
    throughput: Throughput = Throughput()
    tradeoff: Tradeoff = Tradeoff()
    itl: Itl = Itl()
    capacity: Capacity = Capacity()
    fairness: Fairness = Fairness()
    prefix_cache: Annotated[PrefixCache, Field(alias="prefix-cache")] = PrefixCache()
    memory_pressure: Annotated[MemoryPressure, Field(alias="memory-pressure")] = MemoryPressure()
    long_context: Annotated[LongContext, Field(alias="long-context")] = LongContext()
    guardrail: Guardrail = Guardrail()
    cold_start: Annotated[ColdStart, Field(alias="cold-start")] = ColdStart()


NAMES = {name: field.alias or name for name, field in Tests.model_fields.items() if name != "search"}
"""Attribute of Tests: the name of the test on the command line and in a plan."""


def searched(test: str, tests: Tests) -> frozenset[str]:
    """The parameters of `search` that a test reads, by its name on the command line; none of a test that searches for nothing.

    | test                                                                    | looks for                       |
    | ----------------------------------------------------------------------- | ------------------------------- |
    | itl, fairness, prefix-cache, guardrail; ttft with percentages;          | a rate that is 100 %            |
    | tradeoff without a published capacity                                   |                                 |
    | throughput                                                              | a rate, or a concurrency        |
    | capacity, memory-pressure                                               | a concurrency                   |
    """
    levels = {"longer", "resolution"}
    pilot = {"pilot_requests", "pilot_concurrency"}
    base = frozenset({"level_s", "least_requests"} | levels | pilot)
    reads: dict[str, frozenset[str]] = {
        "ttft": base if tests.ttft.percent else frozenset(),
        "throughput": base - {"level_s"}
        if tests.throughput.loop == "open"
        else frozenset({"pilot_requests"}),
        "tradeoff": base if tests.tradeoff.capacity_rate is None else frozenset({"least_requests"}),
        "capacity": frozenset(levels),
        "memory-pressure": frozenset(levels),
        **dict.fromkeys(("itl", "fairness", "prefix-cache", "guardrail"), base),
    }
    return reads.get(test, frozenset())


def published(test: str) -> frozenset[str]:
    """The parameters of a test, by its name on the command line, that a redacted report publishes: those marked as harmless.
    None of a test that this version does not know."""
    fields = {field.alias or name: field for name, field in Tests.model_fields.items()}
    kind: Any = fields[test].annotation if test in fields else Parameters
    return harmless(kind)


def parameter_parts(test: str) -> dict[str, type[Part]]:
    """The parts that parameters of a test hold, by the parameter."""
    fields = {field.alias or name: field for name, field in Tests.model_fields.items()}
    kind: Any = fields[test].annotation if test in fields else Parameters
    held = {name: next(parts_in(field.annotation), None) for name, field in kind.model_fields.items()}
    return {name: part for name, part in held.items() if part is not None}


def quickened(given: Values) -> Values:
    """Parameters by test as a plan file has them, with a quick run's numbers where nothing was asked."""
    quick: Values = {}
    for name, field in Tests.model_fields.items():
        kind: Any = field.annotation
        key = field.alias or name
        asked = given.get(key, {})
        # What is no mapping is left for the schema to refuse.
        quick[key] = {**kind.quick, **asked} if isinstance(asked, dict) else asked
    return given | quick
