"""docs/engines.md says of each adapter what the adapter does."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from inferometer.engines.adapters.adapter import Adapter, Ask
from inferometer.engines.adapters.registry import ADAPTERS
from inferometer.server.engine_routes import ENGINES

DOCS = Path(__file__).parents[2] / "docs"
TRIED = {"real": "the engine", "documented": "its documentation"}


def rows() -> dict[str, list[str]]:
    """The cells of the table of adapters, by key."""
    section = (DOCS / "engines.md").read_text().split("## Adapters")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line[1:-1].split("|")]
        for line in section.splitlines()
        if line.startswith("| ")
    ]
    return {row[1].strip("`"): row for row in cells[2:]}


def call(ask: Ask | None) -> str:
    """A call as the table has it."""
    return "none" if ask is None else f"`{ask.method} {unquote(ask.path)}`"


def test_the_table_has_every_adapter_in_the_order_of_recognition() -> None:
    """And no other."""
    assert list(rows()) == list(ADAPTERS)


@pytest.mark.parametrize("one", list(ADAPTERS.values()), ids=lambda one: one.key)
def test_a_row_is_what_the_adapter_does(one: Adapter) -> None:
    """Name, ports, calls, timings, cached tokens, and what it was tried on."""
    title, _, ports, *described, load, unload, timings, cached, tried = rows()[one.key]
    assert title == one.title
    assert ports == ", ".join(map(str, one.ports))
    assert all(described)
    assert load.startswith(call(one.load and one.load("NAME")))
    assert unload.startswith(call(one.unload and one.unload("NAME")))
    assert timings.startswith("yes" if one.server_timings else "no")
    assert (cached, tried) == ("yes" if one.cached_tokens else "no", TRIED[one.tried])


@pytest.mark.parametrize("one", list(ADAPTERS.values()), ids=lambda one: one.key)
def test_every_quirk_is_on_the_page(one: Adapter) -> None:
    """Under the engine's name."""
    page = re.sub(r"\s+", " ", (DOCS / "engines.md").read_text())
    section = page.split("## Adapters")[1].split(f"**{one.title}.**")[1].split("**")[0]
    assert [quirk for quirk in one.quirks if f"- {quirk}" not in section] == []


def test_the_page_on_the_server_has_the_routes_that_it_can_serve() -> None:
    """Every engine that --routes takes."""
    (line,) = re.findall(r"^\| `--routes` \|.*$", (DOCS / "server.md").read_text(), re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", line)) >= set(ENGINES)
