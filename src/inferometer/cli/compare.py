"""`inferometer compare`: are these systems, or these versions of one, different, and by how much?"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from inferometer.cli.command import Command
from inferometer.cli.indexing import comparison_remembered, indexed, remembered
from inferometer.cli.outlet import say_json, without_output
from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:
    from rich.console import Console

    from inferometer.studies.comparison import Compared, Question
    from inferometer.studies.history.entries import AnyComparison

EXAMPLES = (
    "inferometer compare runs/old runs/new",
    "inferometer compare runs/a1,runs/a2,runs/a3 runs/b1,runs/b2,runs/b3 --threshold 2",
    "inferometer compare --interleave old.yaml new.yaml --repeats 5 --junit compare.xml",
    "inferometer compare runs/20260102T030405Z-old runs/20260103T030405Z-new --html compare.html",
)
EXITS = (
    "0 no regression, 2 usage or a file, 3 not comparable or a run is INVALID, 4 no claim (fewer than 3 runs per side), "
    "5 a server unreachable or failed, 6 regression, 130 interrupted"
)


@click.command(
    "compare",
    cls=Command,
    examples=EXAMPLES,
    exits=EXITS,
)
@click.argument("sides", nargs=-1, required=True)
@click.option("--interleave", is_flag=True, help="SIDES are plans: measure them in turn, then compare.")
@click.option("--repeats", type=int, metavar="N", help="With --interleave: number of rounds. Default: 3.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="runs",
    metavar="DIR",
    help="With --interleave: folder for the runs. Default: runs.",
)
@click.option(
    "--noise",
    multiple=True,
    metavar="SIDE",
    help="Further runs of the first side's system: differences below theirs are noise. May be repeated.",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="A deciding figure. May be repeated."
)
@click.option(
    "--threshold",
    type=float,
    default=0.0,
    metavar="PERCENT",
    help="The smallest change that matters, in per cent. Default: 0.",
)
@click.option("--price", "prices", multiple=True, metavar="SIDE=N", help="Price of a side per hour: A=2.5.")
@click.option("--price-source", metavar="TEXT", help="Source of the prices.")
@click.option(
    "--production-representative",
    "production",
    is_flag=True,
    help="Declare that all sides are configured as in production.",
)
@click.option("--shared-resources", is_flag=True, help="Declare that sides share resources.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed of the bootstrap. Default: 0."
)
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write Markdown.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Of campaigns: write an HTML page."
)
@indexed
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON instead of tables.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def command(
    sides: tuple[str, ...],
    interleave: bool,
    repeats: int | None,
    out: Path,
    noise: tuple[str, ...],
    metrics: tuple[str, ...],
    threshold: float,
    prices: tuple[str, ...],
    price_source: str | None,
    production: bool,
    shared_resources: bool,
    seed: int,
    junit: Path | None,
    markdown: Path | None,
    html: Path | None,
    index: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Compare sides with the first, the baseline. A side is a run folder, several with commas between them, or a folder that
    holds run folders. At least three runs a side, with the same seeds on all, make a claim possible. Two folders of `bench`
    are compared by engine and prompt, and decide by `tok_per_sec` and `ttft_client_ms`. Campaigns of `test`, or folders of
    `test --repeats`, are compared by the headlines of their tests.
    """
    from inferometer.studies.bench_comparison import is_bench
    from inferometer.studies.campaign_comparison import is_campaign
    from inferometer.studies.comparison import Question, compare_folders

    if repeats is not None and not interleave:
        raise PlanError([Problem("--repeats", "needs --interleave: existing runs are not repeated")])
    if price_source is not None and not prices:
        raise PlanError([Problem("--price-source", "is the source of prices: give them with --price")])
    if (
        not interleave
        and click.get_current_context().get_parameter_source("out") is ParameterSource.COMMANDLINE
    ):
        raise PlanError([Problem("--out", "needs --interleave: existing runs stay where they are")])
    files = {"--junit": junit, "--markdown": markdown, "--html": html}
    nowhere = [name for name, file in files.items() if file is not None and not file.parent.is_dir()]
    if nowhere:  # better now than after the measuring
        raise PlanError([Problem(name, "the file's folder does not exist") for name in nowhere])
    question = Question(metrics, threshold, noise, prices, price_source, production, shared_resources, seed)
    if not interleave and any(map(is_campaign, sides)):
        return _campaigns(sides, question, (junit, markdown, html), index, as_json=as_json)
    if html is not None:
        raise PlanError([Problem("--html", "is for campaigns of tests: use --markdown or --json here")])
    if not interleave and any(map(is_bench, sides)):
        return _benches(sides, question, junit, markdown, index, as_json=as_json)
    if interleave:
        compared = _live(sides, 3 if repeats is None else repeats, out, question, quiet=quiet)
    else:
        compared = compare_folders(sides, question)
    _show(compared, as_json=as_json)
    _write(compared, junit, markdown)
    if compared.folder is not None:
        remembered(index, out, [compared.folder])
    _remember(compared.document, sides, out if interleave else None, index)
    return compared.exit_code


