"""May these sides be compared? Draft 6.1's requirements and 6.4's checklist, item by item, as values.

| status    | means                                                                     |
| --------- | ------------------------------------------------------------------------- |
| satisfied | seen in the record, or made so by normalising                              |
| declared  | the same on all sides by what their plans, or the command line, say of it |
| unknown   | not said by at least one side                                              |
| violated  | seen or declared to differ                                                 |

A violated MUST makes sides not comparable, except loads that differ in some tests only: those bar the figures of these tests
(campaigns.py). Anything else that is not satisfied is a reservation.

Repeats of a side differ in seed, and the same seeds come on every side: runs are paired by seed, and of the same seed in the
order in which they began.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from inferometer.documents.comparison import ConfigurationDifference, Item, ItemFacts, ItemStatus
from inferometer.documents.part import to_data
from inferometer.documents.summary import Sut
from inferometer.documents.verdict import RunStatus
from inferometer.plan.saved import part_values, resolved
from inferometer.plan.schema import REFERENCE_TOKENIZER, Plan
from inferometer.plan.workload import TasksWorkload

T = TypeVar("T")
Data = Mapping[str, Any]
"""A plan or a part of one, resolved, as its JSON has it: differences are found key by key, whatever the keys are."""

HARDWARE = ("accelerator", "accelerator_count"), ("accelerator_memory",)
"""What has to be declared, and what has to agree where it is."""
COMPARED = ("target", "sut", "workload", "load", "trace", "tokenizer", "slos", "instrument")
"""Parts of a plan whose differences are listed."""


@dataclass(frozen=True, slots=True)
class TokenCounting:
    """How a run counted tokens, and how it took inter-token latencies; None: unknown."""

    method: str | None
    tokenizer: str | None
    source: str | None
    itl_method: str | None


@dataclass(frozen=True, slots=True)
class Instrument:
    """What measured: the source of time stamps and the program's version."""

    timestamp_source: str
    version: str


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a comparison needs to know of a run beside its figures. `reasons`: the codes of the checks that keep it from being
    VALID. Times are of the wall clock, in ns.
    """

    id: str
    seed: int
    started_ns: int
    ended_ns: int
    status: RunStatus
    reasons: tuple[str, ...]
    interrupted: bool
    simulated: bool
    fingerprint: str | None
    plan: Plan
    sut: Sut
    tokens: TokenCounting
    instrument: Instrument


@dataclass(frozen=True, slots=True)
class Declared:
    """What the command line says of all sides: prices per hour by side's number, and two flags."""

    prices: Mapping[int, float] = field(default_factory=dict)
    price_source: str | None = None
    production: bool = False
    shared_resources: bool = False


Sides = Sequence[Sequence[RunFacts]]


def checklist(
    sides: Sides, declared: Declared, noise: Sides = (), beside: Sequence[Sequence[Data]] = ()
) -> tuple[Item, ...]:
    """Every item of 6.1 and 6.4, and the token count of 4.4.2, in the draft's order; `noise`: A/A sides of the first; `beside`:
    the configuration of each run that its plan does not hold, if there is any.

    Each side has at least one run.
    """
    return (
        _workload(sides),
        _boundary(sides),
        _hardware(sides, declared),
        _load(sides),
        _same("specification", sides, _specification),
        _duration(sides),
        _same("warmup", sides, lambda run: {"warmup": run.plan.load.warmup}),
        _same("success", sides, _success),
        _token_count(sides),
        _same_time(sides, declared),
        _production(declared),
        Item("differences", "6.4", "checklist", "satisfied", ItemFacts(count=len(differences(sides)))),
        _one_kind([*sides, *noise]),
        _one_system_a_side(sides, beside or [[{} for _ in side] for side in sides]),
        *([_noise(sides[0], noise)] if noise else []),
    )


def pairs(sides: Sides) -> list[tuple[int, ...]] | None:
    """For each seed, the places of its runs in their sides; None unless every side has the same seeds."""
    wanted = Counter(run.seed for run in sides[0])
    if any(Counter(run.seed for run in side) != wanted for side in sides[1:]):
        return None
    orders = [
        sorted(range(len(side)), key=lambda at, side=side: (side[at].seed, side[at].started_ns))  # type: ignore[misc]
        for side in sides
    ]
    return list(zip(*orders, strict=True))


