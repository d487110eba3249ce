"""Start one of the installed engines on a free loopback port, wait until it serves, and end it.

| engine    | model name to ask for                                          | ready in (2 cores) |
| --------- | -------------------------------------------------------------- | ------------------ |
| mlx       | `default_model`; any other name is looked for on a model hub   | 3-5 s              |
| vllm      | `tiny`; any other name is answered with 404                    | 30-90 s            |
| vllm-grpc | `tiny`; requests name no model                                 | 30-90 s            |
| llamacpp  | `tiny`; any other name is served just the same                 | 1 s                |
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from scripts.engines.places import ENGINES, GGUF, LLAMA_SERVER, MODEL

CONTEXT = 8192
SERVING = b"\x08\x01"
"""A HealthCheckResponse that says so."""
LOG_TAIL = 6000  # characters of a server's log that a failure shows


class EngineMissingError(Exception):
    """The engine or the model is not set up under `.engines/`."""


class EngineFailedError(Exception):
    """The engine ended, or was not ready in time; the message carries the end of its log."""


@dataclass(frozen=True)
class RunningEngine:
    """A server that answers: its base `url` without a trailing slash, and the `model` name to ask it for.

    `tokenizer_dir` holds that model's `tokenizer.json` and `tokenizer_config.json`; `log` is its output.
    """

    name: str
    url: str
    model: str
    tokenizer_dir: Path
    log: Path


@dataclass(frozen=True)
class Recipe:
    """How an engine is started: arguments for a port, the path that tells readiness, longest wait in s."""

    program: Path
    arguments: Callable[[int], list[str]]
    model: str
    health: str
    patience: float
    environment: tuple[tuple[str, str], ...] = ()


def _mlx(port: int) -> list[str]:
    return ["--model", str(MODEL), "--host", "127.0.0.1", "--port", str(port)]


def _vllm(port: int) -> list[str]:
    address = ["--host", "127.0.0.1", "--port", str(port)]
    flags = [
        "--served-model-name",
        "tiny",
        "--enforce-eager",
        "--enable-prompt-tokens-details",
        "--dtype",
        "float32",
    ]
    return ["serve", str(MODEL), *address, *flags, "--max-model-len", str(CONTEXT)]


def _llamacpp(port: int) -> list[str]:
    address = ["--host", "127.0.0.1", "--port", str(port)]
    flags = [
        "--alias",
        "tiny",
        "--metrics",
        "--slots",
        "--threads",
        str(LLAMACPP_THREADS),
        "--parallel",
        str(LLAMACPP_SLOTS),
    ]
    return ["--model", str(GGUF), *address, *flags, "--ctx-size", str(LLAMACPP_SLOTS * CONTEXT)]


SIGNALS = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 15.0))
LLAMACPP_SLOTS = 4
LLAMACPP_THREADS = max(1, (os.cpu_count() or 2) - 1)
"""They poll while they wait: with one a core, the client reads late."""
OFFLINE = (("HF_HUB_OFFLINE", "1"), ("HF_HOME", str(ENGINES / "hub")))
VLLM_SETTINGS = (
    ("VLLM_TARGET_DEVICE", "cpu"),
    ("VLLM_CPU_KVCACHE_SPACE", "2"),
    ("VLLM_NO_USAGE_STATS", "1"),
)
RECIPES = {
    "mlx": Recipe(ENGINES / "mlx/bin/mlx_lm.server", _mlx, "default_model", "/health", 120, OFFLINE),
    "vllm": Recipe(ENGINES / "vllm/bin/vllm", _vllm, "tiny", "/health", 300, OFFLINE + VLLM_SETTINGS),
    "vllm-grpc": Recipe(
        ENGINES / "vllm/bin/vllm",
        lambda port: [*_vllm(port), "--grpc"],
        "tiny",
        "/grpc.health.v1.Health/Check",
        300,
        OFFLINE + VLLM_SETTINGS,
    ),
    "llamacpp": Recipe(LLAMA_SERVER, _llamacpp, "tiny", "/health", 60),
}


def free_port() -> int:
    """A loopback port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def log_tail(log: Path) -> str:
    """The end of a server's log."""
    return log.read_text(errors="replace")[-LOG_TAIL:] if log.exists() else ""


def _answers(url: str, health: str) -> bool:
    """Whether it is well, as it says by HTTP or by gRPC's own service."""
    if health.startswith("/grpc."):
        with grpc.insecure_channel(url.removeprefix("http://")) as channel:
            try:
                return bool(channel.unary_unary(health)(b"", timeout=5) == SERVING)
            except grpc.RpcError:
                return False
    url += health
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wait_until_ready(process: subprocess.Popen[bytes], engine: RunningEngine, recipe: Recipe) -> None:
    """Until it says that it is well. Raises EngineFailedError with the end of its log."""
    deadline = time.monotonic() + recipe.patience
    while not _answers(engine.url, recipe.health):
        if process.poll() is not None:
            why = f"ended with status {process.returncode} before it was ready"
        elif time.monotonic() > deadline:
            why = f"was not ready after {recipe.patience:.0f} s"
        else:
            time.sleep(0.2)
            continue
        raise EngineFailedError(f"{engine.name} {why}; the end of its log:\n{log_tail(engine.log)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and its workers: the process group it leads, politely first."""
    for number, patience in SIGNALS:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        # The leader is gone; the next round's signal meets only workers that outlived it.


def end_group(leader: int) -> None:
    """The same of a process group that this program did not start."""
    for number, patience in SIGNALS:
        deadline = time.monotonic() + patience
        try:
            os.killpg(leader, number)
            while time.monotonic() < deadline:
                os.killpg(leader, 0)
                time.sleep(0.1)
        except ProcessLookupError:
            return


@contextmanager
def running(name: str, log: Path, extra: tuple[str, ...] = ()) -> Iterator[RunningEngine]:
    """Run the engine `name`, with `extra` arguments, while a `with` block lasts; its output goes to `log`.

    Errors: EngineMissingError when it is not set up, EngineFailedError when it does not come up.
    """
    recipe = RECIPES[name]
    if not recipe.program.is_file() or not GGUF.is_file():
        raise EngineMissingError(f"{name} is not set up under .engines/: run `make engines`")
    port = free_port()
    engine = RunningEngine(name, f"http://127.0.0.1:{port}", recipe.model, MODEL, log)
    # mlx-lm's /v1/models lists the hub's cache, and fails where there is none.
    (ENGINES / "hub" / "hub").mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(recipe.program), *recipe.arguments(port), *extra],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict(recipe.environment)},
            start_new_session=True,
        )
    try:
        wait_until_ready(process, engine, recipe)
        yield engine
    finally:
        _end(process)
