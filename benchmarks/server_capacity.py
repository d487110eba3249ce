"""How many tokens a second the reference server puts out on one core, and how close to the model's instants.

    python benchmarks/server_capacity.py [--streams N] [--tokens N] [--repeat N] [--drain PATH]

Two loads, each against a fresh server pinned to the first core, with the client on the last:

capacity   N streams whose tokens are due faster than one core can send them; the rate is tokens over the time from the first to
           the last `send`, by the server's own truth log
closeness  20,000 tokens a second in 16 streams, a step of 0.8 ms; lateness is the instant after a token's `send` less the
           model's instant. Beside it a bare loop that sleeps and spins to the same instants and does nothing else: what of
           it is the machine's

`--drain` names a client program called as `PATH PORT STREAMS REQUESTS TOKENS` that reads that many streamed chats to their end.
Without it a small Python client does the same; where that is slower than the server, the capacity shown is a lower bound.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import selectors
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from inferometer.server.clock import Alarm
from inferometer.server.http import LEAD_NS

_CORES = (
    sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
)  # before anything is pinned
_END = b"0\r\n\r\n"
_PROMPTS_FOR_NOTHING = (
    "--set",
    "prefill_base=1us",
    "--set",
    "prefill_per_token=0us",
    "--set",
    "token_budget=100000",
)
_CAPACITY = (*_PROMPTS_FOR_NOTHING, "--set", "step_per_request=0us")
_STREAMS, _STEP_US, _LONG = 16, 800, 500
_CLOSENESS = (
    *_PROMPTS_FOR_NOTHING,
    *("--set", "jitter=0", "--set", "step_per_request=0us", "--set", f"step_base={_STEP_US}us"),
)
_BARE_TURNS = 6000


@dataclass(frozen=True)
class Outcome:
    """One repetition: tokens a second, server CPU a token (us), lateness of tokens (us) in ascending order."""

    rate: float
    cpu_us: float
    late_us: list[float]

    def late(self, share: float) -> float:
        """The lateness that this share of tokens does not exceed."""
        return self.late_us[min(len(self.late_us) - 1, int(share * len(self.late_us)))]


def pin(pid: int, core: int) -> None:
    """Keep a process on one core, where the system can."""
    if _CORES:
        os.sched_setaffinity(pid, {_CORES[core]})


def keep_off_first(pid: int) -> None:
    """Keep a process and what it starts off the server's core, where the system can and there is another."""
    if _CORES[1:]:
        os.sched_setaffinity(pid, set(_CORES[1:]))


@contextlib.contextmanager
def server(*flags: str) -> Iterator[tuple[int, psutil.Process]]:
    """A reference server on the first core: its port and its process."""
    command = [
        sys.executable,
        "-m",
        "inferometer.server",
        "--model",
        "truth",
        "--until-stdin-closes",
        *("--set", "max_batch=4096"),
    ]
    with subprocess.Popen(
        [*command, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        pin(process.pid, 0)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30):
            pass  # the tokenizer is loaded now
        yield port, psutil.Process(process.pid)
        assert process.stdin is not None
        process.stdin.close()


def read_streams(port: int, streams: int, requests: int, tokens: int) -> None:
    """The Python client: as many connections, each sending the next request when an answer has ended."""
    message = {
        "model": "truth",
        "stream": True,
        "max_tokens": tokens,
        "messages": [{"role": "user", "content": "hello"}],
    }
    body = json.dumps(message).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
    selector = selectors.DefaultSelector()
    for _ in range(min(streams, requests)):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(sock, selectors.EVENT_READ)
    started = [key.fileobj for key in selector.get_map().values()]
    for fileobj in started:
        assert isinstance(fileobj, socket.socket)
        fileobj.sendall(request)
    begun, ended = len(started), 0
    while ended < requests:
        for key, _ in selector.select():
            assert isinstance(key.fileobj, socket.socket)
            if key.fileobj.recv(1 << 16).endswith(_END):
                ended += 1
                if begun < requests:
                    begun += 1
                    key.fileobj.sendall(request)
    for key in list(selector.get_map().values()):
        selector.unregister(key.fileobj)
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()


def measure(flags: tuple[str, ...], streams: int, requests: int, tokens: int, drain: str | None) -> Outcome:
    """One repetition of one load."""
    with server(*flags) as (port, process):
        before = process.cpu_times()
        if drain is None:
            read_streams(port, streams, requests, tokens)
        else:
            arguments = [drain, *map(str, (port, streams, requests, tokens))]
            subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, timeout=300)
        after = process.cpu_times()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/inferometer/truth", timeout=60) as response:
            rows = [json.loads(line) for line in response.read().splitlines()]
    sent = sorted(instant for row in rows for instant in row["sent_ns"])
    late = sorted((s - m) / 1e3 for row in rows for s, m in zip(row["sent_ns"], row["model_ns"], strict=True))
    assert len(sent) == requests * tokens
    cpu = (after.user + after.system) - (before.user + before.system)
    return Outcome(len(sent) / ((sent[-1] - sent[0]) / 1e9), cpu / len(sent) * 1e6, late)


