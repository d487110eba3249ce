"""Context fills in an engine's own tokens: what sizes them, and what is done where nothing can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from peers import Script, Seen, scripted, whole
from serving import serving

from inferometer.engines.adapters.registry import ADAPTERS
from inferometer.errors import TokenizerGone
from inferometer.studies.bench_engine import LiveEngine
from inferometer.studies.engine_tokens import TokenCounter, sized
from inferometer.workload.bench_prompts import Count, context_fill
from inferometer.workload.encodings import Cl100k

MODELS = b'{"data":[{"id":"m"}]}'


class Planted:
    """An engine with this tokenizer."""

    def __init__(self, name: str, count: Count | None) -> None:
        self._counter = None if count is None else TokenCounter(count, name)

    @contextmanager
    def counting(self, model: str | None = None) -> Iterator[TokenCounter | None]:
        """As of the real one."""
        del model
        yield self._counter


def fails(text: str) -> int:
    """It no longer answers."""
    raise TokenizerGone(f"no tokens for {len(text)} characters")


def words(text: str) -> int:
    return len(text.split())


def test_the_first_engine_that_counts_sizes_the_fills_of_all() -> None:
    """One without a tokenizer and one whose tokenizer goes away are passed over."""
    engines = Planted("a", None), Planted("b", fails), Planted("c", words), Planted("d", len)
    (code, fill), by = sized(["code"], [2_000], engines)
    assert by == "c"
    assert (code.counted, fill.tokens) == (None, 2_000)
    assert fill.counted == words(fill.text)
    assert 1_975 <= words(fill.text) <= 2_000  # to a line


def test_without_a_tokenizer_fills_are_sized_by_characters() -> None:
    """And have no count."""
    for engines in ((), (Planted("a", None),), (Planted("a", fails),)):
        assert sized([], [2_000], engines) == ((context_fill(2_000),), None)


def test_no_engine_is_asked_for_tokens_without_a_fill() -> None:
    """The other prompts have their texts."""
    (code,), by = sized(["code"], [], [Planted("a", fails)])
    assert (code.name, by) == ("code", None)


@pytest.mark.parametrize("key", ["vllm", "llamacpp", "sglang"])
def test_an_engine_with_tokenize_counts_in_its_own_tokens(key: str) -> None:
    """The reference server dressed as it: the fill has its tokens, and the result names where they are from."""
    with serving(routes=key) as port:
        engine = LiveEngine("e", "e", f"http://127.0.0.1:{port}", adapter=ADAPTERS[key])
        (fill,), by = sized([], [1_000], [engine])
    assert by is not None
    assert by.startswith("the /tokenize of e for ")
    assert fill.counted == len(Cl100k().encode(fill.text))
    assert 950 <= fill.counted <= 1_000


def answers(content: bytes, status: int = 200) -> Iterator[LiveEngine]:
    """An engine of the model m whose /tokenize answers this."""

    def answer(request: Seen) -> Script:
        if request.target == "/v1/models":
            return Script(whole(200, MODELS))
        return Script(whole(status, content))

    with scripted(answer, tokenize=True) as peer:
        yield LiveEngine("e", "e", f"http://127.0.0.1:{peer.port}")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"error":"not found"}', 404),
        (b'{"tokens":[1,2,3]}', 200),
        (b'{"tokens":"many"}', 200),
        (b"[1]", 200),
        (b"{", 200),
        (b'{"tokens":[' + b"7," * 999 + b"7]}", 200),
    ],
)
def test_a_tokenize_that_cannot_be_right_is_not_used(content: bytes, status: int) -> None:
    """None there, three tokens for any text, no list, no JSON, one token all over: fills are sized by characters."""
    for engine in answers(content, status):
        assert sized([], [1_000], [engine]) == ((context_fill(1_000),), None)


def test_an_engine_that_is_not_there_sizes_nothing() -> None:
    """That it cannot be reached is for its own turn to say."""
    for engine in answers(b""):
        gone = engine
    assert sized([], [1_000], [gone]) == ((context_fill(1_000),), None)
