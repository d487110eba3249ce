"""A cell of a test document as text: a figure, a word, or why there is none. Null was not measured: never 0, never blank."""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.documents.campaign import ProcedureDocument, ReportedTable, ReportedValue
from inferometer.documents.results import Axis, Cell, Column
from inferometer.report.figures import DASH, MARK, UNMEASURED, clean, figure, interval


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


def with_unit(value: Cell, unit: str) -> str:
    """A cell with its unit behind it, if it is a number: `2847 tok/s`."""
    unit = clean(unit)
    return f"{cell(value)}\u00a0{unit}" if unit and is_number(value) else cell(value)


ABSENT = {"not_reached": "not reached", "not_asked": "not asked"}
"""By how the code of a value's note begins: what was looked for and does not exist, such as a knee beyond the last level."""


ROUGH = f"{MARK} fewer samples than this percentile needs: a rough figure."


def amount(value: ReportedValue) -> str:
    """A value with its unit, and MARK behind a percentile of too few samples; of what does not exist: that."""
    if value.value is None and value.note is not None:
        code = value.note.code
        return next((words for head, words in ABSENT.items() if code.startswith(head)), UNMEASURED)
    return with_unit(value.value, value.unit) + (MARK if value.few and is_number(value.value) else "")


def bounds(value: ReportedValue) -> str:
    """A value's 95 % interval, or nothing."""
    return interval(value.ci) if value.ci is not None else ""


def labelled(label: str, at: str) -> str:
    """A label or title with the load it is of: `TTFT P50, 12 requests/s`."""
    return ", ".join(filter(None, (clean(label), clean(at))))


def heading(column: Column | Axis) -> str:
    """A column's heading with its unit: `TTFT P99 (ms)`, unless the heading names it already."""
    label, unit = clean(column.label), clean(column.unit)
    return f"{label} ({unit})" if unit and f"({unit})" not in label else label


def numeric(table: ReportedTable, index: int) -> bool:
    """Whether a column of a table holds numbers, or would: then it is set to the right."""
    return bool(table.columns[index].unit) or any(is_number(row[index]) for row in table.rows)


def texts(table: ReportedTable) -> list[list[str]]:
    """Each cell of each row as text, with MARK behind a percentile of too few samples."""
    few = set(table.few)
    return [
        [
            cell(one) + (MARK if (at, column) in few and is_number(one) else "")
            for column, one in enumerate(row)
        ]
        for at, row in enumerate(table.rows)
    ]


def rough(test: ProcedureDocument) -> list[str]:
    """What MARK means, for a test in which it stands."""
    few = any(value.few for value in test.values) or any(table.few for table in test.tables)
    return [ROUGH] if few else []
