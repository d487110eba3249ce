"""Which model answered, by the name that each answer gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from inferometer.judge.answering import answered_as
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

Runs = Callable[..., tuple[Plan, object, Record]]


def status(
    run: Runs,
    names: Sequence[str | None],
    expected: str | None = "big",
    *,
    probed: bool = True,
    **changes: object,
) -> str:
    """What is said of 100 warm-up requests and 900 measured ones that name these models in turn."""
    _, _, record = run(
        n=900, warm=100, answered_as=[names[row * len(names) // 1000] for row in range(1000)], **changes
    )
    return answered_as(record, expected, probed=probed).status


@pytest.mark.parametrize(
    ("names", "expected", "probed", "said"),
    [
        ([None], "big", True, "na"),
        (["big"], "big", True, "pass"),
        (["big", None, "big"], "big", True, "pass"),
        (["big", "big", "small"], "big", True, "fail"),
        (["big", "small", "small"], "big", True, "fail"),
        (["big", *["small"] * 9], "big", True, "fail"),  # the warm-up alone was answered as asked
        (["small"], "big", True, "unsure"),
        (["alias"], "big", False, "pass"),
        (["alias"], None, True, "pass"),
        (["alias", "small"], "big", False, "fail"),
        (["n" * 200], "n" * 300, True, "pass"),
    ],
)
def test_an_answer_of_another_model_is_not_of_the_system_that_was_asked_for(
    run: Runs, names: list[str | None], expected: str | None, probed: bool, said: str
) -> None:
    """Law: one answer is enough, and an alias that the probe told, or that a cold start could not, is none."""
    assert status(run, names, expected, probed=probed) == said


def test_failed_answers_name_nothing(run: Runs) -> None:
    """Law: a refusal may be the words of a guardrail, which is a model of its own."""
    outcomes = ["refused" if row >= 900 else "ok" for row in range(1000)]
    assert status(run, ["big"] * 9 + ["guard"], outcome=outcomes) == "pass"


def test_the_share_and_the_name_are_told(run: Runs) -> None:
    """The first other name stands for all."""
    _, _, record = run(n=4, warm=0, answered_as=["big", "small", "tiny", "big"])
    check = answered_as(record, "big", probed=True)
    assert (check.value, check.facts["other"], check.facts["others"]) == (0.5, "small", 2)
