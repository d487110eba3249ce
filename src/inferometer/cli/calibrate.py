"""`inferometer calibrate`: up to which load the instrument's figures are right on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import click

from inferometer.cli import outlet
from inferometer.cli.command import Command
from inferometer.plan.transports import TRANSPORTS, Transport

EXAMPLES = (
    "inferometer calibrate",
    "inferometer calibrate --like plan.yaml --workers 2",
    "inferometer calibrate --transport http/2",
)
EXITS = (
    "0 certified, 2 usage, 4 even the lowest load (or the plan's) was not measured correctly, 130 interrupted"
)


@click.command(
    "calibrate",
    cls=Command,
    examples=EXAMPLES,
    exits=EXITS,
)
@click.option("--like", type=click.Path(path_type=Path), metavar="PLAN", help="Also try this plan's load.")
@click.option(
    "--transport",
    type=click.Choice(TRANSPORTS),
    help="What to certify the instrument for. Default: the plan's, else http/1.1. TLS needs the extra tls.",
)
@click.option("--workers", metavar="N", help="Worker processes to certify. Default: the plan's, else 1.")
@click.option("--quick", is_flag=True, help="Fewer and shorter rungs, and coarser limits.")
@click.option("--json", "as_json", is_flag=True, help="Print the certificate on stdout instead of the table.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep the run folders of the rungs here. Default: remove them.",
)
def command(
    like: Path | None,
    transport: Transport | None,
    workers: str | None,
    quick: bool,
    as_json: bool,
    quiet: bool,
    out: Path | None,
) -> int:
    """Measure the reference server under rising loads, compare with what it truly did, and certify the load up to which the
    instrument is right on this machine. Later runs over the same transport cite the certificate. Takes some minutes.
    """
    from inferometer.plan.parse import build

    plan = build(like, {"--workers": workers}, environ=os.environ)
    from inferometer.studies.calibration import Ask, calibrate

    wanted = plan.target.transport if transport is None else transport

    def say(text: str) -> None:
        if not quiet:
            outlet.tell(f"calibrating: {text}")

    try:
        done = calibrate(Ask(plan, like is not None, quick, transport=wanted), out, say)
    except KeyboardInterrupt:
        outlet.tell("interrupted: nothing is certified")
        return 130
    import msgspec

    from inferometer.report.calibration import lines

    if as_json:
        outlet.say_json(msgspec.json.decode(msgspec.json.encode(done.certificate)))
    else:
        stored = None if done.stored is None else str(done.stored)
        outlet.say("\n".join(lines(done.certificate, stored)))
    return done.exit_code
