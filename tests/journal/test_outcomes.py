"""Outcomes in the order of the record, piece by piece: as if all had been sorted in memory at once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.journal.folder import RunFolder
from inferometer.journal.outcomes import Outcomes
from inferometer.journal.schedule import Scheduled, write
from inferometer.journal.schema import OUTCOME, PULSE, RECORD
from inferometer.journal.seal import read_table, record_parts, seal, streams

ENDED = st.tuples(
    st.integers(0, 4),
    st.integers(0, 9),
    st.none() | st.text(max_size=30),
    st.lists(st.integers(0, 99), max_size=4),
    st.sampled_from(["ok", "timeout"]),
)
"""When a request was due, its index, its text, its events, how it ended. Few instants, so that some are the same."""
STREAMS = st.lists(st.lists(st.lists(ENDED, max_size=5), max_size=6), min_size=1, max_size=3)
"""Of each worker, batches of what ended."""


def outcome(index: int, at: int, **given: Any) -> dict[str, Any]:
    """A row of OUTCOME."""
    values: dict[str, Any] = dict.fromkeys(OUTCOME.names) | {
        "index": index, "cycle": 0, "phase": 1, "worker": 0, "t_intended": at, "t_taken": at, "t_end": at + 5,
        "event_ns": [], "event_class": b"", "first_text": -1, "first_visible": -1, "first_answer": -1,
        "outcome": "ok", "attempts": 1, "lag_ns": 0,
    }  # fmt: skip
    return values | given


def folder_of(place: Path, workers: list[Any]) -> RunFolder:
    """A folder with the journals of these workers."""
    folder = RunFolder.create(place, "t", 0)
    write(folder.schedule, (Scheduled(at, 1, None, b"x", -1, 0, at, 2 * at, 9) for at in range(10)))
    for worker, batches in enumerate(workers):
        with (
            pa.OSFile(str(folder.journal / f"worker-{worker}.arrows"), "wb") as sink,
            pa.ipc.new_stream(sink, OUTCOME) as stream,
        ):
            for batch in batches:
                rows = [
                    outcome(
                        index, due, worker=worker, text=text, event_ns=events,
                        event_class=b"\x01" * len(events), outcome=ended,
                    )
                    for due, index, text, events, ended in batch
                ]  # fmt: skip
                stream.write_batch(pa.RecordBatch.from_pylist(rows, schema=OUTCOME))
    return folder


@given(STREAMS, st.integers(1, 12), st.integers(1, 4_000))
def test_pieces_of_any_size_are_the_whole_sorted_table(workers: list[Any], rows: int, size: int) -> None:
    """Law: the pieces, one behind the other, are all streams sorted by instant and index, ties in the order of the streams."""
    with tempfile.TemporaryDirectory() as place:
        folder = folder_of(Path(place), workers)
        outcomes = Outcomes(sorted(folder.journal.glob("worker-*.arrows")))
        pieces = list(outcomes.pieces(rows, size))
        order = [("t_intended", "ascending"), ("index", "ascending")]
        assert pa.concat_tables([OUTCOME.empty_table(), *pieces]).equals(
            streams(folder, "worker", OUTCOME).sort_by(order)
        )
        assert all(0 < len(piece) <= rows for piece in pieces)
        assert len(outcomes) == sum(map(len, pieces))


@given(STREAMS)
def test_the_parts_of_a_sealed_record_are_its_columns(workers: list[Any]) -> None:
    """Law: what is read part by part is what is read at once; the joined columns are those of the row's index."""
    with tempfile.TemporaryDirectory() as place:
        folder = folder_of(Path(place), workers)
        seal(folder, lambda texts: [len(text) for text in texts], "run")
        record = read_table(folder.record, RECORD)
        columns = ["index", "event_ns", "outcome", "text_words"]
        assert pa.concat_tables(record_parts(folder.record, columns)).equals(record.select(columns))
        for row in record.to_pylist():
            assert (row["input_tokens_asked"], row["input_tokens_sent"]) == (row["index"], 2 * row["index"])
            length = None if row["text"] is None else len(row["text"])
            assert (row["output_tokens_local"], row["text_chars"]) == (length, length)
        assert read_table(folder.pulse, PULSE).num_rows == 0


@pytest.mark.parametrize("keep", ["none", "errors"])
def test_text_that_is_not_kept_leaves_every_other_column(keep: Any, tmp_path: Path) -> None:
    """Only `text` differs from a record that keeps it: all that is counted in a text was counted before."""
    batch = [
        (at, at, f"word {at} \u200b \ufffd" * at, [1], "ok" if at % 2 else "reset") for at in range(1, 9)
    ]
    records = []
    for kept in ("all", keep):
        folder = folder_of(tmp_path / kept, [[batch]])
        seal(folder, lambda texts: [len(text) for text in texts], "run", kept)
        records.append(read_table(folder.record, RECORD))
    whole, less = records
    assert less.drop_columns(["text"]).equals(whole.drop_columns(["text"]))
    failed = [ended != "ok" for ended in whole.column("outcome").to_pylist()]
    texts = whole.column("text").to_pylist()
    expected = [text if keep == "errors" and bad else None for text, bad in zip(texts, failed, strict=True)]
    assert less.column("text").to_pylist() == expected
    assert all(texts)
