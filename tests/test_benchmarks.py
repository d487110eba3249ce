"""The benchmarks' own parts: the C programs build and answer, and the join of two records finds what belongs together.

Nothing here looks at how long anything took.
"""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import sys
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` is not installed

from benchmarks import costs, instrument, loads, native
from benchmarks.__main__ import ALL, arguments
from benchmarks.figure import Figure, Note, at_least, at_most, notes, rows, table
from benchmarks.scrape import exposition
from benchmarks.truth import joined
from inferometer.engines import openai
from inferometer.engines.answer import Answer
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD, EventClass
from inferometer.journal.seal import read_table
from inferometer.protocol.http_response import ResponseDecoder
from inferometer.protocol.sse import SseDecoder

NOWHERE = native.Cores(None, None)
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> native.Binaries:
    """The C programs, built in a folder of their own."""
    return native.build(tmp_path_factory.mktemp("native"))


@pytest.fixture
def server(binaries: native.Binaries) -> Iterator[native.Server]:
    """A server with short times."""
    with native.serving(binaries, NOWHERE, 2_000, 500) as running:
        yield running


def post(sock: socket.socket, path: str, body: dict[str, object], piece: int = 1 << 16) -> None:
    """Send one request, `piece` bytes at a time."""
    data = json.dumps(body).encode()
    wire = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(data), data)
    for at in range(0, len(wire), piece):
        sock.sendall(wire[at : at + piece])


def answer_on(sock: socket.socket, http: ResponseDecoder) -> Answer:
    """Read one streamed or whole answer to its end."""
    answer, sse, body = Answer(), SseDecoder(), b""
    while not http.complete:
        http.feed(sock.recv(1 << 16))
        body = b"".join(http.body)
    if http.header(b"content-type").startswith("text/event-stream"):
        for at, payload in enumerate(sse.feed(body)):
            assert payload is not None
            openai.read_event(answer, payload, at)
    else:
        openai.read_whole(answer, body, 0)
    return answer


def ask(server: native.Server, path: str, body: dict[str, object], piece: int = 1 << 16) -> Answer:
    """One request on a connection of its own."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        post(sock, path, body, piece)
        return answer_on(sock, ResponseDecoder())


def chat(words: str, tokens: int, **extra: object) -> dict[str, object]:
    """A chat request."""
    return {"model": "truth", "messages": [{"role": "user", "content": words}], "max_tokens": tokens, **extra}


@needs_cc
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
@pytest.mark.parametrize("tokens", [1, 2, 7])
def test_a_stream_has_one_event_a_token_then_usage_then_done(
    server: native.Server, path: str, tokens: int
) -> None:
    """What was asked for comes, token by token, and the counts agree."""
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    body = chat("hi", tokens, **usage) if "chat" in path else {"prompt": "hi", "max_tokens": tokens, **usage}
    answer = ask(server, path, body)
    expected = [EventClass.CONTENT] * tokens + [EventClass.USAGE, EventClass.DONE]
    assert list(answer.event_class) == expected
    assert "".join(answer.texts) == " can" * tokens
    assert (answer.output_tokens, answer.finish_reason, answer.done) == (tokens, "length", True)


@needs_cc
def test_without_stream_the_answer_is_whole_and_without_include_usage_there_is_none(
    server: native.Server,
) -> None:
    """The two switches of the API are read."""
    whole = ask(server, "/v1/chat/completions", chat("hi", 3))
    assert (whole.texts, whole.output_tokens) == ([" can can can"], 3)
    bare = ask(server, "/v1/chat/completions", chat("hi", 3, stream=True))
    assert list(bare.event_class) == [EventClass.CONTENT] * 3 + [EventClass.DONE]


@needs_cc
def test_a_request_in_pieces_and_keys_inside_the_prompt_are_read_right(server: native.Server) -> None:
    """The newer name of the limit wins, and what looks like a key inside a string is none."""
    words = 'say "max_tokens": 9 and "stream" and "user"'
    answer = ask(server, "/v1/chat/completions", chat(words, 5, max_completion_tokens=2, stream=True), 7)
    assert len(answer.texts) == 2
    assert [row.id for row in server.truth()] == ["say"]


@needs_cc
def test_a_connection_carries_one_request_after_another_and_two_at_once(server: native.Server) -> None:
    """Keep-alive, and a request that comes before the last answer has ended waits for it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        http = ResponseDecoder()
        post(sock, "/v1/chat/completions", chat("1", 2, stream=True))
        assert len(answer_on(sock, http).texts) == 2
        http.next()
        post(sock, "/v1/chat/completions", chat("2", 3, stream=True))
        assert len(answer_on(sock, http).texts) == 3
        post(sock, "/v1/chat/completions", chat("3", 1))
        post(sock, "/v1/chat/completions", chat("4", 1))
        received = b""
        while received.count(b"finish_reason") < 2:
            received += sock.recv(1 << 16)
    assert [row.id for row in server.truth()] == ["1", "2", "3", "4"]


@needs_cc
def test_the_truth_has_every_request_once_in_order_with_rising_instants(server: native.Server) -> None:
    """arrived <= read <= before[0] <= after[0] <= before[1] ..., one pair a token, and named by user or prompt."""
    for number in range(5):
        ask(server, "/v1/chat/completions", chat(f"{number}-x yz", 4, stream=True))
    ask(server, "/v1/completions", {"prompt": [12, 34], "max_tokens": 1, "user": "me"})
    truth = server.truth()
    assert [row.id for row in truth] == ["0-x", "1-x", "2-x", "3-x", "4-x", "me"]
    for row in truth:
        assert len(row.before_ns) == len(row.after_ns)
        pairs = [instant for pair in zip(row.before_ns, row.after_ns, strict=True) for instant in pair]
        assert [row.arrived_ns, row.read_ns, *pairs] == sorted([row.arrived_ns, row.read_ns, *pairs])
    assert [len(row.after_ns) for row in truth] == [4] * 5 + [1]
    assert json.loads(server.get("/arrivals")) == [row.arrived_ns for row in truth]


@needs_cc
def test_stats_are_those_of_the_truth_and_a_reset_forgets_both(server: native.Server) -> None:
    """The server's percentiles are numpy's over its own truth."""
    for number in range(8):
        ask(server, "/v1/chat/completions", chat(str(number), 5, stream=True))
    truth, stats = server.truth(), server.stats()
    gaps = np.concatenate([np.diff(row.after_ns) for row in truth]) / 1e6
    ttft = np.array([row.after_ns[0] - row.read_ns for row in truth]) / 1e6
    assert (stats["requests"], stats["tokens"]) == (8, 40)
    for name, values in (("itl_ms", gaps), ("ttft_ms", ttft)):
        found = stats[name]
        assert found["count"] == len(values)
        expected = [values.mean(), *np.percentile(values, [50, 90, 99]), values.max()]
        assert [found[key] for key in ("mean", "p50", "p90", "p99", "max")] == pytest.approx(
            expected, abs=1e-5
        )
    server.reset()
    assert server.truth() == []
    assert server.stats()["requests"] == 0


@needs_cc
def test_nonsense_is_refused_and_a_client_that_leaves_harms_nobody(server: native.Server) -> None:
    """Unknown paths, impossible lengths, a cut connection."""
    with pytest.raises(urllib.error.HTTPError, match="404"):
        server.get("/nothing")
    assert ask(server, "/v1/chat/completions", chat("x", 0)).error is not None
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        post(sock, "/v1/chat/completions", chat("gone", 1000, stream=True))
        sock.recv(1)
    assert len(ask(server, "/v1/chat/completions", chat("here", 3, stream=True)).texts) == 3
    assert json.loads(server.get("/v1/models"))["data"][0]["id"] == "truth"
    assert json.loads(server.get("/health")) == {"status": "ok"}


@needs_cc
def test_over_tls_the_answer_is_the_same(binaries: native.Binaries, tmp_path: Path) -> None:
    """Handshake, request, stream and truth, verified against the authority made for it."""
    if not binaries.tls:
        pytest.skip("no OpenSSL headers")
    certificate = loads.make_certificate(tmp_path)
    with native.serving(binaries, NOWHERE, 1_000, 500, certificate) as server:
        context = ssl.create_default_context(cafile=certificate.authority)
        with (
            socket.create_connection(("127.0.0.1", server.port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as sock,
        ):
            post(sock, "/v1/chat/completions", chat("7", 3, stream=True))
            assert len(answer_on(sock, ResponseDecoder()).texts) == 3
        assert [row.id for row in server.truth()] == ["7"]


@needs_cc
@pytest.mark.parametrize("tokens", [1, 6])
def test_the_floor_reads_every_request_to_its_end(binaries: native.Binaries, tokens: int) -> None:
    """What the drain says it has read is what the server says it has sent."""
    with native.serving(binaries, NOWHERE, 500, 200) as server:
        found = native.drained(binaries, NOWHERE, server, 4, 20, tokens)
        stats = server.stats()
    assert found.tokens == stats["tokens"] == 20 * tokens
    assert stats["requests"] == 20


@pytest.mark.skipif(sys.platform != "linux", reason="epoll")
def test_the_floor_in_python_reads_every_request_to_its_end(server: native.Server) -> None:
    """It asks for what it says and leaves when all answers have ended; the server agrees on how many there were."""
    found = native.bare(NOWHERE, server, 4, 20, 3)
    assert found.tokens == 60
    assert found.reads >= 20
    assert server.stats()["requests"] == 20


@needs_cc
def test_a_run_joins_with_the_truth_request_by_request(binaries: native.Binaries, tmp_path: Path) -> None:
    """The whole chain at its smallest: the command, its record, the server's, and none left over."""
    flags = [
        "--concurrency",
        "3",
        "--requests",
        "9",
        "--warmup",
        "2",
        "--input-tokens",
        "16",
        "--output-tokens",
        "5",
    ]
    with native.serving(binaries, NOWHERE, 2_000, 1_000) as server:
        run = instrument.measure(server, None, tmp_path, *flags)
        truth = server.truth()
    seen = joined(RunFolder.open(run.folder), truth)
    assert seen.missing == 0
    assert len(seen.ttft) == len(seen.ttft_true) == 9
    assert len(seen.gaps) == len(seen.gaps_true) == 9 * 4
    requests = run.summary["requests"]
    unmeasured = 2 + requests["lead_in"] + requests["lead_out"]
    assert len([row for row in truth if row.id[:9].isdecimal()]) == 9 + unmeasured
    assert run.summary["metrics"]["ttft_ms"]["n"] == 9


def test_a_synthetic_run_is_a_sealed_run_that_can_be_reported(tmp_path: Path) -> None:
    """`report` is timed on a folder like any other."""
    folder = costs.synthetic_run(tmp_path, 50)
    assert read_table(folder.record, RECORD).num_rows == 50
    from inferometer.run.evaluate import evaluate

    assert evaluate(folder).summary.requests.completed == 50


def test_without_a_compiler_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback over a missing cc."""
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(native.NoCompiler, match="apt-get install"):
        native.build()


def test_the_median_decides_about_a_goal_and_the_range_shows_the_spread() -> None:
    """Errors may have either sign; rates may not fall short; NaN is never good enough."""
    found: list[list[Figure | Note]] = [
        [
            Figure("error", value, "ms", at_most(0.1)),
            Figure("rate", 10 * value, "/s", at_least(1)),
            Note("a", "b"),
        ]
        for value in (-0.05, 0.09, 0.3)
    ]
    error, rate = rows("x", found)
    assert (error.median, error.met, rate.met) == (0.09, True, False)
    assert error.cells() == ["error", "0.090 ms", "-0.050 .. 0.300", "goal at most 0.100", "met"]
    assert not at_most(1).met(float("nan"))
    assert not at_least(1).met(float("nan"))
    assert not at_most(1).met(-2)
    assert notes(found) == [Note("a", "b")]
    assert table([error.cells(), rate.cells()]).count("\n") == 1


def test_every_benchmark_can_be_named_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelled name lists the right ones."""
    assert arguments(list(ALL)).names == list(ALL)
    with pytest.raises(SystemExit):
        arguments(["streams-1"])
    assert "streams-1000" in capsys.readouterr().err


def test_the_endpoints_of_the_scrape_benchmark_show_what_they_say() -> None:
    """Prometheus's own parser finds families of 22 samples, in text of which some moves and none goes back."""
    from prometheus_client.parser import text_string_to_metric_families

    bodies = [body.decode() for body in exposition(2_000, 2, 1)]
    first, second = (
        {
            (one.name, *one.labels.items()): one.value
            for family in text_string_to_metric_families(body)
            for one in family.samples
        }
        for body in bodies
    )
    assert len(first) == 2_000 // 22 * 22
    assert first.keys() == second.keys()
    moved = [key for key in first if "_usage" not in key[0] and first[key] != second[key]]
    assert moved
    assert all(first[key] < second[key] for key in moved)
