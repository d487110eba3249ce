"""Keep one of the installed engines running on a port, in the background, until it is started again or stopped.

    python -m scripts.engines.serve vllm 8901 DIR [FLAG...]     start it, with further flags, in the place of the one before
    python -m scripts.engines.serve stop 8901 DIR

DIR keeps its process id and its log. What a plan's way to switch an engine is made of (docs/tests.md): an engine whose prefix
cache is a flag has to be started again. The engine keeps to the first half of the cores, so that who measures it has the rest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts.engines.launch import (
    RECIPES,
    EngineFailedError,
    EngineMissingError,
    RunningEngine,
    end_group,
    wait_until_ready,
)
from scripts.engines.places import ENGINES, GGUF, MODEL


def halves() -> tuple[set[int], set[int]]:
    """The cores of this machine: the engine's, and those of who measures it. Both are all, where there is only one."""
    cores = list(range(os.cpu_count() or 1))
    half = max(1, len(cores) // 2)
    return set(cores[:half]), set(cores[half:] or cores)


def stop(folder: Path) -> None:
    """End the engine that was started before, if there is one."""
    pid = folder / "engine.pid"
    if pid.exists():
        end_group(int(pid.read_text()))
        pid.unlink()


def start(name: str, port: int, folder: Path, flags: list[str]) -> None:
    """Start an engine and wait until it serves. Raises EngineMissingError, EngineFailedError."""
    recipe = RECIPES[name]
    if not recipe.program.is_file() or not GGUF.is_file():
        raise EngineMissingError(f"{name} is not set up under .engines/: run `make engines`")
    stop(folder)
    (ENGINES / "hub" / "hub").mkdir(parents=True, exist_ok=True)
    log = folder / "engine.log"
    cores = halves()[0]
    bound = {"VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, sorted(cores)))}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(recipe.program), *recipe.arguments(port), *flags],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict(recipe.environment), **bound},
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
    (folder / "engine.pid").write_text(str(process.pid))
    engine = RunningEngine(name, f"http://127.0.0.1:{port}", recipe.model, MODEL, log)
    try:
        wait_until_ready(process, engine, recipe)
    except EngineFailedError:
        stop(folder)
        raise


def main(argv: list[str]) -> int:
    """Start or stop; the exit code."""
    if len(argv) < 3 or argv[0] not in (*RECIPES, "stop"):
        sys.stderr.write(__doc__ or "")
        return 2
    name, port, folder, *flags = argv
    Path(folder).mkdir(parents=True, exist_ok=True)
    if name == "stop":
        stop(Path(folder))
        return 0
    try:
        start(name, int(port), Path(folder), flags)
    except (EngineMissingError, EngineFailedError) as why:
        sys.stderr.write(f"{why}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
