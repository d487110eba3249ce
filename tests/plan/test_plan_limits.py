"""Plan files that are short and would come to much: merge keys, aliases, and keys without end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import MOST_PROBLEMS, PlanError
from inferometer.plan.document import Document, parse
from inferometer.plan.parse import build

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
    """Law: that one of 10,000 keys occurs twice is found in the time that it takes to read them."""
    document = Document("plan.json")
    parse("{\t" + ",".join(f'"{n}":1' for n in range(10_000)) + ', "7": 1}', document)
    assert [problem.message for problem in document.problems] == ["7 occurs twice in one mapping"]


@pytest.mark.parametrize(
    "text",
    [
        "{" + ",".join(f'"{n}":1' for n in range(10_001)) + "}",
        '{"load":{' + ",".join(f'"{n}":1' for n in range(10_000)) + "}}",
        '{"slos":[' + "[]," * 20_000 + "1]}",
    ],
    ids=["keys", "keys of a part", "a list"],
)
def test_json_holds_as_much_as_yaml_may(text: str) -> None:
    """Law: a plan that is JSON has 20,000 keys and values at most, wherever they are."""
    document = Document("plan.json")
    parse(text, document)
    (problem,) = document.problems
    assert "holds more than 20,000 keys and values" in problem.message
    assert document.values == {}
    assert not document.readable


@pytest.mark.parametrize(
    "part", ["{%s}", '{"load": {%s}}', '{"target": {"headers": {%s}}}', '{"declared": {%s}}']
)
def test_a_file_of_many_mistakes_has_the_first_named_and_the_rest_counted(part: str, tmp_path: Path) -> None:
    """Law: 20 problems are in words at most, whatever they are about, and `more` says how many are not."""
    file = tmp_path / "plan.json"
    file.write_text(part % ",".join(f'"a {n}":{n}' for n in range(3_000)))
    with pytest.raises(PlanError) as caught:
        build(file)
    assert len(caught.value.problems) == MOST_PROBLEMS
    assert caught.value.more >= 3_000 - MOST_PROBLEMS
    assert str(caught.value).endswith(f"and {caught.value.more:,} more")


NO_VALUES = {
    "no bool": "name: !!bool foo\n",
    "an int of nothing": "load: {rate: !!int ''}\n",
    "an int of a separator": "load: {rate: !!int '_'}\n",
    "a float of nothing": "load: {rate: !!float ''}\n",
    "no timestamp": "name: !!timestamp foo\n",
    "beyond a float, in base 60": "load: {rate: 1" + ":0" * 200 + ".0}\n",
    "beyond a float, as a name": "name: 1" + ":0" * 200 + ".0\n",
    "no character": 'name: "\\UFFFFFFFF"\n',
    **{
        f"{form}, in {key}": f"{part}: {{{key}: {number}}}\n"
        for form, number in (
            ("hexadecimal", "0x" + "f" * 6_000), ("binary", "0b" + "1" * 40_000), ("base 60", "1" + ":0" * 3_000),
            ("just too long", hex(10**4300)),
        )
        for part, key in (
            ("load", "rate"), ("load", "concurrency"), ("load", "duration_s"), ("workload", "seed"),
            ("workload", "input_tokens"), ("sut", "notes"), ("target", "extra_body"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("text", NO_VALUES.values(), ids=NO_VALUES)
def test_a_scalar_that_its_tag_or_its_length_makes_no_value_is_refused_in_words(
    text: str, tmp_path: Path
) -> None:
    """Law: what PyYAML cannot construct, and a number too long to be written down, is a problem of the file."""
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(PlanError) as caught:
        build(file)
    (problem,) = caught.value.problems
    assert problem.message.startswith("is not valid YAML: ")
    assert "index out of range" not in problem.message
    assert ("4,300 digits" in problem.message) == (len(text) > 1_000)


TAGS = st.sampled_from(
    ["", *(f"!!{kind} " for kind in ("bool", "int", "float", "timestamp", "binary", "null", "str"))]
)
SCALARS = st.text(st.sampled_from("019_:.-+xbetT ZfnayE"), max_size=12) | st.from_regex(
    r"[-+]?0[xbo]?[0-9a-f_]{1,9}|[0-9]{1,4}(:[0-9]{1,2}){0,200}(\.[0-9]*)?", fullmatch=True
)


@given(TAGS, SCALARS, st.sampled_from(["'", '"', ""]))
def test_any_tagged_scalar_is_a_value_or_a_problem(tag: str, text: str, quote: str) -> None:
    """Law: no scalar ends the reading in anything but values or problems."""
    document = Document("plan.yaml")
    parse(f"name: {tag}{quote}{text}{quote}\n", document)
    assert document.problems or "name" in document.values


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('"\\ud800": 1\n', "?"),
        ('sut: {notes: "a\\udc00"}\n', "sut.notes"),
        ('slos: ["\\ud800"]\n', "slos[0]"),
        ('target: {extra_body: {"\\ud800": 1}}\n', "target.extra_body.?"),
        ('{"sut": {"notes": "\\ud800"}}', "sut.notes"),
        ('{"\\ud800": 1}', "?"),
        ('{"target": {"headers": {"X-A": "\\ud800"}}}', "target.headers.X-A"),
    ],
)
def test_half_of_a_surrogate_pair_is_no_text_of_a_plan(text: str, place: str, tmp_path: Path) -> None:
    """Law: YAML and JSON alike are refused with the place; such a plan could not be saved."""
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(PlanError) as caught:
        build(file)
    (problem,) = caught.value.problems
    assert problem.message == f"holds half of a surrogate pair at {place}, which is no text"


def test_a_whole_pair_is_text(tmp_path: Path) -> None:
    """Law: two escapes of JSON that are one character stay it, and the file keeps its lines."""
    file = tmp_path / "plan.json"
    file.write_text('{"sut": {"notes": "\\ud83d\\ude00"}}')
    assert build(file).sut.notes == "\N{GRINNING FACE}"


@pytest.mark.parametrize("part", ["", "load", "sut", "target.headers"])
def test_a_key_is_named_whatever_it_is_called(part: str, tmp_path: Path) -> None:
    """Law: a refused key keeps its place, also where it has the name that pydantic gives to refused keys."""
    values: dict[str, object] = {"[key]": 1}
    for name in reversed(part.split(".") if part else []):
        values = {name: values}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(values))
    with pytest.raises(PlanError) as caught:
        build(file)
    where = f"{file}:1: {part}.[key]" if part else f"{file}:1: [key]"
    assert {problem.where for problem in caught.value.problems} == {where}
