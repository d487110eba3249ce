"""Costs read back from runs of an engine whose costs are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from engine_play import Job, play
from fitting import limits, load, served, streams

from inferometer.server.engine.settings import Settings
from inferometer.server.presets import PRESETS
from inferometer.simulation.fit import COSTS, Fit, Parameter, TooFewError, fit
from inferometer.simulation.iterations import reconstruct

MS = 1_000_000
NOTHING = Settings(
    step_base_ns=1, step_per_request_ns=0, prefill_base_ns=0, prefill_per_token_ns=0, jitter=0, max_batch=999
)
VARIED = load(300, 60 * MS, (10, 1500), (8, 200))


def of(found: Fit, field: str) -> Parameter:
    (one,) = [one for one in found.parameters if one.field == field]
    return one


def share_of_time(settings: Settings, field: str) -> float:
    """What a cost makes of the time of this load, about."""
    found = served(settings, VARIED)
    counted = (found.steps, found.tokens, found.decodes, found.woken, found.context, found.begun, found.pairs)
    columns = dict(zip(COSTS, counted, strict=True))
    return float(getattr(settings, field) * columns[field].sum() / found.ns.sum())


@pytest.mark.parametrize("name", ["tiny-cpu", "a100-8b"])
def test_the_costs_of_an_engine_come_back(name: str) -> None:
    """Each within 3 % of itself or, where it makes less than a third of the time, 1 % of the time; jitter within 5 %."""
    truth = dataclasses.replace(PRESETS[name], prefix_caching=False)
    found = fit(served(truth, VARIED), NOTHING, (), 1)
    for field in COSTS:
        one, true = of(found, field), getattr(truth, field)
        if one.status in ("fitted", "none_seen"):
            room = max(0.03 * true, true * 0.01 / max(share_of_time(truth, field), 1e-9))
            assert abs(one.value - true) <= room, one
            assert one.low is not None
            assert one.high is not None
            assert one.low <= one.value <= one.high
    assert {one.status for one in found.parameters} <= {"fitted", "none_seen", "seldom_seen"}
    assert of(found, "jitter").value == pytest.approx(0.02, rel=0.05)
    assert found.held_out.median == pytest.approx(0.01, rel=0.2)  # the middle of a uniform spread of 0.02
    assert found.held_out.r2 > 0.99


def test_what_lies_before_the_engine_is_told_from_prefill() -> None:
    """4 ms at the door: of woken engines in an open loop, and in a closed one from who joined when."""
    truth = Settings(input_check_ns=4 * MS)
    door = of(fit(served(truth, load(300, 150 * MS, (10, 500), (8, 60))), NOTHING, (), 1), "input_check_ns")
    assert door.status == "fitted"
    assert door.value == pytest.approx(4 * MS, rel=0.03)
    busy = of(fit(served(truth, load(300, 30 * MS, (10, 500), (30, 90))), NOTHING, (), 1), "input_check_ns")
    assert busy.status == "fitted"
    assert busy.low is not None
    assert busy.high is not None
    assert busy.low <= 4 * MS <= busy.high
    none = of(
        fit(served(Settings(), load(300, 30 * MS, (10, 500), (30, 90))), NOTHING, (), 1), "input_check_ns"
    )
    assert (none.status, none.value) == ("none_seen", 0)


def test_costs_that_move_together_are_not_told_apart() -> None:
    """Prompts of one length: what is paid by prompt, token and pair is one cost. It is said, and the sum is right."""
    truth = Settings(prefill_attention_ns=20)
    found = fit(served(truth, load(300, 60 * MS, (400, 400), (8, 200))), NOTHING, (), 1)
    for field in ("prefill_base_ns", "prefill_attention_ns"):
        assert (of(found, field).status, of(found, field).moves_with) == (
            "not_told_apart",
            "prefill_per_token_ns",
        )
        assert of(found, field).value == 0
    whole = (
        truth.prefill_base_ns + 400 * truth.prefill_per_token_ns + 400 * 401 / 2 * truth.prefill_attention_ns
    )
    assert 400 * of(found, "prefill_per_token_ns").value == pytest.approx(whole, rel=0.03)


def test_a_cost_that_is_not_told_apart_keeps_its_value_and_the_others_make_room() -> None:
    """With the preset's cost of a prompt, the cost of a token is the token's alone."""
    known = dataclasses.replace(NOTHING, prefill_base_ns=2 * MS)
    found = fit(served(Settings(), load(300, 60 * MS, (400, 400), (8, 200))), known, (), 1)
    assert (of(found, "prefill_base_ns").status, of(found, "prefill_base_ns").value) == (
        "not_told_apart",
        2 * MS,
    )
    assert of(found, "prefill_per_token_ns").value == pytest.approx(12_000, rel=0.03)


def test_what_the_user_gives_is_kept() -> None:
    """A cost, the jitter, the batch: none of them is estimated or to be set again, and the rest is fitted beside them."""
    known = dataclasses.replace(NOTHING, step_per_request_ns=25_000, jitter=0.5)
    given = ("step_per_request_ns", "jitter", "max_batch")
    found = fit(served(Settings(max_batch=4), VARIED), known, given, 1)
    assert of(found, "step_per_request_ns") == Parameter("step_per_request_ns", 25_000, "given")
    assert of(found, "jitter").status == "given"
    assert not set(given) & set(found.values())
    assert of(found, "step_base_ns").value == pytest.approx(2 * MS, rel=0.01)


def test_all_costs_may_be_given() -> None:
    """Then the fit says how well they predict: a true engine's to within its jitter."""
    found = fit(served(Settings(), VARIED), Settings(), COSTS, 1)
    assert {one.status for one in found.parameters if one.field in COSTS} == {"given"}
    assert set(found.values()) == {"jitter"}
    assert found.held_out.p90 <= 0.02


