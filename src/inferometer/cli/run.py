"""`inferometer run`: the main job. Its flags are drawn from the plan's fields (plan/flags.py), and so are errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from inferometer.cli.command import GroupedOption, Lists, option
from inferometer.cli.indexing import index_option, remembered
from inferometer.plan.flags import FLAGS

EXITS = "0 VALID, 2 plan, 3 INVALID, 4 INCONCLUSIVE, 5 server unreachable or failed, 130 interrupted"

EXAMPLES = (
    "inferometer run",
    "inferometer run --url http://localhost:8000 --model my-model --rate 20 --requests 2000",
    "inferometer run --concurrency 64 --duration 60s --slo 'ttft_p99<500ms' --slo 'tpot_p50<40ms'",
    "inferometer run plan.yaml --rate 30",
)

HELP = """\
Measure a server, or with no --url the embedded reference server, and judge whether the numbers can be trusted.
PLAN is a YAML file, or the plan.json of an earlier run; flags override it.
"""


def outputs() -> list[click.Parameter]:
    """Where the run folder goes and what is shown, after all that is about the plan."""
    return [
        GroupedOption(
            ["--out"],
            type=click.Path(path_type=Path, file_okay=False),
            default="runs",
            metavar="DIR",
            help="Folder for run folders. Default: runs.",
        ),
        index_option(),
        GroupedOption(
            ["--json", "as_json"], is_flag=True, help="Print summary.json on stdout instead of the table."
        ),
        GroupedOption(["--quiet"], is_flag=True, help="No progress on stderr."),
    ]


def joining_options() -> list[click.Parameter]:
    """How load hosts come to a run (docs/load-hosts.md)."""
    return [
        GroupedOption(
            ["--cluster"],
            metavar="HOW",
            help="With --hosts, what starts them: join (you do), local, ssh:HOST,HOST or ssh:FILE, ray:auto, ray://HOST:PORT. "
            "Default: join.",
        ),
        GroupedOption(
            ["--listen"],
            metavar="HOST:PORT",
            help="Where load hosts join, by TCP, and by UDP for their clocks. Default: all addresses, a free port.",
        ),
    ]


def _run(
    plan: Path | None,
    out: Path,
    index: str | None,
    as_json: bool,
    quiet: bool,
    cluster: str | None,
    listen: str | None,
    workers_per_host: str | None,
    **given: Any,
) -> int:
    from inferometer.plan.parse import build

    flags = {flag.name: given[flag.parameter] for flag in FLAGS}
    if workers_per_host is not None:
        flags["--workers"] = workers_per_host
    resolved = build(plan, flags, environ=os.environ)
    from inferometer.cli.terminal import Screen, show
    from inferometer.cluster.opening import load_hosts
    from inferometer.run.conduct import conduct
    from inferometer.studies.certificate import cited_certificate

    screen = Screen(quiet=quiet)
    with load_hosts(resolved, cluster, listen, screen.note, os.environ) as hosts:
        result = conduct(resolved, out, screen, certificate=cited_certificate(resolved), hosts=hosts)
    code = show(result, as_json=as_json)
    remembered(index, out, [result.folder])
    return code


command = Lists(
    "run",
    callback=_run,
    help=HELP,
    exits=EXITS,
    examples=EXAMPLES,
    params=[
        click.Argument(["plan"], required=False, type=click.Path(path_type=Path)),
        *(option(flag) for flag in FLAGS),
        *joining_options(),
        GroupedOption(["--workers-per-host"], metavar="N", help="Another name of --workers, for load hosts."),
        *outputs(),
    ],
)
