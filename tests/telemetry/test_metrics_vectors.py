"""Our exports are AIPerf 0.13.0's on recorded inputs, but for the differences named here: there its own schema document, or
what follows from it, says otherwise."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from metrics_play import VECTORS, exported, read_json, scrapes_of, vector, wanted_of

from inferometer.telemetry.metrics import four_phase, linear, smooth
from inferometer.telemetry.metrics.document import Period, Wanted
from inferometer.telemetry.metrics.exports import export
from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Observed
from inferometer.telemetry.metrics.metric_units import unit_of
from inferometer.telemetry.metrics.series import collect

CASES = sorted(path.stem for path in VECTORS.glob("*.json"))
WINDOWS = [name for name in CASES if "window" in vector(name).get("expected", {})]
SLOW_UPDATES = {"slices_fractional", "slices_shorter_than_update_interval"}
"""Updates further apart than a slice: the document has an interval a slice then, AIPerf has no such fallback."""
TABLES = [
    name
    for name in WINDOWS
    if vector(name)["expected"]["phase"]["metrics"] == vector(name)["expected"]["window"]["metrics"]
    and (vector(name)["slice_duration"] or "counter" not in vector(name)["expected"]["csv"])
    and name not in {*SLOW_UPDATES, "hist_strategy_thresholds"}
]
"""Tables were recorded by tags: those of cases where the window comes to the same, and rates are of slices. In the last one a
fifth decimal is a half, and goes either way."""
RATES = {"rate_avg", "rate_min", "rate_max", "rate_std"}


def close(ours: Any, theirs: Any) -> bool:
    """Equal, with the order of keys, and numbers within 1e-9 of each other."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(close(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if isinstance(ours, float) or isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=0)
    return bool(ours == theirs)


def differences(ours: Any, theirs: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ; None stands for what is not there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in {**ours, **theirs}:
            yield from differences(ours.get(key), theirs.get(key), f"{place}/{key}")
        shared = [key for key in ours if key in theirs]
        assert shared == [key for key in theirs if key in ours], place
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, f"{place}/{index}")
    elif not close(ours, theirs):
        yield place, ours, theirs


def told(name: str, case: dict[str, Any], kinds: dict[str, str], place: str, ours: Any, theirs: Any) -> bool:
    """Whether docs/server-metrics.md lists this difference."""
    _, metric, *_, last = place.split("/")
    if last == "unit":  # a counter is matched on the name exposed, which ends in _total
        return kinds[metric] == "counter" and (ours, theirs) == ("count", None)
    if last == "type":  # the document knows three types
        return (ours, theirs) == ("gauge", "unknown")
    if last == "reset_detected":
        return "reset" in name and ours is True and theirs is None
    if last in RATES:  # always there: without slices, between scrapes
        return (theirs is None and case["slice_duration"] is None) or name in SLOW_UPDATES
    if last == "timeslices":
        return name in SLOW_UPDATES
    # Of samples without a type, AIPerf keeps the last label set only.
    if name != "naming_and_types" or metric not in ("u2", "h_noh_bucket"):
        return False
    return all(any(close(our, their) for our in ours) for their in theirs)


@pytest.mark.parametrize("name", WINDOWS)
def test_the_statistics_are_those_recorded(name: str, tmp_path: Path) -> None:
    """Every value of every series, warm-up too, and the order of keys."""
    case = vector(name)
    export(collect(scrapes_of(case)), wanted_of(case), ("json",), tmp_path)
    ours, theirs = read_json(tmp_path), case["expected"]["window"]
    for section in ("metrics", "warmup_metrics"):
        kinds = {key: one["type"] for key, one in theirs.get(section, {}).items()}
        for found in differences(ours.get(section, {}), theirs.get(section, {})):
            assert told(name, case, kinds, *found), found
    assert ours["summary"]["endpoints_configured"] == theirs["summary"]["endpoints_configured"]
    if name != "gauge_nonfinite":  # a body without a finite number is a fetch to us, not to AIPerf
        assert close(ours["summary"]["endpoint_info"], theirs["summary"]["endpoint_info"])


def test_the_percentiles_of_a_log_normal_load_are_those_recorded(tmp_path: Path) -> None:
    """Recorded by tags: the period is from the first to the last scrape tagged as profiling."""
    case = vector("lognormal_20rps_scrape_2p0s")
    scrapes = scrapes_of(case)
    tagged = [one.timestamp_ns for one in scrapes if one.phase == "profiling"]
    export(
        collect(scrapes), Wanted(Period(tagged[0], tagged[-1]), four_phase.estimate, 0), ("json",), tmp_path
    )
    ours, theirs = read_json(tmp_path)["metrics"], case["expected"]["phase"]["metrics"]
    assert close(ours, theirs)


def test_the_smooth_estimate_of_it_is_nearer_to_the_truth_than_the_recorded() -> None:
    """For every one of the four histograms, in the mean over the nine percentiles."""
    case = vector("lognormal_20rps_scrape_2p0s")
    window = case["window"]
    from inferometer.telemetry.metrics.statistics import observed, span

    (endpoint,) = collect(scrapes_of(case)).endpoints.values()
    for series in endpoint.series():
        true = np.array([case["truth"][series.family.name]["percentiles"][str(p)] for p in PERCENTILES])
        given = observed(series, span(series.times, window["start_ns"], endpoint.updates[-1]))
        error = {}
        for estimator in (smooth, four_phase, linear):
            estimate = estimator.estimate(given)
            assert estimate is not None
            error[estimator] = float(np.mean(np.abs(estimate - true) / true))
        assert error[smooth] < min(error[four_phase], error[linear]), series.family.name


