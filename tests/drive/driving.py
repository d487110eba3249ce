"""Carry requests through the real reactor, in this process, against a scripted peer."""

from __future__ import annotations

import socket
import ssl
import time

from inferometer.drive.channel import ChannelKind, RequestHead
from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import HTTP1
from inferometer.drive.keep_alive import KeepAlive
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer
from inferometer.engines.openai import CHAT

PATIENCE_NS = 10_000_000_000


HEAD = RequestHead("POST", "/v1/chat/completions", {"Host": "test"})


def exchange(
    index: int, now: int, *, body: bytes = b"{}", timeout_ns: int = PATIENCE_NS, kind: ChannelKind = HTTP1
) -> Exchange:
    """One request that is due now."""
    return Exchange(index, 0, now, kind.prepare(HEAD), body, now + timeout_ns, CHAT)


def exchange_all(
    port: int,
    count: int,
    *,
    at_once: int = 1,
    reuse: bool = True,
    timeout_ns: int = PATIENCE_NS,
    tls: ssl.SSLContext | None = None,
    body: bytes = b"{}",
    kind: ChannelKind = HTTP1,
    keep_alive: KeepAlive | None = None,
) -> list[Exchange]:
    """Send `count` requests, `at_once` in flight; gives them in the order they ended, each exactly once."""
    ended: list[Exchange] = []
    reactor = Reactor(
        Peer(socket.AF_INET, ("127.0.0.1", port), tls, "localhost"),
        kind,
        ended.append,
        reuse=reuse,
        # With the usual one a busy machine's server would close too late.
        keep_alive=keep_alive or KeepAlive(PATIENCE_NS),
        connect_timeout_ns=2_000_000_000,
    )
    give_up = time.monotonic_ns() + 2 * PATIENCE_NS
    sent = 0
    try:
        while len(ended) < count:
            now = time.monotonic_ns()
            assert now < give_up, "the reactor lost a request"
            while sent < count and sent - len(ended) < at_once:
                reactor.submit(exchange(sent, now, body=body, timeout_ns=timeout_ns, kind=kind), now)
                sent += 1
            reactor.wait(now + 5_000_000, exact=False)
            reactor.expire(time.monotonic_ns())
    finally:
        reactor.close()
    assert reactor.vitals.in_flight == 0
    return ended
