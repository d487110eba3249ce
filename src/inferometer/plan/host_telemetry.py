"""What is read of the machines while the load runs: of this one by itself, of others by their exporters (server_metrics).

The keys of a plan are `host_telemetry.enabled`, `.interval_s` and `.power`.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from inferometer.addresses import secrets_of
from inferometer.plan.part import SECONDS, Option, Part

AUTO = "auto"
METERS = ("nvml", "amdsmi", "rapl", "ioreport", "powermetrics")
"""Meters by name, of which the first two take numbers of devices (`nvml:0,2`); a wall meter is a URL or `command:` and a
command that prints watts (telemetry/power/meters.py)."""
_NAMED = re.compile(rf"({'|'.join(METERS)})|(nvml|amdsmi):\d{{1,3}}(,\d{{1,3}})*|command:.*\S.*", re.DOTALL)


def _meter(text: str) -> str:
    meter = text.strip()
    if meter == AUTO or _NAMED.fullmatch(meter):
        return meter
    if not meter.startswith(("http://", "https://")):
        raise ValueError(
            f"must be {AUTO}, one of {', '.join(METERS)}, the http:// or https:// URL of a wall meter, or command:COMMAND"
        )
    if secrets_of(meter):
        raise ValueError(
            "must have no password, and a plan is saved to disk: read the meter by command:COMMAND"
        )
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
