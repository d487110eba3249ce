"""The index of results: what it holds, two writers at once, and files that are no index, or not a whole one."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from histories import entry, history
from msgspec.structs import replace

from inferometer.documents.history import HistoryEntry
from inferometer.errors import RecordError
from inferometer.studies.history import keeping, lines
from inferometer.studies.history.index import Damaged, Index, set_aside

NOW = 1_767_225_600_000_000_000
NOW_S = NOW / 1e9 + 30 * 86_400


def kept(path: Path) -> list[HistoryEntry]:
    with Index.open(path) as opened:
        return [one.entry for one in opened.entries()]


def filled(path: Path, count: int = 3) -> Path:
    with Index.open(path) as opened:
        opened.add(one.entry for one in history([10.0] * count))
    return path


def test_what_is_added_is_read_back_the_same(tmp_path: Path) -> None:
    """In the order of adding, with every member; nothing but the index is left."""
    entries = [entry(1, {"ttft_p50": 1.5}), entry(2, {}, kind="comparison", verdict="regression", seed=None)]
    with Index.open(tmp_path / "history.sqlite3") as opened:
        opened.add(entries)
    assert kept(tmp_path / "history.sqlite3") == entries
    assert [one.name for one in tmp_path.iterdir()] == ["history.sqlite3"]


def test_a_result_is_in_it_once_and_its_newest_form_counts(tmp_path: Path) -> None:
    """A report that was written again replaces its entry, which keeps its number."""
    path = filled(tmp_path / "history.sqlite3")
    again = entry(2, {"ttft_p50": 11.0}, verdict="INVALID")
    with Index.open(path) as opened:
        opened.add([again])
        assert [(one.number, one.entry.verdict) for one in opened.entries()] == [
            (1, "VALID"),
            (2, "INVALID"),
            (3, "VALID"),
        ]


def test_what_others_add_during_a_rebuild_stays(tmp_path: Path) -> None:
    """A rebuild takes the place of what was there when it began."""
    path = filled(tmp_path / "history.sqlite3")
    with Index.open(path) as rebuilding, Index.open(path) as other:
        before = rebuilding.newest()
        other.add([entry(9, {})])
        rebuilding.replace([entry(1, {}), entry(2, {})], before)
        assert sorted(one.entry.id for one in rebuilding.entries()) == ["run-1", "run-2", "run-9"]


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from histories import entry
from inferometer.studies.history.index import Index
sys.stdin.read(1)  # both begin together
for number in range({first}, {first} + {count}):
    with Index.open(Path({path!r})) as opened:
        opened.add([entry(number, {{"ttft_p50": float(number)}}), entry(number, {{}}, part="second")])
"""


def test_two_processes_write_to_a_new_index_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    """Each opens it anew for each result, as commands do, beginning with one that does not exist."""
    path, count = tmp_path / "history.sqlite3", 60
    tests = str(Path(__file__).parents[1])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER.format(tests=tests, first=first, count=count, path=str(path))],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for first in (1, 1 + count)
    ]
    for one in writers:
        assert one.stdin is not None
        one.stdin.write(b"x")
        one.stdin.close()
    errors = [one.stderr.read() for one in writers if one.stderr is not None]
    assert [(one.wait(timeout=120), error) for one, error in zip(writers, errors, strict=True)] == [
        (0, b"")
    ] * 2
    assert {(one.id, one.part) for one in kept(path)} == {
        (f"run-{number}", part) for number in range(1, 2 * count + 1) for part in ("", "second")
    }
    assert [one.name for one in tmp_path.iterdir()] == ["history.sqlite3"]


def _foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE precious (value)")
        other.execute("INSERT INTO precious VALUES (42)")
    other.close()


