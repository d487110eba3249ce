"""The three workloads of natural text: draws against the published figures, sharing, exact lengths, nonces, same bytes."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.plan.standard import PUBLISHED
from inferometer.plan.workload import StandardWorkload
from inferometer.workload import corpora, natural_text
from inferometer.workload import prompts as random_prompts
from inferometer.workload.natural_text import QUESTION
from inferometer.workload.parallel import DEFAULT, Processes
from inferometer.workload.prompts import Fingerprint, Prompt
from inferometer.workload.request_statistics import Account
from inferometer.workload.texts import texts_of
from inferometer.workload.tokenizers import Tokenizer

Format = Literal["ids", "text"]
NAMES = ("conversation", "code-completion", "long-context")
MANY = 4000
few = settings(max_examples=12, deadline=None)


def spec(name: str, **given: Any) -> StandardWorkload:
    return StandardWorkload.model_validate({"name": name} | given)


def made(
    workload: StandardWorkload,
    tokenizer: Tokenizer,
    n: int,
    kind: Format = "ids",
    salt: int = 7,
    *,
    chat: bool = False,
    processes: Processes = DEFAULT,
) -> list[Prompt]:
    if workload.content.text is None:
        return list(random_prompts.generate(workload, tokenizer, n, salt, kind, processes=processes))
    return list(natural_text.generate(workload, tokenizer, n, salt, kind, chat=chat, processes=processes))


def parts(prompt: Prompt) -> tuple[str, str | list[int]]:
    """The system message, "" if there is none, and the prompt proper."""
    if prompt.messages is None:
        return "", prompt.content
    (_, system), (_, content) = prompt.messages
    return system, content


def spelled(part: str | list[int]) -> str:
    return part if isinstance(part, str) else ",".join(map(str, part))


@pytest.fixture(scope="module")
def conversations(cl100k: Tokenizer) -> list[Prompt]:
    """4,000 of conversation, as ids."""
    return made(spec("conversation"), cl100k, MANY)


@pytest.fixture(scope="module")
def completions(cl100k: Tokenizer) -> list[Prompt]:
    """4,000 of code-completion, as ids."""
    return made(spec("code-completion"), cl100k, MANY)


@pytest.mark.parametrize("name", PUBLISHED)
def test_drawn_lengths_come_to_the_published_figures(name: str, cl100k: Tokenizer) -> None:
    """Medians, quantiles and means of each standard workload lie within what chance allows, for three seeds."""
    n = {"long-context": 60, "synthetic-skewed": 2000}.get(name, 4000)
    for seed in (1, 2, 42):
        workload = spec(name, seed=seed, repeatable_prompts=True)
        account = Account(PUBLISHED[name])
        for _ in account.of(made(workload, cl100k, n)):
            pass
        found = account.facts().published
        assert len(found) == len(PUBLISHED[name])
        assert [(one.side, one.figure) for one in found if one.off is None or one.off > 1] == []


def test_half_of_the_conversations_share_one_system_prompt_of_200_tokens(conversations: list[Prompt]) -> None:
    """Draft 4.3.2.3: the share is 50 % within 4.5 standard deviations, all of one prefix, on top of the length drawn."""
    shares = [prompt for prompt in conversations if prompt.group >= 0]
    assert abs(len(shares) / MANY - 0.5) < 4.5 * math.sqrt(0.25 / MANY)
    assert {prompt.shared for prompt in shares} == {200}
    assert len({tuple(prompt.content[:200]) for prompt in shares}) == 1
    assert {prompt.shared for prompt in conversations if prompt.group < 0} == {0}


def test_repository_contexts_are_chosen_by_zipf(completions: list[Prompt]) -> None:
    """Draft A.4.2: 80 % share, of 10 contexts of 512 to 1024 tokens; ranks fit k^-1.5 by chi-square (9 degrees, P = 0.001)."""
    counts = Counter(prompt.group for prompt in completions)
    sharing = MANY - counts.pop(-1)
    assert abs(sharing / MANY - 0.8) < 4.5 * math.sqrt(0.16 / MANY)
    weights = np.arange(1, 11) ** -1.5
    expected = sharing * weights / weights.sum()
    seen = np.array([counts[group] for group in range(10)])
    assert float(((seen - expected) ** 2 / expected).sum()) < 27.9
    prefixes = {
        prompt.group: (prompt.shared, tuple(prompt.content[: prompt.shared])) for prompt in completions
    }
    del prefixes[-1]
    assert len(prefixes) == len({content for _, content in prefixes.values()}) == 10
    assert all(512 <= tokens <= 1024 for tokens, _ in prefixes.values())


def test_code_completions_answers_have_floor_and_cap(completions: list[Prompt], cl100k: Tokenizer) -> None:
    """Within 1 and 2048, and both are reached: the draw is that wide."""
    lengths = [prompt.output for prompt in completions]
    assert (min(lengths), max(lengths)) == (1, 2048)
    assert (
        max(
            p.output
            for p in made(
                spec("code-completion", output_tokens="lognormal(4.0,1.5,min=1,max=99)"), cl100k, 300
            )
        )
        == 99
    )


def test_an_input_length_of_code_is_that_of_a_functions_front_half(cl100k: Tokenizer) -> None:
    """Without a dataset: each text is a function of the corpus, and asked is its own length."""
    code = corpora.load("code").text
    for prompt in made(spec("code-completion", repeatable_prompts=True), cl100k, 60, "text", chat=True):
        ids = cl100k.encode(str(prompt.content))
        own = cl100k.decode(ids[prompt.shared :])
        assert prompt.requested - prompt.shared == len(cl100k.encode(own))
        assert own.startswith(("def ", "async def "))
        assert own.splitlines()[0] in code


@pytest.mark.parametrize("name", ["conversation", "code-completion"])
@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("repeatable", [True, False])
def test_text_is_exactly_as_long_as_asked(
    name: str, chat: bool, repeatable: bool, cl100k: Tokenizer, tiny: Tokenizer
) -> None:
    """Counted again from the outside: content and system message come to `sent`, and that to what was asked and shared."""
    for tokenizer in (cl100k, tiny):
        prompts = made(spec(name, repeatable_prompts=repeatable), tokenizer, 80, "text", chat=chat)
        assert all(p.sent == sum(len(tokenizer.encode(str(part))) for part in parts(p)) for p in prompts)
        assert sum(p.sent != p.requested for p in prompts) <= 1
        for prompt in prompts:
            system, content = parts(prompt)
            assert (system, content) == (system.strip(), str(content).strip())
            assert bool(system) == (chat and name == "conversation" and prompt.group >= 0)


def test_a_long_prompt_is_a_document_and_a_question_of_about_100_tokens(cl100k: Tokenizer) -> None:
    """Draft A.5.1: the question fills the last of the length asked for, the document all before it, and lengths are exact."""
    assert 95 <= len(cl100k.encode(QUESTION)) <= 105
    for prompt in made(spec("long-context"), cl100k, 12, "text"):
        text = str(prompt.content)
        assert text.startswith(f"{prompt.nonce}\n")
        assert text.endswith(QUESTION)
        assert 8192 <= prompt.requested == prompt.sent == len(cl100k.encode(text)) <= 32768
        assert (prompt.output, prompt.shared, prompt.group) == (256, 0, -1)
    question = cl100k.encode(QUESTION)
    for prompt in made(spec("long-context", input_tokens="9000"), cl100k, 3):
        assert prompt.content[-len(question) :] == question
        assert len(prompt.content) == 9000


@pytest.mark.parametrize("salt", [7, 8, 9])
@pytest.mark.parametrize("kind", ["ids", "text"])
def test_a_length_with_hardly_any_room_beside_the_question_is_exact_all_the_same(
    kind: Format, salt: int, cl100k: Tokenizer
) -> None:
    """Law: every length is. Where there is no room beside the question, or only so little that no piece of the document fills
    it, the question goes, and not the document."""
    for tokens in range(16, 141):
        [prompt] = made(spec("long-context", input_tokens=tokens), cl100k, 1, kind, salt)
        assert prompt.requested == prompt.sent == tokens


@pytest.mark.parametrize("tokens", [131072, 2048, 2047])
def test_a_document_longer_than_the_corpus_goes_round(
    tokens: int, cl100k: Tokenizer, tiny: Tokenizer
) -> None:
    """Any length is exact, also two and a half times the corpus's, and with a tokenizer that must read the whole."""
    for tokenizer in (cl100k, tiny)[: 1 if tokens > 10_000 else 2]:
        [prompt] = made(spec("long-context", input_tokens=tokens), tokenizer, 1, "text")
        assert len(tokenizer.encode(str(prompt.content))) == tokens


