"""Keeping the cores awake (scripts/awake.py)."""

from __future__ import annotations

from pathlib import Path

from scripts.awake import kept_awake


def test_no_delay_is_asked_for_while_the_block_lasts(tmp_path: Path) -> None:
    place = tmp_path / "latency"
    place.write_bytes(b"")
    with kept_awake(place) as awake:
        assert awake
        assert place.read_bytes() == bytes(4)


def test_what_is_not_allowed_is_told_and_not_fatal(tmp_path: Path) -> None:
    with kept_awake(tmp_path / "absent") as awake:
        assert not awake