def _with(statement: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        with sqlite3.connect(path) as ours:
            ours.execute(statement)
        ours.close()

    return spoil


def _overwritten(start: int, data: bytes) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        whole = bytearray(path.read_bytes())
        whole[start : start + len(data)] = data
        path.write_bytes(whole)

    return spoil


def _hot_journal(path: Path, superior: str = "precious.txt") -> None:
    """What SQLite takes for the journal of a transaction that was cut off and hung on another file: it deletes that one."""
    magic, name, sector, page = bytes.fromhex("d9d505f920a163d7"), superior.encode(), 512, 4096
    head = magic + struct.pack(">IIIII", 0, 1, path.stat().st_size // page, sector, page)
    tail = struct.pack(">I", 0x40000000 // page + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    path.with_name(f"{path.name}-journal").write_bytes(head.ljust(sector, b"\0") + tail)


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "is no SQLite database"),
    "text": (lambda path: path.write_text("my notes\n" * 50), "is no SQLite database"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "is damaged"),
    "pages overwritten": (_overwritten(4096, b"\xff" * 4096), "is damaged"),
    "another program's": (_foreign, "is the database of another program"),
    "with a trigger": (
        _with("CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry; END"),
        "its tables are not those of an index",
    ),
    "an instant that is none": (
        _with("UPDATE entry SET document = replace(document, '2026-01-02T', 'yesterday')"),
        "an entry is damaged",
    ),
    "a number beyond all": (
        _with("UPDATE entry SET document = replace(document, '10.0,', '1e999,')"),
        "an entry is damaged",
    ),
    "without a write-ahead log": (_with("PRAGMA journal_mode = DELETE"), "has no write-ahead log"),
    "with a rollback journal": (_hot_journal, "history.sqlite3-journal: is none of this program's files"),
    "with a pipe for a journal": (
        lambda path: os.mkfifo(f"{path}-journal"),
        "history.sqlite3-journal: is none of this program's files",
    ),
    "with a pipe for a log": (
        lambda path: os.mkfifo(f"{path}-wal"),
        "history.sqlite3-wal: is none of this program's files",
    ),
    "an entry that is none": (_with("UPDATE entry SET document = '{}'"), "an entry is damaged"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_what_is_no_index_is_set_aside_and_the_history_made_anew(how: str, tmp_path: Path) -> None:
    """With clear words; not a byte of the file is lost, and results without a folder are still there."""
    path = filled(tmp_path / "history.sqlite3")
    lines.append(lines.beside(path), [entry(7, {"ttft_p50": 7.0})])
    spoil, words = SPOILT[how]
    spoil(path)
    before, notes = path.read_bytes(), list[str]()
    assert [one.entry.id for one in keeping.recall(path, NOW, notes.append)] == ["run-7"]
    (said,) = notes
    assert words in said
    assert "kept as history.sqlite3.damaged-20260101T000000Z" in said
    aside = tmp_path / "history.sqlite3.damaged-20260101T000000Z"
    assert aside.read_bytes() == before
    assert [one.id for one in kept(path)] == ["run-7"]


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_strangers_journal_deletes_no_file(mode: str, tmp_path: Path) -> None:
    """SQLite, let near it, would: it names another file as the superior of its transaction."""
    path, precious = filled(tmp_path / "history.sqlite3"), tmp_path / "precious.txt"
    precious.write_text("a user's")
    _with(f"PRAGMA journal_mode = {mode}")(path)
    _hot_journal(path, str(precious))
    for use in (Index.open, lambda _: set_aside(path, NOW)):
        with contextlib.suppress(Damaged):
            use(path)
        assert precious.read_text() == "a user's"


def test_a_link_is_no_index(tmp_path: Path) -> None:
    """A stranger's folder would have its results added to the user's own."""
    own = filled(tmp_path / "own.sqlite3")
    before = own.read_bytes()
    (tmp_path / "history.sqlite3").symlink_to(own)
    with pytest.raises(RecordError, match="is a link; name the file itself with --index"):
        Index.open(tmp_path / "history.sqlite3")
    assert own.read_bytes() == before


def test_a_result_is_added_to_a_damaged_index_too(tmp_path: Path) -> None:
    """It is made anew first."""
    path = filled(tmp_path / "history.sqlite3")
    SPOILT["pages overwritten"][0](path)
    notes: list[str] = []
    assert keeping.remember_lines(path, [entry(8, {})], NOW, notes.append) == 1
    assert [one.id for one in kept(path)] == ["run-8"]
    assert len(notes) == 1


@pytest.mark.parametrize("byte", [b"\x94", b"\x00", b"x"])
def test_a_damaged_byte_anywhere_in_the_schema_is_damage_in_words(byte: bytes, tmp_path: Path) -> None:
    """Its texts are what SQLite quotes in its own messages, which are then no UTF-8: the index is still set aside, or the byte
    does not matter."""
    path = filled(tmp_path / "history.sqlite3")
    whole = path.read_bytes()
    start, end = (
        whole.index(b"tableentryentry"),
        whole.index(b"CREATE TABLE entry") + len(b"CREATE TABLE entry"),
    )
    for at in range(start - 8, end):
        spoilt = whole[:at] + byte + whole[at + 1 :]
        path.write_bytes(spoilt)
        try:
            assert len(kept(path)) == 3
        except Damaged:
            place = set_aside(path, NOW)
            assert place is not None
            assert place.read_bytes() == spoilt
            place.unlink()
        for rest in tmp_path.glob("history.sqlite3?*"):
            rest.unlink()


def test_a_text_of_a_row_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    """Also where only the keys are read."""
    path = filled(tmp_path / "history.sqlite3")
    _with("UPDATE entry SET id = CAST(X'94' AS TEXT), document = CAST(X'94' AS TEXT) WHERE number = 2")(path)
    with Index.open(path) as opened:
        with pytest.raises(Damaged):
            opened.entries()
        with pytest.raises(Damaged):
            opened.keys()


TORN = '{"schema":"inferometer/history-entry/1","kind":"run","id":"to'


@pytest.mark.parametrize("torn", [TORN, "\x00" * 600, "x" * (lines.LONGEST + 1), TORN + "\n" + TORN])
def test_torn_lines_beside_the_index_cost_themselves_and_nothing_else(torn: str, tmp_path: Path) -> None:
    """A note names the first; whether the index is made anew, missing, or a result comes to it."""
    path, notes = tmp_path / "history.sqlite3", list[str]()
    lines.append(lines.beside(path), [entry(number, {}) for number in range(1, 11)])
    with lines.beside(path).open("a") as file:
        file.write(torn)
    assert len(keeping.recall(path, NOW, notes.append)) == 10
    assert keeping.rebuild(path, [tmp_path], notes.append) == 10
    assert len(notes) == 2
    assert all(f"{lines.beside(path)}:11: " in one and "passed over" in one for one in notes)
    path.unlink()
    keeping.remember(path, [], [tmp_path], NOW, notes.append)
    assert len(kept(path)) == 10
    assert keeping.remember_lines(path, [entry(11, {})], NOW, notes.append) == 1
    assert keeping.rebuild(path, [tmp_path], notes.append) == 11, "the new line is not glued to the torn one"


@pytest.mark.parametrize("place", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("not-mounted/x")])
def test_an_index_is_not_made_of_a_part_of_what_there_is(
    place: Callable[[Path], None], tmp_path: Path
) -> None:
    """Where the lines cannot be read at all, no index is left that would look whole to the next command."""
    path = tmp_path / "history.sqlite3"
    place(lines.beside(path))
    for _ in range(2):
        with pytest.raises(RecordError, match=r"history\.jsonl: "):
            keeping.remember(path, [], [tmp_path], NOW, lambda text: None)
        assert not path.exists()


def test_a_whole_index_is_not_set_aside(tmp_path: Path) -> None:
    """Another process may have made it anew a moment before."""
    path = filled(tmp_path / "history.sqlite3")
    assert set_aside(path, NOW) is None
    assert len(kept(path)) == 3


def test_files_that_were_set_aside_in_one_second_have_names_of_their_own(tmp_path: Path) -> None:
    """None replaces another."""
    path = tmp_path / "history.sqlite3"
    for text in ("one", "two"):
        path.write_text(text)
        set_aside(path, NOW)
    assert sorted(one.read_text() for one in tmp_path.iterdir()) == ["one", "two"]


def test_an_index_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Two versions would set each other's aside in turn."""
    path = filled(tmp_path / "history.sqlite3")
    _with("PRAGMA user_version = 2")(path)
    before = path.read_bytes()
    with pytest.raises(RecordError, match=r"newer inferometer .* --index") as found:
        Index.open(path)
    assert not isinstance(found.value, Damaged)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["folder", "/dev/null", "/proc/history.sqlite3", "missing/history.sqlite3"])
def test_a_place_that_cannot_hold_an_index_is_an_error_in_words(name: str, tmp_path: Path) -> None:
    """A folder, a device, a file system that takes no files, a folder that is not there."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(RecordError) as found:
        keeping.remember(tmp_path / name, [], [], NOW, lambda text: None)
    assert not isinstance(found.value, Damaged)


def test_where_no_index_can_be_made_the_folders_are_read(tmp_path: Path) -> None:
    """As in a folder of results that may not be written to."""
    home = Path("/proc/self/fdinfo")  # nothing can be made there, whoever asks
    notes: list[str] = []
    assert keeping.recall(home / "history.sqlite3", NOW, notes.append) == []
    assert "read from the folders" in notes[0]


FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from histories import entry
from inferometer.errors import RecordError
from inferometer.studies.history.index import Index
path = Path({path!r})
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))
with Index.open(path) as opened:
    try:
        opened.add(entry(number, {{"ttft_p50": 1.0}}) for number in range(100, 1000))
    except RecordError as why:
        print(why)
with Index.open(path) as opened:
    print(len(opened.entries()))
"""


def test_a_full_disk_is_an_error_in_words_and_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    """A file that may not grow further is what SQLite meets there."""
    path = filled(tmp_path / "history.sqlite3")
    most = path.stat().st_size + 40_000
    code = FULL.format(tests=str(Path(__file__).parents[1]), path=str(path), most=most)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    why, count = done.stdout.splitlines()
    assert str(path) in why
    assert count == "3"


def test_lines_are_read_back_the_same(tmp_path: Path) -> None:
    """Without the folder, which is another machine's."""
    entries = [entry(1, {"ttft_p50": 1.25}), entry(2, {"x": 2.0}, name="\u202e`<script>\x1b[31m")]
    lines.append(tmp_path / "x.jsonl", entries[:1])
    lines.append(tmp_path / "x.jsonl", entries[1:])
    assert lines.read(tmp_path / "x.jsonl", NOW_S) == [replace(one, folder=None) for one in entries]
    assert (tmp_path / "x.jsonl").read_text().isprintable() is False  # its line breaks, and nothing else
    assert all(line.isprintable() for line in (tmp_path / "x.jsonl").read_text().splitlines())


GOOD = lines.as_line(entry(1, {"ttft_p50": 1.0}))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("{", "is no JSON"),
        ("[" * 5000, "nested"),
        ('"text"', "its format is"),
        ("\xff", "its format|UTF-8|no JSON"),
        (GOOD.replace("history-entry/1", "history-entry/9"), "history-entry/9"),
        (GOOD.replace('"VALID"', '"FINE"'), "FINE|enum"),
        (GOOD.replace('"seed"', '"colour"'), "colour"),
        (GOOD.replace("2026-01-02T00:00:00Z", "yesterday"), "no instant"),
        (GOOD.replace('"value": 1.0', '"value": 1e999'), "no finite number"),
        (GOOD.replace("2026-01-02T", "2099-01-02T"), "dated 2099-.* ahead of this machine's clock"),
        (GOOD.replace('"value": 1.0', '"value": 1.7e308'), "of 1e\\+100 at most"),
        (GOOD.replace('"ci95": [0.9, 1.1]', '"ci95": [2, 1]'), "no figure"),
        (GOOD[: -len("]}\n")] + ", " + GOOD[GOOD.index('"figures": [') + len('"figures": [') :], "twice"),
        ("x" * (lines.LONGEST + 1), "longer than 1 MiB"),
    ],
)
def test_a_line_that_is_no_result_is_named_and_nothing_is_imported(
    bad: str, words: str, tmp_path: Path
) -> None:
    """The file and the number of the line."""
    (tmp_path / "there.jsonl").write_text(f"{GOOD}\n{bad}\n")
    with pytest.raises(RecordError, match=words) as found:
        lines.read(tmp_path / "there.jsonl", NOW_S)
    assert f"{tmp_path / 'there.jsonl'}:3: " in str(found.value)


@pytest.mark.parametrize("sign", list("=+-@\uff1d\uff0b\uff0d\uff20"))
def test_a_table_has_a_row_for_each_figure_and_no_formula(sign: str) -> None:
    """As spreadsheets read it."""
    made = history([1.0, 2.0])
    vile = replace(made[0], entry=replace(made[0].entry, name=f"{sign}cmd|' /C calc'!A1"))
    rows = lines.table([vile, made[1]]).split("\r\n")
    assert rows[0] == ",".join(lines.COLUMNS)
    assert len(rows) == 4
    assert f",'{sign}cmd|' /C calc'!A1," in rows[1]
    assert rows[2].endswith(",ttft_p50,ms,less,2.0,1.8,2.2")
