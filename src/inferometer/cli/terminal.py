"""What a person sees while and after measuring: progress on stderr, the result on stdout."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.cli.outlet import say_json, steer, tell, without_output
from inferometer.documents.agentic import Agentic
from inferometer.documents.bench import Bench
from inferometer.documents.campaign import Campaign
from inferometer.documents.cross_validation import CrossValidation
from inferometer.documents.detection import Detection
from inferometer.documents.doctor import Doctor
from inferometer.documents.part import Part, to_data
from inferometer.drive.progress_counters import Progress
from inferometer.journal.schema import Phase
from inferometer.printable import printable_lines
from inferometer.report.progress import Counters, progress, progress_plain
from inferometer.run.evaluate import RunResult

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_EVERY_S = 5.0
WORDS = {Phase.WARMUP: "warming up", Phase.PROBE: "probing", Phase.MEASURE: "measuring"}

NOTHING = Progress(0, 0, 0, 0, 0)


class Screen:
    """The Ui of `conduct`. On a terminal one line that renews itself, in a pipe a line every few seconds."""

    def __init__(self, *, quiet: bool, plain_every_s: float = PLAIN_EVERY_S) -> None:
        self._quiet, self._plain_every_s = quiet, plain_every_s
        self._live = sys.stderr is not None and sys.stderr.isatty()
        self._phase: Phase | None = None
        self._began = time.monotonic()
        self._base = self._last = NOTHING
        self._next_plain = 0.0

    def note(self, text: str) -> None:
        """See Ui. Further lines are indented, or a model's name could hold what looks like a line of ours."""
        if not self._quiet:
            lines = printable_lines(text).replace("\n", "\n  ")
            self._say(("\r\x1b[2K" if self._live else "") + lines + "\n")

    def watch(self, phase: Phase, progress_now: Progress, total: int | None) -> None:
        """See Ui."""
        if self._quiet:
            return
        now = time.monotonic()
        # A run's counters begin at 0, whatever was shown of the run before.
        anew = progress_now.sent < self._last.sent or progress_now.events < self._last.events
        if anew or phase is not self._phase:
            self._phase, self._began, self._base = phase, now, NOTHING if anew else self._last
            self._next_plain = now + self._plain_every_s
        self._last = progress_now
        counters = self._counters(phase, progress_now, total, now - self._began)
        if self._live:
            ascii_only = "utf" not in (sys.stderr.encoding or "").lower()
            self._say("\r\x1b[2K" + progress(counters, _columns() - 1, ascii_only))
        elif now >= self._next_plain:
            self._next_plain = now + self._plain_every_s
            self._say(progress_plain(counters) + "\n")

    def _counters(self, phase: Phase, seen: Progress, total: int | None, elapsed: float) -> Counters:
        base = self._base
        done, failed = seen.ok - seen.led - (base.ok - base.led), seen.failed - base.failed
        ended = done + failed
        eta = elapsed * (total - ended) / ended if total and ended else None
        rate = (seen.events - base.events) / elapsed if elapsed > 0.5 else 0.0
        return Counters(
            WORDS[phase], seen.sent - base.sent, seen.in_flight, done, failed, rate, elapsed, total, eta
        )

    def _say(self, text: str) -> None:
        """A reader who has left must not end a measurement."""
        steer(text)


def _columns() -> int:
    """Of the terminal that progress goes to, wherever stdout goes."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return 80


def show_doctor(document: Doctor) -> None:
    """Print the examination of a machine."""
    try:
        from rich.console import Console

        from inferometer.report.doctor import render

        render(document, Console())
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)


def show_campaign(document: Campaign, folder: Path, *, as_json: bool, redacted: bool = False) -> None:
    """Print what a campaign came to, as tables or as campaign.json. `redacted`: a copy to be shared was written, too."""
    _clear()
    try:
        if as_json:
            say_json(to_data(document))
        else:
            from rich.console import Console

            from inferometer.report.campaign.console import render_campaign
            from inferometer.studies.campaign import SHAREABLE

            copy = str(folder / SHAREABLE / "report.html") if redacted else None
            render_campaign(document, Console(), report=str(folder / "report.html"), copy=copy)
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)


def show_repeats(documents: Sequence[Campaign], requested: int, folder: Path, *, as_json: bool) -> None:
    """Print what repeats of a campaign came to, as tables or as campaign.json, a line each."""
    _clear()
    try:
        if as_json:
            say_json(*map(to_data, documents))
        else:
            from rich.console import Console

            from inferometer.report.campaign.repeats import render_repeats

            render_repeats(documents, requested, Console(), str(folder))
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)


def show_bench(document: Bench, folder: Path, *, as_json: bool) -> None:
    """Print a benchmark, as tables or as bench.json."""

    def draw(console: Console) -> None:
        from inferometer.report.bench.console import render
        from inferometer.report.bench.files import PAGE

        render(document, console, str(folder / PAGE))

    _clear()
    _show(document, draw, as_json=as_json)


def show_agentic(document: Agentic, folder: Path, *, as_json: bool) -> None:
    """Print an agentic benchmark, as tables or as agentic.json."""

    def draw(console: Console) -> None:
        from inferometer.report.agentic.console import render
        from inferometer.report.agentic.files import PAGE

        render(document, console, str(folder / PAGE))

    _clear()
    _show(document, draw, as_json=as_json)


def show_cross_validation(document: CrossValidation, file: Path, *, as_json: bool) -> None:
    """Print a cross-validation, as tables or as the JSON that lies in `file`."""

    def draw(console: Console) -> None:
        from inferometer.report.cross_validation import render

        render(document, console, str(file))

    _clear()
    _show(document, draw, as_json=as_json)


def show_detection(document: Detection, *, as_json: bool) -> None:
    """Print what was found, as tables or as JSON."""

    def draw(console: Console) -> None:
        from inferometer.report.detection import render

        render(document, console)

    _show(document, draw, as_json=as_json)


def _show(document: Part, draw: Callable[[Console], None], *, as_json: bool) -> None:
    """Print a document on stdout, also when nobody reads on."""
    try:
        if as_json:
            say_json(to_data(document))
        else:
            from rich.console import Console

            draw(Console())
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)


def _clear() -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K")


def show(finding: RunResult, *, as_json: bool) -> int:
    """Print the result, as a table or as summary.json; gives the exit code, also when nobody reads on."""
    _clear()
    for note in finding.notes:
        tell(note)
    try:
        if as_json:
            say_json(to_data(finding.summary))
        else:
            from rich.console import Console

            from inferometer.report.run.console import render_console

            render_console(finding.summary, Console(), report=str(finding.folder / "report.html"))
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)
    return finding.exit_code
