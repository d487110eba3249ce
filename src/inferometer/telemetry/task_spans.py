"""What a compound system recorded of its own steps: spans of OpenTelemetry in a file of OTLP JSON, joined by trace id.

The file is one JSON object, or one a line (OTLP's file exporter and the collector write both); spans stand in
`resourceSpans[].scopeSpans[].spans[]`. What a span does is told by `gen_ai.operation.name` of the GenAI semantic conventions
(status: development), or by OpenInference's `openinference.span.kind`:

| step        | `gen_ai.operation.name`                     | `openinference.span.kind` |
| ----------- | ------------------------------------------- | ------------------------- |
| `model`     | chat, text_completion, generate_content     | LLM                       |
| `tool`      | execute_tool                                | TOOL                      |
| `retrieval` | retrieval, embeddings                       | RETRIEVER, EMBEDDING      |
| `rerank`    | rerank                                      | RERANKER                  |
| `guardrail` | guardrail, apply_guardrail                  | GUARDRAIL                 |

What a system tries again shows as steps whose status is an error, and as requests with `http.request.resend_count`.

The conventions have no name for reranking and guardrails yet; these are names in use. A step within another of its kind (a
model call in a wrapper of it) is the same step: the innermost counts. Time of a kind is the time in which one at least ran.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferometer import foreign_json
from inferometer.errors import PlanError, Problem
from inferometer.journal.tasks import KINDS, STEP_KINDS, TaskSteps
from inferometer.whole_file import check_regular

LONGEST_LINE = 64 << 20
"""Bytes of one object."""
MOST_SPANS = 2_000_000
"""Of the traces looked for."""
MOST_BYTES = 4 << 30
MOST_TOKENS = 100_000_000
"""Of one call. What states more is not counted: no model takes a tenth of them."""
_OPERATION, _OPENINFERENCE = "gen_ai.operation.name", "openinference.span.kind"
_RESENT = "http.request.resend_count"
_ERRORS = (2, "STATUS_CODE_ERROR")
_INPUT = ("gen_ai.usage.input_tokens", "llm.token_count.prompt")
_OUTPUT = ("gen_ai.usage.output_tokens", "llm.token_count.completion")
ATTRIBUTES = frozenset({_OPERATION, _OPENINFERENCE, _RESENT, *_INPUT, *_OUTPUT})
"""Those that are read."""


@dataclass(frozen=True, slots=True)
class Span:
    """One span of a trace that was looked for. `kind`: None: another one than the table names. `failed`: its status is an
    error; `resent`: it is a request that was sent once more."""

    ident: str
    parent: str
    kind: str | None
    start_ns: int
    end_ns: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    failed: bool = False
    resent: bool = False


@dataclass(frozen=True, slots=True)
class Joined:
    """By trace id, what was found of it, and which spans its own come from that are not there themselves: of a trace that is
    whole the one that the request named. And how many spans of other traces the file holds."""

    traces: Mapping[str, TaskSteps]
    callers: Mapping[str, frozenset[str]]
    other_spans: int
    spans: int


def join(path: Path, traces: Collection[str]) -> Joined:
    """Read a file through and keep what belongs to these traces. Raises PlanError, which names file, line and field."""
    wanted, found = frozenset(traces), defaultdict[str, list[Span]](list)
    kept = other = 0
    try:
        check_regular(path)
        for line, document in _documents(path):
            for where, span in _spans(document, f"{path.name}:{line}"):
                trace = _text(span, "traceId", where).lower()
                if trace not in wanted:
                    other += 1
                    continue
                kept += 1
                if kept > MOST_SPANS:
                    raise _wrong(path.name, f"holds more than {MOST_SPANS:,} spans of this run")
                found[trace].append(_span(span, where))
    except OSError as cause:
        raise _wrong(path.name, f"cannot be read: {(cause.strerror or 'unknown error').lower()}") from cause
    callers = {trace: callers_of(spans) for trace, spans in found.items()}
    return Joined({trace: steps_of(spans) for trace, spans in found.items()}, callers, other, kept + other)


def callers_of(spans: Sequence[Span]) -> frozenset[str]:
    """The parents that are not among the spans of one trace."""
    there = {one.ident for one in spans}
    return frozenset(one.parent for one in spans if one.parent not in there)


def steps_of(spans: Sequence[Span]) -> TaskSteps:
    """What the spans of one trace come to. A span that is there twice counts once."""
    once = {one.ident: one for one in spans}
    steps, ns, end_ns = (dict.fromkeys(STEP_KINDS, 0) for _ in range(3))
    began = min((one.start_ns for one in once.values()), default=0)
    failed = 0
    tokens: dict[str, list[int | None]] = {"input_tokens": [], "output_tokens": []}
    for kind in STEP_KINDS:
        of_kind = [one for one in once.values() if one.kind == kind]
        outer = _ancestors(of_kind, once, kind)
        inner = [one for one in of_kind if one.ident not in outer]
        steps[kind], ns[kind] = len(inner), _covered([(one.start_ns, one.end_ns) for one in of_kind])
        end_ns[kind] = max((one.end_ns - began for one in of_kind), default=0)
        failed += sum(one.failed for one in inner)
        if kind == "model":
            for name, values in tokens.items():
                values.extend(getattr(one, name) for one in inner)
    sums = {
        name: sum(value for value in values if value is not None) if values and None not in values else None
        for name, values in tokens.items()
    }
    resent = sum(one.resent for one in once.values())
    return TaskSteps(
        len(once),
        steps,
        ns,
        sums["input_tokens"],
        sums["output_tokens"],
        failed_steps=failed,
        resends=resent,
        end_ns=end_ns,
    )


def _ancestors(spans: Sequence[Span], every: Mapping[str, Span], kind: str) -> set[str]:
    """Spans of a kind that hold another one of it. Those of a circle hold each other."""
    outer: set[str] = set()
    climbed: set[str] = set()
    """Those whose own ancestors are in `outer` already: each is gone through once, however many are below it."""
    for one in spans:
        parent = every.get(one.parent) if one.parent != one.ident else None
        while parent is not None and parent.ident not in climbed:  # a file may make a circle of them
            if parent.kind == kind:
                outer.add(parent.ident)
            climbed.add(parent.ident)
            parent = every.get(parent.parent)
    return outer


def _covered(intervals: Sequence[tuple[int, int]]) -> int:
    """The length of the union of intervals."""
    total, reached = 0, -1
    for start, end in sorted(intervals):
        if end > reached:
            total += end - max(start, reached)
            reached = end
    return total


def _documents(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, each with its line. A first line that is no whole object begins one that takes the whole file."""
    with path.open("rb") as file:
        if path.stat().st_size > MOST_BYTES:
            raise _wrong(path.name, f"is larger than {MOST_BYTES >> 30} GiB")
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise _wrong(f"{path.name}:{number}", f"is longer than {LONGEST_LINE >> 20} MiB")
            if not line.strip():
                continue
            try:
                value = foreign_json.loads(line)
            except foreign_json.NotJSON as cause:
                rest = file.read(LONGEST_LINE - len(line) + 1) if number == 1 else b""
                if not rest or len(line) + len(rest) > LONGEST_LINE:
                    if number > 1 and not line.endswith(b"\n"):
                        return  # the last line, which is being written
                    raise _wrong(f"{path.name}:{number}", str(cause)) from None
                value = _whole(path.name, line + rest)
            if not isinstance(value, dict):
                raise _wrong(f"{path.name}:{number}", "is no JSON object with resourceSpans")
            yield number, value


