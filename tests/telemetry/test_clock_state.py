"""What a machine says of its own synchronisation: the commands' documented lines, planted files, and this kernel."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.telemetry import clock_state
from inferometer.telemetry.clock_state import (
    ChronyTracking,
    ClockSynchronisation,
    KernelClock,
    clock_synchronisation,
    kernel_clock,
    printed,
    timex,
    tracking,
)

# The fields of chronyc(1), "tracking", in the order of its report: reference, stratum, times, frequencies, delays, leap status.
SERVER = (
    "CB00710F,203.0.113.15,3,1775996456.123456789,-0.000006523,-0.000006747,0.000035822,3.225,-0.000,0.129,"
    "0.013639022,0.001100737,64.2,Normal\n"
)
CLOCK = "50484330,PHC0,1,1775996456.1,0.000000012,0.000000003,0.000000004,1.0,0.0,0.001,0.000000001,0.000001005,1.0,Normal\n"
NOTHING = "00000000,,0,0.0,0.0,0.0,0.0,0.000,0.000,0.000,1.0,1.0,0.0,Not synchronised\n"


def test_a_server_is_read_without_its_name() -> None:
    """The error is the bound that chronyc(1) gives: |system time| + root dispersion + root delay / 2."""
    found = tracking(SERVER)
    assert found == ChronyTracking(True, 3, None, -0.006523, 13.639022, 1.100737)
    assert found.error_ms == pytest.approx(0.006523 + 1.100737 + 13.639022 / 2)
    state = ClockSynchronisation(chrony=found)
    assert (state.synchronised, state.method, state.by_ptp) == (True, "chrony (NTP), stratum 3", False)
    assert "203" not in msgspec.json.encode(state).decode()


def test_a_clock_of_this_machine_is_named() -> None:
    """A PTP hardware clock by chrony's name for it."""
    state = ClockSynchronisation(chrony=tracking(CLOCK))
    assert (state.method, state.by_ptp) == ("chrony, reference clock PHC0", True)
    assert state.error_ms == pytest.approx(0.001017, abs=1e-6)


def test_chrony_knows_better_than_the_kernel() -> None:
    """Not synchronised has no error and no method; chronyd's word counts where it runs."""
    state = ClockSynchronisation(KernelClock(True, 3.0), tracking(NOTHING))
    assert (state.synchronised, state.error_ms, state.method) == (False, None, None)
    by_kernel = ClockSynchronisation(KernelClock(True, 3.0, 1.0, 0.0), timesyncd=True)
    assert (by_kernel.synchronised, by_kernel.error_ms) == (True, 3.0)
    assert by_kernel.method == "systemd-timesyncd (NTP)"
    unknown = ClockSynchronisation()
    assert (unknown.synchronised, unknown.error_ms, unknown.method) == (None, None, None)


@given(
    st.one_of(st.text(max_size=200), st.lists(st.text(max_size=8), min_size=14, max_size=14).map(",".join))
)
def test_what_is_no_tracking_line_is_none_or_finite(text: str) -> None:
    """Law: no output of a command raises, and none makes an error that is no number."""
    found = tracking(text)
    assert found is None or found.error_ms < float("inf")


@pytest.mark.parametrize(
    "line",
    ["", "506 Cannot talk to daemon\n", SERVER.replace("0.013639022", "nan"), SERVER.replace("3,", "x,", 1), CLOCK + CLOCK],
)  # fmt: skip
def test_another_output_says_nothing(line: str) -> None:
    """As where chronyd does not run."""
    assert tracking(line) is None


def test_the_kernels_numbers_have_the_units_of_the_manual() -> None:
    """adjtimex(2): microseconds, and nanoseconds of the offset with STA_NANO; nothing of a clock that is not synchronised."""
    assert timex(0, 0x2001, 1_500_000, 2_500, 800) == KernelClock(True, 2.5, 0.8, 1.5)
    assert timex(0, 0x0001, 1_500, 2_500, 800) == KernelClock(True, 2.5, 0.8, 1.5)
    assert timex(5, 0x0040, 0, 16_000_000, 16_000_000) == KernelClock(synchronised=False)
    assert timex(0, 0x0040, 0, 16_000_000, 16_000_000) == KernelClock(synchronised=False)


@pytest.mark.skipif(sys.platform != "linux", reason="adjtimex is Linux's")
def test_this_kernel_is_read() -> None:
    """It says one or the other, with an error only where it is synchronised."""
    found = kernel_clock()
    assert found.synchronised in (True, False, None)
    assert (found.max_error_ms is not None) == bool(found.synchronised)


@pytest.mark.skipif(sys.platform != "linux", reason="the files are Linux's")
def test_planted_files_are_read(tmp_path: Path) -> None:
    """Devices of PTP, and systemd-timesyncd with and without having set the clock."""
    before = clock_synchronisation(tmp_path, lambda _: "")
    assert (before.chrony, before.timesyncd, before.ptp_devices) == (None, None, ())
    timesync = tmp_path / "run/systemd/timesync"
    timesync.mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    for name in ("ptp1", "ptp0", "ptp_kvm", "null"):
        (tmp_path / "dev" / name).touch()
    found = clock_synchronisation(tmp_path, lambda command: SERVER if command[0] == "chronyc" else "")
    assert (found.timesyncd, found.ptp_devices) == (False, ("ptp0", "ptp1"))
    assert found.chrony == tracking(SERVER)
    (timesync / "synchronized").touch()
    assert clock_synchronisation(tmp_path, lambda _: "").timesyncd


def test_a_command_that_hangs_or_is_missing_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within its limit."""
    monkeypatch.setattr(clock_state, "TIMEOUT_S", 0.2)
    began = time.monotonic()
    assert printed((sys.executable, "-c", "import time; time.sleep(60)")) == ""
    assert time.monotonic() - began < 30
    assert printed(("no-such-command-of-any-machine",)) == ""
    assert printed((sys.executable, "-c", "raise SystemExit('broken')")) == ""
    assert printed((sys.executable, "-c", "print('whole')")) == "whole\n"
