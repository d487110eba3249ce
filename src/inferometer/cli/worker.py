"""`inferometer worker`: this machine as a load host of a run that another one conducts."""

from __future__ import annotations

import os
from pathlib import Path

import click

from inferometer.cli.command import GroupedOption, Lists
from inferometer.cluster.join_token import TOKEN_VARIABLE, read_token


@click.command(
    "worker",
    cls=Lists,
    short_help="Send load for a run that another machine conducts.",
    exits="0 the conductor needs nothing more, 2 token or version refused, 5 no conductor, or it was lost, 71 this machine ran "
    "out of something, 130 interrupted",
    examples=(
        f"{TOKEN_VARIABLE}=... inferometer worker --join 10.0.0.1:7070",
        "inferometer worker --join 10.0.0.1:7070 --token-file token.txt --name east-1",
    ),
)
@click.option(
    "--join",
    "address",
    cls=GroupedOption,
    required=True,
    metavar="HOST:PORT",
    help="Where `inferometer run --hosts N` listens.",
)
@click.option(
    "--token-file",
    cls=GroupedOption,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=f"File with the token that the conductor printed; - reads standard input. Default: the variable {TOKEN_VARIABLE}.",
)
@click.option(
    "--name",
    cls=GroupedOption,
    metavar="NAME",
    help="What reports call this host. Default: host-1, host-2, ...",
)
@click.option(
    "--folder",
    cls=GroupedOption,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where it keeps what it measures until the conductor has it. Default: the user's state folder.",
)
def command(address: str, token_file: Path | None, name: str | None, folder: Path | None) -> int:
    """Join the conductor of a run, send its share of the load by this machine's clock, and hand over what was measured."""
    from inferometer.cli.outlet import tell
    from inferometer.cluster.service import state_folder, work

    token = read_token(token_file, os.environ)
    if name is not None and (not name.isascii() or not name.replace("-", "").replace("_", "").isalnum()):
        raise click.UsageError("--name: must be of letters, digits, - and _")
    work(address, token, name and name[:40], folder or state_folder(os.environ), tell)
    return 0
