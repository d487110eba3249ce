"""Workloads of one's own in a plan: classes and files of prompts, what they exclude, and what must be said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from inferometer.documents.workload import NAMES, LengthTally, PromptFile, disclosed, missing, requirement
from inferometer.errors import PlanError
from inferometer.plan import saved
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.plan.standard import STANDARD
from inferometer.plan.workload import PromptsWorkload, StandardWorkload, workload_of

CLASS = {"name": "a", "input_tokens": "uniform(9,12)", "output_tokens": 3}


def planned(tmp_path: Path, workload: dict[str, Any], flags: dict[str, object] | None = None) -> Plan:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({"workload": workload}, sort_keys=False))
    return build(path, flags)


def refused(
    tmp_path: Path, workload: dict[str, Any], flags: dict[str, object] | None = None
) -> dict[str, str]:
    """What is wrong, by key (or flag)."""
    with pytest.raises(PlanError) as caught:
        planned(tmp_path, workload, flags)
    return {one.where.split(": ")[-1]: one.message for one in caught.value.problems}


def test_classes_make_a_custom_workload_without_lengths_of_its_own(tmp_path: Path) -> None:
    """Saved and read back it is the same plan, without those lengths; so is one with a file of prompts."""
    for workload in (
        {"classes": [CLASS, CLASS | {"name": "b", "shared_prefix": {"tokens": 5, "groups": 2, "zipf": 1.1}}]},
        {
            "classes": [
                CLASS | {"sampling": {"stop": ["x"], "seed": 3}, "priority": 0, "headers": {"X-A": "1"}}
            ]
        },
        {"prompts": "own.jsonl", "order": "sampled", "domain": "code"},
        {"prompts": "own.jsonl", "output_tokens": "normal(9,2)", "prompts_sha256": "0" * 64},
    ):
        plan = planned(tmp_path, workload)
        assert plan.workload.name == "custom"
        data = saved.resolved(plan)["workload"]
        assert (data.get("input_tokens"), data.get("output_tokens")) == (None, workload.get("output_tokens"))
        (tmp_path / "plan.json").write_bytes(saved.to_json(plan))
        assert saved.read(tmp_path / "plan.json") == plan
        assert saved.plan_hash(build(tmp_path / "plan.json")) == saved.plan_hash(plan)


def test_everything_wrong_with_classes_is_told_at_once(tmp_path: Path) -> None:
    """Values out of range, unknown keys, missing ones, names twice, fields said twice: each at its own place."""
    found = refused(
        tmp_path,
        {
            "name": "normal",
            "input_tokens": 5,
            "classes": [
                CLASS
                | {"weight": 0, "sampling": {"temperature": 1, "topp": 2}, "extra_body": {"temperature": 3}},
                {"name": "b", "input_tokens": "uniform(9)", "shared_prefix": {"share": 2, "zipf": 1.5}},
                CLASS | {"name": "b", "priority": "high", "wieght": 3, "headers": {"Authorization": "x"}},
                CLASS | {"name": "c", "extra_body": {"max_tokens": 3}, "content": "french"},
            ],
        },
    )
    at = "workload.classes"
    assert set(found) == {
        "workload.name", "workload.input_tokens", f"{at}[0].weight", f"{at}[0].sampling.topp",
        f"{at}[0].extra_body", f"{at}[1].input_tokens", f"{at}[1].output_tokens",
        f"{at}[1].shared_prefix.share", f"{at}[1].shared_prefix.zipf", f"{at}[1].shared_prefix.tokens",
        f"{at}[2].name", f"{at}[2].priority", f"{at}[2].wieght", f"{at}[2].headers.Authorization",
        f"{at}[3].extra_body", f"{at}[3].content",
    }  # fmt: skip
    assert "did you mean workload.classes.weight?" in found[f"{at}[2].wieght"]
    assert "twice" in found[f"{at}[0].extra_body"]
    assert "another class is named 'b'" in found[f"{at}[2].name"]


@pytest.mark.parametrize(
    ("workload", "flags", "key"),
    [
        ({"classes": [CLASS], "prompts": "x"}, {}, "workload.classes"),
        ({"classes": [CLASS], "output_tokens": 5}, {}, "workload.output_tokens"),
        ({"classes": [CLASS], "order": "sampled"}, {}, "workload.order"),
        ({"classes": [CLASS], "prefix_sharing": "half"}, {}, "workload.prefix_sharing"),
        ({"classes": [CLASS], "based_on": "normal"}, {}, "workload.based_on"),
        ({"classes": [CLASS], "input_tokens": None}, {"--input-tokens": "9"}, "--input-tokens"),
        ({"prompts": "x", "input_tokens": 5}, {}, "workload.input_tokens"),
        ({"prompts": "x", "name": "normal"}, {}, "workload.name"),
        ({"prompts": "x", "prompts_sha256": "abc"}, {}, "workload.prompts_sha256"),
        ({"prompts": "x"}, {"--prompt-format": "ids", "--api": "completions"}, "--prompt-format"),
        ({}, {"--prompts-order": "shuffled"}, "--prompts-order"),
        ({"classes": [CLASS | {"name": f"c{at}"} for at in range(128)]}, {}, "workload.classes"),
    ],
)
def test_what_a_file_or_classes_decide_nothing_else_may(
    tmp_path: Path, workload: dict[str, Any], flags: dict[str, object], key: str
) -> None:
    """One contradiction, one problem, at the key or flag that is one too many."""
    assert set(refused(tmp_path, workload, flags)) == {key}


def test_a_flag_for_prompts_or_for_a_workload_goes_before_the_files(tmp_path: Path) -> None:
    """--prompts takes the place of classes and lengths, --workload that of prompts and classes."""
    plan = planned(tmp_path, {"classes": [CLASS]}, {"--prompts": "own.jsonl", "--output-tokens": "5"})
    assert isinstance(plan.workload, PromptsWorkload)
    assert (plan.workload.classes, plan.workload.prompts) == ((), "own.jsonl")
    assert str(plan.workload.output_tokens) == "5"
    for workload in ({"classes": [CLASS]}, {"prompts": "x", "order": "sampled"}):
        assert planned(tmp_path, workload, {"--workload": "normal"}) == build(None, {"--workload": "normal"})


def test_the_file_named_has_to_be_there(tmp_path: Path) -> None:
    """Told with everything else that is wrong, before anything is started."""
    with pytest.raises(PlanError, match="--prompts: names a file that does not exist"):
        build(None, {"--prompts": str(tmp_path / "nowhere")}, environ={})


@pytest.mark.parametrize("name", STANDARD)
def test_a_workload_of_lengths_is_fully_specified(name: str) -> None:
    """Draft 4.3.1: seven items, none missing; the unit is the tokenizer's tokens."""
    spec = workload_of({"name": name})
    items = disclosed(Plan(workload=spec))
    assert missing(items) == []
    assert all(getattr(items, item) for item in NAMES)
    alone = ", without shared prefixes" if spec.shares else ""
    assert items.input == f"{spec.input_tokens}, in tokens of the server{alone}"


