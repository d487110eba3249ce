"""`inferometer metrics`: what servers tell of themselves, from raw scrapes to exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from inferometer.cli.watch import watch

FORMATS = ("json", "csv", "jsonl", "parquet")
"""Those of telemetry/metrics/exports.py, which help does not import."""
ESTIMATORS = ("four-phase", "smooth", "linear")
"""Those of telemetry/metrics/estimators.py."""


@click.group("metrics", short_help="Server metrics: exports from raw scrapes.")
def command() -> None:
    """Server metrics: what servers tell of themselves in Prometheus text."""


class _Lists(click.Command):
    """Lets `--formats json csv` stand beside `--formats json,csv`: click's options take one word each."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, gathered(args))


def gathered(args: Sequence[str]) -> list[str]:
    """The words, with the formats that follow `--formats` made into one word."""
    made: list[str] = []
    inside = False
    for word in args:
        if inside and word in FORMATS and made[-1] != "--formats":
            made[-1] += f",{word}"
            continue
        inside = (inside and made[-1] == "--formats") or word == "--formats"
        made.append(word)
    return made


@command.command("replay", cls=_Lists, context_settings={"max_content_width": 110})
@click.argument("scrapes", type=click.Path(path_type=Path))
@click.option(
    "--start", type=int, metavar="NS", help="Start of the period, ns since the epoch. Default: the record's."
)
@click.option("--end", type=int, metavar="NS", help="End of the period. Default: the record's.")
@click.option(
    "--warmup-start", type=int, metavar="NS", help="Start of the warm-up. Default: the period's start."
)
@click.option(
    "--warmup-end",
    type=int,
    metavar="NS",
    help="End of the warm-up, which is told apart and left out of the period.",
)
@click.option(
    "--slice-duration", type=float, default=2.0, metavar="S", help="Length of timeslices; 0 for none. [2]"
)
@click.option(
    "--formats", default="json,csv", metavar="NAME...", help=f"Any of {' '.join(FORMATS)}. [json csv]"
)
@click.option(
    "--histogram-estimator",
    type=click.Choice(ESTIMATORS),
    default=ESTIMATORS[0],
    help="How percentiles of histograms are estimated. [four-phase]",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Folder. [.]")
def replay(
    scrapes: Path,
    start: int | None,
    end: int | None,
    warmup_start: int | None,
    warmup_end: int | None,
    slice_duration: float,
    formats: str,
    histogram_estimator: str,
    out: Path,
) -> int:
    """\b
    Example: inferometer metrics replay RUN/telemetry/scrapes.jsonl.zst --slice-duration 5 --formats json parquet

    Rebuild every export of server metrics from a raw record: that of a run, or JSON Lines of endpoint_url, timestamp_ns, body.
    """
    from inferometer.telemetry.metrics.exports import NAME
    from inferometer.telemetry.metrics.replay import Replay, replay

    chosen = tuple(dict.fromkeys(name.strip() for name in formats.split(",")))
    asked = Replay(start, end, warmup_start, warmup_end, slice_duration, chosen, histogram_estimator)
    made = replay(scrapes, asked, out)
    summary = made.opening.summary
    for url, drops in (summary.dropped or {}).items():
        for code, one in drops.items():
            click.echo(f"dropped: {one.count} x {code} from {url}: {one.first}", err=True)
    count = sum(len(metric.series) for metric in made.metrics.values())
    click.echo(
        f"{len(made.metrics)} metrics, {count} series from {len(summary.endpoints_successful)} endpoints"
    )
    for name in chosen:
        click.echo(str(out / f"{NAME}.{name}"))
    return 0


command.add_command(watch)
