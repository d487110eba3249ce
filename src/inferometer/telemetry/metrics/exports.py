"""Every export of a record, written into a folder: the one door from raw scrapes to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from inferometer.telemetry.metrics.columns import write_parquet
from inferometer.telemetry.metrics.document import Wanted, document, metrics, warmup_metrics
from inferometer.telemetry.metrics.lines import lines
from inferometer.telemetry.metrics.series import Store
from inferometer.telemetry.metrics.table import csv_export

FORMATS = ("json", "csv", "jsonl", "parquet")
DEFAULT_FORMATS = ("json", "csv")
NAME = "server_metrics_export"


def export(store: Store, wanted: Wanted, formats: Sequence[str], folder: Path) -> dict[str, Any]:
    """Write `server_metrics_export.<format>` for each format; gives the document, whether it is written or not."""
    found = metrics(store, wanted)
    made = document(store, wanted, found, warmup_metrics(store, wanted))
    folder.mkdir(parents=True, exist_ok=True)
    if "json" in formats:
        text = msgspec.json.format(msgspec.json.encode(made), indent=2)
        (folder / f"{NAME}.json").write_bytes(text + b"\n")
    if "csv" in formats:
        table = csv_export(found, wanted.version, wanted.benchmark_id)
        (folder / f"{NAME}.csv").write_bytes(table.encode())
    if "jsonl" in formats:
        with (folder / f"{NAME}.jsonl").open("wb") as file:
            file.writelines(lines(store))
    if "parquet" in formats:
        write_parquet(store, wanted, folder / f"{NAME}.parquet")
    return made
