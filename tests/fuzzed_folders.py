"""What may become of the files of a folder that was cut off, damaged, or made by somebody who means harm, and the law that a
command which reads it keeps all the same."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from damage import VALUES, damaged, places

from inferometer.cli.app import run

CODES = {0, 2, 3, 4, 5, 6, 130}
"""Those of docs/exit-codes.md but for our own faults."""
PATIENCE_S = 60
LARGE = 1 << 30
"""Bytes: as no file is that a run of a few requests leaves."""
PRIVATE = b'{"private": "of somebody else"}\n'
RUNS = "runs"
"""The folder that holds the folder to damage; beside it lies `outside`."""
MARK = "the hostile value"
HOSTILE_VALUES = (
    "9" * 5_000, "-" + "9" * 40, "1e400", "1e308", "-1e308", "5e-324", str(2**63), str(-(2**63) - 1), '"\\ud800"',
    '"\\u0000"', json.dumps("x" * 300_000), '"../../outside/private"', '"runs/../../outside"', '"/etc/passwd"', '"."', '"1e5"',
    '"9999-12-31T23:59:59Z"', '"0001-01-01T00:00:00+23:59"', "1e18", "[[[]]]", '[null, "x", 1]', '{"": null}',
)  # fmt: skip
Mutation = Callable[[Path, Path, random.Random], None]
"""What is done to a file of the folder; the second path is a folder outside it."""


def cut_off(file: Path, outside: Path, chance: random.Random) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: chance.randrange(len(data) + 1)])


def flipped(file: Path, outside: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(min(len(data), chance.choice((1, 1, 2, 8, 64)))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def overwritten(file: Path, outside: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    at = chance.randrange(len(data) + 1)
    size = chance.choice((1, 4, 8, 64))
    data[at : at + size] = chance.choice((bytes(size), b"\xff" * size, chance.randbytes(size)))
    file.write_bytes(data)


def replaced(file: Path, outside: Path, chance: random.Random) -> None:
    texts = (b"", b"{}", b"[]", b"null", b"\x00", b"[" * 100_000, b'{"a":' * 5_000, chance.randbytes(500))
    file.write_bytes(chance.choice(texts))


def swapped(file: Path, outside: Path, chance: random.Random) -> None:
    shutil.copy(chance.choice(files_of(file.parent)), outside / "copy")
    shutil.move(outside / "copy", file)


def removed(file: Path, outside: Path, chance: random.Random) -> None:
    file.unlink()


def huge(file: Path, outside: Path, chance: random.Random) -> None:
    os.truncate(file, 1 << 40)


def a_folder(file: Path, outside: Path, chance: random.Random) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path, outside: Path, chance: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def a_link(file: Path, outside: Path, chance: random.Random) -> None:
    file.unlink()
    file.symlink_to(
        chance.choice((outside / "private", outside / "missing", Path("/dev/zero"), outside, file))
    )


def a_link_beside(file: Path, outside: Path, chance: random.Random) -> None:
    """Where a file is written before it takes its place."""
    for name in (
        f"{file.name}.part",
        "server_metrics_export.json.part",
        "requests.parquet.part",
        "run.json.part",
    ):
        beside = file.with_name(name)
        beside.unlink(missing_ok=True)
        beside.symlink_to(outside / "private")


def a_folder_elsewhere(file: Path, outside: Path, chance: random.Random) -> None:
    """The folder of the file, or of the runs that it is one of, lies elsewhere."""
    inner = [path for path in file.parents if path.is_relative_to(outside.parent / RUNS)][:-2]
    if inner:
        folder, there = chance.choice(inner), outside / f"moved-{chance.randrange(1 << 32)}"
        shutil.move(folder, there)
        folder.symlink_to(there)


def a_folder_gone(file: Path, outside: Path, chance: random.Random) -> None:
    """The folder of the file, or that of all runs, is gone, or a file or a pipe is in its place."""
    inner = [path for path in file.parents if path.is_relative_to(outside.parent / RUNS)][:-2]
    if inner:
        folder = chance.choice(inner)
        shutil.rmtree(folder)
        chance.choice((lambda _: None, Path.touch, os.mkfifo))(folder)


def another_type(file: Path, outside: Path, chance: random.Random) -> None:
    with contextlib.suppress(ValueError):  # no JSON, or no more
        document = json.loads(file.read_bytes())
        for _ in range(chance.choice((1, 1, 3))):
            if there := list(places(document)):
                damaged(document, chance.choice(there), chance.choice(VALUES))
        file.write_text(json.dumps(document))


def a_hostile_value(file: Path, outside: Path, chance: random.Random) -> None:
    """A member that no writer of ours would write, as text: numbers without bounds, depth, names that lead elsewhere."""
    with contextlib.suppress(ValueError):
        document = json.loads(file.read_bytes())
        if there := list(places(document)):
            damaged(document, chance.choice(there), MARK)
            depth = chance.choice((20, 200, 400, 900, 50_000))
            texts = (
                *HOSTILE_VALUES,
                "[" * depth + "]" * depth,
                '{"a":' * depth + "1" + "}" * depth,
                json.dumps(str(outside / "private")),
            )
            file.write_text(json.dumps(document).replace(json.dumps(MARK), chance.choice(texts)))


MUTATIONS: tuple[Mutation, ...] = (
    cut_off, flipped, overwritten, replaced, swapped, removed, huge, a_folder, a_pipe, a_link, a_link_beside,
    a_folder_elsewhere, a_folder_gone, another_type, a_hostile_value,
)  # fmt: skip


def files_of(folder: Path) -> list[Path]:
    """All files in a folder that can be read, in order."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if path.stat().st_size < LARGE)


