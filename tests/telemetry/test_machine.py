"""Readings of the machine: recorded texts give what they say, a planted tree is read as the kernel's, and what is not there is
None. Texts of macOS are from Apple's manual pages, headers and published terminal sessions: no Mac was at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.telemetry import linux, macos
from inferometer.telemetry.linux import Linux
from inferometer.telemetry.machine import Unknown, limits, this_machine
from inferometer.telemetry.machine_readings import (
    ClockState,
    MemoryPressure,
    Processor,
    Swap,
    Thermal,
    pressure_level,
)
from inferometer.telemetry.macos import MacOS

PRESSURE = """\
some avg10=2.04 avg60=0.75 avg300=0.40 total=157656722
full avg10=0.50 avg60=0.13 avg300=0.10 total=143842423
"""
MEMINFO = """\
MemTotal:       32779364 kB
MemAvailable:   20111092 kB
SwapCached:         1024 kB
SwapTotal:       8388604 kB
SwapFree:        8388348 kB
"""
VMSTAT = "nr_free_pages 2012\npswpin 17\npswpout 4242\npgfault 99\n"
CPUINFO = """\
processor\t: 0
model name\t: AMD EPYC 9554 64-Core Processor
cpu MHz\t\t: 2596.134

processor\t: 1
model name\t: AMD EPYC 9554 64-Core Processor
cpu MHz\t\t: 3100.000
"""
RELEASE = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n'
VM_STAT = """\
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                                    10069.
Pages active:                                 432859.
"Translation faults":                     1935466161.
Pages occupied by compressor:                1013366.
Swapins:                                     8123456.
Swapouts:                                    9876543.
"""
SWAPUSAGE = "total = 10240.00M  used = 9689.94M  free = 550.06M  (encrypted)\n"
THERM_QUIET = """\
Note: No thermal warning level has been recorded
Note: No performance warning level has been recorded
Note: No CPU power status has been recorded
"""
THERM_SLOW = """\
Note: No thermal warning level has been recorded
CPU Power notify
\tCPU_Scheduler_Limit \t= 100
\tCPU_Available_CPUs \t= 8
\tCPU_Speed_Limit \t= 72
"""


def plant(root: Path, files: dict[str, str]) -> Path:
    """Files below `root`, with a newline at the end as the kernel writes them."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n")
    return root


def cpu(number: int, **files: object) -> dict[str, str]:
    return {f"sys/devices/system/cpu/cpu{number}/cpufreq/{name}": str(value) for name, value in files.items()}


def zone(number: int, temp: int, **trips: int) -> dict[str, str]:
    folder = f"sys/class/thermal/thermal_zone{number}"
    files = {f"{folder}/temp": str(temp)}
    for at, (kind, limit) in enumerate(trips.items()):
        files |= {f"{folder}/trip_point_{at}_type": kind, f"{folder}/trip_point_{at}_temp": str(limit)}
    return files


def test_a_machine_that_shows_nothing_has_unknown_readings(tmp_path: Path) -> None:
    """An empty tree, silent commands and an unknown system give None everywhere, and no level of anything."""
    for machine in (Linux(tmp_path), MacOS(lambda _: ""), Unknown()):
        assert machine.memory_pressure() == MemoryPressure()
        assert machine.thermal() == Thermal()
        assert machine.processor() == Processor()
        assert (machine.swap().used_bytes, machine.swap().swapped_out_pages) == (None, None)
        assert machine.ports() is None
    assert (MacOS(lambda _: "").chip(), MacOS(lambda _: "").clock()) == (None, ClockState())


