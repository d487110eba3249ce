"""Every way into a plan passes the same check, and drops nothing that was written."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from inferometer.errors import PlanError
from inferometer.plan import campaign, saved
from inferometer.plan.flags import fields, models
from inferometer.plan.parse import build
from inferometer.plan.rerun import again
from inferometer.plan.rules import check
from inferometer.plan.schema import Load, Plan
from inferometer.plan.slo import STATS, Slo, latencies, rates
from inferometer.plan.wording import example
from inferometer.plan.workload import KINDS, PromptsWorkload

CLASSES = [{"name": "a", "input_tokens": 5, "output_tokens": 7}]
LEAST: dict[str, dict[str, object]] = {
    "standard": {"kind": "standard"},
    "lengths": {"kind": "lengths", "input_tokens": 5, "output_tokens": 7},
    "mixture": {"kind": "mixture", "classes": CLASSES},
    "prompts": {"kind": "prompts", "prompts": "own.jsonl"},
    "sessions": {"kind": "sessions", "sessions": "recorded.jsonl"},
    "tasks": {"kind": "tasks", "tasks": "tasks.jsonl"},
    "file": {"kind": "file", "file": "made.arrow"},
    "trace": {"kind": "trace"},
}
FOREIGN = [
    (kind, key)
    for kind, part in KINDS.items()
    for key in sorted({key for one in KINDS.values() for key in one.model_fields} - part.model_fields.keys())
]
FLAGS = {"count_template", "repeatable_prompts", "task_commands"}
"""Keys of a workload whose values are yes and no: no is what a kind does that does not have them."""


def _problems(path: Path, values: object) -> list[str]:
    path.write_text(json.dumps(values))
    with pytest.raises(PlanError) as refused:
        build(path)
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize(("kind", "key"), FOREIGN)
def test_a_key_of_another_kind_is_refused_whatever_its_value(kind: str, key: str, tmp_path: Path) -> None:
    """Text that looks like no, an empty list, a zero and the default of the other kind are all something that was written."""
    values: list[object] = ["no", "0", "f", 0, [], "x"]
    values += [] if key in FLAGS else [False, "false", "server", "auto", 42]
    values = [value for value in values if key not in FLAGS or value in ("x", [])]
    for value in values:
        whole: dict[str, object] = {"workload": {**LEAST[kind], key: value}}
        if kind == "trace":
            whole["trace"] = {"file": "trace.jsonl"}
        assert any(f"workload.{key}" in one for one in _problems(tmp_path / "p.json", whole)), value


def test_a_key_of_another_kind_that_says_nothing_is_left_out() -> None:
    """Null, and no to what only another kind does."""
    for kind, key in FOREIGN:
        for value in (None, *((False, "no") if key in FLAGS else ())):
            whole: dict[str, object] = {"workload": {**LEAST[kind], key: value}}
            if kind == "trace":
                whole["trace"] = {"file": "trace.jsonl"}
            assert Plan.model_validate(whole).workload.kind == kind


def test_the_first_version_of_a_plan_may_hold_the_defaults_of_every_kind() -> None:
    """It was saved with the keys of all kinds."""
    other = {"seed": 42, "order": "file", "classes": [], "replies": "server", "prompt_format": "auto"}
    whole = {"workload": {"name": "trace", **other}, "trace": {"file": "trace.jsonl"}}
    plan = Plan.model_validate({"schema": "inferometer/plan/1", **whole})
    assert plan == Plan.model_validate({"trace": {"file": "trace.jsonl"}})
    with pytest.raises(ValidationError):
        Plan.model_validate({"schema": "inferometer/plan/2", **whole})


def test_every_field_that_has_to_be_given_has_an_example() -> None:
    """Whoever leaves one out is told what to write."""
    for kind, part in KINDS.items():
        for key, info in part.model_fields.items():
            if info.is_required():
                assert example(("workload", kind, key)), key
    for key, info in fields():
        if not info.is_required() or key.startswith(("workload.", "slos.")):
            continue
        assert info.examples, key
    for inner in models(KINDS["mixture"].model_fields["classes"].annotation):
        for key, info in fields(inner):
            assert info.examples or not info.is_required(), key


@pytest.mark.parametrize("kind", [*KINDS])
def test_a_kind_alone_is_answered_in_words(kind: str, tmp_path: Path) -> None:
    """A workload that names its kind and nothing else is a plan, or has problems; it is no crash."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"workload": {"kind": kind}}))
    with contextlib.suppress(PlanError):
        assert build(path).workload.kind == kind


