"""The server through real sockets. h11 and http.client, which share no code with ours, are the clients."""

from __future__ import annotations

import functools
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import h11
import pytest
import trustme
from prometheus_client.parser import text_string_to_metric_families

from inferometer.server import tls
from inferometer.server.engine.settings import Settings
from inferometer.units import NS_PER_S
from inferometer.workload.encodings import Cl100k

Serve = Callable[..., int]

PATIENCE_S = 30
QUICK = Settings(
    prefill_base_ns=1_000, prefill_per_token_ns=0, step_base_ns=10_000, step_per_request_ns=0, jitter=0
)
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
SLOW = Settings(
    prefill_base_ns=1, prefill_per_token_ns=0, step_base_ns=50_000_000, step_per_request_ns=0, jitter=0
)


def chat_body(**fields: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "hello hello hello"}], **fields}).encode()


def wire(method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    """A request's bytes."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body
    )


def dial(port: int, receive_buffer: int = 0) -> socket.socket:
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(PATIENCE_S)
    sock.connect(("127.0.0.1", port))
    return sock


def call(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
    """Status and body (read as JSON where it is) by http.client."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = client.getresponse()
    data = response.read()
    client.close()
    is_json = response.headers["Content-Type"] == "application/json" and data
    return response.status, json.loads(data) if is_json else data.decode()


class Client:
    """An h11 client on a socket of ours: sends any bytes, reads responses one by one."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._h11 = h11.Connection(h11.CLIENT)

    def response(self, method: bytes = b"POST") -> tuple[int, bytes, list[int]]:
        """Status, body, and the statuses of the interim responses before it."""
        conn = self._h11
        # h11 must believe that it sent the request to know what to expect; the bytes went out by other means.
        conn.send(h11.Request(method=method, target="/", headers=[("Host", "t")]))
        conn.send(h11.EndOfMessage())
        status, body, interim = 0, b"", []
        while True:
            event = conn.next_event()
            if event is h11.NEED_DATA:
                conn.receive_data(self.sock.recv(65536))
            elif isinstance(event, h11.InformationalResponse):
                interim.append(event.status_code)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                if conn.our_state is h11.DONE and conn.their_state is h11.DONE:
                    conn.start_next_cycle()
                return status, body, interim
            else:
                raise AssertionError(event)


def events(body: bytes) -> list[Any]:
    """The JSON of a stream's events; the terminator must be there and is left out."""
    *messages, rest = body.decode().split("\n\n")
    assert rest == ""
    assert messages.pop() == "data: [DONE]"
    return [json.loads(message.removeprefix("data: ")) for message in messages]


def stream(port: int, path: str, body: bytes, headers: str = "") -> list[Any]:
    """The events of one streamed answer."""
    with dial(port) as sock:
        sock.sendall(wire("POST", path, body, headers))
        status, data, _ = Client(sock).response()
    assert status == 200
    return events(data)


def truth(port: int) -> list[dict[str, Any]]:
    _, text = call(port, "GET", "/inferometer/truth")
    return [json.loads(line) for line in text.splitlines()]


def gauge(port: int, name: str) -> float:
    """The value of a sample without further labels than the model's."""
    _, text = call(port, "GET", "/metrics")
    (value,) = [
        s.value for f in text_string_to_metric_families(text) for s in f.samples if s.name == f"vllm:{name}"
    ]
    return float(value)


def test_a_streamed_chat_has_a_role_then_its_tokens_then_usage(serve: Serve) -> None:
    """Like vLLM: role with empty content, one event a token, the finish reason on the last, then the counts."""
    port = serve()
    first, *rest = stream(
        port, CHAT, chat_body(stream=True, max_tokens=40, stream_options={"include_usage": True})
    )
    *tokens, usage = rest
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    texts = [event["choices"][0]["delta"]["content"] for event in tokens]
    assert len(texts) == len(Cl100k().encode("".join(texts))) == 40
    assert [event["choices"][0]["finish_reason"] for event in tokens] == [None] * 39 + ["length"]
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 40,
        "total_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert {event["id"] for event in (first, *rest)} == {first["id"]}


def test_a_streamed_completion_is_its_tokens_and_nothing_else(serve: Serve) -> None:
    """No role, and no usage unless asked for."""
    port = serve()
    got = stream(port, COMPLETIONS, json.dumps({"prompt": [1, 2], "stream": True, "max_tokens": 3}).encode())
    assert [event["choices"][0]["finish_reason"] for event in got] == [None, None, "length"]
    assert all(event["object"] == "text_completion" for event in got)


@pytest.mark.parametrize(
    ("path", "body"),
    [(CHAT, {"messages": [{"role": "user", "content": "x"}]}), (COMPLETIONS, {"prompt": "x"})],
)
def test_a_whole_answer_has_the_length_it_reports(serve: Serve, path: str, body: dict[str, Any]) -> None:
    """Text, usage and `max_tokens` agree."""
    port = serve()
    status, answer = call(port, "POST", path, json.dumps({**body, "max_tokens": 400}).encode())
    (choice,) = answer["choices"]
    text = choice["message"]["content"] if path == CHAT else choice["text"]
    assert status == 200
    assert len(Cl100k().encode(text)) == answer["usage"]["completion_tokens"] == 400
    assert choice["finish_reason"] == "length"


def test_the_truth_log_knows_a_request_by_its_prompt_and_when_it_arrived(serve: Serve) -> None:
    """The head of text, of parts or of ids; and, where the kernel says so, an arrival on the same clock."""
    port = serve()
    for path, fields in (
        (CHAT, {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "1" * 200}]}),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "text", "text": "part"}]}]}),
        (COMPLETIONS, {"prompt": list(range(10))}),
        (COMPLETIONS, {"prompt": ["text"]}),
    ):
        before = time.monotonic_ns()
        assert call(port, "POST", path, json.dumps({"max_tokens": 1, **fields}).encode())[0] == 200
        row = truth(port)[-1]
        assert before <= row["received_ns"] <= time.monotonic_ns()
        arrived = row["arrived_ns"]
        assert arrived is None or abs(arrived - row["received_ns"]) < 5 * NS_PER_S
    assert [row["prompt_head"] for row in truth(port)] == ["1" * 96, "part", "0,1,2,3,4,5,6,7", "text"]