def test_a_planted_tree_is_read_as_the_kernels(tmp_path: Path) -> None:
    """Every file of the table in linux.py, with the values that were written."""
    plant(
        tmp_path,
        {
            "proc/pressure/memory": PRESSURE,
            "proc/meminfo": MEMINFO,
            "proc/vmstat": VMSTAT,
            "proc/cpuinfo": CPUINFO,
            "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999",
            "etc/os-release": RELEASE,
        },
    )
    machine = Linux(tmp_path)
    assert machine.memory_pressure() == MemoryPressure("warning", 2.04, 0.5)
    assert machine.swap().used_bytes == 256 * 1024
    assert machine.swap().swapped_out_pages == 4242
    assert machine.processor() == Processor(None, 2596.134, 3100.0, None)
    assert machine.ports() == 28232
    assert machine.chip() == "AMD EPYC 9554 64-Core Processor"
    assert machine.os_version() == "Debian GNU/Linux 12 (bookworm)"


def test_the_slowest_processor_decides_the_speed_limit(tmp_path: Path) -> None:
    """In percent of its own highest frequency; governors are all named, frequencies are the extremes."""
    fast = {"scaling_cur_freq": 3_500_000, "scaling_max_freq": 4_000_000, "cpuinfo_max_freq": 4_000_000}
    slow = {"scaling_cur_freq": 800_000, "scaling_max_freq": 1_500_000, "cpuinfo_max_freq": 2_000_000}
    plant(
        tmp_path,
        cpu(0, scaling_governor="performance", **fast) | cpu(1, scaling_governor="powersave", **slow),
    )
    assert Linux(tmp_path).thermal().speed_limit_percent == 75.0
    assert Linux(tmp_path).processor() == Processor(("performance", "powersave"), 800.0, 3500.0, 4000.0)


def test_the_hottest_zone_decides_the_thermal_level(tmp_path: Path) -> None:
    """By its own trip points; a fan that runs, and a trip point that is switched off, are no level."""
    plant(tmp_path, zone(0, 60_000, passive=95_000, critical=105_000))
    assert Linux(tmp_path).thermal().level == "nominal"
    plant(tmp_path, zone(1, 50_000, active=40_000, hot=-274_000))
    assert Linux(tmp_path).thermal().level == "nominal"
    plant(tmp_path, zone(2, 96_000, passive=95_000, critical=105_000))
    assert Linux(tmp_path).thermal().level == "fair"
    plant(tmp_path, zone(3, 110_000, passive=95_000, hot=100_000, critical=120_000))
    assert Linux(tmp_path).thermal().level == "serious"
    plant(tmp_path, zone(4, 105_000, critical=105_000))
    assert Linux(tmp_path).thermal().level == "critical"


def test_zones_without_trip_points_have_no_level(tmp_path: Path) -> None:
    """A temperature alone does not say what is too hot."""
    plant(tmp_path, {"sys/class/thermal/thermal_zone0/temp": "90000"})
    assert Linux(tmp_path).thermal().level is None


def test_throttling_is_counted_once_for_a_package(tmp_path: Path) -> None:
    """Each processor of a package shows the package's count."""
    files: dict[str, str] = {}
    for number, core in ((0, 3), (1, 0)):
        folder = f"sys/devices/system/cpu/cpu{number}/thermal_throttle"
        files |= {f"{folder}/core_throttle_count": str(core), f"{folder}/package_throttle_count": "5"}
    found = Linux(plant(tmp_path, files)).thermal()
    assert (found.throttled_count, dict(found.throttled_by_cpu)) == (8, {"0": 8, "1": 5})


@given(st.none() | st.floats(0, 100), st.none() | st.floats(0, 100))
def test_more_waiting_is_never_a_better_level(some: float | None, full: float | None) -> None:
    """The level rises with either share, and is unknown only without both."""
    order = ["normal", "warning", "critical"]
    level = pressure_level(some, full)
    assert (level is None) == (some is None and full is None)
    worse = pressure_level(min((some or 0) + 5, 100), min((full or 0) + 5, 100))
    assert level is None or (worse is not None and order.index(worse) >= order.index(level))


SCRAPS = st.sampled_from(
    ["some avg10=", "used = ", "1.2.3", "²", "7", "M", " ", "\n", "SwapTotal:", " kB", "Swapouts:"]
)


