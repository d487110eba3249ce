"""The index of results: entries in SQLite, beside the folders that they repeat. It is a cache: what it holds can be made anew.

    entry (number, kind, id, part, started, document)        one row a result; `document` is its HistoryEntry as JSON

| file in the index's place                      | what happens                                                             |
| ---------------------------------------------- | ------------------------------------------------------------------------ |
| none                                           | one is made, whole at once: two processes that come first make one        |
| an index                                       | it is opened; writers wait for each other (WAL, BUSY_MS)                  |
| damaged, no SQLite, another program's database | it is renamed, and a new one is made (`Damaged` says so, `set_aside` does)  |
| an index of a newer version                    | refused: both versions would make it anew in turn                        |
| a folder, a device, a link                     | refused                                                                  |

Another program's file is never written to: it is known by its header and its tables before any setting is changed. The text of
the tables has to be ours to the letter, so that no view or trigger of a stranger's index is ever carried out. And SQLite is not
let near a rollback journal: it would carry out what a stranger's says, and delete the file that it names as its superior. Ours
have a write-ahead log, and no journal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import msgspec

from inferometer import whole_file
from inferometer.documents.history import HistoryEntry, NumberedEntry
from inferometer.errors import RecordError
from inferometer.studies.history.entries import fault

NAME = "history.sqlite3"
VERSION = 1
APPLICATION = 0x496E6648
"""`InfH`, in the header of the file."""
BUSY_MS = 10_000
_TABLE = """CREATE TABLE entry (
 number INTEGER PRIMARY KEY,
 kind TEXT NOT NULL,
 id TEXT NOT NULL,
 part TEXT NOT NULL,
 started TEXT NOT NULL,
 document BLOB NOT NULL,
 UNIQUE (kind, id, part, started)
)"""
_ADD = """INSERT INTO entry (kind, id, part, started, document) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (kind, id, part, started) DO UPDATE SET document = excluded.document"""
_JOURNAL = "-journal"
_BESIDE = ("-wal", "-shm", _JOURNAL)
"""What SQLite looks for beside a database, by the end of its name."""
_WAL_FORMAT = b"\x02\x02"
"""Of a header: it is written and read with a write-ahead log."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


class Damaged(RecordError):
    """What lies in the index's place is no index of ours, or not a whole one."""


class Index:
    """An open index. Its methods raise Damaged, RecordError for what SQLite cannot do (a full disk, a lock that lasts), and are
    whole: an entry is in it with all of its parts or not at all."""

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._connection, self._where = connection, where

    @classmethod
    def open(cls, path: Path) -> Index:
        """The index in a file, which is made if there is none. Raises Damaged and RecordError."""
        with _in_words(str(path)):
            if path.is_symlink():
                raise RecordError(f"{path}: is a link; name the file itself with --index")
            try:
                whole_file.check_regular(path)
            except FileNotFoundError:
                _make(path)
            except OSError as cause:
                raise RecordError(f"{path}: {cause.strerror}") from cause
            _check_header(path)
            _check_beside(path)
            connection = _connect(path)
            try:
                _check(connection, path)
            except BaseException:
                connection.close()
                raise
            return cls(connection, str(path))

    @classmethod
    def in_memory(cls) -> Index:
        """An index that no file holds, for places that cannot be written to."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute(_TABLE)
        return cls(connection, "the index in memory")

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def add(self, entries: Iterable[HistoryEntry]) -> None:
        """Add entries, each in place of the one with its key."""
        rows = [_row(one) for one in entries]
        with self._writing():
            self._connection.executemany(_ADD, rows)

    def newest(self) -> int:
        """The highest number; 0 of an empty index."""
        with _in_words(self._where):
            (number,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM entry").fetchone()
        return int(number)

    def replace(self, entries: Iterable[HistoryEntry], up_to: int) -> None:
        """Hold these entries, numbered in their order, in place of those up to a number. What other processes have added since
        that was the highest stays."""
        rows = [_row(one) for one in entries]
        with self._writing():
            self._connection.execute("DELETE FROM entry WHERE number <= ?", (up_to,))
            self._connection.executemany(_ADD, rows)

    def entries(self) -> list[NumberedEntry]:
        """All entries, by number."""
        with _in_words(self._where):
            rows = self._connection.execute("SELECT number, document FROM entry ORDER BY number").fetchall()
        try:
            found = [
                NumberedEntry(number, msgspec.json.decode(text, type=HistoryEntry)) for number, text in rows
            ]
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError) as cause:
            raise Damaged(f"{self._where}: an entry is damaged ({cause})") from cause
        for one in found:
            if (why := fault(one.entry)) is not None:
                raise Damaged(f"{self._where}: an entry is damaged ({why})")
        return found

    def keys(self) -> set[tuple[str, str, str, str]]:
        """The keys of all entries."""
        with _in_words(self._where):
            return set(self._connection.execute("SELECT kind, id, part, started FROM entry"))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, which waits for those of other processes."""
        with _in_words(self._where):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise


