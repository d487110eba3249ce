"""TLS on the server's side, behind the same few calls as a plain non-blocking socket."""

from __future__ import annotations

import socket
import ssl

from inferometer.errors import PlanError, Problem


def context(cert: str, key: str, *, http2: bool = True) -> ssl.SSLContext:
    """A server's context from two PEM files. Raises PlanError if they are not usable."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    try:
        made.load_cert_chain(cert, key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise PlanError([Problem("--tls-cert", f"cannot use {cert!r} with {key!r}: {error}")]) from error
    return made


class TlsSocket:
    """The handshake happens inside the first reads and writes (`SSL_read` does it); a wait is a BlockingIOError."""

    arrived_ns: int | None = None
    """Never known: OpenSSL does the reading."""

    def __init__(self, sock: socket.socket, made: ssl.SSLContext) -> None:
        self._sock = made.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def fileno(self) -> int:
        """The descriptor."""
        return self._sock.fileno()

    def recv(self, size: int, /) -> bytes:
        """One record. OpenSSL reads no further than a record's end, and `size` must hold one (16 KiB): so what is not yet
        decrypted is still in the kernel, where the selector sees it.
        """
        try:
            data = self._sock.recv(size)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as wait:
            raise BlockingIOError from wait
        return data

    def send(self, data: bytes | memoryview, /) -> int:
        """All or nothing: OpenSSL wants the same bytes again after a wait, and the connection's queue does that."""
        try:
            return self._sock.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as wait:
            raise BlockingIOError from wait

    def shutdown(self, how: int, /) -> None:
        """End one direction of the TCP connection."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Give the descriptor back."""
        self._sock.close()
