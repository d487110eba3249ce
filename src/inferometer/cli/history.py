"""`inferometer history list|show|plot|check|export|import|rebuild`: results over time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.cli.command import Command, GroupedOption
from inferometer.cli.outlet import say, say_json, say_json_text, tell, without_output
from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:
    from rich.console import Console

    from inferometer.documents.history import NumberedEntry

KINDS = ("run", "test", "bench", "comparison")
SHOWN = 20
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("history", short_help="Results over time.")
def command() -> None:
    """Results over time: an index of finished runs, tests, benchmarks and comparisons, regressions, plots, exports.

    The index is a cache of the folders of results; `rebuild` makes it anew from them.
    """


def _index(function: Callable[..., int]) -> Callable[..., int]:
    """Adds `--index` to a command."""
    return click.option(
        "--index",
        cls=GroupedOption,
        type=click.Path(path_type=Path),
        default="runs/history.sqlite3",
        metavar="FILE",
        help="The index. Default: runs/history.sqlite3.",
    )(function)


def _json(function: Callable[..., int]) -> Callable[..., int]:
    return click.option("--json", "as_json", cls=GroupedOption, is_flag=True, help="Print it as JSON.")(
        function
    )


def _ignore(function: Callable[..., int]) -> Callable[..., int]:
    return click.option(
        "--ignore",
        "ignored",
        multiple=True,
        metavar="KEY",
        help="A condition that need not agree, such as sut.address. May be repeated.",
    )(function)


@command.command(
    "list",
    cls=Command,
    short_help="List results.",
    examples=(
        "inferometer history list",
        "inferometer history list --kind run --model llama --verdict VALID --last 50",
    ),
)
@click.option("--kind", cls=GroupedOption, type=click.Choice(KINDS), help="Of this kind only.")
@click.option(
    "--test", metavar="TEXT", help="Of tests, or engines of benchmarks, whose name holds this text."
)
@click.option("--model", metavar="TEXT", help="Of models whose name holds this text.")
@click.option("--engine", metavar="TEXT", help="Of engines whose name holds this text.")
@click.option("--verdict", metavar="NAME", help="With this verdict, or outcome of a comparison.")
@click.option(
    "--since", metavar="DATE", help="Begun at this instant (UTC) or later: 2026-01-31, 2026-01-31T12:00."
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=SHOWN,
    metavar="N",
    help=f"At most the newest N. Default: {SHOWN}.",
)
@_index
@_json
def list_command(
    kind: str | None,
    test: str | None,
    model: str | None,
    engine: str | None,
    verdict: str | None,
    since: str | None,
    last: int,
    index: Path,
    as_json: bool,
) -> int:
    """List results, the newest last."""
    from inferometer.report.history.console import render_list
    from inferometer.studies.history.selection import Filters

    filters = Filters(kind, test, model, engine, verdict, _instant(since))  # type: ignore[arg-type]  # one of KINDS
    found = filters.of(_entries(index))
    shown = found[-last:]
    if as_json:
        _said(shown)
    else:
        _printed(lambda console: render_list(shown, len(found) - len(shown), console))
    return 0


@command.command(
    "show", cls=Command, short_help="Show one result.", examples=("inferometer history show 12",)
)
@click.argument("number", type=int, metavar="N")
@_index
@_json
def show_command(number: int, index: Path, as_json: bool) -> int:
    """Show entry N, whole: its figures, what makes it comparable, versions. N is the number of the list."""
    from inferometer.report.history.console import render_entry
    from inferometer.studies.history.selection import numbered

    one = numbered(_entries(index), number)
    if as_json:
        from inferometer.documents.part import to_data

        say_json(to_data(one))
    else:
        _printed(lambda console: render_entry(one, console))
    return 0


@command.command(
    "plot",
    cls=Command,
    short_help="Plot a figure over time.",
    examples=(
        "inferometer history plot ttft_p50",
        "inferometer history plot throughput.max_output_tok_s --html tok.html",
    ),
)
@click.argument("metric")
@click.option(
    "--entry",
    type=int,
    metavar="N",
    help="Of results comparable with entry N. Default: the newest with METRIC.",
)
@click.option(
    "--last", type=click.IntRange(min=1), default=500, metavar="N", help="At most the newest N. Default: 500."
)
@_ignore
@click.option("--html", type=_FILE, metavar="FILE", help="Write it as a page with charts instead.")
@_index
@_json
def plot_command(
    metric: str,
    entry: int | None,
    last: int,
    ignored: tuple[str, ...],
    html: Path | None,
    index: Path,
    as_json: bool,
) -> int:
    """Plot METRIC (a figure of `history show`) over all results that are comparable with the newest one that has it."""
    from inferometer.documents.part import to_data
    from inferometer.report.history import page
    from inferometer.report.history.console import render_trend
    from inferometer.studies.history.trend import trend

    found = trend(_entries(index), metric, entry, ignored, last)
    if html is not None:
        from inferometer import whole_file

        whole_file.write(html, page.render(found).encode())
    elif as_json:
        say_json(to_data(found))
    else:
        _printed(lambda console: render_trend(found, console))
    return 0


@command.command(
    "check",
    cls=Command,
    short_help="Is the newest result a regression?",
    exits="0 no regression, 2 usage or a file, 4 too little history, 6 regression",
    examples=(
        "inferometer history check",
        "inferometer history check 41 --metric ttft_p50 --threshold 2",
        "inferometer history check --from 30",
    ),
)
@click.argument("number", type=int, required=False, metavar="[N]")
@click.option(
    "--kind",
    cls=GroupedOption,
    type=click.Choice(KINDS[:3]),
    help="The newest of this kind. Default: of any.",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="A deciding figure. May be repeated."
)
@click.option(
    "--threshold",
    type=float,
    default=1.0,
    metavar="PERCENT",
    help="The smallest change that matters. Default: 1.",
)
@click.option(
    "--last",
    type=int,
    default=30,
    metavar="N",
    help="Estimate noise from at most N results before it. Default: 30.",
)
@click.option(
    "--from",
    "start",
    type=int,
    metavar="N",
    help="The history begins with entry N: what changed before is accepted.",
)
@_ignore
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed of the permutations. Default: 0."
)
@_index
@_json
def check_command(
    number: int | None,
    kind: str | None,
    metrics: tuple[str, ...],
    threshold: float,
    last: int,
    start: int | None,
    ignored: tuple[str, ...],
    seed: int,
    index: Path,
    as_json: bool,
) -> int:
    """Hold entry N, or the newest result, against the comparable VALID results before it, by the noise between these."""
    from inferometer.documents.part import to_data
    from inferometer.judge.history.regression import LEAST, Sensitivity
    from inferometer.report.history.console import render_check
    from inferometer.studies.history.check import EXIT_CODES, Question, check

    problems = []
    if not 0 <= threshold < 1_000:
        problems.append(Problem("--threshold", "must be a percentage from 0 up"))
    if not LEAST <= last <= 1_000:
        problems.append(Problem("--last", f"must be from {LEAST} to 1,000"))
    if problems:
        raise PlanError(problems)
    sensitivity = Sensitivity(threshold / 100, last=last, seed=seed)
    question = Question(number, kind, metrics, start, ignored, sensitivity, time.time())  # type: ignore[arg-type]  # one of KINDS
    document = check(_entries(index), question)
    if as_json:
        say_json(to_data(document))
    else:
        _printed(lambda console: render_check(document, console))
    return EXIT_CODES[document.outcome]


@command.command(
    "export",
    cls=Command,
    short_help="Export results as JSON Lines or CSV.",
    examples=(
        "inferometer history export --out here.jsonl",
        "inferometer history export --format csv --out all.csv",
    ),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("jsonl", "csv")),
    default="jsonl",
    help="jsonl or csv. Default: jsonl.",
)
@click.option("--kind", type=click.Choice(KINDS), help="Of this kind only.")
@click.option("--since", metavar="DATE", help="Begun at this instant (UTC) or later.")
@click.option("--out", type=_FILE, metavar="FILE", help="Write it to this file instead of stdout.")
@_index
def export_command(form: str, kind: str | None, since: str | None, out: Path | None, index: Path) -> int:
    """Export results: as JSON Lines, which `import` reads on another machine, or as CSV, a row for each figure."""
    from inferometer.studies.history import lines
    from inferometer.studies.history.selection import Filters

    found = Filters(kind, since=_instant(since)).of(_entries(index))  # type: ignore[arg-type]  # one of KINDS
    text = lines.table(found) if form == "csv" else "".join(lines.exported(found))
    if out is None:
        (say if form == "csv" else say_json_text)(text.rstrip("\n"))
    else:
        from inferometer import whole_file

        whole_file.write(out, text.encode())
        tell(f"{len(found)} results: {out}")
    return 0


@command.command(
    "import",
    cls=Command,
    short_help="Import results of another machine.",
    exits="0 imported, 2 a line is no result: nothing was imported",
    examples=("inferometer history import there.jsonl",),
)
@click.argument("file", type=click.Path(path_type=Path))
@_index
def import_command(file: Path, index: Path) -> int:
    """Import results that `history export` wrote as JSON Lines. They stay in history.jsonl beside the index."""
    from inferometer.studies.history.keeping import remember_lines
    from inferometer.studies.history.lines import read

    now = time.time_ns()
    entries = read(file, now / 1e9)
    _folder(index)
    new = remember_lines(index, entries, now, tell)
    say(f"{new} of {len(entries)} results were new")
    return 0


@command.command(
    "rebuild",
    cls=Command,
    short_help="Make the index anew.",
    examples=("inferometer history rebuild", "inferometer history rebuild runs /data/runs"),
)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, file_okay=False, exists=True))
@_index
def rebuild_command(folders: tuple[Path, ...], index: Path) -> int:
    """Make the index anew from the results in FOLDERS (default: the index's folder) and from history.jsonl beside it."""
    from inferometer.studies.history.keeping import renewed

    _folder(index)
    count = renewed(index, folders or (index.parent,), time.time_ns(), tell)
    say(f"{count} results: {index}")
    return 0


def _folder(index: Path) -> None:
    """That the index has a folder to be in. Raises PlanError."""
    if not index.parent.is_dir():
        raise PlanError([Problem("--index", f"there is no folder {index.parent}")])


def _entries(index: Path) -> list[NumberedEntry]:
    from inferometer.studies.history.keeping import recall

    return recall(index, time.time_ns(), tell)


def _instant(text: str | None) -> float | None:
    """Seconds since the epoch. Raises PlanError."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as cause:
        raise PlanError([Problem("--since", f"{text[:40]!r} is no date: write 2026-01-31")]) from cause


def _said(entries: Sequence[NumberedEntry]) -> None:
    from inferometer.documents.part import to_data

    say_json([to_data(one) for one in entries])


def _printed(render: Callable[[Console], None]) -> None:
    from rich.console import Console

    try:
        render(Console())
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)
