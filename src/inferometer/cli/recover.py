"""`inferometer recover RUN`: make a run readable whose process died before it could seal its record."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.cli.command import Command, GroupedOption
from inferometer.cli.indexing import remembered_if_kept
from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:
    from inferometer.journal.folder import RunFolder


@click.command(
    "recover",
    cls=Command,
    exits="0 VALID, 2 not a run that can be read, 3 INVALID, 4 INCONCLUSIVE, 130 the run was interrupted",
    examples=(
        "inferometer recover runs/20260102T030405Z-run",
        "inferometer recover runs/20260102T030405Z-run --json",
        "inferometer recover runs/20260102T030405Z-run --tokenizer models/tokenizer.json",
        "inferometer recover runs/20260102T030405Z-run --tasks tasks.jsonl",
        "inferometer recover runs/20260102T030405Z-run --listen 10.0.0.1:7070",
    ),
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--tokenizer",
    cls=GroupedOption,
    metavar="NAME",
    help="The run's tokenizer, where it is a file: what a folder names outside itself is not opened.",
)
@click.option(
    "--tasks",
    cls=GroupedOption,
    metavar="FILE",
    help="The run's file of tasks, to judge the answers by; an answer that was judged is judged anew.",
)
@click.option(
    "--task-commands",
    cls=GroupedOption,
    is_flag=True,
    help="With --tasks, run the commands and ask the judges that the file names.",
)
@click.option(
    "--spans",
    cls=GroupedOption,
    metavar="FILE",
    help="With --tasks, the system's spans as OTLP JSON, joined to the tasks by trace id.",
)
@click.option(
    "--listen",
    cls=GroupedOption,
    metavar="HOST:PORT",
    help="Fetch what the load hosts of the run still hold: where they join, by the run's token in INFEROMETER_JOIN_TOKEN.",
)
@click.option(
    "--json",
    "as_json",
    cls=GroupedOption,
    is_flag=True,
    help="Print summary.json on stdout instead of the table.",
)
def command(
    run: Path,
    tokenizer: str | None,
    tasks: str | None,
    task_commands: bool,
    spans: str | None,
    listen: str | None,
    as_json: bool,
) -> int:
    """Seal what the journal of a killed run holds (all but the last second at most), and report it."""
    from inferometer.cli.terminal import show
    from inferometer.journal.folder import RunFolder
    from inferometer.run.evaluate import recover

    folder = RunFolder.open(run)
    judging = _judging(folder, tasks, spans, commands=task_commands)
    if listen is not None:
        from inferometer.cli.outlet import tell
        from inferometer.cluster.collecting import collect

        collect(folder, listen, os.environ, tell)
    code = show(recover(folder, tokenizer, judging), as_json=as_json)
    remembered_if_kept(run)
    return code


def _judging(
    folder: RunFolder, tasks: str | None, spans: str | None, *, commands: bool
) -> Callable[[], list[str]] | None:
    """What judges the answers by the files that the flags name; None: no flag names one. Raises PlanError."""
    if tasks is None:
        alone = [flag for flag, given in (("--task-commands", commands), ("--spans", spans)) if given]
        if alone:
            raise PlanError([Problem(flag, "is about tasks: give --tasks FILE as well") for flag in alone])
        return None
    from inferometer.cli.outlet import tell
    from inferometer.run.task_judging import judge_again

    return judge_again(folder, tasks, spans, tell, commands=commands)
