"""vLLM's gRPC service: `vllm.grpc.engine.VllmEngine/Generate`, token ids in and out (smg-grpc-proto 0.4.28, vllm_engine.proto).

| a message                              | is read as                                                                      |
| -------------------------------------- | ------------------------------------------------------------------------------- |
| `chunk` with token ids                 | content: an event of so many tokens                                             |
| `chunk` without                        | empty                                                                           |
| `complete`                             | done: finish reason and counts; content, if it has ids that no chunk had        |
| anything else                          | empty                                                                           |

A `complete` behind chunks repeats the ids of the last one (vLLM), or all of them, or none: only what it has beyond those that
came is new. Its own count of them is of either kind, so output tokens are the ids that came.

Answers are ids and have no text: the first token is the first id, whatever it would be as text (draft B.1.2).

Field numbers are written here by hand: what is sent and read is a dozen of them. The tests hold them to the published file.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable

from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect, GenerationRequest, Models
from inferometer.engines.interface import INTERFACES
from inferometer.journal.schema import EventClass
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.grpc import BadMessage, GrpcDecoder, framed
from inferometer.protocol.protobuf import (
    BYTES,
    VARINT,
    Malformed,
    count,
    integer,
    key,
    numbers,
    piece,
    read,
    real,
    varint,
)

_CONTENT, _EMPTY = int(EventClass.CONTENT), int(EventClass.EMPTY)
_DONE, _ERROR = int(EventClass.DONE), int(EventClass.ERROR)
_SERVICE = "/vllm.grpc.engine.VllmEngine/"
ID_BYTES = 3
"""Bytes of each id of a prompt, so that one nonce can be written over another: every id below 2^21 fits."""
_WHOLE = 0xFFFF_FFFF
"""Of a varint, what a field of 32 bits keeps."""

_NUMBERS = {
    "temperature": 1,
    "top_p": 2,
    "top_k": 3,
    "min_p": 4,
    "frequency_penalty": 5,
    "presence_penalty": 6,
    "repetition_penalty": 7,
    "max_tokens": 8,
    "min_tokens": 9,
    "stop": 10,
    "stop_token_ids": 11,
    "skip_special_tokens": 12,
    "spaces_between_special_tokens": 13,
    "ignore_eos": 14,
    "logprobs": 22,
    "prompt_logprobs": 23,
    "seed": 24,
    "include_stop_str_in_output": 25,
    "truncate_prompt_tokens": 27,
}
"""Fields of SamplingParams by the names that OpenAI's interface and vLLM give them."""
_REALS = frozenset(
    {"temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"}
)


def _body(request: GenerationRequest) -> bytes:
    """A framed GenerateRequest."""
    prompt = request.prompt
    asked = piece(3, prompt) if isinstance(prompt, str) else piece(2, piece(2, _packed(prompt)))
    wanted: dict[str, object] = {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "min_tokens": request.max_tokens if request.min_tokens else None,
        "ignore_eos": request.ignore_eos or None,
    }
    sampling = b"".join(_parameter(name, value) for name, value in (wanted | dict(request.extra)).items())
    # Of two requests under way with one id, an engine may refuse the second.
    digest = hashlib.blake2b(asked, digest_size=8).hexdigest()
    ident = f"{request.ident}-{digest}" if request.ident else digest
    return framed(piece(1, ident) + asked + piece(4, sampling) + integer(5, request.stream))


def _packed(ids: Iterable[int]) -> bytes:
    return b"".join(varint(one, ID_BYTES) for one in ids)


def _ids_nonce(nonce: str) -> bytes:
    """Ids with commas between, as they stand in a body."""
    return _packed(map(int, nonce.split(",")))


def _read_ids_nonce(packed: bytes) -> str:
    """The other way round."""
    return ",".join(map(str, numbers(packed)))


def _parameter(name: str, value: object) -> bytes:
    """One field of SamplingParams; the plan has checked its kind (interface.py)."""
    number = _NUMBERS[name]
    if value is None:
        return b""
    if isinstance(value, str):
        return piece(number, value)
    if isinstance(value, list | tuple):
        if name == "stop":
            return b"".join(piece(number, str(one)) for one in value)
        return piece(number, b"".join(map(varint, value)))
    assert isinstance(value, int | float)
    if name in _REALS:
        return real(number, value)
    if name == "top_k":  # below 0, as vLLM's HTTP interface has it, is all of them
        value = max(0, value)
    return integer(number, int(value))


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one message that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    if answer.flowing and (tokens := _plain(payload)):
        # Nearly every message ends here.
        answer.event_ns.append(at)
        answer.event_class.append(_CONTENT)
        answer.texts.append("")
        answer.output_tokens = (answer.output_tokens or 0) + tokens
        return
    if answer.done:
        answer.mark(_DONE, at)
        return
    try:
        _read(answer, payload, at)
    except Malformed as cause:
        answer.malformed = answer.malformed or str(cause)
        answer.mark(_ERROR, at)


