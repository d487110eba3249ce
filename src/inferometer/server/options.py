"""What a reference server can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from inferometer.server.answer_parts import PLAIN, Parts
from inferometer.server.engine.settings import Settings
from inferometer.server.fault_specs import Fault
from inferometer.server.fixed_script import Beat
from inferometer.server.systems.settings import SystemSettings


@dataclass(frozen=True, slots=True)
class Options:
    """Everything `serve` needs. Sizes in bytes unless named otherwise.

    host, port         where to listen; port 0 takes a free one. A host off this machine needs `allow_remote`.
    model              the name served; requests that name another one get 404
    routes             the engine whose routes are served in place of all (engine_routes.py)
    seed, engine       the engine's (engine/settings.py)
    beat               a fixed script in the engine's place (fixed_script.py)
    system             the reference system served in place of the engine alone (systems/); `system_settings` are its own,
                       and `spans` a file to which its spans are appended
    max_model_len      prompt and answer together, in tokens; no more than the engine's cache holds
    reject_status      what a request is answered that finds the queue full: 429 or 503
    parts              what a chat's tokens are: reasoning, text, a tool call (answer_parts.py)
    token_timestamps   each streamed token's event says when the model put it out (event_writer.py)
    load_ns, cold      how long the model takes to load, where the engine's settings do not say it, and whether it is not
                       there at the start (model_loading.py)
    load_at_start      load the model first; until it is there /health answers 503
    api_key_env        environment variable whose value clients must send as bearer token (routes.py)
    tls_cert, tls_key  PEM files; both or neither
    body_limit         largest request body
    backlog_limit      what a client may leave unread, beyond the kernel's buffers, before its stream is cut
    send_buffer        SO_SNDBUF of each connection; 0 leaves it to the kernel
    truth_tokens       token times the truth log keeps
    faults             what it is to do wrong (fault_specs.py)
    """

    host: str = "127.0.0.1"
    port: int = 0
    allow_remote: bool = False
    model: str = "reference"
    routes: str | None = None
    seed: int = 0
    engine: Settings = field(default_factory=Settings)
    beat: Beat | None = None
    system: str | None = None
    system_settings: SystemSettings = field(default_factory=SystemSettings)
    spans: Path | None = None
    max_model_len: int = 262_144
    reject_status: int = 503
    parts: Parts = PLAIN
    token_timestamps: bool = False
    load_ns: int = 0
    cold: bool = False
    load_at_start: bool = False
    api_key_env: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    body_limit: int = 1 << 25
    backlog_limit: int = 1 << 22
    send_buffer: int = 0
    truth_tokens: int = 4_000_000
    faults: tuple[Fault, ...] = ()
    until_stdin_closes: bool = False
