"""Servers that say of prompts and answers what is not so: prompts cut, lengths repeated, caches warm. Tokens by another
tokenizer are those of ours times a ratio, with noise that grows as a text's tokens do by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass
from inferometer.judge.judge import judge
from inferometer.judge.verdict import Check
from inferometer.measure.truncation import piled_share
from inferometer.report.checks import sentence

TOTAL = 1_100
LENGTHS = {
    "one length": np.full(TOTAL, 400),
    "uniform": np.random.default_rng(1).integers(128, 513, TOTAL),
    "two lengths": np.where(np.arange(TOTAL) % 4, 100, 1000),
}


def found(run: Any, code: str, **changes: Any) -> Check:
    return judge(*run(n=TOTAL - 100, **changes)).check(code)


def counted(sent: Any, ratio: float, seed: int = 2) -> Any:
    """What another tokenizer makes of these prompts, with a chat template of 7 tokens."""
    noise = np.random.default_rng(seed).normal(0, 1, len(sent)) * 0.5 * np.sqrt(sent)
    return np.round(sent * ratio + (noise if ratio != 1 else 0)).astype(np.int64) + 7


def prompts(sent: Any, server: Any) -> dict[str, Any]:
    return {"input_tokens_asked": sent, "input_tokens_sent": sent, "usage_input": server}


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.3, 3.1])
def test_a_server_that_reads_all_prompts_is_believed(run: Any, lengths: str, ratio: float) -> None:
    """Law: a tokenizer that makes more or fewer tokens of a text, with their chance, convicts no one at any mix of lengths."""
    sent = LENGTHS[lengths]
    assert found(run, "prompt_length", **prompts(sent, counted(sent, ratio))).status == "pass"


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("limit", [60, 200])
def test_a_server_that_cuts_its_prompts_is_found_at_any_mix_of_lengths(
    run: Any, lengths: str, ratio: float, limit: int
) -> None:
    """Law: prompts cut to 60 or 200 tokens fail, of one length too."""
    sent = LENGTHS[lengths]
    check = found(run, "prompt_length", **prompts(sent, np.minimum(counted(sent, ratio), limit)))
    assert check.status == "fail"


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_share_of_prompts_cut_to_one_length_piles_up(run: Any, share: float) -> None:
    """Law: some prompts cut to 300 of 400 tokens are found among those that were read."""
    sent = LENGTHS["one length"]
    server = counted(sent, 1.02)
    server[:: round(1 / share)] = 300
    assert found(run, "prompt_length", **prompts(sent, server)).status in ("fail", "unsure")


def test_prompts_cut_to_a_part_of_themselves_are_too_few_tokens(run: Any) -> None:
    """Law: a sixth of each prompt is no other tokenizer's count; a third may be, so nothing is said for certain."""
    sent = LENGTHS["uniform"]
    assert found(run, "prompt_length", **prompts(sent, counted(sent, 1 / 6))).status == "fail"
    assert found(run, "prompt_length", **prompts(sent, counted(sent, 1 / 3))).status == "unsure"


def test_prompts_that_repeat_pile_up_by_themselves() -> None:
    """Law: a few texts sent again and again have as many counts; only a pile of many lengths is a cut."""
    texts = np.array([50, 80, 81, 120])
    server = np.round(texts * 0.8).astype(np.float64)
    at = np.arange(400) % len(texts)
    assert piled_share(texts[at].astype(float), server[at], 128.0, alike=True) == 0.0
    long = np.arange(100, 500).astype(float)
    assert piled_share(long, np.minimum(long * 0.8, 60.0), 128.0, alike=True) == 1.0
    assert piled_share(long[:39], np.full(39, 60.0), 128.0, alike=True) is None


WORDS = "some words here "


def test_an_answer_is_not_as_long_as_the_server_says_without_the_text(run: Any) -> None:
    """Law: usage of 30 tokens for a text of 3 is not believed by its word, nor are 30 of which nobody sees more than 3; tokens
    that events show, and reasoning that is not sent, are."""
    said = {"output_tokens_asked": lambda v: v * 0 + 30, "usage_output": lambda v: v * 0 + 30}
    three = said | {"output_tokens_local": lambda v: v * 0 + 3, "text": lambda v: [WORDS] * len(v)}
    check = found(run, "output_length", **three)
    assert (check.status, check.facts["judged_by"]) == ("unsure", "text")
    unseen = said | {
        "output_tokens_local": lambda v: v * 0 + 30,
        "text": lambda v: [WORDS + "\u200b" * 27] * len(v),
    }
    assert found(run, "output_length", **unseen).status == "unsure"
    padded = {"output_tokens_local": lambda v: v * 0 + 30, "text": lambda v: ["words \u200b" * 15] * len(v)}
    assert found(run, "output_length", **(said | padded)).status == "unsure"
    signs = {
        "output_tokens_local": lambda v: v * 0 + 30,
        "text": lambda v: ["\u2764\ufe0f \u0905\u200d" * 8] * len(v),
    }
    assert found(run, "output_length", **(said | signs)).status == "pass"
    full = said | {
        "output_tokens_local": lambda v: v * 0 + 8,
        "text": lambda v: ["unbelievably " * 8] * len(v),
    }
    assert found(run, "output_length", **full).status == "pass"
    withheld = three | {"usage_reasoning": lambda v: np.full(len(v), 27)}
    assert (
        found(run, "output_length", **(withheld | {"usage_reasoning": np.full(TOTAL, 27)})).status == "pass"
    )