def differences(sides: Sides) -> tuple[ConfigurationDifference, ...]:
    """Where plans and declarations differ, with the values met on each side (6.4's last item)."""
    spread = [[leaves(_configuration(run)) for run in side] for side in sides]
    keys = sorted({key for side in spread for run in side for key in run})
    found = []
    for key in keys:
        values = [_met(run.get(key) for run in side) for side in spread]
        if any(one != values[0] for one in values[1:]) or any(len(one) > 1 for one in values):
            if key.startswith("target.headers"):  # a report shows no header's value
                values = [tuple("set" if value else None for value in one) for one in values]
            found.append(ConfigurationDifference(key, tuple(values)))
    return tuple(found)


def forbidden(plans: Sequence[Plan]) -> list[str]:
    """Keys in which plans differ that 6.1 wants the same, before anything is measured: load, workload, boundary."""
    flat = [leaves({"load": load_of(one), "workload": requests_of(one)}) for one in plans]
    keys = sorted({key for one in flat for key in one})
    found = [key for key in keys if any(one.get(key) != flat[0].get(key) for one in flat[1:])]
    boundaries = {one.sut.boundary for one in plans} - {None}
    return [*found, *(["sut.boundary"] if len(boundaries) > 1 else [])]


# The items of 6.1.


def _workload(sides: Sides) -> Item:
    paired = pairs(sides)
    seeds = tuple(tuple(sorted(run.seed for run in side)) for side in sides)
    one_seed = len({*seeds[0]}) == 1 and len(seeds[0]) > 1
    why: Literal["seeds", "fingerprints", "plans"] | None = None
    status: ItemStatus = "satisfied"
    apart: tuple[int, ...] | None = None
    if paired is None:
        status, why = "violated", "seeds"
    else:
        groups = [[side[at] for side, at in zip(sides, numbers, strict=True)] for numbers in paired]
        differing = tuple(runs[0].seed for runs in groups if len({run.fingerprint for run in runs}) > 1)
        if any(run.fingerprint is None for runs in groups for run in runs):
            # Of a trace that was not gone through to its end, the plans alone can tell.
            requested = {_key(requests_of(run.plan)) for side in sides for run in side}
            status, why = "declared" if len(requested) == 1 else "violated", "plans"
        elif differing:
            status, why, apart = "violated", "fingerprints", differing
    facts = ItemFacts(seeds=seeds, one_seed=one_seed, why=why, apart=apart)
    return Item("workload", "6.1", "MUST", status, facts)


def _boundary(sides: Sides) -> Item:
    return _declared_alike("boundary", sides, ("boundary",))


def _declared_alike(code: str, sides: Sides, keys: Sequence[str], optional: Sequence[str] = ()) -> Item:
    """What is declared of the system: saying nothing contradicts nothing, but is not saying the same."""
    values = tuple(
        _met({key: getattr(run.sut, key) for key in (*keys, *optional)} for run in side) for side in sides
    )
    declared = {key: {one[key] for side in values for one in side} for key in (*keys, *optional)}
    status: ItemStatus = "declared"
    if any(len(found - {None}) > 1 for found in declared.values()):
        status = "violated"
    elif any(None in declared[key] for key in keys) or any(len(found) > 1 for found in declared.values()):
        status = "unknown"
    return Item(code, "6.1", "MUST", status, ItemFacts(values=values))


def _hardware(sides: Sides, declared: Declared) -> Item:
    plain = _declared_alike("hardware", sides, *HARDWARE)
    method = normalised_by(sides, declared)
    if plain.status != "violated":
        return plain
    if method is None:
        return plain
    return Item("hardware", "6.1", "MUST", "satisfied", replace(plain.facts, normalised=method))


def hardware_differs(sides: Sides) -> bool:
    """Whether the sides declare different hardware."""
    return _declared_alike("hardware", sides, *HARDWARE).status == "violated"


