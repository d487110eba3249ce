"""The checks `drift` and `stationary` on what was measured: the server's gauge, output that varies, runs too short to tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.drift_power import Cell, Factor, alarms, bump, line, played, record_of, step, swing
from inferometer.judge.steadiness import DRIFT_LIMIT, drift, queue_limit, stationary, swing_limit
from inferometer.measure.backlog import Backlog, backlogs
from inferometer.measure.drift import Change, Drift
from inferometer.measure.load import Span, Sweep
from inferometer.measure.steady import Steady
from inferometer.plan.schema import Load
from inferometer.report.checks import message
from inferometer.telemetry.metrics.normalised import Track, Translated

OPEN = Load(model="open", rate=10.0, requests=1_000)
UNCHANGED = Change("request", 900, 1.0, 0.01, 0.0, 3.0, 500.0, 0.0, 0.0)
"""A series without a change beyond chance."""


def thirds_of_output(*tok_s: float) -> Steady:
    """A steady span with this output; `stable` as steady.py has it."""
    mean = sum(tok_s) / 3
    stable = all(abs(one - mean) <= 0.1 * mean for one in tok_s)
    return Steady(60.0, 900, 900, 1.0, None, None, tok_s, stable)


def test_output_that_varies_without_drift_is_a_note() -> None:
    """Law: where a third of the run has over 10 % more or less output, `drift` is a note with the thirds, else a pass."""
    found = Drift((UNCHANGED,), 0.0, conclusive=True)
    varied = drift(found, thirds_of_output(100.0, 100.0, 140.0), trace=False)
    assert (varied.status, varied.facts["output_tok_s"]) == ("note", [100.0, 100.0, 140.0])
    assert drift(found, thirds_of_output(100.0, 100.0, 105.0), trace=False).status == "pass"


@pytest.mark.parametrize(("statistic", "status"), [(1.0, None), (3.0, 3.0)])
def test_gaps_alone_prove_no_steadiness_in_an_open_loop(statistic: float, status: float | None) -> None:
    """Law: without a series of requests `drift` is unsure; it names a change only where the gaps show one, and asks for more
    requests where they do not."""
    gaps = Change("token_gap", 200, statistic, 0.3, 0.0, 3.0, 500.0, 0.0, 0.0)
    found = drift(Drift((gaps,), 0.0, conclusive=False), None, trace=False)
    assert (found.status, found.value) == ("unsure", status)
    assert ("Send more requests" in message(found)) == (status is None)
    steady = drift(Drift((gaps,), 0.0, conclusive=True), None, trace=False)
    assert (steady.status == "pass") == (statistic < DRIFT_LIMIT)


def test_a_speed_that_swings_is_judged_but_in_a_trace() -> None:
    """Law: beyond its limit, which rises with the load's effect, and by over 5 %, von Neumann's ratio makes a run unsure; in a
    trace, whose load swings, it decides nothing. One change is named rather than swings."""
    limit = swing_limit(UNCHANGED)
    swung = replace(UNCHANGED, swing=1.1 * limit, swing_share=0.2)
    found = drift(Drift((swung,), 0.0, conclusive=True), None, trace=False)
    assert (found.status, found.value, found.facts["of"]) == ("unsure", swung.swing, "swings")
    for other in (replace(swung, swing_share=0.04), replace(swung, load_spread=1.0)):
        assert drift(Drift((other,), 0.0, conclusive=True), None, trace=False).status == "pass"
    assert drift(Drift((swung,), 0.0, conclusive=True), None, trace=True).status == "pass"
    changed = replace(swung, statistic=9.0, share=0.3)
    assert "of" not in drift(Drift((changed,), 0.0, conclusive=True), None, trace=False).facts


@pytest.mark.parametrize(
    "cell", [Cell("testbed", "varied", 1_000, share=0.3), Cell("tiny-cpu", "varied", 1_000, slots=8)]
)
@pytest.mark.parametrize("factor", [swing(0.3, 2), bump(3.0)], ids=["swing", "bump"])
def test_a_speed_that_comes_and_goes_is_seen(cell: Cell, factor: Factor) -> None:
    """Law: 30 % slower and faster twice a run, or three times as slow for a tenth of it, raises an alarm in both loops, where
    over 100 times as many requests are sent as are in flight."""
    requests = played(cell, 1, factor)
    assert alarms(cell, requests).drift
    assert alarms(cell, requests, streamed=False).drift


def test_a_queue_that_only_the_server_sees_grows() -> None:
    """Law: where the client's requests wait alike from beginning to end, the server's own gauge is judged by the same rule of
    chance: a rise beyond the queue of a server at 85 % of its capacity is an alarm, a lesser one is not."""
    requests = played(Cell("testbed", "varied", 1_000, share=0.3), 1)
    record = record_of(requests)
    sweep = Sweep(record)
    span = Span(int(sweep.sends[0]), int(sweep.sends[-1]))
    times = np.linspace(span.start, span.end, 60, endpoint=False).astype(np.int64)
    limit = queue_limit(1.0, 1.0)
    for height, status in ((0.8 * limit, "pass"), (1.5 * limit, "unsure")):
        gauge = Track(times, np.linspace(0.0, height, 60))
        told = Translated("http://h/metrics", "vLLM", True, True, times, 0, 0, {"waiting": gauge}, {})
        both = backlogs(record, sweep, span, [told], streamed=True)
        assert [one.source for one in both] == ["waiting", "server"]
        found = stationary(OPEN, both, 1.0, 1.0)
        assert (found.status, found.facts["source"]) == (status, "server")


def test_a_queue_that_settles_is_none_that_grows() -> None:
    """Law: a rise at the beginning alone raises no alarm, whatever its height."""
    assert stationary(OPEN, [Backlog("server", 0.0, 99.0, 100.0)], 1.0, 1.0).status == "pass"


def test_a_queue_at_the_beginning_that_goes_away_is_not_a_steady_one() -> None:
    """Law: a fall beyond what chance allows is an alarm, whenever it comes, and a lesser one is none; the value is the fall."""
    limit = queue_limit(1.0, 1.0)
    for middle in (0.0, 1.0, 2 * limit):
        found = stationary(OPEN, [Backlog("waiting", 2 * limit, middle, 0.0)], 1.0, 1.0)
        assert (found.status, found.value, found.facts["of"]) == ("unsure", 2 * limit, "fall")
    assert stationary(OPEN, [Backlog("waiting", 0.8 * limit, 0.0, 0.0)], 1.0, 1.0).status == "pass"


NOT_STREAMED = [
    Cell("tiny-cpu", "varied", 1_000, share=0.6),
    Cell("h100-70b-tp4", "short", 1_000, share=0.6),
    Cell("testbed", "one token", 1_000, slots=64),
    Cell("a100-8b", "varied", 1_000, slots=32),
]


@pytest.mark.parametrize("cell", NOT_STREAMED, ids=lambda cell: f"{cell.preset}, {cell.workload}")
def test_answers_that_are_not_streamed_show_a_slower_server(cell: Cell) -> None:
    """Law: end-to-end times alone show 1.5 times slower over the run and 1.3 times from half-way on, and no change where there
    is none."""
    slower = [alarms(cell, played(cell, 1, factor), streamed=False) for factor in (line(1.5), step(1.3))]
    assert all(one.drift and not one.short for one in slower)
    assert not any(any(alarms(cell, played(cell, seed), streamed=False)) for seed in (1, 2, 3))
