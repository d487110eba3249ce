"""Recorded or documented readings behind the names that the vendors' libraries have, for whoever takes such a library."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from inferometer.telemetry.amdsmi_library import AmdSmi
from inferometer.telemetry.nvml_library import Nvml

FUNCTION_NOT_FOUND = 13
VECTORS = Path(__file__).parent.parent / "vectors" / "power"


def vector(name: str) -> Any:
    """One file of the vectors."""
    return json.loads((VECTORS / f"{name}.json").read_text())


class PlayedError(Exception):
    """An error with a library's number, under the names that NVML and AMD SMI give it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"error {number}")
        self.value = self.err_code = number


class _Named:
    """An enumeration: its members are their names."""

    def __getitem__(self, name: str) -> str:
        return name


class Played:
    """A library that plays `moments`: for each GPU the values by function and arguments. `moment`: which one is played now.
    `everywhere`: an error of every reading from now on. `stopped`: readings hang until it is set."""

    NVMLError = AmdSmiException = PlayedError
    AmdSmiMemoryType = AmdSmiClkType = AmdSmiTemperatureType = AmdSmiTemperatureMetric = _Named()

    def __init__(self, moments: list[list[dict[str, Any]]]) -> None:
        self.moments, self.moment, self.everywhere = moments, 0, 0
        self.stopped: threading.Event | None = None
        self.calls: list[str] = []

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 - NVML's name
        """See NVML."""
        return len(self.moments[0])

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802 - NVML's name
        """See NVML."""
        return index

    def amdsmi_get_processor_handles(self) -> list[int]:
        """See AMD SMI."""
        return list(range(len(self.moments[0])))

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        """See NVML."""
        self._enter("init")

    amdsmi_init = nvmlInit

    def nvmlShutdown(self) -> None:  # noqa: N802 - NVML's name
        """See NVML."""
        self._enter("shutdown")

    amdsmi_shut_down = nvmlShutdown

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if not function.startswith(("nvml", "amdsmi_")):
            raise AttributeError(function)

        def call(handle: int, *arguments: object) -> Any:
            self._enter(function)
            key = " ".join([function, *map(str, arguments)])
            found = self.moments[self.moment][handle].get(key, {"error": FUNCTION_NOT_FOUND})
            if isinstance(found, dict) and "error" in found:
                raise PlayedError(found["error"])
            fields = isinstance(found, dict) and function.startswith("nvml")
            return SimpleNamespace(**found) if fields else found

        return call

    def _enter(self, function: str) -> None:
        self.calls.append(function)
        if self.stopped is not None:
            self.stopped.wait(20)
        if self.everywhere:
            raise PlayedError(self.everywhere)


def played_nvml() -> tuple[Played, Nvml]:
    """The NVIDIA GPUs of the vectors, and the same as the library that is called."""
    played = Played(vector("nvml")["moments"])
    return played, cast("Nvml", played)


def played_amdsmi() -> tuple[Played, AmdSmi]:
    """The AMD GPUs of the vectors, and the same as the library that is called."""
    played = Played(vector("amdsmi")["moments"])
    return played, cast("AmdSmi", played)