def _whole(name: str, text: bytes) -> Any:
    try:
        return foreign_json.loads(text)
    except foreign_json.NotJSON as cause:
        raise _wrong(name, str(cause)) from None


def _spans(document: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "resourceSpans" not in document:
        raise _wrong(where, "has no resourceSpans: OTLP's JSON of traces is expected")
    for at, resource in enumerate(_list(document, "resourceSpans", where)):
        inner = f"{where}: resourceSpans[{at}]"
        for scope_at, scope in enumerate(_list(resource, "scopeSpans", inner)):
            place = f"{inner}.scopeSpans[{scope_at}]"
            for span_at, span in enumerate(_list(scope, "spans", place)):
                if not isinstance(span, dict):
                    raise _wrong(f"{place}.spans[{span_at}]", "is no JSON object")
                yield f"{place}.spans[{span_at}]", span


def _list(value: Any, name: str, where: str) -> Sequence[Any]:
    if not isinstance(value, dict):
        raise _wrong(where, "is no JSON object")
    found = value.get(name, [])
    if not isinstance(found, list):
        raise _wrong(f"{where}.{name}", "is no list")
    return found


def _span(span: Mapping[str, Any], where: str) -> Span:
    attributes = _attributes(span, where)
    operation = attributes.get(_OPERATION, attributes.get(_OPENINFERENCE))
    kind = KINDS.get(operation.lower()) if isinstance(operation, str) else None
    start, end = _number(span, "startTimeUnixNano", where), _number(span, "endTimeUnixNano", where)
    if end < start:
        raise _wrong(f"{where}.endTimeUnixNano", "lies before its start")
    return Span(
        _text(span, "spanId", where).lower(),
        str(span.get("parentSpanId") or "").lower(),
        kind,
        start,
        end,
        _first(attributes, _INPUT),
        _first(attributes, _OUTPUT),
        _is_error(span.get("status")),
        (_first(attributes, (_RESENT,)) or 0) > 0,
    )


def _is_error(status: object) -> bool:
    return isinstance(status, dict) and status.get("code") in _ERRORS


def _attributes(span: Mapping[str, Any], where: str) -> dict[str, str | int]:
    """Those whose values are texts or whole numbers."""
    found: dict[str, str | int] = {}
    for one in _list(span, "attributes", where):
        key, value = (one.get("key"), one.get("value")) if isinstance(one, dict) else (None, None)
        if not isinstance(key, str) or not isinstance(value, dict):
            continue
        if isinstance(text := value.get("stringValue"), str):
            found[key] = text
        elif (number := value.get("intValue")) is not None and (whole := _whole_number(number)) is not None:
            found[key] = whole
    return found


def _first(attributes: Mapping[str, str | int], names: Sequence[str]) -> int | None:
    values = (attributes.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and 0 <= value <= MOST_TOKENS), None)


def _text(span: Mapping[str, Any], name: str, where: str) -> str:
    value = span.get(name)
    if not isinstance(value, str) or not value:
        raise _wrong(f"{where}.{name}", "is missing, or no text")
    return value


def _number(span: Mapping[str, Any], name: str, where: str) -> int:
    number = _whole_number(span.get(name))
    if number is None or not 0 <= number < 1 << 63:
        raise _wrong(f"{where}.{name}", "is missing, or no number of nanoseconds since 1970")
    return number


def _whole_number(value: object) -> int | None:
    """OTLP writes 64-bit numbers as text; some writers do not."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    text = value if isinstance(value, str) and len(value) < 25 else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _wrong(where: str, words: str) -> PlanError:
    return PlanError([Problem(where, words)])
