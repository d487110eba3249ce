"""A network with a known delay each way: two namespaces, joined by a relay of Ethernet frames between two veth pairs.

A relay of streams would end TCP itself, and its handshakes would be those of loopback. This one carries each packet on by
itself, no sooner than its delay after it came. Needs root, `ip` and Linux; `DelayedLink` skips the test in words elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

CLIENT, SERVER = "10.213.7.1", "10.213.7.2"
_FRAME_BYTES = 1 << 17
_OUTGOING = 4  # <linux/if_packet.h>: PACKET_OUTGOING
_SOL_PACKET, _PACKET_VNET_HDR, _ETH_P_ALL = 263, 15, 3


@dataclass(frozen=True, slots=True)
class DelayedLink:
    """The prefixes of commands that run at its two ends, where the addresses are CLIENT and SERVER."""

    client: tuple[str, ...]
    server: tuple[str, ...]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


@contextlib.contextmanager
def delayed_link(there_s: float, back_s: float) -> Iterator[DelayedLink]:
    """A link whose packets take at least so long from the client to the server, and back."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and `ip` for network namespaces")
    names = {end: f"ifm-{os.getpid()}-{end}" for end in ("client", "server", "relay")}
    with contextlib.ExitStack() as stack:
        try:
            for name in names.values():
                _ip("netns", "add", name)
                stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)
            for end, address in (("client", CLIENT), ("server", SERVER)):
                inside = ("-n", names[end])
                _ip(*inside, "link", "add", "end0", "type", "veth", "peer", end, "netns", names["relay"])
                _ip(*inside, "addr", "add", f"{address}/24", "dev", "end0")
                _ip(*inside, "link", "set", "lo", "up")
                _ip(*inside, "link", "set", "end0", "up")
                _ip("-n", names["relay"], "link", "set", end, "up", "promisc", "on")
        except (subprocess.CalledProcessError, OSError) as cause:
            pytest.skip(f"no network namespaces here: {cause}")
        relay = subprocess.Popen(
            [*_in(names["relay"]), sys.executable, __file__, str(there_s), str(back_s)],
            stdout=subprocess.PIPE,
        )
        stack.callback(_end, relay)
        assert relay.stdout is not None
        assert relay.stdout.readline() == b"ready\n"
        yield DelayedLink(_in(names["client"]), _in(names["server"]))


def _in(name: str) -> tuple[str, ...]:
    return ("ip", "netns", "exec", name)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(30)


def _interface(name: str) -> socket.socket:
    # With the header of offloads: the frames of a veth pair have no checksums yet, and may hold several packets.
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    sock.bind((name, _ETH_P_ALL))
    sock.setblocking(False)
    return sock


def _relay(there_s: float, back_s: float) -> None:
    """Carry frames on, each at its due instant or later, until the process is ended."""
    ends = {name: _interface(name) for name in ("client", "server")}
    ways = {
        ends["client"]: (ends["server"], there_s, deque[tuple[float, bytes]]()),
        ends["server"]: (ends["client"], back_s, deque[tuple[float, bytes]]()),
    }
    print("ready", flush=True)
    while True:
        waiting = [way[2][0][0] for way in ways.values() if way[2]]
        timeout = max(0.0, min(waiting) - time.monotonic()) if waiting else None
        for sock in select.select(list(ways), [], [], timeout)[0]:
            with contextlib.suppress(BlockingIOError):
                frame, origin = sock.recvfrom(_FRAME_BYTES)
                if origin[2] != _OUTGOING:
                    ways[sock][2].append((time.monotonic() + ways[sock][1], frame))
        for other, _, frames in ways.values():
            while frames and frames[0][0] <= time.monotonic():
                with contextlib.suppress(OSError):  # one that finds no room is lost, as elsewhere
                    other.send(frames.popleft()[1])


if __name__ == "__main__":
    _relay(float(sys.argv[1]), float(sys.argv[2]))
