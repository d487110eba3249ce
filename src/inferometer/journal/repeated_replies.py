"""Conversations when they are sealed: what a turn repeats is part of the tokens asked for and sent.

How long the server's own replies are is known now. A turn repeats their text, which the server reads anew: as other tokens
than it generated, where several sequences spell the same text. So they are counted by the tokenizer, as the rest of a
prompt is; of a reply of more than content, which is repeated alone, and without a tokenizer, it is the server's count less
the reasoning.

Nobody counts what a step of a recorded agent session sends: both are 0 in its row, and stay so. Its steps may branch, so that
one repeats other answers than those before it in the record.
"""

from __future__ import annotations

import pyarrow as pa

from inferometer.journal.schema import RECORD, EventClass

_NAMES = (
    "session",
    "cycle",
    "phase",
    "turn",
    "turns",
    "input_tokens_asked",
    "input_tokens_sent",
    "input_tokens_repeated",
)
_REPLIES = ("usage_output", "usage_reasoning", "output_tokens_local", "event_class")


class RepeatedReplies:
    """What the turns so far come to, over the pieces of a record in its order: a conversation's turns are due one after the
    other."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, int, int], int] = {}

    def added(self, record: pa.Table, recorded: list[bool]) -> pa.Table:
        """The next rows of a record with what they repeat. `recorded`: turns whose recorded reply is repeated instead, and
        whose tokens the schedule knows."""
        session, cycle, phase, turn, turns, asked, sent, known = (
            record.column(name).to_pylist() for name in _NAMES
        )
        said = [
            _repeated(*one)
            for one in zip(*(record.column(name).to_pylist() for name in _REPLIES), strict=True)
        ]
        before = self._before
        for row, fixed in enumerate(recorded):
            if session[row] is None or not sent[row]:
                continue
            key = (phase[row], session[row], cycle[row])
            repeated = known[row] if fixed else before.get(key, 0) if turn[row] else 0
            before[key] = repeated + sent[row] + said[row]
            if turn[row] + 1 >= turns[row]:
                del before[key]  # nothing repeats the last
            asked[row] += repeated
            sent[row] += repeated
            known[row] = repeated
        for name, values in zip(_NAMES[-3:], (asked, sent, known), strict=True):
            at = record.schema.get_field_index(name)
            record = record.set_column(at, RECORD.field(name), pa.array(values, pa.int32()))
        return record


def _repeated(usage: int | None, thought: int | None, local: int | None, kinds: bytes) -> int:
    """The tokens of a reply as the next turn repeats it."""
    more = thought or EventClass.REASONING in kinds or EventClass.TOOL_CALL in kinds
    if local is not None and (usage is None or not more):
        return local
    return max(0, (usage or 0) - (thought or 0))
