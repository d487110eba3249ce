"""What a host is sent: together the hosts have every body exactly once, byte for byte the conductor's, and each worker finds
all that it will be asked for."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.cluster.link import LinkLost
from inferometer.cluster.messages import FilePart
from inferometer.cluster.schedule_share import PART_BYTES, ReceivedFile, needed, packed, send_share, unpacked
from inferometer.drive.share import Assignment
from inferometer.drive.shares import share_of
from inferometer.journal.schedule import Schedule, Scheduled, write
from inferometer.journal.schema import Phase


def written(path: Path, measured: int, sessions: int | None) -> Schedule:
    """A schedule of a warm-up of 5 and so many measured requests, in conversations of two turns or alone."""
    rows = [Scheduled(at, int(Phase.WARMUP), at, b"warm %d" % at, -1, 0, 1, 1, 1) for at in range(5)]
    for at in range(measured):
        row = 5 + at
        session = None if sessions is None else at // 2
        rows.append(
            Scheduled(
                row, int(Phase.MEASURE), at * 1000, b"body %d" % row, -1, 0, 1, 1, 1,
                session=session, turn=at % 2 if session is not None else 0, turns=2 if session is not None else 1,
            )
        )  # fmt: skip
    write(path, rows)
    return Schedule(path)


def arrived(path: Path, keep: object, target: Path) -> Schedule:
    file = ReceivedFile(target)
    digests: list[bytes] = []

    def take(data: bytes, digest: bytes | None) -> None:
        file.add(data)
        if digest is not None:
            assert file.whole(digest)
            digests.append(digest)

    send_share(path, keep, take)  # type: ignore[arg-type]
    file.close()
    assert digests == [hashlib.blake2b(target.read_bytes(), digest_size=32).digest()]
    return Schedule(target)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 3000), st.integers(1, 4), st.integers(1, 3), st.none() | st.integers(1, 8), st.booleans()
)
def test_the_hosts_together_have_every_body_once(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    hosts: int,
    each: int,
    slots: int | None,
    turns: bool,
) -> None:
    folder = tmp_path_factory.mktemp("share")
    whole = written(folder / "requests.arrow", count, 1 if turns else None)
    total = hosts * each
    seen: dict[int, int] = {}
    for host in range(hosts):
        workers = range(host * each, (host + 1) * each)
        keep = needed(whole, workers, total, slots)
        theirs = arrived(folder / "requests.arrow", keep, folder / f"{host}.arrow")
        assert len(theirs) == len(whole)
        for row in range(len(whole)):
            body = theirs.body(row)
            assert body in (whole.body(row), b"")
            if row >= 5 and body:
                seen[row] = seen.get(row, 0) + 1
            if row < 5:
                assert body
        for worker in workers:
            for row in share_of(theirs, Assignment(Phase.MEASURE, slots, worker, total)).own_rows():
                assert theirs.body(row) == whole.body(row)
    assert seen == dict.fromkeys(range(5, 5 + count), 1)


@given(st.binary(max_size=3000), st.none() | st.binary(min_size=32, max_size=32))
def test_a_part_goes_through_its_packing(data: bytes, digest: bytes | None) -> None:
    part = packed("requests.arrow", data, digest)
    assert (unpacked(part), part.digest) == (data, digest)


@given(st.binary(max_size=200), st.integers(-(2**40), 2**40))
def test_what_was_not_packed_is_refused_within_the_size_of_a_part(data: bytes, size: int) -> None:
    """Whatever it claims, no more than a part is unpacked."""
    with contextlib.suppress(LinkLost):
        assert len(unpacked(FilePart("requests.arrow", data, size))) <= PART_BYTES


def test_bytes_that_were_changed_on_the_way_are_noticed(tmp_path: Path) -> None:
    written(tmp_path / "requests.arrow", 10, None)
    file = ReceivedFile(tmp_path / "there.arrow")

    def take(data: bytes, digest: bytes | None) -> None:
        file.add(bytes([data[0] ^ 1]) + data[1:])
        if digest is not None:
            assert not file.whole(digest)

    send_share(tmp_path / "requests.arrow", None, take)
