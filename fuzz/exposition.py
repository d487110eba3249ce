"""Server metrics in the text formats, two scrapes in a row with a line `--` between them.

The second scrape is read by its differences where its lines are those of the first. So its values are those of a reader that
sees nothing but it, unless a metric changed its type or its buckets; what cannot be used is dropped with a code.
"""

from __future__ import annotations

from math import isnan

from inferometer.telemetry.metrics.exposition import ABSENT, Cell
from inferometer.telemetry.metrics.record import Scrape
from inferometer.telemetry.metrics.series import Endpoint

URL = "http://h/metrics"
CHANGED = {"type_changed", "buckets_changed"}


def check(data: bytes) -> None:
    """Read one or two scrapes."""
    first, _, second = data.decode("utf-8", "replace").partition("\n--\n")
    both, alone = Endpoint(URL), Endpoint(URL)
    both.take(Scrape(URL, 1, first))
    list(both.series())
    if not second:
        return
    began = len(both.times)
    both.take(Scrape(URL, 2, second))
    list(both.series())
    alone.take(Scrape(URL, 2, second))
    assert len(both.times) - began == len(alone.times)
    if not alone.times:
        return
    changed = {name for code, name in both.noted() if code in CHANGED}
    ours, theirs = values(both), values(alone)
    for cell in ours.keys() | theirs.keys():
        if cell.family not in changed and not respelled(cell, ours, theirs):
            # A cell that is in the first scrape alone is absent since.
            here, there = ours[cell], theirs.get(cell, ABSENT)
            assert here == there or (isnan(here) and isnan(there)), cell


def values(endpoint: Endpoint) -> dict[Cell, float]:
    """The latest value of each cell."""
    return {
        Cell(family.name, labels, part): changes.values[-1]
        for family, labels, parts in endpoint.groups()
        for part, changes in parts.items()
        if changes.values
    }


def respelled(cell: Cell, *sides: dict[Cell, float]) -> bool:
    """Whether the bound of a bucket stands there in another spelling too, such as 1 and 1.0: it keeps its first."""
    if cell.part in ("value", "sum", "count"):
        return False
    return any(
        other.part not in ("value", "sum", "count") and float(other.part) == float(cell.part)
        for side in sides
        for other in side
        if other != cell and other[:2] == cell[:2]
    )
