"""What is read of the machines while the load runs: of this one by itself, of others by their exporters (server_metrics).

The keys of a plan are `host_telemetry.enabled`, `.interval_s` and `.power`.
"""

import re
import shlex
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from inferometer.addresses import secrets_of
from inferometer.plan.part import SECONDS, Option, Part

AUTO = "auto"
METERS = ("nvml", "amdsmi", "rapl", "ioreport", "powermetrics")
"""Meters by name, of which the first two take numbers of devices (`nvml:0,2`); a wall meter is a URL or `command:` and a
command that prints watts (telemetry/power/meters.py)."""
WALL = ("http://", "https://", "command:")
"""How a wall meter begins, which may be that of any machine."""
_NAMED = re.compile(rf"({'|'.join(METERS)})|(nvml|amdsmi):\d{{1,3}}(,\d{{1,3}})*|command:.*\S.*", re.DOTALL)


def is_meter(text: str) -> bool:
    """Whether it begins as a meter does, and not with a name of somebody else's before it: `NAME=METER`."""
    return re.match(rf"({'|'.join((AUTO, *METERS))})(:|$)|{'|'.join(WALL)}", text.strip()) is not None


def _meter(text: str) -> str:
    meter = text.strip()
    if meter == AUTO or _NAMED.fullmatch(meter):
        return _command(meter) if meter.startswith("command:") else meter
    if not meter.startswith(("http://", "https://")):
        raise ValueError(
            f"must be {AUTO}, one of {', '.join(METERS)}, the http:// or https:// URL of a wall meter, or command:COMMAND"
        )
    if secrets_of(meter):
        raise ValueError(
            "must hold no user or password, since a plan is saved: read the meter by command:COMMAND, such as curl -s -n URL"
        )
    if any(
        char in meter for char in "\t\r\n"
    ):  # urlsplit drops them: another host than the one that is shown
        raise ValueError("must hold no tabs and no line breaks")
    parts = urlsplit(meter)
    target = parts.path + parts.query
    if not parts.hostname or not parts.netloc.isascii() or parts.port == 0:
        raise ValueError("must be a URL with a host, and a port from 1 to 65535 if any")
    if not target.isascii() or not target.isprintable() or " " in target:
        raise ValueError("must have a path and a query that are percent-encoded")
    return meter


def _command(meter: str) -> str:
    """The meter, if it can be started as it is written: a run would lose its readings otherwise."""
    try:
        words = shlex.split(meter.removeprefix("command:"))
    except ValueError as cause:
        raise ValueError(f"cannot be split into words: {cause}") from None
    if not words or not words[0] or "\0" in meter:
        raise ValueError("must be command: with a program and its arguments, without null characters")
    return meter


def _once(meters: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(meters))


Meter = Annotated[str, AfterValidator(_meter)]


class HostTelemetry(Part):
    """Which readings of this machine are recorded beside the load. `power` implies the rest."""

    enabled: Annotated[
        bool,
        Field(
            description="Record the state of this machine beside the load: memory, heat, clocks, load of others."
        ),
        Option("--host-telemetry", "Host telemetry", value=True),
    ] = False
    interval_s: Annotated[
        float,
        Field(ge=0.05, le=60, description="Time between two readings: seconds, or 500ms."),
        SECONDS,
        Option("--host-telemetry-interval", "Host telemetry", "S"),
    ] = 1.0
    power: Annotated[
        tuple[Meter, ...],
        Field(
            description=f"Meters of power to read: {AUTO} (those found), {', '.join(METERS)}, a wall meter's URL, or "
            "command:COMMAND."
        ),
        AfterValidator(_once),
        Option("--power", "Host telemetry", "METER", repeat=True),
    ] = ()

    @property
    def wanted(self) -> bool:
        """Whether anything of this machine is read."""
        return self.enabled or bool(self.power)
