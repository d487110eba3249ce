"""The protocols that can be measured, by name. One more is a file with a Channel, and a line here."""

from __future__ import annotations

from typing import Literal

from inferometer.drive.channel import ChannelKind
from inferometer.drive.http1_channel import HTTP1

Protocol = Literal["http/1.1"]

KINDS: dict[Protocol, ChannelKind] = {"http/1.1": HTTP1}
