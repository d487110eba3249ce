"""Plan files that are short and would come to much: merge keys, aliases, and keys without end."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inferometer.plan.document import Document, parse

NAMES = st.sampled_from("abcd")


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 5), max_size=4), st.dictionaries(NAMES, st.integers(0, 9))),
        max_size=6,
    )
)
def test_merge_keys_bring_what_pyyaml_brings(mappings: list[tuple[list[int], dict[str, int]]]) -> None:
    """Law: one `<<` with a mapping or a list of them comes to the same values as in `yaml.safe_load`."""
    lines = []
    for number, (sources, own) in enumerate(mappings):
        merged = [f"*m{source}" for source in sources if source < number]
        brought = [f"<<: [{', '.join(merged)}]"] if len(merged) > 1 else [f"<<: {one}" for one in merged]
        pairs = ", ".join([*brought, *(f"{name}: {value}" for name, value in own.items())])
        lines.append(f"m{number}: &m{number} {{{pairs}}}")
    text = "\n".join(lines)
    document = Document("plan.yaml")
    parse(text, document)
    assert document.problems == []
    assert document.values == (yaml.safe_load(text) or {})


TOO_MUCH = {
    "a list of many aliases, merged many times": "a: &a {x: 1}\nl: &l [" + "*a," * 9_000 + "]\n"
    + "".join(f"k{n}: {{<<: *l}}\n" for n in range(9_000)),
    "the same of nothing": "a: &a {}\nl: &l [" + "*a," * 9_000 + "]\n"
    + "".join(f"k{n}: {{<<: *l}}\n" for n in range(9_000)),
    "each merges the one before twice": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], y{n}: 1}}\n" for n in range(1, 40)),
    "merges in merges": "a: " + "{<<: " * 60 + "{}" + "}" * 60,
    "each holds the one before twice": "a0: &a0 [x]\n"
    + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    "a long list": "- a\n" * 250_000,
    "many keys": "".join(f"k{n}: 1\n" for n in range(90_000)),
}  # fmt: skip


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_short_file_cannot_be_much(text: str) -> None:
    """Law: nodes are counted as they are composed and as aliases and merges bring them, so a file of 1 MiB comes to 20,000 at
    most. Without that these take minutes, and some for ever."""
    document = Document("plan.yaml")
    parse(text, document)
    (problem,) = document.problems
    assert "too much for a plan" in problem.message


def test_a_mapping_that_merges_itself_brings_nothing_new() -> None:
    """Law: it ends."""
    document = Document("plan.yaml")
    parse("name: &a {<<: *a, b: 1}\n", document)
    assert document.values == {"name": {"b": 1}}


def test_json_has_a_depth_that_everything_behind_it_can_walk() -> None:
    """Law: a plan that is JSON is not read by YAML's limits, and is refused in words where it is too deep."""
    for depth in (101, 400, 5_000):
        document = Document("plan.json")
        parse('{"a":' * depth + "1" + "}" * depth, document)
        (problem,) = document.problems
        assert "nested" in problem.message
        assert document.values == {}


def test_many_keys_of_one_json_object_are_looked_at_once() -> None:
    """Law: that one of 100,000 keys occurs twice is found in the time that it takes to read them."""
    document = Document("plan.json")
    parse("{" + ",".join(f'"{n}":1' for n in range(100_000)) + ', "7": 1}', document)
    assert [problem.message for problem in document.problems] == ["7 occurs twice in one mapping"]