def _plain(payload: bytes) -> int:
    """How many ids a chunk has that is nothing but ids and counts, each in the shortest form; 0 for any other message.

    0x0A length | 0x0A length ids | counts: the same ones for all of a stream
    """
    size = len(payload)
    if not 5 <= size < 130 or payload[0] != 0x0A or payload[1] != size - 2 or payload[2] != 0x0A:
        return 0
    behind = 4 + payload[3]
    if behind > size or not _are_counts(payload[behind:]):
        return 0
    ids = payload[4:behind]
    return count(ids) if ids and ids[-1] < 0x80 else 0


@functools.lru_cache(maxsize=4096)
def _are_counts(fields: bytes) -> bool:
    """Whether these are fields that add no token and no error, and end where they should."""
    try:
        return all(tag >> 3 in (2, 3, 4) and not tag & 7 for tag, _ in read(fields))
    except Malformed:
        return False


def _read(answer: Answer, payload: bytes, at: int) -> None:
    """Any message. Raises Malformed, before anything is written."""
    member, content = 0, b""
    for tag, value in read(payload):
        if tag in (key(1, BYTES), key(2, BYTES)) and isinstance(value, bytes):
            content = content + value if tag == member else value
            member = tag
    if member == key(1, BYTES):
        _chunk(answer, content, at)
    elif member == key(2, BYTES):
        _complete(answer, content, at)
    else:
        answer.mark(_EMPTY, at)


def _chunk(answer: Answer, content: bytes, at: int) -> None:
    """Ids, and counts that each chunk has."""
    found = _counted(content, prompt=2, cached=4)
    answer.count(found.get("prompt"), cached=found.get("cached"))
    if not _tokens(answer, found["ids"], at):
        answer.mark(_EMPTY, at)


def _complete(answer: Answer, content: bytes, at: int) -> None:
    """The end."""
    found = _counted(content, prompt=3, cached=5)
    reason = [value for tag, value in read(content) if tag == key(2, BYTES) and isinstance(value, bytes)]
    new = _tokens(answer, max(0, found["ids"] - (answer.output_tokens or 0)), at)
    answer.count(found.get("prompt"), answer.output_tokens or 0, cached=found.get("cached"))
    if reason and reason[-1]:
        answer.finish(reason[-1].decode("utf-8", "replace"))
    answer.done, answer.flowing = True, False
    if not new:
        answer.mark(_DONE, at)


def _counted(content: bytes, *, prompt: int, cached: int) -> dict[str, int]:
    """How many ids are in field 1, and the counts that are there. Raises Malformed."""
    found = {"ids": 0}
    for tag, value in read(content):
        if tag == key(1, BYTES) and isinstance(value, bytes):
            found["ids"] += count(value)
        elif tag == key(1, VARINT):
            found["ids"] += 1
        elif tag == key(prompt, VARINT) and isinstance(value, int):
            found["prompt"] = value & _WHOLE
        elif tag == key(cached, VARINT) and isinstance(value, int):
            found["cached"] = value & _WHOLE
    return found


def _tokens(answer: Answer, tokens: int, at: int) -> bool:
    """An event of so many tokens, if there are any."""
    if not tokens:
        return False
    if answer.first_text < 0:
        answer.first_text = answer.first_visible = answer.first_answer = len(answer.event_class)
    answer.flowing = True
    answer.event_ns.append(at)
    answer.event_class.append(_CONTENT)
    answer.texts.append("")
    answer.output_tokens = (answer.output_tokens or 0) + tokens
    return True


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write the body of an answer that is not streamed into `answer`."""
    decoder = GrpcDecoder(len(payload))
    try:
        for message in decoder.feed(payload):
            read_event(answer, message, at)
    except (BadMessage, EventTooLarge) as cause:
        answer.malformed = answer.malformed or str(cause)


def read_models(message: bytes) -> Models:
    """GetModelInfoResponse: the name that is served, or the model's path. Raises ValueError."""
    fields = dict(read(message))
    served, path = fields.get(key(6, BYTES)), fields.get(key(1, BYTES))
    named = served or path
    if not isinstance(named, bytes):
        raise Malformed("it names no model")
    name = named.decode("utf-8", "replace")
    context, vocabulary = fields.get(key(3, VARINT)), fields.get(key(4, VARINT))
    return Models(
        (name,),
        {name: context} if isinstance(context, int) and context else {},
        {name: vocabulary} if isinstance(vocabulary, int) and vocabulary else {},
    )


def read_server(message: bytes) -> str:
    """GetServerInfoResponse: what the server says it is; nothing if it does not. Raises ValueError."""
    kind = dict(read(message)).get(key(5, BYTES))
    return kind.decode("utf-8", "replace") if isinstance(kind, bytes) else ""


VLLM_GRPC = Dialect(
    INTERFACES["vllm-grpc"],
    vendor="vLLM",
    body=_body,
    read_event=read_event,
    read_whole=read_whole,
    end="a GenerateComplete",
    models_path=f"{_SERVICE}GetModelInfo",
    read_models=read_models,
    length_fields=("max_tokens",),
    ids_nonce=_ids_nonce,
    read_ids_nonce=_read_ids_nonce,
    server_path=f"{_SERVICE}GetServerInfo",
    read_server=read_server,
)
