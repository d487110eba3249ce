"""The lines about gaps and steady state: every figure they name is the summary's, and nothing missing reads as zero."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from inferometer.measure.itl_shape import Modality, Tail
from inferometer.report.figures import ascii_only
from inferometer.report.run import steadiness
from inferometer.report.run.disclosure import method


def test_both_lines_stand_in_the_disclosure(valid: dict[str, Any]) -> None:
    """By hand, of the sample run."""
    told = {title: ascii_only(words) for title, words in method(valid)}
    shape = valid["itl_shape"]
    assert "several modes, at 14.10, 41.50 ms; P99 / P50 2.900" in told["Gaps between tokens"]
    assert "a tail no heavier than exponential. Of 1006 answers of at least 50" in told["Gaps between tokens"]
    assert f"jitter P50 {shape['jitter_ms']['p50']:.3f}" in told["Gaps between tokens"]
    assert told["Steady state"] == (
        "962 requests sent, 924 completed (of those due 0.9605, 95% interval 0.9310-0.9900); "
        "requests in flight by thirds 44.10, 45.30, 44.20: not growing; "
        "output tokens/s by thirds 3080, 3122, 3152: stable"
    )


@pytest.mark.parametrize("growing", [True, False, None])
@pytest.mark.parametrize("source", ["server", "in_flight"])
def test_every_queue_has_words(valid: dict[str, Any], growing: bool | None, source: str) -> None:
    """A closed loop has no ratio, and its queue is the client's doing."""
    seen = valid["steady"] | {"completion_ratio": None, "completion_ratio_ci95": None}
    said = steadiness.steady(seen | {"queue": seen["queue"] | {"growing": growing, "source": source}})
    assert steadiness.GROWING[growing] in said
    assert steadiness.SOURCES[source] in said
    assert "due" not in said


def test_every_shape_has_words(valid: dict[str, Any]) -> None:
    """Whatever the measurement can say of modes and tail."""
    assert set(steadiness.MODALITY) == set(get_args(Modality))
    assert set(steadiness.TAILS) == set(get_args(Tail))
    none = valid["itl_shape"] | {"modes_ms": [], "modality": "undetermined", "tail": "undetermined"}
    said = steadiness.gaps(none | {"tail_ratio": None, "jitter_ms": None, "max_pause_ms": None})
    assert "undetermined" in said
    assert "None" not in said


def test_nothing_is_not_zero() -> None:
    """No span and no stream are said in words."""
    assert steadiness.steady(None).startswith("not known")
    assert steadiness.gaps(None).startswith("none:")
