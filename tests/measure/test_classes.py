"""What each class met: a partition of all that was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from inferometer.errors import RecordError
from inferometer.journal.schema import EventClass as E
from inferometer.measure.breakdown import Waits, by_class
from inferometer.measure.measurement import measure, samples_of
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

NAMES = ("gold", "free", "never")


def classed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every third request has no class; the others are gold or free in turn."""
    return [
        row | {"request_class": None if at % 3 == 2 else at % 3, "output_tokens_asked": 7}
        for at, row in enumerate(rows)
    ]


def test_classes_are_parts_of_the_whole(
    build: Callable[..., Record], plan_of: Callable[..., Plan], random_rows: Callable[..., Any]
) -> None:
    """Law: a class measures what a record of its requests alone measures; with those of no class, counts add up to all."""
    rows, plan = classed(random_rows(3, 90)), plan_of()
    record = build(*rows, classes=NAMES)
    found = by_class(record, samples_of(plan, record))
    assert [one.name for one in found] == list(NAMES)
    for number, one in enumerate(found):
        alone = measure(plan, build(*[row for row in rows if row["request_class"] == number], classes=NAMES))
        counts = (one.sent, one.completed, one.failed, one.cancelled)
        assert counts == tuple(
            getattr(alone.requests, name) for name in ("sent", "completed", "failed", "cancelled")
        )
        for name in ("ttft_ms", "tpot_ms", "e2e_ms", "input_tokens", "output_tokens"):
            assert getattr(one, name) == getattr(alone.metrics, name)
        assert one.prompt == type(one.prompt)(
            alone.tokens.prompt.asked_mean, alone.tokens.prompt.local_mean, alone.tokens.prompt.server_mean
        )
    whole = measure(plan, record)
    others = sum(row["request_class"] is None and row["phase"] == 1 for row in rows)
    assert sum(one.sent for one in found) + others == whole.requests.sent
    assert found[0].output.asked_mean == 7
    assert asdict(found[2].prompt) == {"asked_mean": None, "local_mean": None, "server_mean": None}


def test_latency_by_output_token_by_hand(build: Callable[..., Record], plan_of: Callable[..., Plan]) -> None:
    """30 ms for 3 tokens and 10 ms for 5: 10 and 2 ms a token. An answer of no tokens has none."""
    gold: dict[str, Any] = {"request_class": 0}
    rows = [
        gold | {"events": [(5.0, E.CONTENT), (ms, E.CONTENT)], "usage_output": tokens}
        for ms, tokens in ((30.0, 3), (10.0, 5))
    ]
    rows.append(gold | {"usage_output": 0, "t_end": 9.0})
    record = build(*rows, classes=NAMES)
    found = by_class(record, samples_of(plan_of(), record))[0].e2e_per_token_ms
    assert found is not None
    assert [found.n, found.min, found.max] == pytest.approx([2, 2.0, 10.0])


def test_prefix_tokens_from_a_cache_by_hand(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """Shared are 40, 40 and 0 tokens; from the cache came 48 (8 of the template), 16 and 16: 56 of 80."""
    cells = ((48, 40), (16, 40), (16, 0))
    rows = [
        {"usage_input": 100, "usage_cached": cached, "input_tokens_shared": shared}
        for cached, shared in cells
    ]
    found = measure(plan_of(), build(*rows)).throughput
    assert found.cached_prefix_share == pytest.approx(56 / 80)
    silent = measure(plan_of(), build(*[row | {"usage_cached": None} for row in rows])).throughput
    assert silent.cached_prefix_share is None


def test_starvation_by_hand(build: Callable[..., Record], plan_of: Callable[..., Plan]) -> None:
    """TTFTs of 10, 10, 10, 50 and 51 ms: only the last is over five medians. Of two that never got a first token the one that
    waited 60 ms starved; the one that never reached the server, the warm-up and the other class are not there."""
    gold: dict[str, Any] = {"request_class": 0}
    rows = [
        gold | {"events": [(ms, E.CONTENT), (ms + 5, E.CONTENT)]} for ms in (10.0, 10.0, 10.0, 50.0, 51.0)
    ]
    rows += [gold | {"outcome": "timeout", "t_end": 60.0}, gold | {"outcome": "http_5xx", "t_end": 2.0}]
    rows += [gold | {"outcome": "connect_refused", "t_submit": None, "t_send": None, "t_end": 900.0}]
    rows += [gold | {"phase": 0, "events": [(900.0, E.CONTENT)]}]
    rows += [{"request_class": 1, "outcome": "timeout", "t_end": 900.0}]
    record = build(*rows, classes=NAMES)
    found = by_class(record, samples_of(plan_of(), record))
    assert found[0].waits == Waits(10.0, 2, 7, 2 / 7)
    assert found[1].waits == Waits(None, None, 1, None)
    assert found[2].waits == Waits(None, None, 0, None)
    assert found[0].ttft_quantiles is not None
    assert found[0].ttft_quantiles.v[0] == 10
    assert found[0].ttft_quantiles.v[-1] == 51
    assert found[1].ttft_quantiles is None


def test_nobody_starves_where_all_wait_alike(
    build: Callable[..., Record], plan_of: Callable[..., Plan], random_rows: Callable[..., Any]
) -> None:
    """Law: time ten times as slow starves the same requests, for only ratios count."""
    rows = classed(random_rows(8, 60))
    slow = [
        row
        | {name: row[name] * 10 for name in ("t_intended", "t_submit")}
        | {"events": [(ms * 10, kind) for ms, kind in row["events"]]}
        for row in rows
    ]
    both = [build(*some, classes=NAMES) for some in (rows, slow)]
    first, second = (by_class(record, samples_of(plan_of(), record)) for record in both)
    assert [one.waits.starved for one in first] == [one.waits.starved for one in second]
    alike = build(*[{"request_class": 0, "events": [(9.0, E.CONTENT)]}] * 9, classes=NAMES)
    assert by_class(alike, samples_of(plan_of(), alike))[0].waits == Waits(9.0, 0, 9, 0.0)


def test_a_record_without_classes_has_none(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """Every other workload: nothing to tell by class."""
    record = build({"t_intended": 0.0})
    assert by_class(record, samples_of(plan_of(), record)) == ()
    assert np.array_equal(record.request_class.codes, [-1])


def test_a_class_without_a_name_is_damage(build: Callable[..., Record]) -> None:
    """run.json and the record have to agree."""
    with pytest.raises(RecordError, match="no name"):
        build({"request_class": 1}, classes=("gold",))
