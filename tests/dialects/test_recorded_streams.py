"""What real engines sent, byte for byte, read by our decoders and by others that share no code with them.

The other reading: h11 for HTTP, fed a byte at a time; the event stream by the standard's own steps, a byte at a time;
`json.loads` for the rest. Both must come to the same `Reading`, and to the same byte for each event, however the bytes are cut.
After that, every quirk by its name, with its numbers written out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import h11
import pytest
from feeding import same_however_cut

from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import Http1Channel
from inferometer.engines.openai import CHAT
from inferometer.journal.schema import EventClass

STREAMS = Path(__file__).resolve().parents[1] / "vectors" / "streams"
ROW = re.compile(
    r"^\| `(?P<file>[^`]+\.http)` \| [^|]* \| (?P<status>\d+) \| (?P<after>closed|kept open) \|", re.MULTILINE
)
INDEX = {row["file"]: row for row in ROW.finditer((STREAMS / "README.md").read_text(encoding="utf-8"))}


@dataclass
class Reading:
    """All that a reply says. `firsts` are the events of ttft_any, ttft and ttfo; `usage` is input, output, cached."""

    status: int = 0
    outcome: str = ""
    text: str = ""
    classes: list[str] = field(default_factory=list)
    usage: tuple[int | None, int | None, int | None] = (None, None, None)
    finish: str | None = None
    firsts: tuple[int, int, int] = (-1, -1, -1)
    done: bool = False
    keep_alive: bool = False


# Ours.


def fed(pieces: list[bytes], *, closed: bool = False) -> tuple[Exchange, Http1Channel]:
    """Feed these bytes to a channel, as the reactor does. The clock counts bytes: a piece arrives at the offset of its last."""
    channel, exchange, at = Http1Channel(), Exchange(0, 0, 0, b"", b"", 0, CHAT), -1
    channel.opened()
    channel.submit(exchange)
    exchange.t_submit, exchange.sent_whole = 1, True
    for piece in pieces:
        at += len(piece)
        channel.feed(piece, at, 0)
    if closed:
        channel.peer_closed(at)
    return exchange, channel


def ours(pieces: list[bytes], *, closed: bool) -> Reading:
    exchange, channel = fed(pieces)
    keep_alive = channel.capacity == 1
    if closed:
        channel.peer_closed(sum(map(len, pieces)) - 1)
    answer = exchange.answer
    return Reading(
        status=exchange.status,
        outcome=exchange.outcome,
        text="".join(answer.texts),
        classes=[EventClass(kind).name.lower() for kind in answer.event_class],
        usage=(answer.input_tokens, answer.output_tokens, answer.cached_tokens),
        finish=answer.finish_reason,
        firsts=(answer.first_text, answer.first_visible, answer.first_answer),
        done=answer.done,
        keep_alive=keep_alive,
    )


# The others'.


@dataclass
class Message:
    """A response as h11 reads it: each byte of the body with its offset in what was sent."""

    status: int
    kind: str
    body: list[tuple[int, int]]
    keep_alive: bool


def by_h11(data: bytes, *, closed: bool) -> Message:
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    reader.send(h11.EndOfMessage())
    message, ended = Message(0, "", [], False), False
    for offset, piece in enumerate([data[i : i + 1] for i in range(len(data))] + [b""] * closed):
        reader.receive_data(piece)
        while not ended and (event := reader.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                message.status = event.status_code
                message.kind = dict(event.headers).get(b"content-type", b"").decode()
            elif isinstance(event, h11.Data):
                message.body += [(byte, offset) for byte in bytes(event.data)]
            else:
                assert isinstance(event, h11.EndOfMessage)
                ended = True
                message.keep_alive = reader.their_state is h11.DONE
    assert ended
    return message


def by_the_book(body: list[tuple[int, int]]) -> Iterator[tuple[str | None, int]]:
    """Payloads of the event stream (None for a comment), each with the offset of the byte that ended it."""
    line, lines, after_cr = bytearray(), list[str](), False
    for byte, offset in body:
        if byte == 0x0A and after_cr:
            after_cr = False
            continue
        after_cr = byte == 0x0D
        if byte not in (0x0A, 0x0D):
            line.append(byte)
            continue
        words, line = line.decode("utf-8"), bytearray()
        name, _, value = words.partition(":")
        if not words and lines:
            yield "\n".join(lines), offset
            lines = []
        elif words.startswith(":"):
            yield None, offset
        elif name == "data":
            lines.append(value.removeprefix(" "))


def class_of(payload: str | None) -> tuple[str, str, dict[str, Any]]:
    """Class and text of one event, and its JSON."""
    if payload is None:
        return "comment", "", {}
    if payload == "[DONE]":
        return "done", "", {}
    event = json.loads(payload)
    if not event["choices"]:
        return "usage", "", event
    [choice] = event["choices"]
    said = choice["delta"] if "delta" in choice else {"content": choice["text"]}
    if said.get("content"):
        return "content", said["content"], event
    if choice["finish_reason"]:
        return "finish", "", event
    return ("role" if "role" in said else "empty"), "", event


def add(reading: Reading, kind: str, text: str, event: dict[str, Any]) -> None:
    first, visible, _ = reading.firsts
    if text and first < 0:
        first = len(reading.classes)
    if text.strip() and visible < 0:
        visible = len(reading.classes)
    reading.firsts = (first, visible, visible)  # no recording thinks aloud
    reading.classes.append(kind)
    reading.text += text
    for choice in event.get("choices", ()):
        reading.finish = choice["finish_reason"] or reading.finish
    if event.get("usage"):
        cached = (event["usage"].get("prompt_tokens_details") or {}).get("cached_tokens")
        reading.usage = (event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"], cached)


def theirs(data: bytes, *, closed: bool) -> Reading:
    message = by_h11(data, closed=closed)
    reading = Reading(status=message.status, keep_alive=message.keep_alive)
    if message.status != 200:
        reading.outcome = f"http_{message.status // 100}xx"
        return reading
    if message.kind.startswith("text/event-stream"):
        for payload, _ in by_the_book(message.body):
            add(reading, *class_of(payload))
        reading.done = "done" in reading.classes
    else:
        event = json.loads(bytes(byte for byte, _ in message.body))
        [choice] = event["choices"]
        add(
            reading, "content", choice["message"]["content"] if "message" in choice else choice["text"], event
        )
        reading.done = True
    ended = reading.done or reading.finish is not None
    reading.outcome = ("ok" if reading.text.strip() else "empty") if ended else "truncated"
    return reading


# The files.


def closed(file: str) -> bool:
    return INDEX[file]["after"] == "closed"


@cache
def sent(file: str) -> bytes:
    return (STREAMS / file).read_bytes()


def read(file: str) -> Reading:
    """Our reading of a file, the same however it is cut."""
    return same_however_cut(sent(file), lambda pieces: ours(pieces, closed=closed(file)))


def detail(file: str) -> str | None:
    exchange, _ = fed([sent(file)], closed=closed(file))
    return exchange.detail


def payloads(file: str) -> list[str | None]:
    return [payload for payload, _ in by_the_book(by_h11(sent(file), closed=closed(file)).body)]


def events(file: str) -> list[dict[str, Any]]:
    return [json.loads(payload) for payload in payloads(file) if payload not in (None, "[DONE]")]


def files(*parts: str) -> list[str]:
    return [file for file in INDEX if any(part in file for part in parts)]


def test_the_index_and_the_folder_name_the_same_files() -> None:
    """Every recording is in the index, from which these tests are made, and every line of the index has its recording."""
    assert sorted(INDEX) == sorted(path.name for path in STREAMS.glob("*.http"))
    assert {file.partition("-")[0] for file in INDEX} == {"mlx", "vllm", "llamacpp"}


@pytest.mark.parametrize("file", INDEX)
def test_every_recorded_reply_reads_as_others_read_it_however_it_is_cut(file: str) -> None:
    """Status, outcome, text, classes, usage, finish reason, first tokens and fate of the connection, for any cut."""
    found = read(file)
    assert found == theirs(sent(file), closed=closed(file))
    assert found.status == int(INDEX[file]["status"])


@pytest.mark.parametrize("file", files("stream"))
def test_every_event_is_stamped_with_the_byte_that_ended_it(file: str) -> None:
    """Fed byte by byte, an event's time is that of its own last byte: not of its first, nor of the next event's."""
    data = sent(file)
    exchange, _ = fed([data[i : i + 1] for i in range(len(data))], closed=closed(file))
    book = by_the_book(by_h11(data, closed=closed(file)).body)
    assert list(exchange.answer.event_ns) == [offset for _, offset in book]


# The quirks.


@pytest.mark.parametrize(
    ("file", "content"), [("vllm-0.32-chat-stream.http", ""), ("llamacpp-0.5-chat-stream.http", None)]
)
def test_a_first_event_with_a_role_alone_is_no_token(file: str, content: str | None) -> None:
    """Empty or null content beside a role makes a role event, and the first token is the next one."""
    assert events(file)[0]["choices"][0]["delta"] == {"role": "assistant", "content": content}
    found = read(file)
    assert found.classes[:2] == ["role", "content"]
    assert found.firsts[0] == 1


def test_a_role_in_every_event_does_not_hide_the_text() -> None:
    """mlx-lm repeats the role beside each text: these are content events."""
    file = "mlx-0.32-chat-stream.http"
    assert all("role" in event["choices"][0]["delta"] for event in events(file) if event["choices"])
    assert "role" not in read(file).classes


@pytest.mark.parametrize(
    "file", [file for file in files("mlx-0.32") if "chat-stream" in file or "held" in file]
)
def test_keep_alive_comments_before_the_first_token_are_events_without_text(file: str) -> None:
    """mlx-lm's `: keepalive n/m` has a class of its own, and never is a first token."""
    assert b"\n: keepalive " in sent(file)
    found = read(file)
    comments = found.classes.count("comment")
    assert found.classes[:comments] == ["comment"] * comments
    assert found.firsts[0] == comments > 0


