"""Corpora: the bytes that belong to this version, and pieces that begin well and are as long as asked."""

from __future__ import annotations

import ast
import hashlib
import random
import textwrap
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inferometer.plan.schema import Tokenizer as Spec
from inferometer.workload.corpora import SHA256, Name, cut, load
from inferometer.workload.tokenizers import Tokenizer
from inferometer.workload.tokenizers import load as load_tokenizer

NAMES: tuple[Name, ...] = get_args(Name)
few = settings(max_examples=60, deadline=None)
positions = st.integers(0, 10**12)


@pytest.mark.parametrize("name", NAMES)
def test_a_corpus_is_the_text_that_belongs_to_this_version(name: Name) -> None:
    """Prompts cut from it have the same bytes everywhere, and the digest is the one a report names."""
    corpus = load(name)
    assert hashlib.sha256(corpus.text.encode()).hexdigest() == corpus.sha256 == SHA256[name]
    assert corpus.name == name
    assert corpus.language in ("English", "Python")
    assert "Python 3.11.7" in corpus.source


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_clean(name: Name) -> None:
    """No white space at the ends, no carriage returns, nothing that is no character."""
    text = load(name).text
    assert text == text.strip()
    assert not set("\r\0\ufffd\t\f") & set(text)


def test_english_is_prose(cl100k: Tokenizer) -> None:
    """Paragraphs of sentences: each once, begun by a capital and ended by a stop, and read as about 4 characters a token."""
    corpus = load("english")
    paragraphs = corpus.text.split("\n\n")
    assert len(paragraphs) == len(set(paragraphs)) > 900
    assert all(p.lstrip('"“')[0].isupper() and p[-1] in ".!?:" and "\n" not in p for p in paragraphs)
    assert 3.8 < len(corpus.text) / len(cl100k.encode(corpus.text)) < 5


def test_code_is_python() -> None:
    """Every module in it can be parsed: they are whole, and parted by two empty lines at a line's beginning."""
    tree = ast.parse(load("code").text)
    assert sum(isinstance(node, ast.FunctionDef) for node in ast.walk(tree)) > 2000


@pytest.mark.parametrize("name", NAMES)
def test_starts_are_many_and_rise(name: Name) -> None:
    """Pieces begin in two thousand places or more, none at white space."""
    corpus = load(name)
    assert len(corpus.starts) > 2000
    assert list(corpus.starts) == sorted(set(corpus.starts))
    assert not any(corpus.text[start].isspace() for start in corpus.starts)


def test_english_starts_are_beginnings_of_sentences() -> None:
    """A capital, behind a stop or at the beginning of a paragraph."""
    corpus = load("english")
    for start in corpus.starts:
        assert corpus.text[start:].lstrip('"“')[0].isupper()
        assert corpus.text[:start].rstrip()[-1:] in ("", *".!?:")


def test_code_starts_are_beginnings_of_functions_and_classes() -> None:
    """A decorator or a definition, behind nothing but indentation."""
    corpus = load("code")
    for start in corpus.starts:
        assert corpus.text.startswith(("@", "def ", "class ", "async def "), start)
        assert corpus.text[:start].rpartition("\n")[2].strip() == ""


@given(st.sampled_from(NAMES), st.integers(1, 3000), positions)
@example("code", 50, 14)
@few
def test_a_piece_is_as_long_as_asked_and_begins_at_a_start(
    cl100k: Tokenizer, o200k: Tokenizer, tiny: Tokenizer, name: Name, tokens: int, at: int
) -> None:
    """By the tokenizer's own count; the text stands in the corpus from one of its starts on, and no end is white space."""
    corpus = load(name)
    begins = {corpus.text[start : start + 40] for start in corpus.starts}
    for tokenizer in (cl100k, o200k, tiny):
        piece = cut(corpus, tokenizer, tokens, at)
        assert len(tokenizer.encode(piece)) == tokens
        assert piece == piece.strip()
        assert piece in f"{corpus.text}\n\n{corpus.text}"
        assert any(begin.startswith(piece[:40]) for begin in begins)


@given(st.sampled_from(NAMES), st.integers(1, 12), positions)
@few
def test_a_piece_begins_at_the_first_start_that_has_one(
    cl100k: Tokenizer, name: Name, tokens: int, at: int
) -> None:
    """From the position on, no start is passed over that has a front of so many tokens between words; all are tried here.

    Within a word the count rises and falls again, and the search may miss such a front: 0.3 % of all positions.
    """
    corpus = load(name)
    place = at % len(corpus.text)
    behind = [start for start in corpus.starts if start >= place] + list(corpus.starts)
    piece = cut(corpus, cl100k, tokens, at)
    for start in behind:
        text = corpus.front(start, 200)
        if text.startswith(piece[:200]):
            return
        ends = [
            length
            for length in range(1, 200)
            if not text[length - 1].isspace() and not text[length - 1 : length + 1].isalnum()
        ]
        assert tokens not in {len(cl100k.encode(text[:length])) for length in ends}
    pytest.fail("the piece begins at no start")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_longer_than_the_text_goes_round(cl100k: Tokenizer, name: Name) -> None:
    """A document longer than the corpus is the text again and again."""
    corpus = load(name)
    tokens = len(corpus.text) // 3
    piece = cut(corpus, cl100k, tokens, 1000)
    assert len(cl100k.encode(piece)) == tokens
    assert len(piece) > len(corpus.text)
    assert piece in 3 * f"{corpus.text}\n\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_arguments_give_the_same_bytes(cl100k: Tokenizer, name: Name) -> None:
    """Pinned: the digest of 50 pieces at places drawn from a seed."""
    rng = random.Random(7)
    pieces = [cut(load(name), cl100k, rng.randint(1, 400), rng.randrange(10**9)) for _ in range(50)]
    assert hashlib.sha256("\0".join(pieces).encode()).hexdigest() == PINNED[name]


PINNED: dict[Name, str] = {
    "english": "743be3ad3052aa0389a607251aff19ef0d723ba5eaf2baac3df98c66fab11b82",
    "code": "123aebe17ea42b9bea15fef1e171b18a292dcda55df270c5ccd28f81a45ff73d",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_tokenizer_that_does_not_give_texts_back_is_counted_rightly(tmp_path: Path, name: Name) -> None:
    """One that loses case and white space: pieces are as long as it counts, and stand in the corpus as they are."""
    tokenizer = lossy(tmp_path, load(name).text[:200_000])
    for tokens in (1, 2, 7, 100, 1500):
        piece = cut(load(name), tokenizer, tokens, 5000)
        assert len(tokenizer.encode(piece)) == tokens
        assert piece in load(name).text


def lossy(folder: Path, text: str) -> Tokenizer:
    """A word-piece tokenizer learned from a text."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    inner = Inner(models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=2000, special_tokens=["[UNK]"], show_progress=False)
    inner.train_from_iterator(textwrap.wrap(text, 2000), trainer)
    inner.save(str(folder / "tokenizer.json"))
    return load_tokenizer(Spec(name=str(folder)))
