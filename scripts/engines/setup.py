"""Set up the real engines the tests run against: `python -m scripts.engines.setup [mlx] [vllm] [llamacpp]`.

Plain Python is all it needs (and a C++ compiler for llama.cpp). Every step is done once and skipped from then
on; an engine that cannot be set up does not keep the others from being tried, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import fcntl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__" and __package__ is None:  # called by its path, not with -m
    sys.path.insert(0, str(ROOT))

from scripts.engines.environments import MLX, TOOLS, VLLM, install  # noqa: E402 - the path is set just above
from scripts.engines.llamacpp import build  # noqa: E402 - the path is set just above
from scripts.engines.places import (  # noqa: E402 - the path is set just above
    ENGINES,
    GGUF,
    HERE,
    LLAMA_SERVER,
    MODEL,
    SetupError,
    is_stamped,
    key_of,
    run,
    write_stamp,
)


def make_model() -> None:
    """Make the tiny model in both formats, unless its stamp says it stands."""
    recipe = HERE / "tiny_model.py"
    key = key_of(recipe, TOOLS.constraints)
    if is_stamped("model", key) and GGUF.is_file():
        return
    install(TOOLS)
    run([TOOLS.path / "bin" / "python", recipe, MODEL, GGUF])
    write_stamp("model", key)


STEPS: dict[str, tuple[Callable[[], None], Path]] = {
    "model": (make_model, MODEL),
    "mlx": (lambda: install(MLX), MLX.path),
    "vllm": (lambda: install(VLLM), VLLM.path),
    "llamacpp": (build, LLAMA_SERVER.parent),
}


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the directory's lock, so that two set-ups at once do not install over each other."""
    ENGINES.mkdir(exist_ok=True)
    with (ENGINES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def megabytes(path: Path) -> int:
    """Disk a directory takes, in MB of 10^6 bytes."""
    done = subprocess.run(["du", "-sk", str(path)], capture_output=True, text=True, check=False)
    return int(done.stdout.split()[0]) * 1024 // 1_000_000 if done.returncode == 0 else 0


def attempt(name: str) -> bool:
    """Do one step and say how it went; False when it could not be done."""
    action, place = STEPS[name]
    begun = time.monotonic()
    try:
        action()
    except (SetupError, OSError) as error:
        print(f"{name}: cannot be set up. {error}", file=sys.stderr, flush=True)
        return False
    taken = time.monotonic() - begun
    how = "already there" if taken < 1 else f"set up in {taken:.0f} s, {megabytes(place)} MB"
    print(f"{name}: {how}", flush=True)
    return True


def main() -> int:
    """Set up what was asked for, the model first; 0 when all of it stands."""
    engines = [name for name in STEPS if name != "model"]
    parser = argparse.ArgumentParser(description="Set up real engines for the tests, under .engines/.")
    parser.add_argument("engines", nargs="*", metavar="engine", help=f"of {', '.join(engines)}; default: all")
    wanted: list[str] = parser.parse_args().engines or engines
    if unknown := set(wanted) - set(engines):
        parser.error(f"no such engine: {', '.join(sorted(unknown))}; there are {', '.join(engines)}")
    with only_one():
        done = [attempt(name) for name in ("model", *wanted)]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
