"""Settings of the reference engine that a test's state takes back are named before the start."""

from __future__ import annotations

from typing import Any

import pytest

from inferometer.plan.campaign import campaign
from inferometer.studies.state_cautions import state_cautions


def said(names: tuple[str, ...], *settings: str, **options: Any) -> list[str]:
    """The lines of a campaign of these tests on the reference engine with these settings."""
    engine = {"settings": settings} if settings else {}
    return list(state_cautions(campaign(names, None, None, [], simulated=True, engine=engine, **options)))


def test_filters_are_off_in_all_tests_but_that_of_guardrails() -> None:
    """The line names the tests, and the settings as they were given."""
    (line,) = said(("ttft", "itl", "guardrail"), "input_check=5ms", "max_batch=8")
    assert line.startswith("ttft, itl: without filters; --set input_check=5ms is for guardrail alone")


def test_the_prefix_cache_is_off_in_all_tests_but_its_own() -> None:
    """As filters are; a test that is not chosen is named as the one that would switch it on."""
    (line,) = said(("ttft",), "prefix_caching=true")
    assert (
        line
        == "ttft: without a prefix cache; --set prefix_caching=true is for prefix-cache alone, which switches that on"
    )


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        (("ttft",), ()),
        (("ttft",), ("max_batch=8",)),
        (("ttft",), ("input_check=0ms", "prefix_caching=false")),
        (("guardrail",), ("output_check_tokens=16",)),
        (("prefix-cache",), ("prefix_caching=true",)),
    ],
)
def test_nothing_is_said_where_nothing_is_taken_back(
    names: tuple[str, ...], settings: tuple[str, ...]
) -> None:
    """Other settings, settings that are off, and the test that is about them."""
    assert said(names, *settings) == []
