"""Which results the newest is held against, and what the check comes to."""

from __future__ import annotations

from typing import Any

import pytest
from histories import CONDITIONS, entry, figure, history, noisy
from msgspec.structs import replace

from inferometer.documents.history import HistoryCheck, NumberedEntry
from inferometer.errors import PlanError
from inferometer.judge.history.regression import LEAST, Sensitivity
from inferometer.report.figures import moment
from inferometer.report.history import words
from inferometer.studies.history.check import EXIT_CODES, Question, check
from inferometer.studies.history.entries import instant
from inferometer.studies.history.trend import trend


def changed(one: NumberedEntry, **facts: Any) -> NumberedEntry:
    return replace(one, entry=replace(one.entry, **facts))


def outcome(document: HistoryCheck) -> tuple[str, int]:
    return document.outcome, EXIT_CODES[document.outcome]


def test_a_slower_result_is_a_regression_and_one_as_usual_is_not() -> None:
    """By the noise of the results before."""
    before = noisy(20)
    assert outcome(check(history([*before, 100.0]), Question())) == ("no_regression", 0)
    assert outcome(check(history([*before, 115.0]), Question())) == ("regression", 6)
    assert outcome(check(history([*before, 85.0]), Question())) == ("no_regression", 0)


def test_with_too_few_results_there_is_no_claim() -> None:
    """However slow the newest is."""
    for count, code in ((0, 4), (LEAST - 1, 4), (LEAST, 6)):
        found = check(history([*noisy(count), 300.0]), Question())
        assert EXIT_CODES[found.outcome] == code
    assert check(history([*noisy(3), 300.0]), Question()).results[0].too_little == "few"


def test_a_result_that_lacks_what_decided_before_is_no_claim() -> None:
    """Law: what was not measured, or not judged, is no better than before; a regression in what is there stays one."""
    values = noisy(LEAST)
    share = figure("task_success_rate", 0.9, better="more")
    made = history([*values, values[0]])
    judged = [changed(one, figures=(*one.entry.figures, share)) for one in made]
    assert outcome(check(judged, Question())) == ("no_regression", 0)
    found = check([*judged[:-1], made[-1]], Question())
    assert (outcome(found), found.results[0].too_little) == (("too_little", 4), "lacking")
    slow = history([*values, 300.0])[-1]
    assert outcome(check([*judged[:-1], slow], Question())) == ("regression", 6)
    assert outcome(check([*judged[:-1], made[-1]], Question(metrics=("ttft_p50",)))) == ("no_regression", 0)


@pytest.mark.parametrize(
    "facts", [{"verdict": "INVALID"}, {"verdict": "INCONCLUSIVE"}, {"interrupted": True}]
)
def test_only_valid_whole_results_are_compared(facts: dict[str, Any]) -> None:
    """Neither as history nor as the newest one."""
    made = history([*noisy(LEAST), 115.0])
    assert outcome(check([*made[:-1], changed(made[-1], **facts)], Question()))[1] == 4
    spoilt = [changed(made[0], **facts), *made[1:]]
    found = check(spoilt, Question()).results[0]
    assert (found.too_little, found.compared) == ("few", tuple(range(2, LEAST + 1)))
    assert [(one.number, one.keys) for one in found.incomparable] == [(1, ())]


def test_results_under_other_conditions_are_left_out_with_the_reason() -> None:
    """Unless the condition is to be ignored; a condition that only one has counts as well."""
    made = history([*noisy(12), 115.0])
    made[2] = changed(made[2], conditions={**CONDITIONS, "sut.accelerator": "A100", "load.rate": "9"})
    found = check(made, Question()).results[0]
    assert 3 not in found.compared
    assert [(one.number, one.keys) for one in found.incomparable] == [(3, ("load.rate", "sut.accelerator"))]
    ignoring = check(made, Question(ignored=("sut.accelerator", "load.rate"))).results[0]
    assert 3 in ignoring.compared


