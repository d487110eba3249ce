"""What the person watching is shown while a load runs."""

from __future__ import annotations

import pytest

from inferometer.cli.terminal import Screen
from inferometer.drive.progress_counters import Progress
from inferometer.journal.schema import Phase


def test_each_phase_and_each_run_is_counted_from_its_own_start(capsys: pytest.CaptureFixture[str]) -> None:
    """Counters go on from phase to phase of a run, and begin anew with the next one, whose phase may be the same."""
    shown = Screen(quiet=False, plain_every_s=0.0)
    for phase, sent in ((Phase.WARMUP, 100), (Phase.MEASURE, 103), (Phase.MEASURE, 2), (Phase.MEASURE, 7)):
        shown.watch(phase, Progress(sent, sent, 0, 0, 10 * sent), 200)
    lines = capsys.readouterr().err.splitlines()
    assert [int(line.split(" sent")[0].split()[-1]) for line in lines] == [100, 3, 2, 7]