def test_timings_are_no_usage() -> None:
    """llama.cpp adds `timings` to its last event even when no usage was asked for; then there are no counts."""
    bare, full = "llamacpp-0.5-chat-stream-no-usage.http", "llamacpp-0.5-chat-stream.http"
    assert "timings" in events(bare)[-1]
    assert "timings" in events(full)[-1]
    assert read(bare).usage == (None, None, None)
    assert read(bare).classes[-2:] == ["finish", "done"]
    assert read(full).usage[1] == 12


@pytest.mark.parametrize("file", files("-stream", "-whole", "llamacpp-0.5-error-model"))
def test_timings_are_the_servers_own_durations(file: str) -> None:
    """llama.cpp's milliseconds for prompt and answer, to the nanosecond, streamed or whole; it has no total, others nothing."""

    def durations(pieces: list[bytes]) -> tuple[int | None, int | None, int | None]:
        answer = fed(pieces, closed=closed(file))[0].answer
        return answer.server_total_ns, answer.server_prefill_ns, answer.server_decode_ns

    found = same_however_cut(sent(file), durations)
    if not file.startswith("llamacpp"):
        assert found == (None, None, None)
        return
    sizes = re.findall(rb'"(?:prompt|predicted)_ms":([0-9.]+)', sent(file))[-2:]
    assert found == (None, *(int(Decimal(size.decode()) * 1_000_000) for size in sizes))


