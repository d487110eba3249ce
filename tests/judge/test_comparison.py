"""Better, worse, or not shown: known differences are found, none is made up, and each condition can hold a claim back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import changed, figure, planned, side
from msgspec import structs

from benchmarks.comparison_null import KINDS, trial
from inferometer.judge.comparison.compare import (
    DECIDING,
    FIGURES,
    OF_SESSIONS,
    Comparison,
    Criteria,
    Run,
    compare,
)
from inferometer.judge.comparison.equivalence import Declared
from inferometer.metrics.catalogue import TASK_SUCCESS

QUICK = Criteria(replicates=100)
BASE = side(first=1)


def verdicts(comparison: Comparison, at: int = 0) -> set[str]:
    return {one.verdict for one in comparison.contrasts[at] if one.deciding}


@pytest.mark.parametrize("kind", KINDS)
def test_no_regression_is_found_where_there_is_none(kind: str) -> None:
    """In at most 1 of 30 comparisons of equal systems, with luck of whole runs, skewed latencies and few failures."""
    answers = [trial(kind, 3, 0.0, seed, requests=100).outcome for seed in range(30)]
    assert set(answers) <= {"regression", "no_regression"}
    assert answers.count("regression") <= 1


def test_a_large_difference_is_always_found() -> None:
    """Half as slow again, with five runs a side of a calm system."""
    assert {trial("calm", 5, 0.5, seed, requests=100).outcome for seed in range(10)} == {"regression"}


def test_slower_is_worse_and_faster_is_better() -> None:
    """More tokens a second, fewer milliseconds: the sign of a verdict is the figure's own."""
    slow, fast = compare([BASE, side(1.5, first=2)], QUICK), compare([side(1.5, first=2), BASE], QUICK)
    for name in ("output_tok_s", "ttft_p50", "tpot_p50"):
        assert figure(slow, name).verdict == "worse"
        assert figure(fast, name).verdict == "better"
    assert (figure(slow, "ttft_p50").relative or 0) > 0 > (figure(slow, "output_tok_s").relative or 0)
    assert (slow.outcome, fast.outcome) == ("regression", "no_regression")


def test_every_figure_of_a_run_is_compared_with_all_its_evidence() -> None:
    """In the table's order, each with both means, three intervals, an effect and what could have been seen."""
    found = compare([BASE, side(1.2, first=2)], QUICK).contrasts[0]
    unknown = ("output_tok_dollar_h", "chunk_gap_p99", TASK_SUCCESS, *OF_SESSIONS)
    assert [one.name for one in found] == [name for name in FIGURES if name not in unknown]
    for one in found:
        if one.name == "success_rate":
            continue
        assert None not in (one.baseline, one.side, one.relative, one.welch, one.p_holm, one.paired)
        assert None not in (one.bootstrap, one.hedges_g, one.hedges_ci95, one.detectable)


@pytest.mark.parametrize("runs", [1, 2])
def test_fewer_than_three_runs_make_no_claim_but_show_what_they_have(runs: int) -> None:
    """However large the difference; one run has no spread and so no t-test, but samples to draw from again."""
    found = compare([BASE[:runs], side(3.0, runs=3, first=2)[:runs]], QUICK)
    assert (found.outcome, verdicts(found), found.least_runs) == ("no_claim", {"no_claim"}, runs)
    ttft = figure(found, "ttft_p50")
    assert ttft.relative is not None
    assert ttft.bootstrap is not None
    assert (ttft.welch is None) == (runs == 1)


def test_an_invalid_run_forbids_a_claim_and_other_requests_the_comparison() -> None:
    """The first is INVALID, the second not comparable, whatever the figures say; INCONCLUSIVE runs may be compared."""
    slow = side(2.0, first=2)
    invalid = compare([BASE, [*slow[:2], *changed(slow[2:], status="INVALID")]], QUICK)
    assert (invalid.outcome, invalid.invalid) == ("invalid", ("run-2",))
    other = compare([BASE, changed(slow, fingerprint="sha256:other")], QUICK)
    assert (other.outcome, verdicts(other)) == ("not_comparable", {"not_comparable"})
    assert [item.code for item in other.forbidden] == ["workload"]
    assert compare([BASE, changed(slow, status="INCONCLUSIVE")], QUICK).outcome == "regression"


