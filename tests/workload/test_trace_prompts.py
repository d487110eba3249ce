"""The prompts of a trace: exact lengths, the sharing that the hash ids name and no other, and nonces in front."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.plan.workload import TraceWorkload
from inferometer.workload.prompts import Prompt
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.tokenizer_file import TokenizerFile
from inferometer.workload.tokenizers import Tokenizer
from inferometer.workload.traces.mooncake import BLOCK
from inferometer.workload.traces.row import Row

Format = Literal["ids", "text"]
SPEC = TraceWorkload(name="trace")


@pytest.fixture(scope="module", params=[True, False], ids=["in parts", "whole"])
def tiny(tiny_file: Path, request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer from a file, as one of which it is known that it splits at words, and as one of which it is not."""
    tokenizer = TokenizerFile(tiny_file, "tiny")
    assert tokenizer.splits_at_words
    tokenizer.splits_at_words = request.param
    return tokenizer


def row(line: int, length: int, *hash_ids: int) -> Row:
    return Row(line, 0, length, 3, None, hash_ids)


def ids_of(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    return prompt.content if isinstance(prompt.content, list) else tokenizer.encode(prompt.content)


def shared(one: list[int], other: list[int]) -> int:
    """How many tokens two prompts have in common at their beginnings."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def blocks_in_common(one: Row, other: Row) -> int:
    """Whole blocks that a cache of them would find again."""
    return shared(list(one.hash_ids), list(other.hash_ids))


@settings(deadline=None, max_examples=40)
@given(length=st.integers(4, 3000), covered=st.integers(0, 6), form=st.sampled_from(["text", "ids"]))
def test_a_prompt_has_the_traced_length(cl100k: Tokenizer, length: int, covered: int, form: Format) -> None:
    """In the declared tokenizer's own count, whatever part of it has hash ids."""
    ids = tuple(range(min(covered, -(-length // BLOCK))))
    prompt = Composer(SPEC, cl100k, 7, form).prompt(row(1, length, *ids))
    assert (prompt.requested, prompt.sent, prompt.output) == (length, length, 3)
    assert len(ids_of(prompt, cl100k)) == length


@settings(deadline=None, max_examples=20)
@given(length=st.integers(10, 1500), first=st.integers(0, 10_000))
def test_a_tokenizer_from_a_file_counts_the_traced_length_too(
    tiny: Tokenizer, length: int, first: int
) -> None:
    """Whatever its nonce counts, which is not the same for all of them; read whole, each text is counted and its end mended."""
    prompt = Composer(SPEC, tiny, 7, "text").prompt(row(1, length, first))
    assert isinstance(prompt.content, str)
    assert len(tiny.encode(prompt.content)) == prompt.sent == length


@pytest.mark.parametrize("form", ["text", "ids"])
@pytest.mark.parametrize("repeatable", [False, True])
def test_prompts_share_what_their_hash_ids_name_and_no_more(
    cl100k: Tokenizer, form: Format, repeatable: bool
) -> None:
    """Equal ids in front are equal tokens, to the last full block; where the ids part, so do the prompts, at once or within
    the few tokens that chance makes alike."""
    rows = [
        row(1, 1300, 0, 1, 2),
        row(2, 1100, 0, 1, 3),
        row(3, 530, 0, 4),
        row(4, 1536, 5, 6, 7),
        row(5, 700, 5),
        row(6, 700),
        row(7, 1300, 0, 1, 2),
        row(8, 1200, 5, 6, 7),
    ]
    composer = Composer(SPEC.model_copy(update={"repeatable_prompts": repeatable}), cl100k, 7, form)
    prompts = [ids_of(composer.prompt(one), cl100k) for one in rows]
    for (a, one), (b, other) in combinations(zip(rows, prompts, strict=True), 2):
        common = min(BLOCK * blocks_in_common(a, b), a.input_tokens or 0, b.input_tokens or 0)
        assert common <= shared(one, other) <= common + 4
    assert prompts[0] == prompts[6]


def test_nothing_is_shared_with_another_run(cl100k: Tokenizer) -> None:
    """The salt is in the first tokens of every prompt, and in those alone."""
    for form in ("text", "ids"):
        mine, theirs = (Composer(SPEC, cl100k, salt, form).prompt(row(1, 1300, 0, 1, 2)) for salt in (7, 8))
        one, other = ids_of(mine, cl100k), ids_of(theirs, cl100k)
        assert one[:1] != other[:1] or one[:3] != other[:3]
        assert one[3:] == other[3:]
        assert mine.nonce
        assert mine.nonce != theirs.nonce


def test_prompts_without_nonces_are_the_same_in_every_run(cl100k: Tokenizer) -> None:
    """`--repeatable-prompts`: the salt changes nothing, and neither end is white space."""
    spec = SPEC.model_copy(update={"repeatable_prompts": True})
    one, other = (Composer(spec, cl100k, salt, "text").prompt(row(1, 600, 3)) for salt in (7, 8))
    assert one == other
    assert isinstance(one.content, str)
    assert one.content == one.content.strip()
    assert len(cl100k.encode(one.content)) == 600


def test_a_prompt_depends_on_its_row_alone(cl100k: Tokenizer) -> None:
    """Not on what was made before: a window, a worker, or a second reading changes no prompt; the seed changes all."""
    rows = [row(line, 700, line % 3) for line in range(20)]
    forwards = [Composer(SPEC, cl100k, 7, "text").prompt(one) for one in rows]
    composer = Composer(SPEC, cl100k, 7, "text")
    assert [composer.prompt(one) for one in reversed(rows)][::-1] == forwards
    other = Composer(SPEC.model_copy(update={"seed": 1}), cl100k, 7, "text")
    assert all(other.prompt(one).content != made.content for one, made in zip(rows, forwards, strict=True))


def test_a_text_of_the_traces_own_is_sent_as_it_is(cl100k: Tokenizer) -> None:
    """No nonce, no cut, and its tokens are counted."""
    prompt = Composer(SPEC, cl100k, 7, "text").prompt(Row(1, 0, None, 5, "Say hello."))
    assert prompt == Prompt("Say hello.", 3, 3, 5, "")


def test_a_prompt_shorter_than_its_nonce_is_the_nonce(cl100k: Tokenizer) -> None:
    """And says so: asked 1, sent 3."""
    prompt = Composer(SPEC, cl100k, 7, "text").prompt(row(1, 1))
    assert (prompt.content, prompt.requested, prompt.sent) == (prompt.nonce, 1, 3)