@pytest.mark.parametrize("state", ["cold", "unknown", "warm"])
def test_a_cache_is_held_to_its_declared_state_whatever_prompts_repeat(run: Any, state: str) -> None:
    """Law: prompts that may repeat those of an earlier run are no excuse for a cache that was declared cold and seen warm, or
    declared warm and seen cold."""
    plan = {"workload": {"repeatable_prompts": True}, "sut": {"cache_state": state}}
    warm = {"usage_cached": lambda v: np.full(len(v), 112), "plan": plan}
    check = found(run, "cache_hits", **warm)
    assert check.status == {"cold": "fail", "unknown": "na", "warm": "pass"}[state]
    cold = warm | {"usage_cached": lambda v: np.zeros(len(v))}
    assert found(run, "cache_hits", **cold).status == {"cold": "pass", "unknown": "na", "warm": "fail"}[state]


NATIVE: dict[str, Any] = {"tokenizer": {"method": "native"}, "workload": {"count_template": False}}


def reasoning(counted: int, declared: int, **more: Any) -> dict[str, Any]:
    """Answers of four tokens in four events, of which the server counts so many, and calls so many of those reasoning."""
    return {
        "plan": NATIVE,
        "usage_output": lambda v: v * 0 + counted,
        "usage_reasoning": [declared] * TOTAL,
        "output_tokens_asked": lambda v: v * 0 + counted,
    } | more


def test_hidden_reasoning_is_the_servers_word(run: Any) -> None:
    """Law: what arrived agrees with the count less the reasoning that usage declares: nothing contradicts it, and nothing
    proves the rest, so the count is undecided; the same count without such a declaration, or with one that leaves more than
    arrived, fails."""
    hidden = found(run, "token_counts", **reasoning(20, 16))
    assert (hidden.status, hidden.facts["against"]) == ("unsure", "reasoning")
    assert "reasoning" in sentence(hidden)
    assert found(run, "token_counts", **reasoning(20, 0)).status == "fail"
    assert found(run, "token_counts", **reasoning(20, 10)).status == "fail"


def test_reasoning_that_was_sent_is_counted_like_any_text(run: Any) -> None:
    """Law: declared reasoning that arrived leaves nothing open, and a summary of it leaves what did not arrive."""
    kinds = bytes([EventClass.ROLE, *[EventClass.REASONING] * 2, *[EventClass.CONTENT] * 2])
    sent: dict[str, Any] = {"event_class": lambda v: [kinds] * len(v)}
    assert found(run, "token_counts", **reasoning(4, 2, **sent)).status == "pass"
    summary = found(run, "token_counts", **reasoning(22, 20, **sent))
    assert (summary.status, summary.facts["against"]) == ("unsure", "reasoning")


@pytest.mark.parametrize(("every", "status"), [(2, "unsure"), (8, "note"), (40, "pass")])
def test_tokens_counted_and_not_sent_are_told_before_they_decide(run: Any, every: int, status: str) -> None:
    """Law: a server whose count is above what arrived, by more than a hundredth, is named; by more than a twentieth, not
    believed. One answer of four tokens in so many is counted as five."""
    counted = found(run, "token_counts", usage_output=lambda v: v + (np.arange(len(v)) % every == 0))
    assert counted.status == status
    if status == "note":
        assert "no interval covers" in sentence(counted)


def test_fewer_tokens_than_events_are_a_contradiction_whatever_is_called_reasoning(run: Any) -> None:
    """Law: declared reasoning excuses no count below what arrived."""
    assert found(run, "token_counts", **reasoning(3, 2, output_tokens_local=lambda v: v)).status == "fail"


def test_tokens_that_were_not_sent_are_no_part_of_the_pace(run: Any) -> None:
    """Law: TPOT, the gaps' method and the tokens of an event are those of the same answer without its hidden reasoning; its
    output tokens count all."""
    _, plain, _ = run(n=TOTAL - 100, plan=NATIVE)
    _, hidden, _ = run(n=TOTAL - 100, **reasoning(20, 16))
    assert hidden.metrics.tpot_ms == plain.metrics.tpot_ms
    assert (hidden.tokens.itl_method, hidden.tokens.tokens_per_event) == (
        "direct",
        plain.tokens.tokens_per_event,
    )
    assert hidden.metrics.output_tokens.mean == 20
