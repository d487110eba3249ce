"""`inferometer telemetry`: the readings of a machine for a run that is made on another one."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import click

from inferometer.cli.command import GroupedOption, Lists
from inferometer.cli.outlet import say, tell

PORT = 9401


@click.group("telemetry", short_help="The state of this machine, for a run on another one.")
def command() -> None:
    """Readings of this machine: load, memory, heat, accelerators and power."""


@command.command(
    "serve",
    cls=Lists,
    short_help="Serve the readings over HTTP.",
    exits="0 ended by Ctrl-C, 2 usage, or the address cannot be used",
    examples=(
        "inferometer telemetry serve --power auto",
        "inferometer telemetry serve --host 10.0.0.7 --token-env TELEMETRY_TOKEN --process 4242",
        "inferometer run --url http://10.0.0.7:8000 --server-metrics http://10.0.0.7:9401/metrics",
    ),
)
@click.option("--host", cls=GroupedOption, default="127.0.0.1", metavar="ADDRESS", help="Default: 127.0.0.1.")
@click.option(
    "--port",
    cls=GroupedOption,
    type=click.IntRange(0, 65_535),
    default=PORT,
    metavar="PORT",
    help=f"0 takes a free one. Default: {PORT}.",
)
@click.option(
    "--token-env",
    cls=GroupedOption,
    metavar="NAME",
    help="Environment variable with the bearer token that clients must present. Required for an address off this machine.",
)
@click.option(
    "--power",
    cls=GroupedOption,
    multiple=True,
    metavar="METER",
    help="Meter of power to read: auto, nvml, amdsmi, rapl, ioreport, powermetrics, a URL or command:COMMAND. May be repeated.",
)
@click.option(
    "--process",
    "processes",
    cls=GroupedOption,
    type=click.IntRange(1),
    multiple=True,
    metavar="PID",
    help="First process of the engine, whose memory and processor time are read with its children's. May be repeated.",
)
def serve(
    host: str, port: int, token_env: str | None, power: Sequence[str], processes: Sequence[int]
) -> None:
    """Serve the readings of this machine as Prometheus text at /metrics, until Ctrl-C. A run reads them as
    --server-metrics, and its report then has a section about this machine."""
    from inferometer.addresses import is_loopback
    from inferometer.plan.host_telemetry import HostTelemetry
    from inferometer.telemetry.machine import this_machine
    from inferometer.telemetry.machines.agent import Agent
    from inferometer.telemetry.machines.local import LocalMachine
    from inferometer.telemetry.machines.meters import opened
    from inferometer.telemetry.machines.side_by_side import Patience

    token, place = _token(token_env), f"[{host}]" if ":" in host else host
    if token is None and not is_loopback(f"http://{place}"):
        raise click.UsageError(
            f"{host} can be reached from other machines: name the variable that holds a token (--token-env NAME)"
        )
    try:
        meters = HostTelemetry(power=tuple(power)).power
    except ValueError as wrong:
        raise click.UsageError(f"--power: {wrong}") from None
    roles = {"engine": list(processes)} if processes else {}
    machine = LocalMachine(this_machine(), roles, opened(meters, Patience(), tell))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no meter's command is left behind
    with Agent(host, port, machine.text, token) as agent:
        say(f"readings of this machine: http://{place}:{agent.server_address[1]}/metrics (Ctrl-C ends)")
        try:
            agent.serve_forever()
        except KeyboardInterrupt:
            return


def _token(variable: str | None) -> str | None:
    if variable is None:
        return None
    token = os.environ.get(variable, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise click.UsageError(
            f"--token-env: the variable {variable} is not set, or holds what a header cannot"
        )
    return token
