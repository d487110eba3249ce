"""The dashboard: Grafana's JSON model, and queries that name only what is exported or exposed.

The facts of the model are those of Grafana's documentation, "JSON model" (schemaVersion, panels with gridPos on a grid of 24
columns, targets with refId, templating); the queries are parsed by `promql-parser`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import promql_parser
import pytest
from commands import finish
from sample_runs import invalid_summary, valid_summary

from inferometer.exports import grafana
from inferometer.exports.prometheus import families
from inferometer.exports.readings import series_name
from inferometer.metrics.catalogue import METRICS, RATES
from inferometer.server.gauges import Gauges
from inferometer.telemetry.metrics.engine_names import ENGINES

MODEL = {
    "type": "object",
    "required": [
        "uid",
        "title",
        "tags",
        "schemaVersion",
        "time",
        "templating",
        "panels",
        "editable",
        "refresh",
    ],
    "properties": {
        "uid": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "time": {"type": "object", "required": ["from", "to"]},
        "templating": {
            "properties": {
                "list": {
                    "items": {
                        "required": ["name", "type", "query"],
                        "properties": {"type": {"enum": ["datasource", "query"]}},
                    }
                }
            }
        },
        "panels": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "type", "title", "gridPos"],
                "properties": {
                    "id": {"type": "integer", "minimum": 1},
                    "type": {"enum": ["row", "table", "timeseries", "stat"]},
                    "gridPos": {
                        "required": ["h", "w", "x", "y"],
                        "properties": {"w": {"maximum": 24}, "x": {"maximum": 23}},
                        "additionalProperties": {"type": "integer", "minimum": 0},
                    },
                    "targets": {
                        "items": {
                            "required": ["refId", "expr", "datasource"],
                            "properties": {
                                "refId": {"pattern": "^[A-Z]$"},
                                "format": {"enum": ["time_series", "table"]},
                            },
                        }
                    },
                },
            },
        },
    },
}
DASHBOARD: dict[str, Any] = json.loads(grafana.render())


def queries() -> Iterator[str]:
    """Every query, its variables replaced as Grafana does."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$__rate_interval", "5m").replace("$run", ".*")


def names(query: str) -> set[str]:
    """The series that a query names."""
    without_labels = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", query)
    return {word for word in re.findall(r"[a-z_:][\w:]*", without_labels) if "_" in word} - {
        "histogram_quantile"
    }


def test_the_file_in_the_package_is_the_one_that_is_rendered() -> None:
    """`python -m inferometer.exports.grafana` writes it anew."""
    assert grafana.FILE.read_bytes() == grafana.render()


def test_it_keeps_to_the_model_of_grafana() -> None:
    """Its members have the types of the model; ids and reference ids are unique; no panel covers another."""
    jsonschema.validate(DASHBOARD, MODEL)
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        references = [target["refId"] for target in panel.get("targets", [])]
        assert len(set(references)) == len(references)
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above


def test_every_query_is_promql() -> None:
    """A parser of Prometheus's language takes each."""
    for query in queries():
        promql_parser.parse(query)


def test_every_name_is_exported_or_an_engines() -> None:
    """A series of ours is one that an export of a run can have; any other is of a verified engine's names."""
    samples = [valid_summary(), invalid_summary()]
    exported = {one.name for sample in samples for family in families(sample) for one in family.samples}
    exported |= {series_name(key) for key in (*METRICS, *RATES)}
    engines = {
        family
        for engine in ENGINES
        if engine.verified
        for source in engine.terms.values()
        for family in (*source.families, *source.plus)
    }
    for query in queries():
        for name in names(query):
            assert name in exported or re.sub(r"_(total|bucket)$", "", name) in engines, name


def test_the_reference_server_exposes_what_is_drawn_of_it() -> None:
    """Every vllm: series of the dashboard is one of its `/metrics`."""

    class Load:
        running = waiting = prefix_queries = prefix_hits = preemptions = 0
        kv_usage = 0.0

        class preempted:  # noqa: N801 - stands where the engine has an object
            requests = finished = discarded = 0

    exposed = Gauges("m").render(Load()).decode()  # type: ignore[arg-type]  # as much of one as is read
    for query in queries():
        for name in names(query):
            assert not name.startswith("vllm:") or f"\n{name}{{" in exposed, name


def test_the_verdict_is_the_first_panel_and_in_the_legends() -> None:
    """Who looks at a figure of a run sees whether it may be believed."""
    panels = DASHBOARD["panels"]
    assert [panel["title"] for panel in panels[:2]] == ["Runs", "Verdicts"]
    of_runs = [
        target
        for panel in panels
        if panel["type"] == "timeseries"
        for target in panel["targets"]
        if target["expr"].startswith("inferometer_")
    ]
    assert of_runs
    assert all("{{verdict}}" in target["legendFormat"] for target in of_runs)


@pytest.mark.parametrize("existing", [True, False])
def test_the_command_writes_it_without_a_run(tmp_path: Path, existing: bool) -> None:
    """To a file, or under its own name into a folder."""
    out = tmp_path if existing else tmp_path / "mine.json"
    code, said, _ = finish("export", "--format", "grafana", "--out", str(out))
    path = Path(said.strip())
    assert (code, path.name) == (0, "grafana-dashboard.json" if existing else "mine.json")
    assert json.loads(path.read_bytes()) == DASHBOARD
