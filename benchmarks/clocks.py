"""`python -m benchmarks.clocks [TRIALS]`: the offset that clock probes find, against the truth. Needs root, on Linux.

A host is a network namespace behind a veth, and a process in a time namespace whose monotonic clock is ahead of this machine's
by a known number of seconds (`unshare --time --monotonic N`): the true offset is -N s exactly, and there is no drift. Between
host and conductor there may be a relay of our own, since the kernel here has no netem:

| path       | there                          | back                | lost in either direction |
| ---------- | ------------------------------ | ------------------- | ------------------------ |
| quiet      | the veth alone                 | the veth alone      | nothing                  |
| delayed    | 2 ms                           | 2 ms                | nothing                  |
| jitter     | 1 ms + exponential, mean 2 ms   | the same            | nothing                  |
| lossy      | 1 ms + exponential, mean 1 ms   | the same            | 30 %                     |
| asymmetric | 5 ms                           | 0.2 ms              | nothing                  |

Datagrams overtake each other wherever there is jitter. A trial is within its bound if fit and truth differ by no more at the
first probe, at the last, and by no more than the grown bound 2 s later.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import random
import select
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from inferometer.cluster.clock_fit import ClockFit, ClockProbe, fit
from inferometer.cluster.clock_probe import ClockResponder, probe_bursts

ROOT = Path(__file__).parent.parent
SECOND = 1_000_000_000
BURSTS = 5
PAUSE_S = 0.05
LIMIT_S = 60.0
"""For a trial that takes one or two."""


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of a path: s that each datagram takes, the mean of what it takes in addition, and the share lost."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    lost: float = 0.0

    def takes(self, chance: random.Random) -> float | None:
        """Seconds that the next datagram takes; None if it is lost."""
        if chance.random() < self.lost:
            return None
        return self.delay_s + (chance.expovariate(1 / self.jitter_s) if self.jitter_s else 0.0)


@dataclass(frozen=True, slots=True)
class Route:
    """Both directions. `relayed` False: no relay in between."""

    there: Way = field(default_factory=Way)
    back: Way = field(default_factory=Way)
    relayed: bool = True


ROUTES = {
    "quiet": Route(relayed=False),
    "delayed": Route(Way(0.002), Way(0.002)),
    "jitter": Route(Way(0.001, 0.002), Way(0.001, 0.002)),
    "lossy": Route(Way(0.001, 0.001, 0.3), Way(0.001, 0.001, 0.3)),
    "asymmetric": Route(Way(0.005), Way(0.0002)),
}


class Relay:
    """Takes datagrams at `address`, passes them on to `target` and its answers back, each as its way has it."""

    def __init__(self, address: str, target: tuple[str, int], route: Route, seed: int) -> None:
        self._front = self._socket()
        self._front.bind((address, 0))
        self.address: tuple[str, int] = self._front.getsockname()
        self._target, self._route, self._chance = target, route, random.Random(seed)
        self._due: list[tuple[float, int, socket.socket, bytes, Any]] = []
        self._number = 0
        self._backs: dict[Any, socket.socket] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        return made

    def close(self) -> None:
        """End the thread; what is under way is lost."""
        self._closing.set()
        self._thread.join()
        for one in (self._front, *self._backs.values()):
            one.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            wait = 0.05 if not self._due else max(0.0, min(0.05, self._due[0][0] - time.monotonic()))
            senders = {back: host for host, back in self._backs.items()}
            for ready in select.select([self._front, *senders], [], [], wait)[0]:
                self._take(ready, senders.get(ready))
            while self._due and self._due[0][0] <= time.monotonic():
                _, _, out, data, to = heapq.heappop(self._due)
                with contextlib.suppress(OSError):
                    out.sendto(data, to)

    def _take(self, ready: socket.socket, host: Any) -> None:
        with contextlib.suppress(OSError):
            while True:
                data, sender = ready.recvfrom(2048)
                if host is None:
                    if sender not in self._backs:
                        self._backs[sender] = self._socket()
                    self._pass(self._route.there, self._backs[sender], data, self._target)
                else:
                    self._pass(self._route.back, self._front, data, host)

    def _pass(self, way: Way, out: socket.socket, data: bytes, to: Any) -> None:
        takes = way.takes(self._chance)
        if takes is not None:
            self._number += 1
            heapq.heappush(self._due, (time.monotonic() + takes, self._number, out, data, to))


@dataclass(frozen=True, slots=True)
class Host:
    """A network namespace with an address of its own, and the conductor's in it."""

    namespace: str
    conductor: str

    def run(self, ahead_s: int, *arguments: str, given: str) -> str:
        """What a Python program prints there whose monotonic clock is ahead by so many seconds. Raises CalledProcessError."""
        inside = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", str(ahead_s), sys.executable]
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace, *inside, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
            cwd=ROOT,
        )
        return done.stdout