def _live(sides: tuple[str, ...], repeats: int, out: Path, question: Question, *, quiet: bool) -> Compared:
    from inferometer.cli.terminal import Screen
    from inferometer.plan.parse import build
    from inferometer.studies.comparison import compare_live

    plans = [build(Path(side), environ=os.environ) for side in sides]
    return compare_live(plans, repeats, out, time.time_ns(), question, Screen(quiet=quiet))


def _benches(
    sides: tuple[str, ...],
    question: Question,
    junit: Path | None,
    markdown: Path | None,
    index: str | None,
    *,
    as_json: bool,
) -> int:
    """Compare two benchmarks of engines."""
    from inferometer.documents.part import to_data
    from inferometer.report.bench.comparison import render, render_junit, render_markdown
    from inferometer.studies.bench_comparison import compare_bench_folders
    from inferometer.studies.comparison import EXIT_CODES

    source = click.get_current_context().get_parameter_source
    flags = {
        "prices": "--price",
        "price_source": "--price-source",
        "production": "--production-representative",
        "shared_resources": "--shared-resources",
        "seed": "--seed",
    }
    given = [flag for name, flag in flags.items() if source(name) is ParameterSource.COMMANDLINE]
    if given:
        raise PlanError([Problem(flag, "is for comparisons of runs; these are benchmarks") for flag in given])
    document = compare_bench_folders(sides, question.metrics, question.threshold, question.noise)
    if as_json:
        say_json(to_data(document))
    else:
        _printed(lambda console: render(document, console))
    if junit is not None:
        junit.write_bytes(render_junit(document))
    if markdown is not None:
        markdown.write_text(render_markdown(document), encoding="utf-8")
    _remember(document, sides, None, index)
    return EXIT_CODES[document.outcome]


def _campaigns(
    sides: tuple[str, ...],
    question: Question,
    files: Sequence[Path | None],
    index: str | None,
    *,
    as_json: bool,
) -> int:
    """Compare campaigns of tests. `files`: for JUnit XML, Markdown and HTML."""
    from inferometer.documents.part import to_data
    from inferometer.report.campaign.comparison import console, html, junit, markdown
    from inferometer.studies.campaign_comparison import compare_campaign_folders
    from inferometer.studies.comparison import EXIT_CODES

    if click.get_current_context().get_parameter_source("seed") is ParameterSource.COMMANDLINE:
        raise PlanError(
            [Problem("--seed", "is of the bootstrap, which comparisons of campaigns have none of")]
        )
    document = compare_campaign_folders(sides, question)
    if as_json:
        say_json(to_data(document))
    else:
        _printed(lambda screen: console.render(document, screen))
    xml, text, page = files
    if xml is not None:
        xml.write_bytes(junit.render(document))
    if text is not None:
        text.write_text(markdown.render(document), encoding="utf-8")
    if page is not None:
        page.write_text(html.render(document), encoding="utf-8")
    _remember(document, sides, None, index)
    return EXIT_CODES[document.outcome]


def _remember(document: AnyComparison, sides: Sequence[str], out: Path | None, index: str | None) -> None:
    """Add a comparison to an index: the one of what was measured for it, in `out`, or one that lies beside the first side."""
    from inferometer.studies.comparison import name_of
    from inferometer.studies.history.index import NAME

    first = Path(sides[0].partition(",")[0].strip()).resolve()
    home = out or (first.parent if first.is_dir() else first.parent.parent)
    if out is not None or index is not None or (home / NAME).is_file():
        comparison_remembered(index, home, document, " | ".join(map(name_of, sides)))


def _write(compared: Compared, junit: Path | None, markdown: Path | None) -> None:
    if junit is not None:
        from inferometer.report.comparison.junit import render as junit_xml

        junit.write_bytes(junit_xml(compared.document))
    if markdown is not None:
        from inferometer.report.comparison.markdown import render as markdown_text

        markdown.write_text(markdown_text(compared.document), encoding="utf-8")


def _show(compared: Compared, *, as_json: bool) -> None:

    if as_json:
        from inferometer.documents.part import to_data

        say_json(to_data(compared.document))
        return
    from inferometer.report.comparison.console import render

    _printed(lambda console: render(compared.document, console))


def _printed(render: Callable[[Console], None]) -> None:
    from rich.console import Console

    try:
        render(Console())
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)
