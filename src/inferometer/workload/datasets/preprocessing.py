"""What becomes of a row: ShareGPT's dialogues and The Stack's files as texts (draft A.3.1, A.4.1).

| dataset   | a row is                                            | kept                                                    |
| --------- | --------------------------------------------------- | ------------------------------------------------------- |
| ShareGPT  | `{"id", "conversations": [{"from", "value"}, ...]}` | dialogues with an assistant's turn: the first turn of a |
|           | (vicuna_cleaned)                                    | person that an assistant's follows, and that answer     |
| The Stack | `{"content", "lang" or "language"}`                 | functions of files in Python, JavaScript and TypeScript |

Prompts without a character that shows, or longer than LONGEST characters, are left out. What is left out is counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from inferometer.workload.datasets.functions import LANGUAGES, LEAST_LINES, prompts

LONGEST = 200_000
"""About 50,000 tokens: a whole file pasted into a chat, which few models take."""

_PERSON = {"human", "user"}
_ASSISTANT = {"gpt", "assistant", "chatgpt"}

Kind = Literal["sharegpt", "the-stack"]


@dataclass(frozen=True, slots=True)
class Item:
    """One text to send, and the answer that the dataset has to it, where it has one."""

    prompt: str
    answer: str | None = None


class Unlike(Exception):
    """A row is not as it should be; the words name the field."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How rows of one dataset are read. `words` says it for a report; `items` may raise Unlike."""

    columns: tuple[str, ...]
    words: str
    items: Callable[[Any, Counter[str]], Iterator[Item]]


def _field(row: Any, name: str) -> Any:
    if not isinstance(row, dict):
        raise Unlike("must be an object")
    if name not in row:
        raise Unlike(f"has no field {name!r}")
    return row[name]


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise Unlike(f"{name} must be text")
    return value


def _fits(prompt: str, left_out: Counter[str]) -> bool:
    why = "empty" if not prompt else "too long" if len(prompt) > LONGEST else None
    try:
        prompt.encode()
    except UnicodeEncodeError:
        why = "half of a surrogate pair"  # which JSON can hold, and no request
    if why is not None:
        left_out[why] += 1
    return why is None


def _sharegpt(row: Any, left_out: Counter[str]) -> Iterator[Item]:
    turns = _field(row, "conversations")
    if not isinstance(turns, list):
        raise Unlike("conversations must be a list")
    spoken: list[tuple[str, str]] = []
    for place, turn in enumerate(turns):
        where = f"conversations[{place}]"
        if not isinstance(turn, dict) or "from" not in turn or "value" not in turn:
            raise Unlike(f"{where} must have from and value")
        spoken.append((_text(turn["from"], f"{where}.from"), _text(turn["value"], f"{where}.value").strip()))
    if not any(who in _ASSISTANT for who, _ in spoken):
        left_out["no assistant's turn"] += 1
        return
    for (who, said), (then, answer) in pairwise(spoken):
        if who in _PERSON and then in _ASSISTANT:
            if _fits(said, left_out) and _fits(answer, left_out):
                yield Item(said, answer)
            return
    left_out["no person's turn before an assistant's"] += 1


def _the_stack(row: Any, left_out: Counter[str]) -> Iterator[Item]:
    content = _text(_field(row, "content"), "content")
    language = row.get("lang") or row.get("language")
    if language is None:
        raise Unlike("has neither lang nor language")
    known = {name.lower(): name for name in LANGUAGES}.get(_text(language, "lang").lower())
    if known is None:
        left_out["another language"] += 1
        return
    found = [Item(prompt) for prompt in prompts(content, known) if _fits(prompt, left_out)]
    if not found:
        left_out["no function"] += 1
    yield from found


READERS: dict[Kind, Reader] = {
    "sharegpt": Reader(
        ("conversations",),
        "dialogues with at least one assistant turn; of each the first turn of a person that an assistant's follows, as the "
        f"prompt, and that answer's length as the output length; turns over {LONGEST:,} characters left out",
        _sharegpt,
    ),
    "the-stack": Reader(
        ("content", "lang", "language"),
        f"files in {', '.join(LANGUAGES)}; of each function of {LEAST_LINES} lines or more, found by lines and indentation, "
        f"the first half of its lines as the prompt; prompts over {LONGEST:,} characters left out",
        _the_stack,
    ),
}