@given(st.text() | st.lists(SCRAPS).map("".join))
def test_readers_of_text_never_raise(text: str) -> None:
    """Whatever a command or a file holds: a value, or None."""
    for read in (
        linux.pressure, linux.swap_used, linux.frequencies, linux.model_name, linux.port_count, linux.pretty_name,
        linux.footprint, macos.swap_used, macos.swapouts, macos.thermal_level, macos.speed_limit,
    ):  # fmt: skip
        read(text)


def test_recorded_commands_of_macos_give_what_they_say() -> None:
    """Sizes in bytes, pages of 16 KiB, the pressure's three words."""
    commands = {
        ("sysctl", "-n", "kern.memorystatus_vm_pressure_level"): "2\n",
        ("sysctl", "-n", "vm.swapusage"): SWAPUSAGE,
        ("vm_stat",): VM_STAT,
        (
            "notifyutil",
            "-g",
            "com.apple.system.thermalpressurelevel",
        ): "com.apple.system.thermalpressurelevel 1\n",
        ("pmset", "-g", "therm"): THERM_SLOW,
        ("sysctl", "-n", "net.inet.ip.portrange.first"): "49152\n",
        ("sysctl", "-n", "net.inet.ip.portrange.last"): "65535\n",
        ("sysctl", "-n", "machdep.cpu.brand_string"): "Apple M2 Max\n",
        ("sw_vers", "-productVersion"): "14.5\n",
    }
    machine = MacOS(lambda command: commands.get(command, ""))
    assert machine.memory_pressure() == MemoryPressure("warning")
    assert machine.swap() == Swap(round(9689.94 * 2**20), 9876543, 16384)
    assert machine.thermal() == Thermal("fair", 72.0, None)
    assert (machine.ports(), machine.chip(), machine.os_version()) == (16384, "Apple M2 Max", "macOS 14.5")


def test_a_mac_without_a_recorded_limit_has_none() -> None:
    """100 % would be a measurement."""
    assert macos.speed_limit(THERM_QUIET) is None


@pytest.mark.parametrize(
    ("word", "level"), [("1", "normal"), ("2", "warning"), ("4", "critical"), ("3", None)]
)
def test_the_pressure_of_macos_is_the_systems_word(word: str, level: str | None) -> None:
    """A number without a documented meaning has no level."""
    assert MacOS(lambda _: word).memory_pressure().level == level


def test_this_machine_answers_every_question() -> None:
    """Without an exception, whatever it shows; the limit on descriptors of this process is known on every POSIX system."""
    machine = this_machine()
    for name in ("memory_pressure", "swap", "thermal", "processor", "clock", "chip", "os_version"):
        getattr(machine, name)()
    assert limits(machine).descriptors is None or limits(machine).descriptors > 0  # type: ignore[operator]  # not None here
    assert isinstance(this_machine("Plan 9"), Unknown)


@pytest.mark.parametrize("text", ["nan", "inf", "-1e999", "many"])
def test_a_file_that_holds_no_number_is_unknown(text: str, tmp_path: Path) -> None:
    """No reading raises, and none is NaN."""
    for name in (
        "cpufreq/scaling_max_freq",
        "cpufreq/cpuinfo_max_freq",
        "thermal_throttle/core_throttle_count",
    ):
        path = tmp_path / "sys/devices/system/cpu/cpu0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    machine = Linux(tmp_path)
    assert machine.thermal() == Thermal(level=None, speed_limit_percent=None, throttled_count=None)
    assert machine.processor().mhz_max is None


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_swap_in_use_is_never_negative(total: int, free: int) -> None:
    """More free than there is contradicts itself, and is unknown."""
    used = linux.swap_used(f"SwapTotal: {total} kB\nSwapFree: {free} kB\n")
    assert used == ((total - free) * 1024 if total >= free else None)


@given(st.integers(0, 1 << 17), st.integers(0, 1 << 17))
def test_a_range_of_ports_is_none_or_holds_one(first: int, last: int) -> None:
    """The wrong way round, or beyond the ports there are, it is unknown."""
    found = linux.port_count(f"{first}\t{last}\n")
    assert found == (last - first + 1 if first <= last < 65_536 else None)
