"""The gRPC services of vLLM, SGLang and TensorRT-LLM, each held against its published messages and the official library."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from smg_grpc_proto import sglang_scheduler_pb2, trtllm_service_pb2, vllm_engine_pb2

from inferometer.drive.exchange import Exchange
from inferometer.engines import sglang_grpc, trtllm_grpc, vllm_grpc
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect, GenerationRequest, load
from inferometer.engines.grpc_service import Ending, Service
from inferometer.engines.interface import INTERFACES, fits
from inferometer.journal.schema import EventClass
from inferometer.protocol.grpc import framed

CONTENT, DONE, EMPTY, ERROR = (
    int(EventClass.CONTENT),
    int(EventClass.DONE),
    int(EventClass.EMPTY),
    int(EventClass.ERROR),
)
IDS = st.lists(st.integers(0, (1 << 32) - 1), max_size=6)
COUNT = st.integers(0, (1 << 31) - 1)
ECHO = "17-0123456789abcdef"


@dataclass(frozen=True)
class Published:
    """A service and the published messages that it is held against. `ids`: what the end's are called."""

    service: Service
    pb: Any
    ids: str
    sequence: str
    parameters: tuple[str, ...]
    """The messages inside a request that have parameters."""

    def __str__(self) -> str:
        return self.service.api

    @property
    def dialect(self) -> Dialect:
        """What is tested."""
        return load(self.service.api)

    def response(self, **part: Any) -> Any:
        """A message with this part."""
        echo = {"request_id": ECHO} if self.service.echoes else {}
        return self.pb.GenerateResponse(**part, **echo)

    def chunk(self, *ids: int, **counts: int) -> bytes:
        """One as it is sent."""
        made = self.pb.GenerateStreamChunk(token_ids=ids, **counts)
        wire: bytes = self.response(chunk=made).SerializeToString()
        return wire

    def complete(self, *ids: int, reason: str = "length", **counts: int) -> bytes:
        """An end as it is sent."""
        made = self.pb.GenerateComplete(**{self.ids: ids}, finish_reason=reason, **counts)
        wire: bytes = self.response(complete=made).SerializeToString()
        return wire

    def answered(self, *payloads: bytes) -> Answer:
        """What these messages are read as."""
        answer = Answer()
        for at, payload in enumerate(payloads):
            self.dialect.read_event(answer, payload, at)
        return answer


VLLM = Published(vllm_grpc.SERVICE, vllm_engine_pb2, "output_ids", "index", ("sampling_params",))
SGLANG = Published(sglang_grpc.SERVICE, sglang_scheduler_pb2, "output_ids", "index", ("sampling_params",))
TRTLLM = Published(
    trtllm_grpc.SERVICE,
    trtllm_service_pb2,
    "output_token_ids",
    "sequence_index",
    ("sampling_config", "output_config"),
)
ALL = (VLLM, SGLANG, TRTLLM)
each = pytest.mark.parametrize("one", ALL, ids=str)


def responses(one: Published) -> st.SearchStrategy[Any]:
    """Any message of its service, with what is read here and with what is not."""
    pb, sequence = one.pb, {one.sequence: st.sampled_from([0, 0, 0, 0, 1])}
    counts = {"prompt_tokens": st.sampled_from([0, 9, 9, 9]) | COUNT, "cached_tokens": COUNT}
    completion = st.integers(0, 8) | COUNT
    more: dict[str, Any] = {}
    if one is TRTLLM:
        more["logprobs"] = st.lists(st.builds(pb.TokenLogprob, token_id=st.integers(0, 9)), max_size=2)
    else:
        logprobs = st.builds(
            pb.OutputLogProbs, token_logprobs=st.lists(st.floats(width=32), max_size=3), token_ids=IDS
        )
        more["output_logprobs"] = st.none() | logprobs
    chunk = st.builds(
        pb.GenerateStreamChunk, token_ids=IDS, completion_tokens=completion, **counts, **sequence, **more
    )
    complete = st.builds(
        pb.GenerateComplete,
        **{one.ids: IDS},
        finish_reason=st.sampled_from(["", "stop", "length", "stop_word"]) | st.text(max_size=5),
        matched_stop_str=st.none() | st.text(max_size=5),
        completion_tokens=completion,
        **counts,
        **sequence,
        **more,
    )
    echo = {"request_id": st.sampled_from([ECHO, ECHO, ECHO, "", "other"])} if one.service.echoes else {}
    return st.one_of(
        st.builds(pb.GenerateResponse, chunk=chunk, **echo),
        st.builds(pb.GenerateResponse, complete=complete, **echo),
        st.builds(pb.GenerateResponse, **echo),
    )