def test_a_usage_event_is_known_by_its_usage_whatever_object_it_names() -> None:
    """mlx-lm calls the last event of a text completion `chat.completion`; it is a usage event all the same."""
    file = "mlx-0.32-completions-stream.http"
    assert events(file)[-1]["object"] == "chat.completion"
    found = read(file)
    assert found.classes[-2:] == ["usage", "done"]
    assert found.usage[:2] == (3, 12)


def test_usage_inside_the_ending_event_counts() -> None:
    """llama.cpp's completions have no usage event of their own: the finish event holds it."""
    found = read("llamacpp-0.5-completions-stream.http")
    assert found.classes[-2:] == ["finish", "done"]
    assert found.usage[:2] == (3, 12)


@pytest.mark.parametrize(
    "file", files("vllm-0.32-chat-stream.", "vllm-0.32-completions-stream.", "vllm-0.32-ids")
)
def test_a_finish_reason_on_the_last_token_loses_neither(file: str) -> None:
    """vLLM ends with the last token's own event: its text is kept, its reason taken, and no finish event is made up."""
    last = [event for event in events(file) if event["choices"]][-1]["choices"][0]
    text = last["delta"]["content"] if "delta" in last else last["text"]
    found = read(file)
    assert (last["finish_reason"], found.finish) == ("length", "length")
    assert text
    assert found.text.endswith(text)
    assert "finish" not in found.classes


