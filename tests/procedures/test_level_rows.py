"""The rows of a search's table of levels: what they show agrees with what was decided."""

from __future__ import annotations

import pytest
from procedures.modelled import carried, results, rows, summary
from procedures.summaries import changed, steady

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import Setup

TOKENS, MOST = 50.0, 10.0


@pytest.mark.parametrize(
    ("growing", "below", "above"), [(True, "rising, by chance", "rising"), (False, "stable", "stable")]
)
def test_a_queue_that_rises_beside_a_level_that_was_sustained_rises_by_chance(
    growing: bool, below: str, above: str
) -> None:
    """Thirds may rise by chance where load is kept up with, and refuse a level only where completions fall behind."""

    def answer(plan: Plan) -> Summary:
        slots, offered = plan.load.concurrency, plan.load.rate or 0.0
        done = MOST * min(1.0, slots / 8) if slots is not None else min(offered, MOST)
        ratio = 1.0 if slots is not None else done / offered
        told = steady(
            TOKENS * done, completions=10_000, ratio=ratio, ratio_ci=(ratio, ratio), growing=growing, rise=3.0
        )
        return changed(summary(plan, request_s=done, tokens=TOKENS), steady=told)

    setup = Setup(Plan(), Tests())
    found = results("throughput", setup, carried("throughput", setup, answer))
    tried = [row for row in rows(found, "levels") if row["rate"] != ""]
    seen = {(str(row["sustained"])[:3].strip(), row["queue"]) for row in tried}
    assert seen == {("yes", below), ("no", above)}
