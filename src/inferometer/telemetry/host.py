"""The machine this runs on: what a reader needs to set a number in its place. No host name, no user, no path."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

import msgspec
import psutil

from inferometer import __version__

HOT_PATH = ("httptools", "msgspec", "pyarrow")


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The client's machine. `hostname` is never filled in."""

    os: str | None
    kernel: str | None
    machine: str | None
    cpu: str | None
    cores: int | None
    memory_bytes: int | None
    python: str | None
    inferometer: str | None
    hostname: str | None


def environment() -> Environment:
    """Operating system, kernel, processor, memory and versions. Memory in bytes."""
    return Environment(
        os=_distribution(),
        kernel=platform.release(),
        machine=platform.machine(),
        cpu=_processor(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        python=platform.python_version(),
        inferometer=__version__,
        hostname=None,
    )


def hot_path() -> dict[str, str]:
    """Versions of the packages that a token passes through on its way to the record."""
    return {name: metadata.version(name) for name in HOT_PATH}


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return f"{platform.system()} {platform.mac_ver()[0]}".strip()


def _processor() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def usable_cores() -> int:
    """Cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