def test_two_events_in_one_chunk_are_two_events_of_one_instant() -> None:
    """llama.cpp sends role and first token, and end and usage, in one chunk each: same arrival, two classes."""
    data = sent("llamacpp-0.5-chat-stream.http")
    edges = [found.start() for found in re.finditer(rb"[0-9a-f]+\r\ndata", data)]
    pieces = [data[a:b] for a, b in zip([0, *edges], [*edges, len(data)], strict=True)]
    exchange, _ = fed(pieces, closed=True)
    at, kinds = list(exchange.answer.event_ns), [EventClass(k).name for k in exchange.answer.event_class]
    assert (kinds[0], kinds[1], at[0] == at[1]) == ("ROLE", "CONTENT", True)
    assert (kinds[-3], kinds[-2], at[-3] == at[-2]) == ("FINISH", "USAGE", True)
    assert len(set(at)) == len(at) - 2


@pytest.mark.parametrize("file", [file for file in files("mlx-") if "whole" not in file])
def test_a_body_without_length_ends_with_the_connection(file: str) -> None:
    """mlx-lm answers HTTP/1.0: a stream or an error is complete when it closes, not before, and the connection with it."""
    assert sent(file).startswith(b"HTTP/1.0 ")
    exchange, channel = fed([sent(file)])
    assert (channel.exchanges, channel.ended, exchange.outcome) == ((exchange,), [], "")
    channel.peer_closed(len(sent(file)))
    assert (channel.exchanges, channel.ended, channel.closing) == ((), [exchange], True)
    assert exchange.outcome


@pytest.mark.parametrize("file", files("llamacpp-0.5-chat-stream.", "llamacpp-0.5-completions-stream."))
def test_a_close_behind_a_kept_alive_stream_takes_nothing_away(file: str) -> None:
    """llama.cpp announces a connection it then closes: the reply is whole without the close, and with it."""
    assert ours([sent(file)], closed=False) == ours([sent(file)], closed=True)
    assert read(file).keep_alive


@pytest.mark.parametrize(
    ("file", "outcome", "words"),
    [
        ("mlx-0.32-error-field.http", "http_4xx", "Request did not contain messages"),
        ("mlx-0.32-error-path.http", "http_4xx", "Not Found"),
        ("vllm-0.32-error-model.http", "http_4xx", "The model `absent` does not exist. Valid aliases: tiny."),
        ("vllm-0.32-error-path.http", "http_4xx", "Not Found"),
        ("llamacpp-0.5-error-field.http", "http_4xx", "'messages' is required"),
        ("llamacpp-0.5-error-path.http", "http_4xx", "File Not Found"),
    ],
)
def test_an_error_of_any_shape_gives_the_servers_words(file: str, outcome: str, words: str) -> None:
    """`{"error": "..."}`, `{"error": {"message": ...}}`, `{"detail": ...}` and bare text: the words alone are kept."""
    assert (read(file).outcome, detail(file)) == (outcome, words)


def test_the_same_fault_is_the_servers_or_ours_as_the_server_says() -> None:
    """A body that is no JSON is 400 to two engines and 500 to llama.cpp; the class is the status's."""
    found = {file.partition("-")[0]: read(file).outcome for file in files("error-json")}
    assert found == {"mlx": "http_4xx", "vllm": "http_4xx", "llamacpp": "http_5xx"}


def test_a_model_nobody_asked_for_may_still_answer() -> None:
    """llama.cpp serves any model name with its one model: a success, and nothing in the reply tells."""
    assert read("llamacpp-0.5-error-model.http").outcome == "ok"


def test_an_event_with_empty_text_is_neither_a_token_nor_an_end() -> None:
    """vLLM sends an event for half a character too: its class is `empty`, it is no first token, and the counts hold."""
    found = read("vllm-0.32-held-stream.http")
    assert found.classes == ["empty"] * 2 + ["content"] + ["empty"] * 8 + ["finish", "usage", "done"]
    assert (found.outcome, found.firsts, found.usage[1]) == ("ok", (2, 2, 2), 12)


