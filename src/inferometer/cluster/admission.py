"""How a load host comes to its conductor: the listening socket with a certificate of its own, and the host's way there.

The certificate is signed by nobody (identity.py); the token, which the user carries from one side to the other, has its
fingerprint. The host checks that before it says anything, and the conductor checks the token's secret before it says anything.
"""

from __future__ import annotations

import contextlib
import errno
import queue
import re
import secrets
import socket
import ssl
import threading
import time

import msgspec

from inferometer import __version__
from inferometer.cluster.identity import certificate_of, server_context
from inferometer.cluster.join_token import SECRET_BYTES, JoinToken, fingerprint_of
from inferometer.cluster.link import MOST_BYTES, Link, LinkLost
from inferometer.cluster.messages import PROTOCOL, FromHost, Hello, Refused, ToHost, Welcome
from inferometer.drive.tls import TlsLayer
from inferometer.errors import PeerError, PlanError, Problem

HANDSHAKE_S = 10.0
"""From a connection to the message that shows the token."""
BACKLOG = 256
NAME = re.compile("[A-Za-z0-9_-]{1,40}")
"""Of a load host: it stands in reports and on terminals."""
AT_ONCE = 64
"""Connections that have not yet shown the token."""
SHORT_OF_FILES_S = RETRY_S = 0.5


def new_token() -> JoinToken:
    """A token that nobody has yet. Raises PlanError where cryptography is not installed."""
    secret = secrets.token_bytes(SECRET_BYTES)
    return JoinToken(secret, fingerprint_of(certificate_of(secret)))


HostLink = Link[FromHost]
"""The conductor's link with a load host."""
ConductorLink = Link[ToHost]
"""A load host's link with its conductor."""


class Listener:
    """Where load hosts join. `token`: what they need for it.

    Whoever connects is heard by a thread of its own, AT_ONCE of them at a time: one that says nothing keeps nobody waiting.
    """

    def __init__(self, address: str, token: JoinToken | None = None) -> None:
        """Listen at `HOST:PORT`; port 0: any that is free. `token`: None makes a new one. Raises PlanError."""
        host, port = split(address, "--listen")
        self.token = new_token() if token is None else token
        self._context = server_context(self.token.secret)
        try:
            family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._sock = socket.create_server(where[:2], family=family, backlog=BACKLOG)
        except OSError as cause:
            raise PlanError(
                [Problem("--listen", f"cannot listen at {address} ({cause.strerror})")]
            ) from cause
        self._admitted: queue.SimpleQueue[tuple[HostLink, Hello]] = queue.SimpleQueue()
        self._places = threading.Semaphore(AT_ONCE)
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """What it is bound to."""
        host, port = self._sock.getsockname()[:2]
        return str(host), int(port)

    @property
    def family(self) -> int:
        """AF_INET or AF_INET6."""
        return int(self._sock.family)

    def admitted(self) -> list[tuple[HostLink, Hello]]:
        """Those that have shown the token since the last call."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._admitted.get_nowait())
        return found

    def close(self) -> None:
        """Nobody joins any more."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)  # which ends a thread's accept
        self._sock.close()

    def _listen(self) -> None:
        while True:
            self._places.acquire()
            try:
                sock, peer = self._sock.accept()
            except OSError as cause:
                if cause.errno in (
                    errno.EMFILE,
                    errno.ENFILE,
                    errno.ENOBUFS,
                    errno.ENOMEM,
                    errno.ECONNABORTED,
                ):
                    self._places.release()
                    time.sleep(SHORT_OF_FILES_S)
                    continue
                return  # closed
            threading.Thread(target=self._admit, args=(sock, str(peer[0])), daemon=True).start()

    def _admit(self, sock: socket.socket, peer: str) -> None:
        """Take in a host that shows the token and speaks the same version; tell another why not, once it has shown the
        token."""
        link: HostLink = Link(sock, TlsLayer(self._context, None), msgspec.msgpack.Decoder(FromHost), peer)
        try:
            link.handshake(HANDSHAKE_S)
            said = link.wait(HANDSHAKE_S)
            hello = said[0] if said else None
            if not isinstance(hello, Hello) or not self.token.admits(hello.secret):
                link.send(Refused("the token is of another run, or none"), HANDSHAKE_S)
            elif (why := why_not(hello, __version__)) is not None:
                link.send(Refused(why), HANDSHAKE_S)
            else:
                link.most_bytes = MOST_BYTES
                self._admitted.put((link, hello))
                return
            link.close()
        except LinkLost:
            pass
        finally:
            self._places.release()


def join(address: str, token: JoinToken, hello: Hello, patience_s: float) -> tuple[ConductorLink, Welcome]:
    """The link of a load host with the conductor at `HOST:PORT`, which is tried again and again for so long.

    Raises PlanError where it refuses the token or the version, and PeerError where nobody is there or it is somebody else.
    """
    link = _in_session(address, time.monotonic() + patience_s)
    if not token.is_of(link.peer_certificate or b""):
        link.close()
        raise PlanError([Problem("--join", f"the token is not of the conductor at {address}")])
    link.send(hello)
    said = link.wait(patience_s)
    if not said:
        raise LinkLost(f"{address}: the conductor says nothing")
    first = said[0]
    if isinstance(first, Refused):
        link.close()
        raise PlanError([Problem("--join", f"the conductor at {address} refuses: {first.reason}")])
    if not isinstance(first, Welcome):
        raise LinkLost(f"{address}: the conductor says something else than a welcome")
    link.most_bytes = MOST_BYTES
    link.put_back(said[1:])
    return link, first


def why_not(hello: Hello, version: str) -> str | None:
    """Why a host that has the token cannot take part; None: it can."""
    if hello.protocol != PROTOCOL or hello.version != version:
        return f"it is inferometer {hello.version}, the conductor is {version}: install the same on both"
    if hello.name is not None and NAME.fullmatch(hello.name) is None:
        return "its name must be of letters, digits, - and _"
    return None


def split(address: str, flag: str) -> tuple[str, int]:
    """`HOST:PORT` as its two parts; an IPv6 address in brackets. Raises PlanError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise PlanError(
            [Problem(flag, f"must be HOST:PORT, for example 10.0.0.1:7070, not {address[:60]!r}")]
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _connected(host: str, port: int, until: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection((host, port), timeout=HANDSHAKE_S)
        except OSError as cause:
            if time.monotonic() > until:
                raise PeerError(
                    f"{host}:{port}: no conductor is there ({cause.strerror or cause}). It listens while it waits for its "
                    "hosts, and while a load runs"
                ) from cause
        time.sleep(RETRY_S)


def _in_session(address: str, until: float) -> ConductorLink:
    """A link whose TLS session stands. A conductor that strangers keep busy lets a host wait, and may hear it the next time."""
    host, port = split(address, "--join")
    while True:
        sock = _connected(host, port, until)
        tls = TlsLayer(_pinned(), "conductor")
        link: ConductorLink = Link(sock, tls, msgspec.msgpack.Decoder(ToHost), address)
        try:
            link.handshake(HANDSHAKE_S)
            return link
        except LinkLost as cause:
            if not isinstance(cause.__cause__, TimeoutError) or time.monotonic() > until:
                raise
        time.sleep(RETRY_S)


def _pinned() -> ssl.SSLContext:
    """A client's context that leaves it to the token whom to believe."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made
