"""Benchmark of the record of a long run: what it takes to seal, report, recover and compare it.

`python -m benchmarks.long_record [REQUESTS] [--tokens N] [--text BYTES] [--rate PER_S] [--hosts N] [--out DIR]` makes the
journals of two such runs without a server, as two workers would have written them: open loop, answers streamed token by token,
batches of 0.8 s. Then it lets processes of their own seal and report the first, recover the second, which has no sealed record,
and compare the two. With `--hosts` the first is what so many load hosts of two workers each have handed over, and is merged
before. It prints of each the time, the requests per second and the most memory that it had: without pages of files, which the
kernel may take back at any time, and with them. 10 million requests need 20 GB of disk in DIR, by default where temporary files
lie."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks import instrument
from benchmarks.costs import RUN_ID, synthetic_facts
from benchmarks.figure import Figure, Note, at_least, at_most
from benchmarks.loads import Bench
from inferometer.cluster.clock_fit import ClockProbe
from inferometer.cluster.fetched import CLOCK, merge_left
from inferometer.documents.workload import TokenizerFacts
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import BATCH
from inferometer.journal.schema import OUTCOME, PULSE, SCHEDULE, EventClass, Phase
from inferometer.journal.writer import StreamFile
from inferometer.measure.load_hosts import LoadHost
from inferometer.plan import saved
from inferometer.plan.arrivals import phase_instants
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Instrument, Load, Plan
from inferometer.plan.target import Target
from inferometer.plan.workload import StandardWorkload
from inferometer.run.facts import write_facts
from inferometer.telemetry.host import environment

WORKERS = 2
FLUSH_S = 0.8
GIB = 1 << 30
WORDS = "the quick brown fox jumps over the lazy dog and runs away from it through high grass "
NAIVE = "na\u00efve "
"""One text in eight is not plain ASCII."""
ORIGIN = 10**15
FIRST_MS, GAP_MS = 60.0, 12.0

Ints = NDArray[np.int64]


def long_record(bench: Bench) -> Iterator[Figure | Note]:
    """A million requests of eight tokens, then fewer whose answers hold more than 2 GiB of text."""
    small = bench.quick
    yield from measured(10_000 if small else 1_000_000, tokens=8, text=40, rate=2_000.0)
    if not small:
        yield from measured(1_000_000, tokens=8, text=2_300, rate=2_000.0)


def measured(
    requests: int, *, tokens: int, text: int, rate: float, out: Path | None = None, hosts: int = 0
) -> Iterator[Figure]:
    """What it takes to merge (`hosts`), seal, report, recover and compare such records, which are made in `out` and removed at
    the end."""
    name = f"{requests:,} requests of {tokens} tokens, {text:,} bytes of text"
    with tempfile.TemporaryDirectory(prefix="inferometer-long-", dir=out) as parent:
        began = time.monotonic()
        folder, other = (
            journal_of(Path(parent), requests, tokens=tokens, text=text, rate=rate, seed=seed, hosts=several)
            for seed, several in ((1, hosts), (2, 0))
        )
        yield Figure(f"{name}: two made", time.monotonic() - began, "s")
        command = str(instrument.COMMAND)
        own = [sys.executable, "-m", "benchmarks.long_record"]
        merge = {"merge": [*own, "--merge", str(folder.path)]} if hosts else {}
        steps = {
            **merge,
            "seal": [*own, "--seal", str(folder.path)],
            "report": [command, "report", str(folder.path), "--json"],
            "recover": [command, "recover", str(other.path), "--json"],
            "compare": [command, "compare", str(folder.path), str(other.path), "--index", "none", "--json"],
        }
        for step, words in steps.items():
            seconds, cpu, held, all_pages = _timed(words)
            count = 2 * requests if step == "compare" else requests
            yield Figure(f"{name}: {step}", seconds, "s")
            yield Figure(f"{name}: {step}, CPU time", cpu, "s")
            yield Figure(f"{name}: {step}", count / seconds, "requests/s", at_least(100_000.0), 0)
            yield Figure(f"{name}: {step}, by CPU time", count / cpu, "requests/s", digits=0)
            yield Figure(f"{name}: {step}, peak memory", held / GIB, "GiB", at_most(2.0), 2)
            yield Figure(f"{name}: {step}, peak with pages of files", all_pages / GIB, "GiB", digits=2)
        for label, path in (("journal", folder.journal), ("sealed record", folder.record)):
            size = sum(one.stat().st_size for one in path.iterdir()) if path.is_dir() else path.stat().st_size
            yield Figure(f"{name}: {label}", size / requests, "B/request", digits=0)


def _timed(command: Sequence[str]) -> tuple[float, float, float, float]:
    """Seconds that a command took, of the clock and of CPU time, and the most bytes it had in memory, without pages of files
    and with them. Raises RuntimeError with its words."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=words)
        own, ended = 0, 0
        while not ended:
            own = max(own, own_bytes(process.pid))
            time.sleep(LOOK_S)
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
        seconds, code = time.monotonic() - began, os.waitstatus_to_exitcode(status)
        process.returncode = code
        words.seek(0)
        if code not in instrument.JUDGED:
            raise RuntimeError(f"{' '.join(command)}: exit code {code}\n{words.read().decode()}")
    most = used.ru_maxrss * (1 if sys.platform == "darwin" else 1 << 10)
    return seconds, used.ru_utime + used.ru_stime, own or most, most