def refused(one: Published, read: Any, ids: int, came: int) -> bool:
    """Whether a part contradicts those before it, by the tables of the docs. `came`: ids before it."""
    if getattr(read, one.sequence):
        return True
    if not hasattr(read, "finish_reason"):
        return False
    tokens, counted = max(ids, came), read.completion_tokens
    ending, whole = one.service.ending, read.finish_reason == "length"
    if ending is Ending.ALL and ids < came and (whole or ids == 0):
        return True
    return bool(
        counted not in (0, tokens)
        and not (ending is Ending.OWN and counted == ids)
        and not (ending is Ending.ALL and tokens < counted <= tokens + 16 and not whole)
    )


def grown(chunks: list[list[int]]) -> bool:
    """Whether there are three chunks or more, and each but the first, of one id, begins with all of the one before."""
    several = chunks[1:] if chunks and len(chunks[0]) == 1 else chunks
    pairs = zip([[], *several], several, strict=False)
    each = all(len(then) > max(1, len(before)) and then[: len(before)] == before for before, then in pairs)
    return len(chunks) > 2 and each


def expected(one: Published, stream: list[Any]) -> tuple[list[int], int, int | None]:
    """Classes of the events, tokens and the place of the end, by the official library's reading."""
    classes: list[int] = []
    tokens, prompt, done, echo = 0, 0, False, ""
    chunks: list[list[int]] = []
    ended: int | None = None
    for message in stream:
        kind = message.WhichOneof("response")
        if done or kind is None:
            classes.append(DONE if done else EMPTY)
            continue
        part, request = getattr(message, kind), getattr(message, "request_id", "")
        ids = len(part.token_ids if kind == "chunk" else getattr(part, one.ids))
        done = kind == "complete"
        changed = done and prompt and part.prompt_tokens and prompt != part.prompt_tokens
        repeats = done and grown(chunks)
        if changed or repeats or refused(one, part, ids, tokens) or (request and echo and request != echo):
            classes.append(ERROR)
            done = False
            continue
        echo = echo or request
        prompt = prompt if tokens else part.prompt_tokens or prompt
        new = max(0, ids - tokens) if done else ids
        tokens += new
        chunks += [list(part.token_ids)] if ids and not done else []
        ended = len(classes) if done else None
        classes.append(CONTENT if new else DONE if done else EMPTY)
    return classes, tokens, ended


@each
@given(data=st.data())
def test_any_stream_is_read_as_the_official_library_reads_it(one: Published, data: st.DataObject) -> None:
    """Law: an event a message, of its class, and as many tokens as there were ids, whatever else the messages have; what a
    message says against those before it is an error."""
    stream = data.draw(st.lists(responses(one), max_size=12))
    answer = one.answered(*(message.SerializeToString() for message in stream))
    classes, tokens, ended = expected(one, stream)
    assert list(answer.event_class) == classes
    assert list(answer.event_ns) == list(range(len(stream)))
    assert (answer.output_tokens or 0) == tokens
    assert (answer.malformed is None) == (ERROR not in classes and ended in (None, len(stream) - 1))
    if CONTENT in classes:
        assert answer.first_text == answer.first_visible == answer.first_answer == classes.index(CONTENT)


