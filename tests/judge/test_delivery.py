"""Answers that something on the way held back: what becomes of ITL, TPOT and TTFT. The server is honest: TTFT 20 ms, a token
every 4 ms; each lie changes when its events arrive."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass
from inferometer.judge.judge import judge
from inferometer.judge.verdict import Verdict
from inferometer.measure.measurement import Measurement

MS = 1_000_000
TTFT_MS, GAP_MS, TOKENS = 20, 4, 100
REQUESTS, WARM = 1_000, 100
Times = Any
"""An array of instants."""
Proxy = Callable[[int, Times], Times]
"""From the number of an answer and the instants (ns) at which its tokens were sent to those at which they arrive."""


def whole(number: int, sent: Times) -> Times:
    """Everything is held until the end."""
    return np.full_like(sent, sent[-1])


def two_flushes(number: int, sent: Times) -> Times:
    """Everything but the last token is held until the end."""
    return np.append(whole(number, sent)[:-1], sent[-1] + MS // 5)


def event_by_event(number: int, sent: Times) -> Times:
    """Everything is held until the end, and then sent one by one, each by a call of its own."""
    return sent[-1] + np.arange(len(sent)) * 15_000


def every(size: int, apart_ns: int = 0) -> Proxy:
    """`size` events are collected, and then sent together, or so far apart."""

    def proxy(number: int, sent: Times) -> Times:
        lump = np.arange(len(sent)) // size
        last = np.minimum((lump + 1) * size, len(sent)) - 1
        return sent[last] + (np.arange(len(sent)) % size) * apart_ns

    return proxy


def in_some(share: float, proxy: Proxy) -> Proxy:
    """What a proxy does, to a share of the answers."""
    return lambda number, sent: proxy(number, sent) if number % 1000 < 1000 * share else sent


def first_at_once(number: int, sent: Times) -> Times:
    """The first token is let through, all others are held until the end."""
    return np.append(sent[:1], np.full(len(sent) - 1, sent[-1]))


def delivered(
    run: Any, proxy: Proxy, tokens: int = TOKENS, gap_ms: float = GAP_MS, **more: Any
) -> tuple[Measurement, Verdict]:
    """A run behind this proxy, measured and judged."""

    submitted: list[int] = []

    def submit(times: Any) -> Any:
        submitted.extend(int(at) for at in times)
        return times

    def arrive(times: list[Any]) -> list[Any]:
        found = []
        for number, begin in enumerate(submitted):
            sent = begin + TTFT_MS * MS + np.arange(tokens) * round(gap_ms * MS)
            found.append(np.append(begin + MS // 10, proxy(number, sent)))
        return found

    columns: dict[str, Any] = {
        "t_submit": submit,
        "event_ns": arrive,
        "event_class": lambda v: [bytes([EventClass.ROLE] + [EventClass.CONTENT] * tokens)] * len(v),
        "t_end": lambda v: v + 10 * MS * tokens,
        "usage_output": lambda v: np.full(len(v), tokens),
        "output_tokens_asked": lambda v: np.full(len(v), tokens),
        "output_tokens_local": lambda v: np.full(len(v), tokens),
        "text": lambda v: ["word " * tokens] * len(v),
    }
    plan, measurement, record = run(n=REQUESTS, warm=WARM, **(columns | more))
    return measurement, judge(plan, measurement, record)


LIES: dict[str, tuple[Proxy, str]] = {
    "whole": (whole, "INVALID"),
    "two flushes": (two_flushes, "INVALID"),
    "event by event at the end": (event_by_event, "INVALID"),
    "every 25": (every(25), "INVALID"),
    "every 25, one by one": (every(25, 15_000), "INVALID"),
    "every 8": (every(8), "INVALID"),
    "every 3": (every(3), "INVALID"),
    "40 % whole": (in_some(0.4, whole), "INCONCLUSIVE"),
    "20 % whole": (in_some(0.2, whole), "INCONCLUSIVE"),
    "20 % in two flushes": (in_some(0.2, two_flushes), "INCONCLUSIVE"),
    "3 % every 25": (in_some(0.03, every(25)), "INCONCLUSIVE"),
    "1.2 % whole": (in_some(0.012, whole), "INCONCLUSIVE"),
}


@pytest.mark.parametrize("lie", LIES)
def test_answers_that_arrive_in_lumps_have_no_itl_and_are_never_valid(run: Any, lie: str) -> None:
    """Law: the gaps are called times between chunks, ITL and the pace of a held answer are not measured, and TTFT of more
    than one answer in a hundred makes the run INCONCLUSIVE, of more than half INVALID."""
    proxy, status = LIES[lie]
    measurement, verdict = delivered(run, proxy)
    assert (verdict.status, [reason.code for reason in verdict.reasons]) == (status, ["streamed"])
    assert measurement.tokens.itl_method == "chunk"
    assert measurement.metrics.itl_ms is None
    assert verdict.check("tokens_per_event").status == "note"
    tpot = measurement.metrics.tpot_ms
    assert tpot is None or tpot.p50 == pytest.approx(GAP_MS, rel=0.05)


def test_answers_held_back_that_move_no_percentile_are_not_held_against_the_run(run: Any) -> None:
    """Law: five of a thousand are beyond P99 and leave it where it was: VALID."""
    _, verdict = delivered(run, in_some(0.005, whole))
    assert verdict.check("streamed").status == "pass"


def test_a_first_token_let_through_bends_nothing_but_the_gaps(run: Any) -> None:
    """Law: TTFT, TPOT and latency are the server's; the gaps are two a answer, between chunks of one token and of the rest."""
    measurement, verdict = delivered(run, first_at_once)
    metrics = measurement.metrics
    assert verdict.status == "VALID"
    assert metrics.ttft_ms is not None
    assert metrics.ttft_ms.p99 == pytest.approx(TTFT_MS, abs=1.5)
    assert metrics.tpot_ms is not None
    assert metrics.tpot_ms.p50 == pytest.approx(GAP_MS)
    assert metrics.itl_ms is None
    assert metrics.chunk_gap_ms is not None
    assert (metrics.chunk_gap_ms.n, metrics.chunk_gap_ms.p50) == (REQUESTS, GAP_MS * (TOKENS - 1))
    assert measurement.tokens.chunk_tokens is not None
    assert (measurement.tokens.chunk_tokens.min, measurement.tokens.chunk_tokens.max) == (1, TOKENS - 1)


