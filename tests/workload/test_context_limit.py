"""What a model has room for: exactly by its own tokenizer, and by a yardstick only what no tokenizer could make fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.plan.lengths import LONGEST, parse
from inferometer.plan.schema import Plan, Trace
from inferometer.plan.workload import StandardWorkload, workload_of
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.context_limit import Room, check_trace
from inferometer.workload.prompts import Prompt
from inferometer.workload.sources import Batch, Rendering, TraceRows, sourced
from inferometer.workload.tokenizers import Tokenizer
from inferometer.workload.traces.survey import survey

TOKENS = st.integers(0, 5000)


@given(TOKENS, TOKENS, TOKENS, st.integers(0, 100))
def test_there_is_room_for_what_the_model_reads_and_what_it_is_to_write(
    context: int, sent: int, output: int, template: int
) -> None:
    """Own tokenizer: prompt, template and answer up to the context. Yardstick: half the prompt, and the answer whole."""
    assert Room(context, True, "t", template).holds(sent, output) == (sent + template + output <= context)
    assert Room(context, False, "t").holds(sent, output) == (sent / 2 + output <= context - (sent % 2) / 2)


LENGTHS = (
    "320",
    "uniform(3,9)",
    "normal(5,2)",
    "lognormal(1,1,max=30)",
    "histogram(8:1,20:3)",
    "quantiles(0:2,100:40)",
)
MOST = (320, 9, LONGEST, 30, 20, 40)


@pytest.mark.parametrize(("spelled", "most"), list(zip(LENGTHS, MOST, strict=True)))
def test_the_most_of_a_distribution_is_its_upper_end_clamped(spelled: str, most: int) -> None:
    """And no more than a max= that stands below it, nor less than a min= above it."""
    assert parse(spelled).most() == most
    if "(" in spelled and "max" not in spelled:
        assert parse(spelled.replace(")", ",max=7)")).most() == 7


@pytest.mark.parametrize(
    "kind", ["conversation", "code-completion", "long-context", "synthetic-skewed", "classes"]
)
def test_what_may_not_exceed_does_not(kind: str, cl100k: Tokenizer) -> None:
    """Law: where the bounds say that there is room, every drawn request has room, prefixes and nonces included."""
    given: dict[str, Any] = {"name": kind}
    if kind == "long-context":
        given |= {"name": "custom", "based_on": kind, "input_tokens": "uniform(200,300)"}
    if kind == "classes":
        one = {"name": "a", "input_tokens": "uniform(3,40)", "output_tokens": "uniform(1,50)"}
        given = {"classes": [one | {"shared_prefix": {"tokens": 30, "share": 0.5}}]}
    spec = workload_of(given)
    _, source = sourced(Plan(workload=spec))
    assert not isinstance(source, TraceRows | SessionRows)
    made = list(source.prompts(Rendering(cl100k, "text"), Batch(200, 5, spec.seed)))
    context = next(size for size in range(16, 20_000) if source.limit(cl100k, Room(size, True, "t")) is None)
    room = Room(context, True, "t")
    assert list(room.checked(spec, made, "")) == made
    assert source.limit(cl100k, Room(context - 1, True, "t")) is not None


@pytest.mark.parametrize(
    ("given", "where", "advice"),
    [
        ({}, "--input-tokens: request 2 ", "--output-tokens"),
        ({"prompts": "own.jsonl"}, "--prompts: request 2 ", "take it out of the file"),
        (
            {"classes": [{"name": "deep", "input_tokens": 5, "output_tokens": 5}]},
            r"workload.classes\[0\].input_tokens: request 2 ",
            "Shorten class deep",
        ),
    ],
)
def test_the_first_request_without_room_is_named_with_what_to_do(
    given: dict[str, Any], where: str, advice: str
) -> None:
    """Number, lengths, context, the place in the plan, and the way out; those before it pass."""
    spec = workload_of(given)
    made = [Prompt("x", n, n, 10, "", request_class=0) for n in (90, 91, 92)]
    passing = Room(100, True, "cl100k_base").checked(spec, made, "")
    assert next(passing) is made[0]
    with pytest.raises(
        PlanError, match=f"{where}is 91 tokens .*, and 10 .* takes 100 in all.*{advice}.*longer context"
    ):
        next(passing)


def test_an_answer_alone_that_is_too_long_blames_the_answer() -> None:
    """The flag that is named is the one to change."""
    with pytest.raises(PlanError, match=r"^--output-tokens: warm-up request 1 "):
        list(Room(50, True, "t").checked(StandardWorkload(), [Prompt("x", 3, 3, 50, "")], "warm-up "))


@pytest.mark.parametrize(("context", "line"), [(60, None), (59, 3), (49, 2)])
def test_a_trace_is_held_to_the_context_row_by_row(
    context: int, line: int | None, tmp_path: Path, cl100k: Tokenizer
) -> None:
    """Rows of lengths and rows of text alike; a text is only counted where its bytes could be too many."""
    rows: list[dict[str, Any]] = [
        {"timestamp": 0, "input_tokens": 10, "output_tokens": 20},
        {"timestamp": 1, "input_tokens": 30, "output_tokens": 20},
        {"timestamp": 2, "prompt": "hello" + " hello" * 39, "output_tokens": 20},
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trace = Trace(file=str(path))
    found = survey(trace)
    room = Room(context, True, cl100k.name)
    if line is None:
        check_trace(trace, found, cl100k, room)
        return
    with pytest.raises(PlanError, match=rf"own\.jsonl:{line}: request {line} is .*--trace-end"):
        check_trace(trace, found, cl100k, room)
