"""The dialect of vLLM's gRPC, held against the published messages and the official library."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from smg_grpc_proto import vllm_engine_pb2 as pb

from inferometer.engines import vllm_grpc
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import GenerationRequest
from inferometer.engines.interface import INTERFACES, fits
from inferometer.engines.vllm_grpc import VLLM_GRPC, read_event, read_whole
from inferometer.journal.schema import EventClass
from inferometer.protocol.grpc import framed

FIELDS = INTERFACES["vllm-grpc"].fields or {}
CONTENT, DONE, EMPTY, ERROR = (
    int(EventClass.CONTENT),
    int(EventClass.DONE),
    int(EventClass.EMPTY),
    int(EventClass.ERROR),
)
IDS = st.lists(st.integers(0, (1 << 32) - 1), max_size=6)
COUNT = st.integers(0, (1 << 31) - 1)
LOGPROBS = st.builds(
    pb.OutputLogProbs, token_logprobs=st.lists(st.floats(width=32), max_size=3), token_ids=IDS
)
CHUNK = st.builds(
    pb.GenerateStreamChunk,
    token_ids=IDS,
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    cached_tokens=COUNT,
    output_logprobs=st.none() | LOGPROBS,
    index=st.integers(0, 2),
)
COMPLETE = st.builds(
    pb.GenerateComplete,
    output_ids=IDS,
    finish_reason=st.sampled_from(["", "stop", "length"]) | st.text(max_size=5),
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    cached_tokens=COUNT,
    output_logprobs=st.none() | LOGPROBS,
    matched_stop_str=st.none() | st.text(max_size=5),
)
RESPONSE = st.one_of(
    st.builds(pb.GenerateResponse, chunk=CHUNK),
    st.builds(pb.GenerateResponse, complete=COMPLETE),
    st.just(pb.GenerateResponse()),
)


def chunk(*ids: int, **counts: int) -> bytes:
    wire: bytes = pb.GenerateResponse(
        chunk=pb.GenerateStreamChunk(token_ids=ids, **counts)
    ).SerializeToString()
    return wire


def complete(*ids: int, reason: str = "length", **counts: int) -> bytes:
    made = pb.GenerateComplete(output_ids=ids, finish_reason=reason, **counts)
    wire: bytes = pb.GenerateResponse(complete=made).SerializeToString()
    return wire


def answered(*payloads: bytes) -> Answer:
    answer = Answer()
    for at, payload in enumerate(payloads):
        read_event(answer, payload, at)
    return answer


def expected(responses: list[Any]) -> tuple[list[int], int]:
    """Classes of the events and tokens, by the official library's reading."""
    classes: list[int] = []
    tokens, done = 0, False
    for one in responses:
        kind = one.WhichOneof("response")
        new = len(one.chunk.token_ids)
        if kind == "complete":
            new = max(0, len(one.complete.output_ids) - tokens)
        if done:
            classes.append(DONE)
            continue
        done = kind == "complete"
        tokens += new
        classes.append(CONTENT if new else DONE if done else EMPTY)
    return classes, tokens


@given(st.lists(RESPONSE, max_size=12))
def test_any_stream_is_read_as_the_official_library_reads_it(responses: list[Any]) -> None:
    """Law: an event a message, of its class, and as many tokens as there were ids, whatever else the messages have."""
    answer = answered(*(one.SerializeToString() for one in responses))
    classes, tokens = expected(responses)
    assert list(answer.event_class) == classes
    assert list(answer.event_ns) == list(range(len(responses)))
    assert (answer.output_tokens or 0) == tokens
    assert answer.malformed is None
    if CONTENT in classes:
        assert answer.first_text == answer.first_visible == answer.first_answer == classes.index(CONTENT)


@given(st.binary(max_size=40) | CHUNK.map(lambda one: pb.GenerateResponse(chunk=one).SerializeToString()))
def test_the_short_way_and_the_long_way_agree(payload: bytes) -> None:
    """Law: a message means the same behind a first token, where most take the short way, as before any."""
    flowing, fresh = answered(chunk(1)), Answer()
    read_event(flowing, payload, 1)
    read_event(fresh, payload, 1)
    assert flowing.event_class[1:] == fresh.event_class
    if not fresh.done:
        assert (flowing.output_tokens or 0) - 1 == (fresh.output_tokens or 0)
    assert flowing.malformed == fresh.malformed


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event(payload: bytes) -> None:
    """Law: nothing is raised; what the official library refuses, for another reason than its text, is an error or has no
    field that is read here."""
    answer = answered(payload)
    assert len(answer.event_class) == 1
    if answer.malformed is None and answer.event_class[0] == CONTENT:
        with contextlib.suppress(DecodeError):  # text that is no UTF-8, or a fault in a field that is skipped
            assert pb.GenerateResponse.FromString(payload).WhichOneof("response") is not None


