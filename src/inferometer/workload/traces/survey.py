"""The two readings of a trace.

`survey` reads all of it before anything is sent: every row is checked, and what the plan's window holds is added up. `replay`
reads the window again, row by row, while the run goes on. Neither keeps the rows.

Rows that failed where they were recorded (row.py) are arrivals without a load to repeat: they are counted and left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from inferometer.documents.workload import TraceFacts, TraceLengths
from inferometer.errors import PlanError, Problem, RecordError
from inferometer.plan.arrivals import Window
from inferometer.plan.rules import LONGEST_S, MOST_REQUESTS
from inferometer.plan.schema import Trace
from inferometer.units import NS_PER_S
from inferometer.workload.traces.row import Row, Unfit
from inferometer.workload.traces.source import Form, Source, opened

MOST_PROBLEMS = 5
"""After so many the rest of a file is not read: it is of another kind, or all its rows have one fault."""


class Arrival(NamedTuple):
    """A row and when it is due, in ns from the start of the measurement."""

    due_ns: int
    row: Row


@dataclass(slots=True)
class Lengths:
    """Counts of tokens seen, and how often each."""

    counts: dict[int, int] = field(default_factory=dict)

    def add(self, tokens: int) -> None:
        """Count one."""
        self.counts[tokens] = self.counts.get(tokens, 0) + 1

    def account(self) -> TraceLengths | None:
        """Sum, mean, min, max and the percentiles of draft 4.3.1's empirical distribution; None without any."""
        ordered = sorted(self.counts.items())
        number = sum(count for _, count in ordered)
        if not number:
            return None
        total = sum(tokens * count for tokens, count in ordered)

        def percentile(share: float) -> int:
            rank, seen = max(1, -int(-share * number // 1)), 0
            for tokens, count in ordered:
                seen += count
                if seen >= rank:
                    return tokens
            return ordered[-1][0]

        return TraceLengths(
            sum=total,
            mean=total / number,
            min=ordered[0][0],
            max=ordered[-1][0],
            p50=percentile(0.5),
            p95=percentile(0.95),
            p99=percentile(0.99),
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """What a trace holds, as far as the plan's window goes, and what a second reading needs.

    line, offset   where the window's first row begins: its line, and its place in the file in bytes
    zero_ns        the instant of the file's first row
    longest_text   bytes of the longest text
    """

    facts: TraceFacts
    line: int
    offset: int
    zero_ns: int
    longest_text: int = 0


def survey(trace: Trace, most: int | None = None) -> Survey:
    """Read a trace to its end. `most`: of the window only so many rows. Raises PlanError with the first problems found."""
    assert trace.file is not None
    with opened(trace.file) as source:
        form = source.form(trace.format)
        count = _Count(Window.of(trace), most)
        problems = list(_checked(source, form, count))
        if problems:
            raise PlanError(problems)
        found = count.survey(source.name, form.name, source.sha256())
        _refuse_what_cannot_be_run(trace, source, found.facts)
    return found


def _checked(source: Source, form: Form, count: _Count) -> Iterator[Problem]:
    """The first problems of a file; every good row is handed to `count`."""
    found, latest = 0, -1
    blank: int | None = None  # the first empty line of those at the end, where they are forgiven
    read = form.read
    for line in source.lines():
        try:
            row = read(source.number, line)
            if row.at_ns < latest:
                raise Unfit(form.clock, "is earlier than in the row before it: a trace is in order of time")
            latest = row.at_ns
            count.add(row, source.offset)
        except Unfit as cause:
            if not line.strip():
                blank = blank or source.number
                continue
            yield source.problem(cause.message, source.number, cause.field)
            found += 1
        if blank is not None:
            yield source.problem("is empty", blank)
            found, blank = found + 1, None
        if found >= MOST_PROBLEMS:
            return
    if not found and count.zero_ns is None:
        yield source.problem("holds no rows")


class _Count:
    """Adds up the rows of a window."""

    def __init__(self, window: Window, most: int | None) -> None:
        self._window = window
        self._start = window.start_ns
        self._end = math.inf if window.end_ns is None else window.end_ns
        self._most = math.inf if most is None else most
        self._second = window.speed * NS_PER_S  # trace time that passes in the run's first second
        self.zero_ns: int | None = None
        self._last = self._last_held = 0
        self._rows = self._failed = self._texts = self._first_second = 0
        self._input, self._output = Lengths(), Lengths()
        self._shares = False
        self._longest_text = 0
        self._begins: tuple[int, int] | None = None

    def add(self, row: Row, offset: int) -> None:
        """The next row of the file, and where it begins. A long file passes through here."""
        if self.zero_ns is None:
            self.zero_ns = row.at_ns
        at = self._last = row.at_ns - self.zero_ns
        if not self._start <= at < self._end or self._rows >= self._most:
            return
        if self._begins is None:
            self._begins = row.line, offset
        if not row.output_tokens or row.input_tokens == 0:
            self._failed += 1
            return
        self._rows += 1
        self._last_held = at
        if at - self._start < self._second:
            self._first_second += 1
        self._output.add(row.output_tokens)
        if row.input_tokens is None:
            self._texts += 1
            self._shares = True
            self._longest_text = max(self._longest_text, len((row.prompt or "").encode()))
        else:
            self._input.add(row.input_tokens)
            if row.hash_ids:
                self._shares = True

    def survey(self, name: str, form: str, sha256: str) -> Survey:
        """What it came to."""
        end = self._window.end_ns
        if end is None or self._rows >= self._most:
            end = self._last_held
        span = self._window.due_ns(end) if self._rows else 0
        facts = TraceFacts(
            file=name,
            format=form,
            sha256=sha256,
            rows=self._rows,
            failed=self._failed,
            span_s=span / NS_PER_S,
            first_second=self._first_second,
            input_tokens=self._input.account(),
            output_tokens=self._output.account(),
            texts=self._texts,
            shares_prefixes=self._shares,
            lasts_s=self._last / NS_PER_S,
            rate=self._rows / (span / NS_PER_S) if span > 0 else None,
        )
        line, offset = self._begins or (1, 0)
        return Survey(facts, line, offset, self.zero_ns or 0, self._longest_text)


def _refuse_what_cannot_be_run(trace: Trace, source: Source, facts: TraceFacts) -> None:
    if trace.sha256 is not None and trace.sha256 != facts.sha256:
        raise source.refused(
            "is not the file this plan was made for: its SHA-256 is another one "
            f"({facts.sha256[:12]}…, not {trace.sha256[:12]}…)"
        )
    if not facts.rows:
        failed = f"; {facts.failed} rows of it failed where they were recorded" if facts.failed else ""
        raise source.refused(
            f"holds no request between --trace-start and --trace-end{failed}; it lasts {facts.lasts_s:g} s from its first row"
        )
    if facts.rows > MOST_REQUESTS:
        raise source.refused(
            f"holds {facts.rows:,} requests; the most is {MOST_REQUESTS:,}: use --trace-end or --requests"
        )
    if facts.span_s > LONGEST_S:
        raise source.refused(
            f"takes {facts.span_s / 86_400:.1f} days; the most is 7: use --trace-end, --trace-speed or --requests"
        )


def replay(trace: Trace, survey: Survey) -> Iterator[Arrival]:
    """The arrivals of a trace that has been surveyed, in order. Raises RecordError if the file is another by now."""
    assert trace.file is not None
    window, given = Window.of(trace), 0
    with opened(trace.file) as source:
        try:
            read = source.form(survey.facts.format).read
            source.go(survey.line, survey.offset)
            for line in source.lines():
                if given == survey.facts.rows:
                    return
                row = read(source.number, line)
                if row.output_tokens and row.input_tokens != 0:
                    given += 1
                    yield Arrival(window.due_ns(row.at_ns - survey.zero_ns), row)
        except (PlanError, Unfit) as cause:
            raise RecordError(f"{source.name}: changed while it was replayed ({cause})") from cause
    if given < survey.facts.rows:
        raise RecordError(f"{survey.facts.file}: changed while it was replayed: rows are missing")
