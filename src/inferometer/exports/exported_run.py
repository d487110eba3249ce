"""A run as every export sees it: its summary, its samples, and the marks that go with each figure.

| mark        | tells a reader                                              |
| ----------- | ----------------------------------------------------------- |
| verdict     | whether the figures may be believed at all                  |
| reasons     | the codes of the checks that decided against VALID          |
| simulated   | that no server was measured                                 |
| interrupted | that the run did not reach its end                          |

No format leaves the marks out: whoever finds a figure in a table or on a dashboard finds its verdict beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from inferometer.documents.summary import Summary
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.measure.large_arrays import kept_in
from inferometer.measure.samples import Samples
from inferometer.measure.series import RunSeries
from inferometer.printable import printable
from inferometer.run.evaluate import assess, samples_in
from inferometer.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Marks:
    """What goes with every figure, safe to print. `model`: the one requested; None: not known."""

    run: str
    name: str
    model: str | None
    verdict: str
    reasons: tuple[str, ...]
    simulated: bool
    interrupted: bool


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run that was measured and judged again from its record. `series`: what its report draws."""

    folder: RunFolder
    summary: Summary
    series: RunSeries
    samples: Samples

    @property
    def marks(self) -> Marks:
        """See Marks."""
        return marks_of(self.summary)


def read(path: Path) -> ExportedRun:
    """Judge the record of a finished run, as `inferometer report` does; nothing is written. Raises RecordError."""
    folder = RunFolder.open(path)
    with kept_in(folder.path):
        assessed = assess(folder)
        return ExportedRun(folder, assessed.summary, assessed.series, samples_in(folder))


def marks_of(summary: Summary) -> Marks:
    """The marks of a summary; names of others lose their unprintable characters."""
    run, verdict = summary.run, summary.verdict
    return Marks(
        run=printable(run.id),
        name=printable(run.name),
        model=None if summary.sut.model is None else printable(summary.sut.model),
        verdict=verdict.status,
        reasons=tuple(reason.code for reason in verdict.reasons),
        simulated=run.simulated,
        interrupted=run.interrupted,
    )


@dataclass(frozen=True, slots=True)
class Period:
    """The measured phase, or a whole simulation; ns since the epoch."""

    start_ns: int
    end_ns: int


def period_of(summary: Summary) -> Period:
    """The measured phase on the wall clock; of a run without one, its start alone; of a simulated run, whose phases have no
    place on that clock, from its start to its end. Raises RecordError for damaged times."""
    run, window = summary.run, summary.window
    if run.simulated:
        start = _instant(run.started)
        return Period(_ns(start), _ns(start if run.ended is None else _instant(run.ended)))
    start = _instant(window.start or run.started)
    return Period(_ns(start), _ns(start + timedelta(seconds=window.duration_s or 0.0)))


def whole_duration(summary: Summary) -> timedelta | None:
    """From the run's start to its end on the wall clock; None: it has no end. Raises RecordError for damaged times."""
    run = summary.run
    return None if run.ended is None else _instant(run.ended) - _instant(run.started)


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as cause:
        raise RecordError(f"the run's start or end is no time: {cause}") from cause
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _ns(instant: datetime) -> int:
    """Microseconds are exact in integers; a float of seconds would round."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return (instant - epoch) // timedelta(microseconds=1) * (NS_PER_S // 1_000_000)
