"""The one place where commands add what they finished to the index of results. It never changes what they came to: whatever
goes wrong with the index is a note on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from inferometer.cli.outlet import tell
from inferometer.errors import in_words

if TYPE_CHECKING:
    from inferometer.studies.history.entries import AnyComparison

NONE = "none"
"""What `--index` takes for no index."""
HELP = "Index of results that `history` reads, or none. Default: history.sqlite3 in --out."
Decorated = TypeVar("Decorated", bound=Callable[..., object])
_LATER = "`inferometer history rebuild` adds it later"


def index_option() -> click.Option:
    """`--index` of the commands that finish results."""
    return click.Option(
        ["--index"],
        metavar="FILE",
        help=HELP,
    )


def indexed(command: Decorated) -> Decorated:
    """Adds `--index` to a command."""
    return click.option("--index", metavar="FILE", help=HELP)(command)


def place_of(index: str | None, out: Path) -> Path | None:
    """Where the index is; None: there is to be none."""
    from inferometer.studies.history.index import NAME

    if index is not None:
        return None if index == NONE else Path(index)
    return out / NAME


def remembered(index: str | None, out: Path, folders: Sequence[Path]) -> None:
    """Add the results in these folders, which lie in `out`, to the index."""
    from inferometer.studies.history.keeping import remember

    path = place_of(index, out)
    if path is None:
        return
    homes = list(dict.fromkeys((out, path.parent))) if index is None else [out]
    try:
        remember(path, folders, homes, time.time_ns(), tell)
    except Exception as why:  # the result is finished: no fault of a cache may change its exit code
        tell(f"not in the history: {in_words(why)}; {_LATER}")


def remembered_if_kept(folder: Path) -> None:
    """Renew a result in the index beside its folder, where there is one."""
    from inferometer.studies.history.index import NAME

    home = folder.resolve().parent
    if (home / NAME).is_file():
        remembered(None, home, [folder.resolve()])


def comparison_remembered(index: str | None, out: Path, document: AnyComparison, name: str) -> None:
    """Add a comparison, which has no folder, to the index in `out`."""
    from inferometer.report.run.composition import moment
    from inferometer.studies.history.entries import of_comparison
    from inferometer.studies.history.keeping import remember_lines

    path, now = place_of(index, out), time.time_ns()
    if path is None:
        return
    try:
        remember_lines(path, [of_comparison(document, name, moment(now))], now, tell)
    except Exception as why:  # as above
        tell(f"not in the history: {in_words(why)}")
