"""The examination of this machine: it ends, changes nothing, keeps to its schema, and its trials use the code of a run."""

from __future__ import annotations

import json
import os
import sys

import jsonschema
import pytest

from inferometer.cli import app
from inferometer.documents.doctor import SCHEMA, Doctor
from inferometer.documents.part import from_json, to_data, to_json
from inferometer.documents.schemas.__main__ import generated
from inferometer.drive.clock import KERNEL_STAMPS, realtime_offset_ns
from inferometer.studies import instrument_trial
from inferometer.studies.doctor import machine_state
from inferometer.telemetry.machine import Unknown


def test_the_command_prints_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Valid by its schema, read back the same, and the exit code is 4 exactly if something is to be mended."""
    code = app.run(["doctor", "--json"])
    text = capsys.readouterr().out
    document = from_json(text, Doctor, SCHEMA, "stdout")
    jsonschema.validate(json.loads(text), json.loads(generated("doctor")))
    assert from_json(to_json(document), Doctor, SCHEMA, "again") == document
    assert code == (4 if document.mend else 0)
    assert document.mend == tuple(one.code for one in document.checks if one.status == "mend")


def test_no_command_line_and_no_name_of_the_machine_is_in_the_document() -> None:
    """Either may be private; an engine is named by its key."""
    state = machine_state(Unknown(), {"this": (r".",)})
    assert state.engines
    assert all(one.process.command is None for one in state.engines)
    assert state.environment.hostname is None
    assert sys.executable not in json.dumps(to_data(state))


def test_this_process_is_no_engine() -> None:
    """Even where its command line fits a pattern."""
    state = machine_state(Unknown(), {"python": (r"pytest",)})
    assert os.getpid() not in {one.process.pid for one in state.engines}


def test_the_timer_is_never_early() -> None:
    """Each instant is met at or after it, and the figures are in order."""
    series = instrument_trial.timer(20, 100_000)
    assert series.n == 20
    assert 0 <= series.p50_ms <= series.p99_ms <= series.max_ms


def test_reads_on_loopback_are_stamped_by_the_kernel() -> None:
    """Each one on Linux; elsewhere none, and that is reported."""
    series = instrument_trial.stamps(20)
    assert series.reads == 20
    assert series.stamped == (20 if KERNEL_STAMPS else 0)
    assert (series.lag_p50_ms is None) == (series.stamped == 0)


def test_a_clock_that_stood_still_has_no_step() -> None:
    """The offset of now is that of a moment ago, to far less than the limit of a millisecond."""
    assert instrument_trial.clock_step_ms(realtime_offset_ns()) < 1.0
