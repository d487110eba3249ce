"""Whether TTFT grows with the length of the answer that follows: it does not if a server streams, it does if text is held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass
from inferometer.measure.length_wait import LIMIT, LengthWait, Waits, held_whole, length_wait
from inferometer.measure.record import Floats
from inferometer.measure.samples import Samples

PACE_MS, REPLAY_MS = 5.0, 1.0


def served(seed: int, n: int = 1_000, tokens: Floats | None = None, *, tied: bool = False) -> Waits:
    """A queue that wanders, prompts of 20 us a token, answers of 30 to 90 tokens (`tied`: an eighth of the prompt)."""
    random = np.random.default_rng(seed)
    queue = np.abs(np.cumsum(random.normal(0, 5.0, n)))
    prompt = random.integers(240, 721, n).astype(np.float64)
    lengths = random.integers(30, 91, n).astype(np.float64) if tokens is None else tokens
    lengths = np.round(prompt / 8) if tied else lengths
    ttft = 10.0 + queue + 0.02 * prompt + random.exponential(3.0, n)
    return Waits(ttft, lengths, prompt, np.full(n, PACE_MS), np.zeros(n, np.int64))


def held(waits: Waits, share: float, seed: int = 5, replay_ms: float = REPLAY_MS) -> Waits:
    """A share of the answers is collected, and then sent on token by token."""
    chosen = np.random.default_rng(seed).random(len(waits)) < share
    late = (waits.tokens - 1.0) * PACE_MS
    return Waits(
        np.where(chosen, waits.ttft + late, waits.ttft),
        waits.tokens,
        waits.prompt,
        np.where(chosen, replay_ms, waits.pace),
        waits.kind,
    )


@pytest.mark.parametrize(
    ("share", "replay_ms"),
    [
        *((1.0, ms) for ms in (0.2, 1.0, PACE_MS, 8.0)),
        *((share, 1.0) for share in (0.95, 0.9, 0.6, 0.3, 0.1, 0.05)),
    ],
)
def test_held_answers_show_the_pace_at_which_they_were_made(share: float, replay_ms: float) -> None:
    """Law: if all answers are held, they are found whatever the pace at which they are sent on; a share of them where it is not
    that of the others. TTFT grows by the true time of a token."""
    calm = served(1)
    quiet = Waits(10.0 + calm.ttft % 7.0, *(calm.tokens, calm.prompt, calm.pace, calm.kind))
    found = held_whole(held(quiet, share, replay_ms=replay_ms))
    assert found is not None
    assert found.statistic > LIMIT
    assert share / 2 <= found.share <= 1.5 * share
    assert found.token_ms == pytest.approx(PACE_MS, rel=0.25)


@pytest.mark.parametrize("seed", range(40))
def test_a_server_that_streams_is_not_taken_for_one_that_holds(seed: int) -> None:
    """Law: under a queue that wanders, whether lengths are drawn by themselves or follow the prompts, nothing is found."""
    assert held_whole(served(seed)) is None
    assert held_whole(served(seed, tied=True)) is None


def test_answers_of_one_length_say_nothing() -> None:
    """Law: where lengths do not vary, held answers leave no trace in them; nor in a handful of answers."""
    assert held_whole(held(served(2, tokens=np.full(1_000, 60.0)), 1.0)) is None
    assert held_whole(held(served(2, n=12), 1.0)) is None


@pytest.mark.parametrize("idle", [0.0, 0.3])
def test_short_answers_first_is_not_held_text(idle: float) -> None:
    """Law: where a longer answer waits longer in the queue, but not always, as where the shortest are served first, nothing is
    claimed: a held answer could not have come so soon."""
    random = np.random.default_rng(3)
    waits = served(3)
    waiting = np.where(random.random(len(waits)) < idle, 0.0, (waits.tokens - 30.0) * 3 * PACE_MS)
    ttft = 10.0 + waiting * random.exponential(1.0, len(waits))
    assert held_whole(Waits(ttft, waits.tokens, waits.prompt, waits.pace, waits.kind)) is None


def test_a_wait_too_short_for_the_steps_of_an_answer_is_no_hold() -> None:
    """Law: TTFT that grows by a tenth of a token's time for each token, as where memory is reserved for answers, is none."""
    waits = served(4)
    reserved = Waits(10.0 + 0.1 * PACE_MS * waits.tokens, waits.tokens, waits.prompt, waits.pace, waits.kind)
    assert held_whole(reserved) is None


def test_kinds_of_requests_are_not_compared_with_each_other() -> None:
    """Law: where one class has long prompts, long waits and long answers, and the other neither, that is the classes' doing."""
    random = np.random.default_rng(6)
    kind = (random.random(1_000) < 0.3).astype(np.int64)
    tokens = np.where(kind, random.integers(200, 300, 1_000), random.integers(10, 60, 1_000)).astype(
        np.float64
    )
    ttft = np.where(kind, 5_000.0, 20.0) + random.exponential(5.0, 1_000)
    waits = Waits(ttft, tokens, np.full(1_000, 100.0), np.full(1_000, PACE_MS), kind)
    assert held_whole(waits) is None


def test_reasoning_that_is_not_sent_is_no_held_text(build: Any) -> None:
    """Law: answers whose reasoning was counted and not sent are not judged: their wait has its steps."""

    def rows(**more: Any) -> list[dict[str, Any]]:
        random = np.random.default_rng(7)
        found = []
        for index, size in enumerate(random.integers(5, 40, 200).tolist()):
            begin = 1_000.0 * index
            events = [(begin + 10.0 + PACE_MS * size + at, EventClass.CONTENT) for at in range(size)]
            given = {"index": index, "t_intended": begin, "events": events, "usage_output": size}
            found.append(given | dict.fromkeys(more, size))
        return found

    def found(**more: Any) -> LengthWait | None:
        return length_wait(Samples(build(*rows(**more)), streamed=True))

    assert found() is not None
    assert found(usage_reasoning=True) is None