LOOK_S = 0.01


def own_bytes(pid: int) -> int:
    """What a process has in memory that no file stands for; 0 where the system does not say."""
    try:
        said = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    sizes = (line.split()[1] for line in said.splitlines() if line.startswith("RssAnon:"))
    return int(next(sizes, "0")) << 10


def journal_of(
    parent: Path, requests: int, *, tokens: int, text: int, rate: float, seed: int = 1, hosts: int = 0
) -> RunFolder:
    """The folder of a run that ended, not sealed yet. `seed`: of the latencies; the load is the same. `hosts`: it is as load
    hosts have handed it over, not merged yet."""
    plan = Plan(
        target=Target(url="http://127.0.0.1:1", model="truth"),
        load=Load(rate=rate, requests=requests, warmup=0),
        workload=StandardWorkload(input_tokens=fixed(64), output_tokens=fixed(tokens)),
        instrument=Instrument(workers=WORKERS, hosts=hosts or None),
    )
    folder = RunFolder.create(parent, "long", time.time_ns())
    folder.plan.write_bytes(saved.to_json(plan))
    noise = np.random.default_rng(seed)
    due = phase_instants(plan.load, plan.workload.seed)
    _write_schedule(folder.schedule, due, tokens)
    streams = [folder.fetched / str(host) for host in range(hosts)] or [folder.journal]
    if hosts:
        _write_clocks(folder, streams)
    for number, path in enumerate(streams):
        for worker in range(number * WORKERS, (number + 1) * WORKERS):
            _write_worker(path, worker, len(streams) * WORKERS, due, noise, tokens, text)
    write_facts(folder, synthetic_facts(plan, TokenizerFacts(name="none", kind="none")))
    return folder


def _write_clocks(folder: RunFolder, hosts: Sequence[Path]) -> None:
    """What the conductor knows of the hosts: a clock that runs 20 ppm fast, compared each second for an hour."""
    known = []
    for number, path in enumerate(hosts):
        path.mkdir(parents=True)
        probes = [ClockProbe(ORIGIN + at * 10**9, -20_000 * at, 60_000) for at in range(3600)]
        (path / CLOCK).write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in probes))
        known.append(LoadHost(f"host-{number + 1}", number * WORKERS, WORKERS, environment()))
    folder.fetched_hosts.write_bytes(msgspec.json.encode(known))


def _write_schedule(path: Path, due: Ints, tokens: int) -> None:
    body = b'{"model":"truth","messages":[{"role":"user","content":"%s"}],"max_tokens":8,"stream":true}'
    body = body.replace(b"%s", b"word " * 64)
    values: dict[str, Any] = {
        "phase": int(Phase.MEASURE), "body": body, "nonce_at": -1, "nonce_len": 0, "input_tokens_asked": 64,
        "input_tokens_sent": 64, "output_tokens_asked": tokens, "input_tokens_shared": 0,
        "input_tokens_repeated": 0, "turn": 0, "turns": 1, "think_ns": 0, "own_at": -1, "own_len": 0,
    }  # fmt: skip
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEDULE) as writer:
        for at in range(0, len(due), BATCH):
            here = due[at : at + BATCH]
            columns = _columns(SCHEDULE, len(here), values, index=np.arange(at, at + len(here)), due_ns=here)
            writer.write_batch(pa.record_batch(columns, schema=SCHEDULE))


def _columns(schema: pa.Schema, rows: int, values: dict[str, Any], **given: Any) -> list[pa.Array]:
    """Columns of a schema: `given` as arrays, `values` the same in each row, the others null."""
    found = []
    for field in schema:
        if field.name in given:
            column = given[field.name]
            found.append(column if isinstance(column, pa.Array) else pa.array(column, field.type))
        elif field.name in values:
            found.append(pa.repeat(pa.scalar(values[field.name], field.type), rows))
        else:
            found.append(pa.nulls(rows, field.type))
    return found


