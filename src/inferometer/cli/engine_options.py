"""Options of the commands that measure engines as they find them (`bench`, `cross-validate`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from inferometer.studies.bench_engine import Flags

Decorated = TypeVar("Decorated", bound=Callable[..., object])
TIMEOUT_S = "300"


def reached(command: Decorated) -> Decorated:
    """Adds `--api-key-env` and `--timeout`; `flags_of` makes flags of a plan of them."""
    for option in (
        click.option(
            "--timeout", metavar="S", help=f"Give a generation up after this long. Default: {TIMEOUT_S}."
        ),
        click.option(
            "--api-key-env", metavar="NAME", help="Environment variable that holds the engine's API key."
        ),
    ):
        command = option(command)
    return command


def flags_of(timeout: str | None, api_key_env: str | None) -> Flags:
    """The values of `reached` as flags of a plan."""
    return {"--timeout": TIMEOUT_S if timeout is None else timeout, "--api-key-env": api_key_env}


def resulting(file: str) -> Callable[[Decorated], Decorated]:
    """Adds `--out`, `--json` (as `as_json`) and `--quiet` to a command whose result is `file` in a folder of its own."""

    def add(command: Decorated) -> Decorated:
        for option in (
            click.option("--quiet", is_flag=True, help="No progress on stderr."),
            click.option(
                "--json", "as_json", is_flag=True, help=f"Print {file} on stdout instead of tables."
            ),
            click.option(
                "--out",
                type=click.Path(path_type=Path, file_okay=False),
                default="runs",
                metavar="DIR",
                help="Folder for the result's folder. Default: runs.",
            ),
        ):
            command = option(command)
        return command

    return add
