"""Benchmarks that put a load on the whole instrument, every feature on, and hold what it says against the server's truth."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import instrument, native
from benchmarks.figure import Figure, Goal, Note, at_least, at_most
from benchmarks.truth import Joined, joined
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule

TOKENS = 100
TTFT_US, INTERVAL_US = 50_000, 20_000
SECONDS_A_REQUEST = (TTFT_US + (TOKENS - 1) * INTERVAL_US) / 1e6
OPEN_LOOP_RATE = 1000


@dataclass(frozen=True, slots=True)
class Bench:
    """What every benchmark is given. `rounds`: requests a stream in closed loop; `minutes`: length of `memory`."""

    binaries: native.Binaries
    cores: native.Cores
    rounds: int = 5
    minutes: float = 2.0
    quick: bool = False

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for run folders, gone at the end."""
        with native.scratch() as place:
            yield Path(place)


STAMPED_MS = 0.02
"""How far the server's own stamps are from the truth: it takes them around `send`."""


@dataclass(frozen=True, slots=True)
class StreamGoals:
    """Goals of one number of streams; None: shown without a goal."""

    offered_share: Goal | None = None
    tokens_s: Goal | None = None
    ttft_mean: Goal | None = None
    ttft_p99: Goal | None = None
    gap_p99: Goal | None = None
    cpu: Goal | None = None


GOALS = {
    1000: StreamGoals(
        at_least(0.99), at_least(48_000), at_most(0.05), at_most(0.2), at_most(0.1), at_most(0.5)
    ),
    2000: StreamGoals(at_least(0.98), None, at_most(0.1), None, at_most(1.0), at_most(0.85)),
    3000: StreamGoals(tokens_s=at_least(130_000)),
}


def streams(bench: Bench, count: int) -> Iterator[Figure | Note]:
    """`count` streams of 100 tokens, 20 ms apart, in closed loop: both floors, then the instrument, on one server."""
    goals = GOALS[count]
    requests = count * bench.rounds
    with native.serving(bench.binaries, bench.cores, TTFT_US, INTERVAL_US) as server, bench.scratch() as out:
        floor = native.drained(bench.binaries, bench.cores, server, count, requests, TOKENS)
        bare = native.bare(bench.cores, server, count, requests, TOKENS)
        server.reset()
        run = instrument.measure(server, bench.cores.client, out, *closed(count, requests))
        seen = joined(RunFolder.open(run.folder), server.truth())
    yield from _pace(run, count, goals, floor)
    yield Figure("bare Python loop: CPU share", bare.cpu_share, digits=2)
    yield Figure("bare Python loop: CPU a token", bare.us_per_token, "us", digits=2)
    yield from errors(seen, goals)
    yield from _bounds(run, seen)
    yield Note("verdict", run.verdict)
    yield Note("command", " ".join(run.command))


def _bounds(run: instrument.Run, seen: Joined) -> Iterator[Figure]:
    """What the instrument says that its errors are at most, and by how much they are more."""
    for name, statistic, error in (
        ("mean", "mean", seen.error("ttft")),
        ("P99", "p99", seen.error("ttft", 99)),
    ):
        bound = run.bound("ttft_ms", statistic)
        yield Figure(f"bound of the error of {name} TTFT", bound, "ms")
        yield Figure(
            f"error of {name} TTFT beyond its bound", max(0.0, abs(error) - bound), "ms", at_most(STAMPED_MS)
        )


def closed(count: int, requests: int) -> list[str]:
    """The instrument's flags for a closed loop of the fixed script."""
    return [
        *("--concurrency", str(count), "--requests", str(requests), "--warmup", str(min(count, 100))),
        *("--input-tokens", "64", "--output-tokens", str(TOKENS)),
    ]


def _pace(run: instrument.Run, count: int, goals: StreamGoals, floor: native.Drained) -> Iterator[Figure]:
    offered = count * TOKENS / SECONDS_A_REQUEST
    cost = run.cpu / run.tokens_s * 1e6
    yield Figure("tokens", run.tokens_s, "/s", goals.tokens_s, 0)
    yield Figure("tokens, share of offered", run.tokens_s / offered, "", goals.offered_share, 4)
    yield Figure("tokens, ours : floor", run.tokens_s / floor.tokens_s)
    yield Figure("CPU share of the client core", run.cpu, "", goals.cpu, 2)
    yield Figure("CPU a token", cost, "us", digits=2)
    yield Figure("CPU a token, ours : floor", cost / floor.us_per_token, digits=2)
    yield Figure("floor: tokens", floor.tokens_s, "/s", digits=0)
    yield Figure("floor: CPU share", floor.cpu_share, digits=2)


def errors(seen: Joined, goals: StreamGoals) -> Iterator[Figure]:
    """How far the instrument's numbers are from the server's."""
    yield Figure("error of mean TTFT", seen.error("ttft"), "ms", goals.ttft_mean)
    yield Figure("error of P99 TTFT", seen.error("ttft", 99), "ms", goals.ttft_p99)
    yield Figure("error of P99 ITL", seen.error("gaps", 99), "ms", goals.gap_p99)
    yield Figure("true mean TTFT", float(seen.ttft_true.mean()), "ms")
    yield Figure("true P99 TTFT", float(np.percentile(seen.ttft_true, 99)), "ms")
    yield Figure("true P99 ITL", float(np.percentile(seen.gaps_true, 99)), "ms")
    yield Figure("server's own read delay, mean", float(seen.read_delay.mean()), "ms")
    yield Figure("token stamps inside the server's send()", seen.bracketed, "", digits=4)
    yield Figure("requests the server does not know", seen.missing, "", at_most(0), 0)


