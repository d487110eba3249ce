"""Answers whose events were collected and sent on one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.collected import collected
from inferometer.measure.record import Ints

US = 1_000


def within(*answers: Ints) -> list[int]:
    """Places of the events that are not the first of a lump."""
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in answers]))).astype(np.int64)
    at = np.concatenate(answers).astype(np.int64) if answers else np.zeros(0, np.int64)
    return [int(place) for part in collected(at, offsets) for place in part]


def made(gaps_us: list[int] | Ints) -> Ints:
    """When the events of an answer were made, from the gaps between them."""
    return np.concatenate(([0], np.cumsum(np.asarray(gaps_us, np.int64)))) * US


def in_lumps(at: Ints, size: int, apart_us: int) -> Ints:
    """What a proxy sends that collects so many events."""
    number = np.arange(len(at))
    ready = at[np.minimum((number // size + 1) * size, len(at)) - 1]
    found: Ints = np.maximum.accumulate(ready + (number % size) * apart_us * US)
    return found


PACES = st.lists(st.integers(8_000, 12_000), min_size=40, max_size=120)
"""Gaps of an engine that makes a hundred tokens a second, in us."""


@given(PACES, st.integers(2, 16), st.integers(30, 1_000))
def test_events_collected_up_to_a_number_are_found(gaps: list[int], size: int, apart_us: int) -> None:
    """Law: whatever the number and however the lumps are sent on, exactly the later events of each full lump are found, while
    lumps are ten times as far apart as the events in them. What is left may follow the lump before it at once."""
    if 8_000 * size - apart_us * (size - 1) < 10 * max(apart_us, 50):
        return
    sent = in_lumps(made(gaps), size, apart_us)
    full = len(sent) // size * size
    assert [at for at in within(sent) if at < full] == [at for at in range(full) if at % size]


@given(st.integers(30, 120), st.integers(0, 99_999), st.integers(100, 300))
def test_events_collected_for_a_time_are_found(size: int, offset_us: int, apart_us: int) -> None:
    """Law: a buffer that is emptied 10 times a second, in lumps of any sizes, is found by its clock, at whatever phase."""
    made_at = made([6_000, 9_000, 17_000, 8_000] * size)
    flushed = (made_at // US + offset_us) // 100_000 * 100_000 + 100_000 - offset_us
    number = np.arange(len(flushed))
    first = np.maximum.accumulate(np.where(np.diff(flushed, prepend=-1) > 0, number, 0))
    sent = (flushed + (number - first) * apart_us) * US
    found = within(sent)
    # One token alone at the beginning was not held back.
    assert found == ([at for at in number if at != first[at]] if first[1] == 0 else [])


@given(PACES, st.integers(3, 12), st.integers(30, 600))
def test_a_beginning_that_was_held_is_found(gaps: list[int], size: int, apart_us: int) -> None:
    """Law: who looks at the first few tokens and then passes them on in turn is found, and nothing of the rest."""
    at = made(gaps)
    sent = at.copy()
    sent[:size] = at[size - 1] + np.arange(size) * apart_us * US
    if 8_000 - apart_us * (size - 1) < 10 * apart_us:
        return
    assert within(np.maximum.accumulate(sent)) == list(range(1, size))


@given(PACES, st.integers(2, 8), st.integers(30, 500))
def test_a_first_token_that_comes_alone_was_not_collected(gaps: list[int], size: int, apart_us: int) -> None:
    """Law: an engine that guesses ahead makes its first token alone and then several at once: nothing was held back."""
    at = made(gaps)
    assert within(np.append(at[:1], in_lumps(at[1:], size, apart_us))) == []


@given(st.integers(0, 1 << 32))
def test_what_chance_makes_is_hardly_ever_taken_for_lumps(seed: int) -> None:
    """Law: of answers of a steady pace, of gaps without memory, and of a quick engine that stands still now and then, hardly
    one in a hundred looks collected: a verdict is decided by more than that, beyond chance."""
    rng = np.random.default_rng(seed)
    steady = [made(rng.integers(500, 1_500, 60)) for _ in range(200)]
    memoryless = [made((rng.exponential(10_000, 60) + 1).astype(np.int64)) for _ in range(200)]
    stalling = [made(np.where(rng.random(60) < 0.1, 20_000, 400)) for _ in range(200)]
    for answers in (steady, memoryless, stalling):
        assert sum(bool(within(one)) for one in answers) <= 6


@given(st.lists(st.lists(st.integers(0, 20_000), max_size=30), max_size=12))
def test_each_answer_is_looked_at_alone(answers: list[list[int]]) -> None:
    """Law: what is found among many answers is what is found in each."""
    lumps = [in_lumps(made(gaps), 3, 100) for gaps in answers]
    each, start = list[int](), 0
    for one in lumps:
        each += [start + place for place in within(one)]
        start += len(one)
    assert within(*lumps) == each
