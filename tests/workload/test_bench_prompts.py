"""The benchmark's prompts: always the same, as long as they say, and readable as a plan's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.workload.bench_prompts import (
    CHARACTERS_A_TOKEN,
    NAMES,
    PROMPTS,
    chosen,
    context_fill,
    prompt_file,
    sizes,
)
from inferometer.workload.encodings import Shipped
from inferometer.workload.prompt_file import survey

LINE = 120
"""Characters of the longest line of a fill."""


@given(tokens=st.integers(200, 20_000))
def test_a_fill_without_a_tokenizer_is_of_four_characters_a_token(tokens: int) -> None:
    """To a line, and never longer than asked for."""
    text = context_fill(tokens).text
    assert tokens - LINE / CHARACTERS_A_TOKEN <= len(text) / CHARACTERS_A_TOKEN < tokens + 1


@pytest.mark.parametrize("tokens", [200, 1_000, 4_000])
def test_a_fill_is_sized_in_the_tokens_of_the_tokenizer_at_hand(tokens: int) -> None:
    """To a line, question included."""
    tokenizer = Shipped("cl100k_base")
    fill = context_fill(tokens, lambda text: len(tokenizer.encode(text)))
    assert tokens - 40 <= len(tokenizer.encode(fill.text)) <= tokens
    assert fill.tokens == tokens


def test_fills_are_the_same_every_time_and_no_part_of_each_other() -> None:
    """A cache that holds one has nothing of the next."""
    assert context_fill(4_000) == context_fill(4_000)
    short, long = context_fill(4_000).text, context_fill(16_000).text
    assert short[:20] != long[:20]
    lines = long.splitlines()
    assert len(set(lines)) > len(lines) - 10  # blank ones are alike


def test_the_prompts_are_those_named_each_once_in_the_order_given() -> None:
    """Context fills come last, by their size."""
    found = chosen(["long", "code", "long"], [4_000, 500, 4_000])
    assert [one.name for one in found] == ["long", "code", "context-4k", "context-500"]
    assert tuple(one.name for one in chosen(NAMES, [])) == tuple(one.name for one in PROMPTS)


@pytest.mark.parametrize(
    ("names", "contexts", "words"),
    [
        (["poem"], [], "no prompt 'poem'"),
        ([], [10], "10 is not between"),
        ([], [2_000_000], "2000000 is not"),
    ],
)
def test_what_there_is_no_prompt_for_is_refused(names: list[str], contexts: list[int], words: str) -> None:
    """By the flag, with what there is."""
    with pytest.raises(PlanError, match=words):
        chosen(names, contexts)


def test_sizes_are_written_in_thousands_or_in_full() -> None:
    """And nothing else is a size."""
    assert sizes("4k, 16K,500") == (4_000, 16_000, 500)
    for nothing in ("", " , "):
        with pytest.raises(PlanError, match="names no size"):
            sizes(nothing)
    with pytest.raises(PlanError, match="no size"):
        sizes("4k,many")


@pytest.mark.parametrize("messages", [True, False])
def test_the_prompts_are_a_file_that_a_plan_takes(messages: bool, tmp_path: Path) -> None:
    """Every prompt is a class; where there are no messages, the system prompt stands before the text."""
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(prompt_file(PROMPTS, messages=messages))
    found = survey(path, chat=messages, needs_output=True)
    assert found.classes == NAMES
    assert found.systems == (1 if messages else 0)
    rows = list(found.rows(range(len(found))))
    assert [row.output_tokens for row in rows] == [one.max_tokens for one in PROMPTS]
    assert all(
        "".join(text for _, text in row.chat).count("get_weather") == (one.system is not None)
        for row, one in zip(rows, PROMPTS, strict=True)
    )