@pytest.mark.parametrize("each", [2, 3, 8])
def test_several_tokens_an_event_are_chunks_and_valid(run: Any, each: int) -> None:
    """Law: an engine that produces several tokens a step, and sends them in one event, holds nothing back: its gaps are times
    between chunks of that size."""
    counts: dict[str, Any] = {
        "usage_output": lambda v: np.full(len(v), TOKENS * each),
        "output_tokens_asked": lambda v: np.full(len(v), TOKENS * each),
        "output_tokens_local": lambda v: np.full(len(v), TOKENS * each),
        "plan": {"tokenizer": {"method": "native"}, "workload": {"count_template": False}},
        "usage_input": lambda v: v,
        "text": lambda v: ["word " * TOKENS * each] * len(v),
    }
    measurement, verdict = delivered(run, lambda _, sent: sent, **counts)
    assert verdict.status == "VALID"
    assert measurement.tokens.itl_method == "chunk"
    assert measurement.metrics.chunk_gap_ms is not None
    assert measurement.metrics.chunk_gap_ms.p50 == GAP_MS
    assert measurement.tokens.chunk_tokens is not None
    assert measurement.tokens.chunk_tokens.p50 == each


def test_guesses_that_are_sent_one_by_one_are_chunks_and_valid(run: Any) -> None:
    """Law: speculative decoding gives its first token alone and then a few at once; sent as events of their own they are
    chunks, and nothing is held back."""

    def guessed(number: int, sent: Times) -> Times:
        random = np.random.default_rng(number)
        steps = np.cumsum(random.integers(1, 5, len(sent)))
        owner = np.searchsorted(steps, np.arange(len(sent) - 1), side="right")
        return np.append(sent[:1], sent[0] + (owner + 1) * 10 * MS)

    measurement, verdict = delivered(run, guessed)
    assert verdict.status == "VALID"
    assert measurement.tokens.itl_method == "chunk"
    assert verdict.check("streamed").value == 0.0
    assert measurement.metrics.tpot_ms is not None


