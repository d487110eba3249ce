"""The test that a campaign was killed in, or is in now. Its document is written after each test: of the one under way there are
only the folders of its runs."""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.documents.campaign import Campaign
from inferometer.journal import hold
from inferometer.journal.unfinished import how_to_read, tests_of
from inferometer.studies.campaign import Tested


def unreported_runs(tested: Tested) -> Iterator[str]:
    """Lines for people, none of a campaign that came to its end. A redacted document names no runs, and so nothing is said."""
    folder, document = tested.folder, tested.document
    later = [name for name in tests_of(folder) if name not in {test.test for test in document.tests}]
    if (
        document.redacted
        or not later
        or any(test.ended_by in ("interrupted", "instrument") for test in document.tests)
    ):
        return
    going = hold.held(folder)
    known = _runs_of(document)
    runs = sorted(plan.parent for plan in folder.glob("runs/*/plan.json") if plan.parent.name not in known)
    yield (
        f"the campaign {'is under way' if going else 'was ended'} within the test {later[0]}, of which this report has nothing"
    )
    if runs:
        yield how_to_read(runs, going=going)


def _runs_of(document: Campaign) -> frozenset[str]:
    runs = {one.run for test in document.tests for one in test.runs}
    return frozenset(runs | {one.run for test in document.tests for one in test.spoilt})