def test_other_tests_and_kinds_are_no_history_of_a_test() -> None:
    """Each test of a campaign stands against itself; all of the newest campaign are checked at once."""
    made = []
    for at, value in enumerate(noisy(10), start=1):
        campaign = {"kind": "test", "id": f"c-{at}"}
        made.append(NumberedEntry(2 * at, entry(at, {"ttft_p50": value}, part="ttft", **campaign)))
        speed = (figure("max_output_tok_s", 1000 / value, better="more", unit="tok/s"),)
        made.append(NumberedEntry(2 * at + 1, entry(at, {}, part="throughput", figures=speed, **campaign)))
    found = check(made, Question())
    assert [(one.part, len(one.compared)) for one in found.results] == [("ttft", 9), ("throughput", 9)]
    assert found.outcome == "no_regression"
    slow = replace(made[-1].entry, figures=(replace(made[-1].entry.figures[0], value=7.0),))
    assert check([*made[:-1], NumberedEntry(made[-1].number, slow)], Question()).outcome == "regression"
    one = check(made, Question(number=20, metrics=("ttft.ttft_p50",)))
    assert [each.number for each in one.results] == [20]


def test_an_older_result_is_held_against_those_before_it_alone() -> None:
    """Named by its number."""
    made = history([*noisy(12), 115.0, *noisy(3)])
    found = check(made, Question(number=13))
    assert found.outcome == "regression"
    assert found.results[0].compared == tuple(range(1, 13))


def test_a_change_is_accepted_by_a_later_begin_of_the_history() -> None:
    """`--from`: what was before does not count."""
    made = history([*noisy(20, 1), *noisy(12, 2, level=110)])
    assert check(made, Question()).outcome == "regression"
    accepted = check(made, Question(start=21))
    assert accepted.outcome == "no_regression"
    assert accepted.results[0].compared == tuple(range(21, 32))


def test_the_figures_that_decide_can_be_named() -> None:
    """Others are shown; a figure that is not there is refused with those that are."""
    made = [
        NumberedEntry(at, entry(at, {"ttft_p50": value, "tpot_p50": 50.0 if at == 13 else 5.0}))
        for at, value in enumerate(noisy(13), start=1)
    ]
    assert check(made, Question()).outcome == "regression"
    named = check(made, Question(metrics=("ttft_p50",)))
    assert named.outcome == "no_regression"
    assert [(one.name, one.deciding, one.verdict) for one in named.results[0].figures] == [
        ("ttft_p50", True, "no_difference"),
        ("tpot_p50", False, "worse"),
    ]
    with pytest.raises(PlanError, match="no figure 'itl_p99'; it has tpot_p50, ttft_p50"):
        check(made, Question(metrics=("itl_p99",)))


def test_what_changed_between_results_is_told() -> None:
    """Versions since the result before, what is not declared, and whether all sent the same requests."""
    made = history([*noisy(12), 115.0])
    made[-1] = changed(made[-1], versions={"engine": "vLLM 0.11.0"})
    found = check(made, Question()).results[0]
    assert [(one.name, one.before, one.now) for one in found.versions] == [
        ("engine", "vLLM 0.10.1", "vLLM 0.11.0")
    ]
    assert (found.undeclared, found.same_requests) == ((), False)
    bare = [changed(one, conditions={"sut.model": "m"}, fingerprint="sha256:1") for one in made]
    found = check(bare, Question()).results[0]
    assert found.undeclared == ("sut.quantization", "sut.accelerator", "sut.engine")
    assert found.same_requests is True


def test_a_figure_that_is_new_has_no_claim_and_the_others_decide() -> None:
    """A goodput that only the newest has."""
    made = history(noisy(13))
    more = (*made[-1].entry.figures, figure("goodput_request_s", 9.0, better="more"))
    found = check([*made[:-1], changed(made[-1], figures=more)], Question())
    assert found.outcome == "no_regression"
    assert [(one.name, one.verdict, one.n) for one in found.results[0].figures][1] == (
        "goodput_request_s",
        "no_claim",
        0,
    )


