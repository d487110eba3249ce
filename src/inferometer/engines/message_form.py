"""The messages of a WebSocket server with a form of its own, as a plan describes them. It imports nothing of this program, so
that `plan` may read it; `mapped.py` makes a dialect of it.

Conditions hold by equality, where JSON's `true` and 1 are equal, as are `false` and 0. A value that is missing is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Where a value stands in a JSON message: names of members, and indices of lists."""
Scalar = str | int | float | bool | None

PLACEHOLDERS = ("{prompt}", "{model}", "{max_tokens}", "{temperature}")
"""What a request's template may name."""
LONGEST_PATH = 200
_STEP = re.compile(r"(?P<dot>\.?)(?:(?P<name>[^.\[\]\"]+)|\[(?P<index>\d{1,9})\]|\[\"(?P<quoted>[^\"]+)\"\])")


def parse_path(text: str) -> Path:
    """`choices[0].delta.text` as its steps; `["a.b"]` is a name with a dot. Raises ValueError."""
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        step = _STEP.match(text, at)
        # A dot stands between two names, and nowhere else.
        if step is None or bool(step["dot"]) is not (step["name"] is not None and at > 0):
            break
        steps.append(int(step["index"]) if step["index"] else step["name"] or step["quoted"])
        at = step.end()
    if not steps or at < len(text) or at > LONGEST_PATH:
        raise ValueError(
            "is no path into a message: names with dots between them and indices of lists in brackets, "
            "for example choices[0].text"
        )
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a message has that is of a kind: something at `path`, if that is given, and each of `where`'s values."""

    path: Path = ()
    where: tuple[tuple[Path, Scalar], ...] = ()


@dataclass(frozen=True, slots=True)
class MessageForm:
    """A server's messages. `request` is a JSON object with PLACEHOLDERS. An empty path: the server reports no such thing.

    A message has text if `text.path` holds some and `text.where` holds; it ends the answer, or is an error, where all of `end`
    or `error` holds. `greets`: see Interface.
    """

    target: str
    request: str
    text: Mark
    end: Mark
    error: Mark | None = None
    prompt_tokens: Path = ()
    completion_tokens: Path = ()
    finish_reason: Path = ()
    greets: bool = False

    @property
    def paths(self) -> Iterator[Path]:
        """All that are read, the text's and its conditions' first."""
        marks = [self.text, self.end, *([] if self.error is None else [self.error])]
        for mark in marks:
            yield from (path for path in (mark.path, *(path for path, _ in mark.where)) if path)
        yield from filter(None, (self.prompt_tokens, self.completion_tokens, self.finish_reason))
