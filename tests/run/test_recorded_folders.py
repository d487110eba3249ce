"""A run folder that an earlier version wrote: its record is measured as it was then, and what is not read is refused by name.

`tests/vectors/folders/record-3` was recorded at commit d9fd377 with `inferometer simulate`: plan/1, run/2, record/3, summary/2.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from inferometer.cli.app import run
from inferometer.documents.part import to_data
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.run.evaluate import evaluate
from inferometer.studies.comparison import read

RECORDED = Path(__file__).parent.parent / "vectors" / "folders" / "record-3"
FIGURES = ("requests", "metrics", "throughput", "slos", "ttft_by_input")


INTERVALS = ("ci95", "met", "ci", "failed_share_ci95")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the recorded folder."""
    return Path(shutil.copytree(RECORDED, tmp_path / "golden"))


def recorded(values: Any, today: Any) -> Any:
    """Today's values as far as there were such then: a later version may know more, and says the same of the rest.

    Intervals, and the objectives that rest on them, are made by another method since; sums are rounded in another order.
    """
    if isinstance(values, dict):
        return {
            name: values[name] if name in INTERVALS else recorded(values[name], today[name])
            for name in values
        }
    if isinstance(values, float) and isinstance(today, float) and math.isclose(values, today, rel_tol=1e-12):
        return values
    return today


def test_a_record_of_an_earlier_version_has_the_figures_it_had(folder: Path) -> None:
    """Every number of the summary that was written beside it but for the ends of intervals, and the verdict."""
    then = json.loads((RECORDED / "summary.json").read_bytes())
    now = to_data(evaluate(RunFolder.open(folder)).summary)
    assert (then["schema"], now["schema"]) == ("inferometer/summary/2", "inferometer/summary/4")
    for part in FIGURES:
        assert recorded(then[part], now[part]) == then[part], part
    assert now["verdict"]["status"] == then["verdict"]["status"]


def test_a_summary_of_an_earlier_version_is_refused_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a summary is read, with what makes one that can be."""
    with pytest.raises(
        RecordError, match=r"inferometer/summary/2.*inferometer/summary/4.*inferometer report"
    ):
        read(folder)
    assert run(["compliance", str(folder)]) == 2
    said = capsys.readouterr().err
    assert all(
        words in said for words in ("inferometer/summary/2", "inferometer/summary/4", "inferometer report")
    )


def test_run_json_of_an_earlier_version_is_refused_by_name(folder: Path) -> None:
    """Nothing is read from it."""
    facts = json.loads((folder / "run.json").read_bytes())
    (folder / "run.json").write_text(json.dumps(facts | {"schema": "inferometer/run/1"}))
    with pytest.raises(RecordError, match=r"run\.json.*inferometer/run/1.*inferometer/run/2"):
        evaluate(RunFolder.open(folder))


@pytest.mark.parametrize("version", ["2", "12"])
def test_a_record_that_is_not_read_is_refused_by_name(folder: Path, version: str) -> None:
    """An older and a newer one, with the versions that are read."""
    path = folder / "requests.parquet"
    table = pq.read_table(path)
    assert table.schema.metadata[b"inferometer"] == b"record/3"
    pq.write_table(table.replace_schema_metadata({"inferometer": f"record/{version}"}), path)
    with pytest.raises(
        RecordError,
        match=rf"of version record/{version}; .* record/3 and record/4 and record/5 and record/6 and record/7 and record/8"
        " and record/9 and record/10 and record/11",
    ):
        evaluate(RunFolder.open(folder))


def test_a_plan_that_is_not_read_is_refused_by_name(folder: Path) -> None:
    """With the versions that are."""
    plan = json.loads((folder / "plan.json").read_bytes())
    (folder / "plan.json").write_text(json.dumps(plan | {"schema": "inferometer/plan/3"}))
    with pytest.raises(RecordError, match=r"inferometer/plan/3.*inferometer/plan/2.*inferometer/plan/1"):
        evaluate(RunFolder.open(folder))