def at_loads(value: float, loads: tuple[float, ...], number: int) -> NumberedEntry:
    """The test `ttft` of a campaign, with a latency at these loads and a maximum that depends on none."""
    most = figure("max_output_tok_s", 1000.0 + number % 3, better="more", unit="tok/s", deciding=False)
    figures = (figure("ttft_p50", value, loads=loads), most)
    return NumberedEntry(
        number, entry(number, {}, kind="test", id=f"c-{number}", part="ttft", figures=figures)
    )


def test_figures_are_compared_at_the_same_absolute_loads() -> None:
    """At half of half the maximum a system that slowed down looks fast: nothing is claimed of it, nor drawn."""
    made = [at_loads(value, (5.0 + at % 2 / 10,), at) for at, value in enumerate(noisy(12), start=1)]
    slower = check([*made, at_loads(60.0, (2.5,), 13)], Question())
    assert outcome(slower) == ("too_little", 4)
    result = slower.results[0]
    assert result.too_little == "loads"
    by_name = {one.name: (one.verdict, one.n, one.elsewhere) for one in result.figures}
    assert by_name == {"ttft_p50": ("no_claim", 0, 12), "max_output_tok_s": ("no_difference", 12, 0)}
    assert outcome(check([*made, at_loads(130.0, (5.2,), 13)], Question())) == ("regression", 6)


def test_a_result_at_another_load_is_left_out_of_the_series_alone() -> None:
    """Of the figure that depends on it; the entry is comparable otherwise. A load that is not known is another one."""
    made = [at_loads(value, (5.0, 9.0), at) for at, value in enumerate(noisy(12), start=1)]
    made[3], made[4] = at_loads(10.0, (5.0, 8.0), 4), at_loads(10.0, (), 5)
    found = check([*made, at_loads(100.0, (5.0, 9.1), 13)], Question())
    assert found.outcome == "no_regression"
    assert [(one.n, one.elsewhere) for one in found.results[0].figures] == [(10, 2), (12, 0)]
    seen = trend([*made, at_loads(100.0, (5.0, 9.1), 13)], "ttft_p50", None, ())
    assert ([one.number for one in seen.points], seen.elsewhere) == ([1, 2, 3, *range(6, 14)], 2)


def test_what_cannot_be_checked_is_refused() -> None:
    """An empty history, a number that there is not, a comparison."""
    compared = NumberedEntry(1, entry(1, {"B.ttft_p50": 3.0}, kind="comparison", verdict="regression"))
    for made, question in (
        ([], Question()),
        (history([1.0]), Question(number=9)),
        ([compared], Question(number=1)),
    ):
        with pytest.raises(PlanError):
            check(made, question)


def test_the_same_check_gives_the_same_answer() -> None:
    """Its permutations are seeded."""
    made = history(noisy(60))
    question = Question(sensitivity=Sensitivity(seed=3))
    assert check(made, question) == check(made, question)


def test_a_trend_is_of_comparable_results_and_marks_changes() -> None:
    """Those that are not VALID are points too; the newest result with the figure decides what is comparable."""
    made = history([*noisy(25, 1), *noisy(15, 2, level=120)])
    made[3] = changed(made[3], conditions={**CONDITIONS, "load.rate": "9"})
    made[5] = changed(made[5], verdict="INVALID")
    found = trend(made, "ttft_p50", None, ())
    assert (len(found.points), found.incomparable, found.changes) == (39, 1, (26,))
    assert [one.number for one in found.points if not one.valid] == [6]
    assert len(trend(made, "ttft_p50", 4, ()).points) == 1
    assert len(trend(made, "ttft_p50", None, (), last=7).points) == 7
    with pytest.raises(PlanError, match="there are ttft_p50"):
        trend(made, "ttft", None, ())


