"""`inferometer run` by gRPC against servers that speak nothing else, and against one that is not there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from commands import SMALL, only, run
from smg_grpc_proto import sglang_scheduler_pb2, trtllm_service_pb2, vllm_engine_pb2

from inferometer.engines.interface import INTERFACES
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

MESSAGES: dict[str, Any] = {
    "vllm-grpc": vllm_engine_pb2,
    "sglang-grpc": sglang_scheduler_pb2,
    "trtllm-grpc": trtllm_service_pb2,
}
APIS = sorted(MESSAGES)


class Engine:
    """As much of a service as a run needs, by grpcio; `requests`: those that it has got. `counted`: by how many tokens more its
    ends count than came; `around`: by how many more it counts for each prompt."""

    def __init__(self, api: str, *, counted: int = 0, around: int = 0) -> None:
        self.pb, self.api, self.counted, self.around = MESSAGES[api], api, counted, around
        self.requests: list[Any] = []

    def generate(self, request: Any, _context: Any) -> Iterator[Any]:
        """Ids of a small vocabulary: chunks and the end, or the end alone, each as the published file has it."""
        self.requests.append(request)
        prompt, count = len(self.prompt(request)) + self.around, self.wanted(request)
        own, streamed = self.api == "vllm-grpc", self.streamed(request)
        ids, echo = [n % 100 for n in range(count)], {} if own else {"request_id": request.request_id}
        for place, one in enumerate(ids if streamed else ()):
            counted = 1 if own else place + 1
            made = self.pb.GenerateStreamChunk(
                token_ids=[one], prompt_tokens=prompt, completion_tokens=counted
            )
            yield self.pb.GenerateResponse(chunk=made, **echo)
        last = ids if self.api == "trtllm-grpc" or not streamed else ids[-1:]
        name = "output_token_ids" if self.api == "trtllm-grpc" else "output_ids"
        counted = (len(last) if own else count) + self.counted
        done = self.pb.GenerateComplete(
            **{name: last}, finish_reason="length", prompt_tokens=prompt, completion_tokens=counted
        )
        yield self.pb.GenerateResponse(complete=done, **echo)

    def prompt(self, request: Any) -> list[int]:
        """The ids of a prompt."""
        tokenized = request.tokenized
        return list(tokenized.input_token_ids if self.api == "trtllm-grpc" else tokenized.input_ids)

    def sampling(self, request: Any) -> Any:
        """The message with the sampling parameters."""
        return request.sampling_config if self.api == "trtllm-grpc" else request.sampling_params

    def wanted(self, request: Any) -> int:
        """Tokens of an answer."""
        if self.api == "trtllm-grpc":
            return int(request.max_tokens)
        name = "max_new_tokens" if self.api == "sglang-grpc" else "max_tokens"
        return int(getattr(request.sampling_params, name))

    def streamed(self, request: Any) -> bool:
        """Whether the answer is to come in chunks."""
        return bool(request.streaming if self.api == "trtllm-grpc" else request.stream)

    def model(self, _request: Any, _context: Any) -> Any:
        """What is served."""
        if self.api == "trtllm-grpc":
            return self.pb.GetModelInfoResponse(model_id="m", max_seq_len=9000, vocab_size=200_000)
        return self.pb.GetModelInfoResponse(
            served_model_name="m", max_context_length=9000, vocab_size=200_000
        )


@contextlib.contextmanager
def serving(engine: Engine, credentials: Any = None) -> Iterator[int]:
    """It runs; gives its port."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    methods = {
        "Generate": grpc.unary_stream_rpc_method_handler(
            engine.generate, engine.pb.GenerateRequest.FromString, lambda answer: answer.SerializeToString()
        ),
        "GetModelInfo": grpc.unary_unary_rpc_method_handler(
            engine.model, None, lambda answer: answer.SerializeToString()
        ),
    }
    service = INTERFACES[engine.api].path.split("/")[1]
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    place = "127.0.0.1:0"
    port = server.add_secure_port(place, credentials) if credentials else server.add_insecure_port(place)
    server.start()
    try:
        yield port
    finally:
        server.stop(None)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", [(), ("--no-stream",)])
