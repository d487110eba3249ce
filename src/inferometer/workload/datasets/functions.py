"""Function-level completions (draft A.4.1): the functions of a source file, and of each the front half as a prompt.

One rule a language, by lines and indentation, so that a reader can repeat it by hand and no parser's version matters:

| language               | a function begins at                       | and ends                                            |
| ---------------------- | ------------------------------------------ | --------------------------------------------------- |
| Python                 | a line `def` or `async def`                | before the next line that is indented no deeper and |
|                        |                                            | is neither blank nor a closing bracket              |
| JavaScript, TypeScript | a line with `function`, or a constant that | with the next line that is indented no deeper,      |
|                        | is an arrow function; either ends in `{`   | which must begin with `}`                           |

Functions inside a function are part of it. One of fewer than LEAST_LINES lines is left out. The prompt is the first half of a
function's lines, the odd one included, without their common indentation; the rest would be the completion, and is not sent.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

LEAST_LINES = 4
LANGUAGES = ("Python", "JavaScript", "TypeScript")

_PYTHON = re.compile(r"[ \t]*(?:async +)?def +\w+")
_SCRIPT = re.compile(
    r"[ \t]*(?:export +)?(?:default +)?"
    r"(?:(?:async +)?function\b.*|(?:const|let|var) +\w+ *(?::[^=]+)?= *(?:async *)?(?:\(.*\)|\w+)[^=]*=>) *\{\s*$"
)


def prompts(source: str, language: str) -> Iterator[str]:
    """The prompts of one file in one of LANGUAGES, in their order; neither end of one is white space."""
    lines = source.splitlines()
    begins, end = (_PYTHON, _python_end) if language == "Python" else (_SCRIPT, _script_end)
    at = 0
    while at < len(lines):
        stop = end(lines, at) if begins.match(lines[at]) else None
        if stop is None:
            at += 1
            continue
        function = lines[at:stop]
        while function and not function[-1].strip():
            function.pop()
        if len(function) >= LEAST_LINES:
            front = textwrap.dedent("\n".join(function[: (len(function) + 1) // 2])).strip()
            if front:
                yield front
        at = stop


End = Callable[[list[str], int], int | None]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _python_end(lines: list[str], start: int) -> int | None:
    deep = _indent(lines[start])
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line.strip() and _indent(line) <= deep and line.lstrip()[0] not in ")]}":
            return at
    return len(lines)


def _script_end(lines: list[str], start: int) -> int | None:
    deep = _indent(lines[start])
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line.strip() and _indent(line) <= deep:
            return at + 1 if _indent(line) == deep and line.lstrip().startswith("}") else None
    return None
