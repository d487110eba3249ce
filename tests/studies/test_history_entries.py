"""Entries made of results' documents, and what makes two of them comparable."""

from __future__ import annotations

import json
from pathlib import Path

import benches
import pytest
from commands import only, run
from comparing import document, side
from msgspec.structs import replace
from sample_runs import HOSTILE, empty_summary, invalid_summary, valid_summary
from simulating import simulated

from inferometer.documents.history import HistoryEntry
from inferometer.documents.part import to_data, to_json
from inferometer.plan.parse import build
from inferometer.studies.history import conditions, entries
from inferometer.studies.history.folders import results_in
from inferometer.studies.history.selection import differing

LOAD: dict[str, object] = {"--requests": "40", "--rate": "40", "--warmup": "2"}


def listed(folder: Path, home: Path) -> list[HistoryEntry]:
    notes: list[str] = []
    found = list(results_in(folder, home, notes.append))
    assert notes == []
    return found


def test_a_run_has_its_headline_figures_with_their_intervals() -> None:
    """As its summary has them: P50 and P99 of each metric that is compared, rates, and the success rate."""
    summary = valid_summary()
    found = {one.name: one for one in entries.of_run(summary, "runs/x").figures}
    wanted = {"ttft", "tpot", "itl", "e2e"}
    assert {f"{name}_{at}" for name in wanted for at in ("p50", "p99")} <= set(found)
    assert {"output_tok_s", "request_s", "success_rate"} <= set(found)
    assert summary.metrics.ttft_ms is not None
    assert (found["ttft_p99"].value, found["ttft_p99"].ci95) == (
        summary.metrics.ttft_ms.p99,
        summary.metrics.ttft_ms.ci95.p99,
    )
    assert (found["ttft_p99"].better, found["request_s"].better) == ("less", "more")
    assert {name for name, one in found.items() if one.deciding} == {
        "output_tok_s", "ttft_p50", "ttft_p99", "tpot_p50", "success_rate",
    }  # fmt: skip


def test_a_run_in_which_nothing_was_measured_is_an_entry_without_figures() -> None:
    """And one from a hostile server is one too; both can be written down."""
    assert {one.name for one in entries.of_run(empty_summary(), None).figures} <= {"success_rate"}
    vile = entries.of_run(invalid_summary(), None)
    assert vile.verdict == "INVALID"
    assert vile.conditions["sut.model"] == HOSTILE
    json.loads(to_json(vile))


def test_what_may_be_secret_or_is_text_of_requests_reaches_no_entry() -> None:
    """Headers, body fields, user and password and query of the URL, notes, paths."""
    base = valid_summary()
    plan = build(
        None,
        {
            "--url": "http://h:1/v1",
            "--header": ["X-Team: canary-header"],
            "--extra-body": '{"user": "canary-body"}',
            "--api-key-env": "CANARY_VARIABLE",
        },
    )
    summary = replace(
        base,
        plan=plan,
        sut=replace(
            base.sut,
            url="http://canary-user:canary-password@10.0.3.7:8000/p?key=canary-key",
            notes="canary-note",
        ),
    )
    entry = entries.of_run(summary, None)
    assert "canary" not in to_json(entry).casefold()
    assert entry.conditions["sut.address"] == "10.0.3.7:8000"
    assert entry.conditions["target.extra_body"].startswith("sha256:")


def test_seeds_and_versions_may_differ_and_conditions_may_not(tmp_path: Path) -> None:
    """Another seed sends other requests of the same distribution; another load or engine is another measurement."""
    first = simulated(tmp_path, {**LOAD, "--seed": "1"}).summary
    other = simulated(tmp_path, {**LOAD, "--seed": "2"}).summary
    assert first.workload.fingerprint != other.workload.fingerprint
    assert conditions.of_run(first) == conditions.of_run(other)
    changed = {
        "load.rate": simulated(tmp_path, {**LOAD, "--rate": "50"}),
        "load.requests": simulated(tmp_path, {**LOAD, "--requests": "50"}),
        "workload.output_tokens": simulated(
            tmp_path, {**LOAD, "--input-tokens": "20", "--output-tokens": "9"}
        ),
        "sut.settings": simulated(tmp_path, LOAD, "step_base=9ms"),
        "target.stream": simulated(tmp_path, {**LOAD, "--no-stream": True}),
    }
    for key, result in changed.items():
        assert key in differing(conditions.of_run(first), conditions.of_run(result.summary), ())