def one_token(bench: Bench) -> Iterator[Figure | Note]:
    """64 connections, a token a request, no time between: how many requests a second one core carries."""
    requests = 20_000 if bench.quick else 100_000
    flags = ["--concurrency", "64", "--requests", str(requests), "--warmup", "1000"]
    lengths = ["--input-tokens", "16", "--output-tokens", "1"]
    with native.serving(bench.binaries, bench.cores, 0, 0) as server, bench.scratch() as out:
        run = instrument.measure(server, bench.cores.client, out, *flags, *lengths)
        prompt = _mean_body(RunFolder.open(run.folder))
        floor = native.drained(bench.binaries, bench.cores, server, 64, requests, 1, prompt)
    yield Figure("requests", run.requests_s, "/s", at_least(30_000), 0)
    yield Figure("requests, ours : floor", run.requests_s / floor.requests_s)
    yield Figure("CPU share of the client core", run.cpu, "", digits=2)
    yield Figure("CPU a request", run.cpu / run.requests_s * 1e6, "us", digits=1)
    yield Figure("floor: requests", floor.requests_s, "/s", digits=0)
    yield Note("verdict", run.verdict)
    yield Note("command", " ".join(run.command))


def _mean_body(folder: RunFolder) -> int:
    """Bytes that make the floor's requests about as long as ours."""
    schedule = Schedule(folder.schedule)
    rows = range(0, len(schedule), max(1, len(schedule) // 100))
    return max(1, sum(len(schedule.body(row)) for row in rows) // len(rows) - 150)


def open_loop(bench: Bench) -> Iterator[Figure | Note]:
    """How close to its intended instant a request is sent, by our own record and by the server's kernel."""
    seconds = 3 if bench.quick else 10
    for arrival in ("constant", "poisson"):
        flags = [
            "--rate",
            str(OPEN_LOOP_RATE),
            "--arrival",
            arrival,
            "--requests",
            str(OPEN_LOOP_RATE * seconds),
        ]
        lengths = ["--input-tokens", "16", "--output-tokens", "1"]
        with native.serving(bench.binaries, bench.cores, 5_000, 0) as server, bench.scratch() as out:
            run = instrument.measure(server, bench.cores.client, out, *flags, *lengths)
            seen = joined(RunFolder.open(run.folder), server.truth())
        late = run.summary["load"]["lateness_ms"]
        yield Figure(f"{arrival}: lateness P50", late["p50"], "ms")
        yield Figure(f"{arrival}: lateness P99", late["p99"], "ms", at_most(0.1))
        yield Figure(f"{arrival}: lateness max", late["max"], "ms")
        yield Figure(f"{arrival}: at the server, P99", float(np.percentile(seen.sent_late, 99)), "ms")
        yield Figure(f"{arrival}: CPU share", run.cpu, "", digits=2)
        yield Note(f"{arrival}: verdict", run.verdict)


def tls(bench: Bench) -> Iterator[Figure | Note]:
    """500 streams with TLS and without: the same errors, and what the encryption costs."""
    if not bench.binaries.tls:
        yield Note("left out", "the server was built without TLS: OpenSSL's headers are missing (libssl-dev)")
        return
    count = 500
    goals = StreamGoals(ttft_mean=at_most(0.05), ttft_p99=at_most(0.2), gap_p99=at_most(0.1))
    flags = closed(count, count * bench.rounds)
    with bench.scratch() as out:
        certificate = make_certificate(out)
        costs: list[float] = []
        for used in (None, certificate):
            runs = out / ("tls" if used else "plain")
            with native.serving(bench.binaries, bench.cores, TTFT_US, INTERVAL_US, used) as server:
                run = instrument.measure(server, bench.cores.client, runs, *flags)
                seen = joined(RunFolder.open(run.folder), server.truth())
            costs.append(run.cpu / run.tokens_s * 1e6)
        yield Figure("tokens", run.tokens_s, "/s", digits=0)
        yield Figure(
            "tokens, share of offered", run.tokens_s / (count * TOKENS / SECONDS_A_REQUEST), digits=4
        )
        yield Figure("CPU a token, plain", costs[0], "us", digits=2)
        yield Figure("CPU a token, TLS", costs[1], "us", digits=2)
        yield Figure("throughput of a core, TLS : plain", costs[0] / costs[1], "", at_least(0.6), 2)
        yield from errors(seen, goals)
        yield Note("verdict", run.verdict)


def make_certificate(folder: Path) -> native.Certificate:
    """A certificate for 127.0.0.1 and an authority made up for it."""
    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key, root = folder / "chain.pem", folder / "key.pem", folder / "authority.pem"
    chain.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(root))
    return native.Certificate(chain, key, root)
