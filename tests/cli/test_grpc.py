"""`inferometer run` by gRPC against a server that speaks nothing else, and against one that is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from commands import SMALL, only, run
from smg_grpc_proto import vllm_engine_pb2 as pb

from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

SERVICE = "vllm.grpc.engine.VllmEngine"


class Engine:
    """As much of vLLM's service as a run needs, by grpcio; `requests`: those that it has got."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def generate(self, request: Any, _context: Any) -> Iterator[Any]:
        """Ids of a small vocabulary: chunks and the end, or the end alone."""
        self.requests.append(request)
        prompt, count = len(request.tokenized.input_ids), request.sampling_params.max_tokens
        ids = [n % 100 for n in range(count)]
        for one in ids if request.stream else ():
            made = pb.GenerateStreamChunk(token_ids=[one], prompt_tokens=prompt, completion_tokens=1)
            yield pb.GenerateResponse(chunk=made)
        last = ids[-1:] if request.stream else ids
        done = pb.GenerateComplete(output_ids=last, finish_reason="length", prompt_tokens=prompt)
        yield pb.GenerateResponse(complete=done)

    def model(self, _request: Any, _context: Any) -> Any:
        """What is served."""
        return pb.GetModelInfoResponse(served_model_name="m", max_context_length=9000, vocab_size=200_000)


@pytest.fixture
def engine() -> Iterator[tuple[Engine, int]]:
    """A running one, and its port."""
    made, server = Engine(), grpc.server(futures.ThreadPoolExecutor(4))
    methods = {
        "Generate": grpc.unary_stream_rpc_method_handler(
            made.generate, pb.GenerateRequest.FromString, pb.GenerateResponse.SerializeToString
        ),
        "GetModelInfo": grpc.unary_unary_rpc_method_handler(
            made.model, None, lambda answer: answer.SerializeToString()
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield made, port
    server.stop(None)


@pytest.mark.parametrize("how", [(), ("--no-stream",)])
def test_a_server_of_grpc_alone_is_measured(
    engine: tuple[Engine, int], how: tuple[str, ...], tmp_path: Path
) -> None:
    """Ids in and out, every row of the schedule with an id of its own, and what is sampled as the plan has it."""
    made, port = engine
    arguments = ("--url", f"grpc://127.0.0.1:{port}", "--api", "vllm-grpc", "--requests", "8", *how, *SMALL)
    more = ("--warmup", "2", "--extra-body", '{"top_p": 0.5}', "--no-server-metrics", "--json")
    _, stdout, _ = run("run", *arguments, *more, out=tmp_path)
    summary = json.loads(stdout)
    assert (summary["requests"]["completed"], summary["requests"]["failed"]) == (8, 0)
    assert summary["sut"]["url"] == f"http://127.0.0.1:{port}"
    for row in read_table(RunFolder.open(only(tmp_path)).record, RECORD).to_pylist():
        assert (row["outcome"], row["usage_output"]) == ("ok", row["output_tokens_asked"])
        assert (row["usage_input"], row["text"]) == (row["input_tokens_sent"], None)
    loaded = [one for one in made.requests if "-" in one.request_id]
    prompts = {one.request_id: list(one.tokenized.input_ids) for one in loaded}
    assert len({tuple(ids) for ids in prompts.values()}) == len(prompts) >= 10
    assert {round(one.sampling_params.top_p, 3) for one in loaded} == {0.5}
    assert {one.sampling_params.ignore_eos for one in loaded} == {True}
    assert {one.stream for one in loaded} == {not how}


def test_a_server_that_speaks_http_1_1_alone_is_no_grpc_server(tmp_path: Path) -> None:
    """The exit code of a server that cannot be measured, and why."""
    from peers import Script, scripted, whole

    with scripted(lambda _: Script(whole(200, b"{}"))) as peer:
        url = f"grpc://127.0.0.1:{peer.port}"
        code, _, stderr = run(
            "run", "--url", url, "--api", "vllm-grpc", "--requests", "1", "--probe-timeout", "5", out=tmp_path
        )
    assert code == 5
    assert "HTTP/2" in stderr or "closed" in stderr