def test_a_server_of_grpc_alone_is_measured(api: str, how: tuple[str, ...], tmp_path: Path) -> None:
    """Ids in and out, every row of the schedule with an id of its own, and what is sampled as the plan has it."""
    engine = Engine(api)
    with serving(engine) as port:
        arguments = ("--url", f"grpc://127.0.0.1:{port}", "--api", api, "--requests", "8", *how, *SMALL)
        more = ("--warmup", "2", "--extra-body", '{"top_p": 0.5}', "--no-server-metrics", "--json")
        _, stdout, _ = run("run", *arguments, *more, out=tmp_path)
    summary = json.loads(stdout)
    assert (summary["requests"]["completed"], summary["requests"]["failed"]) == (8, 0)
    assert summary["sut"]["url"] == f"http://127.0.0.1:{port}"
    for row in read_table(RunFolder.open(only(tmp_path)).record, RECORD).to_pylist():
        assert (row["outcome"], row["usage_output"]) == ("ok", row["output_tokens_asked"])
        assert (row["usage_input"], row["text"]) == (row["input_tokens_sent"], None)
    loaded = [one for one in engine.requests if "-" in one.request_id]
    prompts = {one.request_id: engine.prompt(one) for one in loaded}
    assert len({tuple(ids) for ids in prompts.values()}) == len(prompts) >= 10
    assert {round(engine.sampling(one).top_p, 3) for one in loaded} == {0.5}
    assert {(one if api == "trtllm-grpc" else one.sampling_params).ignore_eos for one in loaded} == {True}
    assert {engine.streamed(one) for one in loaded} == {not how}


@pytest.mark.parametrize("api", APIS)
def test_a_server_of_grpc_is_measured_over_tls(api: str, tmp_path: Path) -> None:
    """By a certificate that the plan trusts; without it nothing is sent."""
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(leaf.private_key_pem.bytes(), chain)])
    engine = Engine(api)
    with serving(engine, credentials) as port:
        wanted = ("run", "--url", f"grpcs://127.0.0.1:{port}", "--api", api, "--requests", "8", *SMALL)
        more = ("--warmup", "0", "--no-server-metrics", "--json")
        code, _, stderr = run(*wanted, *more, out=tmp_path / "untrusted")
        assert (code, engine.requests) == (5, [])
        assert "certificate" in stderr
        _, stdout, _ = run(*wanted, *more, "--ca-file", str(tmp_path / "ca.pem"), out=tmp_path / "runs")
    summary = json.loads(stdout)
    assert (summary["requests"]["completed"], summary["requests"]["failed"]) == (8, 0)
    assert "gRPC over HTTP/2 over TLS" in summary["sut"]["protocol"]


@pytest.mark.parametrize("api", APIS)
def test_a_server_whose_counts_contradict_its_ids_is_not_valid(api: str, tmp_path: Path) -> None:
    """Law: each such answer fails by the words of the contradiction, in the probe before anything is measured."""
    with serving(Engine(api, counted=2)) as port:
        arguments = ("--url", f"grpc://127.0.0.1:{port}", "--api", api, "--requests", "4", *SMALL)
        code, _, stderr = run("run", *arguments, "--warmup", "0", "--no-server-metrics", out=tmp_path)
    assert code == 5
    assert "the end counts 3 completion tokens, where 1 token ids came" in stderr


def test_a_constant_around_every_prompt_is_no_template_where_none_is_applied(tmp_path: Path) -> None:
    """Law: ids are the prompt, so that a server which counts 100 more for each read something else."""
    with serving(Engine("sglang-grpc", around=100)) as port:
        arguments = ("--url", f"grpc://127.0.0.1:{port}", "--api", "sglang-grpc", "--requests", "8", *SMALL)
        _, stdout, _ = run("run", *arguments, "--warmup", "0", "--no-server-metrics", "--json", out=tmp_path)
    checks = {one["code"]: one["status"] for one in json.loads(stdout)["verdict"]["checks"]}
    assert (checks["prompt_length"], checks["output_length"]) == ("fail", "pass")


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


@pytest.mark.parametrize("api", sorted(name for name in APIS if not INTERFACES[name].embedded))
def test_what_no_simulated_engine_speaks_is_refused(api: str, tmp_path: Path) -> None:
    """With the exit code of a plan that is wrong."""
    code, _, stderr = run("simulate", "--api", api, "--requests", "4", *SMALL, out=tmp_path)
    assert code == 2
    assert api in stderr
