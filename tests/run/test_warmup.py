"""The verification of a warm-up as a procedure: what it sends, when it stops, and that it always does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import PeerError
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.plan.schema import Load
from inferometer.run import warmup
from inferometer.run.warmup import LEAST_PATIENCE_S, WARM_UP_COLUMNS, Part, Patience, Rows, warm_up_summary
from inferometer.units import NS_PER_S

LATENCIES = st.lists(st.none() | st.floats(1.0, 1e5), max_size=12)


class Played:
    """A server that takes `latencies` over its probes, one after the other, and makes `tokens` an answer."""

    def __init__(self, latencies: Sequence[float | None], tokens: int, good: int = 1_000_000) -> None:
        self.parts: list[Part] = []
        self.rows: list[dict[str, object]] = []
        self._latencies, self._tokens, self._good = list(latencies), tokens, good

    def play(self, part: Part) -> bool:
        """See warming.Play."""
        self.parts.append(part)
        for index in range(part.first, part.stop):
            ms: float | None = 1.0
            if part.phase is Phase.PROBE:
                ms = self._latencies.pop(0)
            good = ms is not None and len(self.rows) < self._good
            end = 1 + round((ms or 0) * 1_000_000)
            row = {"index": index, "phase": int(part.phase), "outcome": "ok" if good else "timeout"}
            self.rows.append({**row, "t_submit": 1, "t_end": end, "usage_output": self._tokens, "text": None})
        return True

    def seen(self) -> pa.Table:
        """See warming.Seen."""
        names = ("index", "phase", "outcome", "t_submit", "t_end", "usage_output", "text")
        return pa.Table.from_pylist(self.rows, pa.schema([OUTCOME.field(name) for name in names]))

    @property
    def warm(self) -> int:
        """Requests of warm-up that were sent."""
        return sum(part.stop - part.first for part in self.parts if part.phase is Phase.WARMUP)


def nothing(texts: Sequence[str]) -> list[int | None]:
    """A count that is never asked."""
    return [None for _ in texts]


@given(LATENCIES)
def test_three_in_a_row_decide(latencies: list[float | None]) -> None:
    """Settled if and only if the last three are there and lie within a tenth of the middle one."""
    last = latencies[-3:]
    complete = [one for one in last if one is not None]
    expected = False
    if len(complete) == 3:
        low, middle, high = sorted(complete)
        expected = (high - low) / middle < 0.1
    assert warmup.settled(latencies) is expected
    found = warmup.variation(latencies)
    assert (found is not None) is (len(complete) == 3)


@given(LATENCIES.filter(lambda some: len(some) > 0))
def test_probes_end_with_the_first_three_that_agree_or_with_the_last(latencies: list[float | None]) -> None:
    """One before, then one by one; never more than there are, and none behind the three that agree."""
    server = Played([5.0, *latencies], tokens=10)
    load = Load(concurrency=2, requests=5, warmup=4, warmup_probes=len(latencies))
    drained: list[int] = []
    assert warmup.warm_up(
        load, Rows(4, 1 + len(latencies), indivisible=False), server.play, server.seen, nothing,
        lambda: drained.append(len(server.parts)),
    )  # fmt: skip
    probes = [part for part in server.parts if part.phase is Phase.PROBE]
    assert [part.first for part in probes] == list(range(4, 4 + len(probes)))
    assert all(part.stop == part.first + 1 for part in probes)
    assert (server.parts[0].phase, server.parts[1].phase, drained) == (Phase.PROBE, Phase.WARMUP, [2])
    taken = latencies[: len(probes) - 1]
    assert not any(warmup.settled(taken[:at]) for at in range(len(taken)))
    assert warmup.settled(taken) or len(taken) == len(latencies)


@given(st.integers(1, 50), st.integers(0, 400), st.integers(1, 40), st.booleans())
def test_as_many_requests_and_tokens_as_asked_for_or_as_may_be(
    requests: int, asked: int, tokens: int, whole: bool
) -> None:
    """Never fewer than asked where answers have tokens enough, never more than ten times the rows, whole rounds if need be."""
    server = Played([], tokens)
    load = Load(concurrency=2, requests=5, warmup=requests, warmup_tokens=asked)
    warmup.warm_up(
        load, Rows(requests, 0, indivisible=whole), server.play, server.seen, nothing, lambda: None
    )
    assert requests <= server.warm <= warmup.MOST_TIMES * requests
    reached = server.warm * tokens >= asked
    assert reached or server.warm > (warmup.MOST_TIMES - 1) * requests
    assert [part.cycle for part in server.parts] == list(range(len(server.parts)))
    if whole:
        assert all((part.first, part.stop) == (0, requests) for part in server.parts)


@given(st.integers(1, 20), st.integers(0, 30))
def test_a_server_that_makes_nothing_is_not_asked_for_ever(requests: int, good: int) -> None:
    """Where a round brings nothing, no other follows."""
    server = Played([], tokens=0, good=good)
    load = Load(concurrency=2, requests=5, warmup=requests, warmup_tokens=100)
    warmup.warm_up(
        load, Rows(requests, 0, indivisible=False), server.play, server.seen, nothing, lambda: None
    )
    assert server.warm <= warmup.MOST_TIMES * requests


def test_what_is_interrupted_goes_no_further() -> None:
    """Each part is the last where the one who plays it says so."""
    for last in range(3):
        server = Played([5.0] * 4, tokens=10)
        load = Load(concurrency=2, requests=5, warmup=4, warmup_probes=3)
        stop = last + 1

        def play(part: Part, server: Played = server, stop: int = stop) -> bool:
            return server.play(part) and len(server.parts) < stop

        assert not warmup.warm_up(
            load, Rows(4, 4, indivisible=False), play, server.seen, nothing, lambda: None
        )
        assert len(server.parts) == stop


@given(
    steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2), st.integers(0, 2)), max_size=40),
    timeout_s=st.floats(0.1, 200),
)
def test_a_warm_up_is_over_once_nothing_succeeds_for_as_long_as_a_request_may_take(
    steps: list[tuple[int, int, int]], timeout_s: float
) -> None:
    """Law: since the latest success was seen, or the beginning, `timeout_s` has passed, a minute at least, and requests have
    failed; from then on for good. Each step is of some seconds, successes and failures."""
    patience = Patience(timeout_s)
    now = ok = failed = 0
    seen, over = (0, 0), patience.over(0, 0, 0)
    assert not over
    for seconds, more, worse in steps:
        now, ok, failed = now + seconds * NS_PER_S, ok + more, failed + worse
        if more:
            seen = now, failed
        expected = failed > seen[1] and now - seen[0] >= max(timeout_s, LEAST_PATIENCE_S) * NS_PER_S
        over = over or expected
        assert patience.over(ok, failed, now) == over
    if over:
        with pytest.raises(PeerError, match="no request succeeded"):
            patience.refuse()
    else:
        patience.refuse()


@pytest.mark.parametrize(
    ("counts", "usage", "tokens"),
    [
        ([(7, 9), (8, 9)], True, 15), ([(7, 9), (8, 9)], False, 18), ([(None, 9), (8, None)], True, 17),
        ([(None, None), (None, None)], True, None), ([(7, None), (8, None)], False, None), ([], True, 0),
    ],
)  # fmt: skip
def test_tokens_that_nobody_counts_are_not_none_made(
    counts: list[tuple[int | None, int | None]], usage: bool, tokens: int | None
) -> None:
    """Law: by the server, or the client if it is silent or not believed; None where neither does."""
    sent = dict.fromkeys(WARM_UP_COLUMNS, 1) | {"phase": int(Phase.WARMUP), "outcome": "ok"}
    rows = [sent | {"usage_output": told, "output_tokens_local": own} for told, own in counts]
    table = pa.Table.from_pylist(rows) if rows else pa.table({name: [] for name in WARM_UP_COLUMNS})
    load = Load.model_validate({"model": "closed", "concurrency": 1, "requests": 5, "warmup": len(rows)})
    found = warm_up_summary(load, table, np.zeros(0, np.int64), None, usage=usage)
    assert (found.completed, found.output_tokens) == (len(rows), tokens)
