"""Two benchmarks compared: planted differences are found, and nothing else."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest
from benches import around, bench, engine
from commands import finish
from rich.console import Console

from inferometer.documents.bench import Bench
from inferometer.documents.part import to_data, to_json
from inferometer.documents.schemas.__main__ import generated
from inferometer.judge.bench_comparison import compare_benches
from inferometer.report.bench.comparison import render, render_markdown


def of(speed: float, wait: float, *, runs: int = 3, name: str = "a", prompt: str = "code") -> Bench:
    return bench(engine(name, {prompt: around(speed, wait, runs)}), runs=runs)


@pytest.mark.parametrize(
    ("second", "outcome", "verdicts"),
    [
        (of(60.1, 50.1), "no_regression", ["no_difference", "no_difference"]),
        (of(80.0, 40.0), "no_regression", ["better", "better"]),
        (of(50.0, 50.0), "regression", ["worse", "no_difference"]),
        (of(60.0, 70.0), "regression", ["no_difference", "worse"]),
        (of(80.0, 50.0, runs=1), "no_claim", ["no_claim", "no_claim"]),
        (of(80.0, 50.0, name="b"), "not_comparable", []),
        (of(80.0, 50.0, prompt="long"), "not_comparable", []),
    ],
)
def test_a_planted_difference_is_found_in_its_direction(
    second: Bench, outcome: str, verdicts: list[str]
) -> None:
    """More tokens a second and less TTFT are better; without intervals nothing is claimed; what one lacks is not compared."""
    document = compare_benches("1", ("x", "y"), of(60.0, 50.0), second)
    assert (document.outcome, [one.verdict for one in document.figures]) == (outcome, verdicts)
    jsonschema.validate(json.loads(to_json(document)), json.loads(generated("bench-comparison")))
    file = io.StringIO()
    render(document, Console(file=file, width=80))
    for text in (file.getvalue(), render_markdown(document)):
        assert ("WORSE" in text) == (outcome == "regression")
    assert max(map(len, file.getvalue().splitlines())) <= 100


def test_compare_takes_folders_and_refuses_another_version_of_the_definitions(tmp_path: Path) -> None:
    """By name, and with the exit code of a regression otherwise."""
    sides = [tmp_path / "old", tmp_path / "new"]
    for side, speed in zip(sides, (60.0, 50.0), strict=True):
        side.mkdir()
        (side / "bench.json").write_text(to_json(of(speed, 50.0)))
    code, stdout, _ = finish("compare", str(sides[0]), str(sides[1] / "bench.json"), "--json")
    assert (code, json.loads(stdout)["outcome"]) == (6, "regression")
    other = to_data(of(60.0, 50.0))
    other["engines"][0]["metadata"]["metrics_version"] = "0.3.0"
    (sides[0] / "bench.json").write_text(json.dumps(other))
    code, _, stderr = finish("compare", *map(str, sides))
    assert code == 2
    assert "metrics_version 0.3.0" in stderr
