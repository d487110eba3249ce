"""What sustains a load and what does not: each signal alone, and together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from procedures.summaries import changed, quantiles, simulated, stats, steady, summary

from inferometer.documents.summary import Summary
from inferometer.measure.distributions import Distributions
from inferometer.measure.due import due_of_requests
from inferometer.measure.load import Span
from inferometer.measure.steady import GROWN, GROWN_REQUESTS, Queue, ratio_interval
from inferometer.procedures.sustained import Decision, Signal, decide, decision
from inferometer.units import NS_PER_S


def seen(**changes: Any) -> Summary:
    """A summary of a load that was sustained without any doubt, as far as `decide` reads it."""
    values: dict[str, Any] = {
        "growing": False, "rise": 0.0, "ratio": 1.0, "ratio_ci": (0.97, 1.03), "p99": 90.0, "above": 0.0, "n": 1000,
        "thirds": (100.0, 101.0, 99.0), "completions": 900, "success": 1.0, "success_ci": (0.996, 1.0), "slos": (),
        "stay": (500.0, 250.0), "source": "in_flight",
    } | changes  # fmt: skip
    above = values["above"]
    found = summary(
        ttft=stats(10.0, values["p99"], n=values["n"]),
        e2e=stats(500.0, 500.0, mean=values["stay"][0], std=values["stay"][1]),
        output_tokens=stats(160.0, 160.0, std=55.0),
        steady=steady(
            seconds=54.0,
            completions=values["completions"],
            ratio=values["ratio"],
            ratio_ci=values["ratio_ci"],
            growing=values["growing"],
            rise=values["rise"],
            thirds=values["thirds"],
            source=values["source"],
        ),
        distributions=Distributions(
            quantiles((0.0, 10.0), (100 - 100 * above, 200.0), (100.0, 200.0 + above)), None, None, None
        ),
        slos=tuple(values["slos"]),
    )
    rate = changed(simulated().success_rate, value=values["success"], ci95=values["success_ci"])
    return changed(found, success_rate=rate)


def decided(*, final: bool = False, **changes: Any) -> Decision:
    return decide(seen(**changes), success_rate=0.99, final=final)


SATURATED: dict[str, dict[str, Any]] = {
    "completions": {"ratio": 0.8, "ratio_ci": (0.7, 0.89)},
    "queue": {"growing": True, "rise": 0.5, "ratio": 0.95, "ratio_ci": (0.925, 0.97)},
    "success": {"success": 0.9, "success_ci": (0.85, 0.95)},
}
UNSETTLED: dict[str, dict[str, Any]] = {
    "completions": {"ratio": 0.88, "ratio_ci": (0.8, 0.95)},
    "steady": {"thirds": (140.0, 100.0, 60.0)},
    "success": {"success": 0.985, "success_ci": (0.97, 0.995)},
}


def test_a_load_without_any_signal_is_sustained() -> None:
    """At once, without a longer run."""
    assert decided().sustained is True
    assert not decided().reasons


@pytest.mark.parametrize("code", SATURATED)
def test_a_signal_whose_whole_interval_is_beyond_its_limit_decides_alone(code: str) -> None:
    """A queue that grows, completions that fall behind (draft 5.2.3.1), or requests that fail: any one suffices."""
    found = decided(**SATURATED[code])
    assert found.sustained is False
    assert [signal.code for signal in found.reasons] == [code]


@pytest.mark.parametrize("code", UNSETTLED)
def test_a_signal_whose_interval_holds_the_limit_asks_for_a_longer_run_and_then_its_value_decides(
    code: str,
) -> None:
    """A probe counts only when its interval clears the target."""
    first = decided(**UNSETTLED[code])
    assert first.sustained is None
    assert [signal.code for signal in first.reasons] == [code]
    last = decided(final=True, **UNSETTLED[code])
    assert last.sustained is False
    assert [signal.code for signal in last.reasons] == [code]


def test_a_value_on_the_right_side_of_its_limit_is_sustained_after_the_last_run() -> None:
    """Where even the longest run leaves the interval across the limit."""
    assert decided(final=True, ratio=0.95, ratio_ci=(0.85, 1.05)).sustained is True


@given(st.integers(1, 400))
def test_thirds_of_few_answers_are_steady_as_far_as_chance_goes(answers: int) -> None:
    """Chance alone moves a third of n answers by 1/sqrt(n), and never makes a load unsteady within three times that."""
    off = 2.5 / (answers / 3) ** 0.5
    low = max(0.0, 1 - off)
    thirds = (100 * (2 - low), 100.0, 100 * low)
    assert decided(thirds=thirds, completions=answers).sustained is True


BEHIND: dict[str, Any] = {"growing": True, "ratio": 0.95, "ratio_ci": (0.925, 0.97)}


def test_requests_in_flight_that_rise_within_chance_do_not_grow() -> None:
    """100 on average that stay for half a second, give or take a quarter: means over 18 s differ by 7.9 at most, by chance, and
    by more where some stay much longer."""
    assert decided(**BEHIND, rise=0.075).sustained is True
    assert decided(**BEHIND, rise=0.083).sustained is False
    assert decided(**BEHIND, rise=0.083, stay=(500.0, 1000.0)).sustained is True


def test_a_queue_at_the_server_that_rises_within_chance_does_not_grow() -> None:
    """300 requests a third: at a load of 100 % means of its first and last third are 63 apart by chance, whatever requests in
    flight do; a rise of 65 is none."""
    gauge: dict[str, Any] = BEHIND | {"source": "server"}
    assert decided(**gauge, rise=0.62).sustained is True
    assert decided(**gauge, rise=0.65).sustained is False


@pytest.mark.parametrize(("load", "most", "least"), [(0.95, 0.03, 0.0), (1.2, 1.0, 0.8)])
def test_a_server_at_95_percent_is_seldom_called_growing(load: float, most: float, least: float) -> None:
    """By its own gauge: 100 levels of 1,000 requests at one server, judged as a search does. At 120 % most of them are."""
    random = np.random.default_rng(5)
    growing = [level_growing(random, load, 1_000) for _ in range(100)]
    assert least <= np.mean(growing) <= most


def level_growing(random: np.random.Generator, load: float, n: int) -> bool:
    """A queue of exponential work and gaps; the completions' interval is that of what came and went."""
    sent = np.cumsum(random.exponential(1 / load, n))
    work = random.exponential(1.0, n)
    ends = np.cumsum(work) + np.maximum.accumulate(sent - np.concatenate(([0.0], np.cumsum(work)[:-1])))
    edges = np.linspace(sent[-1] / 10, sent[-1], 4)
    waits = [
        float((np.minimum(ends - work, high) - np.maximum(sent, low)).clip(0).sum() / (high - low))
        for low, high in pairwise(edges)
    ]
    span = Span(int(edges[0] * NS_PER_S), int(edges[-1] * NS_PER_S))
    due = np.rint(sent * NS_PER_S).astype(np.int64), np.rint(ends * NS_PER_S).astype(np.int64)
    interval = ratio_interval(
        due_of_requests(due[0], np.rint(work * NS_PER_S).astype(np.int64)), due[1], span
    )
    assert interval is not None
    told = changed(
        steady(
            seconds=float(edges[-1] - edges[0]),
            completions=round(0.9 * n),
            ratio=sum(interval) / 2,
            ratio_ci=interval,
        ),
        queue=Queue("server", tuple(waits), None, rising(waits)),
    )
    found = decide(changed(seen(), steady=told), success_rate=0.99)
    return next(one for one in found.signals if one.code == "queue").saturated is True


