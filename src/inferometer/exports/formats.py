"""Every format that a run is exported to: one entry each, from which the command, its help and the docs' table are derived.

An entry's file is imported when the format is asked for, so that what an optional extra brings is needed by no other.

| `kind`    | the function at `home`                               | goes to                                       |
| --------- | ---------------------------------------------------- | --------------------------------------------- |
| `file`    | `(ExportedRun, Wanted) -> bytes`                     | a file, or a URL where `push` says how        |
| `push`    | the same                                             | a URL                                         |
| `tracker` | `(ExportedRun, Place) -> str`: where it is found now | what the tracker's own library writes to      |
| `static`  | `() -> bytes`                                        | a file; it is about no run                    |
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:  # help needs the table alone
    from inferometer.exports.exported_run import ExportedRun


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a request is exported only on request: the arrival of each event, and the text of its answer."""

    token_times: bool = False
    answers: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tracker writes: a URI of its own kind, or a folder; at most one is given."""

    uri: str | None = None
    folder: Path | None = None


def _all_taken(_body: bytes) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Push:
    """How a format is carried by a request: its header lines, and what an answer of success says was refused all the same."""

    headers: Mapping[str, str]
    refused: Callable[[bytes], str | None] = _all_taken


@dataclass(frozen=True, slots=True)
class Format:
    """One format. `file`: its name unless another is requested. `push`: where the `Push` is of one that may be sent to a URL.
    `extra`: of the package, which brings the library. `means`: what it is, for help and docs. `needs_endpoint`: it goes to no
    file. `per_request`: it has a row for each request, to which `Wanted` adds."""

    name: str
    kind: Literal["file", "push", "tracker", "static"]
    home: str
    means: str
    file: str = ""
    push: str | None = None
    extra: str | None = None
    needs_endpoint: bool = False
    per_request: bool = False

    def render(self, run: ExportedRun, wanted: Wanted) -> bytes:
        """The bytes of a `file` or `push`. Raises PlanError where the extra is not installed."""
        rendered: bytes = self._member(self.home)(run, wanted)
        return rendered

    def static(self) -> bytes:
        """The bytes of a `static`."""
        rendered: bytes = self._member(self.home)()
        return rendered

    def track(self, run: ExportedRun, place: Place) -> str:
        """Log to a `tracker`; where the run is found there. Raises PlanError where the extra is not installed."""
        found: str = self._member(self.home)(run, place)
        return found

    def pushed(self) -> Push:
        """How a request carries it. Raises PlanError where the extra is not installed."""
        assert self.push is not None, "a format that may be sent to a URL"
        found: Push = self._member(self.push)
        return found

    def _member(self, home: str) -> Any:
        module, _, name = home.partition(":")
        try:
            return getattr(importlib.import_module(f"inferometer.exports.{module}"), name)
        except ModuleNotFoundError as cause:
            if self.extra is None or (cause.name or "").startswith("inferometer"):
                raise
            words = (
                f"{self.name} needs packages that are not installed: pip install 'inferometer[{self.extra}]'"
            )
            raise PlanError([Problem("--format", words)]) from None


_REGISTERED = (
    Format(
        "llm-d", "file", "llmd:render_yaml", "llm-d Benchmark Report 0.2, as YAML", "benchmark-report.yaml"
    ),
    Format("llm-d-json", "file", "llmd:render_json", "the same as JSON", "benchmark-report.json"),
    Format(
        "otlp",
        "file",
        "otlp:render",
        "OpenTelemetry metrics, as the protobuf message of OTLP",
        "metrics.otlp",
        push="otlp:PUSH",
        extra="otlp",
    ),
    Format(
        "otlp-json",
        "file",
        "otlp:render_json",
        "the same as OTLP JSON, on one line",
        "metrics.otlp.jsonl",
        push="otlp:JSON_PUSH",
        extra="otlp",
    ),
    Format(
        "prometheus",
        "file",
        "prometheus:render",
        "text for the textfile collector of node_exporter",
        "inferometer.prom",
    ),
    Format(
        "remote-write",
        "push",
        "remote_write:render",
        "Prometheus remote write 1.0",
        push="remote_write:PUSH",
        needs_endpoint=True,
    ),
    Format(
        "requests-csv",
        "file",
        "request_rows:render_csv",
        "one row per request",
        "requests.csv",
        per_request=True,
    ),
    Format(
        "requests-parquet",
        "file",
        "request_rows:render_parquet",
        "one row per request",
        "requests.parquet",
        per_request=True,
    ),
    Format("metrics-csv", "file", "metric_rows:render_csv", "one row per metric", "metrics.csv"),
    Format("metrics-parquet", "file", "metric_rows:render_parquet", "one row per metric", "metrics.parquet"),
    Format("mlflow", "tracker", "mlflow_run:log", "a run in MLflow", extra="mlflow", needs_endpoint=True),
    Format("wandb", "tracker", "wandb_run:log", "a run in Weights & Biases", extra="wandb"),
    Format(
        "grafana",
        "static",
        "grafana:render",
        "a Grafana dashboard",
        "grafana-dashboard.json",
    ),
)

FORMATS: Mapping[str, Format] = {one.name: one for one in _REGISTERED}
"""Every format by the name that `--format` has for it."""
