"""What this machine says of its own synchronisation: read, never required, and bounded in time.

| member        | source                                                                                                   |
| ------------- | -------------------------------------------------------------------------------------------------------- |
| kernel        | adjtimex(2) without a change: whether a time service holds the clock synchronised, and its error limits    |
| chrony        | `chronyc -c -n tracking` (chronyc(1)), if chronyd runs here                                               |
| timesyncd     | /run/systemd/timesync/synchronized: systemd-timesyncd has set the clock since the machine started           |
| ptp_devices   | /dev/ptp*: there is a PTP hardware clock; whether it is used does not show                                |

Each speaks of this machine's clock against UTC, by the account of its own time service. None says anything of another machine's
clock. systemd-timesyncd reports no error of its own and sets the kernel's to 0 at each contact: what the kernel then says is
what the clock may have drifted since. In a container all of it is the host's; a virtual machine may be kept in time by its
hypervisor without the kernel knowing.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from inferometer.telemetry.machine_readings import Reading

TIMEOUT_S = 2.0
"""For a command that answers in milliseconds."""
_COMMAND = ("chronyc", "-c", "-n", "tracking")
_FIELDS = 14
_TIME_ERROR = 5
_STA_UNSYNC, _STA_NANO = 0x40, 0x2000
_TIMEX_BYTES = 512
"""More than struct timex has on any architecture."""

Ask = Callable[[tuple[str, ...]], str]
"""A command to what it prints; empty if it cannot be run, fails or hangs."""


class KernelClock(Reading, frozen=True):
    """The kernel's account. `max_error_ms`: the error that it allows for, which grows by 0.5 ms a second between contacts;
    `estimated_error_ms`: the time service's estimate; `offset_ms`: still to be corrected. None where it is not synchronised."""

    synchronised: bool | None = None
    max_error_ms: float | None = None
    estimated_error_ms: float | None = None
    offset_ms: float | None = None


class ChronyTracking(Reading, frozen=True):
    """chronyd's account. `reference_clock`: the name of a clock attached to this machine (`PHC0`, `GPS`); None of a server,
    whose name and address are not kept. `system_ms`: how far the system's clock is from chronyd's estimate of true time."""

    synchronised: bool
    stratum: int
    reference_clock: str | None
    system_ms: float
    root_delay_ms: float
    root_dispersion_ms: float

    @property
    def error_ms(self) -> float:
        """The bound that chronyc(1) gives: |system time| + root dispersion + root delay / 2, if the primary server is right."""
        return abs(self.system_ms) + self.root_dispersion_ms + self.root_delay_ms / 2


class ClockSynchronisation(Reading, frozen=True):
    """The whole. None is: not known. `chrony` None: chronyd does not run here, or does not answer."""

    kernel: KernelClock = KernelClock()
    chrony: ChronyTracking | None = None
    timesyncd: bool | None = None
    ptp_devices: tuple[str, ...] = ()

    @property
    def synchronised(self) -> bool | None:
        """By chronyd, which knows the most, else by the kernel."""
        return self.kernel.synchronised if self.chrony is None else self.chrony.synchronised

    @property
    def error_ms(self) -> float | None:
        """How far the clock may be from UTC, in ms, by the same; None where it is not synchronised, or nobody says."""
        if not self.synchronised:
            return None
        return self.kernel.max_error_ms if self.chrony is None else self.chrony.error_ms

    @property
    def method(self) -> str | None:
        """What holds it synchronised; None: nothing does."""
        if not self.synchronised:
            return None
        if self.chrony is None:
            return "systemd-timesyncd (NTP)" if self.timesyncd else "a time service, by the kernel's account"
        if self.chrony.reference_clock is not None:
            return f"chrony, reference clock {self.chrony.reference_clock}"
        return f"chrony (NTP), stratum {self.chrony.stratum}"

    @property
    def by_ptp(self) -> bool:
        """Whether chronyd follows a PTP hardware clock, by the name that it goes by there (chrony.conf(5), refclock PHC)."""
        clock = None if self.chrony is None or not self.chrony.synchronised else self.chrony.reference_clock
        return clock is not None and clock.upper().startswith(("PHC", "PTP"))


def clock_synchronisation(root: Path = Path("/"), ask: Ask | None = None) -> ClockSynchronisation:
    """The state now. `root`: the folder that holds `dev` and `run`; `ask`: runs a command."""
    if sys.platform != "linux":
        return ClockSynchronisation()
    return ClockSynchronisation(
        kernel=kernel_clock(),
        chrony=tracking((ask or printed)(_COMMAND)),
        timesyncd=_timesyncd(root / "run/systemd/timesync"),
        ptp_devices=_ptp(root / "dev"),
    )


def printed(command: tuple[str, ...]) -> str:
    """What a command prints; empty if it cannot be run, fails or hangs."""
    try:
        done = subprocess.run(  # noqa: S603 - the command of this file
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=True
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def tracking(line: str) -> ChronyTracking | None:
    """The line of `chronyc -c tracking`: reference ID in hex, its name or address, stratum, time of the last measurement,
    system time, last offset, RMS offset, frequency, residual frequency, skew, root delay, root dispersion, update interval,
    leap status; times in s. None for anything else."""
    fields = line.strip().split(",")
    if len(fields) != _FIELDS:
        return None
    try:
        stratum = int(fields[2])
        system, delay, dispersion = (float(fields[at]) * 1000 for at in (4, 10, 11))
    except ValueError:
        return None
    if not all(map(math.isfinite, (system, delay, dispersion))):
        return None
    synchronised = fields[13] != "Not synchronised" and int(stratum) > 0
    return ChronyTracking(synchronised, stratum, _attached(fields[0], fields[1]), system, delay, dispersion)


def _attached(reference: str, name: str) -> str | None:
    """The name of a reference clock: its ID is the name's characters in hex. That of a server is its address, or a hash."""
    try:
        spelled = bytes.fromhex(reference).rstrip(b"\0").decode("ascii")
    except ValueError:
        return None
    return name if spelled and spelled == name and name.isalnum() else None


def kernel_clock() -> KernelClock:
    """The running kernel's. struct timex: unsigned modes; long offset, freq, maxerror, esterror; int status (adjtimex(2))."""
    if sys.platform != "linux":
        return KernelClock()
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)  # modes = 0: read only
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError):
        return KernelClock()
    if state < 0:  # a container may forbid it
        return KernelClock()
    word = ctypes.sizeof(ctypes.c_long)
    offset, _, most, estimated = (ctypes.c_long.from_buffer(buffer, at * word).value for at in range(1, 5))
    status = ctypes.c_int.from_buffer(buffer, 5 * word).value
    return timex(state, status, offset, most, estimated)


def timex(state: int, status: int, offset: int, most: int, estimated: int) -> KernelClock:
    """Of adjtimex's result and `status`, offset, maxerror and esterror of struct timex: in microseconds, `offset` in ns where
    the status says so."""
    if state == _TIME_ERROR or status & _STA_UNSYNC:
        return KernelClock(synchronised=False)
    in_ms = 1e6 if status & _STA_NANO else 1e3
    return KernelClock(True, most / 1000, estimated / 1000, offset / in_ms)


def _timesyncd(folder: Path) -> bool | None:
    try:
        return (folder / "synchronized").exists() if folder.is_dir() else None
    except OSError:
        return None


def _ptp(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(path.name for path in folder.glob("ptp[0-9]*")))
    except OSError:
        return ()
