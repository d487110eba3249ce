"""gRPC on the client's side: framing, and the messages of vLLM's service, beside the official library.

The same messages or fault however cut. A message is read in the same way among others, where nearly all take a shorter path,
as alone; and what the published messages can hold is read as they have it: ids, counts and finish reason.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError
from smg_grpc_proto import vllm_engine_pb2 as pb

from fuzz.pieces import same_however_cut
from inferometer.engines.answer import Answer
from inferometer.engines.vllm_grpc import read_event
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.grpc import BadMessage, GrpcDecoder, framed

LIMIT = 1 << 16
CHUNK = framed(pb.GenerateResponse(chunk=pb.GenerateStreamChunk(token_ids=[7])).SerializeToString())[5:]

Seen = tuple[list[int], int | None, int | None, str | None, str | None]


def check(data: bytes) -> None:
    """As the body of a response, and as one message of it."""
    messages, _ = same_however_cut(data, unframed)
    assert all(len(message) <= LIMIT for message in messages)
    for message in (data, *messages):
        _one(message)


def unframed(pieces: list[bytes]) -> tuple[list[bytes], str]:
    """The messages, or the words of the fault, behind which nothing counts."""
    decoder, messages = GrpcDecoder(LIMIT), list[bytes]()
    try:
        for piece in pieces:
            messages += decoder.feed(piece)
    except (BadMessage, EventTooLarge) as fault:
        return [], str(fault)
    return messages, ""


def _one(message: bytes) -> None:
    alone, among = Answer(), Answer()
    read_event(among, CHUNK, 1)
    assert among.flowing
    read_event(alone, message, 2)
    read_event(among, message, 2)
    assert alone.malformed == among.malformed
    assert bytes(alone.event_class) == bytes(among.event_class)[1:] or alone.done
    assert alone.finish_reason == among.finish_reason
    try:
        published = pb.GenerateResponse.FromString(message)
    except DecodeError:
        return
    if (alone.malformed or "").startswith("a field of wire type"):
        return  # a group, which the library still skips
    if published.HasField("chunk"):
        _same(alone, len(published.chunk.token_ids), published.chunk.prompt_tokens)
        assert (among.output_tokens or 0) - 1 == (alone.output_tokens or 0)
        assert not alone.done
    elif published.HasField("complete"):
        _same(alone, len(published.complete.output_ids), published.complete.prompt_tokens)
        assert alone.done
        assert (alone.finish_reason or "") in ("", published.complete.finish_reason)


def _same(answer: Answer, tokens: int, prompt: int) -> None:
    assert answer.malformed is None
    assert (answer.output_tokens or 0) == tokens
    assert not prompt or answer.input_tokens in (prompt, None)
