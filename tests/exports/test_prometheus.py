"""The textfile format, read by `prometheus_client`, and the families that it is made of."""

from __future__ import annotations

import re

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from sample_runs import HOSTILE, empty_summary, invalid_summary, valid_summary

from inferometer.documents.summary import Summary
from inferometer.exports.exported_run import ExportedRun
from inferometer.exports.formats import Wanted
from inferometer.exports.prometheus import families, render, text
from inferometer.exports.readings import series_name
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS


def parsed(summary: Summary) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample by name and labels, as the reference parser reads them."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text(families(summary)))
        for sample in family.samples
    }


def test_the_parser_reads_back_what_was_meant(summary: Summary) -> None:
    """Names, labels and values, each series once, and in as many families as were written."""
    found = families(summary)
    meant = {
        (one.name, frozenset(one.labels.items())): float(one.value)
        for family in found
        for one in family.samples
    }
    assert parsed(summary) == meant
    assert len(meant) == sum(len(family.samples) for family in found)
    kinds = {one.name: one.type for one in text_string_to_metric_families(text(found))}
    assert kinds == {family.name: family.kind for family in found}


def test_what_a_summary_names_twice_is_one_series() -> None:
    """An objective, a reason: of two series with the same labels readers take neither."""
    summary = invalid_summary()
    doubled = replace(
        summary,
        slos=(*valid_summary().slos, *valid_summary().slos),
        verdict=replace(summary.verdict, reasons=(*summary.verdict.reasons, *summary.verdict.reasons)),
    )
    assert doubled.slos
    samples = [one for family in families(doubled) for one in family.samples]
    series = [(one.name, tuple(sorted(one.labels.items()))) for one in samples]
    assert len(set(series)) == len(series)


def test_every_series_bears_its_verdict(summary: Summary) -> None:
    """A query for any figure can leave out what is not VALID; the reasons are series of their own."""
    samples = [one for family in families(summary) for one in family.samples]
    assert {one.labels["verdict"] for one in samples} == {summary.verdict.status}
    reasons = {one.labels["code"] for one in samples if one.name == "inferometer_run_reason"}
    assert reasons == {one.code for one in summary.verdict.reasons}


def test_what_is_undefined_has_no_series() -> None:
    """A run in which nothing was answered has its marks and counts, and no latency of 0."""
    names = {name for name, _ in parsed(empty_summary())}
    assert "inferometer_run_info" in names
    assert not {series_name(key) for key in (*METRICS, *RATES)} & names


def test_quantiles_sums_and_counts_are_those_of_the_summary() -> None:
    """In seconds; quantile 0 and 1 are the least and the largest value."""
    summary = valid_summary()
    ttft, found = summary.metrics.ttft_ms, parsed(summary)
    assert ttft is not None
    by_quantile = {
        dict(labels).get("quantile"): value
        for (name, labels), value in found.items()
        if name.startswith("inferometer_ttft_seconds") and not name.endswith("_ci95")
    }
    assert by_quantile["0.99"] == ttft.p99 / 1000
    assert (by_quantile["0"], by_quantile["1"]) == (ttft.min / 1000, ttft.max / 1000)
    values = {name: value for (name, _), value in found.items()}
    assert values["inferometer_ttft_seconds_count"] == ttft.n
    assert values["inferometer_output_tokens_per_second"] == summary.throughput.output_tok_s


def test_objectives_that_are_undecided_are_absent() -> None:
    """Met is 1, missed is 0, and undecided is neither."""
    found = {
        dict(labels)["objective"]: value
        for (name, labels), value in parsed(valid_summary()).items()
        if name == "inferometer_objective_met"
    }
    assert found == {"ttft_p99<500ms": 1.0, "e2e_p95<2s": 0.0}


def test_the_text_is_one_that_the_textfile_collector_takes(run: ExportedRun) -> None:
    """It ends in a newline and has no time stamps, which the collector refuses."""
    written = render(run, Wanted()).decode()
    assert written.endswith("\n")
    lines = [line for line in written.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9_]+\{.*\} \S+", line) for line in lines)


def test_a_vile_name_stays_a_label() -> None:
    """Quotes and backslashes are escaped, what is unprintable is dropped."""
    (labels,) = {labels for (name, labels) in parsed(invalid_summary()) if name == "inferometer_run_info"}
    model = dict(labels)["model"]
    assert model == HOSTILE.replace("\x1b", "").replace("\u202e", "")
    assert "\x1b" not in text(families(invalid_summary()))


def test_each_metric_and_rate_has_a_name_with_its_unit_last() -> None:
    """Names are Prometheus's, end in the base unit, and differ from each other."""
    names = [series_name(key) for key in (*METRICS, *RATES, SUCCESS)]
    assert len(set(names)) == len(names)
    endings = r"_(seconds|tokens|tokens_per_second|requests_per_second|ratio)"
    assert all(re.fullmatch(rf"inferometer_[a-z0-9_]*?{endings[1:]}", name) for name in names)
