"""The tables, read by `csv` and `pyarrow` (and by pandas where it is installed)."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from recorded_sessions import agent, written
from sample_runs import empty_summary, valid_summary
from simulating import simulated

from inferometer.documents.summary import Summary
from inferometer.exports import metric_rows, request_rows, tracked
from inferometer.exports.exported_run import ExportedRun, marks_of, read
from inferometer.exports.formats import Wanted
from inferometer.exports.readings import figures, series_name, spreads
from inferometer.exports.table_files import to_csv, to_parquet
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS


def csv_rows(written: bytes) -> list[dict[str, str]]:
    """As Python's reader has them."""
    return list(csv.DictReader(io.StringIO(written.decode(), newline="")))


def test_what_only_tasks_or_whole_sessions_have_is_exported_too(tmp_path: Path) -> None:
    """Law: in every table and reading, with the values of the summary; a run of neither has no such row."""
    tasks = tmp_path / "t.jsonl"
    task = {"task": "sum", "input": "What is 12 + 30?", "criterion": {"number": 42}, "output_tokens": 40}
    tasks.write_text(json.dumps(task) + "\n")
    flags: dict[str, object] = {
        "--boundary": "compound",
        "--tasks": str(tasks),
        "--rate": "5",
        "--requests": "30",
    }
    ran = read(simulated(tmp_path / "t", flags, "wrong_answer=0.4", system="agent").folder)
    rows = request_rows.request_rows(ran, Wanted()).to_pylist()
    measured = [row for row in rows if row["phase"] == "measure"]
    assert {row["task"] for row in measured} == {"sum"}
    passed = [row["task_result"] for row in measured].count("passed")
    assert ran.summary.tasks is not None
    assert passed == ran.summary.tasks.all.succeeded
    assert {row["task"] for row in rows if row["phase"] != "measure"} == {None}
    assert tracked.values(ran.summary)["task_success_rate"] == passed / 30
    assert {one.key: one.value for one in figures(ran.summary)}["task_success_rate"] == passed / 30

    file = written(tmp_path / "s.jsonl", [agent(str(at)) for at in range(20)])
    ran = read(simulated(tmp_path / "s", {"--sessions": file, "--concurrency": "4"}).folder)
    named = {row["metric"]: row for row in metric_rows.metric_rows(ran.summary).to_pylist()}
    sessions = ran.summary.agent_sessions
    assert sessions is not None
    assert sessions.ttft_ms is not None
    assert named["session_ttft_ms"]["p50"] == sessions.ttft_ms.p50
    assert "inferometer_session_ttft_seconds" in {series_name(one.key) for one in spreads(ran.summary)}
    assert "task_success_rate" not in named


@pytest.fixture(scope="module")
def requests(run: ExportedRun) -> list[dict[str, Any]]:
    """The table of requests, read back from Parquet."""
    written = request_rows.render_parquet(run, Wanted())
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(written)).to_pylist()
    return rows


def test_there_is_one_row_for_each_request_in_the_order_due(
    run: ExportedRun, requests: list[dict[str, Any]]
) -> None:
    """Warm-up included; the first measured request is due at 0 s."""
    assert len(requests) == len(run.samples.record)
    assert [row["phase"] for row in requests].count("measure") == 40
    due = [row["due_s"] for row in requests]
    assert due == sorted(due)
    assert next(row["due_s"] for row in requests if row["phase"] == "measure") == 0.0


def test_the_latencies_of_samples_are_the_ones_measured(
    run: ExportedRun, requests: list[dict[str, Any]]
) -> None:
    """A sample has its metrics; a failed or unmeasured request has none, and no 0 in their place."""
    samples = [row for row in requests if row["sample"]]
    assert np.array_equal([row["ttft_ms"] for row in samples], run.samples.ttft)
    assert np.array_equal([row["output_tokens"] for row in samples], run.samples.output_tokens)
    others = [row for row in requests if not row["sample"]]
    assert len(others) == len(requests) - len(run.samples)
    assert {row["ttft_ms"] for row in others} == {None}
    assert {row["outcome"] for row in others if row["phase"] == "measure"} == {"http_5xx"}


