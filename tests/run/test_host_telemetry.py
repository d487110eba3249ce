"""A run with host telemetry, whole: what is recorded, summarised and reported, and what stays as it was without it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from commands import finish, only

from inferometer.telemetry.machines.tracks import THIS_MACHINE
from inferometer.telemetry.metrics.record import read

METER = f"command:{shlex.quote(sys.executable)} -c 'print(42.5)'"
BROKEN = f"command:{shlex.quote(sys.executable)} -c 'print(1/0)'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the embedded server, its machine read five times a second, by a meter that works and one that does not."""
    out = tmp_path_factory.mktemp("host")
    words = ["--requests", "80", "--rate", "40", "--warmup", "0", "--quiet", "--out", str(out)]
    host = ["--host-telemetry-interval", "200ms", "--power", METER, "--power", BROKEN]
    assert finish("run", *words, *host)[0] in (0, 3, 4)
    return only(out)


def test_the_readings_are_in_the_record_of_scrapes(folder: Path) -> None:
    """From the start of the run to its end, beside those of the server."""
    scrapes = [
        one for one in read(folder / "telemetry" / "scrapes.jsonl.zst") if one.endpoint_url == THIS_MACHINE
    ]
    assert {"baseline", "profiling", "final"} <= {one.phase for one in scrapes}
    assert all("inferometer_host_cpu_seconds_total" in (one.body or "") for one in scrapes)


def test_the_summary_has_the_machine_and_its_energy(folder: Path) -> None:
    """Who used the processors, what the meter showed, and why the other showed nothing."""
    summary = json.loads((folder / "summary.json").read_text())
    (machine,) = summary["machines"]
    assert machine["url"] == THIS_MACHINE
    assert {role["role"] for role in machine["roles"]} == {"client", "engine"}
    assert machine["cores"]["busy"] >= sum(role["cores"] for role in machine["roles"]) * 0.5
    (energy,) = [one for one in machine["energy"] if one["joules"] is not None]
    assert energy["mean_w"] == pytest.approx(42.5)
    assert energy["joules"] == pytest.approx(42.5 * energy["duration_s"])
    assert len(machine["failed_meters"]) == 1
    assert all(one["url"] != THIS_MACHINE for one in summary["metrics_endpoints"])


def test_the_export_for_servers_metrics_has_no_machine(folder: Path) -> None:
    """Its format is of servers."""
    assert THIS_MACHINE not in (folder / "server_metrics_export.json").read_text()


def test_both_reports_have_a_section_about_the_machine(folder: Path) -> None:
    """With the same figures, and pictures over the run's time."""
    assert "## Machines" in (folder / "report.md").read_text()
    page = (folder / "report.html").read_text()
    assert 'id="machines"' in page
    assert "Processors in use" in page


def test_a_report_made_again_has_the_machine_again(folder: Path) -> None:
    """Law: from the record, without the machine."""
    before = json.loads((folder / "summary.json").read_text())["machines"]
    assert finish("report", str(folder))[0] in (0, 3, 4)
    assert json.loads((folder / "summary.json").read_text())["machines"] == before


def test_the_saved_plan_names_the_meters(folder: Path) -> None:
    """So that it can be carried out again."""
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["host_telemetry"]["power"] == [METER, BROKEN]
