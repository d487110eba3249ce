"""What is read of the machines while the load runs: of this one by itself, of others by their exporters (server_metrics).

The keys of a plan are `host_telemetry.enabled`, `.interval_s` and `.power`.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from inferometer.plan.part import SECONDS, Option, Part

AUTO = "auto"
METERS = ("nvml", "amdsmi", "rapl", "ioreport", "powermetrics")
"""Meters by name; a wall meter is an http:// or https:// URL, or `command:` and a command."""
SOURCES = ("http://", "https://", "command:")


def _meter(text: str) -> str:
    meter = text.strip()
    if meter != AUTO and meter not in METERS and not meter.startswith(SOURCES):
        raise ValueError(
            f"must be {AUTO}, one of {', '.join(METERS)}, the http:// or https:// URL of a wall meter, or command:COMMAND"
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
