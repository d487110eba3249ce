"""HTML pages that need no network: a template of this package, its styles, its scripts, and data for their charts.

Everything outside came from a plan or a server and is escaped by Jinja; the chart data is JSON whose `<`, `>` and `&` are
written as escapes, so no string in it can close the script element. A content security policy names the scripts by
their SHA-256 and allows nothing else to run or load: a hole in the escaping would still not execute.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


PLOTTING = ("vendor/uPlot.iife.min.js", "templates/charts.js", "templates/workload.js")
"""Scripts of a page that draws charts in the browser."""


def render(template: str, data: object, context: Mapping[str, Any], *more: str) -> str:
    """The page of a template that draws charts. `more`: the scripts that it runs beside PLOTTING; all are in templates/.

    Raises:
        ValueError: `data` holds NaN or an infinity.
    """
    scripts = (*PLOTTING, *(f"templates/{name}" for name in more))
    return render_page(template, data, context, scripts, ("vendor/uPlot.min.css", "templates/report.css"))


def render_page(
    template: str, data: object, context: Mapping[str, Any], scripts: Sequence[str], styles: Sequence[str]
) -> str:
    """The page of a template with these scripts and style sheets of the package, by path.

    Raises:
        ValueError: `data` holds NaN or an infinity.
    """
    from markupsafe import Markup  # here, for the reason given in _template

    texts = [_asset(path) for path in scripts]
    # The four Markup values are files of this package and JSON made safe above; nothing from outside is marked safe.
    return _template(template).render(
        **context,
        data=Markup(embedded_json(data)),  # noqa: S704 - every < > & in it is an escape
        styles=Markup("".join(map(_asset, styles))),  # noqa: S704 - our own files
        scripts=[Markup(script) for script in texts],  # noqa: S704 - our own files, named by hash in the policy
        hashes=Markup(" ".join(_script_hash(script) for script in texts)),  # noqa: S704 - base64
    )


@functools.cache
def _template(name: str) -> Template:
    """A template of this package, compiled once: a campaign renders hundreds of pages."""
    # Jinja costs a third of the start-up time, and most commands never render HTML.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda path: _asset(f"templates/{path}")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def embedded_json(value: object) -> str:
    """JSON that may stand inside a script element whatever strings it holds; NaN is refused (ValueError)."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


@functools.cache
def _asset(path: str) -> str:
    return importlib.resources.files(__package__).joinpath(*path.split("/")).read_text(encoding="utf-8")


def _script_hash(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
