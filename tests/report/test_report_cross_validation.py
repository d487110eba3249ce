"""What a cross-validation says of the client's overhead, whichever way it points."""

from __future__ import annotations

import pytest

from inferometer.documents.bench import Remark
from inferometer.documents.cross_validation import CrossValidation, Difference, Overhead
from inferometer.report.cross_validation import sentences


def document(overhead: Overhead, *remarks: Remark) -> CrossValidation:
    return CrossValidation(
        schema="inferometer/cross-validation/1", id="x", version="1", url="http://127.0.0.1:1", engine="vllm",
        engine_version=None, model="m", prompt="code", requests=5, started="2026-01-01T00:00:00Z",
        ended="2026-01-01T00:01:00Z", interrupted=False, status="VALID", reasons=(), runs=(),
        tables=(), overhead=overhead, remarks=remarks,
    )  # fmt: skip


def said(overhead: Overhead, *remarks: Remark) -> str:
    """With plain spaces and signs."""
    return " ".join(sentences(document(overhead, *remarks))).replace("\u202f", " ").replace("\u2212", "-")


ABOVE = Difference(1.2, (0.9, 1.5), 0.02, (0.01, 0.03), "above")
BELOW = Difference(-1.2, (-1.5, -0.9), -0.02, (-0.03, -0.01), "below")
OPEN = Difference(-0.1, (-0.4, 0.2), -0.002, (-0.008, 0.004), "open")
ALONE = Difference(-0.1, None, -0.002, None, "open")


@pytest.mark.parametrize(
    ("one", "ttft", "speed", "streaming"),
    [
        (
            ABOVE,
            "The TTFT by the client is 1.2 ms longer than the engine's own, 95 % interval 0.9 ms to 1.5 ms: HTTP",
            "is higher than the engine's own: +2 %, 95 % interval +1 % to +3 %. The engine counts time that the client",
            "A streamed answer is 1.2 ms longer than one in one piece",
        ),
        (
            BELOW,
            "The TTFT by the client is 1.2 ms shorter than the engine's own, 95 % interval 0.9 ms to 1.5 ms: the engine counts",
            "is lower than the engine's own: -2 %, 95 % interval -3 % to -1 %.",
            "A streamed answer is 1.2 ms shorter than one in one piece",
        ),
        (
            OPEN,
            "the engine's own no difference is shown: it is -0.1 ms, 95 % interval -0.4 ms to +0.2 ms.",
            "no difference is shown: it is -0.2 %, 95 % interval -0.8 % to +0.4 %.",
            "Between a streamed answer and one in one piece no difference is shown",
        ),
        (
            ALONE,
            "The TTFT by the client was 0.1 ms shorter than the engine's own, on average; there is no interval",
            "was 0.2 % lower than the engine's own; there is no interval",
            "A streamed answer was 0.1 ms shorter",
        ),
    ],
)  # fmt: skip
def test_a_difference_is_named_by_its_side(one: Difference, ttft: str, speed: str, streaming: str) -> None:
    """Longer, shorter, or not shown; only what lies on the client's side is called an overhead."""
    words = said(Overhead(one, one, one))
    for expected in (ttft, speed, streaming):
        assert expected in words


def test_nothing_is_said_of_one_side() -> None:
    """Without figures of the engine's own the overhead is unknown."""
    assert said(Overhead(None, None, None)) == (
        "The engine shows nothing of its own to compare with: the overhead of the client is not known."
    )


def test_answers_of_unlike_lengths_are_no_cost_of_streaming() -> None:
    """Neither way."""
    for one in (ABOVE, BELOW):
        words = said(Overhead(None, None, one), Remark("lengths_differ"))
        assert "their answers differ in length, which is part of it." in words
        assert "events" not in words
        assert "costs" not in words