@given(st.lists(st.binary(max_size=30), max_size=4), st.binary(max_size=8))
def test_any_body_is_a_whole_answer_or_none(messages: list[bytes], tail: bytes) -> None:
    """Law: nothing is raised."""
    answer = Answer()
    read_whole(answer, b"".join(map(framed, messages)) + tail, 5)
    assert set(answer.event_ns) <= {5}


def test_a_stream_of_vllm_counts_its_last_ids_once() -> None:
    """They come in the last chunk and in the message that ends the stream, each of which counts itself alone."""
    counts = {"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 4}
    stream = [
        chunk(7, **counts),
        chunk(8, **counts),
        chunk(9, **counts),
        complete(9, prompt_tokens=9, completion_tokens=1, cached_tokens=4),
    ]
    answer = answered(*stream)
    assert (answer.input_tokens, answer.output_tokens, answer.cached_tokens) == (9, 3, 4)
    assert (answer.finish_reason, answer.done) == ("length", True)
    assert list(answer.event_class) == [CONTENT] * 3 + [DONE]
    assert "".join(answer.texts) == ""


@pytest.mark.parametrize(
    "last", [complete(), complete(7, 8, 9, completion_tokens=3), complete(9), complete(8, 9)]
)
def test_an_end_may_repeat_none_some_or_all(last: bytes) -> None:
    """Three tokens came, whatever it repeats."""
    assert answered(chunk(7), chunk(8), chunk(9), last).output_tokens == 3


def test_an_end_with_more_ids_than_came_brings_the_rest() -> None:
    """As an answer that is not streamed does, with all of them."""
    whole = answered(complete(1, 2, 3, prompt_tokens=5))
    assert (whole.output_tokens, list(whole.event_class), whole.done) == (3, [CONTENT], True)
    assert answered(chunk(1), complete(1, 2, 3)).output_tokens == 3


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_end_that_names_a_failure_is_one(reason: str) -> None:
    """vLLM's own words for it."""
    assert answered(chunk(1), complete(1, reason=reason)).error == f"finish reason {reason}"


@pytest.mark.parametrize(
    "payload",
    [
        chunk(300, prompt_tokens=9)[:-1],
        b"\x0a\x03\x0a\x01\x80",
        b"\x0a\x09\x0a\x01\x05",
        b"\x0a\x02\x0a\x05",
        b"\x0b",
        b"\x0a\x04\x0a\x01\x05\x10",
    ],
)
@pytest.mark.parametrize("before", [[], [chunk(1)]])
def test_a_message_that_is_none_is_an_error(payload: bytes, before: list[bytes]) -> None:
    """Cut, lying about a length, with half a number: before the first token and behind it, and it brings none."""
    answer = answered(*before, payload, complete(1))
    assert answer.malformed is not None
    assert answer.event_class[len(before)] == ERROR
    with pytest.raises(DecodeError):
        pb.GenerateResponse.FromString(payload)


# Requests.

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "real": st.floats(width=32, min_value=-1000, max_value=1000) | st.integers(0, 5),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "count": st.integers(0, (1 << 32) - 1),
    "truth": st.booleans(),
    "texts": st.text(max_size=5) | st.lists(st.text(max_size=5), max_size=3),
    "ids": st.lists(st.integers(0, (1 << 32) - 1), max_size=3),
}
EXTRA = st.fixed_dictionaries({}, optional={name: st.none() | VALUES[kind] for name, kind in FIELDS.items()})


