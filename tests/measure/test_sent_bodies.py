"""What steps sent, put together anew: every byte counts, and what cannot be known is said and not judged."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from session_play import FAN_OUT, Played, Step, play

from inferometer.drive.pacer import Ending, Hit
from inferometer.drive.share import Assignment, TurnShare
from inferometer.drive.shares import share_of
from inferometer.engines.dialect import GenerationRequest, messages_bytes
from inferometer.engines.openai import CHAT
from inferometer.journal.schedule import Schedule, Scheduled, write
from inferometer.journal.schema import RECORD, EventClass, Phase
from inferometer.measure.sent_bodies import COLUMNS, has_bodies, sent_bodies

TWO = (Step(), Step((0,), 0), Step((1,), 1))


def changed(played: Played, at: int, **values: Any) -> pa.Table:
    """The record with other values in one of its rows, in its order."""
    rows = played.table().to_pylist()
    rows[at] |= values
    return pa.Table.from_pylist(rows, schema=RECORD)


def test_every_request_of_a_session_is_compared_and_right() -> None:
    """First steps by their own bodies, the others with all that they repeat."""
    found = play([FAN_OUT] * 3).bodies()
    assert (found.compared, found.continued, found.wrong, found.unchecked) == (15, 9, 0, {})


def test_one_byte_of_a_text_or_of_a_sum_that_differs_shows() -> None:
    """Of the answer that is repeated, or of what was sent; also in all steps that repeat it."""
    played = play([TWO])
    assert played.bodies(changed(played, 0, text="another answer")).wrong == 2
    assert played.bodies(changed(played, 1, text="another answer")).wrong == 1
    assert played.bodies(changed(played, 2, text="another answer")).wrong == 0
    found = played.bodies(changed(played, 1, body_crc=7))
    assert (found.wrong, found.first) == (1, 1)


def test_recorded_replies_need_no_text_and_a_hole_in_one_holds_the_servers() -> None:
    """Recorded tool calls stay, whatever text the server's answer has."""
    calls = b'{"role":"assistant","content":\0,"tool_calls":[{"id":"a","type":"function"}]}'
    recorded = b'{"role":"assistant","content":"said","tool_calls":[]}'
    steps = (Step(reply=recorded), Step((0,), 0, reply=calls), Step((1,), 1))
    played = play([steps])
    assert (played.bodies().wrong, played.bodies().continued) == (0, 2)
    assert played.bodies(changed(played, 0, text=None)).unchecked == {}
    assert played.bodies(changed(played, 1, text="other")).wrong == 1


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"text": None}, "not_kept"),
        ({"text": "caf\ufffd"}, "lossy"),
        ({"text": "the key is [redacted]"}, "lossy"),
        ({"event_class": bytes([EventClass.REASONING, EventClass.CONTENT])}, "mixed"),
        ({"event_class": bytes([EventClass.CONTENT, EventClass.TOOL_CALL])}, "mixed"),
        ({"usage_reasoning": 3, "text": "thoughts and an answer"}, "mixed"),
        ({"outcome": "timeout"}, "no_record"),
    ],
)
def test_what_cannot_be_known_is_counted_by_its_reason_and_not_judged(
    values: dict[str, Any], reason: str
) -> None:
    """Whoever repeats such an answer is not compared, nor whoever repeats that."""
    played = play([TWO])
    found = played.bodies(changed(played, 0, **values))
    assert found.wrong == 0
    assert found.unchecked == {reason: 2}
    assert (found.compared, found.continued) == (1, 0)


@pytest.mark.parametrize("other", [EventClass.REASONING, EventClass.TOOL_CALL])
def test_a_record_that_tells_the_content_apart_shows_what_was_repeated(other: EventClass) -> None:
    """Beside reasoning or tool calls as without them: the right content is right, and another one is wrong."""
    played = play([TWO])
    said = played.table().to_pylist()[0]["text"]
    beside = {"event_class": bytes([other, EventClass.CONTENT]), "text": f"hm, {said}", "usage_reasoning": 3}
    for content, wrong in ((said, 0), (f"hm, {said}", 2)):
        found = played.bodies(changed(played, 0, content=content, **beside))
        assert (found.unchecked, found.wrong) == ({}, wrong)