@pytest.mark.parametrize("file", ["mlx-0.32-held-stream.http", "llamacpp-0.5-held-stream.http"])
def test_characters_held_back_make_fewer_events_than_tokens(file: str) -> None:
    """Twelve tokens, and a text for only some: the number of events is not the number of tokens."""
    found = read(file)
    assert found.usage[1] == 12
    assert 0 < found.classes.count("content") < 12
    assert "empty" not in found.classes


def test_a_stream_without_done_is_whole_if_it_told_its_reason() -> None:
    """mlx-lm tripped after its finish reason and closed: the answer stands, without usage and without [DONE]."""
    found = read("mlx-0.32-broken-stream.http")
    assert (found.outcome, found.finish, found.done) == ("ok", "length", False)
    assert found.usage == (None, None, None)


def test_a_stream_that_ends_without_reason_is_truncated() -> None:
    """The same reply closed one event earlier is not a success, although HTTP/1.0 sees nothing wrong."""
    data = sent("mlx-0.32-broken-stream.http")
    cut = data[: data.rindex(b"data: ")]
    found = same_however_cut(cut, lambda pieces: ours(pieces, closed=True))
    assert (found.outcome, found.finish) == ("truncated", None)
    assert found.text


@pytest.mark.parametrize("file", files("vllm-0.32-chat-stream.", "llamacpp-0.5-chat-stream."))
def test_a_chunked_stream_that_is_cut_off_never_ends(file: str) -> None:
    """Closed before the last chunk, a chunked reply is not complete, whatever its events said."""
    data = sent(file).removesuffix(b"0\r\n\r\n")
    exchange, channel = fed([data], closed=True)
    assert exchange.answer.done
    assert (channel.exchanges, channel.ended) == ((exchange,), [])


def test_usage_on_every_event_counts_once() -> None:
    """vLLM's continuous usage grows from event to event; the last one stands, and text events stay text events."""
    file = "vllm-0.32-continuous-usage-stream.http"
    assert all(event["usage"] for event in events(file))
    found, plain = read(file), read("vllm-0.32-chat-stream.http")
    assert found.usage == plain.usage
    assert (found.classes, found.text) == (plain.classes, plain.text)


@pytest.mark.parametrize("file", files("end-stream"))
def test_an_answer_that_ends_at_once_is_empty_not_lost(file: str) -> None:
    """The model's first token was its last: no text, reason `stop`, and whatever the server counted."""
    found = read(file)
    assert (found.outcome, found.finish, found.text) == ("empty", "stop", "")


@pytest.mark.parametrize("file", files("stop-stream"))
def test_a_stop_string_ends_an_answer_by_reason_stop(file: str) -> None:
    """Shorter than asked and not an error."""
    found = read(file)
    assert (found.outcome, found.finish) == ("ok", "stop")
    assert (found.usage[1] or 0) < 12


@pytest.mark.parametrize("file", files("cached-stream"))
def test_cached_tokens_are_taken_where_the_engine_reports_them(file: str) -> None:
    """A prompt seen before: all three engines found a part of it, at most all of it."""
    prompt, _, hit = read(file).usage
    assert prompt is not None
    assert hit is not None
    assert 0 < hit <= prompt


def test_llamacpp_says_when_it_emitted_each_token_if_it_is_asked_to() -> None:
    """Draft 4.6.3, option C: the sum of its two durations in each event, from 1.265 ms on; the last event repeats no instant.
    Without `timings_per_token` only the end has times, and no event has an instant."""
    stamped, _ = fed([sent("llamacpp-0.5-stamps-stream.http")])
    decoded = [0.001, 0.672, 0.941, 1.191, 1.437, 1.685, 1.966, 2.534, 3.159, 3.419, 3.671]
    assert stamped.answer.stamps.tolist() == [1_265_000 + round(1e6 * each) for each in decoded]
    assert len(stamped.answer.stamps) == len(stamped.answer.texts)
    assert (stamped.answer.server_prefill_ns, stamped.answer.server_decode_ns) == (1_265_000, 3_671_000)
    plain, _ = fed([sent("llamacpp-0.5-chat-stream.http")])
    assert plain.answer.stamps.tolist() == []
    assert plain.answer.texts == stamped.answer.texts
