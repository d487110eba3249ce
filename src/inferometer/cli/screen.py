"""What a person sees while and after measuring: progress on stderr, the result on stdout."""

from __future__ import annotations

import json
import shutil
import sys
import time

import click

from inferometer.conductor import Finding
from inferometer.drive.live import Progress
from inferometer.journal.schema import Phase
from inferometer.report.progress import Counters, progress, progress_plain

PLAIN_EVERY_S = 5.0
WORDS = {Phase.WARMUP: "warming up", Phase.MEASURE: "measuring"}


class Screen:
    """The Ui of the conductor. On a terminal one line that renews itself, in a pipe a line every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._phase: Phase | None = None
        self._began = time.monotonic()
        self._base = Progress(0, 0, 0, 0, 0)
        self._last = Progress(0, 0, 0, 0, 0)
        self._next_plain = 0.0

    def note(self, text: str) -> None:
        """See Ui."""
        if not self._quiet:
            self._clear()
            click.echo(text, err=True)

    def watch(self, phase: Phase, progress_now: Progress, total: int | None) -> None:
        """See Ui."""
        if self._quiet:
            return
        now = time.monotonic()
        if phase is not self._phase:
            self._phase, self._began, self._base = phase, now, self._last
            self._next_plain = now + PLAIN_EVERY_S
        self._last = progress_now
        counters = self._counters(phase, progress_now, total, now - self._began)
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            ascii_only = "utf" not in (sys.stderr.encoding or "").lower()
            sys.stderr.write("\r\x1b[2K" + progress(counters, width, ascii_only))
            sys.stderr.flush()
        elif now >= self._next_plain:
            self._next_plain = now + PLAIN_EVERY_S
            click.echo(progress_plain(counters), err=True)

    def _counters(self, phase: Phase, seen: Progress, total: int | None, elapsed: float) -> Counters:
        base = self._base
        done, failed = seen.ok - base.ok, seen.failed - base.failed
        ended = done + failed
        eta = elapsed * (total - ended) / ended if total and ended else None
        rate = (seen.events - base.events) / elapsed if elapsed > 0.5 else 0.0
        return Counters(
            WORDS[phase], seen.sent - base.sent, seen.in_flight, done, failed, rate, elapsed, total, eta
        )

    def _clear(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def show(finding: Finding, *, as_json: bool) -> int:
    """Print the result, as a table or as summary.json; gives the exit code."""
    if as_json:
        click.echo(json.dumps(finding.summary, ensure_ascii=False))
    else:
        from rich.console import Console

        from inferometer.report.console import render_console

        if sys.stderr.isatty():
            click.echo("\r\x1b[2K", err=True, nl=False)
        render_console(finding.summary, Console(), report=str(finding.folder / "report.html"))
    return finding.exit_code
