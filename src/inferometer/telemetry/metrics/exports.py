"""Every export of a record, written into a folder: the one door from raw scrapes to files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from inferometer.printable import printable_json
from inferometer.telemetry.metrics.columns import write_parquet
from inferometer.telemetry.metrics.document import Metric, Wanted, metrics, opening, warmup_metrics
from inferometer.telemetry.metrics.entries import Export, Opening, without_timeslices
from inferometer.telemetry.metrics.lines import lines
from inferometer.telemetry.metrics.series import Store
from inferometer.telemetry.metrics.table import write_csv
from inferometer.whole_file import replacing

FORMATS = ("json", "csv", "jsonl", "parquet")
DEFAULT_FORMATS = ("json", "csv")
NAME = "server_metrics_export"
_INDENT = 2


def export(store: Store, wanted: Wanted, formats: Sequence[str], folder: Path) -> Export:
    """Write `server_metrics_export.<format>` for each format; gives the JSON document without its timeslices.

    Timeslices are most of a long record's export, so metrics are computed, written and forgotten one by one. A file is there
    whole or not at all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    start = opening(store, wanted)
    kept: list[Metric] = []
    warm: list[Metric] = []
    text = _document(start, store, wanted, kept, warm)
    if "json" in formats:
        with replacing(folder / f"{NAME}.json") as part, part.open("wb") as file:
            file.writelines(map(printable_json, text))
    else:
        for _ in text:
            pass
    if "csv" in formats:
        with replacing(folder / f"{NAME}.csv") as part, part.open("w", encoding="utf-8", newline="") as table:
            write_csv(table, kept, wanted.version, wanted.benchmark_id)
    if "jsonl" in formats:
        with replacing(folder / f"{NAME}.jsonl") as part, part.open("wb") as file:
            file.writelines(lines(store))
    if "parquet" in formats:
        with replacing(folder / f"{NAME}.parquet") as part:
            write_parquet(store, wanted, part)
    return Export(
        start,
        {metric.name: metric.entry() for metric in kept},
        {metric.name: metric.entry() for metric in warm},
        wanted.input_config,
    )


def _document(
    start: Opening, store: Store, wanted: Wanted, kept: list[Metric], warm: list[Metric]
) -> Iterator[bytes]:
    """The JSON document in pieces; what it was made of, without timeslices, is added to the two lists on the way."""
    yield b"{" + b",".join(_member(name, getattr(start, name), 1) for name in start.__struct_fields__)
    yield b",\n" + b" " * _INDENT + b'"metrics": {'
    yield from _members(metrics(store, wanted), kept)
    for number, piece in enumerate(_members(warmup_metrics(store, wanted), warm)):
        if number == 0:
            yield b"},\n" + b" " * _INDENT + b'"warmup_metrics": {'
        yield piece
    yield b"}," + _member("input_config", wanted.input_config, 1) + b"\n}\n"


def _members(metrics: Iterable[Metric], kept: list[Metric]) -> Iterator[bytes]:
    """Metric after metric as members of an object, forgotten but for their statistics."""
    for number, metric in enumerate(metrics):
        yield (b"," if number else b"") + _member(metric.name, metric.entry(), 2)
        metric.series = [without_timeslices(one) for one in metric.series]
        kept.append(metric)


def _member(name: str, value: object, depth: int) -> bytes:
    """A member on lines of its own, indented."""
    space = b"\n" + b" " * (_INDENT * depth)
    text = msgspec.json.format(msgspec.json.encode(value), indent=_INDENT)
    return space + msgspec.json.encode(name) + b": " + text.replace(b"\n", space)
