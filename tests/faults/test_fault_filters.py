"""What each fault does to the bytes of an answer: pieces in, steps out, read back with an independent HTTP decoder."""

from __future__ import annotations

import json
from array import array
from typing import Any

import h11
import pytest

from inferometer.server.answers import Each
from inferometer.server.fault_specs import KINDS, Met
from inferometer.server.fault_specs import parse as faults_of
from inferometer.server.filler_text import text
from inferometer.server.filters import Piece, Place, Step, Then, filter_of, payloads, reply
from inferometer.server.http_reply import Reply, stream_head
from inferometer.server.openai import Ask, Script, usage

TOKENS = 5
STREAMED = [name for name in KINDS if name not in ("refuse", "drop", "status", "html")]
HARMLESS = ["slow-headers", "trickle:bytes=3", "split=1", "split=7", "glue=3", "comments"]


class Sent:
    """A whole answer of the server's own, as pieces, with a place for each token's stamp. `together`: tokens an event."""

    def __init__(self, chat: bool = True, model: str = "modèle-模型", together: int = 1) -> None:
        ask = Ask("chat" if chat else "completions", True, True, 9, TOKENS)
        counts = usage(ask, TOKENS, 0)
        script = Script(model, ask.api)
        stem = script.stem("0" * 32, 1_800_000_000)
        self.stamps, self.ended = array("q"), array("q")
        self.pieces = [Piece(Place.HEAD, stream_head(True))]
        if chat:
            self.pieces.append(Piece(Place.EVENT, script.role(stem)))
        for token in range(0, TOKENS, together):
            count = min(together, TOKENS - token)
            finish = "length" if token + count == TOKENS else None
            event = script.event(stem, text(token, count), finish)
            stamps = self.stamps if count == 1 else Each(self.stamps, count)
            self.pieces.append(Piece(Place.TOKEN, event, stamps, count))
        self.pieces.append(Piece(Place.END, script.closing(stem, counts), self.ended))
        body = script.body("0" * 32, 1_800_000_000, text(0, TOKENS), "length", counts)
        self.whole = Piece(Place.WHOLE, Reply(200, body).encode(True), self.ended)

    def under(self, spec: str) -> list[Step]:
        """All steps of the streamed answer."""
        (fault,) = faults_of([spec])
        passed = filter_of(Met(fault, fault.name), TOKENS)
        return [step for piece in self.pieces for step in passed.take(piece)]

    def whole_under(self, spec: str) -> list[Step]:
        """All steps of the answer that is not streamed."""
        (fault,) = faults_of([spec])
        return list(filter_of(Met(fault, fault.name), TOKENS).take(self.whole))


def joined(steps: list[Step]) -> bytes:
    return b"".join(step.data for step in steps)


def body(data: bytes) -> bytes:
    """The body as h11 reads it; it must end where the bytes do."""
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(data)
    found = b""
    while not isinstance(event := reader.next_event(), h11.EndOfMessage):
        assert event is not h11.NEED_DATA
        found += bytes(event.data) if isinstance(event, h11.Data) else b""
    assert reader.trailing_data == (b"", False)
    return found


def events(data: bytes) -> list[Any]:
    """What the events hold, JSON or words; comments left out."""
    lines = [line[6:] for line in body(data).decode().split("\n\n") if line.startswith("data: ")]
    return [json.loads(line) if line.startswith("{") else line for line in lines]


def words(found: list[Any]) -> list[str]:
    """The text of each event that has any."""
    choices = [one["choices"][0] for one in found if isinstance(one, dict) and one["choices"]]
    texts = [one.get("text") or one.get("delta", {}).get("content") for one in choices]
    return [text for text in texts if text]


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("spec", HARMLESS)
def test_what_only_cuts_or_waits_changes_no_byte(spec: str, chat: bool) -> None:
    """The steps' bytes are the answer's, and every stamp is still there."""
    sent = Sent(chat)
    steps = sent.under(spec)
    assert joined(steps) == b"".join(piece.data for piece in sent.pieces)
    stamps = [stamp for step in steps for stamp in step.stamps]
    assert sum(stamp is sent.stamps for stamp in stamps) == TOKENS
    assert sum(stamp is sent.ended for stamp in stamps) == 1


@pytest.mark.parametrize("size", [1, 2, 5, 100, 10_000])
def test_a_split_cuts_at_every_so_many_bytes_and_stamps_the_last(size: int) -> None:
    """No part is longer, no part is empty, and a token's stamp belongs to the part that completes it; UTF-8 is cut too."""
    sent = Sent()
    steps = sent.under(f"split={size}")
    assert all(0 < len(step.data) <= size and step.wait_ns == 0 for step in steps)
    for piece in sent.pieces:
        part = b""
        while len(part) < len(piece.data):
            step = steps.pop(0)
            part += step.data
            assert bool(step.stamps) == (part == piece.data and piece.stamps is not None)
        assert part == piece.data
    broken = [step for step in Sent().under("split=1") if step.data >= b"\x80"]
    assert broken


