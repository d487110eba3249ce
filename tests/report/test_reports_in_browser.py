"""Every report opened by headless Chromium, with hostile text wherever a document has text of others.

| what the browser shows                   | if                                                                |
| ---------------------------------------- | ----------------------------------------------------------------- |
| an attribute `data-ran` of `<html>`      | hostile text ran                                                  |
| a request to the loopback server         | hostile text made the browser load something                      |
| a line of the console                    | there was an error, or the security policy had to block something |
| an element or attribute that the report  | hostile text became markup                                        |
| of a harmless document does not have     |                                                                   |
| a theme button without `hidden`          | the page's own script ran                                         |

Where no Chromium is found the tests are skipped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import importlib.resources
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import typing
import zlib
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import agentics
import benches
import campaigns
import msgspec
import pytest
from histories import history, noisy
from msgspec.structs import replace
from sample_runs import invalid_summary, rich_series

from inferometer.documents.part import to_json
from inferometer.documents.workload import (
    DrawnRequests,
    Lengths,
    PrefixHits,
    PublishedFigure,
    SharedPrefixes,
)
from inferometer.plan.length_histogram import histogram
from inferometer.report import workload
from inferometer.report.agentic.html import render_html as agentic_page
from inferometer.report.bench.html import render_html as bench_page
from inferometer.report.campaign.comparison.html import render as comparison_page
from inferometer.report.campaign.html import render_html as campaign_page
from inferometer.report.history import page as history_page
from inferometer.report.run.html import render_html as run_page
from inferometer.studies.campaign_comparison import compare_campaign_folders
from inferometer.studies.comparison import Question
from inferometer.studies.history.trend import trend

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
LIMIT_S = 120
"""Of one start of the browser, on a machine that is busy with other things."""
RAN = "document.documentElement.dataset.ran=1"
PAYLOADS = (
    "<img src=URL onerror=RAN>",
    "</script><script>RAN</script><script src=URL></script>",
    "</title></style></textarea></svg></pre><svg onload=RAN><image href=URL></svg>",
    "\" onmouseover=RAN autofocus onfocus=RAN style=background:url(URL) x='",
    "' onmouseover=RAN autofocus onfocus=RAN tabindex=0 x=\"",
    '<iframe src="javascript:parent.RAN"></iframe><iframe src=URL></iframe><object data=URL></object>',
    "<link rel=stylesheet href=URL><style>@import 'URL';body{background:url(URL)}</style>",
    "javascript:RAN//&lt;b&gt;&#60;i&#62;",
    "{{ 'ab' * 3 }}{% for x in 'cd' %}{{ x * 3 }}{% endfor %}${RAN}",
    "\u202e\u2066\x1b]0;title\x07\x1b[31m\x9b31m\u2028\x00--><!--<script>RAN//]]>",
)
NAVIGATION = "<base href=URL><meta http-equiv=refresh content='0;url=URL'>"
"""No policy in a page forbids that it leaves for another one: here only escaping helps."""
SPELT = re.compile("[\u202e\u2066\x1b\x9b\u2028\x00]|ababab|cccddd")
"""What a page holds if signs were not removed, or if text was read as a template."""

OURS = frozenset({
    "code", "codes", "reasons", "metric", "started", "ended", "test", "schema", "unit", "section", "rule", "name_of",
})  # fmt: skip
"""Members that hold identifiers of ours, by which words are looked up, or instants."""

Turn = Callable[[str], str]


def poisoned(value: Any, turn: Turn, hint: Any = None) -> Any:
    """A document with every free text turned: strings that by their types may be any text, except the members OURS."""
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        hints = typing.get_type_hints(type(value))
        parts = {name: getattr(value, name) for name in hints if name not in OURS and hasattr(value, name)}
        changed = {name: poisoned(part, turn, hints[name]) for name, part in parts.items()}
        known: Any = value
        structs = isinstance(value, msgspec.Struct)
        return replace(known, **changed) if structs else dataclasses.replace(known, **changed)
    if plain(value):
        with contextlib.suppress(msgspec.ValidationError, TypeError):
            return msgspec.convert(turned(value, turn), hint)
        return value
    if isinstance(value, tuple):
        return tuple(poisoned(one, turn) for one in value)
    return {key: poisoned(one, turn) for key, one in value.items()} if isinstance(value, Mapping) else value


def turned(value: Any, turn: Turn) -> Any:
    """Plain data with every string turned; keys stay."""
    if isinstance(value, str):
        return turn(value)
    if isinstance(value, Mapping):
        return {key: turned(one, turn) for key, one in value.items()}
    return [turned(one, turn) for one in value] if isinstance(value, list | tuple) else value


def plain(value: Any) -> bool:
    """Whether this is made of strings, numbers, lists and mappings only."""
    if isinstance(value, Mapping):
        return all(map(plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(plain, value))
    return isinstance(value, str | int | float | None)


def of_run(turn: Turn) -> str:
    summary = invalid_summary()
    plan = summary.plan.model_copy(update={"name": turn("plan")})
    return run_page(replace(poisoned(summary, turn), plan=plan), rich_series())


def of_comparison(turn: Turn) -> str:
    """Of two campaigns, the second by another seed."""
    with tempfile.TemporaryDirectory() as folder:
        for number, side in enumerate("ab"):
            one = campaigns.simulated()
            seeded = replace(one.reproduction, seeds=(number,))
            planted = replace(one, id=f"campaign-{number}", version="planted", reproduction=seeded)
            (Path(folder) / side).mkdir()
            (Path(folder) / side / "campaign.json").write_text(to_json(planted), encoding="utf-8")
        found = compare_campaign_folders([f"{folder}/a", f"{folder}/b"], Question())
    return comparison_page(poisoned(found, turn))


def of_workload(turn: Turn) -> str:
    lengths = Lengths(320.0, 300.0, 500.0, 510.0, 128, 512)
    published = PublishedFigure("input", "mean", 300.0, "paper", 320.0, 0.06)
    shared = SharedPrefixes(40, 0.4, lengths, (30, 10), ((0, 0), (1, 30), (2, 40)))
    bars = {name: histogram({"asked": [128, 300, 512]}) for name in ("input_tokens", "output_tokens")}
    hits = PrefixHits(0.6, 0.5, 16)
    drawn = DrawnRequests(100, lengths, lengths, None, lengths, lengths, shared, hits, (published,), bars)
    return workload.page(turn("workload"), drawn)


def of_history(turn: Turn) -> str:
    """A figure over twelve runs."""
    return history_page.render(poisoned(trend(history(noisy(12)), "ttft_p50", None, ()), turn))


PAGES: dict[str, Callable[[Turn], str]] = {
    "report": of_run,
    "campaign": lambda turn: campaign_page(poisoned(campaigns.measured(), turn)),
    "campaign_comparison": of_comparison,
    "bench": lambda turn: bench_page(poisoned(benches.usual(), turn)),
    "agentic": lambda turn: agentic_page(poisoned(agentics.usual(), turn)),
    "workload_page": of_workload,
    "history": of_history,
}
"""By template: the page of a document whose texts are turned."""
WITHOUT_CHARTS = {"campaign_comparison"}


class Elements(HTMLParser):
    """A page as the browser writes it: elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._inside = ""
        self.feed(text)
        self.close()

    # HTMLParser calls the three methods below by name.
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element."""
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        """What follows is no longer inside it."""
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        """Keep what people read."""
        if self._inside not in ("script", "style"):
            self.words += data

    @property
    def kinds(self) -> set[str]:
        """Each element by its name, and each of its attributes behind it."""
        return {f"{tag} {name}".strip() for tag, attributes in self.tags for name in ("", *attributes)}

    @property
    def charts(self) -> int:
        """How many charts there are."""
        return len([one for tag, one in self.tags if tag == "svg" and one.get("class") == "chart"])


@dataclasses.dataclass(frozen=True)
class Opened:
    """What the browser made of a page: its DOM when all was quiet, lines of its console, and requests to the server."""

    dom: str
    console: list[str]
    requests: list[str]

    @property
    def ran(self) -> bool:
        """Whether hostile text ran."""
        return "data-ran" in Elements(self.dom).tags[0][1]


class Browser:
    """Opens pages, each in a new Chromium with a new profile; `url` is what hostile text refers to."""

    def __init__(self, program: str, folder: Path, url: str, requests: list[str]) -> None:
        self.url = url
        self._program, self._folder, self._requests = program, folder, requests

    def hostile(self, text: str) -> str:
        """The text behind all payloads. Which one is first depends on the text, because reports shorten names."""
        first = zlib.crc32(text.encode()) % len(PAYLOADS)
        payloads = "".join((*PAYLOADS[first:], *PAYLOADS[:first], NAVIGATION))
        return self.armed(payloads) + text

    def armed(self, payloads: str) -> str:
        """With the address and the script filled in."""
        return payloads.replace("URL", self.url).replace("RAN", RAN)

    def open(self, page: str) -> Opened:
        """Load the page from a file. Fails if that takes more than LIMIT_S."""
        file = self._folder / "page.html"
        file.write_text(page, encoding="utf-8")
        self._requests.clear()
        with tempfile.TemporaryDirectory(dir=self._folder) as profile:
            status, dom, said = self._started(
                "--headless=new",
                "--no-sandbox",  # root has none, and what is opened is ours
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={profile}",
                "--enable-logging=stderr",
                "--virtual-time-budget=3000",
                "--dump-dom",
                file.as_uri(),
            )
        assert status == 0, said
        console = [line for line in said.splitlines() if ":CONSOLE" in line]
        return Opened(dom, console, list(self._requests))

    def _started(self, *arguments: str) -> tuple[int, str, str]:
        process = subprocess.Popen(
            [self._program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        )
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return process.returncode, out, err


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, and a loopback server that notes what is requested."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser to open reports with: none of {', '.join(BROWSERS)} is installed")
    requests: list[str] = []

    class Noting(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Noting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/hostile"
            yield Browser(program, tmp_path_factory.mktemp("browser"), url, requests)
        finally:
            server.shutdown()
            thread.join()


def test_every_kind_of_page_is_opened() -> None:
    """A template of a whole page has its entry in PAGES."""
    folder = importlib.resources.files("inferometer.report") / "templates"
    files = [one for one in folder.iterdir() if one.name.endswith(".html.j2")]
    whole = {one.name.removesuffix(".html.j2") for one in files if "<!DOCTYPE" in one.read_text("utf-8")}
    assert whole == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_hostile_text_is_shown_and_does_nothing(name: str, browser: Browser) -> None:
    """Nothing runs, loads or fails but the page's own script, and the text is there to be read."""
    opened = browser.open(PAGES[name](browser.hostile))
    shown, harmless = Elements(opened.dom), Elements(PAGES[name](str))
    assert opened.console == []
    assert opened.requests == []
    assert not opened.ran
    assert shown.kinds <= harmless.kinds | {"tbody"}
    assert [one for tag, one in shown.tags if one.get("id") == "theme" and "hidden" not in one]
    assert bool(shown.charts) is (name not in WITHOUT_CHARTS)
    assert "<img src=" in shown.words
    assert not SPELT.search(opened.dom)


@pytest.mark.parametrize("policy", [True, False])
def test_only_the_policy_stops_markup_that_was_not_escaped(policy: bool, browser: Browser) -> None:
    """Payloads put into a page as they are do nothing, and the console says why; without the policy they run and load, which
    this file would see."""
    page = PAGES["bench"](str)
    if not policy:
        page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    opened = browser.open(page.replace("<main>", f"<main>{browser.armed(' '.join(PAYLOADS[:7]))}", 1))
    assert opened.ran is not policy
    assert bool(opened.requests) is not policy
    assert bool([line for line in opened.console if "Content Security Policy" in line]) is policy
