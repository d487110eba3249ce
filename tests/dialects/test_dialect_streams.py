"""Streams and whole answers, as vendors document them and as vLLM sent them, each read by its dialect to what is written here.

Every file goes through HTTP and the exchange as a reply would: whole, byte by byte and in pieces of odd sizes, which must all
come to the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from feeding import same_however_cut
from wording import OF_JSON

from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import Http1Channel
from inferometer.engines.dialect import Dialect, load
from inferometer.engines.interface import Framing
from inferometer.journal.schema import EventClass

STREAMS = Path(__file__).resolve().parents[1] / "vectors" / "streams" / "dialects"
TYPES = {
    ".sse": "text/event-stream; charset=utf-8",
    ".ndjson": "application/x-ndjson",
    ".json": "application/json",
}
LETTERS = {
    "R": EventClass.ROLE,
    "C": EventClass.CONTENT,
    "T": EventClass.REASONING,
    "X": EventClass.TOOL_CALL,
    "F": EventClass.FINISH,
    "E": EventClass.ERROR,
    "#": EventClass.COMMENT,
    "-": EventClass.EMPTY,
    "D": EventClass.DONE,
}
"""A letter for each class; T is thinking."""
Counts = tuple[int | None, int | None, int | None, int | None]
NOTHING: Counts = (None, None, None, None)


@dataclass(frozen=True)
class Reading:
    """What a reply comes to. `usage`: tokens of prompt and answer, cached, of reasoning. `timings`: the server's durations of
    all, loading, prefill and decode (ns)."""

    outcome: str
    events: str
    text: str
    finish: str | None
    usage: Counts = NOTHING
    timings: Counts = NOTHING
    detail: str | None = field(default=None, compare=False)


OLLAMA = (10706818083, 6338219291, 130079000, 4232710000)

EXPECTED: dict[tuple[str, str], Reading] = {
    ("realtime", "realtime.ndjson"): Reading("ok", "R-RRCCRRRDD", "Hello there", "stop", (9, 3, 4, None)),
    ("realtime", "realtime-beta-length.ndjson"): Reading(
        "ok", "R-RRC-CD", "Hello there", "length", (9, 3, 4, None)
    ),
    ("realtime", "realtime-call.ndjson"): Reading("ok", "R-RXXD", '{"a":1}', "stop"),
    ("realtime", "realtime-failed.ndjson"): Reading("error_event", "R-RRCE", "Hello", "failed"),
    ("realtime", "realtime-error.ndjson"): Reading("error_event", "E", "", None),
    ("realtime", "realtime-truncated.ndjson"): Reading("truncated", "R-RRC", "Hello", None),
    ("realtime", "realtime-whole.json"): Reading("ok", "C", "Hello there", "stop", (9, 3, 4, None)),
    ("websocket", "websocket.ndjson"): Reading("ok", "RTCCD", "Hm.Hello there", "length", (9, 3, 4, 1)),
    ("websocket", "websocket-call.ndjson"): Reading("ok", "R--XXDD", '{"text":"a"}', "tool_calls"),
    ("websocket", "websocket-error.ndjson"): Reading("error_event", "RCE", "Hello", None),
    ("websocket", "websocket-truncated.ndjson"): Reading("truncated", "RC", "Hello", None),
    ("websocket", "websocket-whole.json"): Reading("ok", "C", "Hm.Hello there", "length", (9, 3, 4, 1)),
    ("responses", "responses-text.sse"): Reading(
        "ok", "RRRR" + "C" * 10 + "RRRD", "Hi there! How can I assist you today?", "stop", (37, 11, 16, 0)
    ),
    ("responses", "responses-reasoning-and-call.sse"): Reading(
        "ok", "RRRRTTRRRXXXRRD", '**Looking it up**get_weather{"location":"Paris"}', "stop", (291, 87, 0, 64)
    ),
    ("responses", "responses-refusal.sse"): Reading(
        "refused", "RRRRCCRD", "I'm sorry, I can't help with that.", "stop", (20, 12, 0, 0)
    ),
    ("responses", "responses-incomplete.sse"): Reading(
        "ok", "RRRRCCRRRD", "Once upon", "length", (9, 2, 0, 0)
    ),
    ("responses", "responses-failed.sse"): Reading("error_event", "RRRRCE", "Once", "failed"),
    ("responses", "responses-error.sse"): Reading("error_event", "RRE", "", None),
    ("responses", "responses-truncated.sse"): Reading("truncated", "RRRRCCRRR", "Once upon", None),
    ("responses", "responses-odd.sse"): Reading("ok", "RRRRCRRR--DD", "Hi", "stop"),
    ("responses", "responses-done-only.sse"): Reading(
        "ok", "RRTRCCRCXXD", "Hm. Hello there!wave{}", "stop", (9, 7, 0, 3)
    ),
    ("responses", "responses-completed-only.sse"): Reading("ok", "RCD", "Hello there!", "stop", (9, 7, 0, 3)),
    ("responses", "responses-named.sse"): Reading("ok", "RCCRD", "Hello there!", "stop", (9, 7, 0, 3)),
    ("anthropic", "anthropic-named.sse"): Reading("ok", "R#CFD", "Hello", "stop", (9, 2, None, None)),
    ("chat", "chat-named-error.sse"): Reading("error_event", "CE", "He", None),
    ("responses", "responses-whole.json"): Reading(
        "ok", "C", "Easy.In a peaceful groveget_weather{}", "stop", (36, 87, 12, 5)
    ),
    ("responses", "responses-whole-refused.json"): Reading(
        "refused", "C", "No.", "content_filter", (36, 2, 0, 0)
    ),
    # Recorded. A completed response whose details say that it is incomplete; counts of the prompt less what was cached.
    ("responses", "vllm-0.32-responses-text.sse"): Reading(
        "ok", "RRRRCCCCCCRRRD", "UND glob\n   ])ustedchars", "length", (25, 6, 0, 0)
    ),
    ("responses", "vllm-0.32-responses-cached.sse"): Reading(
        "ok", "RRRRCCCCRRRD", " reverseidth alreadyled", "length", (227, 4, 128, 0)
    ),
    ("responses", "vllm-0.32-responses-whole.json"): Reading(
        "ok", "C", "UND glob\n   ])ustedchars", "length", (25, 6, 0, 0)
    ),
    ("anthropic", "vllm-0.32-anthropic-text.sse"): Reading(
        "ok", "RRCCCCCCRFD", "UND glob\n   ])ustedchars", "length", (25, 6, 0, None)
    ),
    ("anthropic", "vllm-0.32-anthropic-cached.sse"): Reading(
        "ok", "RRCCCCRFD", " reverseidth alreadyled", "length", (227, 4, 128, None)
    ),
    ("anthropic", "vllm-0.32-anthropic-whole.json"): Reading(
        "ok", "C", "UND glob\n   ])ustedchars", "length", (25, 6, 0, None)
    ),
    ("anthropic", "anthropic-text.sse"): Reading("ok", "RR#CCRFD", "Hello!", "stop", (25, 15, None, None)),
    ("anthropic", "anthropic-thinking.sse"): Reading(
        "ok",
        "RRTTRRRCRFD",
        "Let me solve this step by step:27 * 453 = 12,231",
        "stop",
        (30, 60, 0, None),
    ),
    ("anthropic", "anthropic-tool-use.sse"): Reading(
        "ok",
        "RR#CCRX-XXRFD",
        'Okay,get_weather{"location": "San Francisco, CA"}',
        "tool_calls",
        (472, 89, None, None),
    ),
    ("anthropic", "anthropic-cached.sse"): Reading(
        "ok", "RRCRFD", "Yes", "length", (21 + 100 + 1792, 2, 1792, None)
    ),
    ("anthropic", "anthropic-refusal.sse"): Reading("refused", "RRCRFD", "I", "refusal", (25, 3, None, None)),
    ("anthropic", "anthropic-error.sse"): Reading("error_event", "RRCE", "Hel", None, (25, None, None, None)),
    ("anthropic", "anthropic-truncated.sse"): Reading(
        "truncated", "RR#CR", "Hello", None, (25, None, None, None)
    ),
    ("anthropic", "anthropic-unknown-events.sse"): Reading(
        "ok", "RRRR-CRFD", "Hi", "pause_turn", (25, 2, None, None)
    ),
    ("anthropic", "anthropic-whole.json"): Reading(
        "ok", "C", 'Hm.Hello!get_weather{"location":"Paris"}', "tool_calls", (15, 6, 3, None)
    ),
    ("anthropic", "anthropic-whole-error.json"): Reading("error_event", "", "", None),
    ("ollama-generate", "ollama-generate.ndjson"): Reading(
        "ok", "CCCD", "The sky is", "stop", (26, 259, None, None), OLLAMA
    ),
    ("ollama-generate", "ollama-generate-thinking.ndjson"): Reading(
        "ok", "T-CD", "HmFour", "stop", (26, 259, None, None), OLLAMA
    ),
    ("ollama-generate", "ollama-truncated.ndjson"): Reading("truncated", "CC", "The sky", None),
    ("ollama-generate", "ollama-malformed.ndjson"): Reading("bad_event", "CE", "The", None),
    ("ollama-generate", "ollama-generate-whole.json"): Reading(
        "ok", "C", "HmThe sky is blue", "stop", (26, 259, None, None), OLLAMA
    ),
    ("ollama-chat", "ollama-chat.ndjson"): Reading(
        "ok", "CCD", "The naïve", "length", (26, 259, None, None), OLLAMA
    ),
    ("ollama-chat", "ollama-chat-thinking-and-call.ndjson"): Reading(
        "ok", "TTXD", 'The user asksget_weather{"city":"Tokyo"}', "stop", (None, 259, None, None), OLLAMA
    ),
    ("ollama-chat", "ollama-error.ndjson"): Reading("error_event", "CE", "The", None),
    ("ollama-chat", "ollama-chat-whole.json"): Reading(
        "ok", "C", "Hello!", "stop", (26, 259, None, None), OLLAMA
    ),
    ("ollama-chat", "ollama-whole-error.json"): Reading("error_event", "E", "", None),
}


def fed(dialect: Dialect, pieces: list[bytes]) -> Exchange:
    """Feed these bytes to a channel, as the reactor does. The clock counts bytes: a piece arrives at the offset of its last."""
    channel, exchange, at = Http1Channel(), Exchange(0, 0, 0, b"", b"", 0, dialect), -1
    channel.opened()
    channel.submit(exchange)
    for piece in pieces:
        at += len(piece)
        channel.feed(piece, at, 0)
    assert channel.ended == [exchange]
    return exchange


def reading(dialect: Dialect, pieces: list[bytes]) -> Reading:
    exchange = fed(dialect, pieces)
    answer = exchange.answer
    letters = {int(kind): letter for letter, kind in LETTERS.items()}
    return Reading(
        exchange.outcome,
        "".join(letters[kind] for kind in answer.event_class),
        "".join(answer.texts),
        answer.finish_reason,
        (answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens),
        (
            answer.server_total_ns,
            answer.server_load_ns,
            answer.server_prefill_ns,
            answer.server_decode_ns,
        ),
        exchange.detail,
    )


def reply(file: str) -> bytes:
    """The file as the body of a chunked reply of one chunk, under the type that its vendor gives it."""
    body = (STREAMS / file).read_bytes()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {TYPES[Path(file).suffix]}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head.encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def test_every_file_and_every_interface_that_has_no_recording_is_here() -> None:
    """A new dialect comes with its streams, and a stream with what it says."""
    assert sorted({file for _, file in EXPECTED}) == sorted(
        path.name for path in STREAMS.iterdir() if path.suffix in TYPES
    )
    assert {api for api, _ in EXPECTED} >= set(OF_JSON) - {"chat", "completions"}


@pytest.mark.parametrize(("api", "file"), EXPECTED)
def test_a_reply_reads_as_written_here_however_it_is_cut(api: str, file: str) -> None:
    """Outcome, classes, text, finish reason, usage and the server's durations."""
    dialect = load(api)
    assert same_however_cut(reply(file), lambda pieces: reading(dialect, pieces)) == EXPECTED[api, file]