@given(
    st.sampled_from([*latencies(), *rates()]),
    st.none() | st.sampled_from(STATS),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.floats() | st.integers(0, 2**70),
    st.sampled_from(["ms", "s", "us", "", "%", "banana", *rates().values()]),
)
def test_an_objective_given_as_a_mapping_can_be_saved_and_read(
    metric: str, stat: str | None, op: str, limit: float, unit: str
) -> None:
    """What the type accepts is what its text is read as."""
    try:
        slo = Slo.model_validate({"metric": metric, "stat": stat, "op": op, "limit": limit, "unit": unit})
    except ValidationError:
        return
    assert Slo.parse(str(slo)) == slo


def test_no_number_of_a_plan_is_infinite() -> None:
    """JSON has no infinity, and a saved plan is JSON."""
    for values in ({"declared": {"clock_accuracy_ms": float("inf")}}, {"load": {"drain_s": float("nan")}}):
        with pytest.raises(ValidationError):
            Plan.model_validate(values)


def test_a_saved_plan_and_campaign_changed_by_hand_are_checked_by_every_rule(tmp_path: Path) -> None:
    """What a plan file may not say, a plan.json, a tests.json and the plan inside a summary may not say either."""
    plan = saved.resolved(check(Plan()))
    plan["load"]["rate"] = 5.0  # beside the concurrency that is there
    whole = json.loads(campaign.to_json(campaign.Campaign(names=("throughput",))))
    summary = {"schema": "inferometer/summary/2", "run": {"simulated": False}, "plan": plan}
    for name, values in (("plan.json", plan), ("tests.json", whole | {"plan": plan}), ("s.json", summary)):
        path = tmp_path / name
        path.write_text(json.dumps(values))
        with pytest.raises(PlanError, match="choose one") as refused:
            again(path)
        assert name in str(refused.value)


@pytest.mark.parametrize("separator", ["\t", " "])
def test_a_key_given_twice_is_noticed_in_json_as_in_yaml(separator: str, tmp_path: Path) -> None:
    """Whether or not YAML can read its indentation."""
    path = tmp_path / "plan.json"
    path.write_text('{\n@"load": {"rate": 1,\n@"rate": 2}}'.replace("@", separator))
    with pytest.raises(PlanError, match="rate occurs twice"):
        build(path)


@pytest.mark.parametrize("text", ["010", "1:30", "-07", "1:30.5"])
def test_a_number_that_yaml_reads_in_another_base_is_refused(text: str, tmp_path: Path) -> None:
    """Octal to YAML 1.1 is decimal to YAML 1.2, and 1:30 is 90 to one and text to the other."""
    path = tmp_path / "plan.yaml"
    path.write_text(f"load:\n  requests: {text}\n")
    with pytest.raises(PlanError):
        build(path)
    path.write_text("load: {requests: 10}\nsut: {notes: '010'}\n")
    assert build(path).sut.notes == "010"


@pytest.mark.parametrize("one", [1, 1.0, "1", "1.0", "1.00", "1e0", " 1 "])
def test_a_burstiness_of_1_is_poisson_however_it_is_spelled(one: object) -> None:
    """The arrivals follow from the number, not from its text."""
    assert Load.model_validate({"rate": 5, "burstiness": one}).arrival == "poisson"
    assert Load.model_validate({"rate": 5, "burstiness": "2.0"}).arrival == "gamma"


def test_messages_name_what_is_wrong_and_what_was_given(tmp_path: Path) -> None:
    """A reason is never empty, and a key that nobody wrote is not blamed."""
    path = tmp_path / "p.json"
    lengths = LEAST["lengths"] | {"name": "conversation"}
    assert "workload.kind is lengths" in _problems(path, {"workload": lengths})[0]
    traced = {"workload": {"kind": "standard"}, "trace": {"file": "trace.jsonl"}}
    assert "workload.name" not in " ".join(_problems(path, traced))
    wrong: tuple[object, ...] = ({}, [], "x")
    for classes in wrong:
        assert "workload.classes" in _problems(path, {"workload": {"classes": classes}})[0]
    assert "workload.based_on" in _problems(path, {"workload": {"based_on": "conversation"}})[0]
    assert isinstance(
        Plan.model_validate({"workload": {"kind": None, "prompts": "a.csv"}}).workload, PromptsWorkload
    )