def test_the_truth_log_joins_with_what_clients_saw(serve: Serve) -> None:
    """By id and by X-Request-Id: as many tokens as events, and instants in the order of their causes."""
    port = serve(engine=Settings(prefill_base_ns=1_000, step_base_ns=200_000))
    lengths = [1, 2, 17, 60, 60, 3]
    seen: dict[str, tuple[str, int]] = {}

    def ask(number: int, length: int) -> None:
        body = chat_body(stream=True, max_tokens=length)
        got = stream(port, CHAT, body, f"X-Request-Id: r{number}\r\n")
        seen[got[0]["id"]] = (f"r{number}", len(got) - 1)

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(lengths)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    rows = truth(port)
    assert {row["id"]: (row["request_id"], len(row["sent_ns"])) for row in rows} == seen
    assert len(rows) == len(lengths)
    for row in rows:
        instants = [row["received_ns"], row["opened_ns"], *row["sent_ns"], row["ended_ns"]]
        assert instants == sorted(instants)
        assert (row["arrived_ns"] or row["received_ns"]) < row["model_ns"][0]
        assert all(model <= sent for model, sent in zip(row["model_ns"], row["sent_ns"], strict=True))
        assert row["outcome"] == "finished"


def test_a_whole_answers_tokens_leave_together_and_the_log_can_be_emptied(serve: Serve) -> None:
    """One `send`, one instant; DELETE and POST .../reset forget."""
    port = serve()
    for method, path in (("DELETE", "/inferometer/truth"), ("POST", "/inferometer/truth/reset")):
        call(port, "POST", CHAT, chat_body(max_tokens=5))
        (row,) = truth(port)
        assert row["sent_ns"] == [row["ended_ns"]] * 5
        assert row["opened_ns"] is None
        assert len(row["model_ns"]) == 5
        assert call(port, method, path)[0] == 200
        assert truth(port) == []


def test_pipelined_requests_are_answered_in_order_on_one_connection(serve: Serve) -> None:
    """RFC 9112 section 9.3.2: generations too, one after the other."""
    port = serve()
    with dial(port) as sock:
        client = Client(sock)
        asked = [wire("POST", CHAT, chat_body(stream=True, max_tokens=n)) for n in (3, 1, 2)]
        sock.sendall(asked[0] + wire("GET", "/health") + asked[1] + asked[2])
        assert len(events(client.response()[1])) == 1 + 3
        assert client.response(b"GET")[:2] == (200, b"")
        assert len(events(client.response()[1])) == 1 + 1
        assert len(events(client.response()[1])) == 1 + 2


