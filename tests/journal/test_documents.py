"""A document of a folder is a regular file inside it; all else in its place is refused, and only nothing is absent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inferometer.errors import RecordError
from inferometer.journal.documents import holds
from inferometer.journal.folder import RunFolder
from inferometer.studies.history.folders import results_in


def test_a_regular_file_of_the_folder_is_its_document_and_nothing_is_none(tmp_path: Path) -> None:
    """By its own name, or by a link that stays inside."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "kept.json").write_text("{}")
    (tmp_path / "linked.json").symlink_to("inner/kept.json")
    assert holds(tmp_path, "inner/kept.json")
    assert holds(tmp_path, "linked.json")
    assert not holds(tmp_path, "other.json")
    assert not holds(tmp_path / "nowhere", "other.json")
    assert not holds(tmp_path / "inner" / "kept.json", "other.json")


ELSE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "is no regular file"),
    "a folder": (os.mkdir, "is no regular file"),
    "a link to a device": (lambda place: place.symlink_to("/dev/zero"), "leads out of"),
    "a link out of the folder": (lambda place: place.symlink_to(__file__), "leads out of"),
    "a dead link": (lambda place: place.symlink_to("gone.json"), "is a link to nothing"),
    "a link to itself": (lambda place: place.symlink_to(place.name), "cannot be read"),
}


@pytest.mark.parametrize("what", ELSE)
def test_anything_else_in_its_place_is_refused_by_name(what: str, tmp_path: Path) -> None:
    """Law: it is neither read nor waited for, nor taken for a document that is not there."""
    make, words = ELSE[what]
    make(tmp_path / "campaign.json")
    with pytest.raises(RecordError, match=rf"campaign\.json: .*{words}"):
        holds(tmp_path, "campaign.json")


NO_TEXT = os.fsdecode(b"r\xff\xc3")


def test_a_folder_whose_name_is_no_text_holds_nothing_and_takes_no_run(tmp_path: Path) -> None:
    """Law: it is refused by name before anything is measured, and a history without it is made all the same."""
    (tmp_path / NO_TEXT).mkdir()
    (tmp_path / NO_TEXT / "plan.json").write_text("{}")
    for tried in (
        lambda: holds(tmp_path / NO_TEXT, "plan.json"),
        lambda: RunFolder.open(tmp_path / NO_TEXT),
        lambda: RunFolder.create(tmp_path / NO_TEXT, "run", 0),
    ):
        with pytest.raises(RecordError, match=r"r\\udcff\\udcc3.*no UTF-8"):
            tried()
    assert [one.name for one in (tmp_path / NO_TEXT).iterdir()] == ["plan.json"]
    notes: list[str] = []
    assert list(results_in(tmp_path, tmp_path, notes.append)) == []
    assert [("no UTF-8" in note) for note in notes] == [True]


def test_no_run_is_made_below_a_current_folder_whose_name_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: what counts is the whole path, not what of it was written."""
    (tmp_path / NO_TEXT).mkdir()
    monkeypatch.chdir(tmp_path / NO_TEXT)
    with pytest.raises(RecordError, match="no UTF-8"):
        RunFolder.create(Path("runs"), "run", 0)
    assert not Path("runs").exists()
