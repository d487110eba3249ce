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

Most texts hold nothing but printable ASCII and white space. Those are counted in one pass over the bytes; the others by regular
expressions, which are the definition (`by_expressions`).
"""

from __future__ import annotations

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

# RE2's \s, which has no vertical tab.
_IS_SPACE = np.isin(np.arange(256), [ord(one) for one in "\t\n\f\r "])
_IS_PLAIN = np.isin(np.arange(256), [*range(0x09, 0x0E), *range(0x20, 0x7F)])


def text_counts(texts: pa.Array) -> list[pa.Array]:
    """The columns NAMES of these texts (a string array, nulls allowed): int32, `text_lossy` bool."""
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
        pc.match_substring(texts, "\ufffd"),
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


def _plain(texts: pa.Array) -> NDArray[np.bool_]:
    """Texts of nothing but printable ASCII and white space; a null is one."""
    values, ends = _bytes(texts)
    odd = np.flatnonzero(~_IS_PLAIN[values])
    plain = np.ones(len(texts), np.bool_)
    plain[np.searchsorted(ends, odd, "right") - 1] = False
    return plain


def _of_plain(texts: pa.Array) -> list[pa.Array]:
    values, ends = _bytes(texts)
    sizes = np.diff(ends)
    begins = ~_IS_SPACE[values]  # of a word: no space, behind one or at the beginning of a text
    first = begins[ends[:-1][sizes > 0]]
    begins[1:] &= ~begins[:-1].copy()
    begins[ends[:-1][sizes > 0]] = first
    words = np.zeros(len(texts), np.int32)
    words[sizes > 0] = np.add.reduceat(begins, ends[:-1][sizes > 0], dtype=np.int32) if len(values) else 0
    null = np.asarray(texts.is_null())
    none = np.zeros(len(texts), np.int32)
    chars = pa.array(sizes.astype(np.int32), mask=null)
    lossy = pa.array(none.astype(np.bool_), mask=null)
    return [chars, chars, lossy, pa.array(none, mask=null), pa.array(words, mask=null)]
