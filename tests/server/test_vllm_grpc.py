"""vLLM's gRPC service of the reference server, with grpcio and the published messages as an independent client."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import httpx
import pytest
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse
from serving import QUICK
from smg_grpc_proto import vllm_engine_pb2 as pb

from inferometer.server.engine.settings import Settings
from inferometer.server.filler_ids import IDS
from inferometer.server.filler_text import PIECES, text
from inferometer.workload.encodings import Cl100k

Serve = Callable[..., int]
SERVICE = "/vllm.grpc.engine.VllmEngine/"
PATIENCE_S = 30
SLOW = Settings(
    prefill_base_ns=1, prefill_per_token_ns=0, step_base_ns=20_000_000, step_per_request_ns=0, jitter=0
)


@pytest.fixture
def channel(serve: Serve) -> Iterator[Callable[..., grpc.Channel]]:
    """Call it with a port, or with options of a server, to have a channel to it."""
    opened: list[grpc.Channel] = []

    def dial(port: int | None = None, **options: Any) -> grpc.Channel:
        made = grpc.insecure_channel(f"127.0.0.1:{serve(**options) if port is None else port}")
        opened.append(made)
        return made

    yield dial
    for one in opened:
        one.close()


def generate(channel: grpc.Channel, request: Any, **how: Any) -> Any:
    """The responses to this request, as they come."""
    call = channel.unary_stream(
        f"{SERVICE}Generate", pb.GenerateRequest.SerializeToString, pb.GenerateResponse.FromString
    )
    return call(request, timeout=PATIENCE_S, **how)


def unary(channel: grpc.Channel, path: str, request: bytes = b"") -> bytes:
    """The bytes of the one response."""
    answer: bytes = channel.unary_unary(path)(request, timeout=PATIENCE_S)
    return answer


def asked(ids: list[int], count: int, *, stream: bool = True, **more: Any) -> Any:
    params = pb.SamplingParams(max_tokens=count, ignore_eos=True, **more)
    return pb.GenerateRequest(
        request_id="r1", tokenized=pb.TokenizedInput(input_ids=ids), sampling_params=params, stream=stream
    )


def truth(port: int) -> list[dict[str, Any]]:
    url = f"http://127.0.0.1:{port}/inferometer/truth"
    lines = httpx.get(url, timeout=PATIENCE_S, trust_env=False).text
    return [json.loads(line) for line in lines.splitlines()]


def test_the_ids_are_the_tokenizers() -> None:
    """Law: each piece of the passage is the token whose id stands in its place."""
    tokenizer = Cl100k()
    assert [tokenizer.encode(piece) for piece in PIECES] == [[one] for one in IDS]


def test_a_stream_is_a_message_a_token_and_one_for_the_end(serve: Serve, channel: Any) -> None:
    """Their ids are the passage's, each counts itself and the prompt, and the end repeats the last one as vLLM does."""
    port = serve()
    *chunks, last = generate(channel(port), asked(list(range(100, 130)), 12))
    assert [len(one.chunk.token_ids) for one in chunks] == [1] * 12
    assert {(one.chunk.prompt_tokens, one.chunk.completion_tokens) for one in chunks} == {(30, 1)}
    ids = [one.chunk.token_ids[0] for one in chunks]
    assert Cl100k().decode(ids) == text(0, 12)
    assert last.WhichOneof("response") == "complete"
    assert (last.complete.finish_reason, list(last.complete.output_ids)) == ("length", ids[-1:])
    assert last.complete.prompt_tokens == 30
    (row,) = truth(port)
    assert (row["api"], row["stream"], row["prompt_tokens"], row["max_tokens"]) == ("vllm-grpc", True, 30, 12)
    assert row["prompt_head"] == "100,101,102,103,104,105,106,107"
    assert (len(row["model_ns"]), len(row["sent_ns"]), row["outcome"]) == (12, 12, "finished")


def test_a_whole_answer_is_one_message(channel: Any) -> None:
    """With all ids, and its counts."""
    (one,) = generate(channel(), asked([5] * 20, 7, stream=False))
    assert (len(one.complete.output_ids), one.complete.completion_tokens) == (7, 7)
    assert (one.complete.prompt_tokens, one.complete.finish_reason) == (20, "length")


def test_text_is_tokenized_here(channel: Any) -> None:
    """As over completions."""
    request = pb.GenerateRequest(text="hello hello hello", sampling_params=pb.SamplingParams(max_tokens=2))
    (one,) = generate(channel(), request)
    assert one.complete.prompt_tokens == 3


