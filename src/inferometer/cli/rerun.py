"""`inferometer rerun`: what a report says was done, once more."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.cli.command import Command
from inferometer.cli.indexing import remembered
from inferometer.cli.run import joining_options, outputs

if TYPE_CHECKING:
    from inferometer.plan.rerun import Simulated
    from inferometer.simulation.client import ClientModel
    from inferometer.simulation.engine import Chosen

EXAMPLES = (
    "inferometer rerun runs/20260102T030405Z-test",
    "inferometer rerun report.html",
)

HELP = """\
Repeat the run or the campaign of tests that a report describes. REPORT is a report.html, the JSON beside it, or the folder.
A report contains no keys: the environment variable or file that it names must exist. What would be read, run, contacted and
sent beyond the reference engine is listed first, and done only with --trust.
"""


def _rerun(
    report: Path,
    trust: bool,
    cluster: str | None,
    listen: str | None,
    out: Path,
    index: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    from inferometer.plan.campaign import Campaign
    from inferometer.plan.parse import check_outside
    from inferometer.plan.reach import permit
    from inferometer.plan.rerun import Simulated, again

    found = again(report)
    permit(found, trust=trust, say=partial(click.echo, err=True))
    if isinstance(found, Campaign):
        from inferometer.cli.procedure import test

        if not found.simulated:
            check_outside(found.plan, os.environ)
        return test(found, out, index, as_json=as_json, quiet=quiet)
    from inferometer.cli.terminal import Screen, show

    if isinstance(found, Simulated):
        from inferometer.run.simulate import simulate

        chosen, client = _models(found, report)
        simulated = simulate(found.plan, chosen, out, Screen(quiet=quiet), client=client)
        code = show(simulated, as_json=as_json)
        remembered(index, out, [simulated.folder])
        return code
    check_outside(found, os.environ)
    from inferometer.cluster.opening import load_hosts
    from inferometer.run.conduct import conduct
    from inferometer.studies.certificate import cited_certificate

    screen = Screen(quiet=quiet)
    with load_hosts(found, cluster, listen, screen.note, os.environ) as hosts:
        result = conduct(found, out, screen, certificate=cited_certificate(found), hosts=hosts)
    code = show(result, as_json=as_json)
    remembered(index, out, [result.folder])
    return code


def _models(found: Simulated, report: Path) -> tuple[Chosen, ClientModel]:
    """The engine, with the system on it, and the client that run.json names. Raises RecordError."""
    from msgspec import ValidationError

    from inferometer.documents.part import from_data
    from inferometer.errors import RecordError
    from inferometer.server.engine.settings import Settings
    from inferometer.server.systems.settings import SYSTEMS, SystemSettings
    from inferometer.simulation.client import ClientModel
    from inferometer.simulation.engine import Chosen
    from inferometer.simulation.systems import ChosenSystem

    try:
        system = None
        if found.system is not None:
            if found.system not in SYSTEMS:
                raise ValueError(f"there is no system {found.system[:60]!r}")
            system = ChosenSystem(found.system, from_data(found.system_settings, SystemSettings))
        chosen = Chosen(found.preset, from_data(found.settings, Settings), system)
        client = from_data(found.client, ClientModel)
        # Made by name as well, which refuses names that there are not.
        Settings(**found.settings), ClientModel(**found.client), SystemSettings(**found.system_settings)
    except (TypeError, ValueError, ValidationError) as cause:
        raise RecordError(f"{report / 'run.json'}: the engine's settings are damaged: {cause}") from cause
    return chosen, client


command = Command(
    "rerun",
    callback=_rerun,
    help=HELP,
    examples=EXAMPLES,
    params=[
        click.Argument(["report"], type=click.Path(path_type=Path)),
        click.Option(
            ["--trust"],
            is_flag=True,
            help="Read the files, run the commands, contact the servers and send the keys that the report names.",
        ),
        *joining_options(),
        *outputs(),
    ],
)
