"""Sealing conversations: what a turn repeated becomes part of its prompt, as long as the answers really were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Scheduled, write
from inferometer.journal.schema import OUTCOME, RECORD
from inferometer.journal.seal import read_table, seal


def outcome(index: int, at: int, **given: Any) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(OUTCOME.names) | {
        "index": index, "cycle": 0, "phase": 1, "worker": 0, "t_intended": at, "t_taken": at, "t_end": at + 5,
        "event_ns": [], "event_class": b"", "first_text": -1, "first_visible": -1, "first_answer": -1,
        "outcome": "ok", "attempts": 1, "lag_ns": 0,
    }  # fmt: skip
    return values | given


def test_asked_and_sent_include_what_was_repeated(tmp_path: Path) -> None:
    """The server's replies by the tokenizer over their text, as the server reads them anew; with reasoning in them, or without
    a text, by its usage less that; recorded ones as the schedule has them; every cycle of a session by itself; requests that
    stand alone as they are, and so do steps of recorded agent sessions, whose length is not known."""
    turns = [(0, 0, None), (0, 1, None), (0, 2, None), (1, 0, b"{}"), (1, 1, b"{}"), (None, 0, None)]
    rows = [
        Scheduled(
            at, 1, None, b"x", -1, 0, 10, 11, 5, session=session, turn=turn, turns=3, reply=reply,
            input_tokens_repeated=100 * turn,
        )
        for at, (session, turn, reply) in enumerate(turns)
    ]  # fmt: skip
    rows += [Scheduled(6 + at, 1, None, b"x", -1, 0, 0, 0, 5, session=2, turn=at, turns=3) for at in range(2)]
    folder = RunFolder.create(tmp_path, "t", 0)
    write(folder.schedule, rows)
    told = [
        outcome(0, 10, text="some thoughts", usage_output=30, usage_reasoning=10),
        outcome(1, 20, text="four words of answer", usage_output=7),
        outcome(2, 30),
        outcome(3, 11, usage_output=99),
        outcome(4, 21),
        outcome(5, 12),
        outcome(0, 40, cycle=1, usage_output=1),
        outcome(1, 50, cycle=1),
        outcome(6, 60, usage_output=20),
        outcome(7, 70, usage_output=10),
    ]
    with (
        pa.OSFile(str(folder.journal / "worker-0.arrows"), "wb") as sink,
        pa.ipc.new_stream(sink, OUTCOME) as writer,
    ):
        writer.write_batch(pa.RecordBatch.from_pylist(told, schema=OUTCOME))
    seal(folder, lambda texts: [len(text.split()) for text in texts], "run")
    record = read_table(folder.record, RECORD)
    found = {
        (row["index"], row["cycle"]): (
            row["input_tokens_asked"],
            row["input_tokens_sent"],
            row["input_tokens_repeated"],
        )
        for row in record.to_pylist()
    }
    assert found == {
        (0, 0): (10, 11, 0),
        (1, 0): (10 + 31, 11 + 31, 31),  # 11 sent before, and 20 answered
        (2, 0): (10 + 46, 11 + 46, 46),  # 31 + 11 sent, and 4 words
        (3, 0): (10, 11, 0),
        (4, 0): (110, 111, 100),
        (5, 0): (10, 11, 0),
        (0, 1): (10, 11, 0),
        (1, 1): (10 + 12, 11 + 12, 12),
        (6, 0): (0, 0, 0),
        (7, 0): (0, 0, 0),
    }
    assert record.column("session").to_pylist().count(None) == 1