def test_trickle_waits_before_each_part_and_slow_headers_before_the_first() -> None:
    """Waits are numbers; nothing here sleeps."""
    assert {step.wait_ns for step in Sent().under("trickle:bytes=9,ms=1.5")} == {1_500_000}
    assert [step.wait_ns for step in Sent().under("slow-headers:ms=20")][:3] == [20_000_000, 0, 0]


@pytest.mark.parametrize(("spec", "then"), [("reset", Then.RESET), ("hang", Then.HANG)])
@pytest.mark.parametrize("after", [0, 1, TOKENS, TOKENS + 100])
def test_a_cut_comes_after_so_many_tokens(spec: str, then: Then, after: int) -> None:
    """0: not even the head. An answer shorter than that is cut before its end. Nothing follows."""
    sent = Sent()
    steps = sent.under(f"{spec}:after={after}")
    assert [step.then for step in steps] == [Then.GO_ON] * (len(steps) - 1) + [then]
    tokens = sum(bool(step.stamps) for step in steps)
    assert tokens == min(after, TOKENS)
    assert bool(joined(steps)) == (after > 0)
    assert [step.then for step in sent.whole_under(f"{spec}:after={after}")] == [then]


def test_a_reset_may_come_late_and_a_close_comes_behind_the_whole_answer() -> None:
    """The wait is before the reset alone; what is closed has been answered to the last byte."""
    steps = Sent().under("sit=800")
    assert [(step.data, step.wait_ns, step.then) for step in steps] == [(b"", 800_000_000, Then.RESET)]
    sent = Sent()
    steps = sent.under("close")
    assert joined(steps) == b"".join(piece.data for piece in sent.pieces)
    assert [step.then for step in steps] == [Then.GO_ON] * len(sent.pieces) + [Then.CLOSE]
    assert [step.then for step in sent.whole_under("close")] == [Then.GO_ON, Then.CLOSE]


def test_glue_sends_several_events_at_once() -> None:
    """Role and five tokens and the end, three a send, behind a head by itself."""
    steps = Sent().under("glue=3")
    assert [step.data.count(b"data: {") for step in steps] == [0, 3, 3, 1]


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("count", [2, 3, TOKENS, 100])
def test_merged_tokens_keep_their_text_and_their_stamps(chat: bool, count: int) -> None:
    """An event holds `count` texts; the last may hold fewer, and it has the finish reason."""
    sent = Sent(chat)
    plain = words(events(joined([Step(piece.data) for piece in sent.pieces])))
    steps = sent.under(f"tokens-per-event={count}")
    found = events(joined(steps))
    assert words(found) == ["".join(plain[at : at + count]) for at in range(0, TOKENS, count)]
    assert sum(stamp is sent.stamps for step in steps for stamp in step.stamps) == TOKENS
    reasons = [one["choices"][0]["finish_reason"] for one in found[:-2]]
    assert reasons == [None] * (len(reasons) - 1) + ["length"]


def stamped(sent: Sent, steps: list[Step]) -> int:
    """Tokens of which the steps note that they have gone."""
    for step in steps:
        for stamp in step.stamps:
            stamp.append(1)
    return len(sent.stamps)


@pytest.mark.parametrize("name", ["reset", "hang"])
@pytest.mark.parametrize(("after", "sent_tokens"), [(0, 0), (1, 3), (3, 3), (4, 5), (5, 5), (100, 5)])
def test_a_cut_comes_behind_the_event_of_its_token(name: str, after: int, sent_tokens: int) -> None:
    """Events of three tokens and of two: an event is sent whole, and no answer comes to its end."""
    sent = Sent(together=3)
    steps = sent.under(f"{name}:after={after}")
    assert steps[-1].then is not Then.GO_ON
    assert stamped(sent, steps) == sent_tokens
    assert not sent.ended


@pytest.mark.parametrize(("after", "event"), [(0, 0), (2, 0), (3, 1), (4, 1), (100, 1)])
def test_damage_is_done_to_the_event_that_has_the_token(after: int, event: int) -> None:
    """Events of three tokens and of two, behind a head and a role: one of them, and every stamp is kept."""
    for name in ("malformed-json", "invalid-utf8", "huge-event", "broken-chunk"):
        sent = Sent(together=3)
        steps = sent.under(f"{name}:after={after}")
        changed = [step.data != piece.data for step, piece in zip(steps, sent.pieces, strict=True)]
        assert changed == [place == event + 2 for place in range(5)]
        assert stamped(sent, steps) == TOKENS


@pytest.mark.parametrize(("count", "groups"), [(2, [3, 2]), (3, [3, 2]), (4, [5]), (100, [5])])
def test_events_are_merged_until_they_have_enough_tokens(count: int, groups: list[int]) -> None:
    """Events of three tokens and of two are never cut: an event has `count` tokens or more, but for the last."""
    sent = Sent(together=3)
    plain = words(events(joined([Step(piece.data) for piece in Sent().pieces])))
    steps = sent.under(f"tokens-per-event={count}")
    ends = [sum(groups[: n + 1]) for n in range(len(groups))]
    expected = ["".join(plain[end - size : end]) for size, end in zip(groups, ends, strict=True)]
    assert words(events(joined(steps))) == expected
    assert stamped(sent, steps) == TOKENS


