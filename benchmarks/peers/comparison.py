"""The comparison: the same load on the same server for the floor, the instrument and each installed peer, one after the other.

All are held against what the server itself did, computed alike for all of them from its record of the measured requests.
These are the last ones that it received: probes and warm-up come before.

| figure               | is                                                                                                |
| -------------------- | ------------------------------------------------------------------------------------------------- |
| achieved : offered   | tokens a second from the first arrival to the last token, over streams / ideal time of an answer  |
| requests             | requests a second over the same span                                                              |
| reported             | what the tool prints                                                                              |
| error                | reported - true, of the same statistic                                                            |
| beside the load      | seconds the command took but for the time from the first request, warm-up included, to the last token |
| others, cores        | cores that other processes kept busy meanwhile; with more than a tenth, a line says little         |
| ours : it            | the instrument's figure over the tool's; of errors, their sizes                                   |

Every client has the second core, with all its processes, and the server has the first. A peer that needs more than `LIMIT_S`
or fails becomes a note. What was measured while the whole machine stood still, as a virtual one may, is measured again.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from benchmarks import instrument, native
from benchmarks.busy import Others, Standstill
from benchmarks.figure import Figure, Note
from benchmarks.loads import INTERVAL_US, SECONDS_A_REQUEST, TOKENS, TTFT_US, Bench
from benchmarks.peers import aiperf, guidellm, inference_perf, vllm
from benchmarks.peers.adapter import Adapter, Job, Load, Reported
from scripts.engines.places import MODEL as TOKENIZER
from scripts.peers.table import PEERS

ADAPTERS: dict[str, Adapter] = {
    "aiperf": aiperf.ADAPTER,
    "guidellm": guidellm.ADAPTER,
    "vllm": vllm.ADAPTER,
    "inference-perf": inference_perf.ADAPTER,
}
LIMIT_S = 180
TRIES = 3
STANDSTILL_S = 1.0
"""A longer pause of the whole machine spoils a measurement of a few seconds."""
OURS = "Inferometer"
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Truth:
    """What the server did for the measured requests. `began` and `ended` in ns of the monotonic clock, warm-up included."""

    requests: int
    ttft_mean_ms: float
    ttft_p99_ms: float
    gap_p99_ms: float | None
    tokens_s: float
    requests_s: float
    began: int
    ended: int


def truth_of(rows: Sequence[native.TruthRow], requests: int, warmup: int) -> Truth:
    """The truth about the last `requests` rows. Raises RuntimeError if the server has answered none."""
    measured = [row for row in rows[-requests:] if row.after_ns]
    if not measured:
        raise RuntimeError("the server was asked for nothing")
    ttft = np.array([row.after_ns[0] - row.read_ns for row in measured]) / 1e6
    gaps = np.concatenate([np.diff(row.after_ns) for row in measured]) / 1e6
    ended = max(row.after_ns[-1] for row in measured)
    seconds = (ended - measured[0].arrived_ns) / 1e9
    return Truth(
        len(measured),
        float(ttft.mean()),
        float(np.percentile(ttft, 99)),
        float(np.percentile(gaps, 99)) if len(gaps) else None,
        sum(len(row.after_ns) for row in measured) / seconds,
        len(measured) / seconds,
        rows[-requests - warmup :][0].arrived_ns,
        ended,
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """One tool under one load."""

    line: str
    truth: Truth
    reported: Reported
    beside_s: float
    others: float
    command: list[str]

    def error(self, name: str) -> float | None:
        """Error of `ttft_mean_ms`, `ttft_p99_ms` or `gap_p99_ms`; None where one side has no such figure."""
        said, true = getattr(self.reported, name), getattr(self.truth, name)
        return None if said is None or true is None else said - true


def first_and_last(words: str) -> str:
    """The line with which a program's words begin, and the last one that speaks of an error, else the last."""
    lines = [line.strip() for line in words.splitlines() if line.strip()] or ["it said nothing"]
    complaints = [line for line in lines if re.search(r"error|exception|failed", line, re.IGNORECASE)]
    last = (complaints or lines)[-1]
    return last if last == lines[0] else f"{lines[0]} ... {last}"


