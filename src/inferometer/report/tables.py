"""Tables as text, one writer for each medium: Markdown, plain columns, and a terminal or a pipe (`Screen`)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inferometer.report.figures import THIN, ascii_only, clean

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


# Paragraphs and tables in a terminal or a pipe: the one console writer of all reports.
#
# The width decides how many columns of a table are shown, never whether a number breaks in the middle. Nothing but our own text
# is ever read as markup, and an encoding that is not Unicode gets ASCII only.


RULE = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
"""One line under the heading and nothing else: the same in Unicode, ASCII, and a pipe. A blank column parts the cells."""

VERDICT_STYLES = {"VALID": "bold green", "INVALID": "bold red", "INCONCLUSIVE": "bold yellow"}
UNKNOWN_WIDTH = 80
LONGEST_WORD = 20
"""Room that a wrapping column gets before other columns are dropped. Longer words are cut."""


class Screen:
    """Prints to a console in the signs that it has. `most`: columns of a paragraph, whatever the console's width."""

    def __init__(self, console: Console, most: int | None = None) -> None:
        if console.width < 1:  # COLUMNS=0: the size is not known, and nothing at all would be printed
            console.width = UNKNOWN_WIDTH
        self.console = console
        self.width = console.width
        self._ascii = not console.encoding.lower().startswith("utf")
        self._paragraph = min(self.width, most or self.width)

    def text(self, text: str, style: str = "") -> Text:
        """Text as the console can show it. Figures go without thin spaces: they would let a number break at a line's end and
        would defeat grep."""
        text = text.replace(THIN, "")
        return Text(ascii_only(text) if self._ascii else text, style=style)

    def say(self, text: str, style: str = "", first: str = "") -> None:
        """Print one wrapped paragraph. `first` opens the first line and the others are indented by its width; where it leaves
        no room, it has a line to itself."""
        first = self.text(first).plain
        if len(first) > self._paragraph / 2:
            self.say(first.rstrip())
            first = "  "
        for line in self.text(text, style).wrap(self.console, max(self._paragraph - len(first), 10)):
            line.rstrip()
            self.console.print(Text.assemble(first, line), soft_wrap=True)
            first = " " * len(first)

    def path(self, label: str, path: str) -> None:
        """Print where a file lies, never wrapped: a path must survive copying."""
        self.console.print(self.text(f"{label}: {path}"), soft_wrap=True)

    def table(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        right: Sequence[bool] | None = None,
        words: int | None = None,
        rank: Sequence[int] | None = None,
        least: int = LONGEST_WORD,
        cut: bool = True,
    ) -> list[str]:
        """Print as many columns as fit; returns the headings of those that do not.

        Args:
            right: per column, whether it is set to the right; None: all but the first.
            words: the column that wraps, in the room that the others leave.
            least: room that `words` needs, where its words are as long, before another column is dropped.
            cut: whether columns may be dropped; otherwise lines go on beyond the screen, and no figure is cut.
            rank: the columns, those that are kept longest first; None: from left to right.
        """
        cells = [[self.text(one).plain for one in row] for row in (head, *rows)]
        sides = [at > 0 for at in range(len(head))] if right is None else right
        widths = _widths(cells, self.width if cut else sys.maxsize, words, least)
        columns = range(len(head))
        kept = _fitting(widths, self.width, columns if rank is None else rank) if cut else list(columns)
        if words in kept:
            others = sum(widths[at] for at in kept if at != words) + 2 * (len(kept) - 1)
            widest = max(cell_len(row[words]) for row in cells)
            widths[words] = max(min(widest, self.width - others), min(widths[words], self.width))
        table = Table(box=RULE, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
        for at in kept:
            table.add_column(
                Text(cells[0][at]),
                justify="right" if sides[at] else "left",
                width=widths[at] if cut else None,
                min_width=None if cut else widths[at],
                no_wrap=not cut,
                overflow="fold",
            )
        for row in cells[1:]:
            table.add_row(*(Text(row[at]) for at in kept))
        self.console.print(table, soft_wrap=not cut)
        return [cells[0][at] for at in range(len(head)) if at not in kept]


def _widths(cells: Sequence[Sequence[str]], room: int, words: int | None, enough: int) -> list[int]:
    """The width of each column: whole headings where they fit, otherwise headings broken at blanks. Of `words`: its least."""
    columns = range(len(cells[0]))
    body = [max((cell_len(row[at]) for row in cells[1:]), default=0) for at in columns]
    whole = [max(cell_len(cells[0][at]), body[at]) for at in columns]
    least = [max(*map(cell_len, [*cells[0][at].split(), ""]), body[at]) for at in columns]
    if words is not None:
        whole[words] = least[words] = min(whole[words], enough)
    return whole if sum(whole) + 2 * (len(whole) - 1) <= room else least


def _fitting(widths: Sequence[int], room: int, rank: Sequence[int]) -> list[int]:
    """The columns that fit beside each other, in their order: at least one."""
    kept: list[int] = []
    for at in rank:
        if kept and sum(widths[one] for one in (*kept, at)) + 2 * len(kept) > room:
            break
        kept.append(at)
    return sorted(kept)