def normalised_by(sides: Sides, declared: Declared) -> Literal["price", "gpu"] | None:
    """What throughput can be divided by on all sides (6.2): a price per hour, else a number of accelerators."""
    if len(declared.prices) == len(sides):
        return "price"
    return "gpu" if all(accelerators(side) for side in sides) else None


def accelerators(side: Sequence[RunFacts]) -> int | None:
    """The accelerators a side declares; None where they are none, unknown, or not the same in all runs."""
    counts = {run.sut.accelerator_count for run in side}
    count = counts.pop() if len(counts) == 1 else None
    return count or None


def _load(sides: Sides) -> Item:
    item = _same("load", sides, lambda run: load_of(run.plan))
    return Item("load", "6.1", "MUST", item.status, item.facts)


def load_of(plan: Plan) -> Data:
    """What a plan says of when requests are sent, except how many and for how long."""
    names = ("model", "concurrency", "rate", "users", "user_rate", "arrival", "burstiness")
    load, trace = part_values(plan.load), None
    if plan.trace is not None:
        trace = _without(part_values(plan.trace), "file")
    return {name: load[name] for name in names} | {"trace": trace}


# Those of 6.4.


def _same(code: str, sides: Sides, part: Callable[[RunFacts], Data]) -> Item:
    flat = [[leaves(part(run)) for run in side] for side in sides]
    first = flat[0][0]
    names = sorted({key for side in flat for run in side for key in run})
    apart = tuple(
        name for name in names if any(run.get(name) != first.get(name) for side in flat for run in side)
    )
    return Item(code, "6.4", "checklist", "violated" if apart else "satisfied", ItemFacts(keys=apart))


def _specification(run: RunFacts) -> Data:
    target = part_values(run.plan.target)
    return {
        "workload": requests_of(run.plan),
        "target": {name: target[name] for name in ("api", "stream", "extra_body", "websocket")},
    }


def requests_of(plan: Plan) -> Data:
    """What a plan says of its requests, except the seed and the places of files, which their hashes stand for, and what is done
    with answers after the load."""
    places = ("prompts", "file", "tasks", "sessions")
    return _without(part_values(plan.workload), "seed", *places, "spans", "task_commands")


def _duration(sides: Sides) -> Item:
    item = _same(
        "duration",
        sides,
        lambda run: {name: getattr(run.plan.load, name) for name in ("requests", "duration_s", "drain_s")},
    )
    cut = tuple(run.id for side in sides for run in side if run.interrupted)
    status: ItemStatus = "violated" if cut else item.status
    return Item("duration", "6.4", "checklist", status, replace(item.facts, interrupted=cut))


def _success(run: RunFacts) -> Data:
    target = run.plan.target
    names = ("timeout_s", "connect_timeout_s", "max_answer_mib", "max_events", "max_overrun_s")
    limits = {name: getattr(target, name) for name in names}
    return {**limits, "slos": sorted(map(str, run.plan.slos)), "task_criteria": criteria_of(run.plan)}


def criteria_of(plan: Plan) -> str | None:
    """The digest of the file that says what answers to tasks are held to; None: there are none. The requests' fingerprint does
    not tell: files of the same inputs may hold the answers to anything."""
    workload = plan.workload
    return workload.prompts_sha256 if isinstance(workload, TasksWorkload) else None


def _token_count(sides: Sides) -> Item:
    """4.4.2: one way of counting for all; across systems, cl100k_base as a yardstick is recommended."""
    runs = [run for side in sides for run in side]
    methods = _met(run.tokens.method for run in runs)
    tokenizers = _met(run.tokens.tokenizer for run in runs)
    sources = _met(run.tokens.source for run in runs)
    models = _met(run.sut.model for run in runs)
    status: ItemStatus = "satisfied"
    if len(methods) > 1 or len(sources) > 1 or len(tokenizers) > 1:
        status = "violated"
    elif methods == ("native",) and len(models) > 1:
        status = "unknown"  # servers count, each with its own model's tokenizer
    recommended = methods == ("reference",) and tokenizers == (REFERENCE_TOKENIZER,)
    facts = ItemFacts(
        methods=methods, tokenizers=tokenizers, sources=sources, models=models, recommended=recommended
    )
    return Item("token_count", "4.4.2", "RECOMMENDED", status, facts)


