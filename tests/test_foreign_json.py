"""JSON of others: what the standard has, or words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.foreign_json import DEEPEST, NotJSON, check_depth, dotted, loads

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(PLAIN)
def test_what_json_holds_is_read_as_the_standard_library_does(value: object) -> None:
    """As text and as bytes."""
    text = json.dumps(value)
    assert loads(text) == loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth_has_a_limit_that_does_not_hang_on_the_stack(begin: str, end: str) -> None:
    """DEEPEST levels are read; one more is refused, and so is more than the interpreter takes."""
    levels = begin.count("[") + begin.count("{")
    for depth in (1, 2, DEEPEST // levels):
        loads(begin * depth + "1" + end * depth)
    for depth in (DEEPEST // levels + 1, 400, 100_000):
        with pytest.raises(NotJSON, match="nested more than 100 levels deep"):
            loads(begin * depth + "1" + end * depth)
    with pytest.raises(NotJSON):
        check_depth(json.loads("[" * 101 + "]" * 101))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON: Expecting value at character 1"),
        ('{"a": 1', "is no JSON"),
        (b"\xff\xfe\xff", "is not UTF-8 text"),
        (f"[-{'9' * 5_000}]", "holds a number of more than 4,300 digits"),
    ],
    ids=["empty", "cut off", "no text", "digits"],
)
def test_what_is_none_is_said_in_words(text: str | bytes, words: str) -> None:
    """Which go after the name of a file."""
    with pytest.raises(NotJSON, match=words):
        loads(text)


@pytest.mark.parametrize("piece", ["[],", "{},", "1,", '"",', '{"a":1},', "[1],", '{"a":[],"b":{}},'])
def test_values_are_limited_before_they_are_made(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: a text of more values than the limit is refused, whatever they are, as text and as bytes; one within it is read."""
    monkeypatch.setattr("inferometer.foreign_json.MOST_VALUES", 1_000)
    marks = sum(piece.count(mark) for mark in ",[{")
    most = 999 // marks
    assert len(loads(f"[{piece * most}1]")) == most + 1
    for text in (f"[{piece * (most + 1)}1]", f'{{"a":[{piece * 2_000}1]}}'):
        for form in (text, text.encode()):
            if len(form) > 1_000:
                with pytest.raises(NotJSON, match=r"holds too much: .* of which 1,000 are read"):
                    loads(form)


@given(PLAIN)
def test_a_text_has_no_more_values_than_commas_and_brackets_and_one(value: object) -> None:
    """Law: which is why to count these is to limit those."""
    text = json.dumps(value)
    assert counted(value) <= 1 + sum(text.count(mark) for mark in ",[{")


def counted(value: object) -> int:
    """The values in plain data, itself among them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(counted, inner))


Place = tuple[str | int, ...]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="?"), max_size=8)


@st.composite
def holders(draw: st.DrawFn) -> tuple[object, Place]:
    """Plain data with half of a surrogate pair, and its place: that of a value, or of a name, where it is a `?`."""
    half = draw(st.characters(categories=["Cs"]))
    value: object = draw(NAMES) + half
    place: Place = ()
    if draw(st.booleans()):
        value, place = {f"a{half}": draw(PLAIN)}, ("a?",)
    for inside in draw(st.lists(NAMES | st.integers(0, 3), max_size=6)):
        before = [draw(PLAIN) for _ in range(inside)] if isinstance(inside, int) else []
        value = [*before, value, draw(PLAIN)] if isinstance(inside, int) else {inside: value}
        place = (inside, *place)
    return value, place


@given(holders())
def test_half_of_a_surrogate_pair_is_refused_wherever_it_is(made: tuple[object, Place]) -> None:
    """Law: in a name or a value, at any depth, as an escape or as bytes; with its place, in words that can be written. A reader
    that deals with halves gets them."""
    value, place = made
    escaped = json.dumps(value)
    for text in (escaped, json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")):
        with pytest.raises(NotJSON) as refused:
            loads(text)
        where = f" at {dotted(place)}" if place else ""
        assert str(refused.value) == f"holds half of a surrogate pair{where}, which is no text"
        str(refused.value).encode()
    assert loads(escaped, halves=True) == value


def test_a_whole_surrogate_pair_is_text() -> None:
    """As JSON spells what is beyond the first plane."""
    assert loads('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