@pytest.mark.parametrize(
    ("software", "name"),
    [
        ("vLLM 0.10.1", "vllm"),
        ("vllm 0.11.0rc2.dev7+cu128", "vllm"),
        ("llama.cpp b4567", "llama.cpp"),
        ("SGLang v0.4.3.post2", "sglang"),
        ("TensorRT-LLM 1.0, 2 nodes", "tensorrt-llm, nodes"),
        ("mlx-lm", "mlx-lm"),
        ("7", ""),
    ],
)
def test_an_engine_keeps_its_name_through_versions(software: str, name: str) -> None:
    """The version is not a condition: whether a new one is slower is the question."""
    assert conditions.engine_name(software) == name


def test_long_values_are_kept_as_their_hash() -> None:
    """A list of classes with their system prompts, say."""
    base = valid_summary()
    summary = replace(base, sut=replace(base.sut, model="m" * 500))
    assert conditions.of_run(summary)["sut.model"].startswith("sha256:")


def test_each_engine_of_a_benchmark_is_an_entry_with_what_it_is_ranked_by() -> None:
    """The median and its interval; one that failed is cut short."""
    bench = benches.usual()
    found = list(entries.of_bench(bench, None))
    assert [one.part for one in found] == [one.label for one in bench.engines]
    for one, engine in zip(found, bench.engines, strict=True):
        assert one.interrupted is (engine.ended != "measured")
        figures = {each.name: each.value for each in one.figures}
        if engine.tok_per_sec is not None:
            assert figures["tok_per_sec"] == engine.tok_per_sec.median


def test_a_comparison_is_an_entry_with_the_changes_it_decides_by() -> None:
    """In per cent, with the interval of the test that decides."""
    compared = document([side(), side(1.3, first=3)])
    found = entries.of_comparison(compared, "a | b", "2026-01-01T00:00:00Z")
    assert found.verdict == compared.outcome == "regression"
    figures = {one.name: one for one in found.figures}
    (contrast,) = compared.contrasts
    change = next(one.relative for one in contrast.metrics if one.name == "ttft_p50")
    assert change is not None
    assert figures["B.ttft_p50"].value == pytest.approx(100 * change)
    assert figures["B.ttft_p50"].ci95 is not None


def test_folders_give_the_entries_of_what_lies_in_them(tmp_path: Path) -> None:
    """Runs, a campaign's tests and not its runs, repeats; links are not followed, and half a run is none."""
    whole = simulated(tmp_path / "runs", LOAD).folder
    words = ["test", "ttft", "--simulate", "--quick", "--quiet", "--preset", "tiny-cpu"]
    run(*words, "--index", "none", out=tmp_path / "tests")
    run(*words, "--repeats", "2", "--index", "none", out=tmp_path / "repeats")
    (tmp_path / "runs" / "link").symlink_to(only(tmp_path / "tests"))
    half = simulated(tmp_path / "runs", LOAD).folder
    (half / "summary.json").unlink()
    runs = listed(tmp_path / "runs", tmp_path)
    assert [(one.kind, one.folder) for one in runs] == [("run", f"runs/{whole.name}")]
    tests = listed(tmp_path / "tests", tmp_path)
    assert [(one.kind, one.part) for one in tests] == [("test", "ttft")]
    assert [one.name for one in tests[0].figures if one.deciding] == ["ttft_p50"]
    assert all(one.loads and min(one.loads) > 0 for one in tests[0].figures)
    assert tests[0].conditions["quick"] == "true"
    repeats = listed(tmp_path / "repeats", tmp_path)
    assert len({one.key for one in repeats}) == len(repeats) == 2
    assert repeats[0].conditions == repeats[1].conditions == tests[0].conditions


def test_a_folder_that_cannot_be_read_is_noted_and_the_others_are_read(tmp_path: Path) -> None:
    """A stranger's folder does not end a rebuild."""
    simulated(tmp_path, LOAD)
    for name, text in (("a", "{"), ("b", json.dumps({"schema": "inferometer/summary/99"}))):
        place = tmp_path / name
        place.mkdir()
        (place / "plan.json").write_text("{}")
        (place / "summary.json").write_text(text)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "bench.json").symlink_to("/etc/hostname")
    notes: list[str] = []
    found = list(results_in(tmp_path, tmp_path, notes.append))
    strange = json.loads((tmp_path / str(found[0].folder) / "summary.json").read_text())
    strange["run"]["started"] = "long ago"
    (tmp_path / str(found[0].folder) / "summary.json").write_text(json.dumps(strange))
    list(results_in(tmp_path / str(found[0].folder), tmp_path, notes.append))
    assert "'long ago' is no instant" in notes.pop()
    assert len(found) == 1
    assert len(notes) == 3
    assert all(note.startswith("not in the history: ") for note in notes)
    assert to_data(found[0])["folder"]
