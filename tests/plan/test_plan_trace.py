"""A plan with a trace: what it implies, what it forbids, and that it is saved whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from inferometer.documents.workload import TraceFacts, TraceLengths, disclosed, missing, requirement
from inferometer.errors import PlanError
from inferometer.plan.parse import build
from inferometer.plan.rules import check
from inferometer.plan.saved import plan_hash, read, to_json
from inferometer.plan.schema import Load, Plan, Trace
from inferometer.plan.workload import StandardWorkload, TraceWorkload

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


DECIDES = "the trace determines content, lengths and times"


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--rate", "5", "the trace determines when requests are sent (--trace): leave --rate out, or set --trace-speed"),
        ("--concurrency", "8", "the trace determines when requests are sent (--trace): leave --concurrency out"),
        ("--duration", "60", "the trace determines when requests are sent (--trace): leave --duration out, or set --trace-end"),
        ("--arrival", "constant", "the trace determines when requests are sent (--trace): leave --arrival out"),
        ("--burstiness", "2", "the trace determines when requests are sent (--trace): leave --burstiness out"),
        ("--workload", "normal", f"{DECIDES} (--trace): leave --workload out, or set it to trace"),
        ("--input-tokens", "5", f"{DECIDES} (--trace): leave --input-tokens out"),
        ("--output-tokens", "5", f"{DECIDES} (--trace): leave --output-tokens out"),
        ("--prompts", "own.jsonl", f"{DECIDES} (--trace): leave --prompts out"),
    ],
)  # fmt: skip
def test_what_the_trace_decides_nothing_else_may(flag: str, value: str, said: str) -> None:
    """Each contradiction is told at the flag that makes it."""
    assert refused({**FILE, flag: value}) == {flag: said}


CLASSES = "workload: {classes: [{name: a, input_tokens: 5, output_tokens: 5}]}\n"


@pytest.mark.parametrize(
    ("workload", "key"),
    [(CLASSES, "workload.classes"), ("workload: {prompts: own.jsonl}\n", "workload.prompts")],
)
def test_a_trace_stands_beside_no_prompts_and_no_classes(workload: str, key: str, tmp_path: Path) -> None:
    """In one file it is a contradiction, told once and at its line; over a file the flag takes their place."""
    path = tmp_path / "plan.yaml"
    path.write_text(f"trace: {{file: t}}\n{workload}")
    assert refused({}, path) == {
        f"{path}:2: {key}": f"the trace determines content, lengths and times (trace.file): leave {key} out"
    }
    path.write_text(workload)
    plan = build(path, FILE)
    assert (plan.workload.name, plan.workload.kind) == ("trace", "trace")
    with pytest.raises(PlanError, match="the trace determines what is sent"):
        check(plan.model_copy(update={"workload": build(path, {}).workload}))


def test_lengths_of_a_trace_never_include_the_chat_template() -> None:
    """Not even with the model's own tokenizer, which counts it where lengths are drawn."""
    own: dict[str, object] = {"--tokenizer": "org/model"}
    assert build(None, own).workload.count_template
    assert build(None, {**FILE, **own}).workload.count_template is False
    assert "determines content" in refused({**FILE, **own, "--count-template": "yes"})["--count-template"]


def test_what_a_trace_does_not_tell_of_its_prompts_is_missing_until_it_is_declared() -> None:
    """D-4.3-custom-full: of texts their domain and language, of shared beginnings how many and how long."""
    seen = TraceLengths(sum=14_814_804, mean=12345.67, min=1, p50=4, p95=8, p99=9, max=30000)
    found = TraceFacts(
        "t", "plain", "0" * 64, rows=1200, failed=0, span_s=60.0, first_second=20, input_tokens=seen, output_tokens=seen,
        texts=0, shares_prefixes=False, lasts_s=60.0, rate=20.0,
    )  # fmt: skip
    plan = build(None, FILE)
    words = disclosed(plan, None, found)
    assert missing(words) == []
    points = "min 1, P50 4, P95 8, P99 9, max 30,000"
    assert words.input == f"empirical: mean 12,345.7, {points}, of 1,200 arrivals, in tokens of the server"
    assert (words.input, words.prefix) == (words.output, "none")
    texts = disclosed(plan, None, replace(found, texts=1200, shares_prefixes=True, input_tokens=None))
    lacking = ("input", "domain", "language", "prefix")
    assert missing(texts) == [requirement(name) for name in lacking]
    some = disclosed(plan, None, replace(found, texts=200)).input
    assert some is not None
    assert "of 1,000 arrivals" in some
    assert "200 prompts are the trace's own texts" in some
    told = TraceWorkload(
        name="trace", domain="code", language="Python", prefix_sharing="half of them, 1024 tokens"
    )
    declared = check(Plan(trace=Trace(file="t"), workload=told))
    assert missing(disclosed(declared, None, replace(found, shares_prefixes=True, texts=1))) == []


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
    assert places["--trace"] == "names a file that does not exist or cannot be read"


def test_the_flag_takes_the_place_of_a_files_load_and_lengths(tmp_path: Path) -> None:
    """A plan of another load can be turned into a replay, and its seed stays."""
    path = tmp_path / "plan.yaml"
    path.write_text("load: {rate: 5, duration_s: 60}\nworkload: {name: normal, seed: 7}\n")
    plan = build(path, FILE)
    assert (plan.load.arrival, plan.load.rate, plan.load.duration_s) == ("trace", None, None)
    assert (plan.workload.name, plan.workload.seed) == ("trace", 7)


def test_a_saved_plan_comes_back_whole(tmp_path: Path) -> None:
    """Same bytes, same hash; lengths are the trace's and not the plan's; another trace drops the old one's hash."""
    plan = build(None, {**FILE, "--trace-speed": "3"})
    assert plan.trace is not None
    settled = plan.model_copy(
        update={"trace": plan.trace.model_copy(update={"format": "azure", "sha256": "ab" * 32})}
    )
    path = tmp_path / "plan.json"
    path.write_bytes(to_json(settled))
    saved = json.loads(path.read_bytes())
    assert saved["workload"].keys().isdisjoint({"input_tokens", "output_tokens"})
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
        check(Plan(trace=Trace(file="t"), workload=StandardWorkload(name="normal")))
    with pytest.raises(PlanError):
        check(Plan(load=Load(arrival="trace")))


def test_a_digest_that_is_none_is_refused(tmp_path: Path) -> None:
    """It is compared with the file's, letter by letter."""
    path = tmp_path / "plan.yaml"
    path.write_text("trace: {file: t, sha256: nonsense}\n")
    assert "must be the 64 hexadecimal digits" in "".join(refused({}, path).values())
