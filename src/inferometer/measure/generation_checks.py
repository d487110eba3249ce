"""What generations of one prompt show against their figures: two clocks that should agree, a first run unlike all later ones,
and a first text that is none.

| finding         | rule                                                                                                      |
| --------------- | --------------------------------------------------------------------------------------------------------- |
| clocks apart    | over its runs, the engine's time for generating, or for all of it, is off the client's by more than        |
|                 | CLOCK_SHARE and CLOCK_MS a run; the whole, where it is longer than the client waited                       |
| faster later    | every later run is at least LATER times as fast as the first: answers that are repeated and not generated, |
|                 | or an engine that was still warming up                                                                     |
| sooner later    | TTFT of every later run is at most 1 / LATER of the first's, and SOONER_MS shorter: a prefix cache         |
| early text      | in every run, one of the first gaps after the first text is more than EARLY usual ones, and EARLY_MS: a    |
|                 | space or a word sent before there is an answer                                                            |
| held back       | in every run, TTFT was HELD times as long as a whole answer of one token to the same prompt, or longer,    |
|                 | and by more than HELD_SHARE of the run and CLOCK_MS: something keeps text that could have been sent        |
| repeated        | every run was at least LATER times as fast as a whole answer to a text that is new, by the client's clock: |
|                 | answers that something kept from before, so that even the first run is none of the engine's               |
| late end        | in every run, the stream ended so much later than its last text that the client's time for generating is   |
|                 | longer by more than CLOCK_SHARE and CLOCK_MS; M5 is defined to hold that                                  |

An engine generates while its text arrives, so its own time and the client's are nearly the same; asiai's methodology found them
0.75 % apart. Text that an engine generates and does not send makes its own time longer; then its count of tokens is off the
text, too, and nobody can tell how fast it is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.measure.generations import Generation
from inferometer.units import NS_PER_MS

CLOCK_SHARE = 0.05
"""A figure that is off by more than a twentieth is another figure."""
CLOCK_MS = 10.0
"""A generation shorter than this has no speed (M1); no difference of less is one of speed."""
LATER = 2.0
"""Runs of one prompt differ by a few per cent; a machine that slows down or recovers, hardly by this from the first on."""
SOONER_MS = 10.0
HELD, HELD_SHARE = 2.0, 0.1
"""An answer of one token takes as long as the first token of any other, and HTTP beside."""
EARLY, EARLY_MS = 10.0, 20.0
"""A pause after the first text that is the same in every run is no stall of the machine."""


@dataclass(frozen=True, slots=True)
class ClocksApart:
    """Of what, and for how long by the engine and by the client: ms, mean over the runs."""

    what: Literal["generating", "the whole"]
    own_ms: float
    client_ms: float


def clocks_apart(mine: Sequence[Generation]) -> ClocksApart | None:
    """Of the generations of one prompt that count; None: nothing contradicts, or the engine has no durations of its own."""
    timed = [
        (one.by, one.client)
        for one in mine
        if one.by is not None and one.client is not None and one.by.source == "server"
    ]
    if not timed:
        return None
    runs = len(timed)
    own, client = (math.fsum(pair[at].generation_ms for pair in timed) / runs for at in (0, 1))
    if abs(own - client) > max(CLOCK_SHARE * client, CLOCK_MS):
        return ClocksApart("generating", own, client)
    own, client = (math.fsum(pair[at].total_ms for pair in timed) / runs for at in (0, 1))
    if own - client > max(CLOCK_SHARE * client, CLOCK_MS):
        return ClocksApart("the whole", own, client)
    return None


def faster_later(mine: Sequence[Generation]) -> float | None:
    """How many times as fast as the first run the later ones are, as median, if all of them are by LATER; else None."""
    speeds = [one.speed for one in mine if one.speed is not None]
    if len(speeds) < 2 or mine[0].run != 1 or min(speeds[1:]) < LATER * speeds[0]:
        return None
    return statistics.median(speeds[1:]) / speeds[0]


def sooner_later(mine: Sequence[Generation]) -> bool:
    """Whether the client's TTFT of all later runs is so much shorter than the first's."""
    waits = [one.client.ttft_ms for one in mine if one.client is not None]
    if len(waits) < 2 or mine[0].run != 1:
        return False
    return LATER * max(waits[1:]) <= waits[0] and waits[0] - max(waits[1:]) >= SOONER_MS


def early_text_ms(mine: Sequence[Generation]) -> float | None:
    """How long nothing followed the first text, as median, if that is odd in every run; else None."""
    pauses = [one.pause for one in mine]
    if not pauses or not all(
        one is not None and one.longest_ms > max(EARLY_MS, EARLY * one.usual_ms) for one in pauses
    ):
        return None
    return statistics.median(one.longest_ms for one in pauses if one is not None)


def held_back_ms(mine: Sequence[Generation], one_token_ms: float) -> float | None:
    """The client's TTFT, as median, if it is so much longer in every run than a whole answer of one token took; else None."""
    times = [one.client for one in mine if one.client is not None]
    if not times or not all(
        one.ttft_ms >= HELD * one_token_ms
        and one.ttft_ms - one_token_ms > max(CLOCK_MS, HELD_SHARE * one.total_ms)
        for one in times
    ):
        return None
    return statistics.median(one.ttft_ms for one in times)


def repeated(mine: Sequence[Generation], tokens: int, generation_ms: float) -> float | None:
    """How many times as fast as an answer that is new the runs were, as median, if all of them were by LATER; else None.

    `tokens`: of the new answer behind its first; `generation_ms`: what they took.
    """
    timed = [
        one.tokens / one.client.generation_ms
        for one in mine
        if one.client is not None and one.client.generation_ms > 0 and one.tokens_counted and one.tokens
    ]
    if not timed or generation_ms <= CLOCK_MS:
        return None
    new = tokens / generation_ms
    return statistics.median(timed) / new if new > 0 and min(timed) >= LATER * new else None


def late_end_ms(mine: Sequence[Generation]) -> float | None:
    """How long the stream stayed open after its last text, as median, if the client's speed is lower by that in every run."""
    waits = [
        ((one.ended_ns - one.last_text_ns) / NS_PER_MS, one.by.generation_ms)
        for one in mine
        if one.by is not None and one.by.source == "client" and one.last_text_ns is not None
    ]
    if len(waits) < len(mine) or not waits:
        return None
    if any(wait <= max(CLOCK_MS, CLOCK_SHARE * (whole - wait)) for wait, whole in waits):
        return None
    return statistics.median(wait for wait, _ in waits)
