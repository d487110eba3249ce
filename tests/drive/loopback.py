"""A server on a loopback port, with a thread for each connection, whose protocol is the caller's."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

MOST_CONNECTIONS = 200


@contextlib.contextmanager
def loopback(
    carry: Callable[[socket.socket, int], None], tls: ssl.SSLContext | None = None, *, patience_s: float = 0
) -> Iterator[int]:
    """Serve until the block ends; gives the port. `carry`: one connection, the index-th, which then is closed. `patience_s`:
    how long connections have behind the block to end by themselves, each."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def run_one(sock: socket.socket, index: int) -> None:
        with contextlib.suppress(OSError), sock:
            carried = sock if tls is None else tls.wrap_socket(sock, server_side=True)
            opened.append(carried)
            with carried:
                carry(carried, index)

    def accept() -> None:
        with contextlib.suppress(OSError):
            for index in range(MOST_CONNECTIONS):
                sock, _ = listener.accept()
                sock.settimeout(20)
                opened.append(sock)
                thread = threading.Thread(target=run_one, args=(sock, index), daemon=True)
                thread.start()
                threads.append(thread)  # only now may it be joined

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield listener.getsockname()[1]
        for thread in list(threads) if patience_s else ():
            thread.join(patience_s)
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for sock in opened:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        acceptor.join(10)
        for thread in threads:
            thread.join(10)
