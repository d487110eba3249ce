"""Two benchmarks from their folders or files to a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from inferometer import __version__, whole_file
from inferometer.documents.bench import METRICS_VERSION
from inferometer.documents.bench_comparison import BenchComparison
from inferometer.errors import PlanError, Problem
from inferometer.journal.documents import holds
from inferometer.judge.bench_comparison import FIGURES, BenchCriteria, Named, compare_benches
from inferometer.studies.bench import FILE, read


class _Metadata(msgspec.Struct):
    metrics_version: str


class _Engine(msgspec.Struct):
    metadata: _Metadata


class _Definitions(msgspec.Struct):
    """As much of a bench.json of any version as says how its figures are defined."""

    engines: tuple[_Engine, ...]


def is_bench(side: str) -> bool:
    """Whether a side is a benchmark: its folder, or its bench.json."""
    path = Path(side)
    return holds(path, FILE) or (path.name == FILE and holds(path.parent, FILE))


def compare_bench_folders(
    sides: Sequence[str], metrics: Sequence[str] = (), threshold: float = 0.0, noise: Sequence[str] = ()
) -> BenchComparison:
    """Compare two benchmarks. `threshold` in per cent; `noise`: benchmarks of the first one's engines.

    Raises PlanError for what cannot be compared, RecordError for what cannot be read.
    """
    problems = []
    if len(sides) != 2 or not all(map(is_bench, (*sides, *noise))):
        problems.append(
            Problem("SIDES", "a benchmark is compared with one other benchmark: give two folders of `bench`")
        )
    for name in metrics:
        if name not in FIGURES:
            problems.append(Problem("--metric", f"there is no {name!r}; there are {', '.join(FIGURES)}"))
    if not 0 <= threshold < 1_000:
        problems.append(Problem("--threshold", "must be a percentage from 0 up"))
    if problems:
        raise PlanError(problems)
    paths = [_document(side) for side in (*sides, *noise)]
    twice = dict.fromkeys(str(path) for path in paths if _places(paths).count(path.resolve()) > 1)
    if twice:
        raise PlanError([Problem("SIDES", f"{path} is named twice: it counts once") for path in twice])
    for path in paths:
        _same_definitions(path)
    first, second, *others = (Named(_name(path), read(path)) for path in paths)
    deciding = tuple(name for name in FIGURES if name in metrics)
    return compare_benches(
        __version__, first, second, BenchCriteria(deciding, threshold / 100, tuple(others))
    )


def _document(side: str) -> Path:
    return Path(side) / FILE if Path(side).is_dir() else Path(side)


def _places(paths: Sequence[Path]) -> list[Path]:
    return [path.resolve() for path in paths]


def _name(path: Path) -> str:
    return path.resolve().parent.name


def _same_definitions(path: Path) -> None:
    """Refuse figures of another version of the definitions by name, before the document is read as one of ours."""
    try:
        found = msgspec.json.decode(whole_file.read(path), type=_Definitions)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # read() says what is wrong with it
    versions = {one.metadata.metrics_version for one in found.engines}
    if others := sorted(versions - {METRICS_VERSION}):
        why = f"{path}: metrics_version {', '.join(others)[:80]}, and figures are compared by {METRICS_VERSION} alone"
        raise PlanError([Problem("SIDES", why)])
