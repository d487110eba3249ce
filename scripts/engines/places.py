"""Where the real engines live, and the stamps that say a step is done.

Everything is under `.engines/` at the root of the checkout, which git ignores:

| path                    | holds                                                     |
| ----------------------- | --------------------------------------------------------- |
| `uv/`                   | the installer, itself installed with pip                  |
| `tools/`                | environment that makes the model and builds llama.cpp     |
| `mlx/`, `vllm/`         | one environment per Python engine                         |
| `llamacpp/llama-server` | the built server                                          |
| `model/`, `model.gguf`  | the tiny random model, in both formats                    |
| `stamps/`               | one file per finished step, holding the key of its inputs |
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENGINES = ROOT / ".engines"
CONSTRAINTS = HERE / "constraints"
STAMPS = ENGINES / "stamps"
MODEL = ENGINES / "model"
GGUF = ENGINES / "model.gguf"
LLAMA_SERVER = ENGINES / "llamacpp" / "llama-server"


class SetupError(Exception):
    """One step could not be done; the message says why in words for the person who ran it."""


def key_of(*inputs: Path | str) -> str:
    """Digest of what a step depends on: texts of the files given, words, Python's version and the machine."""
    digest = hashlib.sha256()
    words = [sys.version, platform.machine(), sys.platform]
    for item in inputs:
        words.append(item.read_text() if isinstance(item, Path) else item)
    for word in words:
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()


def is_stamped(step: str, key: str) -> bool:
    """Whether the step was finished with these very inputs."""
    stamp = STAMPS / step
    return stamp.is_file() and stamp.read_text() == key


def write_stamp(step: str, key: str) -> None:
    """Record that the step is finished; written last, so that a broken-off step is done again."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / step).write_text(key)


def run(command: list[str | Path], env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command and return its standard output; SetupError carries the end of what it said."""
    done = subprocess.run(
        [str(word) for word in command], env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise SetupError(f"'{Path(command[0]).name}' ended with status {done.returncode}:\n{tail}")
    return done.stdout
