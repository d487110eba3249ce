"""Files read whole and written whole: what has no end is refused, and a link to elsewhere is not written through."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder, inside
from inferometer.whole_file import append, read, replacing, write


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_a_file_within_its_limit_is_read_whole(size: int, tmp_path: Path) -> None:
    """Law: the limit is included."""
    (tmp_path / "file").write_bytes(b"x" * size)
    assert read(tmp_path / "file", 100) == b"x" * size


def test_what_has_no_end_is_refused_at_once(tmp_path: Path) -> None:
    """Law: too large, a folder, a device, a pipe without a writer, a link to one of these: an OSError that names the file."""
    (tmp_path / "large").write_bytes(b"x" * 101)
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("large", "sparse", "folder", "pipe", "link", "loop", "missing"):
        with pytest.raises(OSError, match=name) as refused:
            read(tmp_path / name, 100)
        assert str(refused.value.filename) == str(tmp_path / name)
        assert refused.value.strerror


@pytest.mark.parametrize("name", ["file", "file.part", ".file.part"])
def test_a_link_is_replaced_and_not_written_through(name: str, tmp_path: Path) -> None:
    """Law: whatever links lie in the place of a file or beside it, what they lead to stays as it is."""
    outside, folder = tmp_path / "private", tmp_path / "run"
    outside.write_bytes(b"private")
    folder.mkdir()
    (folder / name).symlink_to(outside)
    write(folder / "file", b"new")
    assert outside.read_bytes() == b"private"
    assert (folder / "file").read_bytes() == b"new"
    assert not (folder / "file").is_symlink()
    assert {path.name for path in folder.iterdir()} == {"file", name}


def test_where_writing_fails_the_old_file_stays_alone(tmp_path: Path) -> None:
    """Law: whole or not at all, and the error names the file that was wanted."""
    write(tmp_path / "file", b"old")

    def fail() -> None:
        with replacing(tmp_path / "file") as part:
            part.write_bytes(b"half")
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"
    with pytest.raises(OSError, match="No such file") as refused:
        write(tmp_path / "none" / "file", b"new")
    assert refused.value.filename == str(tmp_path / "none" / "file")


def test_a_new_file_is_for_whoever_may_read_the_folder(tmp_path: Path) -> None:
    """Law: its mode is that of any file a program makes."""
    (tmp_path / "usual").touch()
    write(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_log_that_is_a_link_or_a_pipe_is_not_written_to(tmp_path: Path) -> None:
    """Law: lines are added to a file alone."""
    append(tmp_path / "log", "one\n")
    append(tmp_path / "log", "two\n")
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    (tmp_path / "link").symlink_to(tmp_path / "log")
    (tmp_path / "elsewhere").write_text("mine\n")
    os.link(tmp_path / "elsewhere", tmp_path / "hard")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "hard", "pipe"):
        with pytest.raises(OSError, match=name):
            append(tmp_path / name, "three\n")
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    assert (tmp_path / "elsewhere").read_text() == "mine\n"


@pytest.mark.parametrize("target", ["nowhere/x", "link"])
def test_a_link_to_nothing_is_called_one(target: str, tmp_path: Path) -> None:
    """Law: neither a file that was never there, nor "too many levels" of what the user sees as one."""
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OSError, match="link to nothing"):
        read(tmp_path / "link")
    with pytest.raises(OSError, match="is a link"):
        append(tmp_path / "link", "x\n")
    with pytest.raises(FileNotFoundError, match="No such file"):
        read(tmp_path / "none")


@pytest.mark.parametrize("name", ["..", "../x", "runs/../../x", "/etc", "", "a\0b", "runs/.."])
def test_no_name_of_a_document_leads_out_of_its_folder(name: str, tmp_path: Path) -> None:
    """Law: a run is named by where it lies within."""
    assert inside(tmp_path, "runs/x") == tmp_path / "runs" / "x"
    with pytest.raises(RecordError, match="not the name of a run"):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["runs", "runs/x", "runs/x/summary.json"])
def test_no_link_leads_out_of_a_folder(name: str, tmp_path: Path) -> None:
    """Law: what a document names lies in its folder, which may itself be reached by a link; so may what stays in it."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (outside / "runs" / "x").mkdir(parents=True)
    (outside / "runs" / "x" / "summary.json").touch()
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(outside / name)
    (tmp_path / "by link").symlink_to(folder)
    for place in (folder, tmp_path / "by link"):
        with pytest.raises(RecordError, match="leads out of"):
            inside(place, "runs/x/summary.json")
        assert inside(place, "other") == place / "other"
    (folder / "other").symlink_to(folder / "there")
    assert inside(folder, "other") == folder / "other"
    (folder / "loop").symlink_to(folder / "loop")
    assert inside(folder, "loop") == folder / "loop"


@pytest.mark.parametrize("name", ["run.json", "journal", "journal/worker-0.arrows", "telemetry"])
def test_a_run_has_its_files_in_its_folder(name: str, tmp_path: Path) -> None:
    """Law: a folder whose files are links to elsewhere is refused by the name of the link."""
    folder = tmp_path / "run"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").touch()
    RunFolder.open(folder)
    (folder / name).symlink_to(tmp_path)
    with pytest.raises(RecordError, match=f"{name}.*leads out of"):
        RunFolder.open(folder)