def test_a_threshold_holds_back_what_is_smaller_and_can_show_equivalence() -> None:
    """The same 20 % count at a threshold of 10 % and not at 30 %; an interval within the threshold is equivalence."""
    sides = [BASE, side(1.2, first=2)]
    assert figure(compare(sides, replace(QUICK, threshold=0.1)), "tpot_p50").verdict == "worse"
    held = figure(compare(sides, replace(QUICK, threshold=0.3)), "tpot_p50")
    assert (held.verdict, held.held) == ("no_difference", ("threshold",))
    alike = compare([BASE, side(1.0, first=3)], replace(QUICK, threshold=0.3))
    assert figure(alike, "tpot_p50").equivalent is True
    assert held.equivalent is False or held.equivalent is True
    assert figure(compare(sides, QUICK), "tpot_p50").equivalent is None


def test_a_difference_no_larger_than_that_of_equal_runs_is_noise() -> None:
    """The floor is the largest difference of any A/A side, without its sign; a system that moves is told."""
    sides = [BASE, side(1.2, first=2)]
    calm, restless = tuple(side(1.01, first=4)), tuple(side(0.7, first=5))
    low = figure(compare(sides, replace(QUICK, noise=(calm,))), "tpot_p50")
    assert low.verdict == "worse"
    both = compare(sides, replace(QUICK, noise=(calm, restless)))
    high = figure(both, "tpot_p50")
    assert (high.verdict, high.held) == ("no_difference", ("noise",))
    assert high.floor is not None
    assert low.floor is not None
    assert high.floor.value == pytest.approx(0.3, abs=0.05)
    assert low.floor.value < 0.05
    assert "tpot_p50" in both.noise_moves
    assert compare(sides, replace(QUICK, noise=(calm,))).noise_moves == ()


def test_the_noise_of_another_system_hides_no_regression() -> None:
    """A floor from runs that are not of the baseline's system or load holds a claim back, and makes none of its own."""
    sides = [BASE, side(1.2, first=2)]
    restless = side(0.7, first=5)
    other = tuple(replace(run, facts=planned(run.facts, "load", rate=7.0)) for run in restless)
    found = compare(sides, replace(QUICK, noise=(other,)))
    assert (figure(found, "tpot_p50").verdict, figure(found, "tpot_p50").held) == ("no_claim", ("noise",))
    assert found.outcome == "no_claim"
    alike = compare([BASE, side(1.0, first=3)], replace(QUICK, noise=(other,)))
    assert verdicts(alike) == {"no_difference"}


def test_more_deciding_figures_and_more_sides_ask_for_more_evidence() -> None:
    """Holm's p grows with the family; the others are a family of their own."""
    sides = [BASE, side(1.05, first=2)]
    alone = figure(compare(sides, replace(QUICK, deciding=("ttft_p50",))), "ttft_p50")
    many = figure(compare(sides, QUICK), "ttft_p50")
    three = figure(compare([*sides, side(1.0, first=3)], QUICK), "ttft_p50")
    assert alone.p_holm == alone.p == many.p
    assert (alone.p_holm or 0) < (many.p_holm or 0) <= (three.p_holm or 0)
    assert (alone.detectable or 0) < (many.detectable or 0) < (three.detectable or 0)


def test_one_worse_side_of_several_is_a_regression() -> None:
    """And the other sides keep their own verdicts."""
    found = compare([BASE, side(1.0, first=3), side(1.5, first=2)], QUICK)
    assert found.outcome == "regression"
    assert verdicts(found, 0) == {"no_difference"}
    assert "worse" in verdicts(found, 1)


def test_only_deciding_figures_decide() -> None:
    """A system with half the failures' luck but slower tokens regresses in tokens, and not in what else is compared."""
    slow = side(1.5, first=2)
    found = compare([BASE, slow], replace(QUICK, deciding=("success_rate",)))
    assert found.outcome == "no_regression"
    assert figure(found, "tpot_p50").verdict == "worse"
    assert not figure(found, "tpot_p50").deciding


def test_throughput_is_normalised_where_hardware_differs() -> None:
    """Twice the accelerators for the same tokens is half as many for each; a price takes precedence (6.2)."""

    def on(runs: list[Run], **declared: object) -> list[Run]:
        return [
            replace(run, facts=replace(run.facts, sut=structs.replace(run.facts.sut, **declared)))
            for run in runs
        ]

    twice = on(side(1.0, first=3), accelerator_count=2)
    found = compare([BASE, twice], QUICK)
    assert found.deciding == ("output_tok_gpu_s", *DECIDING[1:-1]), "no tasks were given"
    assert figure(found, "output_tok_gpu_s").relative == pytest.approx(-0.5, abs=0.03)
    assert figure(found, "output_tok_s").relative == pytest.approx(0.0, abs=0.03)
    cheap = replace(QUICK, declared=Declared(prices={0: 4.0, 1: 1.0}, price_source="list"))
    found = compare([BASE, twice], cheap)
    assert found.deciding[0] == "output_tok_dollar_h"
    assert figure(found, "output_tok_dollar_h").relative == pytest.approx(3.0, abs=0.1)
    baseline = figure(found, "output_tok_dollar_h").baseline
    assert baseline is not None
    assert baseline.mean == pytest.approx(figure(found, "output_tok_s").baseline.mean / 4)  # type: ignore[union-attr]