@pytest.mark.parametrize("number", range(len(vector("percentiles_direct")["cases"])))
def test_the_four_phases_and_the_line_give_the_percentiles_recorded(number: int) -> None:
    """From snapshots to estimates and to what is learned of the buckets."""
    case = vector("percentiles_direct")["cases"][number]
    bounds = np.array([float(le) for le in case["le"]])
    buckets, sums = np.array(case["cumulative"], float), np.array(case["sums"])
    given = Observed(
        bounds,
        buckets[-1] - buckets[0],
        sums[-1] - sums[0],
        buckets[-1, -1] - buckets[0, -1],
        buckets,
        sums,
        buckets[:, -1],
        len(sums),
    )
    learned = {case["le"][at]: one for at, one in four_phase.learn(given).items()}
    assert set(learned) == set(case["learned"])
    for le, one in case["learned"].items():
        assert math.isclose(learned[le].mean, one["mean"], rel_tol=1e-9)
        assert (learned[le].variance is None) == (one["variance"] is None)
    for name, estimator in (("estimate", four_phase), ("linear", linear)):
        found = estimator.estimate(given)
        assert found is not None
        assert close(found.tolist(), [case[name][str(one)] for one in PERCENTILES]), name


@pytest.mark.parametrize("case", vector("units")["cases"], ids=lambda case: str(case["name"]))
def test_the_unit_is_the_one_recorded(case: dict[str, Any]) -> None:
    """From the name and the HELP text."""
    assert unit_of(case["name"], case["description"]) == case["unit"]


@pytest.mark.parametrize("name", TABLES)
def test_the_table_is_the_one_recorded(name: str, tmp_path: Path) -> None:
    """Row by row and cell by cell, but for the units of counters and what AIPerf loses of samples without a type."""
    case = vector(name)
    export(collect(scrapes_of(case)), wanted_of(case), ("csv",), tmp_path)
    text = (tmp_path / "server_metrics_export.csv").read_bytes().decode()
    head, _, table = text.partition("\n#\n")
    assert head.startswith("# ")
    assert "\r" not in head
    ours, theirs = rows_of(table), rows_of(case["expected"]["csv"])
    if name == "naming_and_types":
        assert [row for row in ours if row in theirs] == theirs
    else:
        assert ours == theirs


def rows_of(table: str) -> list[list[str]]:
    """The cells, but for the unit of counters."""
    rows = list(csv.reader(io.StringIO(table, newline="")))
    return [[*row[:3], "", *row[4:]] if row[1:2] == ["counter"] else row for row in rows]


@pytest.mark.parametrize("name", [name for name in WINDOWS if "jsonl" in vector(name)["expected"]])
def test_the_lines_are_those_recorded(name: str, tmp_path: Path) -> None:
    """A line a changed scrape; when the request was sent, and numbers of phases, are not in our record."""
    case = vector(name)
    export(collect(scrapes_of(case)), wanted_of(case), ("jsonl",), tmp_path)
    text = (tmp_path / "server_metrics_export.jsonl").read_text()
    ours, theirs = [json.loads(line) for line in text.splitlines()], case["expected"]["jsonl"]
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        for lost in ("request_sent_ns", "phase_index", "profiling_index", "phase_name", "phase_kind"):
            their.pop(lost, None)
        if name == "naming_and_types":
            for metric in ("u2", "h_noh_bucket"):
                our["metrics"][metric] = our["metrics"][metric][-1:]
        assert close(our, their)


@pytest.mark.parametrize("name", [name for name in WINDOWS if "parquet" in vector(name)["expected"]])
def test_the_columns_are_those_recorded(name: str, tmp_path: Path) -> None:
    """Names, types, rows and their order."""
    case = vector(name)
    export(collect(scrapes_of(case)), wanted_of(case), ("parquet",), tmp_path)
    table = pq.read_table(tmp_path / "server_metrics_export.parquet")
    theirs = case["expected"]["parquet"]
    assert [[field.name, str(field.type)] for field in table.schema] == theirs["columns"]
    unit = table.schema.names.index("unit")
    ours = [list(row.values()) for row in table.to_pylist()]
    assert all(
        row[unit] in (None, "count") or row[unit] in (their[unit] for their in theirs["rows"]) for row in ours
    )
    ours, rows = ([row[:unit] + row[unit + 1 :] for row in each] for each in (ours, theirs["rows"]))
    if name == "naming_and_types":
        ours = [row for row in ours if row[1] not in ("u2", "h_noh_bucket") or row in rows]
    assert close(ours, rows)


def test_slices_between_updates_add_up_to_the_whole(tmp_path: Path) -> None:
    """Where the server is slower than a slice, each of its intervals is one, and nothing falls between them."""
    case = vector("slices_shorter_than_update_interval")
    export(collect(scrapes_of(case)), wanted_of(case), ("json",), tmp_path)
    (counter,) = read_json(tmp_path)["metrics"]["c"]["series"]
    lengths = [(one["end_ns"] - one["start_ns"]) / 1e9 for one in counter["timeslices"]]
    assert lengths == [1.5] * 4
    assert sum(one["total"] for one in counter["timeslices"]) == counter["stats"]["total"]
    (histogram,) = read_json(tmp_path)["metrics"]["h_seconds"]["series"]
    assert sum(one["count"] for one in histogram["timeslices"]) == histogram["stats"]["count"]
    assert exported(scrapes_of(case), tmp_path, 0.25, 6, 2)["metrics"]["c"]["series"][0]["timeslices"][0] == {
        "start_ns": case["window"]["start_ns"],
        "end_ns": case["window"]["start_ns"] + 2_000_000_000,
        "total": 6.0,
        "rate": 3.0,
    }
