"""What the tokens of one answer are: thinking, the answer's text, a tool call. Decided by a token's index alone.

    0 ...  reasoning      the first `reasoning` tokens
    then   text           what is left
    last   tool call      the last `tool` tokens

The engine knows nothing of this: a token costs the same whatever it is. A tool call's arguments are one JSON object,
`{"text":"..."}`, whose value is the passage: the brackets ride on the first and the last of its tokens, so that there is still
one event a token.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from inferometer.server.filler_text import PIECES, text

DEFAULT_TOOL = "reference_tool"
ARGUMENT = "text"
_BEFORE, _AFTER = f'{{"{ARGUMENT}":"', '"}'


class Kind(enum.IntEnum):
    """What a token is."""

    REASONING = 0
    TEXT = 1
    TOOL = 2


class Parts(msgspec.Struct, frozen=True):
    """How many tokens are reasoning and how many a tool call, and the tool's name. Of a server: what every answer begins and
    ends with; of an answer: what became of that with its length and its request.
    """

    reasoning: int = 0
    tool: int = 0
    name: str = DEFAULT_TOOL

    def kind(self, index: int, count: int) -> Kind:
        """What token `index` of `count` is."""
        if index < self.reasoning:
            return Kind.REASONING
        return Kind.TOOL if index >= count - self.tool else Kind.TEXT

    def __bool__(self) -> bool:
        return bool(self.reasoning or self.tool)


PLAIN = Parts()
"""All tokens are text."""


def divide(
    offered: Parts, count: int, *, thinks: bool = True, tools: Any = None, choice: Any = None
) -> Parts:
    """How an answer of `count` tokens is divided by a server that offers `offered`.

    `thinks`: the request did not forbid reasoning. `choice`: the request's `tool_choice`. `none` forbids a call. `required`,
    or an object that names a function, asks for one: as long as the server's calls are, else everything after the
    reasoning. Raises ValueError where a call is asked for and there are no tools.
    """
    names = _names(tools)
    forced = choice == "required" or isinstance(choice, dict)
    if forced and not names:
        raise ValueError("tool_choice asks for a call, and tools names no function")
    reasoning = offered.reasoning if thinks else 0
    tool = 0 if choice == "none" else min(offered.tool, count)
    if forced and not tool:
        reasoning = min(reasoning, count - 1)
        tool = count - reasoning
    name = _name(choice) or (names[0] if names else DEFAULT_TOOL)
    return Parts(min(reasoning, count - tool), tool, name)


def _name(tool: Any) -> str | None:
    """The name in `{"function": {"name": ...}}` (chat, Ollama) or `{"name": ...}` (responses)."""
    if not isinstance(tool, dict):
        return None
    inner = tool.get("function", tool)
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) and name else None


def _names(tools: Any) -> list[str]:
    return [name for tool in tools if (name := _name(tool))] if isinstance(tools, list) else []


class Passage:
    """The text of one answer of `count` tokens, from piece `start` of the passage on, piece by piece and part by part."""

    __slots__ = ("count", "parts", "start")

    def __init__(self, parts: Parts, start: int, count: int) -> None:
        self.parts = parts
        self.count = count
        self.start = start

    def plain(self, count: int) -> Passage:
        """`count` tokens of text from the same piece on."""
        return Passage(PLAIN, self.start, count)

    def piece(self, index: int) -> tuple[Kind, str]:
        """What token `index` is and says."""
        parts, count = self.parts, self.count
        kind = parts.kind(index, count)
        said = PIECES[(self.start + index) % len(PIECES)]
        if kind is Kind.TOOL:
            if index == count - parts.tool:
                said = _BEFORE + said
            if index == count - 1:
                said += _AFTER
        return kind, said

    def opens(self, index: int) -> bool:
        """Token `index` is the first of its part."""
        return index in (0, self.parts.reasoning, self.count - self.parts.tool)

    def closes(self, index: int) -> bool:
        """Token `index` is the last of its part."""
        return index == self.count - 1 or self.opens(index + 1)

    def content(self, kind: Kind) -> str:
        """All that a part says."""
        parts = self.parts
        answer = self.count - parts.reasoning - parts.tool
        if kind is Kind.REASONING:
            return text(self.start, parts.reasoning)
        if kind is Kind.TEXT:
            return text(self.start + parts.reasoning, answer)
        if not parts.tool:
            return ""
        return _BEFORE + text(self.start + self.count - parts.tool, parts.tool) + _AFTER

    def kinds(self) -> list[Kind]:
        """The parts there are, in order."""
        return [kind for kind in Kind if self.content(kind)]
