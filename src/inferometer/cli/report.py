"""`inferometer report RUN`: measure and judge the record of a finished run again, and write its reports anew."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on stdout instead of the table.")
def command(run: Path, as_json: bool) -> int:
    """\b
    Example: inferometer report runs/20260102T030405Z-run

    Write summary.json, report.md and report.html of a run again, from its record. Needs no server.
    """
    from inferometer.cli.screen import show
    from inferometer.conductor import evaluate
    from inferometer.journal.folder import RunFolder

    return show(evaluate(RunFolder.open(run)), as_json=as_json)