@each
@given(data=st.data())
def test_the_short_way_and_the_long_way_agree(one: Published, data: st.DataObject) -> None:
    """Law: a chunk means the same behind a first token, where most take the short way, as before any."""
    payload = data.draw(st.binary(max_size=40) | responses(one).map(lambda made: made.SerializeToString()))
    flowing, fresh = one.answered(one.chunk(1)), Answer()
    fresh.echo = flowing.echo
    one.dialect.read_event(flowing, payload, 1)
    one.dialect.read_event(fresh, payload, 1)
    if not fresh.done and not flowing.done and flowing.malformed == fresh.malformed:
        assert flowing.event_class[1:] == fresh.event_class
        assert (flowing.output_tokens or 0) - 1 == (fresh.output_tokens or 0)
    elif flowing.malformed != fresh.malformed:  # an end is held to the ids before it
        with contextlib.suppress(DecodeError):
            assert one.pb.GenerateResponse.FromString(payload).WhichOneof("response") == "complete"


@each
@given(payload=st.binary(max_size=60))
def test_any_bytes_are_an_event(one: Published, payload: bytes) -> None:
    """Law: nothing is raised; what the official library refuses, for another reason than its text, is an error or has no
    field that is read here."""
    answer = one.answered(payload)
    assert len(answer.event_class) == 1
    if answer.malformed is None and answer.event_class[0] == CONTENT:
        with contextlib.suppress(DecodeError):  # text that is no UTF-8, or a fault in a field that is skipped
            assert one.pb.GenerateResponse.FromString(payload).WhichOneof("response") is not None


@each
@given(messages=st.lists(st.binary(max_size=30), max_size=4), tail=st.binary(max_size=8))
def test_any_body_is_a_whole_answer_or_none(one: Published, messages: list[bytes], tail: bytes) -> None:
    """Law: nothing is raised."""
    answer = Answer()
    one.dialect.read_whole(answer, b"".join(map(framed, messages)) + tail, 5)
    assert set(answer.event_ns) <= {5}


@each
@pytest.mark.parametrize("repeated", ["last", "all", "none"])
def test_ids_that_the_end_repeats_are_counted_once(one: Published, repeated: str) -> None:
    """Law: three tokens are three, whatever the end repeats; where it always has all of them, fewer are a contradiction."""
    counted = [1, 1, 1] if one is VLLM else [1, 2, 3]
    chunks = [
        one.chunk(7 + place, prompt_tokens=9, cached_tokens=4, completion_tokens=many)
        for place, many in enumerate(counted)
    ]
    ids = {"last": (9,), "all": (7, 8, 9), "none": ()}[repeated]
    end = one.complete(*ids, prompt_tokens=9, cached_tokens=4, completion_tokens=3)
    answer = one.answered(*chunks, end)
    if one is TRTLLM and repeated != "all":
        assert answer.malformed == f"the end has {len(ids)} token ids of all 3 that came"
        return
    assert (answer.input_tokens, answer.output_tokens, answer.cached_tokens) == (9, 3, 4)
    assert (answer.finish_reason, answer.done, answer.malformed) == ("length", True, None)
    assert list(answer.event_class) == [CONTENT] * 3 + [DONE]
    assert "".join(answer.texts) == ""


@each
def test_an_answer_that_is_not_streamed_is_its_end(one: Published) -> None:
    """With all ids, in one event."""
    answer = Answer()
    one.dialect.read_whole(answer, framed(one.complete(1, 2, 3, prompt_tokens=5, completion_tokens=3)), 8)
    assert (answer.input_tokens, answer.output_tokens, list(answer.event_class)) == (5, 3, [CONTENT])
    assert (answer.done, answer.malformed) == (True, None)


@each
@pytest.mark.parametrize("counted", [2, 4, 300, (1 << 32) - 1])
def test_an_end_that_counts_other_tokens_than_came_is_an_error(one: Published, counted: int) -> None:
    """Law: no count stands that its own ids contradict."""
    last = (7, 8, 9) if one is TRTLLM else (9,)
    answer = one.answered(
        one.chunk(7), one.chunk(8), one.chunk(9), one.complete(*last, completion_tokens=counted)
    )
    assert answer.malformed == f"the end counts {counted} completion tokens, where 3 token ids came"
    assert not answer.done


