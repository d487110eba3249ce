"""`inferometer metrics watch`: how servers are now, drawn live on a terminal, or a line a scrape in a pipe."""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from inferometer.cli.command import Command, GroupedOption
from inferometer.cli.outlet import say
from inferometer.errors import PeerError, PlanError, Problem
from inferometer.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inferometer.telemetry.metrics.current_values import Totals
    from inferometer.telemetry.metrics.fetch import Fetcher

SHORTEST_S = 0.05
PATIENCE_S = 1.0
"""How long one that does not answer delays the others, if the interval is shorter. It is shown as waiting from then on."""
WAITING = "no answer yet"

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
    behind_eof: int = 0


class Watched(threading.Thread):
    """One endpoint and what it said last. A thread of its own looks, so that one that hangs holds up no other, nor the end."""

    def __init__(self, shown: str, fetcher: Fetcher) -> None:
        super().__init__(daemon=True)
        self._shown = shown
        self._fetcher = fetcher
        self._before: tuple[int, Totals] | None = None
        self._orders: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._looks: queue.SimpleQueue[Look] = queue.SimpleQueue()
        self._looking = False

    def run(self) -> None:
        """A look an order."""
        while True:
            self._orders.get()
            self._looks.put(self.look())

    def ask(self) -> None:
        """Begin a look, unless the last one is still under way."""
        if not self._looking:
            self._looking = True
            self._orders.put(None)

    def answer(self, timeout_s: float | None) -> Look:
        """The look that was begun; that there is none yet after so long (None: wait for it)."""
        try:
            found = self._looks.get(timeout=timeout_s)
        except queue.Empty:
            return Look(self._shown, {}, WAITING)
        self._looking = False
        return found

    def look(self) -> Look:
        """Scrape it now."""
        from inferometer.telemetry.metrics.current_values import figures, totals
        from inferometer.telemetry.metrics.exposition import Unusable, parse
        from inferometer.telemetry.metrics.fetch import Failed

        try:
            found = self._fetcher.get()
            layout = parse(found.text, found.content_type)
            now = totals(layout)
        except Failed as failure:
            return Look(self._shown, {}, failure.reason)
        except Unusable as unusable:
            return Look(self._shown, {}, unusable.code)
        before, self._before = self._before, (found.first_byte_ns, now)
        behind = layout.skipped.get("after_eof")
        ignored = 0 if behind is None else behind.count
        if before is None:
            return Look(self._shown, figures(now, None, 0.0), behind_eof=ignored)
        seconds = (found.first_byte_ns - before[0]) / 1e9
        return Look(self._shown, figures(now, before[1], seconds), behind_eof=ignored)


def lines(look: Look) -> list[tuple[str, str]]:
    """Name and value of each figure; where an engine has none that is known, that."""
    if look.wrong is not None:
        return [("no metrics", look.wrong)]
    found = [(name, write(look.figures[key])) for key, (name, write) in SHOWN.items() if key in look.figures]
    ignored = [("ignored behind # EOF", f"{look.behind_eof} lines")] if look.behind_eof else []
    return (found or [("metrics", "none that are known")]) + ignored


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
        parts += [Text(printable(look.url), style="bold", overflow="ellipsis", no_wrap=True), table]
    return Group(*parts)


def _watched(urls: Sequence[str], read: Mapping[str, object]) -> list[Watched]:
    """`read`: how all are read, by the names of the plan's server_metrics. Raises PlanError with everything that is wrong."""
    from pydantic import ValidationError

    from inferometer.plan.certificates import faults
    from inferometer.plan.server_metrics import ServerMetrics
    from inferometer.run.scraping import endpoint_at, token_of
    from inferometer.telemetry.metrics.fetch import Fetcher

    given = {name: value for name, value in read.items() if value is not None}
    try:
        wanted = ServerMetrics.model_validate({"urls": urls, **given})
    except ValidationError as wrong:
        raise PlanError(
            [_problem(one["loc"], one["msg"]) for one in wrong.errors(include_input=False)]
        ) from None
    found = dict.fromkeys(fault for one in wanted.named() for fault in faults(one, None))
    if problems := [Problem(FLAGS[name], why) for name, why in found]:
        raise PlanError(problems)
    for name, other in (("key_file", "cert_file"), ("token_header", "token_env")):
        if getattr(wanted, name) is not None and getattr(wanted, other) is None:
            raise PlanError([Problem(FLAGS[name], f"says nothing without {FLAGS[other]}")])
    token_of(wanted.token_env, os.environ, FLAGS["token_env"])
    endpoints = [endpoint_at(one, os.environ) for one in wanted.named()]
    return [Watched(endpoint.shown, Fetcher(endpoint)) for endpoint in endpoints]


