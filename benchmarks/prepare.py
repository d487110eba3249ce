"""Benchmarks of preparing: from a plan to the bodies of all its requests in `requests.arrow`, and what memory that takes.

`python -m benchmarks.prepare WORKLOAD REQUESTS [TOKENS]` does it once, in a process of its own, and prints what it came to.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure, Note, at_most
from benchmarks.loads import Bench
from benchmarks.native import on_core
from inferometer.journal.folder import RunFolder
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Load, Plan
from inferometer.plan.workload import AnyWorkload, workload_of
from inferometer.run.request_writer import Served
from inferometer.run.requests import Requests
from inferometer.workload import tokenizers
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.parallel import MOST_PROCESSES, cores
from inferometer.workload.sources import TraceRows, sourced


def prepare(bench: Bench) -> Iterator[Figure | Note]:
    """10,000 text prompts of 512 tokens on one core; 100,000 requests of synthetic-skewed on all there are."""
    few, many = ("500", "2000") if bench.quick else ("10000", "100000")
    with on_core(bench.cores.client):
        alone = _measured("custom", few, "512")
    yield Figure(f"{few} prompts of 512 tokens, one core", alone["seconds"], "s", at_most(10.0), 2)
    yield Figure("of that, CPU time", alone["cpu_s"], "s", digits=2)
    every = _measured("synthetic-skewed", many)
    yield Figure(f"{many} requests of synthetic-skewed, all cores", every["seconds"], "s", at_most(60.0), 2)
    yield Figure("of these, CPU time", every["cpu_s"], "s", digits=2)
    yield Figure(
        "their peak memory, helping processes included", every["peak_mib"], "MiB", at_most(1024.0), 0
    )
    yield Note(
        "prepared", "from the loaded program to requests.arrow on disk, cl100k_base and its tables included"
    )


def _measured(*words: str) -> dict[str, float]:
    """What a process of its own says. Raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.prepare", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _once(workload: AnyWorkload, requests: int) -> dict[str, float]:
    plan = Plan(workload=workload, load=Load(requests=requests))
    plan, source = sourced(plan)
    assert not isinstance(source, TraceRows | SessionRows), "a plan of lengths"
    served = Served("reference", ["reference"], None, "text", "max_tokens")
    with tempfile.TemporaryDirectory() as out:
        folder = RunFolder.create(Path(out), plan.name, time.time_ns())
        began, spent = time.monotonic(), time.process_time()
        Requests(plan, source, served, tokenizers.load(plan.tokenizer), folder, 1).measurement()
        seconds, spent = time.monotonic() - began, time.process_time() - spent
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # The largest of the processes that helped stands for each of them; they have ended with the work.
    peak = own.ru_maxrss + min(cores(), MOST_PROCESSES) * others.ru_maxrss
    return {
        "seconds": seconds,
        "cpu_s": spent + others.ru_utime + others.ru_stime,
        "peak_mib": peak / (1 << 20 if sys.platform == "darwin" else 1 << 10),
    }


if __name__ == "__main__":
    name, count, *tokens = sys.argv[1:]
    lengths = {"input_tokens": fixed(int(tokens[0])), "output_tokens": fixed(16)} if tokens else {}
    print(json.dumps(_once(workload_of({"name": name, **lengths}), int(count))))
