"""The rules of draft 6, and 4.4.2's on comparing, by what a comparison's checklist found (judge/comparison/equivalence.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from inferometer.documents.comparison import Item
from inferometer.judge.comparison.compare import Comparison
from inferometer.judge.comparison.rules import LEAST_RUNS
from inferometer.judge.compliance.evidence import (
    Ruling,
    not_applicable,
    note,
    satisfied,
    satisfied_if,
    unknown,
    violated,
    worst,
)
from inferometer.judge.compliance.statement import Statement, comparison

ITEMS = {
    "D-6.1-workload": ("workload",),
    "D-6.1-boundary": ("boundary",),
    "D-6.1-hardware": ("hardware",),
    "D-6.1-load": ("load",),
    "D-6.4-same": ("specification", "duration", "warmup", "success"),
    "D-6.4-time": ("same_time",),
    "D-6.4-production": ("production",),
    "D-6.4-differences": ("differences",),
}
"""Rules that items of the checklist are about."""


def complied(compared: Comparison) -> Statement:
    """The statement on a comparison of runs."""
    tests = {one.test for row in compared.contrasts for one in row if one.test is not None}
    return complied_by(compared.items, compared.least_runs, tests)


def complied_by(checked: Iterable[Item], runs: int, tests: Collection[str]) -> Statement:
    """The statement on a comparison, of runs or of campaigns. `checked`: its checklist; `runs`: of the side with the fewest;
    `tests`: the statistical tests made."""
    items = {item.code: item for item in checked}
    rulings = {rule: _item([items[code] for code in codes]) for rule, codes in ITEMS.items()}
    rulings |= _normalised(items["hardware"])
    rulings["D-4.4.2-cl100k"] = _tokenizer(items["token_count"])
    rulings["D-6.3-ci"] = satisfied(note("intervals_given"))
    rulings["D-6.3-runs"] = satisfied_if(runs >= LEAST_RUNS, note("fewest_runs", runs=runs, limit=LEAST_RUNS))
    rulings["D-6.3-tests"] = _tested(tests)
    return comparison(rulings, simulated=bool(items["one_kind"].facts.simulated))


def _tested(tests: Collection[str]) -> Ruling:
    if not tests:
        return violated(note("not_tested"))
    return satisfied(note("tested", tests=tuple(sorted(tests))))


def _item(items: list[Item]) -> Ruling:
    ruling = worst(
        *(Ruling(item.status, note("checklist", item=item.code, status=item.status)) for item in items)
    )
    assert ruling is not None
    return ruling


def _normalised(hardware: Item) -> dict[str, Ruling]:
    """Draft 6.2, where hardware differs."""
    by = hardware.facts.normalised
    if by is not None:
        method = satisfied(note("normalised", by=by))
        cost = method if by == "price" else violated(note("normalised_without_prices"))
    elif hardware.status == "violated":
        method = cost = violated(note("not_normalised"))
    elif hardware.status == "unknown":
        method = cost = unknown(note("hardware_not_declared"))
    else:
        method = cost = not_applicable(note("same_hardware"))
    return {"D-6.2-cost": cost, "D-6.2-method": method}


def _tokenizer(item: Item) -> Ruling:
    if item.facts.recommended:
        return satisfied(note("reference_tokenizer"))
    tokenizers, methods = (
        tuple(map(str, item.facts.tokenizers or ())),
        tuple(map(str, item.facts.methods or ())),
    )
    return violated(note("other_tokenizers", tokenizers=tokenizers, methods=methods))
