"""`python -m benchmarks.transports [NAME...]`: every transport against the reference server, beside HTTP/1.1.

1,000 streams in closed loop, with the client on one core and the server on another, under two loads:

| load       | tokens of a stream | what is shown                                                                        |
| ---------- | ------------------ | ------------------------------------------------------------------------------------ |
| accuracy   | 20 ms apart        | error of the mean TTFT and of the P99 ITL, against the server's log; and by how much   |
|            |                    | both are more than over HTTP/1.1 with the same script, which is what a transport costs |
| saturation | 6 ms apart: more   | tokens per second of a client's core, as a ratio to HTTP/1.1, and with TLS as a ratio |
|            | than a core takes  | to the same transport without                                                         |

Tokens per second of a core are tokens per second over the client's share of its core: where that is well below 1 the server was
the limit. A ratio is of two runs of one round; rounds go through the settings in turns forwards and backwards. Shown is the
median, with its range.

Over TLS the server does not know when its kernel received a request. The true TTFT counts from its reading then, so that its
own delay is part of the error, which has no goal.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import instrument, native, reference
from benchmarks.busy import Others
from benchmarks.figure import Figure, Goal, Note, at_least, at_most, notes, rows, table
from benchmarks.loads import Bench, closed, make_certificate
from inferometer.calibration.join import Joined
from inferometer.journal.folder import RunFolder

STREAMS, FEW = 1_000, 10
ACCURACY = ("--ttft-us", "50000", "--ttft-spread-us", "20000", "--interval-us", "20000")
SATURATION = ("--ttft-us", "50000", "--ttft-spread-us", "20000", "--interval-us", "6000")
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Transport:
    """A way to send a load. `flags`: the instrument's, for so many streams on each connection. `serve`: the server's.

    `shares`: several streams may share a connection. `goal`: tokens per second of a core, as a ratio to HTTP/1.1.
    """

    name: str
    flags: Callable[[int], Sequence[str]]
    shares: bool = False
    goal: Goal | None = None
    serve: Sequence[str] = ()


def _shared(streams: int) -> Sequence[str]:
    return ("--streams-per-connection", str(streams))


TRANSPORTS = (
    Transport("HTTP/1.1", lambda _: ()),
    Transport("HTTP/2", lambda streams: ("--http", "2", *_shared(streams)), shares=True, goal=at_least(0.8)),
    Transport(
        "gRPC", lambda streams: ("--api", "vllm-grpc", *_shared(streams)), shares=True, goal=at_least(0.6)
    ),
    Transport("WebSocket", lambda _: ("--api", "websocket"), goal=at_least(0.8)),
)
"""The first is what the others are held against."""
WITH_TLS = at_least(0.6)
TTFT, ITL = at_most(0.05), at_most(0.1)


@dataclass(frozen=True, slots=True)
class Setting:
    """A transport, the streams on each of its connections, and whether there is TLS."""

    transport: Transport
    each: int
    tls: bool

    def label(self, streams: int) -> str:
        """In words."""
        return f"{self.transport.name}, {streams // self.each:,} connections{', TLS' if self.tls else ''}"


@dataclass(frozen=True, slots=True)
class Measured:
    """One setting under one load."""

    run: instrument.Run
    seen: Joined

    @property
    def latency(self) -> dict[str, float]:
        """What the client saw, ms."""
        seen = self.seen
        if not len(seen.ttft) or not len(seen.gaps):
            return {}
        gaps = {f"P{rank} ITL": float(np.percentile(seen.gaps, rank)) for rank in (50, 99)}
        return {"mean TTFT": float(seen.ttft.mean()), **gaps}

    @property
    def core_tokens_s(self) -> float:
        """Tokens per second of a client's core."""
        return self.run.tokens_s / self.run.cpu


