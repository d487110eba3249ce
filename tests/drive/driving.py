"""Carry requests through the real reactor, in this process, against a scripted peer."""

from __future__ import annotations

import socket
import ssl
import time

from inferometer.drive.connection import Peer
from inferometer.drive.exchange import Exchange
from inferometer.drive.reactor import Reactor
from inferometer.engines.openai import CHAT

PATIENCE_NS = 10_000_000_000


def wire(body: bytes = b"{}", path: bytes = b"/v1/chat/completions") -> bytes:
    """One request's bytes."""
    return b"POST %b HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n%b" % (path, len(body), body)


def exchange_all(
    port: int,
    count: int,
    *,
    at_once: int = 1,
    reuse: bool = True,
    timeout_ns: int = PATIENCE_NS,
    tls: ssl.SSLContext | None = None,
    request: bytes | None = None,
) -> list[Exchange]:
    """Send `count` requests, `at_once` in flight; gives them in the order they ended, each exactly once."""
    ended: list[Exchange] = []
    reactor = Reactor(
        Peer(socket.AF_INET, ("127.0.0.1", port), tls, "localhost"),
        ended.append,
        reuse=reuse,
        connect_timeout_ns=2_000_000_000,
    )
    give_up = time.monotonic_ns() + 2 * PATIENCE_NS
    sent = 0
    try:
        while len(ended) < count:
            now = time.monotonic_ns()
            assert now < give_up, "the reactor lost a request"
            while sent < count and sent - len(ended) < at_once:
                reactor.submit(Exchange(sent, 0, now, request or wire(), now + timeout_ns, CHAT), now)
                sent += 1
            reactor.wait(now + 5_000_000, exact=False)
            reactor.expire(time.monotonic_ns())
    finally:
        reactor.close()
    assert reactor.vitals.in_flight == 0
    return ended
