"""What each step of a session sent, put together a second time and compared with what was sent.

The client builds the body of a step while the load runs, from the answers to earlier ones. Here it is built again afterwards,
by other code and from other data: the schedule and the texts of the record.

    body of s      the schedule's, with `history` of the step that it goes on with in front of its own messages, at `own_at`
    own messages   of s: the schedule's body from `own_at` on, `own_len` bytes, with the nonce of this cycle
    history of s   history of what s goes on with, own messages of s, ",", the reply to s, ","

| the reply to s        | in the schedule                | is                                                              |
| --------------------- | ------------------------------ | --------------------------------------------------------------- |
| recorded              | `reply`                        | that                                                            |
| the server's in it    | `reply` with a zero byte       | that, with the answer's text as a JSON string in the byte's place |
| the server's          | null                           | {"role":"assistant","content":TEXT}                             |

The text is that of the answer, without reasoning and tool calls. The record holds the CRC-32 of the body that was handed to
the connection (`body_crc`), so a single byte that differs shows. A body is not compared, and counted by reason, where the text
of an answer that it repeats is not known:

| reason      | the record's text of that answer                                                              |
| ----------- | --------------------------------------------------------------------------------------------- |
| `not_kept`  | was not kept (`--keep-text`)                                                                  |
| `mixed`     | holds reasoning or tool calls beside the answer, or may hold them, in a record before 10      |
| `lossy`     | holds U+FFFD or a struck-out secret, in the place of another character it may be              |
| `no_record` | is missing: no successful row of the step before it                                           |

Where it only *may* be another, equal sums still show that the body is right; different ones show nothing then.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inferometer.journal.redact import STRUCK
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import EventClass, Outcome

COLUMNS = (
    "index",
    "cycle",
    "outcome",
    "text",
    "content",
    "event_class",
    "usage_reasoning",
    "session",
    "body_crc",
)
"""Of RECORD: what is read."""
_LOST = "\ufffd"
_HOLE = b"\0"
_OTHER = (int(EventClass.REASONING), int(EventClass.TOOL_CALL))
_CONTENT = int(EventClass.CONTENT)
_COLUMNS = ("phase", "session", "turn", "nonce_at", "nonce_len", "own_at", "own_len")
_STRIDE, _NONCES = 381_966_011, 10**9
"""By which the nonce of a step, nine digits, moves on with each cycle."""


@dataclass(frozen=True, slots=True)
class SentBodies:
    """`compared`: requests whose body was put together anew; `wrong`: of these, with another CRC; `first`: row of the schedule
    of the first such. `unchecked`: requests with a CRC that could not be compared, by reason. `continued`: of those compared,
    the ones that repeat something."""

    compared: int
    continued: int
    wrong: int
    first: int | None
    unchecked: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _History:
    """What a step that goes on with this one repeats; None: not known. `doubt`: why it may be another, or is not known."""

    said: bytes | None
    doubt: str | None = None


_NOTHING = _History(b"")
_MISSING = _History(None, "no_record")


def sent_bodies(
    schedule: Schedule, extends: Mapping[int, int] | None, parts: Iterable[pa.Table], *, streamed: bool
) -> SentBodies:
    """Compare the requests of a record. `extends`: of a row of the schedule, the one that it goes on with; rows that are not in
    it go on with none. None: conversations, in which each turn goes on with the one before it. `parts`: the record's, with
    COLUMNS, in its order. `streamed`: of an answer that was not, the record does not tell its reasoning apart.

    Raises pa.ArrowInvalid for a damaged schedule.
    """
    made = _Bodies(schedule, extends, streamed=streamed)
    for part in parts:
        columns = {name: part.column(name).to_pylist() for name in COLUMNS if name != "session"}
        for at, in_session in enumerate(pc.is_valid(part.column("session")).to_pylist()):
            if in_session:
                made.add({name: column[at] for name, column in columns.items()})
    return made.found()


def has_bodies(parts: Iterable[pa.Table]) -> bool:
    """Whether a record, of which `body_crc` is read, says of any request what it sent."""
    return any(part.column("body_crc").null_count < len(part) for part in parts)


class _Bodies:
    """The bodies of a record, one row after the other."""

    def __init__(self, schedule: Schedule, extends: Mapping[int, int] | None, *, streamed: bool) -> None:
        self._schedule, self._extends, self._streamed = schedule, extends, streamed
        schedule.table.validate(full=True)  # an offset that points elsewhere would be followed
        self._rows = {name: _numbers(schedule.table.column(name)) for name in _COLUMNS}
        self._reply = schedule.table.column("reply")
        named = [before for row in range(len(schedule)) if (before := self._before(row)) is not None]
        self._followers = np.bincount(np.array(named, np.int64), minlength=len(schedule))
        self._marked: dict[int, list[int]] = {}
        self._histories: dict[tuple[int, int], _History] = {}
        self._asked: Counter[tuple[int, int]] = Counter()
        self._compared = self._continued = self._wrong = 0
        self._first: int | None = None
        self._unchecked: Counter[str] = Counter()

    def _before(self, row: int) -> int | None:
        """The row that one goes on with."""
        if self._extends is not None:
            return self._extends.get(row)
        return row - 1 if row and self._rows["turn"][row] and self._rows["session"][row] >= 0 else None

    def add(self, one: Mapping[str, Any]) -> None:
        """The next request of the record."""
        row, cycle = one["index"], one["cycle"]
        if not 0 <= row < len(self._schedule):
            return
        body, history = self._body(row, cycle), self._history(row, cycle)
        if one["body_crc"] is not None:
            self._compare(row, body, history, one["body_crc"])
        if one["outcome"] == Outcome.OK and self._followers[row]:
            self._histories[row, cycle] = self._extended(row, body, history, one)

    def _history(self, row: int, cycle: int) -> _History:
        """What this step repeats. It is let go when all that go on with the same step have asked."""
        before = self._before(row)
        if before is None or self._rows["own_at"][row] < 0:
            return _NOTHING
        key = before, cycle
        self._asked[key] += 1
        if self._asked[key] < self._followers[before]:
            return self._histories.get(key, _MISSING)
        del self._asked[key]
        return self._histories.pop(key, _MISSING)

    def _compare(self, row: int, body: bytes, history: _History, crc: int) -> None:
        at = max(self._rows["own_at"][row], 0)
        said = history.said
        right = said is not None and crc == zlib.crc32(body[at:], zlib.crc32(said, zlib.crc32(body[:at])))
        if history.doubt is not None and not right:
            self._unchecked[history.doubt] += 1
            return
        self._compared += 1
        self._continued += bool(said)
        if not right:
            self._wrong += 1
            self._first = row if self._first is None else self._first

    def _extended(self, row: int, body: bytes, history: _History, one: Mapping[str, Any]) -> _History:
        """What goes on with this step repeats: the same as it, what it said itself, and the reply."""
        if history.said is None:
            return history
        reply, doubt = self._replied(row, one)
        if reply is None:
            return _History(None, doubt)
        at = self._rows["own_at"][row]
        own = body[at : at + self._rows["own_len"][row]]
        return _History(b"%b%b,%b," % (history.said, own, reply), history.doubt or doubt)

    def _replied(self, row: int, one: Mapping[str, Any]) -> tuple[bytes | None, str | None]:
        """The reply as it is repeated, None where it is not known; and why it may be another."""
        recorded: bytes | None = self._reply[row].as_py()
        if recorded is not None and _HOLE not in recorded:
            return recorded, None
        kinds: bytes = one["event_class"]
        other = any(kind in _OTHER for kind in kinds)
        content: str | None = one["content"]
        text: str = (one["text"] if content is None else content) or ""
        if _CONTENT not in kinds:
            text = ""
        elif other and content is None:
            return None, "mixed"
        elif not text:
            return None, "not_kept"
        unsure = content is None and (not self._streamed or one["usage_reasoning"])
        doubt = "mixed" if unsure else None
        if _LOST in text or STRUCK in text:
            doubt = "lossy"
        spelled = json.dumps(text, ensure_ascii=False).encode()
        if recorded is None:
            return b'{"role":"assistant","content":%b}' % spelled, doubt
        before, _, behind = recorded.partition(_HOLE)
        return before + spelled + behind, doubt

    def _body(self, row: int, cycle: int) -> bytes:
        """The schedule's, with the nonce of this cycle: of a step, its own moved on; of a turn, that of the row so many places
        on among those of its phase."""
        body, at, length = self._schedule.body(row), self._rows["nonce_at"][row], self._rows["nonce_len"][row]
        if not cycle or at < 0:
            return body
        if self._extends is None:
            nonce = self._other_nonce(row, cycle)
        else:
            digits = body[at : at + length]
            nonce = b"%09d" % ((int(digits) + cycle * _STRIDE) % _NONCES) if digits.isdigit() else digits
        return body[:at] + nonce + body[at + length :]

    def _other_nonce(self, row: int, cycle: int) -> bytes:
        phases, places = self._rows["phase"], self._rows["nonce_at"]
        mine = phases[row]
        if mine not in self._marked:
            rows = range(len(self._schedule))
            self._marked[mine] = [other for other in rows if phases[other] == mine and places[other] >= 0]
        marked = self._marked[mine]
        other = marked[(bisect_left(marked, row) + cycle) % len(marked)]
        begin = places[other]
        return self._schedule.body(other)[begin : begin + self._rows["nonce_len"][row]]

    def found(self) -> SentBodies:
        """Of all that were added."""
        return SentBodies(self._compared, self._continued, self._wrong, self._first, dict(self._unchecked))


def _numbers(column: pa.ChunkedArray) -> memoryview:
    """Plain ints one by one, -1 where null."""
    return np.ascontiguousarray(pc.fill_null(column, -1).to_numpy(), np.int64).data
