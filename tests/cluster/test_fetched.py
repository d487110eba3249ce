"""What is known of a host's clock holds for the whole load, not only for where it was compared."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cluster.clock_fit import ClockProbe, fit
from inferometer.cluster.fetched import (
    Fetched,
    called,
    described,
    merge_left,
    named,
    not_fetched,
    number_of,
    remove,
)
from inferometer.cluster.load_host import NAME, folders_of, kept_runs, new_folder
from inferometer.cluster.messages import StreamPart
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import PULSE
from inferometer.measure.load_hosts import LoadHost
from inferometer.telemetry.host import environment

S = 1_000_000_000


@given(st.integers(1, 20), st.integers(-100, 200), st.integers(0, 200), st.integers(1_000, 5_000_000))
def test_the_bound_is_of_every_instant_of_the_load(
    seconds: int, begun_s: int, lasted_s: int, trip: int
) -> None:
    probes = [ClockProbe(at * S, 7 * S, trip) for at in range(seconds)]
    fitted, begun, ended = fit(probes), begun_s * S, (begun_s + lasted_s) * S
    clock = described(probes, begun, ended)
    for at in (begun, (begun + ended) // 2, ended):
        assert clock.bound_ns >= fitted.bound_at(at)
    outside = max(0, -begun_s, begun_s + lasted_s - (seconds - 1))
    assert clock.uncompared_s == outside


def test_a_stream_is_its_workers() -> None:
    assert [number_of(name) for name in ("worker-7.arrows", "pulse-12.arrows", "../worker-7.arrows", "x")] == [
        7, 12, None, None,
    ]  # fmt: skip


def test_no_two_runs_are_one_to_a_host(tmp_path: Path) -> None:
    """Law: runs of two conductors whose folders have one name, sent by one host under one name, stay two: what it keeps of
    either is found by that run alone, also after its folder was moved."""
    root = tmp_path / "root"
    runs = [RunFolder.create(tmp_path / parent, "run", 0) for parent in ("one", "other")]
    kept = [new_folder(root, 0, named(run), run.path.name) for run in runs]
    for folder in kept:
        (folder / NAME).write_text("east")
    assert runs[0].path.name == runs[1].path.name
    assert [folders_of(root, called(run)) for run in runs] == [[folder] for folder in kept]
    assert set(kept_runs(root)) == {called(run) for run in runs}
    moved = runs[0].path.rename(tmp_path / "a copy [1]")
    assert folders_of(root, called(RunFolder(moved))) == [kept[0]]


@pytest.mark.parametrize("content", [None, b"", b"*", b"../0", b"a/b", b"\xff", b"a" * 300])
def test_a_run_that_does_not_say_what_it_is_called_is_no_other(tmp_path: Path, content: bytes | None) -> None:
    """Law: a name that is missing or damaged asks no host for anything."""
    folder = RunFolder.create(tmp_path, "run", 0)
    named(folder)
    (folder.fetched / "run").unlink()
    if content is not None:
        (folder.fetched / "run").write_bytes(content)
    with pytest.raises(RecordError, match="fetched/run"):
        called(folder)


@given(st.integers(1, 6), st.integers(0, 5), st.integers(1, 60))
def test_what_cannot_be_read_to_its_end_stays_as_it_came(
    tmp_path_factory: pytest.TempPathFactory, batches: int, hit: int, flipped: int
) -> None:
    """Law: the host forgets what was fetched, so of a stream that was damaged there the conductor keeps every byte, where text
    may be kept; of one that is whole, nothing."""
    folder = RunFolder.create(tmp_path_factory.mktemp("runs"), "run", 0)
    fetched, ends, sink = Fetched(folder, 1), list[int](), io.BytesIO()
    named(folder)
    with pa.ipc.new_stream(sink, PULSE) as writer:
        for _ in range(batches):
            writer.write_batch(pa.record_batch([pa.array([1], kind) for kind in PULSE.types], schema=PULSE))
            ends.append(sink.tell())
    data = bytearray(sink.getvalue())
    damaged = hit < batches
    if damaged:  # the head of a batch, or the end mark
        at = ends[hit]
        data[at : at + flipped] = bytes(byte ^ 0x5A for byte in data[at : at + flipped])
    fetched.add(0, StreamPart("run", "worker-0.arrows", bytes(data)))
    fetched.complete(0)
    assert fetched.merge({0: fit([ClockProbe(1, 0, 1_000)])}) == {}
    kept = remove(folder, keep_cut=True)
    assert [path.read_bytes() for path in kept] == ([data] if damaged else [])
    assert folder.fetched.exists() == damaged
    assert remove(folder, keep_cut=False) == []
    assert not folder.fetched.exists(), "nothing else may hold text"


def test_what_was_fetched_and_cannot_be_read_is_said_to_be(tmp_path: Path) -> None:
    """Law: a host whose streams are damaged from their head on is named by those who recover the run, and its bytes stay."""
    folder = RunFolder.create(tmp_path, "run", 0)
    fetched = Fetched(folder, 1)
    host = LoadHost(name="east", first=0, workers=1, environment=environment(), clock=None, lost=None)
    fetched.begun([host])
    fetched.compared(0, [ClockProbe(1, 0, 1_000)])
    fetched.add(0, StreamPart("run", "worker-0.arrows", b"\xff" * 8 + b"no stream"))
    fetched.complete(0)
    (words,) = merge_left(folder)
    assert words.startswith("east: what was fetched from it cannot be read")
    assert not_fetched(folder) == ["east"]
    assert fetched.sizes(0) == {"worker-0.arrows": 17}