@given(
    st.lists(st.integers(0, (1 << 21) - 1), min_size=1, max_size=50) | st.text(min_size=1, max_size=50),
    st.integers(1, 1 << 20),
    st.booleans(),
    st.booleans(),
    EXTRA,
)
def test_a_request_is_read_by_the_official_library_as_it_was_meant(
    prompt: Any, tokens: int, stream: bool, ignore_eos: bool, extra: dict[str, Any]
) -> None:
    """Law: prompt, length, streaming and every parameter; null leaves one out, and one of `--extra-body` goes first."""
    request = GenerationRequest(
        "m", prompt, tokens, stream=stream, ignore_eos=ignore_eos, extra=extra, ident="17"
    )
    body = VLLM_GRPC.body(request)
    assert body[:5] == b"\0" + (len(body) - 5).to_bytes(4, "big")
    read = pb.GenerateRequest.FromString(body[5:])
    assert read.request_id.startswith("17-")
    assert (read.text if isinstance(prompt, str) else list(read.tokenized.input_ids)) == prompt
    assert (read.stream, read.sampling_params.max_tokens) == (stream, tokens)
    wanted = {"temperature": 0.0, "ignore_eos": ignore_eos} | extra
    for name, value in wanted.items():
        assert fits(FIELDS[name], value)
        found = getattr(read.sampling_params, name)
        if value is None:
            assert not found
        elif name in ("stop", "stop_token_ids"):
            assert list(found) == ([value] if isinstance(value, str) else value)
        elif name == "top_k":
            assert found == max(0, value)
        else:
            assert found == value


def test_the_numbers_of_fields_are_the_published_ones() -> None:
    """Law: every parameter that a plan may set has its number in the published file, and no other."""
    published = pb.SamplingParams.DESCRIPTOR.fields_by_name
    assert {name: published[name].number for name in vllm_grpc._NUMBERS} == vllm_grpc._NUMBERS
    assert {*FIELDS, "max_tokens"} == set(vllm_grpc._NUMBERS)


@given(st.lists(st.integers(10_000, 99_999), min_size=8, max_size=8), st.integers(1, 4))
def test_a_nonce_may_be_written_over_another(ids: list[int], count: int) -> None:
    """Law: it stands in the body once, as ids of one width, so that the body with another in its place is another request of
    the same length."""
    nonce, other = (
        ",".join(map(str, ids[:count])),
        ",".join(str(one) for one in range(70_000, 70_000 + count)),
    )
    mine, theirs = VLLM_GRPC.ids_nonce(nonce), VLLM_GRPC.ids_nonce(other)
    body = VLLM_GRPC.body(GenerationRequest("m", ids, 4))
    at = body.find(mine)
    read = pb.GenerateRequest.FromString((body[:at] + theirs + body[at + len(mine) :])[5:])
    assert len(mine) == len(theirs)
    assert list(read.tokenized.input_ids) == [*range(70_000, 70_000 + count), *ids[count:]]


def test_two_requests_have_two_ids() -> None:
    """By their prompts, and of one prompt by their place in the run."""
    requests = [GenerationRequest("m", [prompt], 4, ident=ident) for prompt in (1, 2) for ident in ("0", "1")]
    names = {pb.GenerateRequest.FromString(VLLM_GRPC.body(one)[5:]).request_id for one in requests}
    assert len(names) == 4


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("", 1),
        ("", None),
        ("real", "1"),
        ("real", True),
        ("real", 1e39),
        ("integer", 1.5),
        ("integer", 1 << 31),
        ("count", -1),
        ("truth", 1),
        ("texts", [1]),
        ("ids", [-1]),
        ("ids", 5),
    ],
)
def test_a_value_of_another_kind_is_none(kind: str, value: object) -> None:
    """Nor is there a parameter without a kind."""
    assert not fits(kind, value)


def test_the_models_description_is_read() -> None:
    """The name served, or the path; what is 0 is not known."""
    info = pb.GetModelInfoResponse(
        model_path="/m", served_model_name="n", max_context_length=77, vocab_size=5, eos_token_ids=[1]
    )
    models = VLLM_GRPC.read_models(info.SerializeToString())
    assert (models.names, models.contexts, models.vocabularies) == (("n",), {"n": 77}, {"n": 5})
    bare = VLLM_GRPC.read_models(pb.GetModelInfoResponse(model_path="/m").SerializeToString())
    assert (bare.names, bare.contexts, bare.vocabularies) == (("/m",), {}, {})
    with pytest.raises(ValueError, match="names no model"):
        VLLM_GRPC.read_models(b"")
    assert VLLM_GRPC.read_server(pb.GetServerInfoResponse(server_type="s").SerializeToString()) == "s"
