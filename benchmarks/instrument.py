"""The instrument as its users run it: the command `inferometer`, on the client's core, its result read from `--json`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.native import TIMEOUT_S, Server, on_core

COMMAND = Path(sys.executable).with_name("inferometer")
JUDGED = (0, 3, 4)
COUNTING = ("--tokenizer", "cl100k_base")
"""Exit codes after which there is a summary: VALID, INVALID, INCONCLUSIVE."""


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its folder, its summary and the command that made it."""

    folder: Path
    summary: dict[str, Any]
    command: list[str]

    @property
    def cpu(self) -> float:
        """CPU share of the one worker, 1 = the whole core."""
        value = self.summary["instrument"]["cpu_fraction"][0]
        return float("nan") if value is None else float(value)

    @property
    def tokens_s(self) -> float:
        """Output tokens per second of the steady span: at the ends of a run the slots also serve the lead-in and lead-out."""
        return float(self.summary["throughput"]["output_tok_s"])

    @property
    def requests_s(self) -> float:
        """Requests per second, likewise."""
        return float(self.summary["throughput"]["request_s"])

    def bound(self, metric: str, statistic: str) -> float:
        """The bound of the instrument's own error of one of its statistics, ms; NaN without one."""
        bounds = self.summary["instrument"]["error_bounds"] or {}
        return float((bounds.get(metric) or {}).get(statistic, float("nan")))

    @property
    def verdict(self) -> str:
        """Status and the codes of its reasons."""
        verdict = self.summary["verdict"]
        codes = sorted({reason["code"] for reason in verdict["reasons"]})
        return f"{verdict['status']} ({', '.join(codes)})" if codes else str(verdict["status"])


def command_for(server: Server, out: Path, *flags: str) -> list[str]:
    """`inferometer run` against this server, with a shipped tokenizer: what tokens are is not what is measured here."""
    trust = ["--ca-file", str(server.ca_file)] if server.ca_file else []
    output = ["--out", str(out), "--index", "none", "--json", "--quiet"]
    return [str(COMMAND), "run", "--url", server.url, *COUNTING, *trust, *flags, *output]


def measure(
    server: Server, core: int | None, out: Path, *flags: str, env: Mapping[str, str] | None = None
) -> Run:
    """Run it to its end, in this environment or ours. Raises RuntimeError with its words if it came to no summary."""
    command = command_for(server, out, *flags)
    before = set(out.iterdir()) if out.exists() else set()
    with on_core(core):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    if process.returncode not in JUDGED:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{stderr.strip()}")
    (folder,) = set(out.iterdir()) - before
    return Run(folder, json.loads(stdout), command)