def contents(folder: Path) -> dict[Path, bytes]:
    """What a folder holds."""
    return {path: path.read_bytes() for path in files_of(folder)}


@contextmanager
def bounded() -> Iterator[None]:
    """A command that hangs is ended, by an error of its own."""

    def end(*_: object) -> None:
        raise RuntimeError(f"still at it after {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def keep_the_law(
    command: Sequence[str],
    subject: Path,
    others: Mapping[str, Path],
    mutations: Sequence[tuple[Mutation, int]],
    place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Copy `subject` into the empty folder `place`, damage it, and carry out a command on it: it ends within bounds with a code
    of docs/exit-codes.md and no traceback, shows nothing that lies elsewhere, and changes nothing there.

    In `command` FOLDER stands for the copy, PARENT for the folder that holds it, OUT for a new folder, NOWHERE for one that
    cannot be made (what is to be repeated is read, and not carried out); `others` has further words. A mutation comes with its
    seed. Half of them are of the folder's own documents, however many files its runs have.
    """
    outside, folder = place / "outside", place / RUNS / subject.name
    outside.mkdir()
    (outside / "private").write_bytes(PRIVATE)
    (outside / "file").touch()
    shutil.copytree(subject, folder)
    for mutate, number in mutations:
        chance = random.Random(number)
        there = files_of(folder)
        own = [path for path in there if path.parent == folder and path.suffix == ".json"]
        if there:
            mutate(chance.choice(own if own and chance.random() < 0.5 else there), outside, chance)
    before = contents(outside)
    paths = {
        "FOLDER": folder,
        "PARENT": folder.parent,
        "OUT": place / "out",
        "NOWHERE": outside / "file" / "out",
    }
    words = [str({**others, **paths}.get(word, word)) for word in command]
    capsys.readouterr()
    with bounded():
        code = run(words)
    shown = capsys.readouterr()
    assert code in CODES, shown.err
    assert code != 2 or shown.err.strip()
    assert "Traceback" not in shown.out + shown.err
    assert PRIVATE.decode().strip() not in shown.out + shown.err
    assert contents(outside) == before
    assert {path.name for path in place.iterdir()} <= {"outside", RUNS, "out"}
    shutil.rmtree(place)