def test_each_row_bears_the_verdict(run: ExportedRun, requests: list[dict[str, Any]]) -> None:
    """And a Parquet file has it in its metadata too."""
    assert {(row["verdict"], row["verdict_reasons"]) for row in requests} == {
        (run.marks.verdict, " ".join(run.marks.reasons))
    }
    written = request_rows.render_parquet(run, Wanted())
    about = pq.read_schema(io.BytesIO(written)).metadata
    assert about[b"inferometer.verdict"].decode() == run.marks.verdict
    assert about[b"inferometer.run"].decode() == run.marks.run


def test_columns_describe_themselves(run: ExportedRun) -> None:
    """The columns are those listed, and Parquet says of each what it is."""
    schema = pq.read_schema(io.BytesIO(request_rows.render_parquet(run, Wanted())))
    assert schema.names == [column.name for column in request_rows.COLUMNS]
    assert all(field.metadata[b"description"] for field in schema)


def test_a_servers_words_run_in_no_spreadsheet_and_steer_no_terminal(run: ExportedRun) -> None:
    """A message that begins a formula has a quote before it, in CSV; escape sequences are in neither format."""
    (failed,) = [
        row for row in csv_rows(request_rows.render_csv(run, Wanted())) if row["outcome"] == "http_5xx"
    ]
    assert failed["detail"] == '\'=HYPERLINK("http://x","y")[31m'
    assert failed["finish_reason"] == "'-1+1"
    assert failed["http_status"] == "500"
    (row,) = [
        one
        for one in pq.read_table(io.BytesIO(request_rows.render_parquet(run, Wanted()))).to_pylist()
        if one["outcome"] == "http_5xx"
    ]
    assert row["detail"] == '=HYPERLINK("http://x","y")[31m'


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\uff1d"])
def test_no_text_begins_a_formula(begin: str) -> None:
    """Whatever a spreadsheet may take for one; numbers below 0 stay numbers, and nulls differ from empty texts."""
    table = pa.table({"text": [f"{begin}1", "a=1", "", None], "number": [-1.5, 0.0, None, 2.0]})
    assert to_csv(table).decode().splitlines() == [
        '"text","number"',
        f'"\'{begin}1",-1.5',
        '"a=1",0',
        '"",',
        ",2",
    ]


def test_both_readers_of_csv_see_the_same(run: ExportedRun) -> None:
    """Python's and Arrow's; a null is nothing between two commas."""
    written = request_rows.render_csv(run, Wanted())
    rows = csv_rows(written)
    table = pcsv.read_csv(io.BytesIO(written))
    assert table.column_names == list(rows[0])
    ttft = table["ttft_ms"].to_pylist()
    assert [None if row["ttft_ms"] == "" else float(row["ttft_ms"]) for row in rows] == ttft
    assert [one for one in ttft if one is not None] == run.samples.ttft.tolist()


def test_pandas_reads_both(run: ExportedRun) -> None:
    """As a notebook would: means agree, and nulls are missing values."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    mean = float(run.samples.ttft.mean())
    for frame in (
        pandas.read_csv(io.BytesIO(request_rows.render_csv(run, Wanted()))),
        pandas.read_parquet(io.BytesIO(request_rows.render_parquet(run, Wanted()))),
    ):
        assert frame["ttft_ms"].mean() == pytest.approx(mean)
        assert frame["ttft_ms"].isna().sum() == len(frame) - len(run.samples)


def test_event_times_and_answers_come_only_on_request(run: ExportedRun) -> None:
    """Neither is a column otherwise; in CSV a list is JSON."""
    assert not {"event_times_ms", "answer"} & {column.name for column in request_rows.COLUMNS}
    record = run.samples.record
    rows = csv_rows(request_rows.render_csv(run, Wanted(token_times=True, answers=True)))
    at = int(run.samples.rows[0])
    times = json.loads(rows[at]["event_times_ms"])
    first, last = record.event_offsets[at : at + 2]
    assert len(times) == last - first
    assert times[int(record.first_visible[at])] == run.samples.ttft[0]
    assert "answer" in rows[at]


def test_every_figure_of_the_summary_has_its_row(summary: Summary) -> None:
    """Metrics, rates and shares, by the summary's own keys: one that is added to it is missed here until it has a row."""
    rows = {row["metric"]: row for row in metric_rows.metric_rows(summary).to_pylist()}
    throughput = summary.throughput
    keys = [key for key in throughput.__struct_fields__ if key not in ("whole_run", "ci95")]
    assert not {*keys, *summary.metrics.__struct_fields__} - {*rows, "distributions"}
    for key in keys:
        assert rows[key]["value"] == getattr(throughput, key)


