"""A plan with a trace: what it implies, what it forbids, and that it is saved whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inferometer.errors import PlanError
from inferometer.plan.parse import build
from inferometer.plan.rules import check
from inferometer.plan.saved import plan_hash, read, to_json
from inferometer.plan.schema import Load, Plan, Trace, Workload

FILE = {"--trace": "t.jsonl"}


def refused(flags: dict[str, object], path: Path | None = None) -> dict[str, str]:
    with pytest.raises(PlanError) as caught:
        build(path, flags)
    return {problem.where: problem.message for problem in caught.value.problems}


def test_every_trace_flag_reaches_its_key() -> None:
    """And the trace's own key words stand for load and workload."""
    given = {
        **FILE,
        "--trace-format": "azure",
        "--trace-speed": "2.5",
        "--trace-start": "90s",
        "--trace-end": "1h",
    }
    plan = build(None, given)
    assert plan.trace == Trace(file="t.jsonl", format="azure", speed=2.5, start_s=90, end_s=3600)
    assert (plan.load.model, plan.load.arrival, plan.load.rate, plan.load.requests) == (
        "open",
        "trace",
        None,
        None,
    )
    assert (plan.workload.name, plan.load.warmup) == ("trace", 100)


def test_a_number_of_requests_is_the_most_of_the_trace() -> None:
    """As anywhere, warm-up is not more than what is measured."""
    plan = build(None, {**FILE, "--requests": "30"})
    assert (plan.load.requests, plan.load.warmup) == (30, 30)


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--rate", "5", "the trace says when requests are sent (--trace): leave --rate out, or set --trace-speed"),
        ("--concurrency", "8", "the trace says when requests are sent (--trace): leave --concurrency out"),
        ("--duration", "60", "the trace says when requests are sent (--trace): leave --duration out, or set --trace-end"),
        ("--arrival", "constant", "the trace says when requests are sent (--trace): leave --arrival out"),
        ("--burstiness", "2", "the trace says when requests are sent (--trace): leave --burstiness out"),
        ("--workload", "normal", "the trace says how long prompts and answers are (--trace): leave --workload out"),
        ("--input-tokens", "5", "the trace says how long prompts and answers are (--trace): leave --input-tokens out"),
        ("--output-tokens", "5", "the trace says how long prompts and answers are (--trace): leave --output-tokens out"),
    ],
)  # fmt: skip
def test_what_the_trace_decides_nothing_else_may(flag: str, value: str, said: str) -> None:
    """Each contradiction is told at the flag that makes it."""
    assert refused({**FILE, flag: value}) == {flag: said}


@pytest.mark.parametrize(
    ("flags", "where", "said"),
    [
        ({"--trace-speed": "2"}, "--trace-speed", "a trace needs its file: --trace"),
        ({"--arrival": "trace"}, "--arrival", "a trace needs its file: --trace"),
        ({"--workload": "trace"}, "--workload", "--workload is the trace's: it needs --trace"),
        ({**FILE, "--trace-speed": "0"}, "--trace-speed", "must be at least 0.001, not '0'"),
        ({**FILE, "--trace-start": "-1"}, "--trace-start", "must be at least 0.0, not '-1'"),
        ({**FILE, "--trace-start": "5", "--trace-end": "5"}, "--trace-end", "the window is empty"),
        ({**FILE, "--trace-format": "csv"}, "--trace-format", "must be auto or mooncake or azure"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(flags: dict[str, object], where: str, said: str) -> None:
    """In words."""
    assert said in refused(flags)[where]


def test_a_missing_file_is_told_with_the_other_mistakes() -> None:
    """Before anything is started."""
    with pytest.raises(PlanError) as caught:
        build(None, {**FILE, "--api": "x"}, environ={})
    places = {problem.where: problem.message for problem in caught.value.problems}
    assert set(places) == {"--trace", "--api"}
    assert places["--trace"] == "names a file that is not there or cannot be read"


def test_the_flag_takes_the_place_of_a_files_load_and_lengths(tmp_path: Path) -> None:
    """A plan of another load can be turned into a replay, and its seed stays."""
    path = tmp_path / "plan.yaml"
    path.write_text("load: {rate: 5, duration_s: 60}\nworkload: {name: normal, seed: 7}\n")
    plan = build(path, FILE)
    assert (plan.load.arrival, plan.load.rate, plan.load.duration_s) == ("trace", None, None)
    assert (plan.workload.name, plan.workload.seed) == ("trace", 7)


def test_a_saved_plan_comes_back_whole(tmp_path: Path) -> None:
    """Same bytes, same hash; lengths that are the trace's are null; another trace drops the old one's hash."""
    plan = build(None, {**FILE, "--trace-speed": "3"})
    assert plan.trace is not None
    settled = plan.model_copy(
        update={"trace": plan.trace.model_copy(update={"format": "azure", "sha256": "ab" * 32})}
    )
    path = tmp_path / "plan.json"
    path.write_bytes(to_json(settled))
    saved = json.loads(path.read_bytes())
    assert (saved["workload"]["input_tokens"], saved["workload"]["output_tokens"]) == (None, None)
    again = read(path)
    assert again == settled
    assert plan_hash(again) == plan_hash(settled)
    other = build(path, {"--trace": "u.csv"})
    assert other.trace == Trace(file="u.csv", speed=3)


def test_a_plan_made_in_code_is_held_to_the_same_rules() -> None:
    """A trace implies its load and workload there too, and contradictions are found."""
    plan = check(Plan(trace=Trace(file="t")))
    assert (plan.load.arrival, plan.workload.name) == ("trace", "trace")
    with pytest.raises(PlanError):
        check(Plan(trace=Trace(file="t"), load=Load(rate=5)))
    with pytest.raises(PlanError):
        check(Plan(trace=Trace(file="t"), workload=Workload(name="normal")))
    with pytest.raises(PlanError):
        check(Plan(load=Load(arrival="trace")))


def test_a_digest_that_is_none_is_refused(tmp_path: Path) -> None:
    """It is compared with the file's, letter by letter."""
    path = tmp_path / "plan.yaml"
    path.write_text("trace: {file: t, sha256: nonsense}\n")
    assert "must be the 64 hexadecimal digits" in "".join(refused({}, path).values())