def bare_loop() -> Outcome:
    """What is left of the lateness when nothing is served: a timer, a spin to each instant, the clock. On the first core."""
    pin(0, 0)
    alarm, selector = Alarm(), selectors.DefaultSelector()
    selector.register(alarm.fd, selectors.EVENT_READ)
    late: list[float] = []
    due = time.monotonic_ns()
    for _ in range(_BARE_TURNS):
        due = max(due + _STEP_US * 1000, time.monotonic_ns() + LEAD_NS)
        alarm.set(due - LEAD_NS)
        selector.select()
        while time.monotonic_ns() < due:
            pass
        late.append((time.monotonic_ns() - due) / 1e3)
    selector.close()
    alarm.close()
    pin(0, -1)
    return Outcome(0.0, 0.0, sorted(late))


def main() -> None:
    """Run both loads and print what came of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--tokens", type=int, default=200, help="tokens a request; two requests a stream")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--drain", metavar="PATH", help="client program to use in place of the Python one")
    given = parser.parse_args()
    pin(0, -1)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(
        f"machine   {platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, load {load:.1f}"
    )
    print(
        f"python    {platform.python_version()}, client {given.drain or 'Python'}, {time.strftime('%Y-%m-%d %H:%M')}"
    )
    step_us = max(1, given.streams * 1_000_000 // 200_000)  # 200,000 tokens a second are due
    runs = [
        measure(
            (*_CAPACITY, "--set", f"step_base={step_us}us"),
            given.streams,
            2 * given.streams,
            given.tokens,
            given.drain,
        )
        for _ in range(given.repeat)
    ]
    rates = [run.rate for run in runs]
    best = max(runs, key=lambda run: run.rate)
    print(
        f"capacity  {given.streams} streams: best {max(rates):,.0f} tokens/s ({max(rates) / 20_000:.1f} of 20,000), "
        f"median {statistics.median(rates):,.0f}; {best.cpu_us:.1f} us of CPU a token"
    )
    for _ in range(given.repeat):
        bare = bare_loop()
        seen = measure(_CLOSENESS, _STREAMS, 4 * _STREAMS, _LONG, given.drain)
        within = sum(late <= 200 for late in seen.late_us) / len(seen.late_us)
        print(
            f"closeness {seen.rate:,.0f} tokens/s: lateness p50 {seen.late(0.5):.0f} us, p90 {seen.late(0.9):.0f}, "
            f"p99 {seen.late(0.99):.0f}; {within:.1%} within 0.2 ms; {seen.cpu_us:.1f} us of CPU a token. "
            f"Bare loop: p50 {bare.late(0.5):.0f}, p90 {bare.late(0.9):.0f}, p99 {bare.late(0.99):.0f}"
        )


if __name__ == "__main__":
    main()
