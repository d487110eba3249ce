"""Runs to report on, as fixtures; see sample_runs.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sample_runs import (
    HOSTILE,
    empty_summary,
    inconclusive_summary,
    invalid_summary,
    rich_series,
    valid_summary,
)

from inferometer.documents.summary import Summary
from inferometer.measure.series import RunSeries

SAMPLES: dict[str, Callable[[], Summary]] = {
    "valid": valid_summary,
    "invalid": invalid_summary,
    "inconclusive": inconclusive_summary,
    "empty": empty_summary,
}


@pytest.fixture
def hostile() -> str:
    return HOSTILE


@pytest.fixture(params=list(SAMPLES))
def sample(request: pytest.FixtureRequest) -> tuple[Summary, RunSeries]:
    """Each sample in turn, with its series."""
    return SAMPLES[request.param](), RunSeries() if request.param == "empty" else rich_series()


@pytest.fixture
def valid() -> Summary:
    return valid_summary()


@pytest.fixture
def invalid() -> Summary:
    return invalid_summary()


@pytest.fixture
def empty() -> Summary:
    return empty_summary()


@pytest.fixture
def series() -> RunSeries:
    return rich_series()
