"""`inferometer run`: the main job. Its flags come from the table in plan/flags.py, so help and errors agree with the plan."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from inferometer.cli.lists import Lists
from inferometer.plan.flags import FLAGS, Flag

EPILOG = """\b
Lengths:   320   uniform(128,512)   normal(550,150)   lognormal(5.5,1.0,min=32,max=4096)   histogram(128:1,256:3)
Exit code: 0 VALID, 2 plan, 3 INVALID, 4 INCONCLUSIVE, 5 server unreachable or failed, 130 interrupted
"""

HELP = """\b
Examples:
  inferometer run
  inferometer run --url http://localhost:8000 --model my-model --rate 20 --requests 2000
  inferometer run --concurrency 64 --duration 60s --slo 'ttft_p99<500ms' --slo 'tpot_p50<40ms'
  inferometer run plan.yaml --rate 30

Measure a server, or with no --url the embedded reference server, and say whether to believe the numbers.
PLAN is a YAML file, or the plan.json of an earlier run; flags override it.
"""


def option(flag: Flag) -> click.Option:
    """A flag of the plan as an option of a command."""
    return click.Option(
        [flag.name],
        is_flag=flag.switch,
        multiple=flag.repeat and not flag.switch,
        default=None if not flag.switch else False,
        metavar=None if flag.switch else flag.metavar,
        help=flag.help,
    )


def outputs() -> list[click.Parameter]:
    """Where the run folder goes and what is shown, after all that is about the plan."""
    return [
        click.Option(
            ["--out"],
            type=click.Path(path_type=Path, file_okay=False),
            default="runs",
            metavar="DIR",
            help="Where run folders are made. Default: runs.",
        ),
        click.Option(
            ["--json", "as_json"], is_flag=True, help="Print summary.json on stdout instead of the table."
        ),
        click.Option(["--quiet"], is_flag=True, help="No progress on stderr."),
    ]


def _run(plan: Path | None, out: Path, as_json: bool, quiet: bool, **given: Any) -> int:
    from inferometer.plan.parse import build

    flags = {flag.name: given[flag.parameter] for flag in FLAGS}
    resolved = build(plan, flags, environ=os.environ)
    from inferometer.cli.terminal import Screen, show
    from inferometer.run.conduct import conduct

    return show(conduct(resolved, out, Screen(quiet=quiet)), as_json=as_json)


command = Lists(
    "run",
    callback=_run,
    help=HELP,
    epilog=EPILOG,
    context_settings={"max_content_width": 110},
    params=[
        click.Argument(["plan"], required=False, type=click.Path(path_type=Path)),
        *(option(flag) for flag in FLAGS),
        *outputs(),
    ],
)
