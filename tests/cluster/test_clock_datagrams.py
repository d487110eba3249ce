"""Datagrams of clock probes: what one side signs the other reads, and nothing else is read at all."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cluster.clock_datagrams import (
    MOST_BYTES,
    ConductorStamps,
    Kind,
    key_name,
    opened,
    sealed,
)

KEY, OTHER = bytes(range(32)), bytes(32)
KEYS = {key_name(KEY): KEY}
SESSION = b"sessions"
stamps = st.builds(ConductorStamps, *[st.integers(-(1 << 63), (1 << 63) - 1)] * 3)
numbers = st.integers(0, (1 << 64) - 1)


@given(st.sampled_from([Kind.PROBE, Kind.REPLY]), numbers)
def test_a_signed_datagram_reads_as_it_was_made(kind: Kind, number: int) -> None:
    """Kind, key, session and number."""
    assert opened(sealed(kind, KEY, SESSION, number), KEYS) == (kind, KEY, SESSION, number, None)


@given(numbers, stamps)
def test_a_follow_up_carries_stamps(number: int, carried: ConductorStamps) -> None:
    """All three, with their signs."""
    found = opened(sealed(Kind.FOLLOW_UP, KEY, SESSION, number, carried), KEYS)
    assert found is not None
    assert found.stamps == carried


@given(numbers, st.integers(0, MOST_BYTES * 8 - 1))
def test_a_changed_bit_is_noticed(number: int, bit: int) -> None:
    """Law: each bit is signed, the signature's own included."""
    data = bytearray(sealed(Kind.PROBE, KEY, SESSION, number))
    assert len(data) == MOST_BYTES
    data[bit // 8] ^= 1 << bit % 8
    assert opened(bytes(data), KEYS) is None


@given(st.binary(max_size=200))
def test_what_is_no_datagram_is_passed_over(data: bytes) -> None:
    """Law: no bytes raise, and none that are unsigned are read."""
    assert opened(data, KEYS) is None


def test_no_other_key_is_believed() -> None:
    """Neither one that is not registered, nor another under the name of one that is."""
    data = sealed(Kind.PROBE, OTHER, SESSION, 1)
    assert opened(data, KEYS) is None
    assert opened(data, {key_name(OTHER): KEY}) is None


def test_answers_together_are_no_longer_than_the_probe() -> None:
    """So a forged sender gets no more than the forger has sent."""
    answers = sealed(Kind.REPLY, KEY, SESSION, 1) + sealed(
        Kind.FOLLOW_UP, KEY, SESSION, 1, ConductorStamps(1, 2, 3)
    )
    assert len(answers) <= len(sealed(Kind.PROBE, KEY, SESSION, 1))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    """With the length that it has to have."""
    with pytest.raises(ValueError, match="32 bytes"):
        key_name(os.urandom(length))