def test_prompts_are_in_no_table(run: ExportedRun) -> None:
    """With everything requested, no column holds a body or a prompt's text."""
    names = request_rows.request_rows(run, Wanted(token_times=True, answers=True)).column_names
    assert not [name for name in names if "body" in name or "prompt" in name]


def test_metrics_have_one_row_each(summary: Summary) -> None:
    """Every metric, rate and share, also those that the run has not, whose numbers are null."""
    table = metric_rows.metric_rows(summary)
    assert table["metric"].to_pylist() == [*METRICS, *RATES, *metric_rows.SHARES, SUCCESS]
    assert table.column_names == [column.name for column in metric_rows.COLUMNS]
    for row in table.to_pylist():
        assert row["verdict"] == summary.verdict.status
        stats = getattr(summary.metrics, row["metric"], None)
        if row["metric"] in METRICS:
            assert row["p99"] == (None if stats is None else stats.p99)
            assert row["n"] == (None if stats is None else stats.n)
            assert row["value"] is None
        else:
            assert row["mean"] is None


def test_an_empty_run_has_no_zeros() -> None:
    """All numbers of a run in which nothing was measured are null, but for the success rate if it has one."""
    table = metric_rows.metric_rows(empty_summary())
    numbers = [field.name for field in table.schema if pa.types.is_floating(field.type) or field.name == "n"]
    rows = [row for row in table.to_pylist() if row["metric"] != SUCCESS]
    assert {row[name] for row in rows for name in numbers} == {None}


def test_metrics_are_read_back_from_both_formats() -> None:
    """With their intervals."""
    summary = valid_summary()
    ttft = summary.metrics.ttft_ms
    assert ttft is not None
    table = metric_rows.metric_rows(summary)
    (from_csv,) = [row for row in csv_rows(to_csv(table)) if row["metric"] == "ttft_ms"]
    written = to_parquet(table, marks_of(summary))
    (from_parquet,) = [
        row for row in pq.read_table(io.BytesIO(written)).to_pylist() if row["metric"] == "ttft_ms"
    ]
    assert float(from_csv["p99"]) == from_parquet["p99"] == ttft.p99
    low = None if ttft.ci95.mean is None else ttft.ci95.mean[0]
    assert from_parquet["mean_ci95_low"] == low
    assert low is None or math.isclose(float(from_csv["mean_ci95_low"]), low)


def test_a_recorded_step_has_no_requested_prompt_length(tmp_path: Path) -> None:
    """Law: nobody asks for one, so the cell is empty, in each of a session's steps; the answer's is the recording's."""
    file = written(tmp_path / "sessions.jsonl", [agent(str(at)) for at in range(3)])
    run = simulated(tmp_path, {"--sessions": file, "--rate": "20", "--warmup": "0", "--output-tokens": "8"})
    rows = csv_rows(request_rows.render_csv(read(run.folder), Wanted()))
    assert {row["requested_input_tokens"] for row in rows} == {""}
    assert "" not in {row["requested_output_tokens"] for row in rows}
    assert {row["turn"] for row in rows} > {"0", "1"}
