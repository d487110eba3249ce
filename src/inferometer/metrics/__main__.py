"""`python -m inferometer.metrics`: the table of all metrics and rates, as docs/definitions.md holds it."""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.metrics.catalogue import METRICS, RATES

HEADING = ("key", "name", "unit", "better", "draft", "definition")


def table() -> str:
    """Markdown, a row for each metric and each rate."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADING, ("---",) * len(HEADING), *_rows()))


def _rows() -> Iterator[tuple[str, ...]]:
    for name, metric in METRICS.items():
        better = metric.better or ""
        yield f"`{name}`", metric.title, metric.unit, better, metric.section or "", metric.means
    for name, rate in RATES.items():
        yield f"`{name}`", rate.title, rate.unit, rate.better, "", rate.means


if __name__ == "__main__":
    print(table())  # noqa: T201 - what the command is for
