"""Differences between the server's counts and the client's, answer by answer."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.count_gaps import CountGaps, count_gaps
from inferometer.measure.tokens import Counts, CountSource

ESTIMATE = tuple(CountSource).index(CountSource.ESTIMATE)
ANSWERS = st.lists(
    st.tuples(st.integers(1, 400), st.integers(1, 400), st.integers(0, 400), st.booleans()),
    min_size=1,
    max_size=30,
)
"""The server's tokens, events with text, words, and whether the answer ended by itself."""


def gaps(answers: list[tuple[int, int, int, bool]], *, estimated: bool = False) -> CountGaps:
    """Of answers whose text has a token for each event."""
    server, events, words, ended = (np.array(column) for column in zip(*answers, strict=True))
    none = np.full(len(server), np.nan)
    served = none if estimated else server.astype(np.float64)
    local, zero = events.astype(np.float64), np.zeros(len(server))
    counts = Counts(
        input=zero, output=server.astype(np.float64), source=np.full(len(server), ESTIMATE if estimated else 0),
        server_input=none, server_output=served, local_output=local, streamed=served, server_streamed=served, reasoning=zero,
    )  # fmt: skip
    return count_gaps(counts, local, zero, words, ended, np.zeros(len(server), np.bool_))


@given(ANSWERS)
def test_one_answers_difference_cancels_no_others(answers: list[tuple[int, int, int, bool]]) -> None:
    """Law: each gap of many answers is at most the sum of the single answers' gaps, and at least half of it: those above, or
    those below, whichever is more. Of words, it is the sum."""
    together, single = gaps(answers), [gaps([one]) for one in answers]
    for name in ("events", "tokenizer", "both"):
        total = sum(getattr(one, name) for one in single)
        assert total / 2 <= getattr(together, name) <= total
    assert together.words == sum(one.words for one in single)


@given(ANSWERS)
def test_counts_that_agree_have_no_gap(answers: list[tuple[int, int, int, bool]]) -> None:
    """Law: a server that counts each answer's events, or one end of sequence more where it ended, differs by nothing."""
    honest = [(events + ended, events, 0, ended) for _, events, _, ended in answers]
    assert gaps(honest) == CountGaps(0.0, 0.0, 0.0, 0.0, 0.0)


@given(ANSWERS)
def test_what_nobody_counted_is_estimated(answers: list[tuple[int, int, int, bool]]) -> None:
    """Law: the share is 1 where all counts are estimates, and such answers contradict no server."""
    found = gaps(answers, estimated=True)
    assert (found.estimated, found.events, found.tokenizer, found.words) == (1.0, 0.0, 0.0, 0.0)
