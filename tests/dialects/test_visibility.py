"""Text that nobody can see starts no clock, in any dialect's answer."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.engines import openai
from inferometer.engines.answer import Answer
from inferometer.engines.visibility import hidden, visible
from inferometer.journal.schema import EventClass

UNSEEN = [
    "\u200b",
    "\u200e\u200f",
    "\u2060",
    "\ufeff",
    "\x00",
    "\x1b",
    "\xad",
    "\ufe0f",
    "\u0301",
    "\u3164",
    "\u2800",
    "\U000e0041",
]


def stream(*texts: str) -> Answer:
    """A chat's stream: its role, then one delta a millisecond."""
    answer = Answer()
    openai.read_event(answer, b'{"choices":[{"delta":{"role":"assistant"}}]}', 0)
    for at, text in enumerate(texts, start=1):
        escaped = "".join(f"\\u{unit:04x}" for unit in _units(text))
        openai.read_event(answer, b'{"choices":[{"delta":{"content":"%b"}}]}' % escaped.encode(), at)
    return answer


def _units(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


@pytest.mark.parametrize("text", UNSEEN, ids=lambda text: f"U+{ord(text[0]):04X}")
def test_text_that_nobody_can_see_is_no_first_token(text: str) -> None:
    """Law: the first token is the one after it; the event is no text, and its characters go before the next text."""
    answer = stream(text, text, "Hello", " world")
    assert (answer.first_text, answer.first_visible, answer.first_answer) == (3, 3, 3)
    assert bytes(answer.event_class[1:3]) == bytes([EventClass.EMPTY] * 2)
    assert answer.texts == [text + text + "Hello", " world"]
    assert answer.reply() == text + text + "Hello world"


def test_nothing_to_see_is_an_answer_without_text() -> None:
    """Law: an answer of nothing but such text has no first token."""
    answer = stream(*UNSEEN)
    assert (answer.first_text, answer.first_visible, answer.texts) == (-1, -1, [])


def test_white_space_is_text_and_not_visible() -> None:
    """Law: white space counts for the first text, as it did; also mixed with what cannot be seen."""
    answer = stream("\n", "\u200b", "a")
    assert (answer.first_text, answer.first_visible) == (1, 3)
    assert not visible(" \t\r\n\u00a0\u3000")
    assert not hidden(" \t\u00a0")


def test_what_comes_in_an_answer_keeps_its_place() -> None:
    """Law: after the first token joiners and marks are the text's own: a family of emoji, an accent."""
    answer = stream("\U0001f469", "\u200d", "\U0001f467", "e", "\u0301")
    assert bytes(answer.event_class[1:]) == bytes([EventClass.CONTENT] * 5)
    assert len(answer.texts) == 5


@given(st.text(max_size=20))
def test_one_visible_character_is_enough(text: str) -> None:
    """Law: a text is visible exactly if one of its characters is; a letter is, whatever stands around it."""
    assert visible(text) == any(map(visible, text))
    assert visible(text + "a" + text)
    assert not (visible(text) and hidden(text))


@pytest.mark.parametrize(
    "text", ["a", "\u4e2d", "\u0e01", "\u0915\u093f", "\ufffd", "\U0001f600", "\ue000", "1", "<"]
)
def test_letters_signs_and_emoji_are_visible(text: str) -> None:
    """Law: of every script, private and replacement characters too."""
    assert visible(text), unicodedata.name(text[0], "?")


def test_of_a_long_text_each_character_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: a million characters that nobody sees cost no more looks than the first few thousand; one that is seen counts."""
    looked: list[str] = []

    def category(one: str) -> str:
        looked.append(one)
        return "Mn"

    monkeypatch.setattr("unicodedata.category", category)
    assert not visible("\u0300\u0301" * 500_000)
    assert len(looked) <= (1 << 12) + 2
    monkeypatch.undo()
    assert visible("\u0300" * 500_000 + "\u4e2d")
