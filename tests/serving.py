"""The reference server in this process, on a loopback port of the kernel's choice, for as long as a block lasts."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from inferometer.server import fault_specs
from inferometer.server.connection import Socket
from inferometer.server.engine.settings import Settings
from inferometer.server.http import Server
from inferometer.server.options import Options
from inferometer.workload.encodings import Cl100k

QUICK = Settings(
    prefill_base_ns=1_000,
    prefill_per_token_ns=0,
    step_base_ns=10_000,
    step_per_request_ns=0,
    token_budget=1_000_000,
    jitter=0,
)


@contextlib.contextmanager
def serving(
    *fault: str,
    wrap: Callable[[socket.socket], Socket] | None = None,
    key: str | None = None,
    engine: Settings = QUICK,
    **options: Any,
) -> Iterator[int]:
    """Serve with these faults (docs/faults.md) and options; gives the port."""
    server = Server(Options(engine=engine, faults=fault_specs.parse(fault), **options), wrap, key)
    thread = threading.Thread(target=server.run, args=(Cl100k(),), daemon=True)
    thread.start()
    try:
        yield server.address[1]
    finally:
        server.stop()
        thread.join(30)