def test_more_pipelined_requests_than_are_read_ahead_are_all_answered(serve: Serve) -> None:
    """The socket is left unread for a while, never forgotten."""
    port = serve()
    with dial(port) as sock:
        client = Client(sock)
        for _ in range(2):
            sock.sendall(wire("POST", CHAT, chat_body(max_tokens=2)) * 60)
        assert [client.response()[0] for _ in range(120)] == [200] * 120


def test_a_client_that_waits_for_permission_gets_it(serve: Serve) -> None:
    """`Expect: 100-continue`: the interim response comes before the body is sent, and the answer after it."""
    port = serve()
    body = chat_body(max_tokens=1)
    request = wire("POST", CHAT, body, "Expect: 100-continue\r\n")
    with dial(port) as sock:
        sock.sendall(request[: -len(body)])
        client = Client(sock)
        head = sock.recv(25)
        assert head == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert client.response()[0] == 200


def test_a_client_that_does_not_read_is_cut_off_and_blocks_nobody(serve: Serve) -> None:
    """Its stream ends as an overflow once its backlog passes the limit; others are served meanwhile."""
    port = serve(send_buffer=4096, backlog_limit=20_000)
    with dial(port, receive_buffer=4096) as deaf:
        deaf.sendall(wire("POST", CHAT, chat_body(stream=True, max_tokens=100_000)))
        while not (rows := [row for row in truth(port) if row["outcome"] != "finished"]):
            assert len(stream(port, CHAT, chat_body(stream=True, max_tokens=5))) == 1 + 5
    (row,) = rows
    assert row["outcome"] == "overflow"
    assert len(row["sent_ns"]) < len(row["model_ns"]) < 100_000
    assert gauge(port, "num_requests_running") == 0


def test_a_slow_reader_within_the_limit_gets_everything(serve: Serve) -> None:
    """Bytes wait in order while the kernel's buffers are full; every token is stamped once it has gone."""
    port = serve(send_buffer=4096)
    with dial(port, receive_buffer=4096) as slow:
        slow.sendall(wire("POST", CHAT, chat_body(stream=True, max_tokens=2_000)))
        while gauge(port, "generation_tokens_total") < 2_000:
            pass
        assert len(events(Client(slow).response()[1])) == 1 + 2_000
    (row,) = truth(port)
    assert row["outcome"] == "finished"
    assert len(row["sent_ns"]) == 2_000
    assert row["sent_ns"] == sorted(row["sent_ns"])


def test_a_whole_answer_may_be_larger_than_the_backlog_limit(serve: Serve) -> None:
    """The limit is for streams: a complete answer is one block, and there is one a connection."""
    port = serve(send_buffer=4096, backlog_limit=1_000)
    with dial(port, receive_buffer=4096) as slow:
        slow.sendall(wire("POST", CHAT, chat_body(max_tokens=20_000)))
        while gauge(port, "generation_tokens_total") < 20_000:
            pass
        answer = json.loads(Client(slow).response()[1])
    assert answer["usage"]["completion_tokens"] == 20_000
    assert [row["outcome"] for row in truth(port)] == ["finished"]


def test_a_client_that_leaves_takes_its_request_with_it(serve: Serve) -> None:
    """Running or waiting: the engine is rid of it, and the log says so."""
    port = serve(engine=Settings(prefill_base_ns=1_000, step_base_ns=1_000_000, max_batch=1))
    with dial(port) as running, dial(port) as waiting:
        for sock in (running, waiting):
            sock.sendall(wire("POST", CHAT, chat_body(stream=True, max_tokens=100_000)))
            sock.recv(1)
        assert (gauge(port, "num_requests_running"), gauge(port, "num_requests_waiting")) == (1, 1)
    while gauge(port, "num_requests_running") or gauge(port, "num_requests_waiting"):
        pass
    assert [row["outcome"] for row in truth(port)] == ["cancelled", "cancelled"]
    assert len(stream(port, CHAT, chat_body(stream=True, max_tokens=2))) == 3


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", CHAT, b'{"messages": [', 400, None),
        ("POST", CHAT, b"\xff\xfe", 400, None),
        ("POST", CHAT, b"", 400, None),
        ("POST", CHAT, chat_body(max_tokens=0), 400, None),
        ("POST", CHAT, chat_body(model="other"), 404, "model_not_found"),
        ("POST", CHAT, chat_body(max_tokens=300_000), 400, "context_length_exceeded"),
        ("GET", CHAT, b"", 405, "method_not_allowed"),
        ("GET", "/nowhere", b"", 404, "not_found"),
        ("POST", CHAT, b"x" * 20_000_000, 413, None),
    ],
)
def test_errors_are_openais_json(
    serve: Serve, method: str, path: str, body: bytes, status: int, code: str | None
) -> None:
    """An error object with message, type, param and code, whatever went wrong; the server goes on."""
    port = serve(body_limit=1_000_000)
    got, answer = call(port, method, path, body)
    assert got == status
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert (answer["error"]["type"], answer["error"]["code"]) == ("invalid_request_error", code)
    assert call(port, "GET", "/health") == (200, "")