@each
def test_an_end_that_counts_another_prompt_is_an_error(one: Published) -> None:
    """Law: of two counts of one prompt none stands."""
    end = one.complete(7, 8, prompt_tokens=27)
    answer = one.answered(one.chunk(7, prompt_tokens=9), one.chunk(8, prompt_tokens=9), end)
    assert answer.malformed == "the end counts 27 prompt tokens, where 9 were counted before"


@each
@pytest.mark.parametrize("counted", [0, 3, 5])
@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("long", [False, True])
def test_chunks_with_all_ids_so_far_are_found_out(
    one: Published, counted: int, first: int, long: bool
) -> None:
    """Law: a server whose chunks repeat what came before, against the published file, is not counted twice, whatever its end
    counts, also where they are too long for the short way."""
    ids = [200_000 + n for n in range(60)] if long else [7, 8, 9, 7, 8]
    ends = [*range(first, len(ids)), len(ids)]
    chunks = [one.chunk(*ids[:end]) for end in ends]
    answer = one.answered(*chunks, one.complete(*ids, completion_tokens=counted and len(ids)))
    assert answer.malformed is not None


@each
def test_chunks_of_several_new_ids_are_no_repeats(one: Published) -> None:
    """Law: of an engine that makes several tokens in a step, ids that happen to be those of the step before are new ones; two
    messages prove nothing."""
    for steps in (
        [[7], [7, 7], [7]],
        [[7, 7], [7, 7], [7, 7]],
        [[7], [7, 7]],
        [[7, 8], [7, 8, 9], [7, 8], [1]],
    ):
        ids = [one_id for step in steps for one_id in step]
        end = ids if one is TRTLLM else steps[-1]
        answer = one.answered(*(one.chunk(*step) for step in steps), one.complete(*end))
        assert (answer.malformed, answer.output_tokens) == (None, len(ids))


@pytest.mark.parametrize(
    ("reason", "counted", "good"),
    [
        ("stop", 3, True),
        ("stop_word", 18, True),
        ("stop", 19, False),
        ("stop", 1, False),
        ("length", 3, False),
    ],
)
def test_what_stopped_an_answer_may_be_counted_and_stripped(reason: str, counted: int, good: bool) -> None:
    """TensorRT-LLM strips it: the ids that came are counted, of which a length leaves none out, nor any text that stops one so
    many."""
    answer = TRTLLM.answered(
        TRTLLM.chunk(7), TRTLLM.chunk(8), TRTLLM.complete(7, 8, reason=reason, completion_tokens=counted)
    )
    assert (answer.malformed is None) == good
    assert answer.finish_reason == ("stop" if good else None)
    assert answer.output_tokens == 2


@each
def test_a_message_of_another_sequence_is_an_error(one: Published) -> None:
    """One was requested: the tokens of another are none of its."""
    answer = one.answered(one.chunk(1), one.chunk(2, **{one.sequence: 1}), one.complete(1))
    assert answer.malformed == "a message of sequence 1, where one was requested"
    assert answer.output_tokens == 1


@pytest.mark.parametrize("one", [SGLANG, TRTLLM], ids=str)
@pytest.mark.parametrize("kind", ["chunk", "complete"])
def test_a_message_of_another_request_is_an_error(one: Published, kind: str) -> None:
    """Law: all messages of an answer have one request_id, if they have any; the tokens of another one are none of its."""
    part = {"chunk": {"token_ids": [1]}, "complete": {one.ids: [1, 2]}}[kind]
    stray = one.pb.GenerateResponse(request_id="other", **{kind: part}).SerializeToString()
    answer = one.answered(one.chunk(1), stray)
    assert answer.malformed == "a message of another request, by its request_id"
    assert (answer.output_tokens, answer.done) == (1, False)
    silent = one.pb.GenerateResponse(chunk={"token_ids": [2]}).SerializeToString()
    assert one.answered(one.chunk(1), silent, one.complete(1, 2)).malformed is None