def test_stalls_do_not_move_the_fit() -> None:
    """One iteration in fifty takes ten times as long: step and prompt token are still within 3 %, and not held to be jitter."""
    found = served(Settings(), VARIED)
    slow = np.where(np.random.default_rng(2).random(len(found)) < 0.02, 10, 1)
    fitted = fit(dataclasses.replace(found, ns=found.ns * slow), NOTHING, (), 1)
    assert of(fitted, "step_base_ns").value == pytest.approx(2 * MS, rel=0.03)
    assert of(fitted, "prefill_per_token_ns").value == pytest.approx(12_000, rel=0.03)
    assert of(fitted, "jitter").value < 0.03
    lost = (found.ns * (slow - 1)).sum() / (found.ns * slow).sum()
    assert fitted.stalled == pytest.approx(lost, rel=0.05)


def test_ends_seen_late_do_not_move_the_fit() -> None:
    """One end in thirty is seen 1.5 ms late, and those before long prompts 5 ms: the next interval is shorter by as much."""
    found = served(Settings(), VARIED)
    late = np.where(np.random.default_rng(2).random(len(found)) < 1 / 30, 1.5 * MS, 0)
    late[:-1] += np.where(found.tokens[1:] > 700, 5 * MS, 0)
    late[:-1] *= ~found.woken[1:]  # a woken one begins where it was sent
    ns = found.ns + late - np.concatenate(([0], late[:-1]))
    fitted = fit(dataclasses.replace(found, ns=ns.astype(np.int64)), NOTHING, (), 1)
    for field in ("step_base_ns", "prefill_per_token_ns", "prefill_base_ns"):
        assert of(fitted, field).value == pytest.approx(getattr(Settings(), field), rel=0.03)


def test_drafts_are_paid_for_as_the_model_has_it() -> None:
    """With two drafts a step, a decoded request is three tokens; iterations are told by events that hold several."""
    truth = Settings(step_per_request_ns=100_000, draft_tokens=2, acceptance=0.5)
    jobs = play(truth, VARIED, seed=3)
    for job in jobs:  # tokens of one instant come in one event
        job.tokens = [(n, at) for n, at in enumerate(sorted({at for _, at in job.tokens}))]
    known = dataclasses.replace(NOTHING, draft_tokens=2)
    found = fit(reconstruct(streams(jobs), limits(truth)), known, (), 1)
    assert of(found, "step_per_request_ns").value == pytest.approx(100_000, rel=0.03)


def test_the_batch_is_among_what_is_to_be_set_only_where_it_was_seen() -> None:
    """A queue tells it; without one the settings keep theirs."""
    crowded = fit(served(Settings(max_batch=5), load(300, 20 * MS, (10, 100), (60, 120))), NOTHING, (), 1)
    assert (crowded.max_batch, crowded.values()["max_batch"]) == (5, 5)
    assert "max_batch" not in fit(served(Settings(), VARIED), NOTHING, (), 1).values()


def test_the_same_run_gives_the_same_fit() -> None:
    """The bootstrap draws from its seed."""
    found = served(Settings(), VARIED)
    assert fit(found, NOTHING, (), 1) == fit(found, NOTHING, (), 1)


def test_too_few_iterations_are_refused() -> None:
    """Two requests of ten tokens fit nothing."""
    with pytest.raises(TooFewError, match="100 are needed"):
        fit(served(Settings(), [Job(5, 10, 0), Job(5, 10, 9)]), NOTHING, (), 1)
