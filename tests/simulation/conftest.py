"""A schedule of requests with bodies nobody reads, driven in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from inferometer.drive.share import Assignment, Share
from inferometer.engines.openai import CHAT
from inferometer.journal import schedule as schedules
from inferometer.journal.redact import Redactor
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.journal.seal import read_stream
from inferometer.journal.writer import Journal
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.openai import Ask
from inferometer.simulation.client import PERFECT, ClientModel
from inferometer.simulation.driver import LONGEST_NS, Driver, Server
from inferometer.simulation.generation import opener

Rows = list[dict[str, Any]]
Play = Callable[..., Rows]
SETTINGS = Settings(
    prefill_base_ns=1_000_000, prefill_per_token_ns=10_000, max_batch=8, token_budget=2048, jitter=0.1
)
FAR_NS = 10**15


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Drive requests of (prompt tokens, output tokens): in open loop at `due` (ns), else in `slots`. Gives the outcomes."""
    count = iter(range(1 << 30))

    def drive(
        lengths: list[tuple[int, int]],
        *,
        due: list[int] | None = None,
        slots: int = 1,
        duration_ns: int = 0,
        again: bool = False,
        settings: Settings = SETTINGS,
        timeout_ns: int = FAR_NS,
        drain_ns: int = FAR_NS,
        heard: Callable[[], int | None] = lambda: None,
        client: ClientModel = PERFECT,
        longest_ns: int = LONGEST_NS,
    ) -> Rows:
        here = tmp_path / str(next(count))
        here.mkdir()
        rows = (
            schedules.Scheduled(
                i, int(Phase.MEASURE), None if due is None else due[i], b"{}", -1, 0, prompt, prompt, output
            )
            for i, (prompt, output) in enumerate(lengths)
        )
        schedules.write(here / "requests.arrow", rows)
        share = Share(
            schedules.Schedule(here / "requests.arrow"),
            Assignment(Phase.MEASURE, None if due is not None else slots),
        )
        journal = Journal(here, 0, Redactor(), "run")
        server = Server(
            CHAT,
            Engine(settings, 7),
            opener("m", "chat"),
            lambda hit, _: Ask("chat", True, True, *lengths[hit.row]),
        )
        driver = Driver(
            server,
            journal,
            timeout_ns=timeout_ns,
            drain_ns=drain_ns,
            heard=heard,
            client=client,
            seed=5,
            longest_ns=longest_ns,
        )
        driver.run(Phase.MEASURE, share, duration_ns=duration_ns, again=again)
        journal.close()
        table: pa.Table = read_stream(here / "worker-0.arrows", OUTCOME)
        rows_found: Rows = table.sort_by([("t_intended", "ascending"), ("index", "ascending")]).to_pylist()
        return rows_found

    return drive