@pytest.mark.parametrize(
    ("api", "file"), [(api, file) for api, file in EXPECTED if not file.endswith(".json")]
)
def test_a_stream_may_end_behind_any_event_and_never_invents_one(api: str, file: str) -> None:
    """Cut anywhere in its body, a stream gives a beginning of its events, and is a success only with a finish reason."""
    dialect, whole = load(api), EXPECTED[api, file]
    head, body = reply(file).split(b"\r\n\r\n", 1)
    body = (STREAMS / file).read_bytes()
    for cut in range(0, len(body), 53):
        part = head + b"\r\n\r\n" + (b"%x\r\n%b\r\n" % (cut, body[:cut]) if cut else b"") + b"0\r\n\r\n"
        found = reading(dialect, [part])
        assert whole.events.startswith(found.events)
        assert whole.text.startswith(found.text)
        if found.outcome == "ok":
            assert found.finish is not None
            assert found.text == whole.text


@pytest.mark.parametrize(
    ("api", "file", "detail"),
    [
        ("responses", "responses-failed.sse", "The model failed to generate a response."),
        ("responses", "responses-error.sse", "Rate limit reached for gpt-4.1."),
        ("responses", "responses-truncated.sse", "neither a finish reason nor response.completed"),
        ("chat", "chat-named-error.sse", "upstream connect error"),
        ("anthropic", "anthropic-error.sse", "Overloaded"),
        ("anthropic", "anthropic-whole-error.json", "Internal server error"),
        ("anthropic", "anthropic-truncated.sse", "neither a finish reason nor message_stop"),
        (
            "ollama-chat",
            "ollama-error.ndjson",
            "an error was encountered while running the model: unexpected EOF",
        ),
        ("ollama-chat", "ollama-whole-error.json", "model requires more system memory"),
        (
            "ollama-generate",
            "ollama-truncated.ndjson",
            'neither a finish reason nor a line with "done": true',
        ),
    ],
)
def test_a_failure_gives_the_servers_words_or_what_is_missing(api: str, file: str, detail: str) -> None:
    """The message inside each vendor's error, and the vendor's own word for the end of a stream."""
    assert reading(load(api), [reply(file)]).detail == detail


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize("error", ['"no"', '{"message":"no"}', '{"type":"x","message":"no","code":500}'])
def test_an_error_in_the_shape_of_others_is_an_error(api: str, error: str) -> None:
    """A gateway in front of a server words errors in its own way: streamed or whole, in any dialect."""
    dialect = load(api)
    body = b'{"error":%b}' % error.encode()
    events = dialect.interface.framing is Framing.SSE
    stream = b"data: %b\n\n" % body if events else body + b"\n"
    kind = TYPES[".sse" if events else ".ndjson"]
    for sent, media in ((stream, kind), (body, "application/json")):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {len(sent)}\r\n\r\n"
        found = reading(dialect, [head.encode() + sent])
        assert (found.outcome, found.detail) == ("error_event", "no")


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize("payload", [b"{", b"null", b"[]", b"3", b'{"type":3}', b"\xff", b"[" * 10_000])
def test_a_dialect_never_raises(api: str, payload: bytes) -> None:
    """What is no event of the dialect is data: malformed, or an event without text."""
    dialect = load(api)
    for read in (dialect.read_event, dialect.read_whole):
        exchange = Exchange(0, 0, 0, b"", b"", 0, dialect)
        read(exchange.answer, payload, 1)
        assert exchange.answer.texts == []
