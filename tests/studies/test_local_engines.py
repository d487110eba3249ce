"""Engines on this machine: those that compete are named."""

from __future__ import annotations

from inferometer.studies.detection import Local
from inferometer.studies.local_engines import duplicate_instances
from inferometer.telemetry.processes import Listener, Listening, Process

SERVE = Process(10, 1, "ollama", ("/usr/bin/ollama", "serve"), 0.0, 0.0)
RUNNER = Process(11, 10, "ollama", ("/usr/bin/ollama", "runner", "--port", "40001"), 0.0, 0.0)
SECOND = Process(40, 1, "ollama", ("ollama", "serve"), 0.0, 0.0)
PORTS = (Listener("127.0.0.1", 11434, 10), Listener("127.0.0.1", 40001, 11))
ONE = Local((SERVE, RUNNER), Listening(PORTS, complete=True))
TWO = Local((SERVE, RUNNER, SECOND), Listening((*PORTS, Listener("127.0.0.1", 11435, 40)), complete=True))


def test_only_a_measured_engine_that_runs_twice_is_named() -> None:
    """With its processes and ports; a runner is part of its engine, and an engine that is not measured is nobody's matter."""
    assert list(duplicate_instances(ONE, {"ollama"})) == []
    assert list(duplicate_instances(TWO, {"vllm"})) == []
    (remark,) = duplicate_instances(TWO, {"ollama", "vllm"})
    assert remark.code == "duplicate_processes"
    assert remark.facts == {
        "engine": "ollama",
        "number": 2,
        "processes": "10 (port 11434, 40001), 40 (port 11435)",
    }
