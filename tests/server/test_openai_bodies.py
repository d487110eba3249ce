"""Request bodies read, and event bytes made, without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.server.filler_text import PIECES
from inferometer.server.ollama import OllamaReader
from inferometer.server.openai import IMAGE_TOKENS, ApiError, Ask, Reader, Script, error_body
from inferometer.server.responses import ResponsesReader
from inferometer.workload.encodings import Cl100k

READER = Reader("m", 1_000, Cl100k())
USER = [{"role": "user", "content": "hello hello hello"}]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
FIELDS = (
    *(
        "messages",
        "prompt",
        "model",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "n",
        "ignore_eos",
    ),
)


def chat(**fields: Any) -> Ask:
    return READER.chat(json.dumps({"messages": USER, **fields}).encode())


def completion(prompt: Any, **fields: Any) -> Ask:
    return READER.completion(json.dumps({"prompt": prompt, **fields}).encode())


def refused(ask: Any, *args: Any, **fields: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ask(*args, **fields)
    return caught.value


def attempt(read: Callable[[bytes], Any], body: bytes) -> Any:
    """What a reader makes of a body: its result, or its refusal."""
    try:
        return read(body)
    except ApiError as error:
        return error


def test_every_interface_reads_a_priority() -> None:
    """As vLLM does; Ollama among its options. Without one it is 0."""
    responses, ollama = ResponsesReader("m", 999, Cl100k()), OllamaReader("m", 999, Cl100k())
    for said, read in ((-3, -3), (None, 0)):
        fields: dict[str, Any] = {"priority": said}
        asks = [
            chat(**fields),
            completion("x", **fields),
            responses.responses(json.dumps({"input": "x", **fields}).encode()),
            ollama.generate(
                json.dumps({"model": "m", "prompt": "x", "options": fields | {"num_predict": 1}}).encode()
            ),
        ]
        assert [ask.priority for ask in asks] == [read] * 4
    assert chat().priority == 0


def test_a_chats_tokens_are_its_text_and_seven_for_one_user_message() -> None:
    """Content + role + 3 a message and 3 a request, by the layout OpenAI uses for cl100k models."""
    assert chat().prompt_tokens == 3 + 7
    two = [
        {"role": "system", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
    ]
    assert chat(messages=two).prompt_tokens == (1 + 0 + 3) + (1 + 1 + 3) + 3
    tokenized = READER.tokenize(json.dumps({"messages": two}).encode())
    assert tokenized["count"] == chat(messages=two).prompt_tokens


def test_an_image_and_a_tool_call_have_tokens() -> None:
    """Law: an image counts the same by URL and as data, whatever its size; a tool call its name and its arguments."""
    plain = chat(messages=[{"role": "user", "content": "hello"}]).prompt_tokens
    text = {"type": "text", "text": "hello"}
    for url in ("https://example.org/a.png", "data:image/png;base64," + "A" * 5000):
        parts = [text, {"type": "image_url", "image_url": {"url": url, "detail": "high"}}]
        assert chat(messages=[{"role": "user", "content": parts}]).prompt_tokens == plain + IMAGE_TOKENS
        assert (
            chat(messages=[{"role": "user", "content": [parts[1], text, parts[1], parts[1]]}]).prompt_tokens
            == plain + 3 * IMAGE_TOKENS
        )
    call = {"id": "c1", "type": "function", "function": {"name": "hello", "arguments": "hello world"}}
    turn = {"role": "assistant", "content": None}
    without = chat(messages=[turn]).prompt_tokens
    assert chat(messages=[turn | {"tool_calls": [call, call]}]).prompt_tokens == without + 2 * (1 + 2)


def test_an_image_is_found_in_the_cache_and_another_is_not() -> None:
    """Law: what is hashed of a prompt tells images apart, and knows one again."""
    reader = Reader("m", 10_000, Cl100k(), block_tokens=16)

    def hashes(url: str) -> tuple[int, ...]:
        parts = [{"type": "image_url", "image_url": {"url": url}}]
        return reader.chat(json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()).hashes

    assert len(hashes("http://h/a")) == (IMAGE_TOKENS + 7) // 16
    assert hashes("http://h/a") == hashes("http://h/a")
    assert not set(hashes("http://h/a")) & set(hashes("http://h/b"))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url"},
        {"type": "image_url", "image_url": {}},
        {"type": "image_url", "image_url": 3},
        {"type": "input_audio"},
    ],
)
def test_parts_that_are_neither_text_nor_an_image_are_refused(part: dict[str, Any]) -> None:
    """Law: 400, in words."""
    body = json.dumps({"messages": [{"role": "user", "content": [part]}]}).encode()
    with pytest.raises(ApiError) as refused:
        READER.chat(body)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("prompt", "count"), [("hello world", 2), ([5, 6, 7], 3), (["hello world"], 2), ([[5, 6]], 2), ([0], 1)]
)
def test_a_completion_prompt_is_text_or_ids_or_a_list_of_one_of_them(prompt: Any, count: int) -> None:
    """A list of ids counts itself; text is counted by cl100k."""
    assert completion(prompt).prompt_tokens == count


@pytest.mark.parametrize(
    "prompt", ["", [], [""], [[]], [[[1]]], ["a", "b"], [[1], [2]], [1, "a"], [1.5], [-1], [True], {}]
)
def test_other_prompts_are_refused(prompt: Any) -> None:
    """No token, several prompts, or no prompt at all: 400 that says so."""
    assert refused(completion, prompt).status == 400


def test_the_length_asked_for_is_the_newer_name_then_the_older_then_the_default() -> None:
    """`max_completion_tokens` replaced `max_tokens` for chats; completions have only the latter."""
    assert chat(max_tokens=5, max_completion_tokens=7).max_tokens == 7
    assert chat(max_tokens=5).max_tokens == 5
    assert chat().max_tokens == 128
    assert completion("a", max_tokens=5, ignore_eos=True).max_tokens == 5
    assert completion("a").max_tokens == 16


def test_prompt_and_answer_must_fit_the_context() -> None:
    """1,000 tokens in all: 10 of prompt leave room for 990 and not for 991."""
    assert chat(max_tokens=990).max_tokens == 990
    assert refused(chat, max_tokens=991).code == "context_length_exceeded"


def test_usage_in_the_stream_is_given_only_if_asked_for() -> None:
    """`stream_options.include_usage`, absent, null, false or true."""
    assert not chat(stream=True).usage
    assert not chat(stream=True, stream_options=None).usage
    assert not chat(stream=True, stream_options={}).usage
    assert chat(stream=True, stream_options={"include_usage": True}) == Ask(
        "chat", True, True, 10, 128, "hello hello hello"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 0},
        {"max_tokens": "5"},
        {"max_tokens": 1.5},
        {"stream": "yes"},
        {"messages": []},
        {"messages": [{"content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        {"n": 2},
        {"stream_options": 5},
    ],
)
def test_a_field_of_the_wrong_kind_is_refused(fields: dict[str, Any]) -> None:
    """What would change the measurement is checked; the answer is 400."""
    assert refused(chat, **fields).status == 400


def test_another_model_does_not_exist() -> None:
    """OpenAI and vLLM both answer 404 with `model_not_found`; no model named means the one there is."""
    error = refused(chat, model="other")
    assert (error.status, error.code) == (404, "model_not_found")
    assert chat(model="m") == chat(model=None) == chat()


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """No body raises anything but ApiError, and that has a JSON form."""
    for read in (READER.chat, READER.completion, READER.tokenize):
        outcome = attempt(read, body)
        if isinstance(outcome, ApiError):
            assert set(json.loads(error_body(outcome))["error"]) == {"message", "type", "param", "code"}


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_values_in_the_fields_we_know_are_read_or_refused(fields: dict[str, Any]) -> None:
    """As above, with the right names."""
    body = json.dumps({"messages": USER, "prompt": "x", **fields}).encode()
    for read in (READER.chat, READER.completion):
        outcome = attempt(read, body)
        assert outcome.status in (400, 404) if isinstance(outcome, ApiError) else outcome.max_tokens >= 1


@pytest.mark.parametrize("is_chat", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_every_tokens_chunk_has_the_size_it_declares(is_chat: bool, last: bool) -> None:
    """RFC 9112 section 7.1, for every piece of the passage, though the sizes are worked out in advance."""
    script = Script('odd "model" \u00e9', "chat" if is_chat else "completions")
    stem = script.stem("f" * 32, 1_795_000_000)
    for piece, (before, after) in zip(PIECES, script.last if last else script.fresh, strict=True):
        size, _, rest = (before + stem + after).partition(b"\r\n")
        assert len(rest) == int(size, 16) + 2
        assert rest.endswith(b"\n\n\r\n")
        event = json.loads(rest.removeprefix(b"data: "))
        (choice,) = event["choices"]
        assert (choice["delta"]["content"] if is_chat else choice["text"]) == piece
        assert choice["finish_reason"] == ("length" if last else None)
        assert event["model"] == 'odd "model" \u00e9'
        assert event["id"] == script.ident("f" * 32)
