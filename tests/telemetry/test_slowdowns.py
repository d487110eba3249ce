"""What the kernel counts of slow-downs: trees of files as both versions of control groups have them, and a group of our own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.telemetry.slowdowns import Slowdowns, Slowed, between, read

CPU = Path("/sys/fs/cgroup/cpu")
PERIOD_US, QUOTA_US = 100_000, 10_000


def tree(root: Path, groups: str, stat: dict[str, str], throttles: dict[str, int]) -> Path:
    """A machine's files: /proc/self/cgroup, cpu.stat by its folder below /sys/fs/cgroup, and the counts of its processors."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in stat.items():
        (root / "sys/fs/cgroup" / name).mkdir(parents=True, exist_ok=True)
        (root / "sys/fs/cgroup" / name / "cpu.stat").write_text(text)
    for cpu, count in throttles.items():
        folder = root / f"sys/devices/system/cpu/{cpu}/thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text(f"{count}\n")
    return root


@pytest.mark.parametrize(
    ("groups", "stat", "held_ns"),
    [
        ("0::/pod\n", {"pod": "usage_usec 5\nnr_throttled 2\nthrottled_usec 350\n"}, 350_000),
        ("0::/\n", {"": "usage_usec 5\n"}, None),  # the controller is off: no limit
        (
            "4:memory:/a\n1:cpu,cpuacct:/b\n0::/\n",
            {"cpu,cpuacct/b": "nr_throttled 1\nthrottled_time 77\n"},
            77,
        ),
        (  # a limit that a group above has: a pod's, a slice's
            "0::/slice/pod/app\n",
            {"slice/pod/app": "throttled_usec 1\n", "slice": "throttled_usec 20\n", "": "usage_usec 5\n"},
            21_000,
        ),
        ("1:cpu:/a/b\n", {"cpu/a/b": "throttled_time 0\n", "cpu/a": "throttled_time 7\n"}, 7),
        ("1:cpu:/b\n", {"cpu/b": "throttled_time many\n"}, None),
        ("", {}, None),
    ],
)
def test_waits_for_a_cpu_limit_are_read(
    tmp_path: Path, groups: str, stat: dict[str, str], held_ns: int | None
) -> None:
    root = tree(tmp_path, groups, stat, {"cpu0": 4, "cpu1": 9})
    assert read(root) == Slowdowns({"0": 4, "1": 9}, held_ns)


COUNTS = st.builds(
    Slowdowns,
    st.dictionaries(st.sampled_from(["0", "1", "2"]), st.integers(0, 50)),
    st.none() | st.integers(0, 10**12),
)


@given(COUNTS, COUNTS)
def test_only_counts_that_both_instants_have_and_that_rise_are_differences(
    before: Slowdowns, after: Slowdowns
) -> None:
    found = between(before, after)
    rises = [after.thermal[cpu] - before.thermal[cpu] for cpu in after.thermal.keys() & before.thermal.keys()]
    assert found.thermal == (max(rises) if rises and min(rises) >= 0 else None)
    known = before.held_ns is not None and after.held_ns is not None and after.held_ns >= before.held_ns
    assert (found.held_ms is not None) == known
    assert between(before, before) == Slowed(
        0 if before.thermal else None, None if before.held_ns is None else 0.0
    )


BUSY = (
    "import time; from inferometer.telemetry.slowdowns import read; a = read(); t = time.monotonic()\n"
    "while time.monotonic() - t < 1: pass\nprint(read().held_ns - a.held_ns)"
)


@pytest.mark.skipif(
    os.geteuid() != 0 or not (CPU / "cpu.cfs_quota_us").parent.is_dir(), reason="needs root, and cgroup v1"
)
def test_a_process_held_to_a_tenth_of_a_core_says_so() -> None:
    """One that computes all the time waits for most of each period."""
    group = CPU / f"inferometer-test-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
    except OSError as cause:
        pytest.skip(f"no control group with a limit can be made here: {cause}")
    try:
        join = f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        done = subprocess.run(
            [sys.executable, "-c", join + BUSY], capture_output=True, text=True, timeout=120
        )
        assert int(done.stdout) > 0, done.stderr
    finally:
        group.rmdir()