def test_a_result_dated_ahead_does_not_hide_those_that_are_newer() -> None:
    """It would stay the newest for ever. What came later and is not newer by its date is named."""
    made = [*history([*noisy(12), 100.0]), NumberedEntry(14, entry(14, {"ttft_p50": 150.0}))]
    made[12] = changed(made[12], started="2099-01-01T00:00:00Z")
    now = instant(made[13].entry) + 60
    found = check(made, Question(now=now))
    assert (outcome(found), found.results[0].number, found.results[0].later) == (("regression", 6), 14, ())
    blind = check(made, Question())
    assert (blind.outcome, blind.results[0].number, blind.results[0].later) == ("no_regression", 13, (14,))
    assert "14. Name one to check it." in "".join(words.remarks(blind.results[0], blind.method))
    assert check(made, Question(number=12, now=now)).results[0].later == ()
    assert check(made, Question(number=13, now=now)).results[0].later == (14,)


def test_a_misspelt_condition_to_ignore_is_refused_with_the_one_meant() -> None:
    """It would be ignored itself; one that no result declares is known."""
    made = history([*noisy(12), 115.0])
    for key, near in (("sut.acelerator", "did you mean sut.accelerator"), ("colour", "no result has")):
        with pytest.raises(PlanError, match=near):
            check(made, Question(ignored=(key,)))
        with pytest.raises(PlanError, match=near):
            trend(made, "ttft_p50", None, (key,))
    assert check(made, Question(ignored=("sut.model",))).outcome == "regression"


def test_a_check_says_how_many_results_it_uses() -> None:
    """Of those that are comparable, the newest ones."""
    (found,) = check(history(noisy(61)), Question()).results
    assert words.against(found).startswith("Against at most 30 of 60 comparable VALID results before it")
    (found,) = check(history(noisy(13)), Question()).results
    assert words.against(found).startswith("Against 12 comparable VALID results before it")


def test_changes_of_a_figure_that_was_0_are_shares_in_words_too() -> None:
    """Absolute changes are not percentages."""
    usual = [8.0, 8.1, 8.2] * 4
    made = history([*usual[:5], 0.0, *usual[5:], 4.05], "goodput")
    made = [
        changed(one, figures=tuple(replace(each, better="more") for each in one.entry.figures))
        for one in made
    ]
    figure = check(made, Question()).results[0].figures[0]
    assert figure.change == pytest.approx(-0.5, abs=0.01)
    assert words.change(figure.change, figure.scale, figure.unit).endswith(" %")
    assert "the newest result: \u221250 %" in words.recent(figure)


def test_instants_are_shown_in_utc_whatever_their_offset() -> None:
    """What is no instant is shown as it is written."""
    assert moment("2026-08-01T10:11:12+14:00") == "2026-07-31 20:11:12 UTC"
    assert moment("2026-08-01T10:11:12.5Z") == "2026-08-01 10:11:12 UTC"
    assert moment("0001-01-01T00:00:00+14:00").startswith("0001-01-01")


@pytest.mark.parametrize(
    ("conditions", "rate", "verdict"),
    [
        ({"load.requests": "50"}, 1.0, "no_difference"),
        ({"load.requests": "5000"}, 1.0, "worse"),
        ({"load.duration_s": "10.0"}, 5.0, "no_difference"),
        ({"load.duration_s": "10.0"}, 500.0, "worse"),
        ({"load.requests": "many", "load.duration_s": "nan"}, 500.0, "no_difference"),
    ],
)
def test_the_requests_of_a_success_rate_are_those_of_its_plan(
    conditions: dict[str, str], rate: float, verdict: str
) -> None:
    """One failure among 50 is what counting explains, and a hundred among 5,000 are not; of an unknown number none is."""
    made = [NumberedEntry(at, entry(at, {"request_s": rate}, conditions=conditions)) for at in range(1, 10)]
    for at, one in enumerate(made):
        share = figure("success_rate", 0.98 if at == 8 else 1.0, better="more", unit="", ci95=None)
        made[at] = changed(one, figures=(*one.entry.figures, share))
    found = {one.name: one.verdict for one in check(made, Question()).results[0].figures}
    assert found["success_rate"] == verdict
