"""The seam between the reactor and a protocol: a channel is the protocol's state on one transport, without I/O and clock.

    reactor -- Exchange --> Channel -- Write --> Transport (socket, TLS, stamps)
    reactor <-- ended, unprocessed -- Channel <-- bytes with their stamp -- Transport

| the channel            | `capacity`     | `exchanges` | `closing` | the reactor                                             |
| ---------------------- | -------------- | ----------- | --------- | ------------------------------------------------------- |
| before `opened`        | 0              | none        | no        | connects; requests opened for it wait                   |
| greeting its peer      | 0              | none        | no        | passes bytes on until there is capacity or none in time |
| open                   | 1 or more      | any         | no        | submits; an HTTP/1.1 connection is idle in this state   |
| full                   | 0              | 1 or more   | no        | submits elsewhere: to another channel or a new one      |
| closing                | 0              | 1 or more   | yes       | lets what it carries end                                |
| closed                 | 0              | none        | yes       | closes the transport                                    |

A channel calls its exchanges: `head`, `data` and `end`, or `event` where the protocol itself frames messages, or `fail`. It
sets `t_first_byte` and `lag_ns`. The transport sets `t_send` and `t_submit`, from the marks on what the channel writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import msgspec

from inferometer.drive.exchange import Exchange


class RequestHead(msgspec.Struct, frozen=True):
    """What all requests of a class have in common. `path` is the whole target, header names are in any case.

    `headers` may hold a secret: a head is never written down.
    """

    method: str
    path: str
    headers: dict[str, str]
    scheme: str = "http"


class Refusal(msgspec.Struct, frozen=True):
    """A whole response of HTTP in which a server declines to speak a protocol. `headers`: by lower-case name."""

    status: int
    headers: dict[bytes, bytes]


Write = tuple[bytes, Exchange | None, bool]
"""Bytes for the transport; whose request they belong to, if anyone's; whether that request ends with them."""


class Channel(Protocol):
    """What the reactor asks of a protocol.

    The reactor empties the three lists: `outgoing`, what to write; `ended`, exchanges that are no longer carried, whatever
    their outcome; `unprocessed`, exchanges that are no longer carried and that the peer has not begun: by its own word or by
    the protocol's rules, so that they can be sent again, or, as `ChannelKind.unnumbered` says, perhaps.
    """

    outgoing: list[Write]
    ended: list[Exchange]
    unprocessed: list[Exchange]

    @property
    def capacity(self) -> int:
        """How many more exchanges it takes now."""

    @property
    def closing(self) -> bool:
        """It takes no more, and its transport is to be closed once it carries none."""

    @property
    def fault(self) -> str:
        """Why it is closing, in words for those that wait for it; empty: the reactor knows as much."""

    @property
    def refusal(self) -> Refusal | None:
        """How the peer declined the protocol, if it did so by HTTP, for those that wait for it; `fault` says it in words."""

    @property
    def exchanges(self) -> Collection[Exchange]:
        """Those it carries now. A view may be given: whoever ends some of them goes through a copy."""

    def opened(self) -> None:
        """The transport stands. A protocol with a greeting of its own gets capacity later, by `feed`."""

    def submit(self, exchange: Exchange) -> None:
        """Carry this exchange; only while there is capacity."""

    def feed(self, data: bytes, at: int, lag: int, /) -> bool:
        """Take bytes that arrived at `at` and were read `lag` ns later. Never raises.

        True if there is something to do: a list is not empty, `capacity` has grown or `closing` is set. Tokens alone are no
        reason, and this is called for every read.
        """

    def cancel(self, exchange: Exchange, /) -> None:
        """Stop carrying this exchange; the reactor ends it."""

    def peer_closed(self, at: int, /) -> None:
        """The peer has sent its last byte in order. What this completes is `ended`; what is still carried is lost."""

    def close(self) -> None:
        """Free everything: no circle of references may be left, since nobody collects garbage while measuring."""


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """A protocol. `alpn`: its names in TLS, of which the server has to choose one if `agreed`. `places`: exchanges that one
    channel is expected to carry at once. `unnumbered`: its closes do not say which requests the peer has begun, so that an
    `unprocessed` one is sent again only if the close may have crossed it (keep_alive.py).

    `prepare` makes the part of a request's bytes that is the same for a whole class, once and before the start.
    """

    alpn: tuple[str, ...]
    places: int
    open: Callable[[], Channel]
    prepare: Callable[[RequestHead], bytes]
    agreed: bool = False
    unnumbered: bool = False
