"""The record on disk: what was flushed survives, what is damaged is refused, what is secret is struck out."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.drive.exchange import Exchange
from inferometer.engines.openai import CHAT
from inferometer.errors import RecordError
from inferometer.journal import schedule
from inferometer.journal.folder import RunFolder
from inferometer.journal.outcomes import Outcomes
from inferometer.journal.redact import LEAST_PART, STRUCK, Redactor
from inferometer.journal.schedule import BATCH, Schedule, Scheduled
from inferometer.journal.schema import OUTCOME, PULSE, RECORD, EventClass, Outcome
from inferometer.journal.seal import LONGEST_FAILED, read_stream, read_table, run_of, seal, streams
from inferometer.journal.writer import FURTHER, MOST_LABELS, Journal
from inferometer.run.facts import read_facts

CANARY = 'sk-canary"\\/key'


def ended(row: int, *, text: str = "a b", detail: str = "", outcome: Outcome = Outcome.OK) -> Exchange:
    """A finished exchange, as the reactor would hand it over."""
    exchange = Exchange(row, 0, 1_000 + row, b"", b"", 0, CHAT)
    exchange.t_send = exchange.t_submit = 2_000 + row
    exchange.t_first_byte = exchange.t_end = 3_000 + row
    exchange.status = 200
    exchange.answer.mark(int(EventClass.ROLE), 3_000 + row)
    for i, word in enumerate(text.split()):
        exchange.answer.text(int(EventClass.CONTENT), word, 3_001 + row + i)
    exchange.answer.output_tokens = 2
    exchange.fail(outcome, detail)
    return exchange


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run folder with a schedule of 10 requests."""
    made = RunFolder.create(tmp_path, "test", 0)
    made.plan.write_text("{}")
    schedule.write(made.schedule, (Scheduled(i, 1, None, b"body", -1, 0, 7, 8, 9) for i in range(10)))
    return made


def test_a_folder_is_named_after_its_instant_and_never_reused(tmp_path: Path) -> None:
    """Two runs of one name in one second get two folders."""
    names = [RunFolder.create(tmp_path, "a", 1_700_000_000_000_000_000).path.name for _ in range(2)]
    assert names == ["20231114T221320Z-a", "20231114T221320Z-a.2"]


