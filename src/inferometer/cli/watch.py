"""`inferometer metrics watch`: how servers are now, drawn live on a terminal, or a line a scrape in a pipe."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from inferometer.cli.command import Command, GroupedOption
from inferometer.errors import PeerError, PlanError, Problem

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inferometer.telemetry.metrics.current_values import Totals
    from inferometer.telemetry.metrics.fetch import Fetcher

SHORTEST_S = 0.05

_COUNT: Callable[[float], str] = "{:,.0f}".format
_SHARE: Callable[[float], str] = "{:.1%}".format
_RATE: Callable[[float], str] = "{:,.1f}/s".format


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"


SHOWN: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "running": ("running", _COUNT),
    "waiting": ("waiting", _COUNT),
    "kv_usage": ("KV cache", _SHARE),
    "prefix_hits": ("prefix hits", _SHARE),
    "prefix_hit_rate": ("prefix hits", _SHARE),
    "preemptions_s": ("preemptions", _RATE),
    "input_tok_s": ("input tokens", _RATE),
    "output_tok_s": ("output tokens", _RATE),
    "requests_s": ("requests", _RATE),
    "ttft": ("TTFT, mean", _ms),
    "itl": ("ITL, mean", _ms),
}
"""How each figure of telemetry/metrics/current_values.py is called and written."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at one endpoint: its figures, or what is wrong."""

    url: str
    figures: Mapping[str, float]
    wrong: str | None = None


class Watched:
    """One endpoint and what it said last."""

    def __init__(self, shown: str, fetcher: Fetcher) -> None:
        self._shown = shown
        self._fetcher = fetcher
        self._before: tuple[int, Totals] | None = None

    def look(self) -> Look:
        """Scrape it now."""
        from inferometer.telemetry.metrics.current_values import figures, totals
        from inferometer.telemetry.metrics.exposition import Unusable, parse
        from inferometer.telemetry.metrics.fetch import Failed

        try:
            found = self._fetcher.get()
            now = totals(parse(found.text, found.content_type))
        except Failed as failure:
            return Look(self._shown, {}, failure.reason)
        except Unusable as unusable:
            return Look(self._shown, {}, unusable.code)
        before, self._before = self._before, (found.first_byte_ns, now)
        if before is None:
            return Look(self._shown, figures(now, None, 0.0))
        return Look(self._shown, figures(now, before[1], (found.first_byte_ns - before[0]) / 1e9))


def lines(look: Look) -> list[tuple[str, str]]:
    """Name and value of each figure; where an engine has none that is known, that."""
    if look.wrong is not None:
        return [("no metrics", look.wrong)]
    found = [(name, write(look.figures[key])) for key, (name, write) in SHOWN.items() if key in look.figures]
    return found or [("metrics", "none that are known")]


def plain(look: Look) -> str:
    """One look in one line."""
    return f"{look.url}  " + "  ".join(f"{name} {value}" for name, value in lines(look))


def drawn(looks: Sequence[Look]) -> RenderableType:
    """All looks, one below the other; 40 columns are enough."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = []
    for look in looks:
        table = Table(box=None, show_header=False, padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        for name, value in lines(look):
            table.add_row(Text(name), Text(value, style="red" if look.wrong else ""))
        parts += [Text(look.url, style="bold", overflow="ellipsis", no_wrap=True), table]
    return Group(*parts)


def _watched(urls: Sequence[str]) -> list[Watched]:
    """Raises PlanError with every URL that is none."""
    from inferometer.plan.server_metrics import completed
    from inferometer.run.scraping import endpoint_at
    from inferometer.telemetry.metrics.fetch import Fetcher

    whole, problems = [], []
    for place, url in enumerate(urls, 1):
        try:
            whole.append(completed(url))
        except ValueError as wrong:
            problems.append(Problem(f"URL {place}", str(wrong)))
    if problems:
        raise PlanError(problems)
    endpoints = [endpoint_at(url) for url in dict.fromkeys(whole)]
    return [Watched(endpoint.shown, Fetcher(endpoint)) for endpoint in endpoints]


@click.command(
    "watch",
    cls=Command,
    short_help="Show the main gauges of servers, live.",
    exits="0 ended by Ctrl-C or --count, 2 usage, 5 no server has metrics",
    examples=(
        "inferometer metrics watch localhost:8000 localhost:8001",
        "inferometer metrics watch localhost:8000 --interval 5 --count 12",
    ),
)
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--interval",
    cls=GroupedOption,
    type=float,
    default=1.0,
    metavar="S",
    help="Seconds between two scrapes. Default: 1.",
)
@click.option(
    "--count",
    cls=GroupedOption,
    type=int,
    metavar="N",
    help="End after N scrapes of each server. Default: at Ctrl-C.",
)
def watch(urls: Sequence[str], interval: float, count: int | None) -> int:
    """Draw the main gauges of servers, live. In a pipe: one line per server and scrape. Rates and means are over the last
    interval.
    """
    wrong = [("--interval", not SHORTEST_S <= interval <= 3600, f"{SHORTEST_S} to 3600 seconds")]
    wrong += [("--count", count is not None and count < 1, "at least 1")]
    if problems := [Problem(flag, f"must be {words}") for flag, is_wrong, words in wrong if is_wrong]:
        raise PlanError(problems)
    watched = _watched(urls)
    try:
        looks = _looks(watched, interval, count)
    except KeyboardInterrupt:
        return 0
    if all(look.wrong is not None for look in looks):
        raise PeerError("no metrics: " + "; ".join(f"{look.url}: {look.wrong}" for look in looks))
    return 0


def _looks(watched: Sequence[Watched], interval: float, count: int | None) -> list[Look]:
    """Look again and again, and show it; the last looks."""
    from rich.console import Console
    from rich.live import Live

    looks: list[Look] = []
    live = Live(console=Console(), auto_refresh=False) if sys.stdout.isatty() else None
    with ThreadPoolExecutor(len(watched)) as pool:
        if live is not None:
            live.start()
        try:
            for turn in itertools.count(1) if count is None else range(1, count + 1):
                began = time.monotonic()
                looks = list(pool.map(Watched.look, watched))
                if live is not None:
                    live.update(drawn(looks), refresh=True)
                else:
                    sys.stdout.write("".join(f"{plain(look)}\n" for look in looks))
                    sys.stdout.flush()
                if turn != count:
                    time.sleep(max(0.0, began + interval - time.monotonic()))
        finally:
            if live is not None:
                live.stop()
    return looks