FLAGS = {
    "headers": "--header",
    "token_env": "--token-env",
    "token_header": "--token-header",
    "ca_file": "--ca-file",
    "cert_file": "--cert",
    "key_file": "--key",
    "tls_verify": "--insecure",
    "timeout_s": "--timeout",
    "max_body_mib": "--max-body",
}
"""By the key of a plan's server_metrics."""


def _problem(place: tuple[int | str, ...], words: str) -> Problem:
    number = place[-1]
    where = f"URL {number + 1}" if isinstance(number, int) else FLAGS[str(place[0])]
    return Problem(where, words.removeprefix("Value error, "))


def _headers(texts: Sequence[str]) -> dict[str, str]:
    """Raises PlanError, which repeats no text."""
    from inferometer.plan.flags import header

    found: dict[str, str] = {}
    try:
        for text in texts:
            found |= header(text)
    except ValueError as wrong:
        raise PlanError([Problem("--header", str(wrong))]) from None
    return found


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
@click.option(
    "--header",
    "header",
    multiple=True,
    metavar="K: V",
    help="Extra header line. May be repeated. Not for keys.",
)
@click.option("--token-env", metavar="NAME", help="Environment variable that holds a bearer token.")
@click.option(
    "--token-header", metavar="NAME", help="Header that carries the token, in place of Authorization: Bearer."
)
@click.option("--cert", metavar="FILE", help="Certificate (PEM) to show, with its key or without.")
@click.option("--key", metavar="FILE", help="Private key (PEM) of that certificate, unencrypted.")
@click.option("--ca-file", metavar="FILE", help="Certificates (PEM) to trust instead of the system's.")
@click.option("--insecure", is_flag=True, help="Do not verify TLS certificates.")
@click.option(
    "--timeout", metavar="S", help="Give a scrape up after this long: seconds, or 500ms. Default: 5."
)
@click.option("--max-body", type=float, metavar="MIB", help="Largest body that is read, in MiB. Default: 32.")
def watch(
    urls: Sequence[str], interval: float, count: int | None, header: Sequence[str], **read: object
) -> int:
    """Draw the main gauges of servers, live. In a pipe: one line per server and scrape. Rates and means are over the last
    interval.
    """
    wrong = [("--interval", not SHORTEST_S <= interval <= 3600, f"{SHORTEST_S} to 3600 seconds")]
    wrong += [("--count", count is not None and count < 1, "at least 1")]
    if problems := [Problem(flag, f"must be {words}") for flag, is_wrong, words in wrong if is_wrong]:
        raise PlanError(problems)
    named = {
        "headers": _headers(header),
        "token_env": read["token_env"],
        "token_header": read["token_header"],
        "ca_file": read["ca_file"],
        "cert_file": read["cert"],
        "key_file": read["key"],
        "tls_verify": False if read["insecure"] else None,
        "timeout_s": read["timeout"],
        "max_body_mib": read["max_body"],
    }
    watched = _watched(urls, named)
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
    for one in watched:
        one.start()
    if live is not None:
        live.start()
    try:
        for turn in itertools.count(1) if count is None else range(1, count + 1):
            began = time.monotonic()
            looks = _turn(watched, None if turn == count else began + max(interval, PATIENCE_S))
            if live is not None:
                live.update(drawn(looks), refresh=True)
            else:
                say("\n".join(map(plain, looks)))
            if turn != count:
                time.sleep(max(0.0, began + interval - time.monotonic()))
    finally:
        if live is not None:
            live.stop()
    return looks


def _turn(watched: Sequence[Watched], until: float | None) -> list[Look]:
    """A look at each, waited for until then; None: until there is one."""
    for one in watched:
        one.ask()
    return [one.answer(None if until is None else max(0.0, until - time.monotonic())) for one in watched]
