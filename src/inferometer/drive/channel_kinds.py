"""The protocols that can be measured, by name. One more is a file with a Channel, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inferometer.drive.channel import ChannelKind, RequestHead
from inferometer.drive.http1_channel import HTTP1
from inferometer.engines.interface import Interface

Protocol = Literal["http/1.1", "http/2", "ws"]

BY_VERSION: Mapping[str, Protocol] = {"1.1": "http/1.1", "2": "http/2"}
"""The protocol of a plan's `target.http`."""


def protocol_of(interface: Interface, version: str) -> Protocol:
    """The protocol of an interface, where the plan has this version of HTTP."""
    return "ws" if interface.over_websocket else BY_VERSION[version]


def kind_of(protocol: Protocol, streams: int, head: RequestHead, *, greets: bool) -> ChannelKind:
    """The kind of channel of a protocol. `streams`: exchanges at once on each connection, where one can carry several; `head`:
    of a WebSocket's handshake; `greets`: see Interface."""
    if protocol == "http/1.1":
        return HTTP1
    if protocol == "ws":
        from inferometer.drive.websocket_channel import websocket  # that no other run loads it

        return websocket(head, greets=greets)
    from inferometer.drive.http2_channel import (
        http2,
    )  # h2 takes 40 ms to import, which only its own runs are to pay

    return http2(streams)
