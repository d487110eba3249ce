"""`inferometer metrics replay`: from a raw record, plain or compressed, to every export; and what it says of a bad one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from metrics_play import SECOND, START, URL, at, exported, read_json, scrapes_of, vector

from inferometer.cli import metrics
from inferometer.cli.app import run
from inferometer.plan.server_metrics import FORMATS as PLANNED
from inferometer.telemetry.metrics.estimators import DEFAULT, ESTIMATORS
from inferometer.telemetry.metrics.exports import DEFAULT_FORMATS, FORMATS
from inferometer.telemetry.metrics.histogram_delta import Floats, Observed
from inferometer.telemetry.metrics.record import Scrape, write


def plain(path: Path, scrapes: list[Scrape]) -> Path:
    """JSON Lines of the three members that are always there."""
    rows = ({"endpoint_url": s.endpoint_url, "timestamp_ns": s.timestamp_ns, "body": s.body} for s in scrapes)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_plain_lines_and_a_runs_own_record_give_the_same(tmp_path: Path) -> None:
    """But for latencies, which plain lines do not have."""
    case = vector("server_llamacpp")
    scrapes = scrapes_of(case)
    record = tmp_path / "scrapes.jsonl.zst"
    with pa.OSFile(str(record), "wb") as file, pa.CompressedOutputStream(file, "zstd") as out:
        for scrape in scrapes:
            out.write(write(scrape))
    window = ["--start", str(case["window"]["start_ns"]), "--end", str(case["window"]["end_ns"])]
    documents = []
    for number, path in enumerate((record, plain(tmp_path / "own.jsonl", scrapes))):
        folder = tmp_path / str(number)
        assert run(["metrics", "replay", str(path), *window, "--out", str(folder)]) == 0
        assert {one.name for one in folder.iterdir()} == {
            "server_metrics_export.json",
            "server_metrics_export.csv",
        }
        documents.append(read_json(folder))
    assert documents[0]["metrics"] == documents[1]["metrics"]
    recorded = case["expected"]["window"]["metrics"]
    assert set(documents[0]["metrics"]) == set(recorded)
    tokens = documents[0]["metrics"]["llamacpp:tokens_predicted"]["series"][0]["stats"]
    assert tokens == pytest.approx(recorded["llamacpp:tokens_predicted"]["series"][0]["stats"])


def test_every_format_is_written_when_asked_for(tmp_path: Path) -> None:
    """Named one after the other or with commas."""
    path = plain(tmp_path / "own.jsonl", [at(second, "x 1\n") for second in range(5)])
    words = ["metrics", "replay", str(path), "--formats", "jsonl", "parquet", "--out", str(tmp_path / "out")]
    assert run([*words, "--slice-duration", "1"]) == 0
    assert {one.suffix for one in (tmp_path / "out").iterdir()} == {".jsonl", ".parquet"}
    assert pq.read_table(tmp_path / "out" / "server_metrics_export.parquet").num_rows == 5


def test_an_export_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where one cannot be carried to its end, that of before stays, and nothing beside it."""
    body = '# TYPE h histogram\na 1\nh_bucket{le="1"} %d\nh_bucket{le="+Inf"} %d\nh_sum %d\nh_count %d\n'
    scrapes = [at(n, body % (n, n, n, n)) for n in range(4)]
    exported(scrapes, tmp_path)
    before = (tmp_path / "server_metrics_export.json").read_bytes()

    def ends(_: Observed) -> Floats | None:
        raise MemoryError

    with pytest.raises(MemoryError):
        exported(scrapes, tmp_path, estimator=ends)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_a_warm_up_is_told_apart(tmp_path: Path) -> None:
    """Its end begins the period, whose reference is the last scrape before; it begins where the period was said to."""
    path = plain(tmp_path / "own.jsonl", [at(s, f"# TYPE c counter\nc {s * s}\n") for s in range(11)])
    start, middle = str(START + SECOND), str(START + 5 * SECOND)
    assert (
        run(
            ["metrics", "replay", str(path), "--start", start, "--warmup-end", middle, "--out", str(tmp_path)]
        )
        == 0
    )
    found = read_json(tmp_path)
    assert found["metrics"]["c"]["series"][0]["stats"]["total"] == 100 - 16
    assert found["warmup_metrics"]["c"]["series"][0]["stats"]["total"] == 25
    assert found["summary"]["phase_time_ranges"]["warmup"] == {"start_ns": int(start), "end_ns": int(middle)}


