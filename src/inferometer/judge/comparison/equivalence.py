"""May these sides be compared? Draft 6.1's requirements and 6.4's checklist, item by item, as values.

| status    | means                                                                     |
| --------- | ------------------------------------------------------------------------- |
| satisfied | seen in the record, or made so by normalising                              |
| declared  | the same on all sides by what their plans, or the command line, say of it |
| unknown   | not said by at least one side                                              |
| violated  | seen or declared to differ                                                 |

A violated MUST makes sides not comparable; anything else that is not satisfied is a reservation.

Repeats of a side differ in seed, and the same seeds come on every side: runs are paired by seed, and of the same seed in the
order in which they began.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from inferometer.plan.schema import REFERENCE_TOKENIZER

Status = Literal["satisfied", "declared", "unknown", "violated"]
Level = Literal["MUST", "RECOMMENDED", "checklist"]

HARDWARE = ("accelerator", "accelerator_count"), ("accelerator_memory",)
"""What has to be declared, and what has to agree where it is."""
COMPARED = ("target", "sut", "workload", "load", "trace", "tokenizer", "slos", "instrument")
"""Parts of a plan whose differences are listed."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a run's folder says of it, as far as comparing needs it.

    `plan`: resolved, as saved; `sut`, `tokens` and `instrument`: those of its summary; `reasons`: the codes of the checks that
    keep it from being VALID. Times are of the wall clock, in ns.
    """

    id: str
    seed: int
    started_ns: int
    ended_ns: int
    status: str
    reasons: tuple[str, ...]
    interrupted: bool
    simulated: bool
    fingerprint: str | None
    plan: Mapping[str, Any]
    sut: Mapping[str, Any]
    tokens: Mapping[str, Any]
    instrument: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declared:
    """What the command line says of all sides: prices per hour by side's number, and two flags."""

    prices: Mapping[int, float] = field(default_factory=dict)
    price_source: str | None = None
    production: bool = False
    shared_resources: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One item: its code, the section of the draft it is from, its level, its status, and what was found."""

    code: str
    section: str
    level: Level
    status: Status
    facts: Mapping[str, Any]

    @property
    def forbids(self) -> bool:
        """Whether it alone makes the sides not comparable."""
        return self.level == "MUST" and self.status == "violated"


Sides = Sequence[Sequence[Told]]


def checklist(sides: Sides, declared: Declared, noise: Sides = ()) -> tuple[Item, ...]:
    """Every item of 6.1 and 6.4, and the token count of 4.4.2, in the draft's order; `noise`: A/A sides of the first.

    Each side has at least one run.
    """
    return (
        _workload(sides),
        _boundary(sides),
        _hardware(sides, declared),
        _load(sides),
        _same("specification", sides, _specification),
        _duration(sides),
        _same("warmup", sides, lambda run: {"warmup": run.plan["load"]["warmup"]}),
        _same("success", sides, _success),
        _token_count(sides),
        _same_time(sides, declared),
        _production(declared),
        Item("differences", "6.4", "checklist", "satisfied", {"count": len(differences(sides))}),
        _one_kind([*sides, *noise]),
        *([_one_system(sides[0], noise)] if noise else []),
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


def differences(sides: Sides) -> list[dict[str, Any]]:
    """Where plans and declarations differ: `{key, values}` with a list of the values met on each side (6.4's last item)."""
    spread = [[_flat(_configuration(run)) for run in side] for side in sides]
    keys = sorted({key for side in spread for run in side for key in run})
    found = []
    for key in keys:
        values = [_met(run.get(key) for run in side) for side in spread]
        if any(one != values[0] for one in values[1:]) or any(len(one) > 1 for one in values):
            if key.startswith("target.headers"):  # a report shows no header's value
                values = [["set" if value else None for value in one] for one in values]
            found.append({"key": key, "values": values})
    return found


def forbidden(plans: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys in which plans differ that 6.1 wants the same, before anything is measured: load, workload, boundary."""
    flat = [_flat({"load": _load_of(one), "workload": _requests_of(one)}) for one in plans]
    keys = sorted({key for one in flat for key in one})
    found = [key for key in keys if any(one.get(key) != flat[0].get(key) for one in flat[1:])]
    boundaries = {one["sut"]["boundary"] for one in plans} - {None}
    return [*found, *(["sut.boundary"] if len(boundaries) > 1 else [])]


# The items of 6.1.


def _workload(sides: Sides) -> Item:
    paired = pairs(sides)
    seeds = [sorted(run.seed for run in side) for side in sides]
    facts: dict[str, Any] = {"seeds": seeds, "one_seed": len({*seeds[0]}) == 1 and len(seeds[0]) > 1}
    if paired is None:
        return Item("workload", "6.1", "MUST", "violated", facts | {"why": "seeds"})
    apart = []
    unsaid = False
    for numbers in paired:
        runs = [side[at] for side, at in zip(sides, numbers, strict=True)]
        prints = {run.fingerprint for run in runs}
        unsaid = unsaid or None in prints
        if len(prints) > 1:
            apart.append(runs[0].seed)
    asked = {_key(_requests_of(run.plan)) for side in sides for run in side}
    if apart and not unsaid:
        return Item("workload", "6.1", "MUST", "violated", facts | {"why": "fingerprints", "apart": apart})
    if not unsaid:
        return Item("workload", "6.1", "MUST", "satisfied", facts)
    # Of a trace that was not gone through to its end, the plans alone can tell.
    same: Status = "declared" if len(asked) == 1 else "violated"
    return Item("workload", "6.1", "MUST", same, facts | {"why": "plans"})


def _boundary(sides: Sides) -> Item:
    return _declared_alike("boundary", sides, ("boundary",))


def _declared_alike(code: str, sides: Sides, keys: Sequence[str], optional: Sequence[str] = ()) -> Item:
    """What is declared of the system: saying nothing contradicts nothing, but is not saying the same."""
    values = [_met({key: run.sut[key] for key in (*keys, *optional)} for run in side) for side in sides]
    said = {key: {_key(one[key]) for side in values for one in side} for key in (*keys, *optional)}
    nothing = _key(None)
    status: Status = "declared"
    if any(len(found - {nothing}) > 1 for found in said.values()):
        status = "violated"
    elif any(nothing in said[key] for key in keys) or any(len(found) > 1 for found in said.values()):
        status = "unknown"
    return Item(code, "6.1", "MUST", status, {"values": values})


def _hardware(sides: Sides, declared: Declared) -> Item:
    plain = _declared_alike("hardware", sides, *HARDWARE)
    method = normalised_by(sides, declared)
    if plain.status != "violated":
        return plain
    if method is None:
        return plain
    return Item("hardware", "6.1", "MUST", "satisfied", {**plain.facts, "normalised": method})


def hardware_differs(sides: Sides) -> bool:
    """Whether the sides declare different hardware."""
    return _declared_alike("hardware", sides, *HARDWARE).status == "violated"


def normalised_by(sides: Sides, declared: Declared) -> Literal["price", "gpu"] | None:
    """What throughput can be divided by on all sides (6.2): a price per hour, else a number of accelerators."""
    if len(declared.prices) == len(sides):
        return "price"
    return "gpu" if all(accelerators(side) for side in sides) else None


def accelerators(side: Sequence[Told]) -> int | None:
    """The accelerators a side declares; None where they are none, unknown, or not the same in all runs."""
    counts = {run.sut["accelerator_count"] for run in side}
    count = counts.pop() if len(counts) == 1 else None
    return count or None


def _load(sides: Sides) -> Item:
    item = _same("load", sides, lambda run: _load_of(run.plan))
    return Item("load", "6.1", "MUST", item.status, item.facts)


def _load_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    names = ("model", "concurrency", "rate", "users", "user_rate", "arrival", "burstiness")
    trace = plan.get("trace")
    return {name: plan["load"][name] for name in names} | {"trace": trace and _without(trace, "file")}


# Those of 6.4.


def _same(code: str, sides: Sides, part: Callable[[Told], Mapping[str, Any]]) -> Item:
    flat = [[_flat(part(run)) for run in side] for side in sides]
    first = flat[0][0]
    names = sorted({key for side in flat for run in side for key in run})
    apart = [name for name in names if any(run.get(name) != first.get(name) for side in flat for run in side)]
    return Item(code, "6.4", "checklist", "violated" if apart else "satisfied", {"keys": apart})


def _specification(run: Told) -> dict[str, Any]:
    target = run.plan["target"]
    asked = {name: target[name] for name in ("api", "stream", "extra_body")}
    return {"workload": _requests_of(run.plan), "target": asked}


def _requests_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan says of its requests, but for the seed, and the places of files that are told by their hash."""
    return _without(plan["workload"], "seed", "prompts", "file")


def _duration(sides: Sides) -> Item:
    item = _same(
        "duration",
        sides,
        lambda run: {name: run.plan["load"][name] for name in ("requests", "duration_s", "drain_s")},
    )
    cut = [run.id for side in sides for run in side if run.interrupted]
    status: Status = "violated" if cut else item.status
    return Item("duration", "6.4", "checklist", status, {**item.facts, "interrupted": cut})


def _success(run: Told) -> dict[str, Any]:
    target = run.plan["target"]
    waits = {name: target[name] for name in ("timeout_s", "connect_timeout_s")}
    return waits | {"slos": sorted(map(str, run.plan["slos"]))}


def _token_count(sides: Sides) -> Item:
    """4.4.2: one way of counting for all; across systems, cl100k_base as a yardstick is recommended."""
    runs = [run for side in sides for run in side]
    methods = _met(run.tokens["tokenizer"]["method"] for run in runs)
    tokenizers = _met(run.tokens["tokenizer"]["name"] for run in runs)
    sources = _met(run.tokens["count_source"] for run in runs)
    models = _met(run.sut["model"] for run in runs)
    facts = {"methods": methods, "tokenizers": tokenizers, "sources": sources, "models": models}
    status: Status = "satisfied"
    if len(methods) > 1 or len(sources) > 1 or len(tokenizers) > 1:
        status = "violated"
    elif methods == ["native"] and len(models) > 1:
        status = "unknown"  # servers count, each with its own model's tokenizer
    recommended = methods == ["reference"] and tokenizers == [REFERENCE_TOKENIZER]
    return Item("token_count", "4.4.2", "RECOMMENDED", status, facts | {"recommended": recommended})


def _same_time(sides: Sides, declared: Declared) -> Item:
    spans = [(min(run.started_ns for run in side), max(run.ended_ns for run in side)) for side in sides]
    interleaved = all(
        one[0] < other[1] and other[0] < one[1] for one in spans for other in spans if one is not other
    )
    facts = {"spans": [list(span) for span in spans], "shared": declared.shared_resources}
    if all(run.simulated for side in sides for run in side):
        return Item("same_time", "6.4", "checklist", "satisfied", facts | {"how": "virtual"})
    if interleaved:
        return Item("same_time", "6.4", "checklist", "satisfied", facts | {"how": "interleaved"})
    status: Status = "violated" if declared.shared_resources else "unknown"
    return Item("same_time", "6.4", "checklist", status, facts | {"how": "in turn"})


def _production(declared: Declared) -> Item:
    status: Status = "declared" if declared.production else "unknown"
    return Item("production", "6.4", "checklist", status, {})


def _one_kind(sides: Sides) -> Item:
    """Ours: a simulation cannot stand against a measurement."""
    kinds = {run.simulated for side in sides for run in side}
    status: Status = "satisfied" if len(kinds) == 1 else "violated"
    return Item("one_kind", "6.1", "MUST", status, {"simulated": kinds == {True}})


def _one_system(baseline: Sequence[Told], noise: Sides) -> Item:
    """Ours: A/A runs are of the baseline's system, under its load; that may stand at another address."""
    keys = [one["key"] for one in differences([baseline, *noise])]
    apart = [key for key in keys if not key.startswith("instrument") and not key.endswith(".url")]
    return Item("noise", "6.3", "checklist", "violated" if apart else "satisfied", {"keys": apart})


def _configuration(run: Told) -> dict[str, Any]:
    seen = {"sut": run.sut, "workload": _without(run.plan["workload"], "seed")}
    seen["instrument"] = {**run.plan["instrument"], **run.instrument}
    return {name: run.plan.get(name) for name in COMPARED} | seen


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping) and value:
        inner: dict[str, Any] = {}
        for name, one in value.items():
            inner |= _flat(one, f"{key}.{name}" if key else str(name))
        return inner
    return {key: value}


def _met(values: Any) -> list[Any]:
    """The different ones among them, in their order."""
    found: dict[str, Any] = {}
    for value in values:
        found.setdefault(_key(value), value)
    return list(found.values())


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _without(part: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in names}