@given(st.integers(0, 10**7), st.integers(0, 120_000))
@few
def test_a_ruler_counts_what_the_tokenizer_counts(cl100k: Tokenizer, at: int, tokens: int) -> None:
    """Head and middle go on in the text where the rest begins, and a middle of t tokens reads as t tokens, going round too."""
    corpus = corpora.load("english")
    [start] = corpus.starts_from(at, 1)
    piece = corpora.Ruler(corpus, cl100k).stretch(start, tokens)
    assert corpus.front(start, len(piece.head) + len(piece.middle)) == piece.head + piece.middle
    assert tokens - 400 <= piece.tokens <= tokens or tokens < 400
    assert len(cl100k.encode(piece.middle)) == piece.tokens
    whole = piece.head + piece.middle + piece.rest(30, 0)
    assert (
        len(cl100k.encode(whole)) == len(cl100k.encode(piece.head)) + piece.tokens + 30
        or len(piece.head) == 0
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["ids", "text"])
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(
    name: str, kind: Format, cl100k: Tokenizer
) -> None:
    """Twice the same, also of fewer requests; the fingerprint without nonces is one for every salt; another seed differs."""
    n = 3 if name == "long-context" else 40
    one, again = (made(spec(name), cl100k, n, kind) for _ in range(2))
    assert one == again
    assert made(spec(name), cl100k, n // 2, kind) == one[: n // 2]
    assert made(spec(name, seed=43), cl100k, n, kind) != one
    prints = []
    for salt in (7, 8):
        fingerprint = Fingerprint()
        for _ in fingerprint.of(made(spec(name), cl100k, n, kind, salt, chat=True)):
            pass
        prints.append(str(fingerprint))
    assert prints[0] == prints[1]


@pytest.mark.parametrize("name", NAMES)
def test_many_prompts_are_made_in_processes_to_the_same_bytes(name: str, cl100k: Tokenizer) -> None:
    """How a prompt is made does not depend on where."""
    n = 4 if name == "long-context" else 40
    here = made(spec(name), cl100k, n, "text", chat=True)
    assert made(spec(name), cl100k, n, "text", chat=True, processes=Processes(above=0, count=2)) == here


def test_the_draws_come_in_the_order_that_is_told(cl100k: Tokenizer) -> None:
    """The head of natural_text.py, carried out with nothing but random.Random."""
    roll = random.Random(42)
    corpus = corpora.load("code")
    contexts = [(roll.randint(512, 1024), roll.randrange(len(corpus.text))) for _ in range(10)]
    prompts = made(spec("code-completion"), cl100k, 50)
    places = texts_of(spec("code-completion")).places
    for prompt in prompts:
        assert prompt.output == min(max(round(roll.lognormvariate(4.0, 1.5)), 1), 2048)
        group = -1
        if roll.random() < 0.8:
            group = roll.choices(range(10), [rank**-1.5 for rank in range(1, 11)])[0]
        assert prompt.group == group
        assert prompt.shared == (contexts[group][0] if group >= 0 else 0)
        roll.randrange(places)


@pytest.mark.parametrize("kind", ["ids", "text"])
@pytest.mark.parametrize("chat", [True, False])
def test_a_shared_prefix_has_one_nonce_a_run_and_each_request_its_own(
    kind: Format, chat: bool, cl100k: Tokenizer
) -> None:
    """Cache honesty: two runs share no beginning, requests of one run share exactly their prefix, and no nonce comes twice."""
    if chat and kind == "ids":
        return
    for name in ("conversation", "code-completion"):
        runs = [made(spec(name), cl100k, 60, kind, salt, chat=chat) for salt in (7, 1_000_000)]
        own = [prompt.nonce for run in runs for prompt in run]
        heads: dict[tuple[int, int], set[str]] = {}
        assert len(set(own)) == 120
        for number, run in enumerate(runs):
            for prompt in run:
                system, content = parts(prompt)
                if prompt.group < 0 or system:
                    assert spelled(content).startswith(prompt.nonce)
                if prompt.group >= 0:
                    front = spelled(system or content)
                    heads.setdefault((number, prompt.group), set()).add(front[: len(prompt.nonce)])
                    assert spelled(content).count(prompt.nonce) == 1
        found = [head for group in heads.values() for head in group]
        assert len(set(found)) == len(found) == len(heads)
        assert not set(found) & set(own)


@pytest.mark.parametrize("name", ["conversation", "code-completion"])
@pytest.mark.parametrize(("kind", "chat"), [("ids", False), ("text", False), ("text", True)])
@pytest.mark.parametrize("repeatable", [True, False])
def test_the_best_rate_is_that_of_the_tokens_themselves(
    name: str, kind: Format, chat: bool, repeatable: bool, cl100k: Tokenizer
) -> None:
    """The keys tell as much as all tokens of all prompts compared: the same hits, but for a digit group of a nonce."""
    prompts = made(spec(name, repeatable_prompts=repeatable), cl100k, 50, kind, chat=chat)
    account = Account()
    for _ in account.of(prompts):
        pass
    whole = [
        content if isinstance(content, list) else [*cl100k.encode(system), -1, *cl100k.encode(content)]
        for system, content in map(parts, prompts)
    ]
    hits = 0
    for place, ids in enumerate(whole):
        hits += max((_common(ids, earlier) for earlier in whole[:place]), default=0)
    rate = account.facts().prefix_hits.exact
    assert rate is not None
    exact = rate * sum(prompt.sent for prompt in prompts)
    assert abs(exact - hits) <= 2 * len(prompts)
    assert exact >= sum(prompt.shared for prompt in prompts) / 2


def _common(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@given(st.integers(1, 60), st.integers(0, 40), st.booleans())
@few
def test_lengths_too_short_for_what_stands_in_front_are_sent_as_what_stands_there(
    cl100k: Tokenizer, tokens: int, template: int, repeatable: bool
) -> None:
    """However short, a prompt has some text, its count is right, and it misses only where there was no room."""
    workload = spec("conversation", input_tokens=tokens, output_tokens=3, repeatable_prompts=repeatable)
    for prompt in natural_text.generate(workload, cl100k, 6, 5, "text", template, chat=True):
        assert prompt.content
        assert prompt.sent == sum(len(cl100k.encode(str(part))) for part in parts(prompt))
        assert prompt.requested == tokens + prompt.shared
        room = max(1, tokens - template)
        assert prompt.sent - prompt.shared == room or room < 8


def test_neighbouring_prompts_are_of_different_places(conversations: list[Prompt]) -> None:
    """Texts are not one text read on: what stands behind the nonce differs from request to request."""
    texts = [tuple(prompt.content[prompt.shared + 2 :][:20]) for prompt in conversations[:500]]
    assert sum(one == other for one, other in pairwise(texts)) < 5
