"""Record what the installed engines say of themselves: tests/vectors/engines/KEY.json.

    python -m scripts.engines.record_facts [mlx-lm] [vllm] [llamacpp]

Every path that detection asks for is asked, and its status, header `server`, and body are kept. What belongs to this machine is
replaced: the folder of the engines reads `/engines`, and times are 0.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from inferometer.client.http_client import Unanswered
from inferometer.engines.adapters.registry import asks
from inferometer.studies.engine_client import EngineClient
from scripts.engines.launch import running
from scripts.engines.places import ENGINES

FOLDER = Path(__file__).parents[2] / "tests" / "vectors" / "engines"
INSTALLED = {"mlx-lm": "mlx", "vllm": "vllm", "llamacpp": "llamacpp"}
VERSIONS = {
    "mlx-lm": "mlx-lm 0.32.2 with mlx 0.32.4",
    "vllm": "vLLM 0.32.0 on a CPU",
    "llamacpp": "llama.cpp, server 0.5.0, commit 0c1e570",
}
_TIMES = ("created", "t_start", "modified_at")
_LONGEST = 4_000
"""Characters of a text: chat templates are cut."""


def replies(url: str) -> dict[str, object]:
    """By path: status, header `server`, body."""
    found: dict[str, object] = {}
    with EngineClient(url) as client:
        for ask in asks():
            try:
                reply = client.call(ask)
            except Unanswered:
                continue
            server = reply.headers.get("server")
            headers = {} if server is None else {"server": server}
            found[ask.path] = {"status": reply.status, "headers": headers, "body": _scrubbed(reply.body)}
    return found


def _scrubbed(value: object) -> object:
    if isinstance(value, dict):
        return {name: 0 if name in _TIMES else _scrubbed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_scrubbed(inner) for inner in value]
    if isinstance(value, str):
        return value.replace(str(ENGINES.resolve()), "/engines").replace(str(ENGINES), "/engines")[:_LONGEST]
    return value


def main(keys: list[str]) -> None:
    """Record these engines, or all."""
    for key in keys or list(INSTALLED):
        with tempfile.TemporaryDirectory() as place, running(INSTALLED[key], Path(place) / "log") as engine:
            data = {"source": f"recorded from {VERSIONS[key]}", "replies": replies(engine.url)}
        (FOLDER / f"{key}.json").write_text(json.dumps(data, indent=1) + "\n")
        print(f"{key}: {len(data['replies'])} replies")


if __name__ == "__main__":
    main(sys.argv[1:])
