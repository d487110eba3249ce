"""The comparison of transports (benchmarks/transports.py): its table, its settings and its ratios. Nothing is timed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` is not installed

from benchmarks.against import LOADS, with_package
from benchmarks.transports import TRANSPORTS, Setting, Transport, _ratios, settings
from inferometer.plan.parse import build

FIRST, SECOND = TRANSPORTS[:2]


def test_each_setting_has_a_label_of_its_own() -> None:
    """Law: figures of different settings are never put into one row."""
    found = settings(TRANSPORTS, 1_000)
    labels = [setting.label(1_000) for setting in found]
    assert len(set(labels)) == len(labels)
    assert labels[:2] == ["HTTP/1.1, 1,000 connections", "HTTP/1.1, 1,000 connections, TLS"]


def test_every_transport_is_held_against_the_first() -> None:
    """Law: whatever is chosen, HTTP/1.1 is measured in the same round, once."""
    for one in TRANSPORTS:
        chosen = [setting.transport for setting in settings([one], 1_000)]
        assert chosen[0] is FIRST
        assert [setting for setting in settings([one], 1_000) if setting.transport is FIRST] == settings(
            [FIRST], 1_000
        )


def test_a_shared_connection_carries_its_part_of_the_streams() -> None:
    """Law: 1,000 streams are on 10 connections and on 1,000, where a transport can share them."""
    each = [(one.transport.name, one.each) for one in settings([SECOND], 1_000) if not one.tls]
    assert each == [("HTTP/1.1", 1), ("HTTP/2", 100), ("HTTP/2", 1)]


def test_ratios_are_within_a_round_and_to_the_right_side() -> None:
    """Law: a transport is related to HTTP/1.1 without TLS, and TLS to the same transport without."""
    plain, secured = Setting(FIRST, 1, tls=False), Setting(FIRST, 1, tls=True)
    other, other_secured = Setting(SECOND, 100, tls=False), Setting(SECOND, 100, tls=True)
    rates = {other_secured: 30.0, other: 50.0, secured: 80.0, plain: 100.0}
    found = {figure.label.partition(":")[0]: figure.value for figure in _ratios(rates, 1_000)}
    assert found == {
        "HTTP/1.1, 1,000 connections, TLS": 0.8,
        "HTTP/2, 10 connections": 0.5,
        "HTTP/2, 10 connections, TLS": 0.6,
    }


@pytest.mark.parametrize("one", TRANSPORTS, ids=lambda one: str(one.name))
def test_the_flags_of_each_transport_are_the_commands_own(one: Transport) -> None:
    """Law: what the table gives the instrument is a plan that it accepts."""
    words = list(one.flags(10))
    build(None, dict(zip(words[::2], words[1::2], strict=True)))


def test_both_sides_of_a_comparison_use_their_own_package(tmp_path: Path) -> None:
    """Law: a tree without the package is no side of a comparison: the installed one would be measured twice."""
    with pytest.raises(RuntimeError, match="the package comes from"):
        with_package(tmp_path)
    assert "PYTHONPATH" in with_package(Path(__file__).parent.parent)
    assert set(LOADS) > {"one-token", "streams-1000", "saturation"}
