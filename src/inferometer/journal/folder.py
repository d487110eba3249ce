"""The run folder: where each file of a run lies.

runs/<utc>-<name>/  plan.json  run.json  requests.arrow  journal/worker-K.arrows  journal/pulse-K.arrows
                    steps.arrow  tasks.arrow  spans.jsonl  system_steps.jsonl
                    requests.parquet  pulse.parquet  telemetry/scrapes.jsonl.zst  summary.json  report.md  report.html  log.txt
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from inferometer.errors import RecordError, file_error
from inferometer.journal.documents import holds, in_text, not_elsewhere
from inferometer.journal.unfinished import unfinished

_READ = (
    "plan.json", "run.json", "summary.json", "requests.arrow", "requests.arrows", "steps.arrow", "tasks.arrow",
    "requests.parquet", "pulse.parquet", "telemetry/scrapes.jsonl.zst", "spans.jsonl",
)  # fmt: skip
"""What of a run's folder is read; a link out of it would have others' files in its reports."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of one run. `path` exists."""

    path: Path

    @classmethod
    def create(cls, parent: Path, name: str, wall_ns: int) -> RunFolder:
        """Make a new folder under `parent`, named after the UTC instant `wall_ns`. Raises RecordError."""
        stamp = datetime.fromtimestamp(wall_ns // 1_000_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            in_text(parent.resolve()).mkdir(parents=True, exist_ok=True)
            for suffix in ("", *(f".{n}" for n in range(2, 1000))):
                path = parent / f"{stamp}-{name}{suffix}"
                try:
                    path.mkdir()
                except FileExistsError:
                    continue
                (path / "journal").mkdir()
                return cls(path)
        except OSError as cause:
            raise file_error(f"{parent}: cannot make a run folder here ({cause.strerror})", cause) from cause
        raise RecordError(f"{parent}: too many runs of one name in one second")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run. Raises RecordError if this is none, or if a file of it is refused (documents.py)."""
        if not holds(path, "plan.json"):
            raise RecordError(f"{path}: not a run folder (it holds no plan.json){unfinished(path)}")
        streams = not_elsewhere(path / "journal", path).glob("*.arrows")
        for name in (*_READ, *(f"journal/{stream.name}" for stream in streams)):
            holds(path, name)
        return cls(path)

    @property
    def measured(self) -> bool:
        """Whether a worker has journalled something, or one on a load host may have."""
        return self.fetched_hosts.is_file() or any(
            stream.stat().st_size for stream in self.journal.glob("*.arrows")
        )

    def remove_unmeasured(self) -> None:
        """Remove the folder unless a worker has journalled something."""
        if not self.measured:
            shutil.rmtree(self.path, ignore_errors=True)  # whatever is wrong is being reported already

    def remove_outcomes(self) -> None:
        """Remove the workers' streams of outcomes once the sealed record, which holds them, is surely on disk."""
        with self.record.open("rb") as sealed:
            os.fsync(sealed.fileno())
        for path in self.journal.glob("worker-*.arrows"):
            path.unlink()

    @property
    def plan(self) -> Path:
        """The resolved plan."""
        return self.path / "plan.json"

    @property
    def facts(self) -> Path:
        """What is known of the run that its record does not hold."""
        return self.path / "run.json"

    @property
    def schedule(self) -> Path:
        """What was to be sent."""
        return self.path / "requests.arrow"

    @property
    def steps(self) -> Path:
        """How the requests of recorded agent sessions hang together; there only for those."""
        return self.path / "steps.arrow"

    @property
    def tasks(self) -> Path:
        """How the answers of a run of tasks were judged; there only for those."""
        return self.path / "tasks.arrow"

    @property
    def system_spans(self) -> Path:
        """The spans of a compound system, as OTLP JSON Lines, where they came to us and not into a file of the system's own."""
        return self.path / "spans.jsonl"

    @property
    def system_steps(self) -> Path:
        """What a simulated system did, step by step."""
        return self.path / "system_steps.jsonl"

    @property
    def journal(self) -> Path:
        """The workers' streams."""
        return self.path / "journal"

    @property
    def fetched(self) -> Path:
        """What load hosts have handed over of their journals, until it is merged."""
        return self.journal / "fetched"

    @property
    def fetched_hosts(self) -> Path:
        """Which load hosts there are; there once they have begun to send."""
        return self.fetched / "hosts.json"

    @property
    def record(self) -> Path:
        """The sealed record."""
        return self.path / "requests.parquet"

    @property
    def pulse(self) -> Path:
        """The workers' health, sealed."""
        return self.path / "pulse.parquet"

    @property
    def scrapes(self) -> Path:
        """What the server's metrics endpoints said, as they said it."""
        return self.path / "telemetry" / "scrapes.jsonl.zst"

    @property
    def log(self) -> Path:
        """What the processes of the run had to say."""
        return self.path / "log.txt"


def inside(folder: Path, name: str) -> Path:
    """What a document in a folder calls by this name, `runs/x` for one. Raises RecordError for a name that leads out of the
    folder: a document may be a stranger's."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts or "\0" in name:
        raise RecordError(f"{folder}: {name[:60]!r} is not the name of a run in it")
    return not_elsewhere(folder / name, folder)
