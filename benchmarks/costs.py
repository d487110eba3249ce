"""Benchmarks of what the instrument costs beside the load: to start, to report, in memory over time."""

from __future__ import annotations

import subprocess
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from benchmarks import instrument, native
from benchmarks.figure import Figure, Note, at_most
from benchmarks.loads import SECONDS_A_REQUEST, TOKENS, Bench
from inferometer.documents.run_facts import RUN_SCHEMA, RunFacts
from inferometer.documents.workload import TokenizerFacts
from inferometer.drive.exchange import Exchange
from inferometer.engines.openai import CHAT
from inferometer.journal import schedule as schedules
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import Redactor
from inferometer.journal.schedule import Scheduled
from inferometer.journal.schema import EventClass, Outcome, Phase
from inferometer.journal.seal import seal
from inferometer.journal.writer import Journal
from inferometer.plan import saved
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Load, Plan
from inferometer.plan.target import Target
from inferometer.plan.workload import StandardWorkload
from inferometer.run.facts import write_facts
from inferometer.telemetry.host import environment

MEMORY_STREAMS = 406
"""20,000 tokens a second at 100 tokens in 2.03 s."""
SETTLING_S = 20.0
"""The first part of a memory run, in which pools fill, is left out of the slope."""
MIB = 1 << 20


def start(bench: Bench) -> Iterator[Figure | Note]:
    """From the command line to the version, and to the first planned request at the server, by the server's clock."""
    times = 3 if bench.quick else 10
    for _ in range(times):
        began = time.monotonic_ns()
        subprocess.run([str(instrument.COMMAND), "--version"], check=True, capture_output=True)
        yield Figure("--version", (time.monotonic_ns() - began) / 1e9, "s", at_most(0.2))
    for _ in range(1 if bench.quick else 3):
        with native.serving(bench.binaries, bench.cores, 1_000, 100) as server, bench.scratch() as out:
            began = time.monotonic_ns()
            instrument.measure(server, bench.cores.client, out)
            truth = server.truth()
        # The probe says hello before anything is planned; planned requests begin with a nonce, which is nine digits.
        planned = min(row.arrived_ns for row in truth if row.id[:9].isdecimal())
        yield Figure("command to first contact", (truth[0].arrived_ns - began) / 1e9, "s")
        yield Figure("command to first planned request", (planned - began) / 1e9, "s", at_most(2.0))
    yield Note("plan", "the default workload, 1,000 requests, on the client's core alone")


def report(bench: Bench) -> Iterator[Figure | Note]:
    """`inferometer report` of a sealed run of a million token events."""
    requests = 1_000 if bench.quick else 10_000
    with bench.scratch() as out:
        folder = synthetic_run(out, requests)
        command = [str(instrument.COMMAND), "report", str(folder.path), "--json"]
        began = time.monotonic_ns()
        done = subprocess.run(command, capture_output=True, check=False)
        seconds = (time.monotonic_ns() - began) / 1e9
        if done.returncode not in instrument.JUDGED:
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.decode()}")
        size = (folder.path / "report.html").stat().st_size
    yield Figure(f"report of {requests * TOKENS:,} tokens", seconds, "s", at_most(5.0), 2)
    yield Figure("report.html", size / MIB, "MiB", digits=2)


