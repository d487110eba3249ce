"""The best possible prefix-hit rate of a trace, held against the tokens that are really sent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.plan.workload import TraceWorkload
from inferometer.workload.prompts import Prompt
from inferometer.workload.request_statistics import Account
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.tokenizers import Tokenizer
from inferometer.workload.traces.mooncake import BLOCK
from inferometer.workload.traces.repeats import Repeats
from inferometer.workload.traces.row import Row


def rows(beginnings: list[tuple[list[int], int]]) -> list[Row]:
    """Prompts whose hash ids name all before them, as a trace's do: the k-th id of a path is the path's own."""
    paths: dict[tuple[int, ...], int] = {}
    found = []
    for line, (path, length) in enumerate(beginnings, 1):
        ids = [paths.setdefault(tuple(path[: at + 1]), len(paths)) for at in range(len(path))]
        found.append(Row(line, 0, length, 3, None, tuple(ids[: -(-length // BLOCK)])))
    return found


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 1), max_size=4), st.integers(1, 2500)), min_size=1, max_size=12
    )
)
@settings(max_examples=40, deadline=None)
def test_it_is_what_comparing_all_tokens_gives(
    cl100k: Tokenizer, beginnings: list[tuple[list[int], int]]
) -> None:
    """But for a token now and then, where two blocks happen to begin alike."""
    composer, account, repeats = (
        Composer(TraceWorkload(name="trace", repeatable_prompts=True), cl100k, 0, "ids"),
        Account(),
        Repeats(),
    )
    total = 0
    for row in rows(beginnings):
        repeats.add(row)
        prompt = composer.prompt(row)
        total += prompt.sent
        whole = Prompt("", prompt.sent, prompt.sent, 1, "", key=np.asarray(prompt.content, np.uint32))
        list(account.of([whole]))
    found, compared = repeats.facts(), account.facts().prefix_hits
    assert found.exact is not None
    assert found.blocks is not None
    assert compared.exact is not None
    assert compared.blocks is not None
    assert found.exact * total == pytest.approx(compared.exact * total, abs=2)
    assert found.blocks * total == pytest.approx(compared.blocks * total, abs=16)
    assert found.block_tokens == compared.block_tokens


def test_it_is_not_known_with_texts_nor_beyond_what_is_kept() -> None:
    """And of no rows at all."""
    assert Repeats().facts().exact is None
    texts, many = Repeats(), Repeats(most=2)
    for repeats, row in (
        (texts, Row(1, 0, None, 3, "hello", ())),
        *((many, Row(n, 0, 9, 3, None, (n,))) for n in range(9)),
    ):
        repeats.add(row)
    assert texts.facts().exact is many.facts().exact is None
