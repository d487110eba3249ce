"""Messages that a plan describes: the fast reading of them is the slow one, and a description of a form that we know reads it
as the form's own dialect does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.engines import websocket
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect, GenerationRequest, load
from inferometer.engines.message_form import Mark, MessageForm, Path, Scalar, parse_path
from inferometer.journal.schema import EventClass

NAMES = ("a", "b", "c")
SCALARS: st.SearchStrategy[Any] = st.sampled_from(["x", "y", "", 0, 1, 1 << 63, True, False, None, 1.5])
PATHS = st.lists(st.sampled_from([*NAMES, 0]), min_size=1, max_size=3).map(tuple)
WHERE = st.dictionaries(PATHS, SCALARS, max_size=2).map(lambda found: tuple(found.items()))
MARKS = st.builds(Mark, path=PATHS, where=WHERE) | st.builds(Mark, where=WHERE.filter(bool))
FORMS = st.builds(
    MessageForm,
    target=st.just("/"),
    request=st.just('{"p":"{prompt}","n":"{max_tokens}"}'),
    text=st.builds(Mark, path=PATHS, where=WHERE),
    end=MARKS,
    error=st.none() | MARKS,
    prompt_tokens=st.just(()) | PATHS,
    completion_tokens=st.just(()) | PATHS,
    finish_reason=st.just(()) | PATHS,
)
VALUES = st.recursive(
    SCALARS | st.sampled_from([" word", 7]),
    lambda inner: (
        st.dictionaries(
            st.sampled_from([*NAMES, "error", "type", "object"]), inner | st.just("error"), max_size=4
        )
        | st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)
CLASSES = {int(one): one.name for one in EventClass}


def made(form: MessageForm) -> Dialect:
    return load("websocket-mapped", form)


def reading(dialect: Dialect, messages: list[bytes], *, fast: bool) -> tuple[object, ...]:
    """What messages come to, one ns after the other; `fast`: as an answer that flows takes them."""
    answer = Answer()
    answer.first_answer = answer.first_visible = answer.first_text = 0
    for at, message in enumerate(messages):
        answer.flowing = fast and not answer.done
        dialect.read_event(answer, message, at)
    classes = [CLASSES[kind] for kind in answer.event_class]
    return (
        classes, answer.texts, answer.done, answer.error, answer.malformed, answer.finish_reason,
        answer.input_tokens, answer.output_tokens, list(answer.event_ns),
    )  # fmt: skip


@given(FORMS, st.lists(VALUES, min_size=1, max_size=4))
def test_the_fast_reading_is_the_slow_one(form: MessageForm, values: list[Any]) -> None:
    """Law: whatever the description and the messages, what an answer that flows makes of them is what any other makes."""
    messages = [json.dumps(value).encode() for value in values]
    assert reading(made(form), messages, fast=True) == reading(made(form), messages, fast=False)


OWN = MessageForm(
    target="/v1/ws",
    request='{"prompt":"{prompt}","max_tokens":"{max_tokens}"}',
    text=Mark(("text",), ((("type",), "token"),)),
    end=Mark((), ((("type",), "end"),)),
    error=Mark((), ((("type",), "error"),)),
    prompt_tokens=parse_path("usage.prompt_tokens"),
    completion_tokens=parse_path("usage.completion_tokens"),
    finish_reason=parse_path("finish_reason"),
)


def stream(texts: list[str], reason: str, *, cut: bool) -> Iterator[bytes]:
    """A stream of the reference server's."""
    for text in texts:
        yield json.dumps({"type": "token", "text": text, "emitted_monotonic_ns": 5}).encode()
    usage = {"prompt_tokens": 9, "completion_tokens": len(texts)}
    if not cut:
        yield json.dumps({"type": "end", "finish_reason": reason, "usage": usage}).encode()


@given(st.lists(st.text(min_size=1), max_size=6), st.sampled_from(["stop", "length", "abort"]), st.booleans())
def test_a_description_of_our_own_messages_reads_them_as_our_own_dialect_does(
    texts: list[str], reason: str, cut: bool
) -> None:
    """Law: events, texts, counts, reason and end are the same."""
    found = []
    for read in (made(OWN).read_event, websocket.read_event):
        answer = Answer()
        for at, message in enumerate(stream(texts, reason, cut=cut)):
            read(answer, message, at)
        found.append(
            (
                bytes(answer.event_class), answer.texts, answer.unseen, answer.done, answer.error, answer.finish_reason,
                answer.input_tokens, answer.output_tokens, answer.first_text, answer.first_visible, answer.first_answer,
            )
        )  # fmt: skip
    assert found[0] == found[1]


def read_one(form: MessageForm, message: bytes) -> Answer:
    answer = Answer()
    made(form).read_event(answer, message, 1)
    return answer


def form_of(text: str = "t", where: tuple[tuple[Path, Scalar], ...] = (), **more: Any) -> MessageForm:
    return MessageForm("/", '{"p":"{prompt}"}', Mark(parse_path(text), where), Mark(("end",)), **more)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"error": "no"}, "no"),
        ({"error": {"message": "no"}, "t": "a"}, "no"),
        ({"type": "error", "message": "no"}, "no"),
        ({"message": "queued"}, None),
        ({"detail": "queued"}, None),
        ({"error": None, "t": "a"}, None),
    ],
)
def test_without_a_description_of_errors_those_of_common_shapes_are_errors(
    message: dict[str, object], error: str | None
) -> None:
    """Law: but a notice is none, for messages of others may be called anything."""
    assert read_one(form_of(), json.dumps(message).encode()).error == error


