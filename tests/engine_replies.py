"""Replies of engines about themselves, from tests/vectors/engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from peers import Script, Seen, whole

from inferometer.engines.adapters.adapter import Replies, Reply

FOLDER = Path(__file__).parent / "vectors" / "engines"
KEYS = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
"""Of the engines; further replies of the same engines are in the folder `more`."""


def source(key: str) -> str:
    """Where the replies of an engine come from."""
    return str(json.loads((FOLDER / f"{key}.json").read_text())["source"])


def replies(key: str) -> Replies:
    """Those of one engine, by path."""
    data = json.loads((FOLDER / f"{key}.json").read_text())["replies"]
    return {path: Reply(one["status"], one["headers"], one["body"]) for path, one in data.items()}


def answering(known: Replies) -> Callable[[Seen], Script]:
    """A scripted server with these replies by path."""

    def answer(seen: Seen) -> Script:
        reply = known.get(seen.target)
        if reply is None:
            return Script(whole(404, b"{}"))
        lines = [f"{name}: {value}".encode() for name, value in reply.headers.items() if name == "server"]
        return Script(whole(reply.status, json.dumps(reply.body).encode(), *lines))

    return answer
