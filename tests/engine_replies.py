"""Replies of engines about themselves, from tests/vectors/engines."""

from __future__ import annotations

import json
from pathlib import Path

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
