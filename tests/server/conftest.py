"""Servers in this process, on loopback ports of the kernel's choice, that end with the test."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inferometer.server.connection import Socket
from inferometer.server.engine.settings import Settings
from inferometer.server.http import Server
from inferometer.server.options import Options
from inferometer.workload.encodings import Cl100k

Serve = Callable[..., int]

QUICK = Settings(
    prefill_base_ns=1_000,
    prefill_per_token_ns=0,
    step_base_ns=10_000,
    step_per_request_ns=0,
    token_budget=1_000_000,
    jitter=0,
)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Call it with options to have a server; it returns the port."""
    with contextlib.ExitStack() as stack:

        def start(
            *,
            wrap: Callable[[socket.socket], Socket] | None = None,
            key: str | None = None,
            engine: Settings = QUICK,
            **options: Any,
        ) -> int:
            server = Server(Options(engine=engine, **options), wrap, key)
            thread = threading.Thread(target=server.run, args=(Cl100k(),), daemon=True)
            thread.start()
            stack.callback(thread.join, 30)
            stack.callback(server.stop)
            return server.address[1]

        yield start