@given(st.lists(st.binary(max_size=40), max_size=40))
def test_a_schedule_gives_back_every_body(bodies: list[bytes]) -> None:
    """Whatever was scheduled is what will be sent, byte for byte."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "requests.arrow"
        schedule.write(path, (Scheduled(i, 1, i, body, -1, 0, 1, 1, 1) for i, body in enumerate(bodies)))
        back = Schedule(path)
        assert [back.body(i) for i in range(len(back))] == bodies


def test_a_schedule_of_many_batches_is_addressed_by_row(tmp_path: Path) -> None:
    """Row i is body i across the borders of the batches."""
    count = 2 * BATCH + 3
    schedule.write(tmp_path / "s", (Scheduled(i, 1, None, b"%d" % i, -1, 0, 1, 1, 1) for i in range(count)))
    back = Schedule(tmp_path / "s")
    for row in (0, BATCH - 1, BATCH, 2 * BATCH - 1, 2 * BATCH, count - 1):
        assert back.body(row) == b"%d" % row


def test_sealing_joins_outcomes_with_what_was_asked_and_counts_the_text(folder: RunFolder) -> None:
    """One row a request that ended, ordered by intended instant, with lengths asked, sent and counted."""
    for worker in (0, 1):
        journal = Journal(folder.journal, worker, Redactor(), "run")
        for row in range(worker, 10, 2):
            journal.add(ended(row), 1)
        journal.add_pulse(5, 1, worker or None, 2, 3, 4, 5, 6, 0, 5, 5, 10)
        journal.flush()
        journal.close()
    seal(folder, lambda texts: [len(text) for text in texts], "run")
    record = read_table(folder.record, RECORD)
    assert record.column("index").to_pylist() == list(range(10))
    assert record.column("input_tokens_sent").to_pylist() == [8] * 10
    assert record.column("output_tokens_local").to_pylist() == [2] * 10  # "ab": words joined as they came
    assert record.column("event_ns").to_pylist()[3] == [3003, 3004, 3005]
    assert record.column("event_class").to_pylist()[3] == bytes(
        [EventClass.ROLE, EventClass.CONTENT, EventClass.CONTENT]
    )
    assert record.column("t_connect").null_count == 10
    assert read_table(folder.pulse, PULSE).column("run_delay_ns").to_pylist() == [None, 1]


def test_texts_without_end_of_failed_answers_are_not_counted(folder: RunFolder) -> None:
    """Law: an answer that succeeded is counted whatever its length, a failed one up to LONGEST_FAILED."""
    long, short, failed = "x" * (LONGEST_FAILED + 1), "x" * LONGEST_FAILED, Outcome.TOO_LARGE
    journal = Journal(folder.journal, 0, Redactor(), "run")
    for row, (text, outcome) in enumerate(
        [(long, Outcome.OK), (long, failed), (short, failed), ("", failed)]
    ):
        journal.add(ended(row, text=text, outcome=outcome), 1)
    journal.flush()
    journal.close()
    seal(folder, lambda texts: [len(text) for text in texts], "run")
    record = read_table(folder.record, RECORD)
    assert record.column("output_tokens_local").to_pylist()[:3] == [len(long), None, len(short)]
    assert record.column("text_chars").to_pylist()[:3] == [len(long), len(long), len(short)]


def test_a_stream_cut_anywhere_gives_every_batch_before_the_cut(folder: RunFolder) -> None:
    """kill -9 at any byte: all flushed batches that are whole on disk can be read, and nothing else is made up."""
    journal = Journal(folder.journal, 0, Redactor(), "run")
    path = folder.journal / "worker-0.arrows"
    ends = [path.stat().st_size]
    for row in range(5):
        journal.add(ended(row), 1)
        journal.flush()
        ends.append(path.stat().st_size)
    journal.close()
    data = path.read_bytes()
    for cut in range(0, len(data), 97):
        path.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends[1:])
        assert streams(folder, "worker", OUTCOME).column("index").to_pylist() == list(range(whole))


@pytest.mark.parametrize("kind", ["worker", "pulse"])
def test_sealing_names_a_stream_that_does_not_go_on_to_its_end(kind: str, folder: RunFolder) -> None:
    """Law: cut at any byte, or damaged with its end in place, a stream is no whole one, whatever of it can be read."""
    journal = Journal(folder.journal, 0, Redactor(), "run")
    for row in range(3):
        journal.add(ended(row), 1)
        journal.add_pulse(row, 1, 1, 2, 3, 4, 5, 6, 0, 5, 5, 10)
        journal.flush()
    journal.close()
    path = folder.journal / f"{kind}-0.arrows"
    data = path.read_bytes()

    def cut() -> tuple[Path, ...]:
        folder.record.unlink(missing_ok=True)
        return seal(folder, lambda texts: [0 for _ in texts], "run").cut

    assert cut() == ()
    for end in (*range(0, len(data), 397), *range(len(data) - 9, len(data))):
        path.write_bytes(data[:end])
        assert cut() == (path,)
    path.write_bytes(data[: len(data) // 2] + data[-8:])
    assert cut() == (path,)


@pytest.mark.parametrize("loss", ["a stream", "half a stream"])
def test_sealing_again_replaces_no_record_by_one_of_fewer_requests(loss: str, folder: RunFolder) -> None:
    """Law: what was sealed stays, also where the journal has lost a part since: by damage, or by a kill as it was removed."""
    for worker in (0, 1):
        journal = Journal(folder.journal, worker, Redactor(), "run")
        for row in range(worker, 10, 2):
            journal.add(ended(row), 1)
            journal.flush()
        journal.close()
    assert not seal(folder, lambda texts: [0 for _ in texts], "run").kept
    whole = folder.record.read_bytes()
    stream = folder.journal / "worker-0.arrows"
    if loss == "a stream":
        stream.unlink()
    else:
        stream.write_bytes(stream.read_bytes()[: stream.stat().st_size // 2])
    assert seal(folder, lambda texts: [0 for _ in texts], "run").kept
    assert folder.record.read_bytes() == whole
    folder.record.write_bytes(whole[:-100])  # nothing can be read of it
    assert not seal(folder, lambda texts: [0 for _ in texts], "run").kept


@pytest.mark.parametrize("kind", ["worker", "pulse"])
def test_a_stream_of_another_run_is_refused(folder: RunFolder, kind: str) -> None:
    """Law: outcomes and pulses are sealed under the id of the run that wrote them, and under no other: both runs may have one
    schedule, so that nothing else of a stream tells them apart."""
    for run, worker in (("run", 0), ("other", 1)):
        journal = Journal(folder.journal, worker, Redactor(), run)
        journal.add(ended(worker), 1)
        journal.add_pulse(5, 1, None, 2, 3, 4, 5, 6, 0, 5, 5, 10)
        journal.flush()
        journal.close()
    (folder.journal / f"{'pulse' if kind == 'worker' else 'worker'}-1.arrows").unlink()
    with pytest.raises(
        RecordError, match=rf"{kind}-1\.arrows: is of another run \(other\) than .*the id run"
    ):
        seal(folder, lambda texts: [0 for _ in texts], "run")
    assert not folder.record.exists()


def test_a_stream_that_names_no_run_is_taken(folder: RunFolder) -> None:
    """Law: what an earlier build wrote is sealed beside what names this run."""
    for worker in (0, 1):
        journal = Journal(folder.journal, worker, Redactor(), "run")
        journal.add(ended(worker), 1)
        journal.flush()
        journal.close()
    path = folder.journal / "worker-0.arrows"
    rows = read_stream(path, OUTCOME)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, OUTCOME) as writer:
        writer.write_table(rows)
    seal(folder, lambda texts: [0 for _ in texts], "run")
    assert read_table(folder.record, RECORD).column("index").to_pylist() == [0, 1]


def test_files_of_another_version_are_refused(folder: RunFolder) -> None:
    """A reader refuses what it does not know instead of guessing."""
    other = OUTCOME.with_metadata({"inferometer": "outcome/99"})
    path = folder.journal / "worker-0.arrows"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, other):
        pass
    with pytest.raises(RecordError, match="version"):
        read_stream(path, OUTCOME)
    pq.write_table(RECORD.with_metadata({"inferometer": "record/99"}).empty_table(), folder.record)
    with pytest.raises(RecordError, match="version"):
        read_table(folder.record, RECORD)
    folder.facts.write_text('{"schema": "inferometer/run/99"}')
    with pytest.raises(RecordError, match="version"):
        read_facts(folder)


def test_a_record_of_the_version_before_has_no_server_durations(folder: RunFolder) -> None:
    """Version 3 is version 4 without the server's own durations: they are null, and nothing else differs."""
    journal = Journal(folder.journal, 0, Redactor(), "run")
    for row in range(10):
        exchange = ended(row)
        exchange.answer.server_total_ns, exchange.answer.server_load_ns = 10**10 + row, -1
        journal.add(exchange, 1)
    journal.flush()
    journal.close()
    seal(folder, lambda texts: [len(text) for text in texts], "run")
    record = read_table(folder.record, RECORD)
    added = [name for name in RECORD.names if name.startswith("server_")]
    assert len(added) == 4
    assert record.column("server_total_ns").to_pylist() == [10**10 + row for row in range(10)]
    assert record.column("server_load_ns").null_count == 10  # a negative duration is none
    earlier = record.drop_columns(added).replace_schema_metadata({"inferometer": "record/3"})
    pq.write_table(earlier, folder.record)
    again = read_table(folder.record, RECORD)
    assert again.schema.equals(RECORD, check_metadata=True)
    assert again.drop_columns(added) == record.drop_columns(added)
    assert all(again.column(name).null_count == len(again) for name in added)


