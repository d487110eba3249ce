"""`python -m benchmarks.bare PORT STREAMS REQUESTS TOKENS`: the floor of a client in Python.

epoll, recvmsg with the kernel's stamp, one look at how the bytes end. No HTTP, no events, no JSON, no record: what is over and
above this is what the instrument's decoding and bookkeeping cost, and what is below it no Python client can reach. Prints the
same JSON as drain.c.
"""

from __future__ import annotations

import gc
import json
import resource
import select
import socket
import struct
import sys
import time

SO_TIMESTAMPNS = 35
END = b"0\r\n\r\n"


def request(tokens: int) -> bytes:
    """One streamed request."""
    body = json.dumps({"model": "m", "prompt": "x" * 32, "max_tokens": tokens, "stream": True}).encode()
    return b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def connect(port: int, streams: int) -> dict[int, socket.socket]:
    """That many connections, by descriptor."""
    found = {}
    for _ in range(streams):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setblocking(False)
        found[sock.fileno()] = sock
    return found


def drain(socks: dict[int, socket.socket], requests: int, wire: bytes) -> int:
    """Closed loop until `requests` answers have ended; how many reads it took."""
    poller = select.epoll()
    for fd, sock in socks.items():
        poller.register(fd, select.EPOLLIN)
        sock.send(wire)
    left, done, reads, last = requests - len(socks), 0, 0, 0
    buffer = memoryview(bytearray(1 << 16))
    buffers, unpack = [buffer], struct.Struct("qq").unpack
    while done < requests:
        for fd, _ in poller.poll(-1, 32):
            size, ancillary, _, _ = socks[fd].recvmsg_into(buffers, 64)
            seconds, nanoseconds = unpack(ancillary[0][2]) if ancillary else (0, 0)
            last = seconds * 1_000_000_000 + nanoseconds
            data = buffer[:size].tobytes()
            reads += 1
            if data[-5:] == END:
                done += 1
                if left > 0:
                    left -= 1
                    socks[fd].send(wire)
    assert last
    return reads


def main(port: int, streams: int, requests: int, tokens: int) -> None:
    """Connect, drain, print."""
    socks = connect(port, streams)
    gc.disable()
    wire = request(tokens)
    used, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    reads = drain(socks, requests, wire)
    seconds, now = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    total = requests * tokens
    said = {
        "seconds": seconds,
        "cpu_s": cpu,
        "cpu_share": cpu / seconds,
        "tokens": total,
        "tokens_s": total / seconds,
        "requests_s": requests / seconds,
        "reads": reads,
        "us_per_read": cpu / reads * 1e6,
        "us_per_token": cpu / total * 1e6,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
