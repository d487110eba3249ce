"""What is judged otherwise of a trace: its arrivals are counted, its load may rise, its prompts may share, and requests that
were made late are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inferometer.judge.judge import judge
from inferometer.judge.verdict import Check
from inferometer.measure.measurement import measure
from inferometer.measure.record import Replay
from inferometer.report import checks

MS = 1_000_000


def judged(run: Any, changes: dict[str, Any] | None = None, **replay: Any) -> dict[str, Check]:
    """Checks of a good run as if its arrivals were a trace's: by default all of them, at 50 a second."""
    plan, _, record = run(**(changes or {}))
    rows = int(record.measured.sum())
    whole = Replay(rows, 50.0, shares_prefixes=True, unprepared=0, unprepared_ms=0.0, best_hits=None)
    record = replace(record, replay=replace(whole, **replay))
    plan = plan.model_copy(update={"load": plan.load.model_copy(update={"arrival": "trace", "rate": None})})
    return {check.code: check for check in judge(plan, measure(plan, record), record).checks}


def said(check: Check) -> str:
    return checks.message(check)


def test_a_trace_is_held_to_its_number_of_arrivals(run: Any) -> None:
    """All of them: passed; one that nobody offered: failed, with both numbers; neither spread nor independence is judged."""
    whole = judged(run)
    rows = whole["arrival_rate"].limit or 0
    assert (whole["arrival_rate"].status, whole["arrival_rate"].value) == ("pass", rows)
    lacking = judged(run, rows=int(rows) + 1)["arrival_rate"]
    assert (lacking.status, lacking.value, lacking.limit) == ("fail", rows, rows + 1)
    assert "arrivals were sent" in said(lacking)
    assert {whole[code].status for code in ("arrival_dispersion", "arrival_lag1", "stationary")} == {"na"}
    assert "a trace's" in said(whole["arrival_dispersion"])


@pytest.mark.parametrize(("shares", "status"), [(True, "na"), (False, "fail")])
def test_cached_tokens_are_expected_only_where_the_trace_shares(run: Any, shares: bool, status: str) -> None:
    """Without hash ids prompts share nothing, and a hit is a hit."""
    _, _, record = run()
    hits = {"usage_cached": np.full(len(record), 80)}
    check = judged(run, hits, shares_prefixes=shares)["cache_hits"]
    assert check.status == status
    assert "{" not in said(check)


def test_requests_made_late_are_named_as_the_cause(run: Any) -> None:
    """Where they are one in a hundred; a few are told and explain nothing."""
    _, _, record = run()
    late = {"t_taken": record.t_intended + 30 * MS, "t_send": record.t_intended + 30 * MS,
            "t_submit": record.t_intended + 30 * MS}  # fmt: skip
    many = judged(run, late, unprepared=len(record), unprepared_ms=30.0)["lateness"]
    assert (many.status, many.facts["cause"], many.facts["unprepared"]) == (
        "fail",
        "preparation",
        len(record),
    )
    assert "the trace's requests were not generated in time" in said(many)
    assert "Not yet generated when due" in said(many)
    few = judged(run, late, unprepared=1, unprepared_ms=30.0)["lateness"]
    assert (few.facts["cause"], few.facts["unprepared"]) == ("scheduling", 1)
    assert "unprepared" not in judged(run, late)["lateness"].facts
