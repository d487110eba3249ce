"""The real engines as fixtures: one server of each for the session, started when a test first asks for it.

Without `.engines/` the tests of an engine are skipped, and say so; with `INFEROMETER_REQUIRE_ENGINES=1`, as
in CI, they fail instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from scripts.engines.launch import (  # noqa: E402 - the set-up's own code is found through the line above
    EngineMissingError,
    RunningEngine,
    log_tail,
    running,
)

Request = pytest.FixtureRequest
TempPathFactory = pytest.TempPathFactory
LOG_KEY = pytest.StashKey[dict[str, Path]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder with `engine`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the end of the server's log beside a failed test."""
    report = yield
    if call.when == "call" and report.failed:
        callspec = getattr(item, "callspec", None)
        given = () if callspec is None else callspec.params.values()
        used = {*getattr(item, "fixturenames", ()), *(one for one in given if isinstance(one, str))}
        for name, log in item.config.stash.get(LOG_KEY, {}).items():
            if name in used:
                report.sections.append((f"end of the log of {name}", log_tail(log)))
    return report


def serve(name: str, request: Request, factory: TempPathFactory) -> Iterator[RunningEngine]:
    """Run one engine for the session; skip where it is not set up, or fail where that is demanded."""
    log = factory.mktemp("engine") / f"{name}.log"
    request.config.stash.setdefault(LOG_KEY, {})[name] = log
    try:
        with running(name, log) as engine:
            yield engine
    except EngineMissingError as missing:
        if os.environ.get("INFEROMETER_REQUIRE_ENGINES") == "1":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def mlx(request: Request, tmp_path_factory: TempPathFactory) -> Iterator[RunningEngine]:
    """mlx-lm's server."""
    yield from serve("mlx", request, tmp_path_factory)


@pytest.fixture(scope="session")
def vllm(request: Request, tmp_path_factory: TempPathFactory) -> Iterator[RunningEngine]:
    """vLLM on the CPU."""
    yield from serve("vllm", request, tmp_path_factory)


@pytest.fixture(scope="session")
def vllm_grpc(request: Request, tmp_path_factory: TempPathFactory) -> Iterator[RunningEngine]:
    """vLLM on the CPU, by its gRPC service alone."""
    yield from serve("vllm-grpc", request, tmp_path_factory)


@pytest.fixture(scope="session")
def llamacpp(request: Request, tmp_path_factory: TempPathFactory) -> Iterator[RunningEngine]:
    """llama.cpp's server."""
    yield from serve("llamacpp", request, tmp_path_factory)


@pytest.fixture(scope="session", params=["mlx", "llamacpp", "vllm"])
def engine(request: Request) -> RunningEngine:
    """Each engine in turn."""
    running_one: RunningEngine = request.getfixturevalue(request.param)
    return running_one
