"""Spans of a compound system: what an OTLP file says of a task, and that a damaged one is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.journal.tasks import STEP_KINDS, TaskSteps
from inferometer.telemetry.task_spans import Span, join, steps_of

TRACE = "5b8efff798038103d269b633813fc60c"
OTHER = "ffffffffffffffffffffffffffffffff"


def span(
    ident: str, operation: str | None, start: int, end: int, parent: str = "", **more: Any
) -> dict[str, Any]:
    """A span as OTLP's JSON has it: ids in hexadecimal, 64-bit numbers as text."""
    attributes = (
        [] if operation is None else [{"key": "gen_ai.operation.name", "value": {"stringValue": operation}}]
    )
    for name in ("input_tokens", "output_tokens"):
        if name in more:
            attributes.append({"key": f"gen_ai.usage.{name}", "value": {"intValue": str(more.pop(name))}})
    return {
        "traceId": TRACE, "spanId": ident, "parentSpanId": parent, "name": "n", "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end), "attributes": attributes, **more,
    }  # fmt: skip


def document(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def joined(path: Path, *documents: Any) -> TaskSteps | None:
    path.write_text("\n".join(json.dumps(one) for one in documents) + "\n")
    return join(path, [TRACE]).traces.get(TRACE)


WHOLE = [
    span("01", "invoke_agent", 0, 1000),
    span("02", "chat", 0, 100, "01", input_tokens=10, output_tokens=2),
    span("03", "retrieval", 100, 160, "01"),
    span("04", "execute_tool", 100, 300, "01"),
    span("05", "execute_tool", 200, 350, "01"),
    span("06", "guardrail", 350, 360, "01"),
    span("07", "chat", 360, 900, "01", input_tokens=50, output_tokens=30),
    span("08", None, 0, 5, "02"),
]


@given(st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["model", "tool", None])), max_size=12))
def test_the_innermost_steps_of_a_kind_count_whatever_hangs_below_what(
    spans: list[tuple[int, str | None]],
) -> None:
    """Law: a span counts that is of the kind and has none of it below, those of a circle below each
    other; by a search of its own."""
    made = [Span(str(at), str(parent), kind, 0, 1) for at, (parent, kind) in enumerate(spans)]
    above: list[set[int]] = []
    for at in range(len(made)):
        found: set[int] = set()
        place = at
        while spans[place][0] != place and (place := spans[place][0]) < len(made) and place not in found:
            found.add(place)
        above.append(found)
    for kind in ("model", "tool"):
        of_kind = [at for at, (_, one) in enumerate(spans) if one == kind]
        inner = [at for at in of_kind if not any(at in above[other] for other in of_kind)]
        assert steps_of(made).steps[kind] == len(inner)


def test_a_deep_trace_is_gone_through_once() -> None:
    """Law: the work grows with the spans, not with spans times depth, which the writer of a trace could make hours of."""
    depth = 200_000
    chain = [Span(str(at), str(at - 1), None, 0, 1) for at in range(depth)]
    leaves = [Span(f"l{at}", str(depth - 1), "model", 0, 1) for at in range(depth)]
    assert steps_of([*chain, *leaves]).steps["model"] == depth


def test_steps_are_counted_by_kind_and_time_side_by_side_counts_once(tmp_path: Path) -> None:
    found = joined(tmp_path / "s.jsonl", document(*WHOLE, span("09", "chat", 0, 1, traceId=OTHER)))
    assert found == TaskSteps(
        8,
        {"model": 2, "tool": 2, "retrieval": 1, "rerank": 0, "guardrail": 1},
        {"model": 640, "tool": 250, "retrieval": 60, "rerank": 0, "guardrail": 10},
        60,
        32,
        end_ns={"model": 900, "tool": 350, "retrieval": 160, "rerank": 0, "guardrail": 360},
    )


def test_a_file_is_one_object_or_one_a_line_in_any_order(tmp_path: Path) -> None:
    """Law: how a writer cuts its output makes no difference, nor does a span that is written twice."""
    whole = joined(tmp_path / "a", document(*WHOLE))
    assert joined(tmp_path / "b", *(document(one) for one in reversed(WHOLE))) == whole
    assert joined(tmp_path / "c", document(*WHOLE), document(WHOLE[1])) == whole
    path = tmp_path / "pretty.json"
    path.write_text(json.dumps(document(*WHOLE), indent=1))
    assert join(path, [TRACE]).traces[TRACE] == whole


def test_a_step_within_another_of_its_kind_is_the_same_step(tmp_path: Path) -> None:
    wrapped = [
        span("01", "chat", 0, 100, input_tokens=10, output_tokens=2),
        span("02", None, 10, 90, "01"),
        span("03", "chat", 20, 80, "02", input_tokens=10, output_tokens=2),
    ]
    found = joined(tmp_path / "s", document(*wrapped))
    assert found is not None
    assert (found.steps["model"], found.ns["model"], found.input_tokens) == (1, 100, 10)


def test_spans_in_a_circle_end(tmp_path: Path) -> None:
    found = joined(tmp_path / "s", document(span("01", "chat", 0, 1, "02"), span("02", "chat", 0, 1, "01")))
    assert found is not None
    assert found.spans == 2