def settings(transports: Sequence[Transport], streams: int, *, plain: bool = False) -> list[Setting]:
    """All of these transports, HTTP/1.1 first of all, each without TLS and then with it unless all are to be `plain`."""
    few = max(1, streams // FEW)
    return [
        Setting(one, each, tls)
        for one in dict.fromkeys((TRANSPORTS[0], *transports))
        for each in ((few, 1) if one.shares else (1,))
        for tls in ((False,) if plain else (False, True))
    ]


@dataclass(frozen=True, slots=True)
class Loads:
    """What is measured with: `streams` in closed loop, `requests` of each, `rounds` of all settings. `saturation`: whether
    under that load too; `plain`: without TLS only."""

    cores: native.Cores
    streams: int
    requests: int
    rounds: int
    saturation: bool = True
    plain: bool = False

    def measure(
        self, setting: Setting, script: Sequence[str], certificate: native.Certificate, out: Path
    ) -> Measured:
        """One run against a fresh server."""
        transport = setting.transport
        used = certificate if setting.tls else None
        flags = [*closed(self.streams, self.streams * self.requests), *transport.flags(setting.each)]
        with reference.serving(self.cores, (*script, *transport.serve), used) as server:
            run = instrument.measure(server, self.cores.client, out, *flags)
            return Measured(run, reference.joined(RunFolder.open(run.folder), server))

    def round(self, order: Sequence[Setting], out: Path) -> Iterator[Figure | Note]:
        """All settings once, in this order, under both loads."""
        certificate = make_certificate(out)
        rates: dict[Setting, float] = {}
        latencies: dict[Setting, dict[str, float]] = {}
        for setting in order:
            label = setting.label(self.streams)
            accurate = self.measure(setting, ACCURACY, certificate, out / "accuracy")
            latencies[setting] = accurate.latency
            yield from _errors(label, accurate)
            if not self.saturation:
                continue
            full = self.measure(setting, SATURATION, certificate, out / "saturation")
            rates[setting] = full.core_tokens_s
            yield Figure(f"{label}: tokens at saturation", full.run.tokens_s, "/s", digits=0)
            yield Figure(f"{label}: client's share of its core", full.run.cpu, digits=2)
            yield Figure(f"{label}: tokens of a core", full.core_tokens_s, "/s", digits=0)
        if rates:
            yield from _ratios(rates, self.streams)
        yield from _costs(latencies, self.streams)

    def all(self, transports: Sequence[Transport]) -> Iterator[Figure | Note]:
        """Every round."""
        order = settings(transports, self.streams, plain=self.plain)
        for number in range(self.rounds):
            others = Others()
            with native.scratch() as place:
                yield from self.round(order if number % 2 == 0 else order[::-1], Path(place))
            yield Figure("cores that others kept busy meanwhile", others.cores(), "", at_most(0.1), 2)


def _errors(label: str, measured: Measured) -> Iterator[Figure | Note]:
    """How far the instrument's figures are from the server's log."""
    seen, run = measured.seen, measured.run
    if len(seen.ttft) and len(seen.gaps):
        ttft = float(seen.ttft.mean() - seen.ttft_true.mean())
        gap = float(np.percentile(seen.gaps, 99) - np.percentile(seen.gaps_true, 99))
        yield Figure(f"{label}: error of mean TTFT", ttft, "ms", TTFT if seen.from_kernel else None)
        yield Figure(f"{label}: bound of it in the report, mean TTFT", run.bound("ttft_ms", "mean"), "ms")
        yield Figure(f"{label}: error of P99 ITL", gap, "ms", ITL)
        yield Figure(f"{label}: bound of it in the report, P99 ITL", run.bound("itl_ms", "p99"), "ms")
    yield Figure(f"{label}: tokens that only one side knows", seen.missing, "", at_most(0), 4)
    yield Figure(f"{label}: gaps lost to late reading", seen.merged, "", digits=4)
    yield Note(f"{label}: verdict", run.verdict)
    yield Note(f"{label}: command", " ".join(run.command))


def _ratios(rates: dict[Setting, float], streams: int) -> Iterator[Figure]:
    """Of the tokens per second of a core, in one round."""
    base = rates[Setting(TRANSPORTS[0], 1, tls=False)]
    for setting, rate in rates.items():
        label, transport = setting.label(streams), setting.transport
        if setting.tls:
            plain = rates[Setting(transport, setting.each, tls=False)]
            yield Figure(f"{label}: tokens of a core, TLS : plain", rate / plain, "", WITH_TLS, 2)
        elif transport is not TRANSPORTS[0]:
            against = f"{transport.name} : {TRANSPORTS[0].name}"
            yield Figure(f"{label}: tokens of a core, {against}", rate / base, "", transport.goal, 2)


def _costs(latencies: dict[Setting, dict[str, float]], streams: int) -> Iterator[Figure]:
    """What the client saw more than over HTTP/1.1 without TLS, in one round."""
    base = latencies[Setting(TRANSPORTS[0], 1, tls=False)]
    for setting, latency in latencies.items():
        for name in latency.keys() & base.keys():
            label = f"{setting.label(streams)}: {name}"
            yield Figure(label, latency[name], "ms")
            if setting != Setting(TRANSPORTS[0], 1, tls=False):
                yield Figure(f"{label}, more than {TRANSPORTS[0].name}", latency[name] - base[name], "ms")


def transports(bench: Bench) -> Iterator[Figure | Note]:
    """All of them, as a part of `make bench`."""
    loads = Loads(bench.cores, 50, 2, 1) if bench.quick else Loads(bench.cores, STREAMS, bench.rounds, ROUNDS)
    yield from loads.all(TRANSPORTS)


def main(argv: Sequence[str]) -> int:
    """Measure the transports named; the exit code."""
    names = [one.name for one in TRANSPORTS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transports", description=(__doc__ or "").partition("\n")[2]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(names)}; default all")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--requests", type=int, default=5, help="of each stream (default 5)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of all settings (default {ROUNDS})")
    parser.add_argument("--plain", action="store_true", help="leave out TLS")
    parser.add_argument("--accuracy-only", action="store_true", help="leave out the load that saturates")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - set(names):
        parser.error(f"no such transport: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [one for one in TRANSPORTS if one.name in given.names or not given.names]
    cores, saturation = native.Cores.of_this_machine(), not given.accuracy_only
    loads = Loads(cores, given.streams, given.requests, given.rounds, saturation, given.plain)
    found: list[Figure | Note] = []
    with contextlib.suppress(KeyboardInterrupt):  # what was measured until then is shown
        found.extend(loads.all(chosen))
    print(table([row.cells() for row in rows("transports", [found])]))
    print("\n".join(f"  {note.label}: {note.text}" for note in notes([found])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