def _write_worker(
    journal: Path, worker: int, workers: int, due: Ints, noise: np.random.Generator, tokens: int, text: int
) -> None:
    """The streams of one of so many workers: outcomes in the order of their ends, a batch for each flush, and pulses."""
    rows = np.arange(worker, len(due), workers)
    first = due[rows] + (noise.gamma(4.0, FIRST_MS / 4.0, len(rows)) * 1e6).astype(np.int64)
    ends = first + int(GAP_MS * 1e6) * tokens
    order = np.argsort(ends, kind="stable")
    flushed = np.arange(0, ends.max() + 2 * FLUSH_S * 1e9, FLUSH_S * 1e9)
    edges = np.searchsorted(ends[order], flushed)
    stream = StreamFile(journal / f"worker-{worker}.arrows", OUTCOME, RUN_ID)
    for start, end in pairwise(edges):
        here = order[start:end]
        if len(here):
            stream.append(_outcomes(rows[here], due[rows[here]], first[here], worker, noise, tokens, text))
    stream.close()
    _write_pulses(journal / f"pulse-{worker}.arrows", worker, np.sort(due[rows]), ends[order], tokens)


def _write_pulses(path: Path, worker: int, due: Ints, ends: Ints, tokens: int) -> None:
    at = np.arange(0, int(ends[-1]), 250_000_000)
    sent, finished = np.searchsorted(due, at), np.searchsorted(ends, at)
    values: dict[str, Any] = {
        "worker": worker, "run_delay_ns": 0, "reads": 100, "lag_sum_ns": 1_000_000, "lag_max_ns": 60_000,
        "stall_max_ns": 1_000_000, "clock_offset_ns": 10**18,
    }  # fmt: skip
    stream = StreamFile(path, PULSE, RUN_ID)
    stream.append(
        _columns(
            PULSE,
            len(at),
            values,
            t_ns=ORIGIN + at,
            cpu_ns=at // 10,
            in_flight=sent - finished,
            sent=sent,
            finished=finished,
            events=finished * tokens,
        )
    )
    stream.close()


def _outcomes(
    index: Ints, due: Ints, first: Ints, worker: int, noise: np.random.Generator, tokens: int, text: int
) -> list[pa.Array]:
    count, events = len(index), tokens + 2
    steps = noise.normal(GAP_MS * 1e6, 1e6, (count, events)).astype(np.int64)
    steps[:, 0], steps[:, -1] = 0, 0
    at = (ORIGIN + first)[:, None] + np.cumsum(steps, axis=1)
    kinds = bytes([EventClass.CONTENT] * tokens + [EventClass.FINISH, EventClass.DONE])
    words = (WORDS * (text // len(WORDS) + 2))[:text]
    other = (NAIVE + words)[:text]
    sent = ORIGIN + due + 30_000
    values: dict[str, Any] = {
        "cycle": 0, "phase": int(Phase.MEASURE), "worker": worker, "event_class": kinds, "emitted_ns": [],
        "first_text": 0, "first_visible": 0, "first_answer": 0, "outcome": "ok", "status": 200,
        "finish_reason": "length", "usage_input": 64, "usage_output": tokens, "attempts": 1,
        "merged_event": [], "merged_ns": [],
    }  # fmt: skip
    return _columns(
        OUTCOME, count, values, index=index, t_intended=ORIGIN + due, t_taken=ORIGIN + due + 8_000,
        t_send=sent, t_submit=sent, t_first_byte=at[:, 0], t_end=at[:, -1],
        event_ns=pa.ListArray.from_arrays(
            pa.array(np.arange(count + 1, dtype=np.int32) * events), pa.array(at.ravel())
        ),
        text=pa.array([other if one % 8 == 0 else words for one in index.tolist()], pa.string()),
        lag_ns=noise.integers(5_000, 60_000, count), submit_ns=noise.integers(8_000, 30_000, count),
    )  # fmt: skip


def _seal(path: Path) -> None:
    from inferometer.journal.seal import seal
    from inferometer.run.facts import read_facts

    folder = RunFolder.open(path)
    seal(folder, lambda texts: [None] * len(texts), read_facts(folder).id)


def main(given: Sequence[str]) -> None:
    """See the head."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_record")
    parser.add_argument("requests", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--text", type=int, default=40)
    parser.add_argument("--rate", type=float, default=2_000.0)
    parser.add_argument("--hosts", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seal", type=Path)
    parser.add_argument("--merge", type=Path)
    words = parser.parse_args(given)
    if words.seal is not None:
        _seal(words.seal)
        return
    if words.merge is not None:
        merge_left(RunFolder.open(words.merge))
        return
    sizes = {"tokens": words.tokens, "text": words.text, "hosts": words.hosts}
    for row in measured(words.requests, rate=words.rate, out=words.out, **sizes):
        print(f"{row.label}: {row.value:,.{row.digits}f} {row.unit}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
