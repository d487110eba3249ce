"""Draft 5.1: what TTFT is made of, by the server's own metrics."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
import sample_runs
from procedures.modelled import carried, results, rows, summary
from procedures.summaries import changed, stats

from inferometer.documents.summary import Summary
from inferometer.errors import PlanError
from inferometer.measure.server import Server, Timed
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import Setup, variant, workload_key
from inferometer.procedures.step import KnownLimits
from inferometer.report.campaign.notes import worded

QUEUE = Timed(90, 4.0, 3.0, 8.0, 9.0, 12.0)
PREFILL = Timed(88, 20.0, 19.0, 30.0, 33.0, None)


def found(server: Server | None) -> list[dict[str, object]]:
    setup = Setup(Plan(), Tests.model_validate({"ttft": {"rates": [1], "requests": 90}}))

    def system(plan: Plan) -> Summary:
        return msgspec.structs.replace(summary(plan, request_s=1.0, completed=90), server=server)

    whole = results("ttft", setup, carried("ttft", setup, system))
    return (
        rows(whole, "ttft_components") if any(one.name == "ttft_components" for one in whole.tables) else []
    )


@pytest.mark.parametrize(
    ("queue", "prefill", "expected"),
    [
        (QUEUE, PREFILL, [("queue wait", 4.0, 3.0, 12.0, 90), ("prefill", 20.0, 19.0, None, 88)]),
        (QUEUE, None, [("queue wait", 4.0, 3.0, 12.0, 90)]),
        (None, PREFILL, [("prefill", 20.0, 19.0, None, 88)]),
        (None, None, []),
    ],
)
def test_the_parts_of_ttft_are_those_that_the_server_has(
    queue: Timed | None, prefill: Timed | None, expected: list[tuple[object, ...]]
) -> None:
    """Draft 5.1.4.2: each with its mean and estimated percentiles, null above the last bound; without any, no table."""
    server = replace(sample_runs.server_metrics(), queue_ms=queue, prefill_ms=prefill)
    assert [
        tuple(row[name] for name in ("component", "mean", "p50", "p99", "n")) for row in found(server)
    ] == expected


def test_the_parts_that_answers_report_have_a_table_of_their_own() -> None:
    """Draft 5.1.4.2: prefill and what is left of TTFT, exact, with a mark where samples are few; none without prefill."""
    setup = Setup(Plan(), Tests.model_validate({"ttft": {"rates": [1], "requests": 90}}))

    def system(plan: Plan) -> Summary:
        found = summary(plan, request_s=1.0, completed=90)
        return changed(
            found,
            metrics=changed(
                found.metrics, prefill_server_ms=stats(7.0, 9.0, n=90), ttft_outside_ms=stats(3.0, 4.0, n=90)
            ),
        )

    whole = results("ttft", setup, carried("ttft", setup, system))
    told = [
        (row["component"], row["mean"], row["p50"], row["n"])
        for row in rows(whole, "ttft_components_by_answer")
    ]
    assert told == [("prefill", 7.0, 7.0, 90), ("queue wait, HTTP, network, client", 3.0, 3.0, 90)]


@pytest.mark.parametrize(
    ("within", "expected"),
    [(90, {}), (60, {"requests": 30, "of": 90}), (None, {"requests": 90, "of": 90})],
)
def test_parts_that_answers_report_beyond_ttft_are_no_parts_of_it(
    within: int | None, expected: dict[str, int]
) -> None:
    """`within`: the answers whose durations leave something of TTFT, or nothing. Nobody is told of a row that is not there."""
    setup = Setup(Plan(), Tests.model_validate({"ttft": {"rates": [1], "requests": 90}}))
    rest = None if within is None else stats(3.0, 4.0, n=within)

    def system(plan: Plan) -> Summary:
        found = summary(plan, request_s=1.0, completed=90)
        parts = {"prefill_server_ms": stats(10_000.0, 10_000.0, n=90), "ttft_outside_ms": rest}
        return changed(found, metrics=changed(found.metrics, **parts))

    tables = {one.name: one for one in results("ttft", setup, carried("ttft", setup, system)).tables}
    how, *contradictions = tables["ttft_components_by_answer"].notes
    assert ("The last row" in worded(how)) == (within is not None)
    assert [(one.code, dict(one.facts)) for one in contradictions] == (
        [("components_beyond_ttft", expected)] if expected else []
    )


def test_means_of_parts_that_exceed_ttft_are_said_to() -> None:
    """By the server's metrics: a queue of ten seconds is no part of a TTFT of a tenth of one."""
    setup = Setup(Plan(), Tests.model_validate({"ttft": {"rates": [1], "requests": 90}}))
    prefill = Timed(90, 10_000.0, None, None, None, None)

    def notes(prefill_ms: Timed) -> list[str]:
        def system(plan: Plan) -> Summary:
            server = replace(sample_runs.server_metrics(), queue_ms=None, prefill_ms=prefill_ms)
            return changed(summary(plan, request_s=1.0, completed=90), server=server)

        tables = {one.name: one for one in results("ttft", setup, carried("ttft", setup, system)).tables}
        return [one.code for one in tables["ttft_components"].notes]

    assert notes(prefill) == ["components_by_server", "components_add_up"]
    assert notes(replace(prefill, mean=1.0)) == ["components_by_server"]


def test_without_metrics_ttft_has_no_parts() -> None:
    """Nothing was scraped."""
    assert found(None) == []


def test_a_level_that_no_plan_can_have_is_refused_and_counts_as_missing() -> None:
    """Law: what the system turns out to sustain may make a percentage of it impossible. The procedure refuses the plan in
    words, and its results are those of the levels that were measured."""
    plan = Plan()
    known = KnownLimits(saturation={workload_key(plan): 1e-5})
    setup = Setup(plan, Tests.model_validate({"ttft": {"percent": [1, 50]}}), known)
    with pytest.raises(PlanError, match=r"a level's load\.rate: must be at least"):
        carried("ttft", setup, lambda plan: summary(plan, request_s=1.0, completed=90))
    assert [one.code for one in results("ttft", setup, []).undecided] == ["no_level_measured"]
    with pytest.raises(PlanError, match=r"a level's workload\.seed"):
        variant(plan, workload={"seed": "none"})
