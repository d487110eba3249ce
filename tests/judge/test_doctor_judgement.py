"""What an examination of a machine comes to: every limit decides at its own value, and unknown is neither good nor bad."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from doctor_states import GOOD, UNKNOWN, engine

from inferometer.documents.doctor import MachineState, StampSeries, TimerSeries
from inferometer.judge.doctor import examine, to_mend
from inferometer.telemetry.machine_readings import (
    ClockState,
    Limits,
    MemoryPressure,
    Processor,
    Swap,
    Thermal,
)


def status(code: str, **changed: Any) -> str:
    state: MachineState = msgspec.structs.replace(GOOD, **changed)
    return {one.code: one.status for one in examine(state)}[code]


def test_a_good_machine_has_nothing_to_mend() -> None:
    """Every check is good, so none hides another."""
    assert {one.status for one in examine(GOOD)} == {"good"}
    assert to_mend(examine(GOOD)) == ()


def test_a_machine_that_shows_nothing_has_nothing_to_mend() -> None:
    """What is not known is unknown, not a fault; what the examination measures itself is known everywhere."""
    findings = {one.code: one.status for one in examine(UNKNOWN)}
    assert {code for code, one in findings.items() if one == "unknown"} == {
        "memory_pressure", "swap", "thermal", "governor", "clock", "ports",
    }  # fmt: skip
    assert to_mend(examine(UNKNOWN)) == ()


@pytest.mark.parametrize(
    ("level", "expected"), [("normal", "good"), ("warning", "mend"), ("critical", "mend")]
)
def test_memory_pressure_is_judged_by_its_level(level: Any, expected: str) -> None:
    """Any level above normal moves latencies."""
    assert status("memory_pressure", pressure=MemoryPressure(level)) == expected


def test_swap_is_judged_by_what_is_written_now() -> None:
    """Old pages are a note, one page written while we look is to be mended."""
    assert status("swap", swap=Swap(500_000_000)) == "good"
    assert status("swap", swap=Swap(500_000_001)) == "note"
    assert status("swap", swap=Swap(0), swapped_out_pages=1) == "mend"


@pytest.mark.parametrize(
    ("thermal", "throttled", "expected"),
    [
        (Thermal("nominal", 100.0, 12), 0, "good"),
        (Thermal(None, 100.0, None), None, "good"),
        (Thermal("fair", None, None), None, "mend"),
        (Thermal("nominal", 99.9, None), None, "mend"),
        (Thermal("nominal", 100.0, 13), 1, "mend"),
    ],
)
def test_any_sign_of_slowing_down_counts(thermal: Thermal, throttled: int | None, expected: str) -> None:
    """The level, the limit, and the count; what happened before we looked does not."""
    assert status("thermal", thermal=thermal, throttled=throttled) == expected


def test_one_processor_with_another_governor_is_enough() -> None:
    """A request may be answered on that one."""
    assert status("governor", processor=Processor(("performance", "powersave"))) == "mend"


def test_an_unsynchronised_clock_is_a_note_and_a_step_is_not() -> None:
    """A run's durations are of the monotonic clock; a step moves its kernel stamps."""
    assert status("clock", clock=ClockState(False)) == "note"
    assert status("clock", clock=ClockState(True), clock_step_ms=1.1) == "mend"


def test_limits_decide_at_their_values() -> None:
    """2,048 descriptors and 6,000 ports are enough; no limit on descriptors is good."""
    assert status("descriptors", limits=Limits(64, 2048, 6000)) == "good"
    assert status("descriptors", limits=Limits(64, 2047, 6000)) == "mend"
    assert status("descriptors", limits=Limits(64, None, 6000)) == "good"
    assert status("ports", limits=Limits(64, 2048, 5999)) == "mend"


def test_the_second_instance_of_an_engine_is_to_be_mended() -> None:
    """Two engines of different kinds are not; neither is a client."""
    assert status("engines", engines=(engine("ollama", 1, (11434,)), engine("vllm", 2, (8000,)))) == "good"
    assert status("engines", engines=(engine("ollama", 1, (11434,)), engine("ollama", 2, ()))) == "good"
    assert status("engines", engines=(engine("ollama", 1, (11434,)), engine("ollama", 2, None))) == "mend"


def test_a_tenth_of_the_processors_is_the_most_that_others_may_use() -> None:
    """Of all, not of one."""
    assert status("other_load", load=msgspec.structs.replace(GOOD.load, busy_cores=0.8)) == "good"
    assert status("other_load", load=msgspec.structs.replace(GOOD.load, busy_cores=0.81)) == "mend"


def test_a_late_timer_is_to_be_mended() -> None:
    """By P99, not by the largest of 500."""
    assert status("timer", timer=TimerSeries(500, 0.001, 0.2, 30.0)) == "good"
    assert status("timer", timer=TimerSeries(500, 0.001, 0.21, 0.3)) == "mend"


def test_stamps_that_are_missing_everywhere_are_the_systems_and_some_are_a_fault() -> None:
    """macOS has none; Linux has them on every read, and right."""
    assert status("stamps", stamps=StampSeries(200, 0, 0, None)) == "note"
    assert status("stamps", stamps=StampSeries(200, 199, 0, 0.01)) == "mend"
    assert status("stamps", stamps=StampSeries(200, 200, 1, 0.01)) == "mend"
