"""What is wrong with a plan, held to recorded facts: pairs of keys in a file, of flags, and of a flag over a file.

`tests/vectors/plans/problems.jsonl` was recorded from version 0.1.0, before workloads had kinds. Wording is free; of each
problem the place, the values and the keys or flags that its remedy names may not be lost.

    python tests/plan/test_plan_problems.py      records anew
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from inferometer.errors import PlanError
from inferometer.plan.parse import build

VECTORS = Path(__file__).parent.parent / "vectors" / "plans" / "problems.jsonl"

KEYS: dict[str, object] = {
    "workload.name": "conversation",
    "workload.based_on": "normal",
    "workload.input_tokens": 320,
    "workload.output_tokens": "uniform(8,16)",
    "workload.dataset": "share.json",
    "workload.dataset_subset": "a",
    "workload.dataset_version": "v1",
    "workload.prompts": "own.jsonl",
    "workload.order": "shuffled",
    "workload.prompts_sha256": "0" * 64,
    "workload.file": "made.jsonl",
    "workload.file_sha256": "1" * 64,
    "workload.classes": [{"name": "a", "input_tokens": 5, "output_tokens": 7}],
    "workload.turns": 3,
    "workload.think_ms": 50,
    "workload.replies": "recorded",
    "workload.domain": "code",
    "workload.prefix_sharing": "a tenth",
    "workload.prompt_format": "ids",
    "workload.repeatable_prompts": True,
    "workload.count_template": True,
    "trace.file": "trace.jsonl",
    "trace.speed": 2,
    "load.rate": 4,
    "load.arrival": "gamma",
    "load.users": 2,
    "load.duration_s": 9,
    "target.api": "completions",
    "tokenizer.name": "server",
}
"""One value for each key, none of them its default."""

MORE: tuple[dict[str, object], ...] = (
    {"workload": {"name": "custom"}},
    {"workload": {"name": "custom", "input_tokens": 5}},
    {"workload": {"name": "trace"}},
    {"workload": {"name": "unknown"}},
    {"workload": {"name": "normal", "prompts": "own.jsonl"}},
    {"workload": {"name": "trace", "classes": [{"name": "a", "input_tokens": 5, "output_tokens": 7}]}},
    {"workload": {"classes": [{}]}},
    {"workload": {"classes": [{"name": "a"}, {"name": "a", "input_tokens": 1, "output_tokens": 1}]}},
    {"workload": {"classes": [{"name": "a", "input_tokens": "empirical", "output_tokens": 1}]}},
    {"workload": {"classes": [{"name": "a", "input_tokens": 2, "output_tokens": 1, "shared_prefix": {}}]}},
    {"workload": {"classes": [{"nam": "a", "input_tokens": 0, "output_tokens": "x"}]}},
    {"workload": {"classes": 3}},
    {"workload": {"classes": "a"}},
    {"workload": 3},
    {"workload": []},
    {"workload": "normal"},
    {"workload": {"seed": -1}},
    {"workload": {"seed": "x", "input_tokens": "uniform(5,2)", "temperature": 11}},
    {"workload": {"input_token": 5}},
    {"workload": {"name": "normal", "prompt": "own.jsonl"}},
    {"workload": {"input_tokens": "empirical"}},
    {"workload": {"name": "code-completion", "output_tokens": "empirical"}},
    {"workload": {"name": "normal", "dataset": "x"}},
    {"workload": {"turns": "empirical"}},
    {"workload": {"prompts": "", "order": "sorted", "prompts_sha256": "12"}},
    {"workload": {"file": "", "file_sha256": "12"}},
    {"workload": {"prompts": "own.jsonl", "prompt_format": "ids"}, "target": {"api": "completions"}},
    {"workload": {"count_template": "perhaps", "ignore_eos": "perhaps", "replies": "none"}},
    {"workload": {"temperature": True, "domain": "", "language": ""}},
    {"trace": {"file": "t", "start_s": 5, "end_s": 4}, "workload": {"name": "normal", "input_tokens": 4}},
    {"trace": {"file": "t"}, "workload": {"turns": 2, "think_ms": 1, "replies": "recorded"}},
    {"trace": {"file": "t"}, "workload": {"prompts": "own.jsonl", "order": "sampled", "output_tokens": 3}},
    {"load": {"model": "open"}, "workload": {"prompts": "own.jsonl", "input_tokens": 3}},
    {"target": {"extra_body": {"messages": []}, "url": "ftp://x"}, "workload": {"turns": 2}},
)
"""Plan files beside the pairs."""

FLAGS: dict[str, object] = {
    "--workload": "conversation",
    "--input-tokens": "320",
    "--output-tokens": "uniform(8,16)",
    "--dataset": "share.json",
    "--dataset-subset": "a",
    "--prompts": "own.jsonl",
    "--prompts-order": "shuffled",
    "--workload-file": "made.jsonl",
    "--trace": "trace.jsonl",
    "--trace-speed": "2",
    "--turns": "3",
    "--think-ms": "50",
    "--replies": "recorded",
    "--prompt-format": "ids",
    "--count-template": "yes",
    "--rate": "4",
    "--api": "completions",
    "--tokenizer": "server",
}

_WORD = re.compile(r"--[a-z-]+|[a-z_]+(?:\[\d\])?\.[a-z_0-9.]+|(?<!\w)'[^']*'|\d[\d,.]*\d|\d")


def cases() -> Iterator[tuple[dict[str, object], dict[str, object]]]:
    """Plan files and flags: (values, flags)."""
    for one in KEYS:
        yield _values(one), {}
        for flag, text in FLAGS.items():
            yield _values(one), {flag: text}
    for pair in combinations(KEYS, 2):
        yield _values(*pair), {}
    for values in MORE:
        yield values, {}
    for name in ("custom", "trace", "unknown"):
        yield {}, {"--workload": name}
    for one, other in combinations(FLAGS, 2):
        yield {}, {one: FLAGS[one], other: FLAGS[other]}


def _values(*keys: str) -> dict[str, object]:
    values: dict[str, dict[str, object]] = {}
    for key in keys:
        part, name = key.split(".")
        values.setdefault(part, {})[name] = KEYS[key]
    return dict(values)


def problems(values: dict[str, object], given: dict[str, object], path: Path) -> dict[str, list[str]]:
    """Of each problem, by its place, the facts in its message: keys, flags, quoted values and numbers."""
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    try:
        build(path if values else None, given)
    except PlanError as error:
        found: dict[str, set[str]] = {}
        for problem in error.problems:
            place = problem.where.replace(str(path), "plan")
            found.setdefault(place, set()).update(_WORD.findall(problem.message))
        return {place: sorted(facts) for place, facts in found.items()}
    return {}


def _recorded() -> list[tuple[dict[str, object], dict[str, object], dict[str, list[str]]]]:
    return [tuple(json.loads(line)) for line in VECTORS.read_text().splitlines()]


CHOOSERS = {
    "workload.name": "--workload",
    "workload.prompts": "--prompts",
    "workload.classes": "",
    "workload.file": "--workload-file",
    "trace.file": "--trace",
}
"""The keys and flags that make a workload one of a kind."""

READ_NOW: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"workload": {"prompts": "own.jsonl", "file": "made.jsonl"}}, {}),
    ({"workload": {"file": "made.jsonl", "classes": KEYS["workload.classes"]}}, {}),
]
"""Keys beside a workload file are held to what it says. These were refused for a name that nobody had written."""
REFUSED_NOW: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"workload": {"based_on": "normal"}, "trace": {"file": "trace.jsonl"}}, {})
]
"""A key without effect."""
ELSEWHERE: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"workload": {"prompt_format": "ids"}}, {"--prompts": "own.jsonl"}),
    ({}, {"--prompts": "own.jsonl", "--workload-file": "made.jsonl"}),
]
"""Told where the value stands, not at the flag beside it, nor at one that was not given."""


def _without_effect(values: dict[str, object], found: dict[str, list[str]]) -> bool:
    """Whether all that is refused is a `based_on` that was ignored, for the workload is not custom."""
    workload = values.get("workload")
    name = workload.get("name") if isinstance(workload, dict) else None
    return name != "custom" and all(place.endswith("workload.based_on") for place in found)


def _kept(place: str, facts: list[str], found: dict[str, list[str]], given: dict[str, object]) -> bool:
    """Whether what was known of a problem still is.

    A key that the workload's kind does not have is refused as such: the message names it, and what chose the kind. What else
    the key would need, were it of use, is no fact of this plan. And a flag that chooses a kind overrides the file's keys that
    the kind does not have.
    """
    if place not in found:
        return place.startswith("plan:") and not given.keys().isdisjoint(CHOOSERS.values())
    refused = {*CHOOSERS, *CHOOSERS.values()} - {place.rpartition(" ")[2], ""}
    own = place.rpartition(" ")[2]
    return set(facts) <= set(found[place]) or (own in found[place] and not refused.isdisjoint(found[place]))


@pytest.mark.parametrize("part", range(8))
def test_no_fact_of_a_problem_is_lost(part: int, tmp_path: Path) -> None:
    """Each plan that was refused still is, with the same places, and each message has the facts it had; others are read."""
    lost: list[object] = []
    for values, given, expected in _recorded()[part::8]:
        found = problems(values, given, tmp_path / "plan.yaml")
        if (values, given) in READ_NOW:
            assert not found
        elif (values, given) in REFUSED_NOW:
            assert not expected
            assert found
        elif not expected:
            lost += [(values, given, found)] if found and not _without_effect(values, found) else []
        elif (values, given) not in ELSEWHERE:
            lost += [
                (values, given, {place: facts}, found)
                for place, facts in expected.items()
                if not _kept(place, facts, found, given)
            ]
    assert not lost, f"{len(lost)}: " + "\n".join(map(str, lost[:12]))


def test_the_recorded_plans_are_the_generated_ones() -> None:
    """The vectors hold every case that is generated, in order."""
    assert [(values, given) for values, given, _ in _recorded()] == list(cases())


if __name__ == "__main__":
    VECTORS.parent.mkdir(exist_ok=True)
    here = Path(sys.argv[1]) / "plan.yaml"
    lines = [json.dumps([*case, problems(*case, here)]) for case in cases()]
    VECTORS.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"target": {"extra_body": {"temperature": 1}}}, "workload.temperature"),
        ({"target": {"extra_body": {"ignore_eos": False}}}, "workload.ignore_eos"),
        ({"target": {"extra_body": {"max_completion_tokens": 5}}}, "workload.output_tokens"),
        (
            {"sut": {"guardrails": {"names": ["x"], "input_filter": False, "output_filter": False}}},
            "omit the names",
        ),
    ],
)
def test_what_contradicts_the_plan_is_refused(values: dict[str, object], named: str, tmp_path: Path) -> None:
    """The message names the key to use, or what to omit; a null takes a field away and contradicts nothing."""
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(values))
    with pytest.raises(PlanError, match=re.escape(named)):
        build(path)
    path.write_text(json.dumps({"target": {"extra_body": {"ignore_eos": None}}}))
    assert build(path).target.extra_body == {"ignore_eos": None}


def test_prompts_beside_a_workload_file_are_refused_with_the_plan(tmp_path: Path) -> None:
    """Law: two flags that each determine what is sent contradict each other, whatever the files hold; a flag beside a plan
    file's key takes its place, and a plan file may have both, since it may be the one that made the workload file."""
    path = tmp_path / "plan.yaml"
    both: dict[str, object] = {"--prompts": "own.jsonl", "--workload-file": "made.jsonl"}
    assert problems({}, both, path) == {"--prompts": ["--prompts", "--workload-file"]}
    for key, flag in (("file", "--prompts"), ("prompts", "--workload-file")):
        assert not problems({"workload": {key: "a.jsonl"}}, {flag: "b.jsonl"}, path)
    assert not problems({"workload": {"prompts": "own.jsonl", "file": "made.jsonl"}}, {}, path)
