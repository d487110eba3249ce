"""A machine that runs out of something, caused for real: the words name it, the exit code is the machine's, and nothing
that was written is lost. Where the machine does not let a test cause the fault, it is skipped."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands import COMMAND, SMALL, finish, only, start, wait_for_answers, workers_of

from inferometer.errors import SHORTAGES
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import OUTCOME
from inferometer.journal.seal import streams

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="causes faults as Linux lets it")
LOAD = [*SMALL, "--rate", "100", "--warmup", "0", "--quiet"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small disk of a given size."""
    place = tmp_path / "disk"
    place.mkdir()

    def mounted(size: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"no small disk can be mounted here: {done.stderr.decode().strip()}")
        return place

    yield mounted
    subprocess.run(["umount", str(place)], capture_output=True, check=False)


def _unestimated(place: Path) -> list[str]:
    """Flags of a load whose need of disk is not known beforehand: 400 prompts of a file, at 100 a second."""
    path = place / "prompts.jsonl"
    rows = (
        {"prompt": f"Say something about the number {number}.", "output_tokens": 5} for number in range(400)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["--prompts", str(path), "--rate", "100", "--requests", "400", "--warmup", "0", "--quiet"]


def _limited(*arguments: str, before: Callable[[], object]) -> subprocess.CompletedProcess[str]:
    """A run in a process of its own, which `before` limits first."""
    return subprocess.run(
        [*COMMAND, "run", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=before,
    )


def _files(most: int) -> Callable[[], object]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _reason(summary: dict[str, Any], code: str) -> str:
    (said,) = (one["message"] for one in summary["verdict"]["reasons"] if one["code"] == code)
    return str(said)


def test_a_disk_that_is_full_from_the_start_leaves_words_and_no_folder(
    disk: Callable[[str], Path], tmp_path: Path
) -> None:
    """Exit code 71, not the 2 of a wrong plan; the file and what to do are named."""
    out = disk("16k") / "runs"
    code, _, stderr = finish("run", *_unestimated(tmp_path), "--out", str(out))
    assert code == 71
    assert "; ".join(SHORTAGES["disk"]) in stderr
    assert "a file:" not in stderr
    assert not out.exists() or not list(out.iterdir())


def test_a_disk_that_has_less_than_the_run_needs_is_refused_before_it(disk: Callable[[str], Path]) -> None:
    """Exit code 71; what is needed and what is free are named, and nothing is left."""
    out = disk("260k") / "runs"
    code, _, stderr = finish("run", *LOAD, "--requests", "400", "--out", str(out))
    assert code == 71
    assert "this run needs about" in stderr
    assert "--keep-text none" in stderr
    assert not list(out.iterdir())


def test_a_disk_that_fills_up_while_measuring_loses_nothing_that_was_written(
    disk: Callable[[str], Path], tmp_path: Path
) -> None:
    """The worker's share ends, the words hint at `recover`, and that rebuilds every row from a copy; never as VALID."""
    out = disk("260k") / "runs"
    code, _, stderr = finish("run", *_unestimated(tmp_path), "--out", str(out))
    assert code == 71
    assert SHORTAGES["disk"][0] in stderr
    folder = only(out)
    assert f"inferometer recover {folder}" in stderr
    written = streams(RunFolder(folder), "worker", OUTCOME).num_rows
    copy = shutil.copytree(folder, tmp_path / "copy")
    code, _, _ = finish("recover", str(copy))
    assert code == 130
    summary = json.loads((copy / "summary.json").read_bytes())
    assert summary["requests"]["sent"] == written
    assert summary["verdict"]["status"] != "VALID"


def test_more_requests_in_flight_than_open_files_are_refused_before_the_load(tmp_path: Path) -> None:
    """A worker opens no connections in place of its own files: it says how many it needs."""
    out = tmp_path / "runs"
    done = _limited(*LOAD[2:4], "--concurrency", "100", "--quiet", "--out", str(out), before=_files(40))
    assert done.returncode == 71, done.stderr
    assert "100 requests in flight needs 124 open files, and the limit is 40" in done.stderr
    assert not list(out.iterdir())


def test_a_process_that_may_hardly_open_a_file_says_so(tmp_path: Path) -> None:
    """Not even the run's own pipes."""
    done = _limited(*LOAD, "--requests", "10", "--out", str(tmp_path), before=_files(12))
    assert done.returncode == 71
    assert "; ".join(SHORTAGES["files"]) in done.stderr


def test_requests_that_this_machine_cannot_connect_are_no_fault_of_the_servers(tmp_path: Path) -> None:
    """Open loop, more at once than files: the others are answered, and one such request makes the run INVALID."""
    slow = [
        "--rate",
        "200",
        "--requests",
        "200",
        "--warmup",
        "0",
        "--output-tokens",
        "300",
        "--input-tokens",
        "20",
    ]
    done = _limited(*slow, "--quiet", "--out", str(tmp_path), before=_files(40))
    assert done.returncode in (3, 71), done.stderr
    summary = json.loads((only(tmp_path) / "summary.json").read_bytes())
    assert summary["requests"]["by_error"]["client_limit"] > 0
    assert "this machine ran out of open files, ports or buffers" in _reason(summary, "error_rate")
    assert not summary["instrument"]["dead_workers"]


def test_a_machine_without_free_ports_says_so(tmp_path: Path) -> None:
    """In a network of its own with hardly any ports: the exit code and the report blame the machine."""
    few = "ip link set lo up && echo '40000 40003' > /proc/sys/net/ipv4/ip_local_port_range"
    if subprocess.run(["unshare", "-n", "sh", "-c", few], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    words = [
        *SMALL,
        "--concurrency",
        "8",
        "--requests",
        "100",
        "--warmup",
        "0",
        "--connection",
        "new",
        "--quiet",
    ]
    program = ["unshare", "-n", "sh", "-c", f'{few}; exec "$@"', "sh", *COMMAND]
    done = subprocess.run(
        [*program, "run", *words, "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if not list(tmp_path.iterdir()):  # not even a probe found a port
        assert done.returncode in (5, 71)
        return
    assert done.returncode in (3, 71), done.stderr
    summary = json.loads((only(tmp_path) / "summary.json").read_bytes())
    assert "this machine ran out of open files, ports or buffers" in _reason(summary, "error_rate")


def _heeding_hangups() -> None:
    """The tests themselves may have been started by nohup, and what is ignored is ignored by children."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("outlives", [False, True])
def test_the_end_of_a_terminal_interrupts_a_run_that_nohup_does_not_protect(
    outlives: bool, tmp_path: Path
) -> None:
    """SIGHUP is Ctrl-C: what was measured is reported, exit code 130. Ignored from the start, it stays ignored."""
    program = [*(["nohup"] if outlives else []), *COMMAND]
    process = subprocess.Popen(
        [*program, "run", *LOAD, "--requests", "150" if outlives else "100000", "--out", str(tmp_path)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=_heeding_hangups,
    )  # fmt: skip
    folder = wait_for_answers(process, tmp_path, 3)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=200)
    summary = json.loads((folder / "summary.json").read_bytes())
    assert summary["run"]["interrupted"] is not outlives
    assert (process.returncode == 130) is not outlives


def test_a_signal_to_all_processes_of_a_run_ends_no_worker_before_its_time(tmp_path: Path) -> None:
    """A service that is stopped sends SIGTERM to each: workers and server leave the end of the run to the command, and what is
    in flight comes to its end."""
    process = start("run", *LOAD, "--requests", "100000", out=tmp_path)
    folder = wait_for_answers(process, tmp_path, 3)
    for pid in (*(one.pid for one in psutil.Process(process.pid).children()), process.pid):
        os.kill(pid, signal.SIGTERM)
    process.communicate(timeout=200)
    assert process.returncode == 130
    summary = json.loads((folder / "summary.json").read_bytes())
    assert not summary["instrument"]["dead_workers"]
    assert not summary["requests"]["by_error"]


def test_a_recovered_run_knows_of_a_worker_that_died_before(tmp_path: Path) -> None:
    """The death is written down when it happens: the command's own end comes later."""
    process = start("run", *LOAD, "--requests", "100000", "--workers", "2", out=tmp_path)
    folder = wait_for_answers(process, tmp_path, 3, workers=2)
    os.kill(workers_of(process)[1], signal.SIGKILL)
    for _ in range(1200):
        if json.loads((folder / "run.json").read_bytes())["dead_workers"]:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    process.kill()
    process.communicate(timeout=60)
    assert finish("recover", str(folder))[0] == 130
    summary = json.loads((folder / "summary.json").read_bytes())
    assert [one["worker"] for one in summary["instrument"]["dead_workers"]] == [1]
    assert summary["verdict"]["status"] == "INVALID"


def test_a_machine_that_stands_still_for_a_while_makes_no_valid_run(tmp_path: Path) -> None:
    """All processes are stopped and continued, as when a container is frozen: clocks go on, and nothing else does."""
    process = start("run", *LOAD, "--requests", "300", out=tmp_path)
    folder = wait_for_answers(process, tmp_path, 100)
    every = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for one in every:
        one.suspend()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    for one in every:
        one.resume()
    process.communicate(timeout=200)
    assert process.returncode == 3
    summary = json.loads((folder / "summary.json").read_bytes())
    assert summary["requests"]["sent"] == 300
    assert {one["code"] for one in summary["verdict"]["reasons"]} & {"lateness", "receive_lag"}


def test_a_network_that_ends_under_load_loses_no_answer_from_before(tmp_path: Path) -> None:
    """In a network of its own whose interface goes down: requests fail in words from then on, and the run comes to its end."""
    words = [*LOAD, "--requests", "300", "--timeout", "2", "--out", str(tmp_path)]
    program = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *COMMAND]
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    process = subprocess.Popen(
        [*program, "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = wait_for_answers(process, tmp_path, 50)
    subprocess.check_call(
        ["nsenter", "-t", str(process.pid), "-n", "ip", "link", "set", "lo", "down"], timeout=60
    )
    _, stderr = process.communicate(timeout=200)
    assert process.returncode == 3, stderr
    summary = json.loads((folder / "summary.json").read_bytes())
    assert summary["requests"]["sent"] == 300
    assert summary["requests"]["completed"] >= 50
    assert summary["verdict"]["status"] == "INVALID"
    assert "timeout" in _reason(summary, "error_rate")


def test_clocks_that_count_from_elsewhere_change_nothing(tmp_path: Path) -> None:
    """In a time namespace, where the machine seems to have been up for months longer."""
    program = ["unshare", "--time", "--monotonic", "10000000", "--boottime", "10000000", "--fork"]
    if subprocess.run([*program, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no time namespace can be made here")
    words = [*LOAD, "--requests", "100", "--out", str(tmp_path)]
    done = subprocess.run(
        [*program, *COMMAND, "run", *words], capture_output=True, text=True, timeout=300, check=False
    )
    summary = json.loads((only(tmp_path) / "summary.json").read_bytes())
    assert summary["requests"]["completed"] == 100, done.stderr
    (clock,) = (one for one in summary["verdict"]["checks"] if one["code"] == "clock_step")
    assert clock["status"] in ("pass", "na")


@pytest.mark.parametrize("mib", [256, 340, 600])
def test_a_machine_without_memory_says_so_and_loses_nothing(mib: int, tmp_path: Path) -> None:
    """Address space is limited, so that the run ends before, while or after it measures: always in words, and what it has
    measured is recovered with more of it."""
    most = mib << 20
    done = _limited(
        *LOAD,
        *("--requests", "100", "--out", str(tmp_path)),
        before=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )
    assert done.returncode == 71, done.stderr
    assert SHORTAGES["memory"][0] in done.stderr or SHORTAGES["processes"][0] in done.stderr
    assert "bug" not in done.stderr
    for folder in tmp_path.iterdir():
        assert f"inferometer recover {folder}" in done.stderr
        assert finish("recover", str(folder))[0] in (0, 3, 4)
        assert json.loads((folder / "summary.json").read_bytes())["requests"]["completed"] == 100
