"""Several words behind one flag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cli.command import LISTS, repeated

METRICS, FORMATS, EXPORTS = LISTS


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ([METRICS, "h:1", "http://h/m", "plan.yaml"], [METRICS, "h:1", METRICS, "http://h/m", "plan.yaml"]),
        ([FORMATS, "json", "csv", "--quiet"], [FORMATS, "json", FORMATS, "csv", "--quiet"]),
        ([FORMATS, "json,csv", "parquet"], [FORMATS, "json,csv", FORMATS, "parquet"]),
        ([EXPORTS, "json", "csv", "--out", "json"], [EXPORTS, "json", EXPORTS, "csv", "--out", "json"]),
        ([METRICS, "h:1", "--rate", "3", "h:2"], [METRICS, "h:1", "--rate", "3", "h:2"]),
        ([METRICS, "h", "runs/a:b.yaml"], [METRICS, "h", "runs/a:b.yaml"]),
        ([METRICS, "xml", "json"], [METRICS, "xml", "json"]),
        (["plan.yaml", "h:1"], ["plan.yaml", "h:1"]),
    ],
)
def test_further_words_of_a_list_get_their_flag(words: list[str], made: list[str]) -> None:
    """As far as they look like what the list holds; a plan's path does not, and another flag ends it."""
    assert repeated(words) == made


_words = st.sampled_from([*LISTS, "--rate", "h:1", "json", "plan.yaml", "3", "-h", "--server-metrics=h:1"])


@given(st.lists(_words))
def test_no_word_is_lost_and_what_is_written_out_stays(words: list[str]) -> None:
    """Only flags are added, and a second time none."""
    made = repeated(words)
    assert [word for word in made if word not in LISTS] == [word for word in words if word not in LISTS]
    assert repeated(made) == made
