"""Writing the reports: all three or none, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace
from shipped_schemas import shipped

from inferometer.documents.part import to_data
from inferometer.documents.summary import Summary
from inferometer.errors import InstrumentError
from inferometer.measure.series import RunSeries
from inferometer.report.run.files import write_reports


def test_each_sample_is_written_in_every_format(sample: Any, tmp_path: Path) -> None:
    """Three files, nothing else left behind; the summary reads back as it was and fits its schema."""
    summary, series = sample
    paths = write_reports(tmp_path, summary, series)
    assert (
        sorted(path.name for path in tmp_path.iterdir())
        == ["report.html", "report.md", "summary.json"]
        == sorted(paths)
    )
    back = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    jsonschema.validate(back, shipped("summary"))
    assert back == to_data(summary)


def test_a_second_writing_replaces_the_first(sample: Any, tmp_path: Path) -> None:
    """Rendering is deterministic: the same result gives the same bytes."""
    first = {name: path.read_bytes() for name, path in write_reports(tmp_path, *sample).items()}
    second = {name: path.read_bytes() for name, path in write_reports(tmp_path, *sample).items()}
    assert first == second


def test_nothing_is_written_when_anything_is_wrong(valid: Summary, series: RunSeries, tmp_path: Path) -> None:
    """A number that JSON cannot hold leaves the old reports as they were."""
    (tmp_path / "summary.json").write_text("old", encoding="utf-8")
    spoilt = replace(valid.verdict.checks[0], facts={"x": float("nan")})
    with pytest.raises(InstrumentError):
        write_reports(tmp_path, replace(valid, verdict=replace(valid.verdict, checks=(spoilt,))), series)
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]
    assert (tmp_path / "summary.json").read_text(encoding="utf-8") == "old"


def test_a_lone_surrogate_in_a_servers_words_costs_no_report(valid: Any, series: Any, tmp_path: Path) -> None:
    """Half a character from a broken server is replaced, not raised."""
    broken = replace(valid, sut=replace(valid.sut, model="m\ud800"))
    for path in write_reports(tmp_path, broken, series).values():
        path.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_moved_into_place_leaves_no_litter(
    valid: Any, series: Any, tmp_path: Path
) -> None:
    """The half-way file is taken away again."""
    (tmp_path / "summary.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_reports(tmp_path, valid, series)
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


def test_a_folder_that_cannot_be_written_to_leaves_no_litter(valid: Any, series: Any, tmp_path: Path) -> None:
    """The error is the operating system's own."""
    with pytest.raises(OSError, match="No such file"):
        write_reports(tmp_path / "missing", valid, series)
    assert not list(tmp_path.iterdir())