def lacking() -> str | None:
    """Why there can be no such host here; None if there can be."""
    if sys.platform != "linux":
        return "network and time namespaces are Linux's"
    if os.geteuid() != 0:
        return "namespaces of network and time need root"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "needs the commands ip (iproute2) and unshare (util-linux)"
    try:
        with host(0):
            _run("unshare", "--time", "--fork", "--monotonic", "1", "true")
    except (OSError, subprocess.SubprocessError) as cause:
        return f"no namespaces of network and time here: {cause}"
    return None


@contextlib.contextmanager
def host(number: int) -> Iterator[Host]:
    """A namespace that is joined to this one by a veth while the block lasts. `number`: of this process's hosts, 0 to 63."""
    name = f"ifm{os.getpid() % 100_000}-{number}"
    network = f"198.18.{os.getpid() % 256}"  # RFC 2544: for benchmarks of networks
    ours, theirs = f"{network}.{4 * number + 1}", f"{network}.{4 * number + 2}"
    _run("ip", "netns", "add", name)
    try:
        _run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "address", "add", f"{ours}/30", "dev", name)
        _run("ip", "link", "set", name, "up")
        _run("ip", "-n", name, "address", "add", f"{theirs}/30", "dev", "eth0")
        _run("ip", "-n", name, "link", "set", "eth0", "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")
        yield Host(name, ours)
    finally:
        _run("ip", "netns", "delete", name)


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)


@dataclass(frozen=True, slots=True)
class Trial:
    """One fit against the truth. `error_ns`: the larger of those at both ends; `later_ns`, `later_bound_ns`: 2 s later."""

    fit: ClockFit
    error_ns: int
    later_ns: int
    later_bound_ns: int

    @property
    def within(self) -> bool:
        """Whether the errors are within what was said of them."""
        return self.error_ns <= self.fit.bound_ns and self.later_ns <= self.later_bound_ns


def trial(at: Host, route: Route, ahead_s: int, seed: int, bursts: int = BURSTS) -> Trial | None:
    """Probe a host whose clock is ahead by so many seconds; None if no probe came back."""
    key = random.Random(seed).randbytes(32)
    with contextlib.ExitStack() as stack:
        responder = stack.enter_context(contextlib.closing(ClockResponder((at.conductor, 0), key)))
        target = at.conductor, responder.port
        if route.relayed:
            relay = Relay(at.conductor, target, route, seed)
            target = stack.enter_context(contextlib.closing(relay)).address
        arguments = ("-m", "benchmarks.clocks", "host", target[0], str(target[1]), str(bursts))
        printed = at.run(ahead_s, *arguments, given=key.hex())
    probes = msgspec.json.decode(printed, type=list[ClockProbe])
    return against(fit(probes), -ahead_s * SECOND) if probes else None


def against(found: ClockFit, offset_ns: int) -> Trial:
    """A fit against a true offset without drift."""

    def error(at: int) -> int:
        return abs(found.conductor_ns(at) - at - offset_ns)

    later = found.last_ns + 2 * SECOND
    ends = max(error(found.first_ns), error(found.last_ns))
    return Trial(found, ends, error(later), found.bound_at(later))


def main(arguments: Sequence[str]) -> None:
    """The trials, in turn over all paths, and what they came to."""
    if arguments[:1] == ["host"]:
        address, port, bursts = arguments[1], int(arguments[2]), int(arguments[3])
        key = bytes.fromhex(sys.stdin.read())
        probes = probe_bursts((address, port), key, bursts, pause_s=PAUSE_S)
        print(json.dumps(msgspec.to_builtins(probes)))
        return
    why = lacking()
    if why is not None:
        sys.exit(why)
    trials = int(arguments[0]) if arguments else 200
    chance = random.Random(4)
    found: dict[str, list[Trial | None]] = {name: [] for name in ROUTES}
    with host(1) as at:
        for number in range(trials):
            name = list(ROUTES)[number % len(ROUTES)]
            found[name].append(trial(at, ROUTES[name], chance.randint(0, 1_000_000), number))
    print("Errors and bounds in ms, P50 and the largest; 2 s later: the largest bound.\n")
    print("| path | trials | within the bound | error | bound | 2 s later |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, each in found.items():
        print(_row(name, each))
    every = [one for each in found.values() for one in each]
    within = sum(one is not None and one.within for one in every)
    print(f"\nwithin the printed bound: {within} of {len(every)} trials (goal: all)")
    quiet = max(one.fit.bound_ns for one in found["quiet"] if one is not None) / 1e6
    print(f"the widest bound on a quiet veth: {quiet:.4f} ms (goal: under 0.1 ms)")


def _row(name: str, each: Sequence[Trial | None]) -> str:
    whole = [one for one in each if one is not None]
    errors = [one.error_ns / 1e6 for one in whole]
    bounds = [one.fit.bound_ns / 1e6 for one in whole]
    later = max(one.later_bound_ns for one in whole) / 1e6
    within = sum(one.within for one in whole)
    return (
        f"| {name} | {len(each)} | {within} | {statistics.median(errors):.4f}, {max(errors):.4f} | "
        f"{statistics.median(bounds):.4f}, {max(bounds):.4f} | {later:.3f} |"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