def test_the_terminator_is_left_out_or_doubled() -> None:
    """And nothing else."""
    plain = events(joined([Step(piece.data) for piece in Sent().pieces]))
    assert events(joined(Sent().under("no-done"))) == plain[:-1]
    assert events(joined(Sent().under("double-done"))) == [*plain, "[DONE]"]


@pytest.mark.parametrize("by", [-100, -2, 3])
def test_usage_is_off_by_so_many(by: int) -> None:
    """Output and total, streamed or whole, never below nothing; the body still has the length it says."""
    sent = Sent()
    for counts in (
        events(joined(sent.under(f"wrong-usage={by}")))[-2]["usage"],
        json.loads(body(joined(sent.whole_under(f"wrong-usage={by}"))))["usage"],
    ):
        assert counts["completion_tokens"] == max(0, TOKENS + by)
        assert counts["prompt_tokens"] == 9


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("after", [0, 2, 100])
def test_damage_is_done_to_one_token_and_framing_stays_whole(after: int, chat: bool) -> None:
    """Before and after it every event is as it was. An answer shorter than `after` has it in its last token."""
    sent = Sent(chat)
    plain = [piece.data for piece in sent.pieces]
    at = min(after, TOKENS - 1) + (2 if chat else 1)
    for name in ("malformed-json", "invalid-utf8", "huge-event", "broken-chunk"):
        steps = [step.data for step in sent.under(f"{name}:after={after}")]
        assert steps[:at] + steps[at + 1 :] == plain[:at] + plain[at + 1 :]
        if name == "broken-chunk":
            assert steps[at] == b"zz" + plain[at]
            continue
        body(b"".join(steps))
        (payload,) = payloads(steps[at])
        if name == "malformed-json":
            with pytest.raises(json.JSONDecodeError):
                json.loads(payload[6:])
        elif name == "invalid-utf8":
            with pytest.raises(UnicodeDecodeError):
                payload.decode()
            assert b'":"\xff' in payload
        else:
            assert words(events(b"".join(steps))) == words(events(b"".join(plain)))


@pytest.mark.parametrize("size", [1, 400, 401, 5000])
def test_a_padded_event_has_the_size_asked_for(size: int) -> None:
    """Or its own, if that is larger."""
    steps = Sent().under(f"huge-event:bytes={size},after=0")
    (payload,) = payloads(steps[2].data)
    assert len(payload) == size if size > 300 else len(payload) < 400
    assert json.loads(payload[6:])


def test_a_skewed_clock_shows_in_date_and_created_and_in_no_length() -> None:
    """By whole seconds, forward or back, streamed or whole."""
    sent = Sent()
    for spec, seconds in (("clock-skew:ms=3600000", 3600), ("clock-skew:ms=-1500", -2)):
        steps = sent.under(spec)
        assert {one["created"] for one in events(joined(steps)) if one != "[DONE]"} == {
            1_800_000_000 + seconds
        }
        plain = b"".join(piece.data for piece in sent.pieces)
        assert len(joined(steps)) == len(plain)
        assert joined(steps).split(b"Date: ")[1][:29] != plain.split(b"Date: ")[1][:29]
        assert json.loads(body(joined(sent.whole_under(spec))))["created"] == 1_800_000_000 + seconds


def test_comments_come_when_time_passes() -> None:
    """So often as asked, each a chunk of its own."""
    (fault,) = faults_of(["comments:ms=2"])
    passed = filter_of(Met(fault, "comments"), TOKENS)
    assert passed.every_ns == 2_000_000
    (step,) = passed.tick()
    assert list(payloads(step.data)) == [b": ping\n\n"]


def test_a_reply_takes_the_place_of_an_answer() -> None:
    """A page, or an error object, with Retry-After where that means something."""
    (page,) = faults_of(["html:status=502"])
    given = reply(Met(page, "html"))
    assert given is not None
    assert (given.status, given.content_type[:9], given.body[:9]) == (502, b"text/html", b"<!DOCTYPE")
    (status,) = faults_of(["status:429=0.5,500=0.5,retry-after=7"])
    for code, headers in ((429, ((b"Retry-After", b"7"),)), (500, ())):
        given = reply(Met(status, f"status:{code}", code))
        assert given is not None
        assert (given.status, given.headers) == (code, headers)
        assert "error" in json.loads(given.body)
        assert body(given.encode(True)) == given.body


@pytest.mark.parametrize("name", STREAMED)
def test_every_fault_has_a_filter_and_an_answer_of_one_token_can_bear_it(name: str) -> None:
    """`filter_of` knows each fault that changes bytes."""
    (fault,) = faults_of([name])
    assert reply(Met(fault, name)) is None
    passed = filter_of(Met(fault, name), 1)
    for piece in (*Sent().pieces[:3], Sent().pieces[-1]):
        list(passed.take(piece))
