"""Two benchmarks from their folders or files to a comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from inferometer import __version__
from inferometer.documents.bench import METRICS_VERSION
from inferometer.documents.bench_comparison import BenchComparison
from inferometer.errors import PlanError, Problem
from inferometer.judge.bench_comparison import compare_benches
from inferometer.studies.bench import FILE, read


def is_bench(side: str) -> bool:
    """Whether a side is a benchmark: its folder, or its bench.json."""
    path = Path(side)
    return (path / FILE).is_file() or (path.name == FILE and path.is_file())


def compare_bench_folders(sides: Sequence[str]) -> BenchComparison:
    """Compare two benchmarks. Raises PlanError for what cannot be compared, RecordError for what cannot be read."""
    if len(sides) != 2 or not all(map(is_bench, sides)):
        raise PlanError(
            [Problem("SIDES", "a benchmark is compared with one other benchmark: give two folders")]
        )
    paths = [path / FILE if path.is_dir() else path for path in map(Path, sides)]
    for path in paths:
        _same_definitions(path)
    first, second = map(read, paths)
    return compare_benches(__version__, (sides[0], sides[1]), first, second)


def _same_definitions(path: Path) -> None:
    """Refuse figures of another version of the definitions by name, before the document is read as one of ours."""
    try:
        engines = json.loads(path.read_bytes())["engines"]
        versions = {one["metadata"]["metrics_version"] for one in engines}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return  # read() says what is wrong with it
    if others := sorted(str(one) for one in versions - {METRICS_VERSION}):
        why = f"{path}: metrics_version {', '.join(others)[:80]}, and figures are compared by {METRICS_VERSION} alone"
        raise PlanError([Problem("SIDES", why)])