def call(
    command: list[str], core: int | None, env: dict[str, str], where: Path, limit_s: float = LIMIT_S
) -> None:
    """Run a peer in a group of its own, to its end or its limit. Raises RuntimeError with the first and last line it said."""
    said = where / "said.txt"
    with said.open("wb") as file, native.on_core(core):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=env,
            cwd=where,
            start_new_session=True,
        )
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise RuntimeError(
            f"not done after {limit_s} s: {first_and_last(said.read_text(errors='replace'))}"
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(
                process.pid, signal.SIGKILL
            )  # what it left running would take part in the next measurement
        process.wait()
    if code:
        raise RuntimeError(f"exit code {code}: {first_and_last(said.read_text(errors='replace'))}")


def measure_peer(name: str, bench: Bench, server: native.Server, load: Load, out: Path) -> Seen:
    """One peer under one load. Raises RuntimeError if it fails, or if its result cannot be read."""
    peer, adapter = PEERS[name], ADAPTERS[name]
    out.mkdir()
    job = Job(load, server.url, TOKENIZER, out)
    command = [str(peer.command), *adapter.command(job)]
    server.reset()
    others, began = Others(server.pid), time.monotonic_ns()
    call(command, bench.cores.client, {**os.environ, **adapter.env}, out)
    wall, busy = time.monotonic_ns() - began, others.cores()
    truth = truth_of(server.truth(), load.requests, load.warmup)
    try:
        reported = adapter.read((out / adapter.result).read_bytes())
    except (OSError, ValueError, msgspec.DecodeError) as cause:
        raise RuntimeError(f"its result cannot be read: {first_and_last(str(cause))}") from cause
    if not reported.completed:
        raise RuntimeError("it says that no request succeeded")
    return Seen(
        f"{peer.title} {peer.version}",
        truth,
        reported,
        (wall - truth.ended + truth.began) / 1e9,
        busy,
        command,
    )


def measure_ours(bench: Bench, server: native.Server, load: Load, out: Path) -> tuple[Seen, Note]:
    """The instrument under one load, and its verdict on itself."""
    out.mkdir()
    flags = [
        *("--concurrency", str(load.streams), "--requests", str(load.requests), "--warmup", str(load.warmup)),
        *("--input-tokens", str(load.input_tokens), "--output-tokens", str(load.output_tokens)),
    ]
    server.reset()
    others, began = Others(server.pid), time.monotonic_ns()
    run = instrument.measure(server, bench.cores.client, out, *flags)
    wall, busy = time.monotonic_ns() - began, others.cores()
    truth = truth_of(server.truth(), load.requests, load.warmup)
    metrics = run.summary["metrics"]
    ttft, gaps = metrics["ttft_ms"], metrics["itl_ms"]
    said = Reported(ttft["n"], ttft["mean"], ttft["p99"], gaps and gaps["p99"])
    seen = Seen(OURS, truth, said, (wall - truth.ended + truth.began) / 1e9, busy, run.command)
    return seen, Note(f"verdict of {OURS}, {load.streams:,} at once", run.verdict)


def measure_floor(bench: Bench, server: native.Server, load: Load) -> Truth:
    """The least a client in C can do."""
    server.reset()
    native.drained(bench.binaries, bench.cores, server, load.streams, load.requests, load.output_tokens)
    return truth_of(server.truth(), load.requests, 0)


def undisturbed(measure: Callable[[Path], Found], out: Path, standstill_s: float = STANDSTILL_S) -> Found:
    """What is measured, in a folder of its own; again if the machine stood still meanwhile. RuntimeError if it always does."""
    out.mkdir()
    for attempt in range(TRIES):
        with Standstill() as still:
            try:
                found = measure(out / str(attempt))
            except RuntimeError:
                if still.longest_s < standstill_s:
                    raise
                continue
        if still.longest_s < standstill_s:
            return found
    raise RuntimeError(
        f"the machine stood still for {still.longest_s:.0f} s, and in {TRIES - 1} tries before"
    )


def ratio(ours: float | None, its: float | None) -> float | None:
    """Of sizes; None where one is missing or nothing."""
    return None if ours is None or not its else abs(ours / its)


def of_streams(grid: str, seen: Seen, ours: Seen, offered: float) -> Iterator[Figure]:
    """One line of the comparison under streams."""
    errors = {name: seen.error(name) for name in ("ttft_mean_ms", "ttft_p99_ms", "gap_p99_ms")}
    its = seen is not ours
    columns: list[tuple[str, float | None, str, int]] = [
        ("achieved : offered", seen.truth.tokens_s / offered, "", 3),
        ("mean TTFT", seen.reported.ttft_mean_ms, "ms", 2),
        ("P99 TTFT", seen.reported.ttft_p99_ms, "ms", 2),
        ("error of mean TTFT", errors["ttft_mean_ms"], "ms", 3),
        ("error of P99 TTFT", errors["ttft_p99_ms"], "ms", 3),
        ("error of P99 ITL", errors["gap_p99_ms"], "ms", 3),
        ("beside the load", seen.beside_s, "s", 1),
        ("others, cores", seen.others, "", 2),
        ("tokens, ours : it", ratio(ours.truth.tokens_s, seen.truth.tokens_s) if its else None, "", 2),
        (
            "error of mean TTFT, ours : it",
            ratio(ours.error("ttft_mean_ms"), errors["ttft_mean_ms"]) if its else None,
            "",
            4,
        ),
    ]
    yield from _line(grid, seen.line, columns)


def of_one_token(grid: str, seen: Seen, ours: Seen) -> Iterator[Figure]:
    """One line of the comparison under requests of one token."""
    columns: list[tuple[str, float | None, str, int]] = [
        ("requests", seen.truth.requests_s, "/s", 0),
        ("error of mean TTFT", seen.error("ttft_mean_ms"), "ms", 3),
        ("beside the load", seen.beside_s, "s", 1),
        ("others, cores", seen.others, "", 2),
        (
            "requests, ours : it",
            ratio(ours.truth.requests_s, seen.truth.requests_s) if seen is not ours else None,
            "",
            1,
        ),
    ]
    yield from _line(grid, seen.line, columns)


def _line(grid: str, line: str, columns: Sequence[tuple[str, float | None, str, int]]) -> Iterator[Figure]:
    for label, value, unit, digits in columns:
        if value is not None:
            yield Figure(label, value, unit, None, digits, grid, line)


def peers(bench: Bench, tokenizer: Path = TOKENIZER) -> Iterator[Figure | Note]:
    """Two numbers of streams, then requests of one token."""
    there = [name for name in ADAPTERS if PEERS[name].version and (tokenizer / "tokenizer.json").is_file()]
    yield from _absent(there)
    for count, share in ((10, 1), (50, 1)) if bench.quick else ((100, 2), (1000, 1)):
        load = Load(count, count * share * bench.rounds, 64, TOKENS, warmup=count)
        yield from compare(bench, there, load, load)
    many, few = (5_000, 500) if bench.quick else (50_000, 5_000)
    # What a peer needs seconds for the instrument does in a tenth of one; so that both last, it is given more to do.
    yield from compare(bench, there, Load(64, many, 16, 1, warmup=64), Load(64, few, 16, 1, warmup=64))


def _absent(there: Sequence[str]) -> Iterator[Note]:
    if not there:
        yield Note(
            "peers",
            "none is installed: `make bench-peers` does it; below are the instrument and the floor only",
        )
        return
    for name, peer in PEERS.items():
        if name not in there:
            yield Note(peer.title, f"not compared: {peer.absent or 'not installed (make bench-peers)'}")


def compare(bench: Bench, there: Sequence[str], load: Load, theirs: Load) -> Iterator[Figure | Note]:
    """The floor and the instrument under `load`, then the peers that are there under `theirs`, all on one server."""
    single = load.output_tokens == 1
    times = (0, 0) if single else (TTFT_US, INTERVAL_US)
    offered = load.streams * TOKENS / SECONDS_A_REQUEST
    grid = f"one token, {load.streams} connections" if single else f"{load.streams:,} streams"
    with native.serving(bench.binaries, bench.cores, *times) as server, bench.scratch() as out:
        floor = undisturbed(lambda _: measure_floor(bench, server, load), out / "floor")
        ours, verdict = undisturbed(partial(measure_ours, bench, server, load), out / "ours")
        if single:
            yield Figure("requests", floor.requests_s, "/s", None, 0, grid, "floor")
            yield Figure(
                "requests, ours : it", ours.truth.requests_s / floor.requests_s, "", None, 3, grid, "floor"
            )
            yield from of_one_token(grid, ours, ours)
        else:
            yield Figure("achieved : offered", floor.tokens_s / offered, "", None, 3, grid, "floor")
            yield from of_streams(grid, ours, ours, offered)
        yield verdict
        yield Note(f"{OURS}, {grid}", " ".join(ours.command))
        for name in there:
            try:
                seen = undisturbed(partial(measure_peer, name, bench, server, theirs), out / name)
            except RuntimeError as cause:
                yield Note(f"{PEERS[name].title}, {grid}, failed", str(cause))
                continue
            yield from of_one_token(grid, seen, ours) if single else of_streams(grid, seen, ours, offered)
            if (lost := theirs.requests - seen.reported.completed) > 0:
                yield Note(
                    f"{seen.line}, {grid}",
                    f"it counts {lost} of {theirs.requests} requests as not successful",
                )
            yield Note(f"{seen.line}, {grid}", " ".join(seen.command))
