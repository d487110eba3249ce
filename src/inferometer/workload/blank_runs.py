"""Long runs of blanks in a text, which tiktoken's engine of patterns cannot match: it notes each blank in case it has to go
back, and ends in a panic after a million notes.

A blank is white space without CR and LF (Unicode's White_Space). By the patterns of both encodings that ship, a run of blanks
is

| followed by   | one piece                                              | since                                  |
| ------------- | ------------------------------------------------------ | -------------------------------------- |
| CR or LF      | with what is before it and the line end                | `\\s*[\\r\\n]`, which takes no notes     |
| the end       | by itself                                              | `\\s++$`, `\\s+(?!\\S)`                   |
| anything else | but for its last blank, which belongs to what follows  | `\\s+(?!\\S)`                            |

and nothing before it reaches into it, for no other alternative takes a blank but as its first character. So a text can be read
in parts, with the same tokens: what is before such a piece, the piece without any pattern, and what is behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_BLANKS = 1 << 16
"""Blanks of a run that are left to the pattern: a fifteenth of what it can take."""

_BLANKS = (
    "\t\v\f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_RUN = re.compile(f"[{_BLANKS}]*+")


def parts(text: str, most: int = MOST_BLANKS) -> Iterator[tuple[str, bool]]:
    """The parts of a text, in order; with each, whether it is a piece of nothing but blanks, to be read without a pattern. No
    run of more than `most` is left to the pattern, except before a line end.

    Such a run covers a multiple of `most`. Only those places are looked at, and each blank once from each side.
    """
    begun = known = 0
    for place in range(most, len(text), most):
        if place < known:
            continue
        known = end = _end_of_run(text, place)
        if end == place:
            continue
        # It does not reach back to the place before: from there it would be known.
        before = text[max(begun, place - most) : place]
        start = place - len(before) + len(before.rstrip(_BLANKS))
        if end - start > most and text[end : end + 1] not in ("\r", "\n"):
            end -= end < len(text)
            yield text[begun:start], False
            yield text[start:end], True
            begun = end
    yield text[begun:], False


def _end_of_run(text: str, place: int) -> int:
    found = _RUN.match(text, place)
    return place if found is None else found.end()