@pytest.mark.parametrize("stated", [{"type": "error"}, {"object": "error"}, {"error": "no"}, {"error": ""}])
@pytest.mark.parametrize("where", [(), ((("type",), "error"),)])
def test_an_error_in_the_midst_of_an_answer_is_no_text_of_it(
    stated: dict[str, str], where: tuple[tuple[tuple[str], str], ...]
) -> None:
    """Law: however its words stand where the text does, and whatever the description says of text."""
    message = {"t": "the engine died", **stated}
    if where:
        message["type"] = "error"
    answer = Answer()
    for at, one in enumerate([{"t": "a", "type": "piece"}, message, {"end": True}]):
        answer.flowing = at > 0 and not answer.done
        made(form_of(where=where)).read_event(answer, json.dumps(one).encode(), at)
    assert answer.error is not None
    assert "the engine died" not in answer.texts


@pytest.mark.parametrize("odd", [7, 1.5, True, ["a"], {"b": "a"}])
def test_what_stands_in_the_place_of_text_and_is_none_fails_the_answer(odd: object) -> None:
    """Law: a token left out would shift the first one's time; only the message that ends an answer may have another thing
    there."""
    message = json.dumps({"t": odd}).encode()
    assert read_one(form_of(), message).malformed is not None
    ended = read_one(form_of(), json.dumps({"t": odd, "end": True}).encode())
    assert (ended.malformed, ended.done) == (None, True)
    assert read_one(form_of(where=((("kind",), "piece"),)), message).malformed is None


def test_a_description_of_errors_is_all_that_is_one() -> None:
    """Law: a member called error may then hold anything."""
    form = form_of(error=Mark(("failed", "why")))
    assert read_one(form, b'{"error":"","t":"a"}').error is None
    assert read_one(form, b'{"failed":{"why":{"message":"no"}}}').error == "no"


def test_the_message_that_ends_an_answer_may_hold_text() -> None:
    """Law: it is content and the end; what follows is read no more."""
    answer = read_one(form_of(), b'{"t":"all","end":true}')
    assert (bytes(answer.event_class), answer.texts, answer.done) == (
        bytes([EventClass.CONTENT]),
        ["all"],
        True,
    )
    made(form_of()).read_event(answer, b'{"t":"more"}', 2)
    assert answer.texts == ["all"]


@pytest.mark.parametrize("message", [b"[" * 100_000, b"\xff", b"word", b'{"t":', b""])
def test_what_is_no_json_is_malformed(message: bytes) -> None:
    """Law: and nothing raises."""
    assert read_one(form_of(), message).malformed is not None


REQUEST = GenerationRequest("m/{prompt}", 'say "{model}" \u00e9', 7, extra={"seed": 1, "drop": None})


def test_a_template_is_filled_once_and_its_numbers_are_numbers() -> None:
    """Law: what is put in is not looked through again; alone a placeholder is the value, within a text its words."""
    template = {
        "a": "{prompt}", "b": {"n": "{max_tokens}", "s": "up to {max_tokens} of {model}"},
        "t": ["{temperature}", "{other}"], "drop": 1, "none": None,
    }  # fmt: skip
    form = MessageForm("/", json.dumps(template), Mark(("t",)), Mark(("end",)))
    assert json.loads(made(form).body(REQUEST)) == {
        "a": 'say "{model}" é',
        "b": {"n": 7, "s": "up to 7 of m/{prompt}"},
        "t": [0.0, "{other}"],
        "none": None,
        "seed": 1,
    }


@pytest.mark.parametrize("inner", [{"t": "{temperature}"}, {"temperature": "{temperature}"}])
def test_the_temperature_of_a_class_stands_where_the_form_has_one(inner: dict[str, str]) -> None:
    """Law: once, and not the plan's; without a place for it, it is added like any other field."""
    (name,) = inner
    for options, expected in ((inner, {"o": {name: 0.9}}), ({}, {"o": {}, "temperature": 0.9})):
        template = json.dumps({"a": "{prompt}", "n": "{max_tokens}", "o": options})
        form = MessageForm("/", template, Mark(("t",)), Mark(("end",)))
        asked = GenerationRequest("m", "p", 7, extra={"temperature": 0.9})
        assert json.loads(made(form).body(asked)) == {"a": "p", "n": 7, **expected}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("text", ("text",)),
        ("a.b.c", ("a", "b", "c")),
        ("choices[0].delta", ("choices", 0, "delta")),
        ("[1][0]", (1, 0)),
        ('a["b.c"].d', ("a", "b.c", "d")),
        ("a-b.c d", ("a-b", "c d")),
    ],
)
def test_a_path_is_its_steps(text: str, path: tuple[str | int, ...]) -> None:
    """Names and indices, in order."""
    assert parse_path(text) == path


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[-1]", "a[x]", "a.[0]", "a]b", "a[0]b", 'a"b']
)
def test_what_is_no_path_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(ValueError, match="for example"):
        parse_path(text)
