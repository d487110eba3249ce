"""The fixed script: instants that depend on the arrival and the draw alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.server.__main__ import parse
from inferometer.server.fixed_script import GRID_NS, Beat, Metronome

MS = 1_000_000


class Key:
    """Known by identity."""


def played(metronome: Metronome[Key]) -> dict[int, list[tuple[int, int, bool]]]:
    """Everything it will put out: by key, (instant, index, last)."""
    found: dict[int, list[tuple[int, int, bool]]] = {}
    while (due := metronome.next_due()) is not None:
        emission = metronome.advance(max(due, metronome.now))
        assert emission is not None
        assert emission.at == due
        for key, index, count, end in emission.tokens:
            assert count == 1
            found.setdefault(id(key), []).append((emission.at, index, bool(end)))
    return found


@given(
    st.lists(st.tuples(st.integers(0, 50 * MS), st.integers(1, 6)), min_size=1, max_size=8),
    st.integers(1, 30 * MS),
    st.integers(0, 60 * MS),
    st.integers(0, 60 * MS),
)
def test_every_token_comes_at_its_instant_whoever_else_there_is(
    asked: list[tuple[int, int]], interval: int, ttft: int, spread: int
) -> None:
    """Token i: arrival + ttft + at most the spread + i intervals, rounded up to the grid, and never before its neighbour."""
    metronome: Metronome[Key] = Metronome(Beat(interval, ttft, spread), 7)
    keys = [Key() for _ in asked]
    arrivals = sorted(at for at, _ in asked)
    for key, at, (_, tokens) in zip(keys, arrivals, asked, strict=True):
        metronome.submit(key, 1, tokens, at)
    assert metronome.running == len(asked)
    found = played(metronome)
    for key, at, (_, tokens) in zip(keys, arrivals, asked, strict=True):
        mine = found[id(key)]
        assert [index for _, index, _ in mine] == list(range(tokens))
        assert [last for _, _, last in mine] == [False] * (tokens - 1) + [True]
        for instant, index, _ in mine:
            assert instant % GRID_NS == 0
            assert 0 <= instant - (at + ttft + index * interval) < spread + GRID_NS
    assert metronome.running == 0


def test_who_leaves_gets_nothing_more_and_the_others_notice_nothing() -> None:
    """A cancelled request is withheld from its next instant on."""
    metronome: Metronome[Key] = Metronome(Beat(MS), 0)
    gone, stays = Key(), Key()
    metronome.submit(gone, 1, 3, 0)
    metronome.submit(stays, 1, 3, 0)
    first = metronome.advance(0)
    assert first is not None
    assert len(first.tokens) == 2
    assert metronome.cancel(gone, 0)
    assert not metronome.cancel(gone, 0)
    assert [index for _, index, _ in played(metronome)[id(stays)]] == [1, 2]


def test_what_makes_no_sense_is_refused() -> None:
    """Time that runs backwards, a key twice, no tokens, no interval."""
    metronome: Metronome[Key] = Metronome(Beat(MS), 0)
    key = Key()
    metronome.submit(key, 1, 1, 5)
    with pytest.raises(ValueError, match="in use"):
        metronome.submit(key, 1, 1, 5)
    with pytest.raises(ValueError, match="at least one"):
        metronome.submit(Key(), 1, 0, 5)
    with pytest.raises(ValueError, match="backwards"):
        metronome.advance(4)
    assert metronome.advance(5) is None
    for wrong in ((0, 0, 0), (1, -1, 0), (1, 0, -1)):
        with pytest.raises(ValueError, match="must"):
            Beat(*wrong)


def test_the_script_on_the_command_line() -> None:
    """Microseconds in, nanoseconds kept; without an interval there is no script to speak of."""
    assert parse([]).beat is None
    given = parse(["--interval-us", "20000", "--ttft-us", "1.5", "--ttft-spread-us", "3"])
    assert given.beat == Beat(20 * MS, 1_500, 3_000)
    for flags in (["--ttft-us", "5"], ["--interval-us", "0"]):
        with pytest.raises(PlanError, match="interval"):
            parse(flags)