def set_aside(path: Path, now_ns: int) -> Path | None:
    """Rename what lies in an index's place, with its log, so that nothing of it is lost; its new place. None: somebody else has
    put a whole index there meanwhile. Raises RecordError."""
    with _in_words(str(path)), _alone(path.parent):
        try:
            with Index.open(path) as index:
                index.entries()
            return None
        except Damaged:
            pass
        stamp = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")
        place = next(one for one in _places(path, stamp) if not os.path.lexists(one))
        for suffix in (*_BESIDE, ""):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{path}{suffix}", f"{place}{suffix}")
        return place


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other process sets an index of this folder aside. Where a file system has no locks, nobody waits."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _places(path: Path, stamp: str) -> Iterator[Path]:
    yield path.with_name(f"{path.name}.damaged-{stamp}")
    yield from (path.with_name(f"{path.name}.damaged-{stamp}.{number}") for number in range(2, 1_000))


def _row(entry: HistoryEntry) -> Sequence[str | bytes]:
    return *entry.key, msgspec.json.encode(entry)


def _make(path: Path) -> None:
    """An empty index, whole before it gets its name. Another process's, if that was first, stays."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(handle, 0o666 & ~umask)  # mkstemp makes the file private
        os.close(handle)
        with contextlib.closing(sqlite3.connect(name, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise RecordError(
                    f"{path}: its file system takes no write-ahead log; name a place on another with --index"
                )
            connection.execute(_TABLE)
        try:
            os.link(name, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not path.exists():
                os.rename(name, path)
    finally:
        for suffix in ("", *_BESIDE):
            Path(name + suffix).unlink(missing_ok=True)


def _check_header(path: Path) -> None:
    """That a file is an SQLite database of this program, by its first bytes. SQLite would make a database of an empty one."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(b"SQLite format 3\0") or len(header) < 100:
        raise Damaged(f"{path}: is no SQLite database")
    if int.from_bytes(header[68:72], "big") != APPLICATION:
        raise Damaged(f"{path}: is the database of another program")
    if header[18:20] != _WAL_FORMAT:
        raise Damaged(f"{path}: has no write-ahead log, as every index of this program")
    version = int.from_bytes(header[60:64], "big")
    if version > VERSION:
        raise RecordError(
            f"{path}: is an index of a newer inferometer (version {version}, this one reads {VERSION}); "
            "name another file with --index"
        )


def _check_beside(path: Path) -> None:
    """That what lies beside an index is what SQLite puts there with a write-ahead log, and no pipe, device or link."""
    for suffix in _BESIDE:
        beside = path.with_name(path.name + suffix)
        try:
            mode = os.lstat(beside).st_mode
        except FileNotFoundError:
            continue
        if suffix == _JOURNAL or not stat.S_ISREG(mode):
            raise Damaged(f"{beside}: is none of this program's files")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    tables = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    if tables != [(_TABLE,)]:
        raise Damaged(f"{path}: its tables are not those of an index")


@contextlib.contextmanager
def _in_words(where: str) -> Iterator[None]:
    """Errors of SQLite and of the system as ours. Texts that are not UTF-8 are damage: those of tables make SQLite's own
    message undecodable (UnicodeDecodeError), those of rows are an OperationalError without a code."""
    try:
        yield
    except UnicodeDecodeError as cause:
        raise Damaged(f"{where}: is damaged (a text in it is not UTF-8)") from cause
    except sqlite3.Error as cause:
        code = getattr(cause, "sqlite_errorcode", None)
        undecodable = code is None and str(cause).startswith("Could not decode")
        if undecodable or (code is not None and code & 0xFF in _DAMAGED):
            raise Damaged(f"{where}: is damaged ({cause})") from cause
        raise RecordError(f"{where}: {cause}") from cause
    except OSError as cause:
        raise RecordError(f"{cause.filename or where}: {cause.strerror or cause}") from cause
