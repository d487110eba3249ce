"""gRPC on the client's side: framing, and the messages of engines' services, beside the official library.

The same messages or fault however cut. A message is read in the same way among others, where nearly all take a shorter path,
as alone; and what the published messages can hold is read as they have it: ids, counts and finish reason.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError
from smg_grpc_proto import sglang_scheduler_pb2, trtllm_service_pb2, vllm_engine_pb2

from fuzz.pieces import same_however_cut
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import load
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.grpc import BadMessage, GrpcDecoder

LIMIT = 1 << 16
SERVICES = (
    ("vllm-grpc", vllm_engine_pb2, "output_ids"),
    ("sglang-grpc", sglang_scheduler_pb2, "output_ids"),
    ("trtllm-grpc", trtllm_service_pb2, "output_token_ids"),
)
"""Name, messages, and what the ids of an end are called."""


def check(data: bytes) -> None:
    """As the body of a response, and as one message of it."""
    messages, _ = same_however_cut(data, unframed)
    assert all(len(message) <= LIMIT for message in messages)
    for api, pb, ids in SERVICES:
        for message in (data, *messages):
            _one(api, pb, ids, message)


def unframed(pieces: list[bytes]) -> tuple[list[bytes], str]:
    """The messages, or the words of the fault, behind which nothing counts."""
    decoder, messages = GrpcDecoder(LIMIT), list[bytes]()
    try:
        for piece in pieces:
            messages += decoder.feed(piece)
    except (BadMessage, EventTooLarge) as fault:
        return [], str(fault)
    return messages, ""


def _one(api: str, pb: Any, ids: str, message: bytes) -> None:
    read_event = load(api).read_event
    alone, among = Answer(), Answer()
    read_event(alone, message, 2)
    chunk = pb.GenerateResponse(chunk=pb.GenerateStreamChunk(token_ids=[7])).SerializeToString()
    read_event(among, alone.echo + chunk, 1)  # as of the same request
    assert among.flowing
    read_event(among, message, 2)
    try:
        published = pb.GenerateResponse.FromString(message)
    except DecodeError:
        published = None
    kind = published and published.WhichOneof("response")
    held = f"{alone.malformed} {among.malformed}"  # an end is held to the ids before it
    if kind != "complete" and not alone.done and "the end" not in held:
        assert alone.malformed == among.malformed
        assert bytes(alone.event_class) == bytes(among.event_class)[1:]
        assert (among.output_tokens or 0) - 1 == (alone.output_tokens or 0)
        assert alone.finish_reason == among.finish_reason
    if kind is None or alone.malformed is not None:
        return  # what contradicts itself, and a group, which the library still skips
    part = getattr(published, kind)
    assert (alone.output_tokens or 0) == len(part.token_ids if kind == "chunk" else getattr(part, ids))
    assert not part.prompt_tokens or alone.input_tokens in (part.prompt_tokens, None)
    assert alone.done == (kind == "complete")
    if kind == "complete":
        assert (alone.finish_reason or "") in ("", part.finish_reason, "stop")
