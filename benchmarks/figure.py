"""What benchmarks yield: figures, each with its goal if it has one; and how a table shows them over several repetitions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Goal:
    """`at most` bounds the size of a value, so that an error may have either sign; `at least` the value."""

    kind: Literal["at most", "at least"]
    limit: float

    def met(self, value: float) -> bool:
        """Whether this value meets it; NaN never does."""
        return abs(value) <= self.limit if self.kind == "at most" else value >= self.limit


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of one repetition. `digits` after the point are shown.

    One that is in a grid is shown there and nowhere else: on its `line`, in the column of its label.
    """

    label: str
    value: float
    unit: str = ""
    goal: Goal | None = None
    digits: int = 3
    grid: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Words instead of a number: a verdict, a reason why something was left out."""

    label: str
    text: str


def at_most(limit: float) -> Goal:
    """A goal from above."""
    return Goal("at most", limit)


def at_least(limit: float) -> Goal:
    """A goal from below."""
    return Goal("at least", limit)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure over all repetitions: the median decides about the goal, the range shows the spread."""

    benchmark: str
    figure: Figure
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the goal; None without one."""
        return None if self.figure.goal is None else self.figure.goal.met(self.median)

    def cells(self) -> list[str]:
        """label, median, range, goal, met or missed."""
        shown, goal = self.figure, self.figure.goal

        def number(value: float) -> str:
            return f"{value:,.{shown.digits}f}"

        spread = f"{number(min(self.values))} .. {number(max(self.values))}" if len(self.values) > 1 else ""
        limit = "" if goal is None else f"goal {goal.kind} {number(goal.limit)}"
        outcome = {None: "", True: "met", False: "missed"}[self.met]
        return [shown.label, f"{number(self.median)} {shown.unit}".rstrip(), spread, limit, outcome]

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        goal = self.figure.goal
        place = {"grid": self.figure.grid, "line": self.figure.line} if self.figure.grid else {}
        return {
            "benchmark": self.benchmark,
            **place,
            "figure": self.figure.label,
            "unit": self.figure.unit,
            "median": self.median,
            "values": list(self.values),
            "goal": None if goal is None else {"kind": goal.kind, "limit": goal.limit, "met": self.met},
        }


def rows(benchmark: str, repetitions: Sequence[Sequence[Figure | Note]]) -> list[Row]:
    """Put the repetitions' figures of one label side by side, in the order of their first showing."""
    by_label: dict[tuple[str, str, str], list[Figure]] = {}
    for figures in repetitions:
        for figure in figures:
            if isinstance(figure, Figure):
                by_label.setdefault((figure.grid, figure.line, figure.label), []).append(figure)
    return [
        Row(benchmark, figures[0], tuple(figure.value for figure in figures)) for figures in by_label.values()
    ]


def notes(repetitions: Sequence[Sequence[Figure | Note]]) -> list[Note]:
    """The notes of all repetitions, each once."""
    return list(dict.fromkeys(item for items in repetitions for item in items if isinstance(item, Note)))


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells in columns, the second and third aligned right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))] if lines else []
    shown = []
    for line in lines:
        cells = [
            cell.rjust(w) if i in (1, 2) else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        shown.append("  " + "  ".join(cells).rstrip())
    return "\n".join(shown)


def grids(found: Sequence[Row]) -> str:
    """The medians of each grid's figures: a line for each line, a column for each label, in the order of first showing."""
    shown = []
    for name in dict.fromkeys(row.figure.grid for row in found if row.figure.grid):
        inside = [row for row in found if row.figure.grid == name]
        heads = list(dict.fromkeys((row.figure.label, row.figure.unit) for row in inside))
        cells = {
            (row.figure.line, (row.figure.label, row.figure.unit)): f"{row.median:,.{row.figure.digits}f}"
            for row in inside
        }
        lines = list(dict.fromkeys(row.figure.line for row in inside))
        block = [[name, *(f"{label}, {unit}" if unit else label for label, unit in heads)]]
        block += [[line, *(cells.get((line, head), "-") for head in heads)] for line in lines]
        widths = [max(len(line[i]) for line in block) for i in range(len(heads) + 1)]
        for line in block:
            rest = "  ".join(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
            shown.append(f"  {line[0]:<{widths[0]}}  {rest}".rstrip())
        shown.append("")
    return "\n".join(shown)
