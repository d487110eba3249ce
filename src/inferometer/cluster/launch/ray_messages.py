"""What the conductor's process and the driver of Ray say to each other: JSON, one message a line."""

from __future__ import annotations

from typing import Literal

import msgspec

AUTO = "auto"
"""The address of the cluster that this machine is a node of, or that RAY_ADDRESS names."""


class Order(msgspec.Struct, frozen=True):
    """To the driver, once; the end of its input ends all it started.

    `command`: what runs inside the script of guard.py, with `{python}` for the node's interpreter; `{name}` stands for the
    host's name. `cpus`: that each node has to have free. `wheel`: to install on every node; None: only where nodes lack this
    version, and then one of this installation. `patience_s`: for nodes to be free.
    """

    address: str
    hosts: int
    cpus: int
    command: list[str]
    token: str
    version: str
    wheel: str | None
    patience_s: float

    def __repr__(self) -> str:
        return f"Order({self.address!r})"


class Stage(msgspec.Struct, frozen=True, tag=True):
    """From the driver: what it does next, in words, and how long that may take."""

    doing: str
    within_s: float


class Started(msgspec.Struct, frozen=True, tag=True):
    """From the driver: the hosts are started, by name."""

    names: list[str]


class HostEnded(msgspec.Struct, frozen=True, tag=True):
    """From the driver: a host has ended; see interface.Ended."""

    name: str
    exit_code: int | None
    said: str


class Refused(msgspec.Struct, frozen=True, tag=True):
    """From the driver, at last: it cannot start the hosts, and whose fault that is."""

    said: str
    fault: Literal["plan", "peer"] = "peer"


Report = Stage | Started | HostEnded | Refused
