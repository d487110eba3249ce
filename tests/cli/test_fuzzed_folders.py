"""Run folders that were cut off, damaged, or made by somebody who means harm: a command has a result or words, and writes
nowhere else. INFEROMETER_FUZZ=5000 tries so many, in place of the few that a test run has time for."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import SMALL, only
from damage import VALUES, damaged, places
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from inferometer.cli.app import run

EXAMPLES = int(os.environ.get("INFEROMETER_FUZZ", "45"))
CODES = {0, 2, 3, 4, 5, 6, 130}
"""Those of docs/exit-codes.md but for our own faults."""
PATIENCE_S = 60
LARGE = 1 << 30
"""Bytes: as no file is that a run of a few requests leaves."""
COMMANDS = {
    "report": ("report", "FOLDER"),
    "recover": ("recover", "FOLDER"),
    "compliance": ("compliance", "FOLDER"),
    "compare": ("compare", "OTHER", "FOLDER"),
    "rerun": ("rerun", "FOLDER", "--quiet", "--out", "OUT"),
}
PRIVATE = b'{"private": "of somebody else"}\n'
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
    """The folder of the file, if it is one of a run's folder, lies elsewhere."""
    if file.parent.name in ("journal", "telemetry"):
        shutil.move(file.parent, outside / "moved")
        file.parent.symlink_to(outside / "moved")


def another_type(file: Path, outside: Path, chance: random.Random) -> None:
    with contextlib.suppress(ValueError):  # no JSON, or no more
        document = json.loads(file.read_bytes())
        for _ in range(chance.choice((1, 1, 3))):
            if there := list(places(document)):
                damaged(document, chance.choice(there), chance.choice(VALUES))
        file.write_text(json.dumps(document))


MUTATIONS: tuple[Mutation, ...] = (
    cut_off, flipped, overwritten, replaced, swapped, removed, huge, a_folder, a_pipe, a_link, a_link_beside,
    a_folder_elsewhere, another_type,
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A measured run with a record of scrapes and a simulated one, and one to compare either with."""
    place = tmp_path_factory.mktemp("whole")
    load = [*SMALL, "--requests", "12", "--warmup", "2", "--quiet", "--out"]
    assert run(["run", *load, str(place / "measured")]) in CODES
    for name, number in (("simulated", "42"), ("other", "43")):
        assert run(["simulate", "--seed", number, *load, str(place / name)]) == 4
    found = {name: only(place / name) for name in ("measured", "simulated", "other")}
    assert (found["measured"] / "telemetry" / "scrapes.jsonl.zst").is_file()
    return found


@seed(0)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.sampled_from(["measured", "simulated"]),
    st.sampled_from(list(COMMANDS)),
    st.lists(st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 2**32)), min_size=1, max_size=2),
)
def test_a_damaged_folder_ends_in_a_result_or_in_words(
    whole: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    command: str,
    mutations: list[tuple[Mutation, int]],
) -> None:
    """Law: whatever became of the files of a run's folder, each command ends within bounds with a code of docs/exit-codes.md
    and no traceback, and changes nothing outside the folder."""
    place = tmp_path_factory.mktemp("fuzzed")
    outside, folder = place / "outside", place / "runs" / whole[kind].name
    outside.mkdir()
    (outside / "private").write_bytes(PRIVATE)
    # A measured run would be measured again: what rerun reads is the same.
    shutil.copytree(whole["simulated" if command == "rerun" else kind], folder)
    for mutate, number in mutations:
        chance = random.Random(number)
        if there := files_of(folder):
            mutate(chance.choice(there), outside, chance)
    before = contents(outside)
    paths = {"FOLDER": str(folder), "OTHER": str(whole["other"]), "OUT": str(place / "out")}
    capsys.readouterr()
    with bounded():
        code = run([paths.get(word, word) for word in COMMANDS[command]])
    shown = capsys.readouterr()
    assert code in CODES, shown.err
    assert code != 2 or shown.err.strip()
    assert "Traceback" not in shown.out + shown.err
    assert PRIVATE.decode().strip() not in shown.out + shown.err
    assert contents(outside) == before
    assert {path.name for path in place.iterdir()} <= {"outside", "runs", "out"}
    shutil.rmtree(place)
