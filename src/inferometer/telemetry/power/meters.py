"""Meters by name.

| spec                                | meter                                        | scopes                              |
| ----------------------------------- | -------------------------------------------- | ----------------------------------- |
| `nvml`, `nvml:0,2`                  | NVIDIA GPUs, all or those numbers            | accelerator                         |
| `amdsmi`, `amdsmi:0,2`              | AMD GPUs, all or those numbers               | accelerator                         |
| `rapl`                              | processor packages and their memory          | package, memory, machine, other     |
| `ioreport`                          | Apple's chips, without privilege             | accelerator, memory, other          |
| `powermetrics`                      | Apple's chips, as root                       | package, accelerator, other         |
| `http://...`, `https://...`         | a wall meter, see http.py                    | machine                             |
| `command:...`                       | a command that prints watts, see command.py  | machine                             |
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from inferometer.addresses import shown
from inferometer.errors import PlanError, Problem
from inferometer.telemetry.power import rapl
from inferometer.telemetry.power.amdsmi import AmdSmiMeter
from inferometer.telemetry.power.command import CommandMeter
from inferometer.telemetry.power.http import HttpMeter
from inferometer.telemetry.power.ioreport import IOReportMeter
from inferometer.telemetry.power.nvml import NvmlMeter
from inferometer.telemetry.power.powermetrics import PowermetricsMeter
from inferometer.telemetry.power.rapl import RaplMeter
from inferometer.telemetry.power.readings import Meter

KNOWN = "nvml, amdsmi, rapl, ioreport, powermetrics, http://..., https://... or command:..."
_NUMBERS = re.compile(r"\d{1,3}(,\d{1,3})*")


def open_meter(spec: str, where: str = "--power") -> Meter:
    """The meter of this name. `where`: the flag or key that names it, for PlanError. Raises PlanError for what names none,
    MeterFailed if this machine does not have it."""
    if spec.startswith(("http://", "https://")):
        try:
            return HttpMeter(spec)
        except ValueError as cause:
            raise _problem(where, f"{shown(spec)}: {cause}") from None
    kind, colon, rest = spec.partition(":")
    if kind == "command" and colon:
        return CommandMeter(_words(rest, where))
    if kind in ("nvml", "amdsmi"):
        return (NvmlMeter if kind == "nvml" else AmdSmiMeter)(_numbers(rest, where) if colon else None)
    plain: dict[str, Callable[[], Meter]] = {
        "rapl": RaplMeter,
        "ioreport": IOReportMeter,
        "powermetrics": PowermetricsMeter,
    }
    if colon or kind not in plain:
        raise _problem(where, f"{shown(spec)!r} is no meter: give {KNOWN}")
    return plain[kind]()


def available(root: Path = Path("/"), system: str | None = None) -> tuple[str, ...]:
    """The meters that this machine seems to have, by cheap signs and without opening one. `root`: the folder that holds `dev`
    and `sys`; `system`: as platform.system() names it, None: this one."""
    if (system or platform.system()) == "Darwin":
        return ("ioreport", "powermetrics") if shutil.which("powermetrics") else ("ioreport",)
    found = []
    if (root / "dev/nvidiactl").exists() and _installed("pynvml"):
        found.append("nvml")
    if (root / "dev/kfd").exists() and _installed("amdsmi"):
        found.append("amdsmi")
    counters = [folder / "energy_uj" for folder in rapl.zones(root / "sys/class/powercap")]
    if counters and all(os.access(counter, os.R_OK) for counter in counters):
        found.append("rapl")
    return tuple(found)


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _words(text: str, where: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as cause:
        raise _problem(where, f"the command cannot be split into words: {cause}") from None
    if not words:
        raise _problem(where, "command: needs a program and its arguments")
    return words


def _numbers(text: str, where: str) -> tuple[int, ...]:
    if not _NUMBERS.fullmatch(text):
        raise _problem(where, f"{text[:40]!r} are no numbers of GPUs: give them as in nvml:0,2")
    return tuple(dict.fromkeys(int(number) for number in text.split(",")))


def _problem(where: str, message: str) -> PlanError:
    return PlanError([Problem(where, message)])