@pytest.mark.parametrize("one", [SGLANG, TRTLLM], ids=str)
def test_the_answer_to_another_request_is_an_error(one: Published) -> None:
    """Law: a server that gives one answer to all, or those of two requests in turn, is found out by the ids that were sent. An
    id that the engine made itself proves nothing, nor does none."""
    asked = [one.dialect.body(GenerationRequest("m", [place], 3, ident=str(place))) for place in range(2)]
    sent = [one.pb.GenerateRequest.FromString(body[5:]).request_id for body in asked]
    wrong = "the answer to another request, by its request_id"
    for said, malformed in (
        (sent[0], None),
        (sent[1], wrong),
        ("", None),
        (f"{sent[1]}-0", None),
        ("7f3a", None),
    ):
        exchange = Exchange(0, 0, 0, b"", asked[0], 0, one.dialect)
        for at in range(2):
            chunk = one.pb.GenerateResponse(request_id=said, chunk={"token_ids": [1]}).SerializeToString()
            one.dialect.read_event(exchange.answer, chunk, at)
        assert exchange.answer.malformed == malformed
        assert (exchange.answer.output_tokens or 0) == (0 if malformed else 2)


@each
@pytest.mark.parametrize("kind", ["chunk", "complete", "neither"])
def test_a_message_behind_the_end_is_an_error(one: Published, kind: str) -> None:
    """Law: whatever it holds; the tokens that came before the end stand."""
    last = {"chunk": one.chunk(2), "complete": one.complete(1, 2), "neither": b""}[kind]
    answer = one.answered(one.chunk(1), one.complete(1), last)
    assert (answer.malformed, answer.output_tokens) == ("a message behind the end", 1)
    assert list(answer.event_class) == [CONTENT, DONE, DONE]


@pytest.mark.parametrize("one", [SGLANG, TRTLLM], ids=str)
def test_a_request_id_that_is_too_long_is_not_kept(one: Published) -> None:
    """It would be held by each answer."""
    message = one.pb.GenerateResponse(request_id="x" * 1025, chunk={"token_ids": [1]})
    answer = one.answered(message.SerializeToString())
    assert answer.malformed == "a request_id of 1025 bytes, which no request has"
    assert answer.echo == b""


@each
@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_end_that_names_a_failure_is_one(one: Published, reason: str) -> None:
    """The engines' own words for it."""
    assert one.answered(one.chunk(1), one.complete(1, reason=reason)).error == f"finish reason {reason}"


def test_reasoning_tokens_are_read() -> None:
    """SGLang counts them, in each chunk and at the end."""
    answer = SGLANG.answered(SGLANG.chunk(1, reasoning_tokens=1), SGLANG.complete(1, reasoning_tokens=1))
    assert answer.reasoning_tokens == 1


@each
@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("behind", [False, True])
def test_a_message_that_is_cut_is_an_error(one: Published, cut: int, behind: bool) -> None:
    """Before the first token and behind it, and it brings none."""
    payload = one.chunk(300, prompt_tokens=900)[:-cut]
    answer = one.answered(*([one.chunk(1)] if behind else []), payload, one.complete(1))
    assert answer.malformed is not None
    assert answer.event_class[behind] == ERROR
    with pytest.raises(DecodeError):
        one.pb.GenerateResponse.FromString(payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"\x0a\x03\x0a\x01\x80",
        b"\x0a\x09\x0a\x01\x05",
        b"\x0a\x02\x0a\x05",
        b"\x0b",
        b"\x0a\x04\x0a\x01\x05\x10",
    ],
)
@pytest.mark.parametrize("before", [[], [VLLM.chunk(1)]])
def test_a_message_that_is_none_is_an_error(payload: bytes, before: list[bytes]) -> None:
    """Lying about a length, with half a number, of a group: before the first token and behind it, and it brings none."""
    answer = VLLM.answered(*before, payload, VLLM.complete(1))
    assert answer.malformed is not None
    assert answer.event_class[len(before)] == ERROR
    with pytest.raises(DecodeError):
        VLLM.pb.GenerateResponse.FromString(payload)