def _same_time(sides: Sides, declared: Declared) -> Item:
    spans = tuple((min(run.started_ns for run in side), max(run.ended_ns for run in side)) for side in sides)
    interleaved = all(
        one[0] < other[1] and other[0] < one[1] for one in spans for other in spans if one is not other
    )
    status: ItemStatus = "satisfied"
    how: Literal["virtual", "interleaved", "in turn"]
    if all(run.simulated for side in sides for run in side):
        how = "virtual"
    elif interleaved:
        how = "interleaved"
    else:
        status, how = ("violated" if declared.shared_resources else "unknown"), "in turn"
    facts = ItemFacts(spans=spans, shared=declared.shared_resources, how=how)
    return Item("same_time", "6.4", "checklist", status, facts)


def _production(declared: Declared) -> Item:
    status: ItemStatus = "declared" if declared.production else "unknown"
    return Item("production", "6.4", "checklist", status, ItemFacts())


def _one_kind(sides: Sides) -> Item:
    """Ours: a simulation cannot stand against a measurement."""
    kinds = {run.simulated for side in sides for run in side}
    status: ItemStatus = "satisfied" if len(kinds) == 1 else "violated"
    return Item("one_kind", "6.1", "MUST", status, ItemFacts(simulated=kinds == {True}))


def _noise(baseline: Sequence[RunFacts], noise: Sides) -> Item:
    """Ours: A/A runs are of the baseline's system, under its load; that may stand at another address."""
    keys = [one.key for one in differences([baseline, *noise])]
    apart = tuple(key for key in keys if not key.startswith("instrument") and not key.endswith(".url"))
    status: ItemStatus = "violated" if apart else "satisfied"
    return Item("noise", "6.3", "checklist", status, ItemFacts(keys=apart))


def _one_system_a_side(sides: Sides, configurations: Sequence[Sequence[Data]]) -> Item:
    """Ours: the runs of a side are of one system, or their mean is of none. `configurations`: of each run, beside its plan.

    Saying nothing contradicts nothing, but is not saying the same; and notes are free text, except of a simulated engine, whose
    settings they are. A system may stand at several addresses, and list other models beside the one that was measured.
    """
    unlike, unsure = [], False
    for side, beside in zip(sides, configurations, strict=True):
        values: dict[str, set[object]] = {}
        for run, more in zip(side, beside, strict=True):
            engine = {key: value for key, value in more.items() if key.startswith("engine.")}
            for key, value in (leaves({"sut": to_data(run.sut)}) | engine).items():
                values.setdefault(key, set()).add(_key(value))
        values.pop("sut.url", None)
        free = {"sut.observed.models"} | (set() if all(run.simulated for run in side) else {"sut.notes"})
        several = {key: found - {_key(None)} for key, found in values.items() if len(found) > 1}
        clear = tuple(key for key, found in several.items() if len(found) > 1 and key not in free)
        unlike.append(clear)
        unsure |= len(several) > len(clear)
    status: ItemStatus = "violated" if any(unlike) else "unknown" if unsure else "satisfied"
    return Item("one_system", "6.1", "MUST", status, ItemFacts(within=tuple(unlike)))


def _configuration(run: RunFacts) -> Data:
    plan = resolved(run.plan)
    observed = {
        "sut": to_data(run.sut),
        "workload": _without(part_values(run.plan.workload), "seed"),
        "instrument": {**_without(part_values(run.plan.instrument), "keep_text"), **asdict(run.instrument)},
    }
    return {name: plan.get(name) for name in COMPARED} | observed


def leaves(value: object, key: str = "") -> dict[str, object]:
    """The leaves by their dotted keys."""
    if isinstance(value, Mapping) and value:
        inner: dict[str, object] = {}
        for name, one in value.items():
            inner |= leaves(one, f"{key}.{name}" if key else str(name))
        return inner
    return {key: value}


def _met(values: Iterable[T]) -> tuple[T, ...]:
    """The different ones among them, in their order."""
    found: dict[str, T] = {}
    for value in values:
        found.setdefault(_key(value), value)
    return tuple(found.values())


def _key(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _without(part: Data, *names: str) -> Data:
    return {name: value for name, value in part.items() if name not in names}
