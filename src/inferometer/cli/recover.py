"""`inferometer recover RUN`: make a run readable whose process died before it could seal its record."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("recover")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on stdout instead of the table.")
def command(run: Path, as_json: bool) -> int:
    """\b
    Example: inferometer recover runs/20260102T030405Z-run

    Seal what the journal of a killed run holds (all but the last second at most), and report it.
    """
    from inferometer.cli.terminal import show
    from inferometer.journal.folder import RunFolder
    from inferometer.run.evaluate import recover

    return show(recover(RunFolder.open(run)), as_json=as_json)