def test_equal_sums_show_that_a_body_is_right_even_where_its_text_is_in_doubt() -> None:
    """Reasoning that was counted and not sent, or an answer that was not streamed: the text may be all of the answer."""
    played = play([TWO], usage_reasoning=3)
    assert (played.bodies().continued, played.bodies().unchecked) == (2, {})
    assert played.bodies(streamed=False).continued == 2
    other = changed(played, 0, text="another")
    assert played.bodies(other, streamed=False).wrong == 0


def test_an_answer_of_tool_calls_alone_is_repeated_as_an_empty_text() -> None:
    """As the client repeats it: the text of class content, and there is none."""
    played = play([TWO])
    own = [body_with(played, at) for at in range(2)]
    empty = messages_bytes([("assistant", "")])
    second = played.schedule[1].body
    at = played.schedule[1].own_at
    sent = second[:at] + own[0] + b"," + empty + b"," + second[at:]
    table = changed(played, 0, event_class=bytes([EventClass.TOOL_CALL] * 4))
    rows = table.to_pylist()
    rows[1]["body_crc"] = zlib.crc32(sent)
    found = played.bodies(pa.Table.from_pylist(rows[:2], schema=RECORD))
    assert (found.wrong, found.continued) == (0, 1)


def body_with(played: Played, at: int) -> bytes:
    one = played.schedule[at]
    return one.body[one.own_at : one.own_at + one.own_len]


def turns(count: int, nonce: bool) -> list[Scheduled]:
    """Two conversations of so many turns, with nonces in their first turns."""
    rows: list[Scheduled] = []
    for session in range(2):
        for turn in range(count):
            words = f"00000000{session} and {turn}"
            body, own = CHAT.body(GenerationRequest("m", words, 5)), messages_bytes([("user", words)])
            at = body.index(own)
            rows.append(
                Scheduled(
                    len(rows),
                    int(Phase.MEASURE),
                    None,
                    body,
                    body.index(words.encode()) if nonce and not turn else -1,
                    9 if nonce and not turn else 0,
                    1,
                    1,
                    5,
                    session=session,
                    turn=turn,
                    turns=count,
                    own_at=at,
                    own_len=len(own),
                )
            )
    return rows


@pytest.mark.parametrize("nonce", [True, False])
def test_conversations_as_the_client_sends_them_are_right_in_every_cycle(nonce: bool, tmp_path: Path) -> None:
    """Held to the client itself (drive/share.py), which puts bodies together by other code, with the nonces of later cycles."""
    write(tmp_path / "requests.arrow", turns(3, nonce))
    schedule = Schedule(tmp_path / "requests.arrow")
    share = share_of(schedule, Assignment(Phase.MEASURE, 1))
    assert isinstance(share, TurnShare)
    rows: list[dict[str, Any]] = []
    for cycle in range(3):
        for at in range(6):
            body, text = share.body(Hit(at, cycle, 0)), f"reply {cycle}.{at}"
            share.ended(Ending(at, cycle, 0, True), text)
            rows.append(
                {"index": at, "cycle": cycle, "outcome": "ok", "text": text, "event_class": bytes([EventClass.CONTENT]),
                 "usage_reasoning": None, "session": at // 3, "body_crc": zlib.crc32(body)}
            )  # fmt: skip
    schema = pa.schema([RECORD.field(name) for name in COLUMNS])
    table = pa.Table.from_pylist(rows, schema=schema)
    found = sent_bodies(schedule, None, [table], streamed=True)
    assert (found.compared, found.continued, found.wrong, found.unchecked) == (18, 12, 0, {})


def test_a_record_that_says_of_no_request_what_it_sent_has_no_bodies() -> None:
    """As those of earlier versions."""
    table = play([TWO]).table()
    assert has_bodies([table.slice(0, 0), table])
    assert not has_bodies([play([TWO], body_crc=None).table()])


def test_rows_that_the_schedule_does_not_have_are_none_of_its_requests() -> None:
    """A folder may be a stranger's."""
    played = play([TWO])
    assert played.bodies(changed(played, 2, index=99)).compared == 2
