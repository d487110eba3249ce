"""`inferometer metrics`: what servers tell of themselves, from raw scrapes to exports."""

from __future__ import annotations

from pathlib import Path

import click

from inferometer.cli.command import GroupedOption, Lists
from inferometer.cli.outlet import say, tell
from inferometer.cli.watch import watch
from inferometer.plan.server_metrics import FORMATS

DEFAULT_FORMATS = ("json", "csv")
"""Those of telemetry/metrics/exports.py, which help does not import."""
ESTIMATORS = ("four-phase", "smooth", "linear")
"""Those of telemetry/metrics/estimators.py."""


@click.group("metrics", short_help="Server metrics: exports from raw scrapes.")
def command() -> None:
    """Server metrics: what servers report about themselves, as Prometheus text."""


@command.command(
    "replay",
    cls=Lists,
    short_help="Rebuild every export from a raw record.",
    exits="0 written, 2 usage or a file",
    examples=(
        "inferometer metrics replay runs/20260102T030405Z-run/telemetry/scrapes.jsonl.zst",
        "inferometer metrics replay scrapes.jsonl --slice-duration 5 --formats json parquet --out exports",
    ),
)
@click.argument("scrapes", type=click.Path(path_type=Path))
@click.option(
    "--formats",
    cls=GroupedOption,
    multiple=True,
    metavar="NAME...",
    help=f"Any of {' '.join(FORMATS)}. Default: {' '.join(DEFAULT_FORMATS)}.",
)
@click.option(
    "--slice-duration",
    cls=GroupedOption,
    type=float,
    default=2.0,
    metavar="S",
    help="Length of timeslices; 0 for none. Default: 2.",
)
@click.option(
    "--out",
    cls=GroupedOption,
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Folder of the exports. Default: the current one.",
)
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
    help="End of the warm-up, which is reported separately and excluded from the period.",
)
@click.option(
    "--histogram-estimator",
    type=click.Choice(ESTIMATORS),
    default=ESTIMATORS[0],
    help=f"How percentiles of histograms are estimated. Default: {ESTIMATORS[0]}.",
)
def replay(
    scrapes: Path,
    start: int | None,
    end: int | None,
    warmup_start: int | None,
    warmup_end: int | None,
    slice_duration: float,
    formats: tuple[str, ...],
    histogram_estimator: str,
    out: Path,
) -> int:
    """Rebuild every export of server metrics from a raw record: that of a run, or JSON Lines of endpoint_url,
    timestamp_ns, body."""
    from inferometer.report.figures import clean
    from inferometer.telemetry.metrics.exports import NAME
    from inferometer.telemetry.metrics.replay import Replay, replay

    named = ",".join(formats or DEFAULT_FORMATS).split(",")
    chosen = tuple(dict.fromkeys(name.strip() for name in named))
    asked = Replay(start, end, warmup_start, warmup_end, slice_duration, chosen, histogram_estimator)
    made = replay(scrapes, asked, out)
    summary = made.opening.summary
    for lost, what in ((summary.dropped, "dropped"), (summary.skipped_lines, "skipped lines")):
        for url, counts in (lost or {}).items():
            for code, one in counts.items():
                tell(f"{what}: {one.count} x {code} from {url}: {clean(one.first)}")
    count = sum(len(metric.series) for metric in made.metrics.values())
    say(f"{len(made.metrics)} metrics, {count} series from {len(summary.endpoints_successful)} endpoints")
    for name in chosen:
        say(str(out / f"{NAME}.{name}"))
    return 0


command.add_command(watch)
