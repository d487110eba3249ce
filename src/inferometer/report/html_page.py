"""HTML pages that need no network: a template of this package, its styles, its script, and the data that belongs to it.

Everything outside came from a plan or a server: what is unprintable is dropped, and Jinja escapes the rest. The data is JSON
whose `<`, `>` and `&` are written as escapes, so no string in it can close the script element. A content security policy names
the script by its SHA-256 and allows nothing else to run or load: a hole in the escaping would still not execute. (It could lead
the reader to another page: a policy cannot forbid that.)
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inferometer.printable import printable_lines
from inferometer.report.charts import Chart, draw, legend, signs
from inferometer.report.figures import UNMEASURED, Counted, clean, marked

if TYPE_CHECKING:
    from jinja2 import Template

Context = Mapping[str, object]
"""What a template is filled with."""

SCRIPT = "page.js"
"""Of every page: the choice between light and dark, and all that is folded unfolded in print."""

_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Strip:
    """A range drawn in a cell: its percentiles as positions from 0 to 100."""

    p50: str
    p95: str
    p99: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. `few`: its percentile has too few samples; `unit` stands behind it, small; `hint`: shown at the
    pointer; `note`: a line below it; `advice`: a sentence behind it; `strip`: drawn in place of the text; `kind`: `code`,
    `tag`, or a class of the style sheet."""

    text: str
    few: bool = False
    unit: str = ""
    hint: str = ""
    kind: str = ""
    note: str = ""
    advice: str = ""
    strip: Strip | None = None


Side = Literal["", "num", "words", "strip"]
"""The class of a column: text, numbers (set to the right), sentences, or drawings."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page. `label`: its name for those who cannot see it; `sides`: the class of each column; `kind`: its class in
    the style sheet; `lead`: the column that heads its rows; `tones`: the class of each row, where rows have one."""

    label: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sides: tuple[Side, ...]
    kind: str = "results"
    lead: int = 0
    tones: tuple[str, ...] = ()


def table(
    label: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Sequence[bool] | None = None,
    kind: str = "results",
) -> Table:
    """A table of texts and cells. `right`: None sets all columns but the first to the right."""
    sides: tuple[Side, ...] = tuple(
        "num" if side else "" for side in right or [at > 0 for at in range(len(head))]
    )
    return Table(label, tuple(head), _cells(rows), sides, kind)


def check_table(
    label: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    sides: Sequence[Side],
    tones: Iterable[str],
) -> Table:
    """A table of checks: a tag, the name of what was checked, and the words about it; `tones` colours each row's tag."""
    return Table(label, tuple(head), _cells(rows), tuple(sides), "checks", 1, tuple(tones))


def _cells(rows: Iterable[Sequence[object]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(tuple(one if isinstance(one, Cell) else Cell(str(one)) for one in row) for row in rows)


def statistic_cell(stats: Counted | None, key: str) -> Cell:
    """One statistic; a percentile with too few samples is marked."""
    return Cell(*marked(stats, key))


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart on a page. `svg`: None where there is nothing to draw, and `missing` says why."""

    title: str
    svg: str | None
    legend: tuple[tuple[str, str], ...]
    missing: str


def picture(chart: Chart, missing: str = UNMEASURED) -> Picture:
    """A chart ready for a template."""
    from markupsafe import Markup

    svg = draw(chart)
    # Both are SVG of charts/drawing.py, which escapes what came from outside.
    named = [*legend(chart), *signs(chart)] if svg else []
    samples = tuple((Markup(sample), name) for sample, name in named)  # noqa: S704 - our own shapes
    return Picture(clean(chart.title), None if svg is None else Markup(svg), samples, missing)  # noqa: S704 - escaped there


def render_page(template: str, data: object, context: Context, *styles: str) -> str:
    """The page of a template of this package. `data`: what the page holds for other programs; `styles`: sheets beside the one
    that all pages have.

    Raises:
        ValueError: `data` holds NaN or an infinity.
    """
    from markupsafe import Markup  # here, for the reason given in _template

    script = _asset(SCRIPT)
    # The four Markup values are files of this package and JSON made safe above; nothing from outside is marked safe.
    return _template(template).render(
        **context,
        data=Markup(embedded_json(data)),  # noqa: S704 - every < > & in it is an escape
        styles=Markup("".join(map(_asset, ("page.css", *styles)))),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704 - our own file, named by hash in the policy
        hashes=Markup(_script_hash(script)),  # noqa: S704 - base64
    )


@functools.cache
def _template(name: str) -> Template:
    """A template of this package, compiled once: a campaign renders hundreds of pages."""
    # Jinja costs a third of the start-up time, and most commands never render HTML.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def _shown(value: object) -> object:
    """What a template writes, unprintable characters dropped; markup is our own."""
    return printable_lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def embedded_json(value: object) -> str:
    """JSON that may stand inside a script element whatever strings it holds; NaN is refused (ValueError)."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


@functools.cache
def _asset(name: str) -> str:
    return importlib.resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _script_hash(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
