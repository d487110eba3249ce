"""A cell of a test document as text: a figure, a word, or why there is none. Null was not measured: never 0, never blank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.report.figures import DASH, UNMEASURED, clean, figure, interval

WITHHELD = "withheld (capacity)"
"""In place of what a redacted report leaves out (draft 7.1)."""


def cell(value: object) -> str:
    """A number as figure, a truth as yes or no, text on one clean line, null as `not measured`, an empty text as a dash."""
    if value is None:
        return UNMEASURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        # JSON has no NaN, but a document that was never written may.
        text = figure(value, trim=True)
        return UNMEASURED if value != value or abs(value) == float("inf") else text
    if isinstance(value, list | tuple):
        return ", ".join(cell(part) for part in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{clean(key)} {cell(part)}" for key, part in value.items()) or "none"
    return clean(value) or DASH


def is_number(value: object) -> bool:
    """Whether it is set to the right, with others of its column."""
    return isinstance(value, int | float) and not isinstance(value, bool)


ABSENT = ("not reached", "not asked")
"""How the note of a Value begins that was looked for and does not exist: a knee beyond the last level, say."""


def amount(value: Mapping[str, Any]) -> str:
    """A Value's figure with its unit: `2847 tok/s`; the unit only after a number. Of what does not exist: that."""
    text = cell(value["value"])
    if value["value"] is None and clean(value.get("note") or "").startswith(ABSENT):
        text = next(word for word in ABSENT if clean(value["note"]).startswith(word))
    unit = clean(value["unit"])
    return f"{text}\u00a0{unit}" if unit and is_number(value["value"]) else text


def bounds(value: Mapping[str, Any]) -> str:
    """A Value's 95 % interval, or nothing."""
    return interval(value["ci"]) if value["ci"] is not None else ""


def heading(column: Mapping[str, Any]) -> str:
    """A column's heading with its unit: `TTFT P99 (ms)`, unless the heading names it already."""
    label, unit = clean(column["label"]), clean(column["unit"])
    return f"{label} ({unit})" if unit and f"({unit})" not in label else label


def numeric(table: Mapping[str, Any], index: int) -> bool:
    """Whether a column of a table holds numbers, or would: then it is set to the right."""
    cells: Sequence[Any] = [row[index] for row in table["rows"]]
    return bool(table["columns"][index]["unit"]) or any(is_number(one) for one in cells)