def test_missing_and_damaged_files_are_named(folder: RunFolder, tmp_path: Path) -> None:
    """The error says which file and what may help."""
    with pytest.raises(RecordError, match="recover"):
        read_table(folder.record, RECORD)
    with pytest.raises(RecordError, match=r"not a run folder"):
        RunFolder.open(tmp_path / "nowhere")
    folder.schedule.write_bytes(b"nonsense")
    with pytest.raises(RecordError, match=r"requests\.arrow"):
        Schedule(folder.schedule)
    for damaged in ("{", '{"schema": "inferometer/run/2"}'):
        folder.facts.write_text(damaged)
        with pytest.raises(RecordError, match=r"run\.json"):
            read_facts(folder)
    folder.facts.unlink()
    with pytest.raises(RecordError, match=r"run\.json"):
        read_facts(folder)


def test_a_stream_with_a_column_of_a_union_is_damaged(tmp_path: Path) -> None:
    """Of which pyarrow makes no empty array."""
    path = tmp_path / "worker-0.arrows"
    union = pa.sparse_union([pa.field("a", pa.int64())])
    schema = pa.schema(
        [OUTCOME.field("t_intended"), OUTCOME.field("index"), pa.field("cycle", union)], OUTCOME.metadata
    )
    with pa.ipc.new_stream(str(path), schema):
        pass
    with pytest.raises(RecordError, match=r"worker-0\.arrows: damaged"):
        Outcomes([path])


