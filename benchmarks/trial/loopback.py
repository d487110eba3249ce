"""The same over sockets: the command `inferometer run` against small servers that lie in one way each (liar.py)."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.instrument import COMMAND, JUDGED
from benchmarks.trial.defects import Case, Defect
from benchmarks.trial.records import Bent

TIMEOUT_S = 300
FLAGS = (
    "--concurrency", "8", "--requests", "1050", "--warmup", "100",
    "--input-tokens", "60", "--output-tokens", "16",
)  # fmt: skip
LOAD = (*FLAGS[4:], "--rate", "100", "--requests", "1050")

EXPECTS: dict[str, tuple[str, ...]] = {
    "zero-width first": (),
    "space first": ("token_counts",),
    "empty": ("error_rate", "output_length", "token_counts", "few_samples"),
    "held": ("streamed",),
    "shorter": ("output_length", "token_counts"),
    "stops": ("output_length",),
    "padded with nothing": ("output_length", "token_counts"),
    "padded with the invisible": ("output_length", "token_counts"),
    "counts double": ("output_length", "token_counts"),
    "cuts": ("prompt_length",),
    "remembers": ("cache_hits",),
    "slows": ("drift",),
    "says error": ("error_rate",),
    "breaks off": ("error_rate",),
    "drops": ("error_rate", "stale_connections", "concurrency_held"),
}
CLEAN = ("honest", "closes")


@contextlib.contextmanager
def serving(kind: str) -> Iterator[str]:
    """The address of a server of this kind, until the end of the block."""
    command = [sys.executable, "-m", "benchmarks.trial.liar", kind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def measured(kind: str, flags: tuple[str, ...] = FLAGS) -> tuple[dict[str, Any], list[list[float]]]:
    """The summary of a run, and what the server knows of the answers of the measured phase."""
    with serving(kind) as url, tempfile.TemporaryDirectory() as out:
        words = [str(COMMAND), "run", "--url", url, *flags, "--out", out, "--json", "--quiet"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        if done.returncode not in (*JUDGED, 5):
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr.strip()}")
        with urllib.request.urlopen(f"{url}/truth", timeout=TIMEOUT_S) as reply:
            truth: list[list[float]] = json.load(reply)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary, truth[-int(summary["requests"]["sent"]) :]


def verdict_of(summary: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Status and deciding checks."""
    verdict = summary["verdict"]
    return str(verdict["status"]), tuple(dict.fromkeys(str(one["code"]) for one in verdict["reasons"]))


def bent(summary: dict[str, Any], truth: list[list[float]]) -> Bent:
    """TTFT and tokens of an answer against what the server knows of them."""
    first = np.array([row[0] for row in truth if row[0] >= 0])
    tokens = np.array([row[1] for row in truth])
    said = {}
    ttft = summary["metrics"]["ttft_ms"]
    if ttft is not None and len(first):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            said[f"TTFT {name.upper()}"] = ttft[name] / float(np.quantile(first, share)) - 1
    rates = summary["throughput"]
    if rates["request_s"] and rates["output_tok_s"] is not None:
        each = rates["output_tok_s"] / rates["request_s"]
        said["output tokens/s"] = each / float(tokens.mean()) - 1 if tokens.mean() else float("inf")
    if not said:
        return Bent("-", 0.0, 0)
    name = max(said, key=lambda one: abs(said[one]))
    return Bent(name, said[name], 0)


def lying(kind: str) -> Defect:
    """A run against this server."""

    def carry_out() -> Case:
        summary, truth = measured(kind)
        status, reasons = verdict_of(summary)
        return Case(status, reasons, lambda: bent(summary, truth))

    return Defect(f"server over a socket: {kind}", "over sockets", EXPECTS[kind], carry_out)


def defects() -> Iterator[Defect]:
    """All of them."""
    for kind in EXPECTS:
        yield lying(kind)