# Requests.

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "real": st.floats(width=32, min_value=-1000, max_value=1000) | st.integers(0, 5),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "count": st.integers(0, (1 << 32) - 1),
    "truth": st.booleans(),
    "texts": st.text(max_size=5) | st.lists(st.text(max_size=5), max_size=3),
    "ids": st.lists(st.integers(0, (1 << 32) - 1), max_size=3),
}
PROMPT = st.lists(st.integers(0, (1 << 21) - 1), min_size=1, max_size=50)


def kinds(one: Published) -> dict[str, str]:
    return dict(INTERFACES[one.service.api].fields or {})


def place_of(one: Published, request: Any, name: str) -> Any:
    """The message of a request that has this parameter."""
    places = [request, *(getattr(request, place) for place in one.parameters)]
    (found,) = [place for place in places if name in place.DESCRIPTOR.fields_by_name]
    return found


@each
@given(data=st.data())
def test_a_request_is_read_by_the_official_library_as_it_was_meant(
    one: Published, data: st.DataObject
) -> None:
    """Law: prompt, length, streaming and every parameter; null leaves one out, and one of `--extra-body` goes first."""
    text = st.text(min_size=1, max_size=50) if one.service.text else st.nothing()
    prompt, tokens = data.draw(PROMPT | text), data.draw(st.integers(1, 1 << 20))
    stream, ignore_eos = data.draw(st.booleans()), data.draw(st.booleans())
    values = {name: st.none() | VALUES[kind] for name, kind in kinds(one).items()}
    extra = data.draw(st.fixed_dictionaries({}, optional=values))
    body = one.dialect.body(
        GenerationRequest("m", prompt, tokens, stream=stream, ignore_eos=ignore_eos, extra=extra, ident="17")
    )
    assert body[:5] == b"\0" + (len(body) - 5).to_bytes(4, "big")
    read = one.pb.GenerateRequest.FromString(body[5:])
    assert read.request_id.startswith("17-")
    ids = read.tokenized.input_token_ids if one is TRTLLM else read.tokenized.input_ids
    assert (read.text if isinstance(prompt, str) else list(ids)) == prompt
    assert (read.streaming if one is TRTLLM else read.stream) == stream
    (length,) = one.dialect.length_fields
    assert getattr(place_of(one, read, length), length) == tokens
    wanted = {**one.service.implied, "temperature": 0.0, "ignore_eos": ignore_eos} | extra
    for name, value in wanted.items():
        found = getattr(place_of(one, read, name), name)
        assert name not in extra or fits(kinds(one)[name], value)
        if value is None:
            assert not found
        elif kinds(one).get(name) in ("texts", "ids"):
            assert list(found) == ([value] if isinstance(value, str) else value)
        elif name == "top_k" and isinstance(value, int) and value < 0:
            assert found == one.service.all_tokens
        else:
            assert found == value


@each
def test_the_numbers_of_fields_are_the_published_ones(one: Published) -> None:
    """Law: every parameter has its number in the published file; those that a plan may set are among them."""
    request = one.pb.GenerateRequest
    number_of = {place: request.DESCRIPTOR.fields_by_name[place].number for place in one.parameters}
    for name, (place, number) in one.service.parameters.items():
        inside = [request.DESCRIPTOR.fields_by_name[found].message_type for found in one.parameters
                  if number_of[found] == place]  # fmt: skip
        (message,) = inside or [request.DESCRIPTOR]
        assert message.fields_by_name[name].number == number
    assert set(kinds(one)) <= set(one.service.parameters)
    chunk, end = one.pb.GenerateStreamChunk.DESCRIPTOR, one.pb.GenerateComplete.DESCRIPTOR
    for part, published in ((one.service.chunk, chunk), (one.service.complete, end)):
        names = ("prompt_tokens", "completion_tokens", "cached_tokens", one.sequence)
        found = tuple(published.fields_by_name[name].number for name in names)
        assert found == (part.prompt, part.completion, part.cached, part.sequence)
    assert end.fields_by_name["finish_reason"].number == one.service.complete.reason
    service = INTERFACES[one.service.api].path.split("/")[1]
    assert service in {f"{one.pb.DESCRIPTOR.package}.{name}" for name in one.pb.DESCRIPTOR.services_by_name}