def test_a_standard_workload_of_natural_text_says_what_it_is_about_and_what_it_shares() -> None:
    """Draft 4.3.2.3 and 4.3.2.4: domain, language, system prompt and prefix; without The Stack the language is Python alone."""
    chat = disclosed(Plan(workload=StandardWorkload(name="conversation")))
    assert (chat.domain, chat.language) == ("conversation", "English")
    assert chat.system_prompt == "200 tokens, a system message, of 0.5 of the requests"
    assert chat.prefix == "0.5 of the requests, 200 tokens on top of the input length, one text"
    stand_in, whole = (
        disclosed(Plan(workload=StandardWorkload(name="code-completion", dataset=one))) for one in (None, "x")
    )
    assert (stand_in.language, whole.language) == ("Python", "Python, JavaScript, TypeScript")
    assert whole.prefix == (
        "0.8 of the requests, uniform(512,1024) tokens on top of the input length, one of 10 texts, Zipf with s = 1.5"
    )
    assert (whole.system_prompt, whole.domain) == ("none", "code")


def test_the_items_of_a_mixture_are_said_for_every_class(tmp_path: Path) -> None:
    """With its share of the requests where classes differ, and once where they are alike."""
    plan = planned(
        tmp_path,
        {
            "classes": [
                CLASS | {"weight": 3, "content": "english"},
                CLASS | {"name": "b", "content": "code", "shared_prefix": {"tokens": 50, "share": 0.5}},
            ]
        },
    )
    items = disclosed(plan)
    assert missing(items) == []
    assert items.input == "uniform(9,12), in tokens of the server, without shared prefixes"
    assert items.language == "a (0.75 of the requests): English; b (0.25 of the requests): Python"
    assert items.prefix == "0.125 of all requests: b: 0.5 of its requests, 50 tokens, one text"


def test_what_nobody_can_derive_of_a_file_is_missing_until_it_is_declared() -> None:
    """D-4.3-custom-full: ids of the missing items; the declaration takes each away."""
    tally = LengthTally(n=9, mean=5.0, std=1.25, min=3, max=8)
    file = PromptFile("x", "jsonl", "0" * 64, 99, 4, 0, input_tokens=tally, output_tokens=tally)
    bare = disclosed(Plan(workload=PromptsWorkload(prompts="x")), file)
    assert missing(bare) == ["D-4.3.1-domain", "D-4.3.1-language", "D-4.3.1-prefix"]
    assert bare.input == (
        "empirical: mean 5, standard deviation 1.25, 3 to 8, of 9 requests, in tokens of the server"
    )
    told = PromptsWorkload(prompts="x", domain="code", language="Python", prefix_sharing="none")
    assert missing(disclosed(Plan(workload=told), file)) == []
    assert missing(disclosed(Plan(workload=told), None)) == [
        requirement(name) for name in ("input", "output", "system_prompt")
    ]


def test_output_control_says_what_ends_an_answer() -> None:
    """max_tokens; with the model's own end where that is let be; and stop sequences where there are some."""
    assert disclosed(Plan()).control == "max_tokens"
    free = Plan(workload=StandardWorkload(ignore_eos=False))
    assert disclosed(free).control == "max_tokens and the model's own end of sequence"
    stopped = workload_of({"classes": [CLASS | {"sampling": {"stop": ["END"]}}]})
    assert disclosed(Plan(workload=stopped)).control == "max_tokens and stop sequences"
