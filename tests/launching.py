"""Launchers under test: stand-ins as load hosts, and waiting for what they write or how they end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import load_host_stand_in

from inferometer.cluster.launch.interface import Join, Launcher

TOKEN = "Secret-Token_0123456789"
JOIN = Join("127.0.0.1:7070", TOKEN)
PATIENCE_S = 60.0


def stand_in(folder: Path, *options: str) -> list[str]:
    return [sys.executable, load_host_stand_in.__file__, str(folder), *options]


@contextmanager
def launched(launcher: Launcher, join: Join = JOIN) -> Iterator[Launcher]:
    try:
        launcher.launch(join)
        yield launcher
    finally:
        launcher.close()


def facts(folder: Path, name: str, member: str = "pid") -> dict[str, Any]:
    """What a stand-in wrote, once it has, with this member."""
    for _ in range(int(PATIENCE_S / 0.02)):
        path = folder / f"{name}.json"
        if path.exists() and member in (known := json.loads(path.read_text())):
            return dict(known)
        time.sleep(0.02)
    raise AssertionError(f"{name} never wrote {member}")


def failures(launcher: Launcher, count: int) -> list[str]:
    """What is said once so many hosts have failed."""
    for _ in range(int(PATIENCE_S / 0.02)):
        if len(found := launcher.failures()) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{launcher.failures()}")


def once(folder: Path, count: int) -> dict[str, dict[str, Any]]:
    """What stand-ins wrote, by name, once there are so many of them."""
    for _ in range(int(PATIENCE_S / 0.1)):
        names = [path.stem for path in folder.glob("*.json")]
        if len(names) >= count:
            return {name: facts(folder, name) for name in names}
        time.sleep(0.1)
    raise AssertionError(f"{count} hosts were not started")