def test_bytes_that_are_no_http_get_400_and_the_connection_ends(serve: Serve) -> None:
    """Nothing after a fault can be trusted."""
    port = serve()
    with dial(port) as sock:
        sock.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert Client(sock).response()[0] == 400
        assert sock.recv(1) == b""


def test_http_1_0_is_answered_and_closed_but_not_streamed_to(serve: Serve) -> None:
    """It knows no chunks, and we keep no connection of its open."""
    port = serve()
    body = chat_body(stream=True)
    for request, status in (
        (b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"200"),
        (b"POST %b HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body), b"505"),
    ):
        with dial(port) as sock, sock.makefile("rb") as file:
            sock.sendall(request)
            assert file.read().startswith(b"HTTP/1.1 " + status)


def test_a_connection_to_be_closed_is_closed_after_the_stream(serve: Serve) -> None:
    """`Connection: close` is honoured and repeated."""
    port = serve()
    with dial(port) as sock, sock.makefile("rb") as file:
        sock.sendall(wire("POST", CHAT, chat_body(stream=True, max_tokens=2), "Connection: close\r\n"))
        answer = file.read()
    assert b"\r\nConnection: close\r\n" in answer
    assert answer.endswith(b"\r\n0\r\n\r\n")


def test_the_small_endpoints_say_what_they_should(serve: Serve) -> None:
    """Health, models, tokenize."""
    port = serve(model="tiny", max_model_len=77)
    assert call(port, "GET", "/health") == (200, "")
    (model,) = call(port, "GET", "/v1/models")[1]["data"]
    assert (model["id"], model["max_model_len"]) == ("tiny", 77)
    status, answer = call(port, "POST", "/tokenize", b'{"model": "tiny", "prompt": "hello world"}')
    assert (status, answer["count"], answer["tokens"]) == (200, 2, Cl100k().encode("hello world"))


def test_metrics_count_what_was_done(serve: Serve) -> None:
    """Two answers of 5 and 7 tokens to prompts of 10: counters and histogram counts follow."""
    port = serve()
    for length in (5, 7):
        stream(port, CHAT, chat_body(stream=True, max_tokens=length))
    assert gauge(port, "prompt_tokens_total") == 20
    assert gauge(port, "generation_tokens_total") == 12
    assert gauge(port, "time_to_first_token_seconds_count") == 2
    assert gauge(port, "inter_token_latency_seconds_count") == 4 + 6
    assert gauge(port, "e2e_request_latency_seconds_count") == 2


def test_the_parts_of_ttft_are_those_of_the_truth_log(serve: Serve) -> None:
    """With room for one, the second of two requests waits until the first has ended; both histograms add up to the log's
    instants, from the arrival to the first iteration and from there to the first token."""
    port = serve(engine=replace(QUICK, max_batch=1))
    with dial(port) as one, dial(port) as other:
        for sock in (one, other):
            sock.sendall(wire("POST", CHAT, chat_body(max_tokens=40)))
        for sock in (one, other):
            assert Client(sock).response()[0] == 200
    rows = truth(port)
    starts = [min(row["arrived_ns"] or row["received_ns"], row["received_ns"]) for row in rows]
    waits = [row["scheduled_ns"] - start for row, start in zip(rows, starts, strict=True)]
    assert rows[1]["scheduled_ns"] >= rows[0]["model_ns"][-1]
    assert all(row["prefilled_ns"] == row["model_ns"][0] for row in rows)
    prefills = [row["prefilled_ns"] - row["scheduled_ns"] for row in rows]
    for name, parts in (("queue", waits), ("prefill", prefills)):
        assert gauge(port, f"request_{name}_time_seconds_count") == 2
        assert gauge(port, f"request_{name}_time_seconds_sum") == pytest.approx(sum(parts) / 1e9, rel=1e-9)


def test_a_key_is_asked_for_where_one_is_set(serve: Serve) -> None:
    """On /v1/ only, like vLLM; the wrong key is no key."""
    port = serve(key="secret")
    assert call(port, "GET", "/v1/models")[0] == 401
    assert call(port, "GET", "/v1/models", Authorization="Bearer wrong")[0] == 401
    assert call(port, "POST", CHAT, chat_body(), Authorization="secret")[0] == 401
    assert call(port, "GET", "/v1/models", Authorization="Bearer secret")[0] == 200
    assert call(port, "GET", "/health")[0] == 200


def test_the_same_seed_says_the_same(serve: Serve) -> None:
    """Ids and texts of two servers with one seed agree, request by request."""
    ports = [serve(seed=5), serve(seed=5), serve(seed=6)]
    said = [[stream(port, CHAT, chat_body(stream=True, max_tokens=3)) for _ in range(3)] for port in ports]
    ids = [[answer[0]["id"] for answer in answers] for answers in said]
    texts = [[event["choices"] for answer in answers for event in answer] for answers in said]
    assert ids[0] == ids[1] != ids[2]
    assert texts[0] == texts[1]


def test_tls_carries_streams_and_large_bodies(serve: Serve, tmp_path: Any) -> None:
    """The same server behind TLS: a body of many records in, a stream out, a certificate that verifies."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    made = tls.context(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    port = serve(wrap=functools.partial(tls.TlsSocket, made=made), max_model_len=1_000_000)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    prompt = [7] * 100_000
    body = json.dumps(
        {"prompt": prompt, "stream": True, "max_tokens": 50, "stream_options": {"include_usage": True}}
    )
    with trusting.wrap_socket(dial(port), server_hostname="localhost") as sock:
        client = Client(sock)
        for _ in range(2):
            sock.sendall(wire("POST", COMPLETIONS, body.encode()))
            *tokens, usage = events(client.response()[1])
            assert (len(tokens), usage["usage"]["prompt_tokens"]) == (50, 100_000)


def test_a_server_can_be_stopped_with_streams_under_way(serve: Serve) -> None:
    """The fixture joins the server's thread; this stream is still running then, and sees the end."""
    port = serve(engine=SLOW)
    sock = dial(port)
    sock.sendall(wire("POST", CHAT, chat_body(stream=True, max_tokens=100_000)))
    assert sock.recv(12) == b"HTTP/1.1 200"


def test_tokens_that_come_together_share_an_event_and_their_stamps(serve: Serve) -> None:
    """Three drafts, all accepted: the first token, then four an event; the truth log has an instant for each token."""
    port = serve(engine=replace(QUICK, draft_tokens=3, acceptance=1))
    _, *tokens = stream(port, CHAT, chat_body(stream=True, max_tokens=9))
    texts = [event["choices"][0]["delta"]["content"] for event in tokens]
    assert [len(Cl100k().encode(text)) for text in texts] == [1, 4, 4]
    (row,) = truth(port)
    assert len(row["model_ns"]) == len(row["sent_ns"]) == 9
    assert len(set(row["sent_ns"])) == 3


def test_a_shared_prefix_shows_in_usage_metrics_and_truth(serve: Serve) -> None:
    """The second of two equal prompts of 40 tokens: 32 from the cache, where caching is on."""
    port = serve(engine=replace(QUICK, prefix_caching=True))
    for cached in (0, 32):
        body = json.dumps({"prompt": list(range(40)), "max_tokens": 2}).encode()
        _, answer = call(port, "POST", COMPLETIONS, body)
        assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": cached}
    assert [row["cached_tokens"] for row in truth(port)] == [0, 32]
    assert gauge(port, "prefix_cache_queries_total") == 80
    assert gauge(port, "prefix_cache_hits_total") == 32


def test_a_refused_request_gets_the_fixed_answer(serve: Serve) -> None:
    """`content_filter`, and the tokens that were truly sent."""
    port = serve(engine=replace(QUICK, refusal_share=1, refusal_tokens=5))
    status, answer = call(port, "POST", CHAT, chat_body(max_tokens=50))
    assert (status, answer["usage"]["completion_tokens"]) == (200, 5)
    assert answer["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("status", [429, 503])
def test_a_full_queue_is_told(serve: Serve, status: int) -> None:
    """One is served, one waits, the third is sent away with the status asked for."""
    port = serve(engine=replace(SLOW, max_batch=1, queue_limit=1), reject_status=status)
    with dial(port) as running, dial(port) as waiting:
        for sock in (running, waiting):
            sock.sendall(wire("POST", CHAT, chat_body(stream=True, max_tokens=1_000)))
            sock.recv(1)
        assert call(port, "POST", CHAT, chat_body())[0] == status
