"""Benchmark of scraping: what 20 endpoints of 2,000 series each cost, three times a second, compression included.

The endpoints are one process that sends bodies written beforehand: histograms, counters and gauges with an engine's names and
labels, of which half move between two scrapes. What is measured is the scraper's process and nothing else.
"""

from __future__ import annotations

import multiprocessing
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from benchmarks import native
from benchmarks.busy import Others
from benchmarks.costs import MIB
from benchmarks.figure import Figure, Note, at_least, at_most
from benchmarks.loads import Bench
from inferometer.telemetry.metrics.fetch import TIMEOUT_S
from inferometer.telemetry.metrics.scraper_messages import Endpoint, Job
from inferometer.telemetry.metrics.scraper_process import Scraping

ENDPOINTS, SERIES, INTERVAL_S = 20, 2_000, 1 / 3
SECONDS = 30.0
AT_ENDS = 3
"""Scrapes of an endpoint beside those at intervals: the baseline, the phase's begin, the last one."""
BODIES = 8
"""Different ones an endpoint has, shown in turn."""
_LABELS = 'engine="0",model_name="meta-llama/Llama-3.1-8B-Instruct"'


def scrape(bench: Bench) -> Iterator[Figure | Note]:
    """CPU, memory and disk of the scraper, and whether it kept up."""
    seconds = 3.0 if bench.quick else SECONDS
    with bench.scratch() as out, _endpoints() as ports, Scraping(out / "log.txt") as scraping:
        process = psutil.Process(scraping.pid)
        if bench.cores.client is not None:
            process.cpu_affinity([bench.cores.client])
        path = out / "telemetry" / "scrapes.jsonl.zst"
        scraping.brief(_job(ports, path))
        if scraping.ready() is None:
            raise RuntimeError(f"the scraper did not start: {(out / 'log.txt').read_text()}")
        before, others = process.cpu_times(), Others(scraping.pid)
        size = path.stat().st_size if path.exists() else 0
        scraping.mark("profiling", "profiling")
        threading.Event().wait(seconds)
        after, memory, busy = process.cpu_times(), process.memory_info().rss, others.cores()
        size = path.stat().st_size - size
        done = scraping.end()
    spent = after.user + after.system - before.user - before.system
    scraped = sum(told.scrapes for told in done.endpoints)
    regular = scraped - AT_ENDS * ENDPOINTS
    raw = sum(told.characters for told in done.endpoints)
    yield Figure("CPU of the scraper", spent / seconds, "of a core", at_most(0.25), 3)
    yield Figure(
        "scrapes done, of those due", regular / (ENDPOINTS * seconds / INTERVAL_S), "", at_least(0.99), 3
    )
    yield Figure(
        "scrapes left out for one under way", sum(told.skipped for told in done.endpoints), "", at_most(0), 0
    )
    yield Figure("failures", sum(sum(told.errors.values()) for told in done.endpoints), "", at_most(0), 0)
    yield Figure("memory of the scraper", memory / MIB, "MiB", digits=0)
    yield Figure("text scraped", raw / scraped / 1e3, "kB a scrape", digits=0)
    yield Figure("record", size / seconds * 60 / MIB, "MiB a minute", digits=1)
    yield Figure("cores busy with other things, the endpoints among them", busy, "", digits=2)


def _job(ports: list[int], path: Path) -> Job:
    return Job(
        record=str(path),
        endpoints=[
            Endpoint(
                shown=f"http://127.0.0.1:{port}/metrics",
                host="127.0.0.1",
                port=port,
                path="/metrics",
                headers={"Host": f"127.0.0.1:{port}"},
                own=False,
            )
            for port in ports
        ],
        interval_ns=round(INTERVAL_S * 1e9),
        clock_offset_ns=0,
        timeout_s=TIMEOUT_S,
        secrets=[],
    )


@contextmanager
def _endpoints() -> Iterator[list[int]]:
    """The endpoints' ports, served by a process of their own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        if not ours.poll(native.TIMEOUT_S):
            raise RuntimeError("the endpoints did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(parent: Connection[Any, Any]) -> None:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(ENDPOINTS)]
    for seed, listener in enumerate(listeners):
        bodies = [_response(body) for body in exposition(SERIES, BODIES, seed)]
        threading.Thread(target=_answer, args=(listener, bodies), daemon=True).start()
    parent.send([listener.getsockname()[1] for listener in listeners])
    threading.Event().wait()


def _response(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    return head + body


def _answer(listener: socket.socket, bodies: list[bytes]) -> None:
    sock, _ = listener.accept()
    turn = 0
    while sock.recv(65536):
        sock.sendall(bodies[turn % len(bodies)])
        turn += 1


def exposition(series: int, bodies: int, seed: int) -> Iterator[bytes]:
    """So many bodies of so many samples: families of 22 (a histogram's 18 bounds, sum and count, a counter, a gauge)."""
    numbers = random.Random(seed)
    families = series // 22
    counts = [[0] * 18 for _ in range(families)]
    for _ in range(bodies):
        rows = []
        for family, bounds in enumerate(counts):
            name = f"vllm:request_stage_{family}_time_seconds"
            moved = numbers.randrange(9) if family % 2 else 0
            total = 0
            rows += [
                f"# HELP {name} Histogram of the time a request spends in stage {family}.",
                f"# TYPE {name} histogram",
            ]
            for place in range(18):
                bounds[place] += moved * numbers.randrange(4)
                total += bounds[place]
                rows.append(f'{name}_bucket{{{_LABELS},le="{0.005 * 2**place}"}} {total}.0')
            rows += [
                f"{name}_count{{{_LABELS}}} {total}.0",
                f"{name}_sum{{{_LABELS}}} {total * 0.731}",
            ]
            rows += [
                f"# TYPE vllm:stage_{family}_tokens_total counter",
                f"vllm:stage_{family}_tokens_total{{{_LABELS}}} {total * 17}.0",
            ]
            rows += [
                f"# TYPE vllm:stage_{family}_usage gauge",
                f"vllm:stage_{family}_usage{{{_LABELS}}} {numbers.random()}",
            ]
        yield ("\n".join(rows) + "\n").encode()
