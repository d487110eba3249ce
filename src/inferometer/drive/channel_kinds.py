"""The protocols that can be measured, by name. One more is a file with a Channel, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inferometer.drive.channel import ChannelKind
from inferometer.drive.http1_channel import HTTP1

Protocol = Literal["http/1.1", "http/2"]

BY_VERSION: Mapping[str, Protocol] = {"1.1": "http/1.1", "2": "http/2"}
"""The protocol of a plan's `target.http`."""


def kind_of(protocol: Protocol, streams: int) -> ChannelKind:
    """The kind of channel of a protocol. `streams`: exchanges at once on each connection, where one can carry several."""
    if protocol == "http/1.1":
        return HTTP1
    from inferometer.drive.http2_channel import (
        http2,
    )  # h2 takes 40 ms to import, which only its own runs are to pay

    return http2(streams)
