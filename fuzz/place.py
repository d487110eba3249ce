"""Where an input lies as a file, for readers that want one: a folder of this process's own, gone when it ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="inferometer-fuzz-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def lain(name: str, data: bytes) -> Path:
    """The file of that name, with these bytes."""
    path = FOLDER / name
    path.write_bytes(data)
    return path
