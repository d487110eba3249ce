"""Tokens that nobody sees and that the server counts, before the first text or after the last: they are no part of the time
that TPOT divides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from benchmarks.trial.defects import OPEN, Case, Defect, Plant, base, random_of, seen
from benchmarks.trial.lies import COUNTS, LENGTHS, ZERO_WIDTH
from benchmarks.trial.playing import text
from benchmarks.trial.records import RATES, Headline, Recorded, headlines, judged, latencies
from inferometer.journal.schema import EventClass

SHORT = replace(OPEN, seed=31, answers=(16, 16))
"""Answers of 16 tokens, where one is a fifteenth of the pace."""
ROLE, CONTENT, EMPTY = (
    bytes([int(kind)]) for kind in (EventClass.ROLE, EventClass.CONTENT, EventClass.EMPTY)
)


def without(tokens: int) -> Plant:
    """Answers that begin so many tokens later: the first of them are made, and not sent."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        events = [np.concatenate((times[:1], times[1 + tokens :])) for times in columns["event_ns"]]
        kept = [len(times) - 1 for times in events]
        return recorded.but(
            event_ns=events,
            event_class=[ROLE + CONTENT * n for n in kept],
            text=[text(n) for n in kept],
            output_tokens_local=np.array(kept),
        )

    return plant


def shown_late(hidden: int, character: str) -> Plant:
    """The first tokens are events without visible text: of this character, or empty."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        lengths = [len(times) - 1 for times in recorded.columns["event_ns"]]
        first = np.full(len(lengths), 1 + hidden)
        return recorded.but(
            event_class=[ROLE + EMPTY * hidden + CONTENT * (n - hidden) for n in lengths],
            text=[character * hidden + text(n - hidden) for n in lengths],
            first_text=first,
            first_visible=first,
            first_answer=first,
            output_tokens_local=np.array([n - (0 if character else hidden) for n in lengths]),
        )

    return plant


def reasons(tokens: int) -> Plant:
    """The first tokens are reasoning, which is counted and not sent."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        made = without(tokens)(recorded, random)
        return made.but(usage_reasoning=[tokens] * len(recorded.measured))

    return plant


def ended(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """Answers end by themselves, by a token that is counted."""
    columns = recorded.columns
    return recorded.but(
        finish_reason=["stop"] * len(recorded.measured), usage_output=columns["usage_output"] + 1
    )


def hiding(name: str, plant: Plant, tokens: int, expects: tuple[str, ...] = ()) -> Defect:
    """The truth: latencies of the same answers with no more tokens than are seen, and the tokens per second of all of them."""

    def carry_out() -> Case:
        recorded = base(SHORT)
        said = judged(plant(recorded, random_of(name)))

        def truth() -> Mapping[str, Headline]:
            shown = without(tokens)(recorded, random_of(name))
            shown = shown.but(usage_output=recorded.columns["usage_output"] - tokens)
            rates = {key: one for key, one in headlines(said.measurement).items() if key in RATES}
            return latencies(judged(shown).measurement.metrics) | rates

        return seen(said, truth)

    return Defect(name, "tokens that nobody sees", expects, carry_out)


def defects() -> Iterator[Defect]:
    """All of them."""
    yield hiding("the first of 16 tokens a zero-width space", shown_late(1, ZERO_WIDTH), 1, LENGTHS)
    yield hiding("the first of 16 tokens an empty delta", shown_late(1, ""), 1, COUNTS)
    yield hiding("the first 3 of 16 tokens empty deltas", shown_late(3, ""), 3, COUNTS)
    yield hiding("the first of 16 tokens without an event", without(1), 1, COUNTS)
    yield hiding("8 of 16 tokens reasoning that is not sent", reasons(8), 8, LENGTHS)
    yield hiding("a 17th token that ends the answer", ended, 0, LENGTHS)