def rising(thirds: list[float]) -> bool:
    """As of a run (measure/steady.py)."""
    rise = thirds[-1] - thirds[0]
    return thirds[0] < thirds[1] < thirds[2] and rise > GROWN * thirds[0] and rise >= GROWN_REQUESTS


def test_the_capacity_that_was_measured_stands_unless_an_interval_contradicts_it() -> None:
    """After the last run; a value alone is luck."""
    unsettled: dict[str, Any] = {"ratio": 0.88, "ratio_ci": (0.8, 0.95)}
    for expected in (True, False):
        found = decide(seen(**unsettled), success_rate=0.99, final=True, expected=expected)
        assert found.sustained is expected
        behind = decide(
            seen(ratio=0.8, ratio_ci=(0.7, 0.89)), success_rate=0.99, final=True, expected=expected
        )
        assert behind.sustained is False


def test_a_queue_that_rises_while_as_many_end_as_are_due_is_chance() -> None:
    """Near saturation queues come and go; one that only grows is one of requests that do not end."""
    assert decided(growing=True, rise=0.5, ratio_ci=(0.97, 1.03)).sustained is True


@given(st.floats(0.5, 1.5))
def test_levels_about_a_capacity_are_told_apart(load: float) -> None:
    """A very long run of a load of so much of the capacity: what completes is 1, or what the system can do."""
    ratio = min(1.0, 1 / load)
    assert decided(ratio=ratio, ratio_ci=(ratio, ratio)).sustained is (ratio >= 0.92)


def test_a_run_without_a_steady_span_sustains_nothing() -> None:
    """Shorter than its requests: nobody has seen whether they queue up, however good its values are."""
    found = decide(changed(seen(), steady=None), success_rate=0.99, final=True)
    assert found.sustained is None
    failing = changed(seen(success=0.9, success_ci=(0.85, 0.95)), steady=None)
    assert decide(failing, success_rate=0.99).sustained is False


def test_what_was_asked_for_is_not_met_by_not_being_measured() -> None:
    """After the last run too; what nobody asked for may be missing."""
    assert decided(final=True, success=None, success_ci=None).sustained is None
    assert decided(final=True, ratio=None, ratio_ci=None).sustained is True


def test_a_run_in_which_nothing_failed_needs_no_longer_one_to_clear_the_success_rate() -> None:
    """60 of 60 give an interval down to 94 %, and no run can do better than all."""
    assert decided(success=1.0, success_ci=(0.94, 1.0)).sustained is True


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=6), st.booleans())
def test_one_signal_outweighs_all_others(said: list[bool | None], final: bool) -> None:
    """Saturated by any; sustained by none against it."""
    found = decision([Signal("x", one, None, None) for one in said], final=final)
    if True in said:
        assert found.sustained is False
    elif None in said and not final:
        assert found.sustained is None
    else:
        assert found.sustained is True