def test_a_runs_own_record_needs_no_times(tmp_path: Path) -> None:
    """Its scrapes say which phase they were made in."""
    path = tmp_path / "own.jsonl"
    phases = ["baseline", "warmup", "warmup", "profiling", "profiling", "profiling", "final"]
    values = [0, 1, 3, 6, 10, 15, 21]
    path.write_bytes(
        b"".join(
            write(at(s, f"# TYPE c counter\nc {value}\n", phase=phase))
            for s, (phase, value) in enumerate(zip(phases, values, strict=True))
        )
    )
    assert run(["metrics", "replay", str(path), "--out", str(tmp_path)]) == 0
    found = read_json(tmp_path)
    assert found["metrics"]["c"]["series"][0]["stats"]["total"] == 21 - 3  # the last news came after the load
    assert found["warmup_metrics"]["c"]["series"][0]["stats"]["total"] == 3


def test_another_estimator_changes_the_estimates_alone(tmp_path: Path) -> None:
    """Of the document, percentiles of histograms and the word in input_config."""
    path = plain(tmp_path / "own.jsonl", scrapes_of(vector("hist_multi_bucket")))
    found = {}
    for name in ESTIMATORS:
        assert (
            run(["metrics", "replay", str(path), "--histogram-estimator", name, "--out", str(tmp_path)]) == 0
        )
        found[name] = read_json(tmp_path)
        assert found[name]["input_config"].pop("histogram_estimator") == name
    estimates = []
    for one in found.values():
        stats = one["metrics"]["lat_seconds"]["series"][0]["stats"]
        estimates.append([stats.pop(key) for key in list(stats) if key.endswith("_estimate")])
    assert len({tuple(one) for one in estimates}) == len(ESTIMATORS)
    assert found["four-phase"] == found["smooth"] == found["linear"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--slice-duration", "-1"], "--slice-duration"),
        (["--slice-duration", "nan"], "--slice-duration"),
        (["--formats", "xml"], "--formats"),
        (["--start", "5", "--end", "4"], "--end"),
        (["--warmup-start", "5"], "--warmup-end"),
        (["--histogram-estimator", "magic"], "magic"),
    ],
)
def test_what_cannot_be_carried_out_is_said(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the flag, exit code 2, and nothing written."""
    path = plain(tmp_path / "own.jsonl", [at(0, "x 1\n"), at(1, "x 2\n")])
    assert run(["metrics", "replay", str(path), "--out", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "no scrapes"),
        ("hello\nthere\n", "own.jsonl:1"),
        (json.dumps({"endpoint_url": URL, "timestamp_ns": 1, "body": "<html>"}) + "\n", "1 x html"),
    ],
)
def test_a_record_without_anything_usable_is_named(
    lines: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason, and exit code 2."""
    path = tmp_path / "own.jsonl"
    path.write_text(lines)
    assert run(["metrics", "replay", str(path), "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err


def test_drops_are_said_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each endpoint's, by code, without credentials."""
    url = "http://joe:hunter2@h/metrics"
    path = plain(tmp_path / "own.jsonl", [at(0, "x 1\n", url), at(1, "<html>", url), at(2, "x 2\n", url)])
    assert run(["metrics", "replay", str(path), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "dropped: 1 x html from http://<redacted>@h/metrics" in said.err
    assert "hunter2" not in said.err + said.out


def test_the_names_that_help_shows_are_those_there_are() -> None:
    """Help imports none of it."""
    assert PLANNED == FORMATS
    assert metrics.DEFAULT_FORMATS == DEFAULT_FORMATS
    assert tuple(ESTIMATORS) == metrics.ESTIMATORS
    assert metrics.ESTIMATORS[0] == DEFAULT
