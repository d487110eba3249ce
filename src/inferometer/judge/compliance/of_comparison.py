"""The rules of draft 6, and 4.4.2's on comparing, by what a comparison's checklist found (judge/comparison/equivalence.py)."""

from __future__ import annotations

from inferometer.documents.comparison import Item
from inferometer.judge.comparison.compare import LEAST_RUNS, Comparison
from inferometer.judge.compliance.evidence import Seen, beside, broken, met, unknown, worst
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


def complied(found: Comparison) -> Statement:
    """The statement on a comparison."""
    items = {item.code: item for item in found.items}
    seen = {rule: _item([items[code] for code in codes]) for rule, codes in ITEMS.items()}
    seen |= _normalised(items["hardware"])
    seen["D-4.4.2-cl100k"] = _tokenizer(items["token_count"])
    seen["D-6.3-ci"] = met("95 % intervals stand beside every difference")
    runs = f"{found.least_runs} runs of the side with fewest, at least {LEAST_RUNS}"
    seen["D-6.3-runs"] = met(runs) if found.least_runs >= LEAST_RUNS else broken(runs)
    tested = any(one.p is not None for row in found.contrasts for one in row)
    seen["D-6.3-tests"] = met("Welch's t and the bootstrap") if tested else broken("too few runs to test")
    return comparison(seen, simulated=bool(items["one_kind"].facts.simulated))


def _item(items: list[Item]) -> Seen:
    found = worst(*(Seen(item.status, f"checklist: {item.code} is {item.status}") for item in items))
    assert found is not None
    return found


def _normalised(hardware: Item) -> dict[str, Seen]:
    """Draft 6.2, where hardware differs."""
    by = hardware.facts.normalised
    if by is not None:
        method = met("by price per hour" if by == "price" else "by the number of accelerators")
        cost = (
            method if by == "price" else broken("normalised by accelerators: no prices were given (--price)")
        )
    elif hardware.status == "violated":
        method = cost = broken("hardware differs, and nothing is normalised (--price)")
    elif hardware.status == "unknown":
        method = cost = unknown("whether hardware differs is not declared")
    else:
        method = cost = beside("hardware does not differ")
    return {"D-6.2-cost": cost, "D-6.2-method": method}


def _tokenizer(item: Item) -> Seen:
    if item.facts.recommended:
        return met("counted by the reference tokenizer cl100k_base")
    return broken(
        f"counted by: {', '.join(map(str, item.facts.tokenizers or ()))} ({', '.join(map(str, item.facts.methods or ()))})"
    )
