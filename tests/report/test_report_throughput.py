"""Rates of a run, and of each of its accelerators."""

from __future__ import annotations

from msgspec.structs import replace

from inferometer.documents.summary import Summary
from inferometer.report.figures import figure
from inferometer.report.run.throughput import rate_rows


def test_output_tokens_are_given_for_each_accelerator_where_their_number_is_declared(valid: Summary) -> None:
    """An eighth of the rate, of its interval and of the whole run's, in the same unit."""
    eight = rate_rows(replace(valid, sut=replace(valid.sut, accelerator_count=8)))
    each = next(row for row in eight if row.title.endswith("per accelerator"))
    rates = valid.throughput
    assert rates.output_tok_s is not None
    assert rates.ci95.output_tok_s is not None
    assert each.cells[0] == figure(rates.output_tok_s / 8)
    assert all(figure(end / 8) in each.cells[1] for end in rates.ci95.output_tok_s)
    assert len({row.unit for row in eight if row.title.startswith(each.title.partition(",")[0])}) == 1
    for count in (None, 0):
        rows = rate_rows(replace(valid, sut=replace(valid.sut, accelerator_count=count)))
        assert len(rows) == len(eight) - 1
