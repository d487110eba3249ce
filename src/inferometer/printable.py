"""The one place through which text of others passes on its way to a terminal, a log or a file that people read.

Servers, the authors of plans and of run folders are not trusted: a terminal obeys what it is shown.

| characters                                                        | in lines                       | in JSON     |
| ----------------------------------------------------------------- | ------------------------------ | ----------- |
| controls, C0, DEL and C1 (Cc): escape sequences begin with one    | dropped; a tab becomes a blank | escaped     |
| format characters (Cf): they hide text, or turn its direction     | dropped                        | escaped     |
| line and paragraph separators (Zl, Zp)                            | dropped                        | escaped     |
| halves of surrogate pairs, private and unassigned ones (Cs Co Cn) | dropped                        | escaped     |
| all others                                                        | as they are                    | as they are |

In a cell of a CSV table a text is as in lines, with its line breaks, and has a `'` in front if a spreadsheet could take it
for a formula. Plain numbers, such as a label `-1`, stay as they are.

A stream that is not UTF-8 cannot hold all of what is shown: for the rest `fitting` puts a question mark in lines, and
`fitting_json` an escape in JSON.

What a program writes of its own accord to steer the terminal, as the line of progress does, does not pass through here.
"""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable

UNPRINTABLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
"""Unicode's categories that nobody is shown."""
_SUSPECT = re.compile("[\x00-\x1f\x7f-\U0010ffff]")
FORMULA = "^(\t|\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
"""What a spreadsheet may take for the beginning of a formula, full-width forms included; for re and for RE2."""
_FORMULA = re.compile(FORMULA)
_NUMBER = re.compile("[+-]?([0-9]+[.]?[0-9]*([eE][+-]?[0-9]+)?|Inf)", re.ASCII)
"""What begins like one and is a plain number."""


def printable(line: str) -> str:
    """One line without unprintable characters, its line breaks among them."""
    return _SUSPECT.sub(_dropped, line)


def printable_lines(text: str) -> str:
    """Our own lines with text of others in them: their breaks and indents stay."""
    return "\n".join(map(printable, text.replace("\t", " ").split("\n")))


def json_text(value: object, indent: int | None = None) -> str:
    """Plain data as JSON that a terminal can be shown, with nothing lost.

    Raises:
        ValueError: a number is not finite.
    """
    return _SUSPECT.sub(_escaped, json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False))


def printable_cell(text: str) -> str:
    """A text of others for a cell of a CSV table, its header included: see above."""
    shown = printable_lines(text)
    return f"'{shown}" if _FORMULA.match(shown) and not _NUMBER.fullmatch(shown) else shown


def printable_json(encoded: bytes) -> bytes:
    """JSON in UTF-8, of whatever encoder, that a terminal can be shown, with nothing lost."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded  # every encoder escapes C0
    return _SUSPECT.sub(_escaped, encoded.decode()).encode()


def fitting(text: str, encoding: str | None) -> str:
    """Lines as a stream of this encoding can hold them; None: it holds any."""
    return _held(text, encoding, lambda _: "?")


def fitting_json(text: str, encoding: str | None) -> str:
    """JSON as a stream of this encoding can hold it, with nothing lost; None: it holds any."""
    return _held(text, encoding, lambda character: json.dumps(character)[1:-1])


def _held(text: str, encoding: str | None, instead: Callable[[str], str]) -> str:
    """With something else for each character that a reader of this encoding would not get. Some are written without an error
    and read as others: in Shift JIS the yen sign is the byte of the backslash."""
    if encoding is None:
        return text
    return _BEYOND_ASCII.sub(
        lambda found: found[0] if _comes_back(found[0], encoding) else instead(found[0]), text
    )


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def _comes_back(character: str, encoding: str) -> bool:
    try:
        return character.encode(encoding).decode(encoding) == character
    except UnicodeError:
        return False


def _dropped(found: re.Match[str]) -> str:
    character = found[0]
    return "" if unicodedata.category(character) in UNPRINTABLE else character


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    # The line breaks of an indented document are none of its strings'.
    shown = character == "\n" or unicodedata.category(character) not in UNPRINTABLE
    return character if shown else json.dumps(character)[1:-1]


def _as_it_is(text: str) -> str:
    return text


class _Printable(io.TextIOWrapper):
    """A stream of text that drops what is unprintable, and what `strike` does."""

    strike: Callable[[str], str] = staticmethod(_as_it_is)

    def write(self, text: str, /) -> int:
        """See io.TextIOWrapper; all of the text counts as written."""
        super().write(printable_lines(self.strike(text)))
        return len(text)


def guard_stderr(strike: Callable[[str], str] = _as_it_is) -> None:
    """From now on this process writes nothing unprintable to its standard error: for processes whose errors go to a log, where
    an exception repeats what a server said. `strike` takes out of each text what must not be written at all."""
    raw = io.FileIO(2, "wb", closefd=False)
    guarded = _Printable(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
    guarded.strike = strike
    sys.stderr = guarded
