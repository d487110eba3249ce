"""`inferometer simulate`: the load of a plan on a model of an engine, in virtual time. Its flags are those of `run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from inferometer.cli.run import option, outputs
from inferometer.plan.flags import FLAGS

EPILOG = """\b
Exit code: 0 VALID, 2 plan, 3 INVALID, 4 INCONCLUSIVE, 5 no request succeeded, 130 interrupted
"""

HELP = """\b
Examples:
  inferometer simulate
  inferometer simulate plan.yaml --rate 30
  inferometer simulate --concurrency 64 --requests 10000 --set max_batch=32

Carry a plan out on a model of an engine, in virtual time: no server, no network, the same result each time. What the plan
says of a server is left aside. The report says SIMULATED: nothing in it was measured.
"""


def _simulate(
    plan: Path | None,
    preset: str | None,
    settings: tuple[str, ...],
    out: Path,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    from inferometer.plan.parse import build

    # Without the environment: the keys and files of a server that is not asked need not be there.
    resolved = build(plan, {flag.name: given[flag.parameter] for flag in FLAGS})
    from inferometer.cli.screen import Screen, show
    from inferometer.simulation.engine import choose
    from inferometer.simulator import simulate

    finding = simulate(resolved, choose(preset, settings), out, Screen(quiet=quiet))
    return show(finding, as_json=as_json)


command = click.Command(
    "simulate",
    callback=_simulate,
    help=HELP,
    epilog=EPILOG,
    context_settings={"max_content_width": 110},
    params=[
        click.Argument(["plan"], required=False, type=click.Path(path_type=Path)),
        *(option(flag) for flag in FLAGS),
        click.Option(
            ["--preset"], metavar="NAME", help="The engine. Default: tiny-cpu, as in inferometer run."
        ),
        click.Option(
            ["--set", "settings"],
            multiple=True,
            metavar="KEY=VALUE",
            help="Change one setting of the engine. May be repeated.",
        ),
        *outputs(),
    ],
)
