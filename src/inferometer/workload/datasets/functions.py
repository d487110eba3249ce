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
# In pieces: as one pattern, a line that nearly fits would be tried in as many ways as the square of its length.
_EXPORT = re.compile(r"[ \t]*(?:export +)?(?:default +)?")
_FUNCTION = re.compile(r"(?:async +)?function\b")
_CONSTANT = re.compile(r"(?:const|let|var) +\w+ *")
_WORD = re.compile(r"\w")


def prompts(source: str, language: str) -> Iterator[str]:
    """The prompts of one file in one of LANGUAGES, in their order; neither end of one is white space."""
    lines = source.splitlines()
    begins: Callable[[str], object] = _PYTHON.match if language == "Python" else _script_begins
    end = _python_end if language == "Python" else _script_end
    at = 0
    while at < len(lines):
        stop = end(lines, at) if begins(lines[at]) else None
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


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _python_end(lines: list[str], start: int) -> int | None:
    deep = _indent(lines[start])
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line.strip() and _indent(line) <= deep and line.lstrip()[0] not in ")]}":
            return at
    return len(lines)


def _script_begins(line: str) -> bool:
    line = line.rstrip()
    if not line.endswith("{"):
        return False
    line = line[:-1].rstrip(" ")
    export = _EXPORT.match(line)
    line = line[export.end() :] if export else line
    if _FUNCTION.match(line):
        return True
    constant = _CONSTANT.match(line)
    if constant is None or not line.endswith("=>"):
        return False
    kind, equals, value = line[constant.end() : -2].partition("=")
    if not equals or (kind and (kind[0] != ":" or len(kind) == 1)):
        return False
    value = value.lstrip(" ")
    return _parameters(value) or (value.startswith("async") and _parameters(value[5:].lstrip(" ")))


def _parameters(text: str) -> bool:
    """Whether an arrow may follow: parameters in parentheses, or one of them, and a type, but no `=`, behind."""
    if text.startswith("("):
        closed = text.rfind(")")
        return closed > 0 and "=" not in text[closed:]
    return _WORD.match(text) is not None and "=" not in text


def _script_end(lines: list[str], start: int) -> int | None:
    deep = _indent(lines[start])
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line.strip() and _indent(line) <= deep:
            return at + 1 if _indent(line) == deep and line.lstrip().startswith("}") else None
    return None
