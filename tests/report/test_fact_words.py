"""A function of words is passed the facts that its parameters name."""

from __future__ import annotations

import pytest

from inferometer.documents.note import Fact
from inferometer.report.fact_words import called


def words(rate: float, unit: str = "req/s") -> str:
    return f"{rate:g} {unit}"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"rate": 2.0}, "2 req/s"),
        ({"rate": 2.0, "unit": "tok/s"}, "2 tok/s"),
        ({"rate": 2.0, "percent": 50}, "2 req/s"),
    ],
)
def test_a_function_takes_its_own_facts_and_no_others(facts: dict[str, Fact], expected: str) -> None:
    """One with a default may be left out; one that no parameter names is passed over."""
    assert called(words, facts) == expected


def test_a_function_of_any_facts_takes_them_all() -> None:
    """As words that list what they are given do."""
    assert called(lambda **facts: ", ".join(facts), {"rate": 2.0, "percent": 50}) == "rate, percent"


def test_a_fact_that_words_need_is_missed_by_name() -> None:
    """Words never stand without a value they name."""
    with pytest.raises(TypeError, match="rate"):
        called(words, {"percent": 50})