def test_a_stream_whose_columns_have_no_names_is_damaged(tmp_path: Path) -> None:
    """As the sealed record of such."""
    path = tmp_path / "worker-0.arrows"
    with pa.ipc.new_stream(str(path), OUTCOME) as stream:
        stream.write_table(OUTCOME.empty_table())
    path.write_bytes(path.read_bytes().replace(b"server_total_ns", b"server_t\xfftal_ns"))
    for read in (lambda: read_stream(path, OUTCOME), lambda: Outcomes([path])):
        with pytest.raises(RecordError, match=r"worker-0\.arrows: damaged"):
            read()


@pytest.mark.parametrize("today", [True, False])
def test_a_null_where_each_row_has_a_value_is_damaged(tmp_path: Path, *, today: bool) -> None:
    """Law: whatever a file's schema says of it, a required column has no holes; sealing ends in words."""
    schema = (
        OUTCOME if today else pa.schema([field.with_nullable(True) for field in OUTCOME], OUTCOME.metadata)
    )
    arrays = [pa.nulls(2, field.type) for field in OUTCOME]
    path = tmp_path / "worker-0.arrows"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    with pytest.raises(RecordError, match=r"worker-0\.arrows: damaged \(2 rows without"):
        read_stream(path, OUTCOME)


def test_types_that_no_version_has_are_damaged(tmp_path: Path) -> None:
    """Nulls in no bytes at all, and one value in very many cells: neither is spelled out."""
    path = tmp_path / "pulse-0.arrows"
    one = pa.array([1]).dictionary_encode()
    for column in (pa.nulls(1), one, pa.array([[None]]), pa.array([[1]], pa.list_(one.type))):
        table = pa.table(dict.fromkeys(PULSE.names, column)).replace_schema_metadata(PULSE.metadata)
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)
        with pytest.raises(RecordError, match=r"pulse-0\.arrows: damaged .*which no version has"):
            read_stream(path, PULSE)


def test_a_record_whose_columns_have_no_names_is_damaged(folder: RunFolder) -> None:
    """Bytes that are no text, in the place of a column's name."""
    seal(folder, lambda texts: [0 for _ in texts], "run")
    whole = folder.record.read_bytes()
    folder.record.write_bytes(whole.replace(b"finish_reason", b"finish_r\xff\xffson"))
    for look in (lambda: read_table(folder.record, RECORD), lambda: run_of(folder.record)):
        with pytest.raises(RecordError, match="missing or damaged"):
            look()


def test_a_secret_that_the_server_echoes_reaches_no_file(folder: RunFolder) -> None:
    """A planted key in text, detail and finish reason is struck out before it is written, even where detail is cut."""
    journal = Journal(folder.journal, 0, Redactor([CANARY]), "run")
    echo = ended(0, text=f"your key is {CANARY}", detail="x" * 190 + CANARY, outcome=Outcome.HTTP_4XX)
    echo.answer.finish_reason = CANARY
    journal.add(echo, 1)
    journal.flush()
    journal.close()
    seal(folder, lambda texts: [0 for _ in texts], "run")
    spelled = (CANARY.encode(), json.dumps(CANARY)[1:-1].encode(), b"sk-canary")
    for path in folder.path.rglob("*"):
        if path.is_file():
            assert not any(form in path.read_bytes() for form in spelled), path
    row = read_table(folder.record, RECORD).to_pylist()[0]
    assert STRUCK in row["text"]
    assert not any("canary" in str(value) for value in row.values())


