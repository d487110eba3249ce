"""Counting left to the server: its own tokenizer over HTTP in each dialect, or no tokenizer at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inferometer.documents.workload import TokenizerFacts
from inferometer.errors import PeerError, PlanError
from inferometer.plan.lengths import uniform
from inferometer.plan.schema import Tokenizer as Spec
from inferometer.plan.workload import LengthsWorkload
from inferometer.workload.prompts import Prompt, generate
from inferometer.workload.tokenizers import Tokenizer, counter, facts, load

Answer = Callable[[str, dict[str, Any]], dict[str, Any]]
WORDS = LengthsWorkload(name="custom", input_tokens=uniform(20, 300), output_tokens=uniform(1, 9))


def vllm(theirs: Tokenizer) -> Answer:
    """`prompt` in, special tokens left out when asked; ids back to `prompt`."""

    def answer(path: str, question: dict[str, Any]) -> dict[str, Any]:
        if path == "/detokenize":
            return {"prompt": theirs.decode(question["tokens"])}
        assert question["add_special_tokens"] is False
        ids = theirs.encode(question["prompt"])
        return {"count": len(ids), "tokens": ids, "max_model_len": 8192}

    return answer


def llamacpp(theirs: Tokenizer) -> Answer:
    """`content` in; without it, no tokens and no error."""

    def answer(path: str, question: dict[str, Any]) -> dict[str, Any]:
        if path == "/detokenize":
            return {"content": theirs.decode(question["tokens"])}
        return {"tokens": theirs.encode(question.get("content", ""))}

    return answer


def counting_alone(theirs: Tokenizer) -> Answer:
    """No /detokenize."""

    def answer(path: str, question: dict[str, Any]) -> dict[str, Any]:
        return vllm(theirs)(path, question) if path == "/tokenize" else {}

    return answer


def texts(prompts: list[Prompt]) -> list[str]:
    return [prompt.content for prompt in prompts if isinstance(prompt.content, str)]


@pytest.mark.parametrize("dialect", [vllm, llamacpp, counting_alone])
def test_prompts_are_as_long_as_the_server_counts(
    tiny: Tokenizer, o200k: Tokenizer, dialect: Callable[[Tokenizer], Answer]
) -> None:
    """Whatever its vocabulary, of 4,096 entries or of 200,000: asked, sent and its own count agree."""
    for theirs in (tiny, o200k):
        asked = load(Spec(name="server"), dialect(theirs))
        prompts = list(generate(WORDS, asked, 60, 3, "text"))
        counts = theirs.count_all(texts(prompts))
        assert [prompt.sent for prompt in prompts] == counts == asked.count_all(texts(prompts))
        assert sum(prompt.requested != prompt.sent for prompt in prompts) <= 1


def test_the_same_seed_gives_the_same_prompts_whatever_the_threads(tiny: Tokenizer) -> None:
    """Eight questions are under way at once, and the order is the list's."""
    first, second = (load(Spec(name="server"), vllm(tiny)) for _ in range(2))
    second.lanes = 1
    assert list(generate(WORDS, first, 40, 3, "text")) == list(generate(WORDS, second, 40, 3, "text"))


@pytest.mark.parametrize("reply", [{}, {"tokens": []}, {"tokens": "no"}, {"error": "x"}])
def test_a_server_without_the_interface_is_refused_with_ways_out(reply: dict[str, Any]) -> None:
    """The flag, the interface, and what else can be declared."""
    with pytest.raises(PlanError, match=r"--tokenizer.*/tokenize.*tokenizer\.json.*cl100k_base.*none"):
        load(Spec(name="server"), lambda path, question: reply)


def test_without_a_server_there_is_nobody_to_ask() -> None:
    """In a simulation, say."""
    with pytest.raises(PlanError, match=r"no server to ask.*cl100k_base"):
        load(Spec(name="server"))


def test_answers_are_not_counted_once_the_server_is_gone(tiny: Tokenizer) -> None:
    """Nobody's count is no count, and no failure either: the server's usage is what is left."""
    alive = [True]

    def answer(path: str, question: dict[str, Any]) -> dict[str, Any]:
        if not alive[0]:
            raise PeerError("gone")
        return vllm(tiny)(path, question)

    asked = load(Spec(name="server"), answer)
    assert asked.count_all(["a b c", ""]) == [*tiny.count_all(["a b c"]), 0]
    alive[0] = False
    assert asked.count_all(["a b c"] * 20) == [None] * 20
    assert counter(Spec(name="server"), TokenizerFacts())[0].count_all(["a b c"]) == [None]


def test_what_is_said_of_a_servers_tokenizer(tiny: Tokenizer) -> None:
    """Its version and its vocabulary are not known; how it was asked is."""
    known = facts(load(Spec(name="server"), vllm(tiny)))
    assert (known.kind, known.version, known.vocab_size) == ("server", None, None)
    assert "/tokenize" in (known.source or "")


def test_without_a_tokenizer_prompts_are_the_yardsticks_and_nothing_is_counted(cl100k: Tokenizer) -> None:
    """The same bytes as with cl100k_base; local counts are not there; and the report knows why."""
    none = load(Spec(name="none"))
    assert list(generate(WORDS, none, 20, 3, "text")) == list(generate(WORDS, cl100k, 20, 3, "text"))
    assert list(generate(WORDS, none, 20, 3, "ids")) == list(generate(WORDS, cl100k, 20, 3, "ids"))
    assert none.count_all(["a", "b"]) == [None, None]
    known = facts(none)
    assert (known.kind, known.version, known.vocab_size) == ("none", None, None)
    assert "cl100k_base" in (known.source or "")


@pytest.mark.parametrize("template", [0, 1, 7, 60])
def test_a_template_takes_its_share_of_the_length_asked_for(cl100k: Tokenizer, template: int) -> None:
    """What is sent and the template make what was asked; lengths and answers are drawn as without it."""
    spec = WORDS.model_copy(update={"input_tokens": uniform(80, 300)})
    with_it = list(generate(spec, cl100k, 100, 3, "text", template))
    without = list(generate(spec, cl100k, 100, 3, "text"))
    assert [(p.requested, p.output, p.nonce) for p in with_it] == [
        (p.requested, p.output, p.nonce) for p in without
    ]
    assert sum(p.sent + template != p.requested for p in with_it) <= 1
    assert [p.sent for p in with_it] == cl100k.count_all(texts(with_it))
