"""The gate before a benchmark, its cool-downs, and whose machine they read."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies.virtual_bench import (
    PlantedMachine,
    VirtualClock,
    VirtualEngine,
    benched,
    codes,
)

from inferometer.documents.bench import Remark
from inferometer.studies.bench_gate import cool_down, gate


@pytest.mark.parametrize(
    ("machine", "code"),
    [
        (PlantedMachine(["critical"]), "pressure_critical"),
        (PlantedMachine(limit=79.9), "speed_limited"),
    ],
)
def test_the_gate_refuses_unless_it_is_overridden(machine: PlantedMachine, code: str, tmp_path: Path) -> None:
    """Nothing is sent then; overridden, the result carries both remarks."""
    engine = VirtualEngine("a")
    done = benched(tmp_path / "b", engine, machine=machine)
    assert (engine.steps, done.exit_code) == ([], 3)
    assert done.document.engines[0].ended == "refused"
    forced = benched(tmp_path / "c", engine, machine=machine, force=True)
    assert forced.document.engines[0].ended == "measured"
    assert {code, "gate_overridden"} <= codes(forced.document.engines[0])


def test_what_the_gate_cannot_read_is_said_to_be_unread() -> None:
    """A gate that did not look must not look passed."""
    looked = gate(PlantedMachine([None], None))
    assert not looked.refuses
    assert looked.remarks == (Remark("gate_unread", {"what": "memory pressure and speed limit"}),)
    assert gate(PlantedMachine(limit=80.0)).remarks == ()


@pytest.mark.parametrize(
    ("pressures", "seconds", "code"),
    [
        (["normal"], 5, None),
        ([None], 5, None),
        (["warning", "warning", "warning", "normal"], 8, None),
        (["warning"], 35, "pressure_remains"),
    ],
)
def test_the_cool_down_waits_for_memory_and_then_five_seconds(
    pressures: list[str | None], seconds: int, code: str | None
) -> None:
    """Thirty seconds at most for normal pressure; five in any case."""
    clock = VirtualClock()
    remark = cool_down(PlantedMachine(pressures), clock)
    assert clock.at_ns == seconds * 10**9
    assert (None if remark is None else remark.code) == code


def test_throttling_during_a_run_is_a_warning_and_in_every_sample(tmp_path: Path) -> None:
    """From any limit below 100 % on."""
    done = benched(tmp_path / "b", VirtualEngine("a"), machine=PlantedMachine(limit=95.0))
    (only,) = done.document.engines
    assert "throttled" in codes(only)
    assert only.metadata.thermal_speed_limit == 95.0


def test_an_engine_elsewhere_is_not_judged_by_the_clients_machine_without_a_word(tmp_path: Path) -> None:
    """The gate and the warning of throttling read the client's, which has to be fit too; both say so, and only then."""
    machine = PlantedMachine(limit=95.0)
    far, near = VirtualEngine("a", url="http://10.1.2.3:8000"), VirtualEngine("b", url="http://127.0.0.1:1")
    there, here = benched(tmp_path / "b", far, near, machine=machine).document.engines
    assert {"gate_of_client", "client_throttled"} <= codes(there)
    assert "throttled" not in codes(there)
    assert "throttled" in codes(here)
    assert not {"gate_of_client", "client_throttled"} & codes(here)
    assert gate(PlantedMachine(["critical"]), elsewhere=True).refuses
