"""What tokens are, and whether the model is there: laws, without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.server.answer_parts import Kind, Parts, Passage, divide
from inferometer.server.filler_text import text
from inferometer.server.model_loading import FOREVER, Residence
from inferometer.server.ollama import OllamaReader, keep_ns, rfc3339
from inferometer.server.openai import ApiError, Ask
from inferometer.server.responses import ResponsesReader
from inferometer.workload.encodings import Cl100k

TOKENIZER = Cl100k()
OLLAMA = OllamaReader("m", 1_000, TOKENIZER, Parts(reasoning=5, tool=5))
RESPONSES = ResponsesReader("m", 1_000, TOKENIZER, Parts(reasoning=5, tool=5))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
NAMES = (
    *("model", "prompt", "messages", "input", "instructions", "stream", "options", "keep_alive", "think"),
    *("tools", "tool_choice", "reasoning", "max_output_tokens", "system", "raw", "suffix", "context"),
)
TOOLS = st.sampled_from([None, [], [{"type": "function", "function": {"name": "f"}}], [{"name": "g"}], 5])
CHOICES = st.sampled_from([None, "auto", "none", "required", {"name": "h"}, {"function": {"name": "h"}}, {}])


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 12), st.booleans(), TOOLS, CHOICES)
def test_every_token_is_one_thing_and_the_parts_come_in_order(
    reasoning: int, tool: int, count: int, thinks: bool, tools: Any, choice: Any
) -> None:
    """Reasoning, text, call, as many as the answer has tokens; refused only where a call is asked for without tools."""
    try:
        parts = divide(Parts(reasoning, tool), count, thinks=thinks, tools=tools, choice=choice)
    except ValueError:
        assert not tools or tools == 5
        return
    kinds = [parts.kind(index, count) for index in range(count)]
    assert kinds == sorted(kinds)
    assert kinds.count(Kind.REASONING) == parts.reasoning <= (reasoning if thinks else 0)
    assert kinds.count(Kind.TOOL) == parts.tool
    assert parts.tool or choice in (None, "auto", "none")
    assert not (choice == "none" and parts.tool)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 12), st.integers(0, 2_000))
def test_pieces_joined_are_the_parts(reasoning: int, tool: int, count: int, start: int) -> None:
    """Piece by piece or at once; the parts one after another are the passage; arguments are JSON."""
    passage = Passage(divide(Parts(reasoning, tool), count), start, count)
    said = dict.fromkeys(Kind, "")
    opened, closed = [], []
    for index in range(count):
        kind, piece = passage.piece(index)
        said[kind] += piece
        opened += [kind] if passage.opens(index) else []
        closed += [kind] if passage.closes(index) else []
    assert all(said[kind] == passage.content(kind) for kind in Kind)
    assert opened == closed == passage.kinds()
    arguments = json.loads(said[Kind.TOOL])["text"] if said[Kind.TOOL] else ""
    assert said[Kind.REASONING] + said[Kind.TEXT] + arguments == text(start, count)


def test_a_model_stays_as_long_as_the_last_to_ask_wished() -> None:
    """Counted from the end of the last request; nobody's wish unloads it under another's request."""
    there = Residence(100, loaded=False)
    there.tell(10)
    assert (there.loaded, there.begin(50), there.loaded) == (False, 100, True)
    there.tell(40)
    assert there.begin(0) == 70  # comes during the load
    there.let_in(110)
    there.tell(200)
    there.end()
    assert there.loaded
    there.tell(300)
    assert there.begin(50) == 0
    there.end()
    there.end()
    assert there.expires == 350
    there.tell(349)
    assert there.loaded
    there.tell(350)
    assert not there.loaded
    assert there.begin() == 100  # whoever says nothing keeps it for ever
    there.end()
    there.tell(10**18)
    assert there.loaded
    assert there.expires is None


def test_who_comes_when_the_model_is_there_stays_behind_those_who_waited() -> None:
    """Until they are let in; then nobody waits. Nor does anybody where nobody waited, or for another load that is long over."""
    residence = Residence(100, loaded=False)
    residence.tell(1_000)
    assert residence.begin() == 100
    residence.tell(1_200)
    assert (residence.begin(), residence.begin(load=False)) == (1, 0)
    residence.let_in(1_099)  # an earlier load: not theirs
    assert residence.begin() == 1
    residence.let_in(1_100)
    assert residence.begin() == 0
    alone = Residence(100, loaded=False)
    alone.load()
    alone.tell(200)
    assert [alone.begin(), alone.begin()] == [0, 0]


def test_an_unload_waits_for_those_under_way() -> None:
    """And without any it is at once; a load by hand is for ever."""
    there = Residence(100)
    assert there.begin() == 0
    there.unload()
    assert there.loaded
    there.end()
    assert not there.loaded
    there.load()
    assert (there.loaded, there.expires) == (True, None)
    there.unload()
    assert not there.loaded
    assert there.begin(0, load=False) == 0
    there.end()
    assert not there.loaded


@pytest.mark.parametrize(
    ("given", "ns"),
    [
        (None, 300 * 10**9),
        (0, 0),
        ("0", 0),
        (1.5, 1_500_000_000),
        ("5m", 300 * 10**9),
        ("1h30m", 5_400 * 10**9),
        ("250ms", 250_000_000),
        (-1, FOREVER),
        ("-1m", FOREVER),
        (1e300, FOREVER),
    ],
)
def test_how_long_a_model_is_kept(given: Any, ns: int) -> None:
    """Numbers are seconds, text has units, negative is for ever."""
    assert keep_ns(given) == ns


@pytest.mark.parametrize("wrong", ["", "soon", "5", "5 m", "m", "5x", "--1m", "1m-1s", "+-0"])
def test_other_durations_are_refused(wrong: str) -> None:
    """400."""
    with pytest.raises(ApiError):
        keep_ns(wrong)


@pytest.mark.parametrize("given", ["9" * 30_000, "9" * 30_000 + "m", "1m" * 10_000, "9." * 10_000])
def test_a_duration_is_no_longer_than_one_that_people_write(given: str) -> None:
    """Law: what is longer is refused without a search, and repeated in part only."""
    with pytest.raises(ApiError) as caught:
        keep_ns(given)
    assert len(str(caught.value)) < 200


def test_instants_are_written_as_ollama_writes_them() -> None:
    """RFC 3339 in UTC, to the nanosecond."""
    assert rfc3339(1_700_000_000_000_000_007) == "2023-11-14T22:13:20.000000007Z"


def outcome(read: Callable[[bytes], Ask], body: bytes) -> Ask | ApiError:
    try:
        return read(body)
    except ApiError as error:
        return error


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """No body raises anything but ApiError."""
    for read in (OLLAMA.generate, OLLAMA.converse, RESPONSES.responses):
        outcome(read, body)


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_any_values_in_the_fields_we_know_are_read_or_refused(fields: dict[str, Any]) -> None:
    """As above, with the right names; what is read asks for tokens, or for the model alone."""
    body = json.dumps({"model": "m", "prompt": "x", "input": "x", **fields}).encode()
    for read in (OLLAMA.generate, OLLAMA.converse, RESPONSES.responses):
        found = outcome(read, body)
        if isinstance(found, ApiError):
            assert found.status in (400, 404)
        else:
            assert found.max_tokens > 0 or found.keep_ns is not None
            assert found.parts.reasoning + found.parts.tool <= found.max_tokens
