"""MLflow and W&B, each by its own library. Without it the test is skipped; `make test-trackers` installs both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import finish
from sample_runs import empty_summary

from inferometer.documents.summary import Summary
from inferometer.exports.exported_run import ExportedRun
from inferometer.exports.tracked import parameters, tags, title, values


def test_values_are_those_of_the_summary_and_none_is_undefined(summary: Summary) -> None:
    """In the summary's units; what is null there has no value here."""
    found = values(summary)
    ttft = summary.metrics.ttft_ms
    assert found.get("ttft_ms.p99") == (None if ttft is None else ttft.p99)
    assert found.get("output_tok_s") == summary.throughput.output_tok_s
    assert found["requests.sent"] == summary.requests.sent
    assert not [name for name in values(empty_summary()) if name.startswith("ttft")]


def test_the_verdict_is_in_tags_and_title(summary: Summary) -> None:
    """A list of runs shows what is not VALID, and a filter finds it."""
    status = summary.verdict.status
    assert tags(summary)["inferometer.verdict"] == status
    assert (status in title(summary)) == (status != "VALID")


def test_parameters_are_the_plans_keys(summary: Summary) -> None:
    """Flat, as text, without those that have no value."""
    found = parameters(summary)
    assert found["load.model"] == summary.plan.load.model
    assert all(found.values())


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_mlflow_has_the_run(run: ExportedRun, folder: Path, tmp_path: Path, scheme: str) -> None:
    """Parameters, metrics, tags and reports, as MLflow's client reads them back."""
    tracking = pytest.importorskip("mlflow.tracking", reason="the extra mlflow is not installed")
    if scheme == "sqlite":
        pytest.importorskip("sqlalchemy", reason="MLflow's SQLite store needs sqlalchemy and alembic")
    uri = f"file://{tmp_path}/runs" if scheme == "file" else f"sqlite:///{tmp_path}/mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)  # where MLflow puts artifacts of a database without a server
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        code, out, _ = finish("export", str(folder), "--format", "mlflow", "--endpoint", uri)
        assert code == 0
        client = tracking.MlflowClient(tracking_uri=uri)
        found: Any = client.get_run(out.split()[1])
        assert found.info.status == "FINISHED"
        assert found.data.metrics == values(run.summary)
        assert tags(run.summary).items() <= found.data.tags.items()
        assert found.data.params == parameters(run.summary)
        listed = {one.path for one in client.list_artifacts(found.info.run_id)}
    assert listed == {"summary.json", "report.md", "report.html"}


def test_mlflow_that_cannot_be_reached_is_an_error_in_words(folder: Path) -> None:
    """An address that MLflow does not take: its own words, exit code 5, and no password."""
    pytest.importorskip("mlflow.tracking", reason="the extra mlflow is not installed")
    code, _, err = finish("export", str(folder), "--format", "mlflow", "--endpoint", "odd://me:hunter22@x/")
    assert code == 5
    assert "MLflow: " in err
    assert "hunter22" not in err


def test_wandb_has_the_run_offline(run: ExportedRun, folder: Path, tmp_path: Path) -> None:
    """A folder that `wandb sync` uploads, whose records hold the verdict and the figures; no request is made."""
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    line = ("export", str(folder), "--format", "wandb", "--out", str(tmp_path))
    code, out, _ = finish(*line, WANDB_DATA_DIR=str(tmp_path / "data"))
    assert code == 0
    (log,) = Path(out.strip()).glob("run-*.wandb")
    held = log.read_bytes()
    for word in (f"verdict:{run.marks.verdict}", "ttft_ms.p99", "inferometer.reasons", "report.html"):
        assert word.encode() in held, word
    ttft = run.summary.metrics.ttft_ms
    assert ttft is not None
    assert repr(ttft.p99).encode() in held
