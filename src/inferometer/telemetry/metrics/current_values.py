"""How a server is now: the few figures that two of its bodies come to, in the terms of engine_names.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from inferometer.telemetry.metrics.engine_names import (
    HISTOGRAMS,
    LEVELS,
    SHARES,
    WHOLE,
    Source,
    detect,
    least_and_most,
)
from inferometer.telemetry.metrics.exposition import LARGEST_VALUE, Cell, Layout

Totals = Mapping[tuple[str, str], tuple[float, int]]
"""By term and part: the sum over its series, and how many those are."""


@dataclass(frozen=True, slots=True)
class Term:
    """One figure, of the first of these terms of engine_names.py that a body has.

    `level`: a sum over series. `share`: their mean, 0 to 1. `rate`: growth a second. `mean`: of what a histogram counted since
    the last scrape, in seconds. `ratio`: growth over growth of `per`.
    """

    key: str
    kind: Literal["level", "share", "rate", "mean", "ratio"]
    of: tuple[str, ...]
    per: str = ""


TERMS = (
    Term("running", "level", ("running",)),
    Term("waiting", "level", ("waiting",)),
    Term("kv_usage", "share", ("kv_usage",)),
    Term("prefix_hits", "ratio", ("prefix_hits",), "prefix_queries"),
    Term("prefix_hit_rate", "share", ("prefix_hit_rate",)),
    Term("preemptions_s", "rate", ("preemptions",)),
    Term("input_tok_s", "rate", ("prompt_tokens",)),
    Term("output_tok_s", "rate", ("generation_tokens",)),
    Term("requests_s", "rate", ("succeeded",)),
    Term("ttft", "mean", ("ttft",)),
    Term("itl", "mean", ("itl", "tpot")),
)


def totals(layout: Layout) -> Totals:
    """What a body says in terms, summed over labels; numbers that no sample of a term can be are left out."""
    engine = detect(layout.families)
    if engine is None:
        return {}
    found: dict[tuple[str, str], tuple[float, int]] = {}
    wanted: dict[str, list[tuple[str, Source]]] = {}
    for term, source in engine.terms.items():
        for family in source.present(layout.families):
            wanted.setdefault(family, []).append((term, source))
    for cell, value in zip(layout.cells, layout.values, strict=True):
        if cell is None or not abs(value) < LARGEST_VALUE:
            continue
        for term, source in wanted.get(cell.family, ()):
            if (part := _part(term, source, cell)) is not None and _possible(term, value):
                total, series = found.get((term, part), (0.0, 0))
                found[term, part] = (total + value, series + 1)
    return found


def _possible(term: str, value: float) -> bool:
    """Whether a sample can be this: no count or share of the moment is below 0, and no share above 1."""
    if term not in LEVELS and term not in SHARES:
        return True
    least, most = least_and_most(term)
    return least <= value <= most


def _part(term: str, source: Source, cell: Cell) -> str | None:
    """As which part of a term a number counts; None: as none."""
    labels = dict(cell.labels)
    if any(labels.get(label) not in values for label, values in source.where.items()):
        return None
    if term in HISTOGRAMS:
        return cell.part if cell.part in ("sum", "count") else None
    return "value" if cell.part == source.part else None


def figures(now: Totals, before: Totals | None, seconds: float) -> dict[str, float]:
    """The figures that a body has, by key. Those about growth need the body `seconds` before, and no reset since."""
    found = {}
    for term in TERMS:
        value = _figure(term, now, before, seconds)
        if value is not None:
            found[term.key] = value
    return found


def _figure(term: Term, now: Totals, before: Totals | None, seconds: float) -> float | None:
    if term.kind in ("level", "share"):
        here = now.get((term.of[0], "value"))
        return None if here is None else here[0] if term.kind == "level" else here[0] / here[1]
    if before is None or seconds <= 0:
        return None
    for name in term.of:
        if term.kind == "rate":
            grown, over = _growth(now, before, name, "value"), seconds
        elif term.kind == "mean":
            grown, over = _growth(now, before, name, "sum"), _growth(now, before, name, "count") or 0
        else:
            grown, over = _growth(now, before, name, "value"), _growth(now, before, term.per, "value") or 0
        if grown is not None:
            found = grown / over if over > 0 else None
            return None if found is not None and term.kind == "ratio" and found > WHOLE else found
    return None


def _growth(now: Totals, before: Totals, name: str, part: str) -> float | None:
    """None where it is not there or has gone back."""
    here, there = now.get((name, part)), before.get((name, part), (0.0, 0))
    return None if here is None or here[0] < there[0] else here[0] - there[0]
