"""Service level objectives: spelling, canonical form, comparison."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.plan.slo import STATS, Slo, latencies, rates

latency_texts = st.builds(
    lambda metric, stat, op, limit, unit: f"{metric}_{stat}{op}{limit!r}{unit}",
    st.sampled_from(latencies()),
    st.sampled_from(STATS),
    st.sampled_from(["<", "<="]),
    st.floats(1e-3, 1e6),
    st.sampled_from(["us", "ms", "s"]),
)
rate_texts = st.builds(
    lambda metric, op, limit: f"{metric}{op}{limit!r}",
    st.sampled_from([*rates()]),
    st.sampled_from([">", ">="]),
    st.floats(1e-3, 0.999),
)


@given(latency_texts | rate_texts)
def test_the_canonical_string_reads_back_as_the_same_objective(text: str) -> None:
    """parse(str(x)) == x: whatever the unit it was written in, nothing of the limit is lost."""
    slo = Slo.parse(text)
    assert Slo.parse(str(slo)) == slo
    assert Slo.model_validate(str(slo)) == slo
    assert slo.model_dump_json() == json.dumps(str(slo))


@pytest.mark.parametrize(
    ("text", "metric", "stat", "op", "limit", "unit", "canonical"),
    [
        ("ttft_p99<500ms", "ttft", "p99", "<", 500, "ms", "ttft_p99<500ms"),
        ("tpot_p50 <= 40 ms", "tpot", "p50", "<=", 40, "ms", "tpot_p50<=40ms"),
        ("e2e_mean<3s", "e2e", "mean", "<", 3000, "ms", "e2e_mean<3000ms"),
        ("itl_p99.9<0.5s", "itl", "p99_9", "<", 500, "ms", "itl_p99_9<500ms"),
        ("ttft_any_p99<1.1s", "ttft_any", "p99", "<", 1100, "ms", "ttft_any_p99<1100ms"),
        (
            "ttft_from_intended_max<700us",
            "ttft_from_intended",
            "max",
            "<",
            0.7,
            "ms",
            "ttft_from_intended_max<0.7ms",
        ),
        ("success_rate>0.99", "success_rate", None, ">", 0.99, "", "success_rate>0.99"),
        ("success_rate>=99.5%", "success_rate", None, ">=", 0.995, "", "success_rate>=0.995"),
        ("output_tok_s>1000", "output_tok_s", None, ">", 1000, "tok/s", "output_tok_s>1000"),
        ("request_s>=20/s", "request_s", None, ">=", 20, "/s", "request_s>=20"),
    ],
)
def test_objectives_are_read_into_metric_statistic_comparison_and_limit(
    text: str, metric: str, stat: str | None, op: str, limit: float, unit: str, canonical: str
) -> None:
    """Latencies are kept in ms, exactly; percentages are shares; the canonical string has no spaces."""
    slo = Slo.parse(text)
    assert (slo.metric, slo.stat, slo.op, slo.limit, slo.unit) == (metric, stat, op, limit, unit)
    assert str(slo) == canonical


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ttft", "ttft_p99<500ms"),
        ("ttft<500ms", "statistic"),
        ("ttftt_p99<500ms", "ttft_p99"),
        ("ttft_p98<500ms", "did you mean"),
        ("ttft_p99<500", "unit"),
        ("ttft_p99<500min", "'min'"),
        ("ttft_p99>500ms", "upper limit"),
        ("ttft_p99=500ms", "upper limit"),
        ("ttft_p99<0ms", "above 0"),
        ("ttft_p99<1.2.3ms", "not a number"),
        ("success_rate<0.9", "lower limit"),
        ("success_rate>1", "at most 1"),
        ("success_rate>99", "at most 1"),
        ("output_tok_s>5ms", "plain number"),
        ("request_s>1e999", "above 0"),
        ("", "ttft_p99<500ms"),
    ],
)
def test_a_refusal_names_what_is_wrong(text: str, names: str) -> None:
    """A slip (no unit, no statistic, the wrong way round) is refused with the words that mend it."""
    with pytest.raises(ValueError, match=r"\w") as caught:
        Slo.parse(text)
    assert names in str(caught.value)


@given(st.text(alphabet="ttft_p99<>=.5msxe%/ ", max_size=20))
def test_nothing_but_a_value_error_is_raised(text: str) -> None:
    """Any text is an objective or a ValueError."""
    try:
        Slo.parse(text)
    except ValueError:
        return


def test_an_objective_is_met_on_the_right_side_only() -> None:
    """The comparison is the one written, and NaN (no sample) meets nothing."""
    assert Slo.parse("ttft_p99<=500ms").met_by(500)
    assert not Slo.parse("ttft_p99<500ms").met_by(500)
    assert Slo.parse("success_rate>=1").met_by(1)
    assert not Slo.parse("output_tok_s>10").met_by(10)
    assert not Slo.parse("ttft_p99<500ms").met_by(math.nan)


@pytest.mark.parametrize("value", [{"a": 1}, {}, {"metric": "ttft"}, {"ttft_p99": "1s"}])
def test_an_objective_that_is_no_text_is_a_problem(value: dict[str, object]) -> None:
    """A mapping in a plan file has no members that could be supplied: the whole is refused, with an example."""
    with pytest.raises(ValueError, match="an objective is text such as ttft_p99<500ms"):
        Slo.model_validate(value)
