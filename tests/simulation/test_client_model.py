"""A client that takes time, in virtual time: what it does to the record, and that the checks of the client see it."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from procedures.driving import Silent

from inferometer.errors import PlanError
from inferometer.journal.schema import PULSE
from inferometer.journal.seal import read_stream
from inferometer.measure.event_waits import event_waits
from inferometer.plan.schema import Plan
from inferometer.report.checks import sentence
from inferometer.run.simulate import simulate
from inferometer.server.engine.noise import LONGEST_NS
from inferometer.simulation.client import KEYS, ClientModel, client
from inferometer.simulation.driver import FLUSH_ROWS, PULSE_NS
from inferometer.simulation.engine import choose
from inferometer.units import NS_PER_S

Rows = list[dict[str, Any]]
Play = Callable[..., Rows]
MS = 1_000_000
DUE = [index * 7 * MS for index in range(400)]
LENGTHS = [(50, 12)] * len(DUE)


def test_sends_are_late_by_the_stated_distribution_and_in_order(play: Play) -> None:
    """Law: lateness has the mean that was asked for, and the shape of an exponential, where requests are far apart; requests
    are sent in the order in which they are due, and none before it."""
    due = [index * 100 * MS for index in range(1_500)]
    rows = play([(20, 2)] * len(due), due=due, client=ClientModel(late_ns=3 * MS))
    late = np.array([row["t_send"] - row["t_intended"] for row in rows]) / MS
    assert late.min() >= 0
    # Four standard errors of the mean and of the median of 1,500 exponentials.
    assert late.mean() == pytest.approx(3, rel=4 / np.sqrt(len(late)))
    assert np.median(late) == pytest.approx(3 * np.log(2), rel=4 / np.sqrt(len(late)) / np.log(2))
    crowded = play(LENGTHS, due=[0] * len(LENGTHS), client=ClientModel(late_ns=3 * MS))
    sent = [row["t_send"] for row in sorted(crowded, key=lambda row: row["index"])]
    assert sent == sorted(sent)


def test_late_reads_merge_what_arrived_and_move_nothing_earlier(play: Play) -> None:
    """Law: an open loop's arrivals, as a kernel stamps them, are those of a prompt client, except that what one read finds of a
    stream has the time of its last; the last token's is never moved, and the lag is what the read waited behind that."""
    prompt = play(LENGTHS, due=DUE)
    late = play(LENGTHS, due=DUE, client=ClientModel(read_lag_ns=4 * MS))
    merged = 0
    for one, other in zip(prompt, late, strict=True):
        assert one["text"] == other["text"]
        true, seen = np.array(one["event_ns"]), np.array(other["event_ns"])
        assert len(true) == len(seen)
        assert set(seen) <= set(true)
        assert (seen >= true).all()
        assert (seen[-1], other["t_end"]) == (true[-1], one["t_end"])
        assert other["lag_ns"] > 0 == one["lag_ns"]
        merged += int((np.diff(seen) == 0).sum())
    assert merged > len(LENGTHS)


def test_the_wait_of_what_was_read_late_is_bounded(play: Play) -> None:
    """Law: each event came no earlier than its stamp less the wait that the record has for it, as a prompt client shows; and
    where a read found one packet, the stamp is the arrival."""
    prompt = play(LENGTHS, due=DUE)
    late = play(LENGTHS, due=DUE, client=ClientModel(read_lag_ns=4 * MS))
    waited = 0
    for one, other in zip(prompt, late, strict=True):
        true, seen = np.array(one["event_ns"]), np.array(other["event_ns"])
        begun, longest = np.array(other["merged_event"], int), np.array(other["merged_ns"], int)
        waits = event_waits(seen, np.array([0, len(seen)]), begun, longest)
        text = np.arange(len(seen)) > 0  # a role comes with the first token
        assert (true[text] >= (seen - waits)[text]).all()
        assert (seen[waits == 0] == true[waits == 0])[1:].all()
        waited += int((waits > 0).sum())
    assert waited > len(LENGTHS)


