"""The lines about gaps and steady state: every figure they name is the summary's, and nothing missing reads as zero."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import pytest
from msgspec.structs import replace

from inferometer.documents.summary import Summary
from inferometer.measure.itl_shape import Modality, Tail
from inferometer.report.figures import ascii_only, figure
from inferometer.report.run import disclosure


def rows(summary: Summary) -> dict[str, str]:
    """The disclosure, in ASCII."""
    return {title: ascii_only(words) for title, words in disclosure.method(summary)}


def test_both_lines_stand_in_the_disclosure(valid: Summary) -> None:
    """With the summary's figures."""
    assert valid.itl_shape is not None
    assert valid.steady is not None
    shape = dataclasses.replace(
        valid.itl_shape, modes_ms=(14.1, 41.5), modality="multimodal", tail="exponential or lighter"
    )
    assert shape.jitter_ms is not None
    line = rows(replace(valid, itl_shape=shape))["Gaps between tokens"]
    assert f"jitter P50 {figure(shape.jitter_ms.p50)}" in line
    assert f"several modes, at 14.10, 41.50 ms; P99 / P50 {figure(shape.tail_ratio)}" in line
    assert f"a tail no heavier than exponential. Of {shape.answers} answers of at least 50" in line
    steady = valid.steady
    assert rows(valid)["Steady state"].startswith(
        f"{steady.arrivals} requests sent, {steady.completions} completed (of those due "
    )


@pytest.mark.parametrize("rising", [True, False, None])
@pytest.mark.parametrize("source", ["server", "in_flight"])
def test_every_queue_has_words(
    valid: Summary, rising: bool | None, source: Literal["server", "in_flight"]
) -> None:
    """A closed loop has no ratio, and its queue is the client's doing."""
    assert valid.steady is not None
    assert valid.steady.queue is not None
    queue = dataclasses.replace(valid.steady.queue, rising=rising, source=source)
    steady = dataclasses.replace(valid.steady, completion_ratio=None, completion_ratio_ci95=None, queue=queue)
    line = rows(replace(valid, steady=steady))["Steady state"]
    assert disclosure.RISING[rising] in line
    assert disclosure.SOURCES[source] in line
    assert "due" not in line


def test_every_shape_has_words(valid: Summary) -> None:
    """Whatever the measurement can say of modes and tail."""
    assert set(disclosure.MODALITY) == set(get_args(Modality))
    assert set(disclosure.TAILS) == set(get_args(Tail))
    assert valid.itl_shape is not None
    none = dataclasses.replace(
        valid.itl_shape,
        modes_ms=(),
        modality="undetermined",
        tail="undetermined",
        tail_ratio=None,
        jitter_ms=None,
        max_pause_ms=None,
    )
    line = rows(replace(valid, itl_shape=none))["Gaps between tokens"]
    assert "undetermined" in line
    assert "None" not in line


def test_nothing_is_not_zero(empty: Summary) -> None:
    """No span and no stream are said in words."""
    assert rows(empty)["Steady state"].startswith("not known")
    assert rows(empty)["Gaps between tokens"].startswith("none:")
