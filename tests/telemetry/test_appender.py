"""The record of scrapes on a disk that fails for a while: what was scraped meanwhile is written once it can be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inferometer.telemetry.metrics.appender import Appender
from inferometer.telemetry.metrics.record import Scrape, read


def scrape(number: int, size: int = 20) -> Scrape:
    """One that compresses to about its size."""
    return Scrape("http://h/metrics", number, os.urandom(size).hex(), 1, phase="profiling")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "telemetry" / "scrapes.jsonl.zst"


def numbers(path: Path) -> list[int]:
    return [one.timestamp_ns for one in read(path)]


def test_what_could_not_be_written_is_written_once_it_can(path: Path) -> None:
    """Law: an error of the disk costs nothing but time, and once all is written nobody is told of it."""
    appender = Appender(path)
    appender.add(scrape(1))
    appender.flush()
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.write_text("in the way")
    for number in (2, 3):
        appender.add(scrape(number))
        appender.flush()
    assert appender.failed is not None
    assert "2 scrapes are lost" in appender.failed
    path.parent.unlink()
    path.parent.with_name("elsewhere").rename(path.parent)
    appender.add(scrape(4))
    appender.flush()
    assert numbers(path) == [1, 2, 3, 4]
    assert appender.failed is None


def test_the_rest_of_a_write_that_failed_is_cut_off_before_the_next(path: Path) -> None:
    """Law: a frame of which the disk took a part spoils none behind it."""
    appender = Appender(path)
    appender.add(scrape(1))
    appender.flush()
    with path.open("ab") as torn:
        torn.write(path.read_bytes()[:30])
    appender.add(scrape(2))
    appender.flush()
    assert numbers(path) == [1, 2]


def test_a_disk_that_fails_for_good_costs_scrapes_and_no_more_memory(path: Path) -> None:
    """Law: beyond the bound scrapes are lost, and counted."""
    path.parent.write_text("in the way")
    appender = Appender(path, held_bytes=2000)
    for number in range(20):
        appender.add(scrape(number, 400))
        appender.flush()
    assert appender.failed is not None
    assert "20 scrapes are lost" in appender.failed
    path.parent.unlink()
    appender.flush()
    kept = numbers(path)
    assert 1 <= len(kept) <= 5
    assert kept == list(range(len(kept)))
    assert f"{20 - len(kept)} scrapes are lost" in appender.failed


def test_a_disk_that_does_not_answer_holds_up_no_scrape(path: Path) -> None:
    """Law: a write that does not end, here into a pipe that nobody reads, keeps nobody who hands a scrape over waiting, nor the
    end of the run; beyond the bound scrapes are lost."""
    path.parent.mkdir()
    os.mkfifo(path)
    appender = Appender(path, held_bytes=2000)
    appender.start()
    for number in range(20):
        appender.add(scrape(number, 400))
    appender.close(0.1)
    assert appender.failed == "the disk does not answer"
    with path.open("rb") as reader:  # or the thread would wait for ever
        reader.read(1)
