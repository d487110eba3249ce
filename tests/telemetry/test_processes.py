"""Engine processes: instances are counted by their first process, ports go to the engine that listens, and what is hidden is
not taken for absent."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil
import pytest

from inferometer.telemetry.processes import (
    EngineProcess,
    Listener,
    Listening,
    Process,
    duplicates,
    engine_of,
    engine_processes,
    family,
    listening,
    own_line,
    physical_footprint,
    process_of_port,
    processes,
)

PATTERNS = {"ollama": (r"\bollama\b",), "vllm": (r"vllm serve", r"vllm\.entrypoints")}
NOTHING = Listening((), complete=True)


def process(pid: int, line: str, parent: int = 1, *, own: bool = True) -> Process:
    return Process(pid, parent, line.split()[0], tuple(line.split()), 0.0, 0.0, own)


OLLAMA = (
    process(10, "/usr/bin/ollama serve"),
    process(11, "/usr/bin/ollama runner --port 40001", 10),
    process(20, "python -m vllm.entrypoints.openai.api_server"),
    process(21, "VLLM::EngineCore", 20),
    process(30, "nginx"),
)


def test_workers_of_an_engine_are_no_second_instance() -> None:
    """A process below another of the same engine is part of it, with its ports."""
    ports = Listening((Listener("127.0.0.1", 11434, 10), Listener("127.0.0.1", 40001, 11)), complete=True)
    found = engine_processes(PATTERNS, OLLAMA, ports)
    assert [(one.engine, one.process.pid, one.ports) for one in found] == [
        ("ollama", 10, (11434, 40001)),
        ("vllm", 20, ()),
    ]
    assert duplicates(found) == {}


def test_a_port_of_a_child_that_fits_no_pattern_is_its_engines() -> None:
    """vLLM's children rename themselves."""
    found = engine_processes(PATTERNS, OLLAMA, Listening((Listener("::", 8000, 21),), complete=True))
    assert found[1].ports == (8000,)


def test_two_instances_that_listen_are_duplicates() -> None:
    """The client of an engine, which listens on nothing, is none."""
    running = (*OLLAMA, process(40, "ollama serve"), process(41, "ollama run llama3"))
    ports = Listening((Listener("127.0.0.1", 11434, 10), Listener("127.0.0.1", 11435, 40)), complete=True)
    twice = duplicates(engine_processes(PATTERNS, running, ports))
    assert {key: [one.process.pid for one in several] for key, several in twice.items()} == {
        "ollama": [10, 40]
    }


def test_an_instance_whose_ports_are_hidden_counts() -> None:
    """Another user's process may listen: unknown is not no."""
    running = (OLLAMA[0], process(40, "ollama serve", own=False))
    hidden = Listening((Listener("0.0.0.0", 11434, 10), Listener("0.0.0.0", 11435, None)), complete=False)
    found = engine_processes(PATTERNS, running, hidden)
    assert [one.ports for one in found] == [(11434,), None]
    assert set(duplicates(found)) == {"ollama"}


def test_the_shell_that_started_us_is_no_engine() -> None:
    """It may name one."""
    running = (process(50, "bash -c ollama"), process(os.getpid(), "inferometer bench --engines ollama", 50))
    assert own_line(running) >= {50, os.getpid()}
    assert engine_processes(PATTERNS, running, NOTHING, own_line(running)) == ()


def test_a_circle_of_parents_ends() -> None:
    """Numbers are used again: a parent may be younger than its child."""
    running = (process(10, "ollama serve", 11), process(11, "ollama runner", 10))
    assert len(engine_processes(PATTERNS, running, NOTHING)) >= 1
    assert family(10, running) == (10, 11)


def test_the_family_is_everything_below() -> None:
    """Children and theirs, and no neighbour."""
    running = (*OLLAMA, process(22, "worker", 21))
    assert family(20, running) == (20, 21, 22)


def test_a_port_leads_to_its_process() -> None:
    """A socket that this process listens on is found, under this process, on loopback; a closed one is not."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        assert process_of_port(port, listening()) == os.getpid()
    assert process_of_port(port, Listening((Listener("192.0.2.1", port, 7),), complete=True)) is None


def test_this_process_is_among_the_processes() -> None:
    """With its command line, its parent and its time."""
    (found,) = [one for one in processes() if one.pid == os.getpid()]
    assert found.parent == os.getppid()
    assert found.command
    assert found.own
    assert found.cpu_s is not None


def test_the_footprint_is_the_kernels_sum(tmp_path: Path) -> None:
    """PSS and its share of swap, in bytes; None where the file is hidden."""
    folder = tmp_path / "proc" / "7"
    folder.mkdir(parents=True)
    (folder / "smaps_rollup").write_text(
        "Rss: 90 kB\nPss:      70 kB\nPss_Anon: 9 kB\nSwap: 8 kB\nSwapPss:   5 kB\n"
    )
    assert physical_footprint(7, tmp_path) == 75 * 1024
    assert physical_footprint(8, tmp_path) is None


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux")
def test_the_footprint_of_this_process_is_psutils() -> None:
    """An independent reader of the same kernel agrees within a tenth."""
    mine = physical_footprint(os.getpid())
    info = psutil.Process().memory_full_info()
    assert mine is not None
    assert abs(mine - info.pss) < 0.1 * info.pss


def test_the_first_pattern_that_fits_decides() -> None:
    """A command line can name two engines."""
    found = engine_processes(PATTERNS, (process(9, "vllm serve ollama"),), NOTHING)
    assert [one.engine for one in found] == ["ollama"]
    assert isinstance(found[0], EngineProcess)


def test_an_engine_is_looked_for_where_a_command_line_begins() -> None:
    """Law: what any user of the machine writes behind the first 4,096 characters takes no time and names no engine."""
    near, far = (process(9, f"{'x' * length} ollama serve") for length in (4000, 4096))
    assert engine_of(near, PATTERNS) == "ollama"
    assert engine_of(far, PATTERNS) is None
    assert len(process(9, "x" * 1_000_000).begins) == 4096