def merged_by_stalls(stall_ms: float, share: float) -> tuple[Proxy, dict[str, Any]]:
    """A client that stalls now and then, up to `share` of its time, and reads all that has come when it goes on: the stamp is
    the last packet's (as the kernel gives it), and the longest delay of the last packet is the answer's lag. And the columns
    by which the record says so, with the reads of several packets."""
    lags: dict[int, int] = {}
    reads: dict[int, list[tuple[int, int]]] = {}

    def proxy(number: int, sent: Times) -> Times:
        random = np.random.default_rng(number)
        period = stall_ms / share * MS
        begins = np.arange(int(sent[0] - random.uniform(0, period)), int(sent[-1]) + 1, period)
        arrived, lag = sent.copy(), 20_000
        reads[number] = []
        for begin in begins:
            inside = np.flatnonzero((sent >= begin) & (sent < begin + stall_ms * MS))
            if len(inside):
                last = int(sent[inside[-1]])
                arrived[inside] = last
                lag = max(lag, int(begin + stall_ms * MS) - last)
            if len(inside) > 1:  # the answer's first event is its role
                reads[number].append((int(inside[0]) + 1, last - int(sent[inside[0]])))
        lags[number] = lag
        return arrived

    return proxy, {
        "lag_ns": lambda v: np.array([lags[number] for number in range(len(v))]),
        "merged_event": lambda v: [[at for at, _ in reads[number]] for number in range(len(v))],
        "merged_ns": lambda v: [[waited for _, waited in reads[number]] for number in range(len(v))],
    }


def unknown(values: Any) -> list[None]:
    """The column of an earlier version, which did not say which reads held several packets."""
    return [None] * len(values)


@pytest.mark.parametrize("stall_ms", [2.0, 5.0, 20.0])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("noted", [True, False])
def test_what_the_client_itself_read_late_is_not_the_servers(
    run: Any, stall_ms: float, share: float, noted: bool
) -> None:
    """Law: whatever a stalling client merges, the server is not said to hold answers back; and the gaps are gaps between
    tokens, unless the client stalls for a tenth of its time. With and without a note of the reads that held several packets."""
    proxy, columns = merged_by_stalls(stall_ms, share)
    earlier = {} if noted else {"merged_event": unknown, "merged_ns": unknown}
    measurement, verdict = delivered(run, proxy, **columns | earlier)
    check = verdict.check("streamed")
    assert check.status == "pass" or check.value in (0.0, None)
    if share < 0.1:
        assert measurement.tokens.itl_method == "direct"


@pytest.mark.parametrize("count", [4, 10])
def test_a_few_answers_can_show_that_a_server_streams(run: Any, count: int) -> None:
    """Law: four good answers leave no room for half of all being held back; three do. The others were read late and found
    whole, and which reads held several packets is not known."""

    def merged_but(prompt: int) -> Proxy:
        return lambda number, sent: sent if number >= REQUESTS + WARM - prompt else whole(number, sent)

    for prompt, status, of in ((count, "pass", None), (3, "unsure", "few")):
        lags: dict[str, Any] = {"lag_ns": functools.partial(lagging, prompt=prompt), "merged_event": unknown}
        _, verdict = delivered(run, merged_but(prompt), **lags)
        check = verdict.check("streamed")
        assert (check.status, check.facts.get("of")) == (status, of)


@pytest.mark.parametrize(("share", "status"), [(0.0, "pass"), (0.005, "pass"), (0.1, "unsure")])
def test_answers_that_arrive_one_by_one_were_streamed_however_late_they_were_read(
    run: Any, share: float, status: str
) -> None:
    """Law: a late read puts packets together and parts none, so what arrived apart was sent apart; of a few that were found
    whole nobody knows who held them, and they decide nothing either way."""
    late: dict[str, Any] = {"lag_ns": lambda v: np.full(len(v), 50 * MS), "merged_event": unknown}
    _, verdict = delivered(run, in_some(share, whole), **late)
    assert verdict.check("streamed").status == status


@pytest.mark.parametrize("proxy", [whole, two_flushes, every(5)])
def test_late_reads_of_one_packet_each_hide_no_buffering(run: Any, proxy: Proxy) -> None:
    """Law: where the record says that no read held several packets, every stamp is the kernel's, however late the reads were;
    an answer that arrived in lumps was sent in lumps, and one that did not was streamed."""
    late: dict[str, Any] = {"lag_ns": lambda v: np.full(len(v), 50 * MS)}
    measurement, verdict = delivered(run, lambda _, sent: sent, **late)
    assert verdict.check("streamed").status == "pass"
    assert measurement.tokens.itl_method == "direct"
    measurement, verdict = delivered(run, proxy, **late)
    assert verdict.status != "VALID" or measurement.tokens.itl_method == "chunk"


def lagging(values: Any, prompt: int) -> Any:
    """Lags of 50 ms, but for so many measured answers."""
    found = np.full(len(values), 50 * MS)
    found[-prompt:] = 20_000
    return found
