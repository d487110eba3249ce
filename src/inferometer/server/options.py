"""What a reference server can be told."""

from __future__ import annotations

from dataclasses import dataclass, field

from inferometer.server.engine.settings import Settings
from inferometer.server.metronome import Beat


@dataclass(frozen=True, slots=True)
class Options:
    """Everything `serve` needs. Sizes in bytes unless named otherwise.

    host, port         where to listen; port 0 takes a free one. A host off this machine needs `allow_remote`.
    model              the name served; requests that name another one get 404
    seed, engine       the engine's (engine/settings.py)
    beat               a fixed script in the engine's place (metronome.py)
    max_model_len      prompt and answer together, in tokens; no more than the engine's cache holds
    reject_status      what a request is answered that finds the queue full: 429 or 503
    api_key_env        environment variable whose value clients must send as bearer token on /v1/
    tls_cert, tls_key  PEM files; both or neither
    body_limit         largest request body
    backlog_limit      what a client may leave unread, beyond the kernel's buffers, before its stream is cut
    send_buffer        SO_SNDBUF of each connection; 0 leaves it to the kernel
    truth_tokens       token times the truth log keeps
    """

    host: str = "127.0.0.1"
    port: int = 0
    allow_remote: bool = False
    model: str = "reference"
    seed: int = 0
    engine: Settings = field(default_factory=Settings)
    beat: Beat | None = None
    max_model_len: int = 131_072
    reject_status: int = 503
    api_key_env: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    body_limit: int = 1 << 25
    backlog_limit: int = 1 << 22
    send_buffer: int = 0
    truth_tokens: int = 4_000_000
    until_stdin_closes: bool = False
