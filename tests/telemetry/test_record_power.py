"""The recorder of vectors: what it keeps plays back the same readings."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from power_play import Played, played_nvml

from inferometer.telemetry.nvidia import NvidiaAccelerators
from inferometer.telemetry.nvml_library import Nvml
from inferometer.telemetry.power.nvml import NvmlMeter
from scripts.record_power import agreement, main, record


def test_a_recording_plays_back_what_was_read() -> None:
    """Power, energy and state at every moment, errors included."""
    played, library = played_nvml()
    at = iter(range(0, 3_000_000_000, 1_000_000_000))

    def pause() -> None:
        played.moment += 1

    kept, readings = record(library, 3, pause, lambda: next(at))
    again = Played(kept)
    meter, states = NvmlMeter(library=cast("Nvml", again)), NvidiaAccelerators(cast("Nvml", again))
    played.moment = 0
    original = NvidiaAccelerators(library)
    for moment, (_, expected) in enumerate(readings):
        again.moment = played.moment = moment
        assert meter.read() == expected
        assert states.read() == original.read()
    first, second = agreement(readings)
    assert first.startswith("GPU 0: counter 1388.3 J, integrated power 1074.0 J, -22.64 %")
    assert second.startswith("GPU 1: power, ")


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has NVIDIA's driver")
def test_without_a_gpu_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1, with the remedy."""
    assert main([str(tmp_path / "vector.json")]) == 1
    assert "driver" in capsys.readouterr().err
    assert not (tmp_path / "vector.json").exists()