def test_a_server_that_invents_reasons_and_names_fills_no_record_with_them(folder: RunFolder) -> None:
    """Law: of a thousand answers with a finish reason and a model's name of their own the record has MOST_LABELS of each, and
    FURTHER for the others; one of the first comes back under its own name."""
    journal = Journal(folder.journal, 0, Redactor(), "run")
    for index in range(1_000):
        echo = ended(index)
        echo.answer.finish_reason = f"{index % 999:05d}" + "r" * 1_000
        echo.answer.model = f"model {index % 999}"
        journal.add(echo, 1)
    journal.flush()
    journal.close()
    rows = read_stream(folder.journal / "worker-0.arrows", OUTCOME).to_pylist()
    for name in ("finish_reason", "answered_as"):
        found = [row[name] for row in rows]
        assert len(set(found)) == MOST_LABELS + 1
        assert found.count(FURTHER) == 999 - MOST_LABELS
        assert found[999] == found[0] != FURTHER


@given(
    st.text('abc"\\ /%', min_size=1, max_size=8), st.text("0123", max_size=20), st.text("0123", max_size=20)
)
def test_a_redactor_strikes_every_occurrence_and_leaves_the_rest(
    secret: str, before: str, after: str
) -> None:
    """The text around a secret stays as it was; the secret, spelled plainly or as JSON or a URL would, does not."""
    redact = Redactor([secret])
    assert redact(before + after) == before + after
    for spelled in (secret, json.dumps(secret)[1:-1], quote(secret, safe="")):
        assert redact(before + spelled + after) == before + STRUCK + after


@given(st.integers(0, 400), st.integers(1, 300))
def test_a_text_cut_inside_a_secret_shows_no_part_of_it(cut: int, limit: int) -> None:
    """Wherever a quoting server's words were cut, nothing longer than a few characters of the key is left."""
    key = "eyJhbGciOi" + "0123456789abcdef" * 8
    said = f"bad key {key} and {key}"[:cut]
    shown = Redactor([key]).short(said, limit)
    assert key[:LEAST_PART] not in shown
    assert len(shown) <= limit


def test_counts_beyond_what_the_record_can_hold_are_unknown_not_fatal(folder: RunFolder) -> None:
    """A server may claim any number of tokens; the record takes what is possible and nulls the rest."""
    journal = Journal(folder.journal, 0, Redactor(), "run")
    absurd = ended(0)
    absurd.answer.output_tokens, absurd.answer.input_tokens = 1 << 40, -5
    journal.add(absurd, 1)
    journal.flush()
    journal.close()
    row = streams(folder, "worker", OUTCOME).to_pylist()[0]
    assert (row["usage_output"], row["usage_input"]) == (None, None)


def test_a_folder_without_a_plan_says_how_far_its_run_had_come(tmp_path: Path) -> None:
    """Law: killed before the plan was written, a run has nothing to recover, and the words say that and what to do; that of a
    campaign names what it has; a folder of something else is only said to be none."""
    killed = RunFolder.create(tmp_path, "run", 0).path
    (killed / "plan.json.part").write_text("{")
    with pytest.raises(RecordError, match=r"before anything was measured.*give the run's command again"):
        RunFolder.open(killed)
    campaign = tmp_path / "campaign"
    (campaign / "runs").mkdir(parents=True)
    (campaign / "tests.json").write_text("{}")
    with pytest.raises(RecordError, match=r"inferometer rerun .*campaign"):
        RunFolder.open(campaign)
    measured = RunFolder.create(campaign / "runs", "run", 0)
    measured.plan.write_text("{}")
    with pytest.raises(RecordError, match=r"inferometer recover.*" + measured.path.name):
        RunFolder.open(campaign)
    with pytest.raises(RecordError, match=r"no such folder"):
        RunFolder.open(tmp_path / "nowhere")
    (tmp_path / "other").mkdir()
    with pytest.raises(RecordError) as found:
        RunFolder.open(tmp_path / "other")
    assert str(found.value).endswith("(it holds no plan.json)")