def test_a_prefix_that_is_cached_is_counted(channel: Any) -> None:
    """In the message that ends the answer."""
    dial = channel(engine=dataclasses.replace(QUICK, prefix_caching=True))
    ids = list(range(1000, 1100))
    counted = [list(generate(dial, asked(ids, 2)))[-1].complete.cached_tokens for _ in range(2)]
    assert counted[0] == 0
    assert 0 < counted[1] < 100


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (pb.GenerateRequest(), grpc.StatusCode.INVALID_ARGUMENT),
        (asked([], 3), grpc.StatusCode.INVALID_ARGUMENT),
        (asked([1], 0), grpc.StatusCode.INVALID_ARGUMENT),
        (asked([1], 3, n=2), grpc.StatusCode.INVALID_ARGUMENT),
        (asked([1] * 60_000, 60_000), grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_what_cannot_be_answered_is_a_status_with_words(channel: Any, request_: Any, code: Any) -> None:
    """In a response without messages; the connection goes on."""
    dial = channel(max_model_len=100_000)
    with pytest.raises(grpc.RpcError) as caught:
        list(generate(dial, request_))
    assert caught.value.code() is code
    assert caught.value.details()
    assert len(list(generate(dial, asked([1], 2)))) == 3


def test_a_full_queue_is_resource_exhausted_or_unavailable(channel: Any, serve: Serve) -> None:
    """As the HTTP status that the server is set to."""
    for status, code in ((429, grpc.StatusCode.RESOURCE_EXHAUSTED), (503, grpc.StatusCode.UNAVAILABLE)):
        engine = dataclasses.replace(SLOW, max_batch=1, queue_limit=1)
        dial = channel(engine=engine, reject_status=status)
        running = generate(dial, asked([1], 5000))
        next(running)
        ended = threading.Event()
        others = [generate(dial, asked([1], 500)) for _ in range(2)]
        for call in others:  # whichever came second
            if not call.add_callback(ended.set):
                ended.set()
        assert ended.wait(30)
        assert [call.code() for call in others if not call.is_active()] == [code]
        for call in (running, *others):
            call.cancel()


def test_a_call_that_is_cancelled_is_taken_from_the_engine(channel: Any, serve: Serve) -> None:
    """RST_STREAM ends it; the log says so."""
    port = serve(engine=SLOW)
    dial = channel(port)
    call = generate(dial, asked([1], 5000))
    assert next(call).chunk.completion_tokens == 1
    call.cancel()
    list(generate(dial, asked([1], 1)))
    assert sorted(row["outcome"] for row in truth(port)) == ["cancelled", "finished"]


def test_the_calls_that_generate_nothing(channel: Any) -> None:
    """Health twice, the model, and the server."""
    dial = channel(engine=QUICK, max_model_len=4321, model="m")
    health = pb.HealthCheckResponse.FromString(unary(dial, f"{SERVICE}HealthCheck"))
    assert (health.healthy, health.message) == (True, "Health")
    info = pb.GetModelInfoResponse.FromString(unary(dial, f"{SERVICE}GetModelInfo"))
    assert (info.served_model_name, info.max_context_length, info.is_generation) == ("m", 4321, True)
    assert info.vocab_size > max(IDS)
    server = pb.GetServerInfoResponse.FromString(unary(dial, f"{SERVICE}GetServerInfo"))
    assert (server.server_type.partition("/")[0], server.active_requests) == ("inferometer-reference", 0)
    assert unary(dial, "/grpc.health.v1.Health/Check") == b"\x08\x01"


def test_reflection_names_the_services_and_nothing_else(channel: Any) -> None:
    """To a call of one message; a request for descriptors is refused in a message, as the protocol has it."""
    path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    dial = channel()
    listed = ServerReflectionResponse.FromString(
        unary(dial, path, ServerReflectionRequest(list_services="*").SerializeToString())
    )
    names = [one.name for one in listed.list_services_response.service]
    assert names == [SERVICE.strip("/"), "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"]
    assert listed.original_request.list_services == "*"
    asked_file = ServerReflectionRequest(file_by_filename="x.proto")
    refused = ServerReflectionResponse.FromString(unary(dial, path, asked_file.SerializeToString()))
    assert refused.error_response.error_code == grpc.StatusCode.UNIMPLEMENTED.value[0]


@pytest.mark.parametrize(
    ("path", "request_", "code"),
    [
        ("/grpc.health.v1.Health/Check", b"\x0a\x01x", grpc.StatusCode.NOT_FOUND),
        ("/grpc.health.v1.Health/Check", b"\x0a\x05x", grpc.StatusCode.INVALID_ARGUMENT),
        (f"{SERVICE}Embed", b"", grpc.StatusCode.UNIMPLEMENTED),
        ("/other.Service/Call", b"", grpc.StatusCode.UNIMPLEMENTED),
    ],
)
def test_a_call_that_there_is_not_is_named(channel: Any, path: str, request_: bytes, code: Any) -> None:
    """A service that is unknown, bytes that are no message, methods that are not there."""
    with pytest.raises(grpc.RpcError) as caught:
        unary(channel(), path, request_)
    assert caught.value.code() is code


def test_a_key_is_wanted_where_one_is_set(channel: Any) -> None:
    """As metadata; the health service is open to all."""
    dial = channel(key="k")
    with pytest.raises(grpc.RpcError) as caught:
        list(generate(dial, asked([1], 1)))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert len(list(generate(dial, asked([1], 1), metadata=[("authorization", "Bearer k")]))) == 2
    assert unary(dial, "/grpc.health.v1.Health/Check") == b"\x08\x01"


def test_http_1_1_is_told_that_grpc_needs_more(serve: Serve) -> None:
    """By a status of HTTP itself."""
    for path in (f"{SERVICE}Generate", f"{SERVICE}GetModelInfo"):
        answer = httpx.post(f"http://127.0.0.1:{serve()}{path}", content=bytes(5), trust_env=False)
        assert answer.status_code == 505
