"""What figures need of an answer's text, counted once when the record is sealed, so that none of them needs the text itself.

| column        | counts                                                                             |
| ------------- | ---------------------------------------------------------------------------------- |
| `text_chars`  | characters (Unicode code points)                                                   |
| `text_bytes`  | UTF-8 bytes of what can be seen: without UNSEEN                                    |
| `text_lossy`  | whether it holds the replacement character U+FFFD                                  |
| `text_unseen` | characters that nobody sees, except those that belong to a sign that is seen       |
| `text_words`  | words: what stands between white space and can be seen                             |

Each is null without a text. No tokenizer in use makes one token of two words, since they all cut a text at its white space
first: a text has at least as many tokens as words.

Regular expressions are the definition (`by_expressions`). Most texts hold nothing that they treat apart: neither UNSEEN nor
lost characters. In such a plain text every character is seen, and is no space unless it is one of ASCII; it is counted in
passes over its bytes, of which each that continues a character (10xxxxxx) is none of its own.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NAMES = ("text_chars", "text_bytes", "text_lossy", "text_unseen", "text_words")

UNSEEN = (
    "[\\x00-\\x08\\x0e-\\x1f\\x7f\\p{Cf}\\x{115f}\\x{1160}\\x{3164}\\x{ffa0}\\x{2800}\\x{fe00}-\\x{fe0f}]"
)
"""Characters that nobody sees and that are no white space; more of them in engines/visibility.py."""
_JOINED = "([^\\x00-\\x7f\\p{Cf}\\x{2800}])" + UNSEEN + "{1,2}"
"""A character beyond ASCII, and what joins it to the next or says how it is drawn: parts of one sign."""

_LOST = "\ufffd"

_PLANES = 0x20000
"""Code points beyond, which are rare, are left to the expressions."""
_AT_ONCE = 1 << 18
"""Bytes whose passes stay in the processor's cache."""


def text_counts(texts: pa.Array) -> list[pa.Array]:
    """The columns NAMES of these texts (a string array, nulls allowed): int32, `text_lossy` bool."""
    rows = max(1, len(texts) * _AT_ONCE // max(1, len(_bytes(texts)[0])))
    parts = [_counted(texts.slice(at, rows)) for at in range(0, max(1, len(texts)), rows)]
    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]


def _counted(texts: pa.Array) -> list[pa.Array]:
    plain = _plain(texts)
    if plain.all():
        return _of_plain(texts)
    rest = np.flatnonzero(~plain)
    counted = by_expressions(texts.take(pa.array(rest)))
    if len(rest) == len(texts):
        return counted
    at = np.flatnonzero(plain)
    fast = _of_plain(texts.take(pa.array(at)))
    place = np.empty(len(texts), np.int64)
    place[np.concatenate((at, rest))] = np.arange(len(texts))
    return [pa.concat_arrays(both).take(pa.array(place)) for both in zip(fast, counted, strict=True)]


def by_expressions(texts: pa.Array) -> list[pa.Array]:
    """As `text_counts`, for any text."""
    seen = pc.replace_substring_regex(texts, UNSEEN, "")
    alone = pc.replace_substring_regex(texts, _JOINED, "\\1")
    unseen = pc.subtract(pc.utf8_length(alone), pc.utf8_length(pc.replace_substring_regex(alone, UNSEEN, "")))
    return [
        pc.utf8_length(texts).cast(pa.int32()),
        pc.binary_length(seen).cast(pa.int32()),
        pc.match_substring(texts, _LOST),
        unseen.cast(pa.int32()),
        pc.count_substring_regex(seen, "\\S+").cast(pa.int32()),
    ]


def _bytes(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all texts, and where each begins, the end of the last behind them. A null has none."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    raw = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    ends = raw.astype(np.int64)
    values = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return values[ends[0] : ends[-1]], ends - ends[0]


@functools.cache
def _apart() -> NDArray[np.bool_]:
    """Of each code point below _PLANES, whether it is UNSEEN or lost; of those beyond one entry, which says that it is."""
    points = np.array([point for point in range(_PLANES) if not 0xD800 <= point < 0xE000])  # no surrogates
    texts = pa.array(map(chr, points.tolist()), pa.string())
    found = np.ones(_PLANES + 1, np.bool_)
    found[:_PLANES] = False
    found[points] = pc.match_substring_regex(texts, f"{UNSEEN}|{_LOST}").to_numpy(zero_copy_only=False)
    return found


def _plain(texts: pa.Array) -> NDArray[np.bool_]:
    """Texts without a character that the expressions treat apart; a null is one."""
    values, ends = _bytes(texts)
    special = values - np.uint8(0x20) >= 0x5F  # all but printable ASCII: bytes wrap around
    special &= values & 0xC0 != 0x80  # what continues a character
    begun = np.flatnonzero(special)
    odd = begun[_apart()[np.minimum(_code_points(values, begun), _PLANES)]] if len(begun) else begun
    plain = np.ones(len(texts), np.bool_)
    plain[np.searchsorted(ends, odd, "right") - 1] = False
    return plain


def _code_points(values: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int32]:
    """The characters whose first bytes are at these places."""
    first = values[at]
    points = first.astype(np.int32)
    for size, lead, end in ((2, 0xC0, 0xE0), (3, 0xE0, 0xF0), (4, 0xF0, 0xF8)):
        these = np.flatnonzero((first >= lead) & (first < end))
        begun, found = at[these], points[these] & (0x7F >> size)
        for behind in range(1, size):
            found = found << 6 | values[begun + behind] & 0x3F
        points[these] = found
    return points


def _of_plain(texts: pa.Array) -> list[pa.Array]:
    values, ends = _bytes(texts)
    space = values <= 0x20
    space &= values != ord("\v")  # RE2's \s has no vertical tab
    begins = ~space  # of a word: no space, behind one or at the beginning of a text
    begins[1:] &= space[:-1]
    some = np.diff(ends) > 0
    begins[ends[:-1][some]] = ~space[ends[:-1][some]]
    sizes, null = np.diff(ends).astype(np.int32), np.asarray(texts.is_null())
    continued = _each(values & 0xC0 == 0x80, ends) if len(values) and values.max() >= 0x80 else np.int32(0)
    none = np.zeros(len(texts), np.int32)
    return [
        pa.array(sizes - continued, mask=null),
        pa.array(sizes, mask=null),
        pa.array(none.astype(np.bool_), mask=null),
        pa.array(none, mask=null),
        pa.array(_each(begins, ends), mask=null),
    ]


def _each(chosen: NDArray[np.bool_], ends: NDArray[np.int64]) -> NDArray[np.int32]:
    """How many bytes of each text are chosen."""
    found = np.zeros(len(ends) - 1, np.int32)
    some = ends[1:] > ends[:-1]
    if some.any():
        found[some] = np.add.reduceat(chosen.view(np.uint8), ends[:-1][some], dtype=np.int32)
    return found
