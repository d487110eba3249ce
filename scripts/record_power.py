"""Record what NVML says of this machine's GPUs, in the form of tests/vectors/power/nvml.json, and hold the energy counter
against the integrated power.

    python -m scripts.record_power FILE [--seconds 30] [--every 1.0]

Start a load beside it to record one. For each GPU with a counter it prints both energies and how far they are apart. Names of
models are recorded, serial numbers are not: no function that gives one is called.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from inferometer.measure.energy_figure import energy_figure
from inferometer.measure.power_series import power_series
from inferometer.telemetry import nvml_library
from inferometer.telemetry.nvidia import NvidiaAccelerators
from inferometer.telemetry.nvml_library import Nvml
from inferometer.telemetry.power.nvml import NvmlMeter
from inferometer.telemetry.power.readings import MeterFailed, PowerReading


class Recorder:
    """A library that keeps what each function returns, for each GPU: `moment` is the current one's, by GPU and call."""

    def __init__(self, library: Nvml) -> None:
        self._library = library
        self._numbers: dict[int, int] = {}
        self._handles: list[object] = []
        self.moment: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)
        if not name.startswith("nvmlDeviceGet") or name == "nvmlDeviceGetCount":
            return function
        if name == "nvmlDeviceGetHandleByIndex":
            return self._handle
        return self._kept(name, function)

    def _handle(self, index: int) -> int:
        """A GPU's number stands for its handle."""
        while len(self._handles) <= index:
            self._handles.append(self._library.nvmlDeviceGetHandleByIndex(len(self._handles)))
        return index

    def _kept(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(number: int, *arguments: object) -> Any:
            while len(self.moment) <= number:
                self.moment.append({})
            key = " ".join([name, *map(str, arguments)])
            try:
                found = function(self._handles[number], *arguments)
            except self._library.NVMLError as failure:
                self.moment[number][key] = {"error": int(getattr(failure, "value", 999))}
                raise
            self.moment[number][key] = plain(found)
            return found

        return call


def plain(found: Any) -> Any:
    """A number, a text, or the members of one of NVML's structures."""
    if isinstance(found, bytes):
        return found.decode("utf-8", "replace")
    fields = ("used", "total", "gpu", "memory")
    members = {field: getattr(found, field) for field in fields if hasattr(found, field)}
    return members or found


def record(
    library: Nvml, moments: int, pause: Callable[[], None], clock_ns: Callable[[], int]
) -> tuple[list[list[dict[str, Any]]], list[tuple[int, Sequence[PowerReading]]]]:
    """What the library says at so many moments, and the readings with their instants. Raises MeterFailed."""
    recorder = Recorder(library)
    meter, states = NvmlMeter(library=cast("Nvml", recorder)), NvidiaAccelerators(cast("Nvml", recorder))
    kept: list[list[dict[str, Any]]] = []
    readings: list[tuple[int, Sequence[PowerReading]]] = []
    try:
        for number in range(moments):
            if number:
                pause()
            recorder.moment = []
            readings.append((clock_ns(), meter.read()))
            states.read()
            kept.append(recorder.moment)
    finally:
        meter.close()
        states.close()
    return kept, readings


def agreement(readings: Sequence[tuple[int, Sequence[PowerReading]]]) -> list[str]:
    """A line for each GPU: both energies of the whole recording, and their difference."""
    lines = []
    begin, end = readings[0][0], readings[-1][0]
    for series in power_series(readings):
        found = energy_figure([series], begin, end)
        if found.method == "counter" and found.joules and found.other_joules is not None:
            apart = 100 * (found.other_joules / found.joules - 1)
            lines.append(
                f"GPU {series.device}: counter {found.joules:.1f} J, integrated power {found.other_joules:.1f} J,"
                f" {apart:+.2f} %; {found.mean_w:.1f} W over {found.duration_s:.1f} s"
            )
        else:
            lines.append(f"GPU {series.device}: {found.method or found.reason}, {found.joules} J")
    return lines


def main(argv: Sequence[str]) -> int:
    """The exit code: 1 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m scripts.record_power")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=1.0)
    given = parser.parse_args(argv)
    try:
        kept, readings = record(
            nvml_library.load(),
            max(2, round(given.seconds / given.every) + 1),
            lambda: time.sleep(given.every),
            time.monotonic_ns,
        )
    except MeterFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    source = f"Recorded by scripts/record_power.py, {given.every:g} s apart."
    given.file.write_text(json.dumps({"source": source, "moments": kept}, indent=1) + "\n")
    print("\n".join(agreement(readings)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
