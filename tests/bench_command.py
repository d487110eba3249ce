"""`inferometer bench` as a process, with few and short answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from commands import run

from inferometer.server.engine.settings import Settings

ENGINE = Settings(step_base_ns=1e6, prefill_base_ns=2e6)
SHORT = ("--prompts", "tool-call", "--runs", "2")


def bench(out: Path, *arguments: str, **urls: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, bench.json and stderr. `urls`: engines by name."""
    engines = [word for name, url in urls.items() for word in ("--url", f"{name}={url}")]
    code, stdout, stderr = run("bench", *engines, *SHORT, *arguments, "--json", out=out)
    return code, json.loads(stdout) if stdout else {}, stderr
