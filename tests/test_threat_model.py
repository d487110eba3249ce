"""docs/threat-model.md: its limits are those of the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inferometer import errors, foreign_json, whole_file
from inferometer.calibration import certificate
from inferometer.drive import exchange, probe, worker_pool
from inferometer.drive.answer_limits import UNLESS_SET
from inferometer.exports import push
from inferometer.foreign_tables import limits
from inferometer.plan import document
from inferometer.plan.target import Target
from inferometer.protocol import http_response
from inferometer.run import target
from inferometer.studies import engine_client
from inferometer.studies.history import lines
from inferometer.telemetry.metrics import fetch, record, series, statistics
from inferometer.telemetry.power import bounded_calls, command, command_output, http, powermetrics
from inferometer.workload import prompt_file, tokenizer_file
from inferometer.workload.datasets import rows
from inferometer.workload.traces import source

PAGE = Path(__file__).parents[1] / "docs" / "threat-model.md"
GIVEN = {name: field.default for name, field in Target.model_fields.items()}
TOLD: dict[str, list[str | int]] = {
    "an answer": [UNLESS_SET.bytes, f"{UNLESS_SET.events:,} events", f"{UNLESS_SET.overrun_ns / 1e9:g} s beyond",
                  f"{GIVEN['timeout_s']:g} s in all"],
    "one event of a stream": [exchange.EVENT_LIMIT],
    "the head of a response": [http_response.HEAD_LIMIT, http_response.FRAMING_LIMIT],
    "the body of an error": [exchange.ERROR_LIMIT],
    "before the load": [probe.LARGEST, f"{probe.LISTING_S:g} s", f"{GIVEN['probe_timeout_s']:g} s"],
    "the list of models": [f"{target.MOST_MODELS:,} names", f"{target.LONGEST_NAME} characters"],
    "an engine's own routes": [engine_client.LARGEST],
    "series of one metrics endpoint": [f"{series.MOST_SERIES:,}"],
    "a scrape of metrics": [fetch.LARGEST, f"{fetch.TIMEOUT_S:g} s"],
    "what a wall meter": [http.LARGEST, f"{http.TIMEOUT_S:g} s", command_output.LARGEST, f"{command.TIMEOUT_S:g} s"],
    "a sample of powermetrics": [powermetrics.LARGEST],
    "a driver that hangs": [f"after {bounded_calls.TIMEOUT_S:g} s"],
    "a receiver of an export": [push.LARGEST_ANSWER, f"{push.Destination('').timeout_s:g} s"],
    "a worker whose loop": [f"{worker_pool.HANG_S:g} s"],
    "a plan |": [document.MOST_BYTES, f"{document._MOST_NODES:,} keys and values",
                 f"{document._DEEPEST} levels", f"{errors.MOST_PROBLEMS} problems"],
    "a document": [whole_file.MOST],
    "JSON in any": [f"{foreign_json.MOST_VALUES:,} commas and brackets",
                    f"{foreign_json.DEEPEST} levels", f"{sys.get_int_max_str_digits():,} digits"],
    "a row of a file": [prompt_file.LONGEST_LINE, source.LONGEST_LINE],
    "a batch of an Arrow": [limits.MOST_BATCH, limits.MOST_GROUP, f"{limits.MOST_TIMES} times", f"{limits.MOST_ROWS:,}",
                            f"{limits.FEW_ROWS:,}"],
    "a row of a dataset": [f"{rows._LONGEST:,} characters"],
    "a trace, a record": [source.UNPACKED, f"{source.UNPACKED_TIMES:,} times", record.UNPACKED,
                          f"{record.UNPACKED_TIMES:,} times"],
    "timeslices of a period": [f"{statistics.FEW_SLICES}, and {statistics.SLICES_PER_SCRAPE} for each scrape"],
    "an import of results": [whole_file.MOST, lines.LONGEST, f"{lines.MOST:,}"],
    "a tokenizer's file": [tokenizer_file.MOST_BYTES, certificate.MOST_BYTES],
}  # fmt: skip
"""By the beginning of a row: what it says, in words or in bytes."""


@pytest.mark.parametrize("row", TOLD)
def test_every_limit_is_told_as_it_is(row: str) -> None:
    """Each constant is in its row of the page."""
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {row}")]
    for told in TOLD[row]:
        assert (told if isinstance(told, str) else size(told)) in line


def size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
