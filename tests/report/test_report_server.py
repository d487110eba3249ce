"""The server by its own metrics: words of its checks, one line for the console, tables and charts of what it shows."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from html_page import Page

from inferometer.report import wording
from inferometer.report.run import server
from inferometer.report.run.html import render_html
from inferometer.report.run.markdown import render_markdown

SIDES = {
    ("server_tokens", "more"): ("unsure", "note"),
    ("server_tokens", "fewer"): ("note",),
    ("server_ttft", "below"): ("unsure", "note"),
    ("server_ttft", "above"): ("note",),
    ("server_ttft", "others"): ("note",),
}


def check(code: str, status: str, **facts: Any) -> dict[str, Any]:
    value, limit = (None, None) if facts.get("side") == "others" else (0.1234, 0.05)
    return {"code": code, "status": status, "value": value, "limit": limit, "unit": None, "facts": facts}


@pytest.mark.parametrize(
    ("code", "side", "status"),
    [(*named, status) for named, statuses in SIDES.items() for status in statuses],
)
def test_each_side_on_which_a_check_can_miss_has_words_of_its_own(code: str, side: str, status: str) -> None:
    """More and fewer, above and below mean different things; what is unsure says what to do."""
    facts = {"side": side, "client_n": 30, "server_n": 20}
    said = wording.words(check(code, status, **facts))
    plain = wording.words(check(code, status))
    assert said != plain
    assert said.endswith(".")
    assert "{" not in said
    assert status != "unsure" or wording.advice(check(code, status, **facts))
    assert side == "others" or wording.quantity(check(code, status, **facts), "value") in said


@pytest.mark.parametrize("code", ["server_tokens", "server_ttft", "server_queue"])
@pytest.mark.parametrize("status", ["pass", "na"])
def test_without_a_side_there_are_words_too(code: str, status: str) -> None:
    """The general sentence is for codes nobody knows."""
    said = wording.words(check(code, status))
    assert "{" not in said
    assert "as it should be" not in said
    assert "does not apply" not in said


def test_the_line_names_what_the_server_shows_and_nothing_else(valid: Any) -> None:
    """Queue, KV cache, preemptions; a server that shows no cache has no cache in its line."""
    said = server.line(valid)
    assert said == (
        "By the server's own metrics: 41.7 running (at most 60), 0.21 waiting (at most 4), KV cache 31\u202f% in use "
        "(at most 44\u202f%), 3 preemptions, prefix hits 2.1\u202f%."
    )
    less = copy.deepcopy(valid)
    less["server"] |= dict.fromkeys(("kv_usage", "preemptions", "prefix_hit_share"))
    assert (
        server.line(less)
        == "By the server's own metrics: 41.7 running (at most 60), 0.21 waiting (at most 4)."
    )
    assert server.line({**valid, "server": None}) is None


def test_both_sides_stand_in_the_tables(valid: Any) -> None:
    """TTFT by server and client; totals with a range where a request's usage is not known."""
    times = {title: (theirs, ours) for title, theirs, ours in server.times(valid)}
    assert list(times) == ["Time to First Token", "Inter-Token Latency", "Time in the queue"]
    assert times["Time to First Token"][0][1] == "78.10"
    assert times["Time to First Token"][1][0] == "1006"
    assert server.counts(valid)[1] == ("Output tokens", "164\u202f744", "164\u202f262 to 164\u202f742")
    markdown = render_markdown(valid)
    assert "## Server metrics" in markdown
    assert "## Server metrics" not in render_markdown({**valid, "server": None})


def test_a_chart_stands_for_what_is_shown_and_for_nothing_else(valid: Any, series: Any) -> None:
    """The page has an element for each series there is; without any, not even a heading."""
    text = render_html(valid, series)
    ids = {attrs.get("id") for _, attrs in Page(text).tags}
    assert {"server-running", "server-waiting", "server-hits", "server"} <= ids
    assert not {"server-kv", "server-tokens"} & ids
    data = json.loads(re.findall(r'<script[^>]*id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[0])
    assert data["series"]["server"].keys() == series["server"].keys()
    bare = {**series, "server": {}}
    none = {attrs.get("id") for _, attrs in Page(render_html({**valid, "server": None}, bare)).tags}
    assert not {one for one in none if one and one.startswith("server")}
