"""The account of a run's requests: the best prefix-hit rate, worked out another way, and figures held to what chance allows."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.documents.part import to_data
from inferometer.plan.standard import Published
from inferometer.plan.workload import MixtureWorkload, PromptsWorkload
from inferometer.workload import mixture, prompt_file_requests
from inferometer.workload.prompt_file import survey
from inferometer.workload.prompts import Prompt
from inferometer.workload.request_statistics import BLOCK, Account, Prefixes
from inferometer.workload.tokenizers import Tokenizer


def prompt(ids: Sequence[int], output: int = 1, shared: int = 0, group: int = -1) -> Prompt:
    key = np.asarray(ids, np.uint32)
    return Prompt(list(ids), len(ids), len(ids), output, "", shared=shared, group=group, key=key)


def account(prompts: list[Prompt], published: Sequence[Published] = ()) -> Account:
    found = Account(published)
    assert list(found.of(prompts)) == prompts
    return found


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the longest common prefix, id by id."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))


@given(st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=14))
def test_the_tree_knows_the_longest_prefix_of_all_earlier_sequences(lists: list[list[int]]) -> None:
    """add() gives what comparing with every earlier sequence gives, whatever was split on the way."""
    tree = Prefixes()
    for place, ids in enumerate(lists):
        expected = max((common(ids, earlier) for earlier in lists[:place]), default=0)
        assert tree.add(np.asarray(ids, np.uint32)) == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 60)), min_size=1, max_size=12), st.randoms())
def test_the_best_rate_is_that_of_a_cache_that_forgets_nothing(
    drawn: list[tuple[int, int]], rng: random.Random
) -> None:
    """Exact and in whole blocks: sums over requests of the longest prefix that one before had, over all prompt tokens."""
    prefixes = [[rng.randrange(9) for _ in range(40)] for _ in range(3)]
    lists = [(prefixes[group] + [rng.randrange(9) for _ in range(40)])[:length] for group, length in drawn]
    hits = [
        max((common(ids, earlier) for earlier in lists[:place]), default=0) for place, ids in enumerate(lists)
    ]
    facts = account([prompt(ids) for ids in lists]).facts().prefix_hits
    total = sum(map(len, lists))
    assert facts.exact == pytest.approx(sum(hits) / total)
    assert facts.blocks == pytest.approx(sum(hit // BLOCK * BLOCK for hit in hits) / total)
    assert facts.exact is not None
    assert facts.blocks is not None
    assert facts.blocks <= facts.exact < 1


def test_lengths_are_told_with_and_without_what_is_shared() -> None:
    """Means of all tokens, of the unshared ones, of the shared ones where there are any; and who shared what."""
    facts = to_data(account([prompt([1] * 30, 5, shared=10, group=2), prompt([2] * 10, 7)]).facts())
    assert (facts["requests"], facts["input_tokens"]["mean"], facts["output_tokens"]["mean"]) == (2, 20, 6)
    assert (facts["unshared_input_tokens"]["min"], facts["unshared_input_tokens"]["max"]) == (10, 20)
    assert (facts["shared"]["requests"], facts["shared"]["fraction"]) == (1, 0.5)
    assert (facts["shared"]["tokens"]["mean"], facts["shared"]["groups"]) == (10, [0, 0, 1])
    assert facts["sent_tokens"] == facts["input_tokens"]


@given(st.lists(st.integers(-1, 150), max_size=300))
def test_the_curve_of_sharing_begins_with_nothing_and_ends_with_all_that_share(groups: list[int]) -> None:
    """Each point says what the k most used prefixes carry; it never turns upwards, and there are few of them."""
    facts = to_data(account([prompt([1], shared=group >= 0, group=group) for group in groups]).facts())
    uses = sorted((groups.count(group) for group in set(groups) - {-1}), reverse=True)
    curve = facts["shared"]["curve"]
    assert all(carried == sum(uses[:k]) for k, carried in curve)
    assert (curve[0], curve[-1]) == ([0, 0], [len(uses), sum(uses)])
    assert len(curve) <= 41


def test_histograms_hold_every_request() -> None:
    """Of input what was asked and what was sent, of output what was asked; each request once."""
    facts = to_data(account([prompt([1] * n, n) for n in range(1, 200)]).facts().histograms)
    assert {of: sum(counts) for of, counts in facts["input_tokens"]["counts"].items()} == {
        "asked": 199,
        "sent": 199,
    }
    assert {of: sum(counts) for of, counts in facts["output_tokens"]["counts"].items()} == {"asked": 199}
    json.dumps(facts)


def test_nothing_drawn_is_null_and_not_zero() -> None:
    """An account of no request has no statistics and no rate."""
    facts = to_data(account([], (Published("input", 50, 9, "x"),)).facts())
    assert facts["input_tokens"] is None
    assert facts["prefix_hits"]["exact"] is None
    assert facts["published"][0]["off"] is None


@pytest.mark.parametrize("percent", [50, 95, 99, None])
@pytest.mark.parametrize("n", [1000, 20_000])
def test_a_right_draw_is_within_what_chance_allows_and_a_wrong_one_is_not(
    percent: int | None, n: int
) -> None:
    """Log-normal lengths: held to their own quantile or mean they pass for 30 seeds; half again as long, they fail at 1,000."""
    z = {50: 0.0, 95: 1.6449, 99: 2.3263}
    own = math.exp(5.5 + z[percent]) if percent is not None else math.exp(6)
    figure = Published("input", percent, own, "theory")
    for seed in range(30):
        lengths = np.maximum(1, np.round(np.random.default_rng(seed).lognormal(5.5, 1.0, n))).astype(int)
        assert _off(lengths.tolist(), figure) <= 1
    longer = np.round(np.random.default_rng(1).lognormal(5.9, 1.0, n)).astype(int)
    if percent in (50, None) or n > 1000:
        assert _off(longer.tolist(), figure) > 1


def _off(lengths: list[int], figure: Published) -> float:
    held = Account((figure,))
    for length in lengths:
        list(held.of([Prompt([], length, length, 1, "")]))
    return float(to_data(held.facts())["published"][0]["off"])


def best_of(prompts: list[Prompt], tokenizer: Tokenizer) -> float:
    """Tokens of all prompts that an earlier one began with, by comparing all with all."""
    whole = []
    for one in prompts:
        texts = [one.content] if one.messages is None else [text for _, text in one.messages]
        whole.append(
            [i for text in texts for i in ([*tokenizer.encode(text), -1] if isinstance(text, str) else text)]
        )
    return sum(
        max((common(ids, earlier) for earlier in whole[:place]), default=0) for place, ids in enumerate(whole)
    )


@pytest.mark.parametrize("kind", ["ids", "text"])
@pytest.mark.parametrize("repeatable", [True, False])
def test_prompts_of_classes_tell_what_they_share(
    kind: Literal["ids", "text"], repeatable: bool, cl100k: Tokenizer
) -> None:
    """The account finds what all tokens compared give, but for the digit groups of a nonce, and the shared ones."""
    one = {"name": "a", "input_tokens": 30, "output_tokens": 3, "content": "english"}
    prefix = {"tokens": 50, "share": 0.7, "groups": 3}
    classes = [
        one | {"shared_prefix": prefix},
        one | {"name": "b", "shared_prefix": prefix, "content": "random"},
    ]
    spec = MixtureWorkload.model_validate({"classes": classes, "repeatable_prompts": repeatable})
    prompts = list(mixture.generate(spec, cl100k, 60, 5, kind, 0))
    facts = to_data(account(prompts).facts())
    assert abs(facts["prefix_hits"]["exact"] * sum(p.sent for p in prompts) - best_of(prompts, cl100k)) <= 120
    assert facts["unshared_input_tokens"]["mean"] == 30
    assert len(facts["shared"]["groups"]) == 6
    assert sum(facts["shared"]["groups"]) == facts["shared"]["requests"] > 30


@pytest.mark.parametrize("repeatable", [True, False])
def test_prompts_of_a_file_tell_what_they_share(repeatable: bool, cl100k: Tokenizer, tmp_path: Path) -> None:
    """System prompts are hit within the run, nonces and all; repeated rows are hit only where nothing tells them apart."""
    rows = [
        {
            "messages": [
                {"role": "system", "content": "Be kind and brief. " * 9},
                {"role": "user", "content": f"Say {n}"},
            ]
        }
        for n in range(5)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row | {"output_tokens": 3}) + "\n" for row in rows))
    spec = PromptsWorkload.model_validate({"prompts": str(path), "repeatable_prompts": repeatable})
    file = survey(path, chat=True, needs_output=False)
    prompts = list(prompt_file_requests.generate(spec, cl100k, file, 12, 5))
    facts = account(prompts).facts().prefix_hits
    assert facts.exact is not None
    assert abs(facts.exact * sum(p.sent for p in prompts) - best_of(prompts, cl100k)) <= 36
    assert facts.exact > (0.9 if repeatable else 0.6)
