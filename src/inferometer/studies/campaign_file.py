"""A campaign's document out of its file. What follows from its other members is worked out again: a verdict, a label, a count
or an interval that was changed by hand, or damaged, is refused by name and not printed as if it had been measured.

A number that nothing in the document repeats (most cells of tables) is as the file has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from inferometer import whole_file
from inferometer.documents.campaign import (
    CAMPAIGN_SCHEMA,
    Campaign,
    ProcedureDocument,
    ProcedureVerdict,
    ReportedTable,
)
from inferometer.documents.part import from_json
from inferometer.documents.results import Figure, Interval, Series
from inferometer.errors import RecordError
from inferometer.judge.comparison.campaign_figures import unmeasurable
from inferometer.judge.compliance.statement import LABELS, misstated
from inferometer.judge.procedure_verdict import worst

MINIMUM = {
    "max_throughput_tok_s": "max_output_tok_s",
    "throughput_at_p99_ttft_500ms_tok_s": "throughput_at_ttft_limit",
}
"""Lines of draft C.1 that repeat a value of the throughput test."""


def read_campaign(path: Path) -> Campaign:
    """The document of a campaign.json. Raises RecordError: not read, not such a document, or it contradicts itself."""
    try:
        text = whole_file.read(path)
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read ({cause.strerror})") from cause
    document = from_json(text, Campaign, CAMPAIGN_SCHEMA, str(path))
    problem = next(contradictions_of(document), None)
    if problem is not None:
        raise RecordError(f"{path}: was damaged or changed: {problem}")
    return document


def contradictions_of(campaign: Campaign) -> Iterator[str]:
    """Where a document contradicts itself, in words."""
    yield from _instants("the campaign", campaign.started, campaign.ended)
    names = [test.test for test in campaign.tests]
    yield from (f"{name} is in it twice" for name in dict.fromkeys(names) if names.count(name) > 1)
    for test in campaign.tests:
        yield from _of_test(test)
        if (test.simulated, test.quick) != (campaign.simulated, campaign.quick):
            yield f"{test.test} and the campaign are not both simulated, or not both quick"
    yield from _of_verdict("the campaign", campaign.verdict, [test.verdict for test in campaign.tests])
    status = campaign.verdict.status
    worst_tests = {test.test for test in campaign.tests if test.verdict.status == status != "VALID"}
    if worst_tests != {one.code for one in campaign.verdict.reasons} & set(names):
        yield "the tests that its verdict names are not those of that verdict"
    yield from _of_statement(campaign)
    if not campaign.redacted:  # which withholds the lines of throughput whether it was tested or not
        yield from _of_minimum(campaign)


def _of_minimum(campaign: Campaign) -> Iterator[str]:
    shown = {
        value.name: value.value
        for test in campaign.tests
        if test.test == "throughput"
        for value in test.values
    }
    for line, name in MINIMUM.items():
        value = shown.get(name)
        if getattr(campaign.minimum, line) != (value if isinstance(value, int | float) else None):
            yield f"{line} of the minimum report is not {name} of throughput"


def _of_test(test: ProcedureDocument) -> Iterator[str]:
    name = f"{test.test[:60]!r}"
    yield from _instants(name, test.started, test.ended)
    yield from _of_verdict(name, test.verdict, ())
    if test.compliance is not None:
        problem = misstated(test.compliance, simulated=test.simulated, cut=test.ended_by is not None)
        if problem is not None:
            yield f"the compliance of {name}: {problem}"
    yield from (
        f"the interval of {one.name[:60]!r} ends before it begins" for one in test.values if _turned(one.ci)
    )
    false = unmeasurable(test)
    if false is not None:
        yield f"{false.name[:60]!r} of {name} is {str(false.value)[:40]!r}, which nothing measured can be"
    yield from (problem for table in test.tables for problem in _of_table(table))
    yield from (problem for figure in test.figures for problem in _of_figure(figure))


def _instants(name: str, *moments: str | None) -> Iterator[str]:
    for moment in moments:
        try:
            datetime.fromisoformat(moment or "2000-01-01")
        except ValueError:
            yield f"{name} began or ended at {str(moment)[:40]!r}, which is no instant"


def _of_verdict(name: str, verdict: ProcedureVerdict, of: Sequence[ProcedureVerdict]) -> Iterator[str]:
    reasons = [one.status for one in verdict.reasons]
    if verdict.status != worst([*reasons, *(one.status for one in of)]):
        yield f"the verdict of {name} is {verdict.status}, which does not follow from its reasons"


def _of_statement(campaign: Campaign) -> Iterator[str]:
    statement = campaign.compliance
    labels = [test.compliance.label for test in campaign.tests if test.compliance is not None]
    if statement is None or len(labels) < len(campaign.tests):
        return
    least = max(labels, key=LABELS.index, default=None)
    problem = misstated(statement, simulated=campaign.simulated, cut=False, least=least)
    if problem is not None:
        yield f"the compliance of the campaign: {problem}"


def _of_table(table: ReportedTable) -> Iterator[str]:
    name = f"the table {table.name[:60]!r}"
    if any(len(row) != len(table.columns) for row in table.rows):
        yield f"a row of {name} has not a cell for each column"
    if any(not (0 <= row < len(table.rows) and 0 <= at < len(table.columns)) for row, at in table.few):
        yield f"a cell of few samples is not in {name}"


def _of_figure(figure: Figure) -> Iterator[str]:
    if any(not _whole(one) for one in figure.series):
        yield f"a series of the figure {figure.name[:60]!r} has not a y for each x, or not an interval for each"


def _whole(series: Series) -> bool:
    points = len(series.x)
    return (
        len(series.y) == points
        and len(series.ci) in (0, points)
        and all(0 <= at < points for at in series.few)
        and not any(map(_turned, series.ci))
    )


def _turned(interval: Interval | None) -> bool:
    return interval is not None and interval[0] > interval[1]