def test_tokens_counted_in_different_ways_are_not_compared() -> None:
    """Figures that hang on the count have no verdict, so nothing is claimed; TTFT has its own."""

    def counted(run: Run) -> Run:
        tokens = replace(run.facts.tokens, method="native")
        return replace(run, facts=replace(run.facts, tokens=tokens))

    found = compare([BASE, [counted(run) for run in side(1.0, first=3)]], QUICK)
    assert figure(found, "tpot_p50").verdict == "not_comparable"
    assert figure(found, "ttft_p50").verdict == "no_difference"
    assert found.outcome == "no_claim"


def test_what_no_run_has_decides_nothing_and_what_one_side_lacks_is_not_comparable() -> None:
    """Answers that were not streamed have no TTFT: on all sides, it is left out; on one, no claim can be made."""

    def whole(runs: list[Run]) -> list[Run]:
        return [replace(run, values={**run.values, "ttft_p50": None}) for run in runs]

    both = compare([whole(BASE), whole(side(1.0, first=3))], QUICK)
    assert "ttft_p50" not in both.deciding
    assert both.outcome == "no_regression"
    one = compare([BASE, whole(side(1.0, first=3))], QUICK)
    assert figure(one, "ttft_p50").verdict == "not_comparable"
    assert one.outcome == "no_claim"


def test_a_deciding_figure_that_was_named_and_no_run_has_makes_no_claim() -> None:
    """Law: a figure that was asked for is never left out of the outcome in silence."""
    bare = [replace(run, values={**run.values, "ttft_p99": None}) for run in BASE]
    again = [replace(run, values={**run.values, "ttft_p99": None}) for run in side(first=10)]
    found = compare([bare, again], replace(QUICK, deciding=("ttft_p99", "e2e_p50")))
    assert figure(found, "ttft_p99").verdict == "not_comparable"
    assert found.outcome == "no_claim"


def test_a_comparison_is_the_same_each_time() -> None:
    """All chance comes from its seed."""
    sides = [BASE, side(1.1, first=2)]
    assert compare(sides, QUICK) == compare(sides, QUICK)
    assert compare(sides, QUICK) != compare(sides, replace(QUICK, seed=1))


def test_pairs_see_what_seeds_do_to_both_sides() -> None:
    """Where workloads differ more than systems, differences within pairs are surer, and they decide; Holm's correction over
    all deciding figures is what keeps this one from a verdict."""
    workload = np.array([1.0, 1.25, 0.85])

    def seeded(runs: list[Run]) -> list[Run]:
        return [
            replace(run, values={**run.values, "tpot_p50": (run.values["tpot_p50"] or 0.0) * factor})
            for run, factor in zip(runs, workload, strict=True)
        ]

    found = figure(compare([seeded(BASE), seeded(side(1.2, first=2))], QUICK), "tpot_p50")
    assert found.paired is not None
    assert found.welch is not None
    assert found.paired[0] > 0 > found.welch[0]
    assert found.test == "paired"
    assert found.held == ("holm",)
    assert found.verdict == "no_difference"


def test_with_a_threshold_what_may_be_worse_beyond_it_is_no_claim() -> None:
    """Law: sides alike but for chance are `no_regression` at a threshold that holds the harmful end of every deciding
    interval, and `no_claim` at one that does not: failing to show a difference shows nothing."""
    sides = [BASE, side(1.0, first=3)]
    wide, narrow = (
        compare(sides, replace(QUICK, threshold=5.0)),
        compare(sides, replace(QUICK, threshold=0.0001)),
    )
    assert wide.outcome == "no_regression"
    assert narrow.outcome == "no_claim"
    for one in narrow.contrasts[0]:
        if one.verdict == "no_difference":
            ends = one.paired if one.test == "paired" else one.welch
            assert ends is not None
            assert ends[0] > -0.0001 if one.better == "more" else ends[1] < 0.0001


def test_what_could_be_seen_has_an_interval_that_narrows_with_more_runs() -> None:
    """Law: the detectable difference lies within its own interval, whose ends are further apart for fewer runs."""

    def spread(runs: int) -> float:
        one = figure(compare([side(1.0, runs=runs), side(1.0, runs=runs, first=20)], QUICK), "tpot_p50")
        assert one.detectable is not None
        assert one.detectable_ci95 is not None
        low, high = one.detectable_ci95
        assert low < one.detectable < high
        return high / low

    assert spread(3) > spread(8)
