"""Which engine is ahead of which, and whether its figures can be relied on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from inferometer.documents.bench import EngineMetadata, EngineResult, PromptResult, Sample
from inferometer.documents.verdict import CheckResult, CheckStatus, RunStatus
from inferometer.judge.bench import Ranked, figure, of_the_checks, overall, ranking, verdict

NAMES: tuple[Ranked, ...] = ("tok_per_sec", "ttft_client_ms")


def engine(
    label: str,
    speeds: Sequence[float],
    ended: str = "measured",
    prompt: str = "code",
    status: RunStatus = "VALID",
) -> EngineResult:
    """An engine with these speeds, and TTFTs of the same numbers."""
    samples = tuple(
        Sample(
            prompt, run + 1, run, value, "client", value, "client", value, value, value, value, None, 10, "server",
            5, None, "length", "ok",
        )
        for run, value in enumerate(speeds)
    )  # fmt: skip
    shown = figure({prompt: list(speeds)})
    result = PromptResult(prompt, 64, None, None, None, shown, shown, None)
    metadata = EngineMetadata(*[label, *[None] * 13])  # type: ignore[arg-type]
    return EngineResult(
        label=label, url=None, ended=ended, metadata=metadata, status=status, reasons=(), runs=(),  # type: ignore[arg-type]
        tok_per_sec=shown, ttft_client_ms=shown, tok_per_sec_per_watt=None, spread=None, prompts=(result,),
        samples=samples, remarks=(),
    )  # fmt: skip


def places(name: Ranked, *engines: EngineResult) -> list[tuple[int, tuple[str, ...], bool]]:
    return [(one.place, one.labels, one.tie) for one in ranking(name, engines).places]


def test_an_engine_of_another_speed_is_ranked_and_equal_ones_tie() -> None:
    """Higher speed is better, and lower TTFT; a place that is shared takes up the next."""
    quick, same, slow = engine("a", [99, 100, 101]), engine("b", [99, 100, 101]), engine("c", [49, 50, 51])
    assert places("tok_per_sec", slow, quick, same) == [(1, ("a", "b"), True), (3, ("c",), False)]
    assert places("ttft_client_ms", slow, quick, same) == [(1, ("c",), False), (2, ("a", "b"), True)]
    reasons = [one.code for one in ranking("tok_per_sec", [slow, quick, same]).reasons]
    assert reasons == ["overlap", "ahead"]


@given(
    st.lists(st.lists(st.floats(1, 1_000), min_size=2, max_size=4), min_size=1, max_size=6),
    st.sampled_from(NAMES),
)
def test_each_engine_has_one_place_and_no_claim_is_made_across_an_overlap(
    speeds: list[list[float]], name: Ranked
) -> None:
    """Law: engines in different places have intervals that are apart, in the order of the places."""
    engines = [engine(str(at), values) for at, values in enumerate(speeds)]
    found = ranking(name, engines)
    assert sorted(label for place in found.places for label in place.labels) == [one.label for one in engines]
    intervals = {
        one.label: figure({"code": list(values)}).ci95 for one, values in zip(engines, speeds, strict=True)
    }
    for at, better in enumerate(found.places):
        for worse in found.places[at + 1 :]:
            for first in better.labels:
                for second in worse.labels:
                    one, two = intervals[first], intervals[second]
                    assert one is not None
                    assert two is not None
                    assert one[0] > two[1] if name == "tok_per_sec" else one[1] < two[0]


def test_without_an_interval_nothing_is_claimed() -> None:
    """One run of a prompt does not tell how much it varies."""
    found = ranking("tok_per_sec", [engine("a", [100.0]), engine("b", [50.0])])
    assert (found.decided, found.places, found.left_out) == (False, (), ("a", "b"))
    assert {one.code for one in found.reasons} == {"place_without_interval"}


@given(
    st.lists(st.lists(st.floats(1, 1_000), min_size=2, max_size=4), min_size=1, max_size=4),
    st.lists(st.floats(1, 1_000), min_size=1, max_size=4),
    st.sampled_from(NAMES),
)
def test_an_engine_without_a_place_changes_no_order(
    speeds: list[list[float]], other: list[float], name: Ranked
) -> None:
    """Law: the others stand as if an INVALID one, or one without an interval, had not been measured; it is named, and why."""
    engines = [engine(str(at), values) for at, values in enumerate(speeds)]
    invalid, single = engine("x", other, status="INVALID"), engine("x", other[:1])
    for one, code in ((invalid, "place_invalid"), (single, "place_without_interval")):
        found = ranking(name, [one, *engines])
        assert found.places == ranking(name, engines).places
        assert found.left_out == ("x",)
        assert [why.code for why in found.reasons if why.facts.get("engine") == "x"] == [code]


def test_an_inconclusive_engine_keeps_its_place_with_a_remark() -> None:
    """Its figures may be right; whoever reads the order is warned."""
    found = ranking("tok_per_sec", [engine("a", [9, 9], status="INCONCLUSIVE"), engine("b", [1, 2])])
    assert found.left_out == ()
    assert [one.facts["engine"] for one in found.reasons if one.code == "place_unsure"] == ["a"]


def test_an_engine_that_was_not_measured_to_its_end_has_no_place() -> None:
    """It is named beside the order."""
    found = ranking("tok_per_sec", [engine("a", [1, 2]), engine("b", [9, 9], ended="failed")])
    assert found.left_out == ("b",)
    assert [one.labels for one in found.places] == [("a",)]


def test_engines_are_ranked_over_the_prompts_that_all_have() -> None:
    """Here none, so no engine has a place."""
    found = ranking("tok_per_sec", [engine("a", [1, 2]), engine("b", [9, 9], prompt="long")])
    assert (found.prompts, found.places, found.left_out) == ((), (), ("a", "b"))


@pytest.mark.parametrize(
    ("speeds", "finished", "status", "reasons"),
    [
        ({"code": [1.0, 2.0]}, True, "VALID", ()),
        ({"code": [1.0], "long": [1.0, 2.0]}, True, "INCONCLUSIVE", ("no_interval",)),
        ({"code": []}, True, "INCONCLUSIVE", ("nothing_counts",)),
        ({"code": [1.0, 2.0]}, False, "INCONCLUSIVE", ("not_finished",)),
    ],
)
def test_a_result_says_why_it_is_not_to_be_relied_on(
    speeds: dict[str, list[float]], finished: bool, status: str, reasons: tuple[str, ...]
) -> None:
    """Besides the checks of its run."""
    assert verdict(None, speeds, finished=finished) == (status, reasons)


def test_a_benchmark_is_as_good_as_its_worst_engine() -> None:
    """One without a status leaves it open; none at all too."""
    assert overall([engine("a", [1, 2])]) == "VALID"
    assert overall([]) == "INCONCLUSIVE"


def planted(label: str, runs: dict[str, list[float]]) -> EngineResult:
    """An engine with these speeds by prompt."""
    parts = [engine(label, speeds, prompt=prompt) for prompt, speeds in runs.items()]
    return replace(
        parts[0],
        samples=tuple(sample for part in parts for sample in part.samples),
        prompts=tuple(prompt for part in parts for prompt in part.prompts),
    )


def test_what_is_said_of_a_pair_is_true_of_its_intervals() -> None:
    """The better median with the worse mean is a tie that no overlap explains; who shares a place is ahead within it only."""
    one = planted("a", {"p": [99, 100, 101], "q": [99, 100, 101], "r": [9, 10, 11]})
    two = planted("b", {"p": [89, 90, 91], "q": [89, 90, 91], "r": [89, 90, 91]})
    assert [why.code for why in ranking("tok_per_sec", [one, two]).reasons] == ["opposite"]
    quick, wide, slow = engine("a", [99, 100, 101]), engine("b", [60, 98, 120]), engine("c", [89, 90, 91])
    found = ranking("tok_per_sec", [quick, wide, slow])
    assert [place.labels for place in found.places] == [("a", "b", "c")]
    close = ranking("tok_per_sec", [quick, slow, engine("d", [40, 80, 120])])
    assert [why.code for why in close.reasons] == ["ahead_within", "overlap"]


NOISES: dict[str, Callable[[Random], list[list[float]]]] = {
    "each run": lambda dice: [[60 * dice.gauss(1, 0.01) for _ in range(3)] for _ in range(4)],
    "each round": lambda dice: rounds(dice),
    "a run in twenty": lambda dice: [
        [60 * dice.gauss(1, 0.005) * (0.6 if dice.random() < 0.05 else 1.0) for _ in range(3)]
        for _ in range(4)
    ],
}


def rounds(dice: Random) -> list[list[float]]:
    """Rounds that are slower or faster as a whole."""
    factors = [dice.gauss(1, 0.02) for _ in range(3)]
    return [[60 * factor * dice.gauss(1, 0.003) for factor in factors] for _ in range(4)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("many", [2, 3, 5, 10])
def test_engines_of_one_speed_are_hardly_ever_set_apart(noise: str, many: int) -> None:
    """Law: of benchmarks of equal engines, at most one in twenty claims that one is ahead, whatever varies within a turn."""
    dice = Random(many)
    apart, trials = 0, 600 // many
    for _ in range(trials):
        engines = [
            planted(str(at), {str(prompt): runs for prompt, runs in enumerate(NOISES[noise](dice))})
            for at in range(many)
        ]
        apart += len(ranking("tok_per_sec", engines).places) > 1
    assert apart <= 0.05 * trials


@given(st.lists(st.lists(st.floats(1, 1_000), min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_mean_lies_in_its_interval(runs: list[list[float]]) -> None:
    """Law: both are over prompts, also where some lack samples."""
    shown = figure({str(at): values for at, values in enumerate(runs)})
    if shown.ci95 is not None and shown.mean is not None:
        assert shown.ci95[0] <= shown.mean <= shown.ci95[1]


def checked(code: str, status: CheckStatus = "fail", **facts: object) -> CheckResult:
    return CheckResult(code, status, None, None, None, facts, "")


BOUNDED = checked("error_bound", "pass")


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        ([checked("error_bound", beyond=["itl_ms p99", "output_tok_s"])], {}),
        ([checked("error_bound", beyond=["itl_ms p99", "ttft_ms p50"])], {"error_bound": "INVALID"}),
        ([checked("error_bound", beyond=["tpot_ms mean"])], {"error_bound": "INVALID"}),
        ([checked("error_bound")], {"error_bound": "INVALID"}),
        ([checked("receive_lag", source="kernel"), BOUNDED], {}),
        ([checked("receive_lag", source="kernel")], {"receive_lag": "INVALID"}),
        ([checked("receive_lag", source="user"), BOUNDED], {"receive_lag": "INVALID"}),
        ([checked("streamed", "unsure", of="few", held=0)], {}),
        ([checked("streamed", "unsure", of="few", held=1)], {"streamed": "INCONCLUSIVE"}),
        ([checked("streamed", "fail", held=3)], {"streamed": "INVALID"}),
        ([checked("few_samples", "unsure")], {}),
        ([checked("lateness", "pass"), checked("lateness", "na")], {}),
    ],
)
def test_a_check_counts_if_it_is_of_a_figure_that_a_benchmark_states(
    checks: list[CheckResult], found: dict[str, RunStatus]
) -> None:
    """TTFT, total and speed of an answer; gaps between its tokens are no figure, and late reading counts by its bound."""
    assert of_the_checks(checks) == found
