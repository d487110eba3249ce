"""A load host by itself: for how long it bears a silent conductor, and where it keeps what it measures."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commanding import commanding
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cluster.clock_probe import ClockProber
from inferometer.cluster.link import LinkLost
from inferometer.cluster.load_host import NAME, LoadHost, kept_runs, new_folder, silence_s
from inferometer.journal import hold

S = 1_000_000_000


@contextmanager
def idle_host(root: Path) -> Iterator[LoadHost]:
    """A host that has joined, and that nobody answers about clocks."""
    with commanding(1) as command, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        link, name = command.join("east", "a")
        prober = ClockProber(deaf.getsockname(), bytes(32))
        try:
            yield LoadHost(link, prober, root, name, lambda _: None)
        finally:
            prober.close()


def test_a_conductor_with_nothing_to_send_may_be_silent_for_long(tmp_path: Path) -> None:
    """Law: before the load a host waits 30 s for a word. Many hosts that start at once on few cores say nothing for longer than
    the 3 s that it waits while it sends."""
    with idle_host(tmp_path) as host:
        now = time.monotonic_ns()
        host.check_silence(now + 4 * S)
        host.check_silence(now + 29 * S)
        with pytest.raises(LinkLost, match=r"has said nothing for 3\d s"):
            host.check_silence(now + 31 * S)


def test_while_it_sends_a_host_is_less_patient() -> None:
    """Law: workers stop within 5 s of the loss of their conductor, and a host that sends nothing waits ten times as long."""
    assert silence_s(sends=True) == 3.0
    assert silence_s(sends=False) == 30.0


@given(st.integers(0, 255), st.integers(2, 4))
def test_runs_of_one_name_are_kept_apart(
    tmp_path_factory: pytest.TempPathFactory, first: int, count: int
) -> None:
    """Law: load hosts of several conductors whose runs began within one second may share a root: none writes to another's
    folder, and all that is kept is found again."""
    root, run = tmp_path_factory.mktemp("root"), "20261101T000000Z-run"
    folders = [new_folder(root, first, run, run) for _ in range(count)]
    assert len(set(folders)) == count
    for at, folder in enumerate(folders):
        (folder / NAME).write_text(f"host-{at}")
    assert sorted(kept_runs(root)[run]) == [f"host-{at}" for at in range(count)]


def test_what_another_host_is_still_busy_with_is_not_left_behind(tmp_path: Path) -> None:
    """Law: a run is left at a host once nobody holds its folder."""
    folder = new_folder(tmp_path, 0, "run.1", "run")
    with hold.joined(folder / "journal"):
        assert kept_runs(tmp_path) == {}
    assert list(kept_runs(tmp_path)) == ["run.1"]