def test_a_closed_loop_is_refilled_when_the_end_was_read(play: Play) -> None:
    """Law: with one slot the next request is due when the end was read, and sent its reaction later."""
    model = ClientModel(read_lag_ns=2 * MS, reaction_ns=0.5 * MS, reaction_per_slot_ns=0.25 * MS)
    rows = play(LENGTHS[:60], slots=1, client=model)
    assert {row["t_send"] - row["t_intended"] for row in rows} == {round(0.75 * MS)}
    waits = [then["t_intended"] - row["t_end"] for row, then in pairwise(rows)]
    assert min(waits) >= 0
    # Of an exponential; four standard errors.
    assert np.mean(waits) == pytest.approx(2 * MS, rel=4 / np.sqrt(len(waits)))


def test_the_same_seed_draws_the_same_client(play: Play) -> None:
    """Law: a simulation is a function of its plan, also with a client that takes time."""
    model = ClientModel(late_ns=MS, read_lag_ns=MS)
    assert play(LENGTHS, due=DUE, client=model) == play(LENGTHS, due=DUE, client=model)


@pytest.mark.parametrize(
    ("words", "lateness", "read_delay"),
    [
        ((), "na", "na"),
        (("late=50us",), "pass", "pass"),
        (("late=3ms",), "fail", "pass"),
        (("read_lag=3ms",), "pass", "fail"),
    ],
)
def test_the_checks_of_the_client_see_a_client_that_takes_time(
    tmp_path: Path, words: tuple[str, ...], lateness: str, read_delay: str
) -> None:
    """Law: in virtual time a late client fails `lateness` and one that reads late `receive_lag`, as in a run, and either
    `error_bound`; a client that takes no time has nothing to judge. What else is an instrument's stays out."""
    plan = Plan.model_validate(
        {
            "load": {"rate": 20, "requests": 300, "warmup": 0},
            "workload": {"name": "custom", "input_tokens": 50, "output_tokens": 20},
        }
    )
    summary = simulate(plan, choose(), tmp_path, Silent(), client=client(words)).summary
    found = {one.code: one.status for one in summary.verdict.checks}
    assert (found["lateness"], found["receive_lag"]) == (lateness, read_delay)
    assert found["error_bound"] == ("fail" if "fail" in (lateness, read_delay) else lateness)
    if words:
        (read,) = (one for one in summary.verdict.checks if one.code == "receive_lag")
        assert "of the gaps between tokens were lost to late reading" in sentence(read)
    assert found["worker_cpu"] == found["clock_step"] == "na"
    assert summary.run.simulated
    assert summary.instrument.timestamp_source == ("modelled" if words else "virtual")


def test_what_is_no_time_of_a_client_is_refused() -> None:
    """Law: every problem at once, by the word that was given."""
    with pytest.raises(PlanError) as caught:
        client(["late=3", "read_lag=-1ms", "speed=2ms", "reaction=1ms"])
    assert [one.where for one in caught.value.problems] == [
        "--client late=3",
        "--client read_lag=-1ms",
        "--client speed=2ms",
    ]


@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf, LONGEST_NS + 1, 10**400])
@pytest.mark.parametrize("name", KEYS.values())
def test_a_client_takes_from_no_time_to_a_day(name: str, wrong: float) -> None:
    """Law: whoever names the time, a user or a run folder."""
    with pytest.raises(ValueError, match=name):
        ClientModel(**{name: wrong})
    assert getattr(ClientModel(**{name: LONGEST_NS}), name) == LONGEST_NS


def test_a_load_that_does_not_end_is_given_up_in_bounded_memory(play: Play, tmp_path: Path) -> None:
    """Law: no phase outlasts its limit of virtual time, and pulses are written as they come."""
    reaction_ns, longest_ns = 50 * 60 * NS_PER_S, 2 * 3_600 * NS_PER_S
    with pytest.raises(PlanError, match=r"more than 0\.083.* days of virtual time"):
        play([(5, 2)] * 4, client=ClientModel(reaction_ns=reaction_ns), longest_ns=longest_ns)
    written = read_stream(tmp_path / "0" / "pulse-0.arrows", PULSE).num_rows
    assert longest_ns // PULSE_NS - FLUSH_ROWS <= written < longest_ns // PULSE_NS
