"""Tables as text: one writer for Markdown and one for plain columns. Those of a terminal are `screen.Screen.table`'s."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from inferometer.report.figures import clean

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!&])")


def escaped(value: object) -> str:
    """Outside text for a Markdown cell or line: one line, every character that Markdown or HTML reads as markup escaped."""
    return (
        _SPECIAL.sub(r"\\\1", clean(value))
        .replace("\\<", "&lt;")
        .replace("\\>", "&gt;")
        .replace("\\&", "&amp;")
    )


class Escaped(str):
    """Markdown of our own, whose outside text is escaped already."""


def bullets(lines: Iterable[object]) -> str:
    """A Markdown list of outside text."""
    return "\n".join(f"- {escaped(line)}" for line in lines)


def markdown_table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Sequence[bool] = (),
) -> str:
    """A Markdown table whose columns line up in the text too. Cells are escaped here.

    `right`: per column, whether it is set to the right (missing entries: to the left).
    """
    body = [[one if isinstance(one, Escaped) else escaped(one) for one in row] for row in (head, *rows)]
    sides = [*right, *[False] * (len(head) - len(right))]
    widths = [max(3, *(len(row[i]) for row in body)) for i in range(len(head))]
    rule = [
        "-" * (width - 1) + ":" if side else "-" * width for width, side in zip(widths, sides, strict=True)
    ]
    lines = [_padded(row, widths, sides) for row in body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:]))


def text_table(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """The lines of plain columns two blanks apart, without a rule. `right`: per column, whether it is set to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(right))]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    return [
        cell.rjust(width) if side else cell.ljust(width)
        for cell, width, side in zip(row, widths, right, strict=True)
    ]