def synthetic_run(parent: Path, requests: int) -> RunFolder:
    """A sealed run of 1,000 streams in closed loop, made through the journal without a server."""
    streams = min(1_000, requests)
    plan = Plan(
        target=Target(url="http://127.0.0.1:1", model="truth"),
        load=Load(concurrency=streams, requests=requests, warmup=0),
        workload=StandardWorkload(input_tokens=fixed(64), output_tokens=fixed(TOKENS)),
    )
    folder = RunFolder.create(parent, "synthetic", time.time_ns())
    folder.plan.write_bytes(saved.to_json(plan))
    rows = (Scheduled(i, int(Phase.MEASURE), None, b"{}", -1, 0, 64, 64, TOKENS) for i in range(requests))
    schedules.write(folder.schedule, rows)
    journal = Journal(folder.journal, 0, Redactor(), RUN_ID)
    noise = np.random.default_rng(1)
    span = int(SECONDS_A_REQUEST * 1e9)
    for i in range(requests):
        journal.add(_exchange(i, i // streams * span + i % streams * 10_000, noise), Phase.MEASURE)
        if journal.pending == 512:
            journal.flush()
    for i in range(int((requests / streams + 1) * SECONDS_A_REQUEST * 4)):
        at = i * 250_000_000
        sent = min(requests, at // span * streams)
        journal.add_pulse(at, at // 3, 0, 1, 1_000, 1_000, 1_000, 0, streams, sent, sent, sent * TOKENS)
    journal.flush()
    journal.close()
    counted = TokenizerFacts(name="cl100k_base", version="", vocab_size=100_256, source="synthetic")
    facts = synthetic_facts(plan, counted)
    seal(folder, lambda texts: [TOKENS] * len(texts), facts.id)
    write_facts(folder, facts)
    return folder


def _exchange(index: int, begin: int, noise: np.random.Generator) -> Exchange:
    exchange = Exchange(index, 0, begin, b"", b"", 0, CHAT)
    exchange.t_taken = exchange.t_send = exchange.t_submit = begin + 5_000
    times = begin + 50_000_000 + 20_000_000 * np.arange(TOKENS) + noise.integers(0, 2_000_000, TOKENS)
    answer = exchange.answer
    answer.event_ns = array("q", times.tolist())
    answer.event_class = bytearray([EventClass.CONTENT] * TOKENS)
    answer.texts = [" can"] * TOKENS
    answer.first_text = answer.first_visible = answer.first_answer = 0
    answer.input_tokens, answer.output_tokens, answer.finish_reason = 64, TOKENS, "length"
    exchange.t_first_byte, exchange.t_end = int(times[0]), int(times[-1])
    exchange.status, exchange.outcome, exchange.lag_ns = 200, Outcome.OK.value, 10_000
    return exchange


RUN_ID = "synthetic"
"""Of every run that is made up; its journal's streams name it too."""


def synthetic_facts(plan: Plan, tokenizer: TokenizerFacts) -> RunFacts:
    """What run.json says of a run that was made up."""
    now = time.time_ns()
    return RunFacts(
        schema=RUN_SCHEMA,
        id=RUN_ID,
        plan_hash=saved.plan_hash(plan),
        started_wall_ns=now,
        ended_wall_ns=now,
        interrupted=False,
        simulated=False,
        server_metrics=None,
        timestamp_source="kernel",
        dead_workers=(),
        salt=0,
        fingerprint="sha256:" + "0" * 64,
        requests=None,
        warm_prefixes=None,
        classes=(),
        prompts=None,
        texts=None,
        made=None,
        trace=None,
        prompt_format="text",
        length_field="max_tokens",
        template=None,
        model="truth",
        models=("truth",),
        server=None,
        environment=environment(),
        tokenizer=tokenizer,
    )


def memory(bench: Bench) -> Iterator[Figure | Note]:
    """Resident memory of a worker at 20,000 tokens a second: its slope by least squares, and its largest value."""
    seconds = bench.minutes * 60
    flags = ["--concurrency", str(MEMORY_STREAMS), "--duration", f"{seconds:.0f}s", "--warmup", "100"]
    lengths = ["--input-tokens", "64", "--output-tokens", str(TOKENS)]
    samples: list[tuple[float, float]] = []
    with native.serving(bench.binaries, bench.cores, 50_000, 20_000) as server, bench.scratch() as out:
        command = instrument.command_for(server, out, *flags, *lengths)
        with native.on_core(bench.cores.client):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        began = time.monotonic()
        while process.poll() is None:
            time.sleep(0.5)
            if (used := worker_memory(process.pid)) is not None:
                samples.append((time.monotonic() - began, used / MIB))
        assert process.stderr is not None
        words = process.stderr.read().decode()
        tokens = int(server.stats()["tokens"])
    if process.returncode not in instrument.JUDGED:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{words}")
    at, used_mib = np.array(samples).T
    settled = (at > min(SETTLING_S, seconds / 4)) & (at < seconds)
    slope = float(np.polyfit(at[settled], used_mib[settled], 1)[0]) * 60
    yield Figure("slope of resident memory", slope, "MiB/min", at_most(2.0), 2)
    yield Figure("largest resident memory", float(used_mib.max()), "MiB", at_most(200.0), 0)
    yield Figure("tokens", tokens / seconds, "/s", digits=0)
    yield Figure("length of the run", bench.minutes, "min", digits=1)
    yield Note("command", " ".join(command))


def worker_memory(pid: int) -> int | None:
    """Resident bytes of the worker among this command's children; None if there is none now."""
    try:
        for child in psutil.Process(pid).children():
            if "inferometer.drive.worker" in child.cmdline():
                return int(child.memory_info().rss)
    except psutil.Error:
        pass  # it ended while we looked
    return None
