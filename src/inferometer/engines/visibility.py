"""Which text a reader can see: the clock of TTFT stops at the first that is visible (draft 5.1.3.1).

| characters                                              | Unicode                                | visible |
| ------------------------------------------------------- | -------------------------------------- | ------- |
| white space                                             | Zs, Zl, Zp and the controls among them | no      |
| controls                                                | Cc                                     | no      |
| zero-width spaces and joiners, marks of direction, byte | Cf                                     | no      |
| order mark, soft hyphen, tags                           |                                        |         |
| variation selectors, accents and other marks without    | Mn, Me                                 | no      |
| a width of their own                                    |                                        |         |
| Hangul fillers, the Braille pattern without dots        | Lo, So                                 | no      |
| all others, U+FFFD and private ones too                 |                                        | yes     |

A mark without a width is drawn on the character before it: alone, as the first text of an answer, it shows nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_ASCII_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Mn", "Me", "Zs", "Zl", "Zp"})
_LONG = 1 << 12
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def visible(text: str) -> bool:
    """Whether a reader sees anything of this text."""
    if text.isascii():  # nearly always, and then one call decides
        return text.strip(_ASCII_BLANKS) != ""
    # Each kind of character once: an answer may be a million of one.
    return any(unicodedata.category(one) not in _HIDDEN_KINDS and one not in _FILLERS for one in _kinds(text))


def _kinds(text: str) -> Iterator[str]:
    """The first characters, of which one mostly decides, and each of the others once."""
    yield from text[:_LONG]
    if len(text) > _LONG:
        yield from set(text[_LONG:])


def hidden(text: str) -> bool:
    """Whether this text is neither visible nor white space: nothing that a reader could notice."""
    return not visible(text) and not text.isspace()
