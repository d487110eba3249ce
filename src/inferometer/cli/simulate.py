"""`inferometer simulate`: the load of a plan on a model of an engine, in virtual time. Its flags are those of `run`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from inferometer.cli.command import Lists, option
from inferometer.cli.indexing import remembered
from inferometer.cli.outlet import say, say_json
from inferometer.cli.run import outputs
from inferometer.errors import PlanError, Problem
from inferometer.plan.flags import FLAGS, Flag, refuse_unsimulated

EXITS = "0 VALID, 2 plan, 3 INVALID, 4 INCONCLUSIVE, 5 no request succeeded, 130 interrupted"

EXAMPLES = (
    "inferometer simulate",
    "inferometer simulate plan.yaml --rate 30",
    "inferometer simulate --concurrency 64 --requests 10000 --set max_batch=32",
    "inferometer simulate --system agent --tasks tasks.jsonl --rate 20",
    "inferometer simulate --fit runs/20260102T030405Z-run",
)

HELP = """\
Execute a plan on a model of an engine, in virtual time: no server, no network, the same result each time. Settings of the
server are ignored, and so are readings of this machine that a plan asks for. The report says SIMULATED: nothing in it was
measured.

With --fit, fit the model to the engine that a run measured, and execute that run's plan on it. The files and the tokenizer
that the plan names are listed first, and read only with --trust.
"""


def _simulate(
    plan: Path | None,
    preset: str | None,
    settings: tuple[str, ...],
    system: str | None,
    client: tuple[str, ...],
    out: Path,
    index: str | None,
    as_json: bool,
    quiet: bool,
    fit: Path | None,
    trust: bool,
    **given: Any,
) -> int:
    if fit is not None:
        _alone(plan, given, system)
        return _fit(fit, preset, settings, client, out, index, as_json, quiet, trust)
    if trust:
        raise PlanError([Problem("--trust", "is about the plan of a run: it needs --fit")])
    from inferometer.plan.parse import build

    flags = {flag.name: given[flag.parameter] for flag in FLAGS}
    refuse_unsimulated(flags)
    # Without the environment: the keys and files of a server that is not asked need not be there.
    resolved = build(plan, flags)
    from inferometer.cli.terminal import Screen, show
    from inferometer.run.simulate import simulate
    from inferometer.simulation.client import client as client_of
    from inferometer.simulation.engine import choose

    chosen, screen = choose(preset, settings, system), Screen(quiet=quiet)
    finding = simulate(resolved, chosen, out, screen, client=client_of(client))
    code = show(finding, as_json=as_json)
    remembered(index, out, [finding.folder])
    return code


def _alone(plan: Path | None, given: dict[str, Any], system: str | None) -> None:
    """Beside --fit, nothing may say what the run's own plan says; and it is an engine that is fitted. Raises PlanError."""
    if system is not None:
        raise PlanError([Problem("--system", "cannot be combined with --fit, which fits an engine")])
    named = [flag.name for flag in FLAGS if given[flag.parameter]]
    named += [] if plan is None else [str(plan)]
    if named:
        raise PlanError(
            [Problem(name, "cannot be combined with --fit, which uses the run's own plan") for name in named]
        )


def _fit(
    run: Path,
    preset: str | None,
    settings: tuple[str, ...],
    client: tuple[str, ...],
    out: Path,
    index: str | None,
    as_json: bool,
    quiet: bool,
    trust: bool,
) -> int:
    from inferometer.cli.terminal import Screen
    from inferometer.documents.part import to_data
    from inferometer.plan.reach import permit
    from inferometer.report.fit import lines
    from inferometer.simulation.client import client as client_of
    from inferometer.studies.fit import fit_run

    trusted = partial(permit, trust=trust, say=partial(click.echo, err=True))
    fitted = fit_run(run, preset, settings, out, Screen(quiet=quiet), client_of(client), trusted)
    document = fitted.document
    report = str(fitted.finding.folder / "report.html")
    if as_json:
        say_json(to_data(document))
    else:
        say("\n".join(lines(document, report)))
    remembered(index, out, [fitted.finding.folder])
    return fitted.finding.exit_code


_ASKED = ("target.model", "target.api", "target.stream", "target.extra_body", "target.timeout_s")
"""Keys of the target that say what is requested, not of whom."""


def _of_a_server(flag: Flag) -> bool:
    """Whether a flag is about a server, which is not there: it is taken, for plans are shared, and left aside; or about this
    machine: it is refused in words."""
    part = flag.key.partition(".")[0]
    if flag.key == "instrument.keep_text":
        return False
    return part in ("sut", "server_metrics", "declared", "instrument", "host_telemetry") or (
        part == "target" and flag.key not in _ASKED
    )


command = Lists(
    "simulate",
    callback=_simulate,
    help=HELP,
    exits=EXITS,
    examples=EXAMPLES,
    params=[
        click.Argument(["plan"], required=False, type=click.Path(path_type=Path)),
        *(option(flag, hidden=_of_a_server(flag)) for flag in FLAGS),
        click.Option(
            ["--preset"], metavar="NAME", help="The engine. Default: tiny-cpu, as in inferometer run."
        ),
        click.Option(
            ["--set", "settings"],
            multiple=True,
            metavar="KEY=VALUE",
            help="Change a setting of the engine, or of the system. May be repeated.",
        ),
        click.Option(
            ["--system"],
            metavar="NAME",
            help="A reference system of several steps on the engine: agent or rag (docs/reference-systems.md).",
        ),
        click.Option(
            ["--client"],
            multiple=True,
            metavar="KEY=TIME",
            help="A time that the client takes: late, read_lag, reaction or reaction_per_slot. May be repeated.",
        ),
        click.Option(
            ["--fit"],
            type=click.Path(path_type=Path, file_okay=False),
            metavar="RUN",
            help="Estimate the engine's costs from this run's folder, and simulate its plan with them.",
        ),
        click.Option(
            ["--trust"],
            is_flag=True,
            help="With --fit, read the files that the run's plan names, and fetch the tokenizer.",
        ),
        *outputs(),
    ],
)