@each
@given(ids=st.lists(st.integers(10_000, 99_999), min_size=8, max_size=8), count=st.integers(1, 4))
def test_a_nonce_may_be_written_over_another(one: Published, ids: list[int], count: int) -> None:
    """Law: it stands in the body once, as ids of one width, so that the body with another in its place is another request of
    the same length."""
    nonce, other = (
        ",".join(map(str, ids[:count])),
        ",".join(str(one) for one in range(70_000, 70_000 + count)),
    )
    mine, theirs = one.dialect.ids_nonce(nonce), one.dialect.ids_nonce(other)
    body = one.dialect.body(GenerationRequest("m", ids, 4))
    at = body.find(mine)
    read = one.pb.GenerateRequest.FromString((body[:at] + theirs + body[at + len(mine) :])[5:])
    found = read.tokenized.input_token_ids if one is TRTLLM else read.tokenized.input_ids
    assert len(mine) == len(theirs)
    assert list(found) == [*range(70_000, 70_000 + count), *ids[count:]]


@each
def test_two_requests_have_two_ids(one: Published) -> None:
    """By their prompts, and of one prompt by their place in the run."""
    requests = [GenerationRequest("m", [prompt], 4, ident=ident) for prompt in (1, 2) for ident in ("0", "1")]
    names = {one.pb.GenerateRequest.FromString(one.dialect.body(asked)[5:]).request_id for asked in requests}
    assert len(names) == 4


# What is served.


def test_the_models_description_is_read() -> None:
    """The name served, or the path; what is 0, or below, is not known."""
    full = {"served_model_name": "n", "max_context_length": 77, "vocab_size": 5, "eos_token_ids": [1]}
    for one in (VLLM, SGLANG):
        info = one.pb.GetModelInfoResponse(model_path="/m", **full)
        models = one.dialect.read_models(info.SerializeToString())
        assert (models.names, models.contexts, models.vocabularies) == (("n",), {"n": 77}, {"n": 5})
        bare = one.dialect.read_models(one.pb.GetModelInfoResponse(model_path="/m").SerializeToString())
        assert (bare.names, bare.contexts, bare.vocabularies) == (("/m",), {}, {})
    info = trtllm_service_pb2.GetModelInfoResponse(
        model_id="n", max_seq_len=77, max_input_len=70, vocab_size=-5
    )
    models = TRTLLM.dialect.read_models(info.SerializeToString())
    assert (models.names, models.contexts, models.vocabularies) == (("n",), {"n": 77}, {})


@each
def test_a_description_without_a_name_is_none(one: Published) -> None:
    """Nor is one that is no message."""
    for message in (b"", one.pb.GetModelInfoResponse(vocab_size=3).SerializeToString(), b"\x0a\x05x"):
        with pytest.raises(ValueError, match=r"names no model|inside a field"):
            one.dialect.read_models(message)


@pytest.mark.parametrize(
    ("one", "info", "said"),
    [
        (VLLM, {"server_type": "vllm-grpc"}, "vllm-grpc"),
        (SGLANG, {"sglang_version": "0.5", "server_type": "grpc"}, "SGLang/0.5"),
        (TRTLLM, {"version": "1.2", "backend": "pytorch"}, "TensorRT-LLM/1.2"),
    ],
    ids=str,
)
def test_a_server_says_what_it_is(one: Published, info: dict[str, str], said: str) -> None:
    """By its version; nothing if it does not say."""
    assert one.dialect.read_server(one.pb.GetServerInfoResponse(**info).SerializeToString()) == said
    assert one.dialect.read_server(b"") == ""


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
