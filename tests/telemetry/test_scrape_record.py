"""The raw record: what is written is read, a killed run's end is forgiven, and nothing else is."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import RecordError
from inferometer.telemetry.metrics import record
from inferometer.telemetry.metrics.record import PHASES, Scrape, read, write

SCRAPES = st.builds(
    Scrape,
    endpoint_url=st.text(max_size=20),
    timestamp_ns=st.integers(0, (1 << 63) - 1),
    body=st.text(max_size=200),
    latency_ns=st.none() | st.integers(0, 1 << 40),
    content_type=st.none() | st.text(max_size=20),
    phase=st.none() | st.sampled_from(PHASES),
) | st.builds(Scrape, st.just("http://h/metrics"), st.integers(0, 9), st.none(), error=st.just("refused"))


def compressed(path: Path, pieces: list[list[bytes]]) -> Path:
    """A frame of each list of lines, flushed after every line, one after the other."""
    data = b""
    for lines in pieces:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as out:
            for line in lines:
                out.write(line)
                out.flush()
        data += sink.getvalue().to_pybytes()
    path.write_bytes(data)
    return path


@given(scrapes=st.lists(SCRAPES, max_size=8), squeeze=st.booleans())
def test_what_is_written_is_read(
    scrapes: list[Scrape], squeeze: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Plain or compressed, whatever the text."""
    path = tmp_path_factory.mktemp("record") / "scrapes"
    lines = [write(scrape) for scrape in scrapes]
    assert all(line.count(b"\n") == 1 for line in lines)
    if squeeze:
        compressed(path, [lines[:3], lines[3:]])
    else:
        path.write_bytes(b"".join(lines))
    assert list(read(path)) == scrapes


def test_a_line_needs_no_more_than_three_members(tmp_path: Path) -> None:
    """Members unknown to us are left alone, blank lines too."""
    path = tmp_path / "own.jsonl"
    path.write_text('{"endpoint_url": "http://h/metrics", "timestamp_ns": 5, "body": "a 1\\n", "x": [1]}\n\n')
    assert list(read(path)) == [Scrape("http://h/metrics", 5, "a 1\n")]


@pytest.mark.parametrize("squeeze", [False, True])
def test_a_torn_end_costs_what_was_torn_and_no_more(squeeze: bool, tmp_path: Path) -> None:
    """Cut anywhere, what is read is a beginning of what was written; of plain lines, every whole one."""
    rand = random.Random(7)
    scrapes = [Scrape("http://h/metrics", at, f"x {rand.random()}\n" * 300) for at in range(60)]
    lines = [write(scrape) for scrape in scrapes]
    path = tmp_path / "torn"
    whole = compressed(path, [lines]).read_bytes() if squeeze else b"".join(lines)
    for cut in (0, 1, 3, 4, 7, 500, len(whole) // 2, len(whole) - 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        got = list(read(path))
        assert got == scrapes[: len(got)]
        if not squeeze:
            assert len(got) == whole[:cut].count(b"\n") + (cut == len(whole) - 1)
        elif cut > len(whole) // 3:
            assert got


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("garbage", "not a scrape"),
        ("[]", "not a scrape"),
        ('{"endpoint_url": "u", "body": "x"}', "timestamp_ns"),
        ('{"endpoint_url": "u", "timestamp_ns": "5", "body": "x"}', "timestamp_ns"),
        ('{"endpoint_url": "u", "timestamp_ns": -5, "body": "x"}', "timestamp_ns"),
        ('{"endpoint_url": "u", "timestamp_ns": 5, "body": null}', "body"),
        ('{"endpoint_url": "u", "timestamp_ns": 5, "body": "", "phase": "lunch"}', "phase"),
    ],
)
def test_a_line_that_is_no_scrape_is_named(line: str, words: str, tmp_path: Path) -> None:
    """With file and line number, and what is wrong."""
    path = tmp_path / "bad.jsonl"
    path.write_bytes(write(Scrape("u", 1, "a 1\n")) + line.encode() + b"\n" + write(Scrape("u", 2, "a 1\n")))
    with pytest.raises(RecordError, match=rf"bad\.jsonl:2: .*{words}"):
        list(read(path))


def test_bytes_that_are_not_a_record_are_named(tmp_path: Path) -> None:
    """A damaged frame, and a file that is not there."""
    path = tmp_path / "damaged.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\xff" * 400)
    with pytest.raises(RecordError, match=r"damaged\.zst"):
        list(read(path))
    with pytest.raises(RecordError, match="absent"):
        list(read(tmp_path / "absent"))


def test_a_record_that_hardly_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank lines take next to no room when packed, and time when read; so it is with a line nested without end."""
    monkeypatch.setattr(record, "UNPACKED", 1 << 16)
    path = tmp_path / "scrapes.jsonl.zst"
    path.write_bytes(pa.compress(b"\n" * 20_000_000, "zstd", asbytes=True))
    with pytest.raises(RecordError, match="unpacks to more than 5,000 times its size"):
        list(read(path))
    path.write_bytes(b'{"endpoint_url": ' + b"[" * 100_000 + b"\n")
    with pytest.raises(RecordError, match="not a scrape"):
        list(read(path))
