"""Servers that mean harm, on a loopback port: answers without an end, one byte at a time, and what no program should obey."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Iterator

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
MOST_BYTES = 512 << 20
"""Even an endless answer ends, should nobody stop it."""
DRIP_S = 0.02

HOSTILE = "".join(
    map(chr, [*range(0x20), 0x7F, *range(0x80, 0xA0), 0xAD, *range(0x200B, 0x2010), *range(0x2028, 0x202F)])
) + "".join(map(chr, [*range(0x2066, 0x206A), 0xFEFF, 0xE0041]))
"""Every control of C0 and C1, DEL, and the format characters that hide text or turn its direction."""
SEQUENCES = (
    "\x1b]0;title\x07 \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1b[31m \x1b[2J "
    "\x9b31m \x9d0;t\x9c \x90q\x9c \x1b(0 \x08\x08 \r"
)
"""Sequences that terminals obey: a title, a link, colours, an erased screen, their eight-bit forms, sixel graphics, another
character set, and a line that is written over."""


def bomb(size: int) -> bytes:
    """A response of a few kilobytes that would inflate to so many bytes of blanks."""
    body = gzip.compress(b" " * size)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def listing(*names: str) -> bytes:
    """A models listing."""
    return json.dumps({"data": [{"id": name} for name in names]}).encode()


@contextlib.contextmanager
def flooding(piece: bytes, *, drip: bool = False, first: bytes = HEAD) -> Iterator[int]:
    """A server that answers any connection with `first`, and then `piece` over and over, until its peer leaves: as fast as that
    reads, or each DRIP_S where it drips. Gives its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve(sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            sock.settimeout(20)
            sock.recv(65536)
            sock.sendall(first)
            sent = 0
            while sent < MOST_BYTES and not over.is_set():
                sock.sendall(piece)
                sent += len(piece)
                if drip:
                    over.wait(DRIP_S)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)
