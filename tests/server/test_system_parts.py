"""The parts of the reference systems: calculator, index, the caller's trace, settings."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.server.systems.calculator import computed, expression_in
from inferometer.server.systems.corpus import PASSAGES
from inferometer.server.systems.passage_index import reranked
from inferometer.server.systems.scripts import shipped_index
from inferometer.server.systems.settings import SYSTEM_FIELDS, SystemSettings, system_settings
from inferometer.server.systems.task import Trace, read_traceparent

INDEX = shipped_index()
NUMBERS = st.integers(0, 10**6).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda one: f"({''.join(one)})"),
    max_leaves=8,
)


@given(EXPRESSIONS, st.sampled_from("+-*/"), EXPRESSIONS)
def test_the_calculator_agrees_with_an_independent_one(left: str, sign: str, right: str) -> None:
    """Python computes the same; division with fractions."""
    expression = f"{left} {sign} {right}"
    if len(expression) > 200:
        return
    ours = computed(expression)
    a, b = eval(left), eval(right)
    if sign == "/" and b == 0:
        assert ours.startswith("undefined")
        return
    value = Fraction(a, b) if sign == "/" else Fraction({"+": a + b, "-": a - b, "*": a * b}[sign])
    assert ours == (str(value) if value.denominator == 1 else f"{float(value):.12g}")
    assert expression_in(f"What is {expression}?") == expression


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("compute 12*(3+4).", "12*(3+4)"),
        ("In 2026 there were 3 of them", None),
        ("2 + 2 - and then?", "2 + 2"),
        ("((((1+", None),
        ("1/0", "1/0"),
        ("", None),
        ("(" * 5000, None),
        ("9+" * 5000, None),
    ],
)
def test_an_expression_is_found_or_not(text: str, found: str | None) -> None:
    """Sentences around it do not matter, and what cannot be read is none."""
    assert expression_in(text) == found


@given(st.text(max_size=300))
def test_no_text_breaks_calculator_or_index(text: str) -> None:
    """Any text has an expression that can be computed or none, and nearest passages."""
    expression = expression_in(text)
    assert expression is None or computed(expression)
    assert len(INDEX.nearest(text, 3)) == 3


@pytest.mark.parametrize("passage", PASSAGES, ids=[ident for ident, _ in PASSAGES])
def test_a_passage_is_found_by_its_own_words(passage: tuple[str, str]) -> None:
    """Each is nearest to itself, and the reranker agrees."""
    assert INDEX.nearest(passage[1], 1) == [passage]
    assert reranked(passage[1], PASSAGES)[0] == passage


@pytest.mark.parametrize(
    ("header", "valid"),
    [
        (f"00-{'a' * 32}-{'b' * 16}-01", True),
        (f"cc-{'a' * 32}-{'b' * 16}-01-later", True),
        (f"00-{'a' * 32}-{'b' * 16}-01-later", False),
        (f"ff-{'a' * 32}-{'b' * 16}-01", False),
        (f"00-{'0' * 32}-{'b' * 16}-01", False),
        (f"00-{'a' * 32}-{'0' * 16}-01", False),
        (f"00-{'A' * 32}-{'b' * 16}-01", False),
        ("", False),
    ],
)
def test_a_traceparent_is_read_as_w3c_has_it(header: str, valid: bool) -> None:
    """What is not valid is as if there were none."""
    assert read_traceparent(header) == (Trace("a" * 32, "b" * 16) if valid else None)


def test_settings_are_read_by_key_and_refused_in_words() -> None:
    """Times take units, shares are at most 1, and everything wrong is named at once."""
    assert system_settings(["search=5ms", "step_fails=0.5", "passages=1"]) == SystemSettings(
        search_ns=5e6, step_fails=0.5, passages=1
    )
    with pytest.raises(PlanError, match=r"(?s)search=5.*drop_tool=x"):
        system_settings(["search=5", "drop_tool=x"])
    for word in ("step_fails=2", "step_fails=nan", "passages=0", "planner_tokens=-1", "slow_tool_by=100000s"):
        with pytest.raises(PlanError):
            system_settings([word])
    assert set(SYSTEM_FIELDS.values()) == set(SystemSettings.__dataclass_fields__)