def test_tokens_are_known_where_every_model_step_reports_them(tmp_path: Path) -> None:
    found = joined(
        tmp_path / "s", document(span("01", "chat", 0, 1, input_tokens=5), span("02", "chat", 2, 3))
    )
    assert found is not None
    assert (found.input_tokens, found.output_tokens) == (None, None)


def test_what_the_system_tried_again_is_counted(tmp_path: Path) -> None:
    """Law: a step counts as failed by its status, a wrapper of it does not count again; a request is sent once more where its
    ordinal number of resending is above 0."""
    error = {"code": 2, "message": "overloaded"}

    def resend(ident: str, count: int) -> dict[str, Any]:
        one = span(ident, None, 0, 5, "02")
        one["attributes"] = [{"key": "http.request.resend_count", "value": {"intValue": str(count)}}]
        return one

    found = joined(
        tmp_path / "s",
        document(
            span("01", "invoke_agent", 0, 100, status=error),
            span("02", "chat", 0, 50, "01", status=error),
            span("03", "chat", 10, 40, "02", status={"code": "STATUS_CODE_ERROR"}),
            span("04", "execute_tool", 50, 60, "01", status={"code": 1}),
            span("05", "chat", 60, 90, "01", status={}),
            *(resend(f"1{count}", count) for count in (0, 1, 2)),
        ),
    )
    assert found is not None
    assert (found.steps["model"], found.failed_steps, found.resends) == (2, 1, 2)


def test_openinference_names_its_kinds_too(tmp_path: Path) -> None:
    kinds = {
        "LLM": "model",
        "RETRIEVER": "retrieval",
        "RERANKER": "rerank",
        "GUARDRAIL": "guardrail",
        "TOOL": "tool",
    }
    spans = []
    for at, name in enumerate(kinds):
        one = span(f"0{at}", None, at, at + 1)
        one["attributes"] = [{"key": "openinference.span.kind", "value": {"stringValue": name}}]
        spans.append(one)
    found = joined(tmp_path / "s", document(*spans))
    assert found is not None
    assert found.steps == dict.fromkeys(STEP_KINDS, 1)


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        ({"resourceMetrics": []}, "has no resourceSpans"),
        ([1], "is no JSON object"),
        ({"resourceSpans": 1}, "resourceSpans is no list"),
        ({"resourceSpans": [1]}, "resourceSpans[0]"),
        (document(1), "spans[0]"),
        (document(span("01", "chat", 5, 4)), "endTimeUnixNano"),
        (document(span("", "chat", 0, 1)), "spanId"),
        (document(span("01", "chat", 0, 1, startTimeUnixNano="x")), "startTimeUnixNano"),
        (document(span("01", "chat", 0, 1, startTimeUnixNano="9" * 5000)), "startTimeUnixNano"),
        (document(span("01", "chat", 0, 1, traceId=None)), "traceId"),
        (document(span("01", "chat", 0, 1, attributes=3)), "attributes"),
    ],
)
def test_what_is_damaged_is_named_with_its_line(tmp_path: Path, damaged: object, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        joined(tmp_path / "s.jsonl", document(WHOLE[0]), damaged)
    assert words in str(caught.value).replace(".resourceSpans:", " resourceSpans")
    assert "s.jsonl:2" in str(caught.value)


def test_a_last_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(document(WHOLE[1])) + "\n" + json.dumps(document(WHOLE[2]))[:40])
    assert join(path, [TRACE]).traces[TRACE].spans == 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12))
def test_time_of_a_kind_is_what_its_steps_cover(pairs: list[tuple[int, int]]) -> None:
    """Law: as counting each nanosecond once."""
    spans = [Span(str(at), "", "tool", a, a + length) for at, (a, length) in enumerate(pairs)]
    assert steps_of(spans).ns["tool"] == len({ns for a, length in pairs for ns in range(a, a + length)})


def test_spans_that_come_from_nowhere_are_told(tmp_path: Path) -> None:
    """Law: of a whole trace all spans come from the one that the request named; a stranger's, or one whose parent is missing,
    comes from another."""
    path = tmp_path / "spans.jsonl"
    caller = "00f067aa0ba902b7"
    whole = [WHOLE[0] | {"parentSpanId": caller.upper()}, *WHOLE[1:]]
    for spans, callers in (
        (whole, {caller}),
        ([*whole, span("99", "chat", 0, 9, "eeeeeeeeeeeeeeee")], {caller, "eeeeeeeeeeeeeeee"}),
        (whole[1:], {"01"}),
    ):
        path.write_text(json.dumps(document(*spans)))
        assert join(path, [TRACE]).callers == {TRACE: callers}


@pytest.mark.parametrize(("stated", "counted"), [(100_000_000, 100_000_000), (100_000_001, None)])
def test_tokens_that_no_call_has_are_not_counted(stated: int, counted: int | None, tmp_path: Path) -> None:
    """Law: a call that states more than MOST_TOKENS states none."""
    found = joined(tmp_path / "s.jsonl", document(span("01", "chat", 0, 9, output_tokens=stated)))
    assert found is not None
    assert found.output_tokens == counted
