"""The one point that every text from outside passes before it reaches disk, a log, a report or the screen.

A secret is found as people and programs would read it, not only as it was sent. Between two of its characters may stand what is
not shown (printable.py drops it, and would so put the secret together again), and each character may be spelled in any of these
ways, mixed and escaped more than once:

| spelling of `"`, `k`                  | as in                                              |
| ------------------------------------- | -------------------------------------------------- |
| `"`, `k`                              | plain text                                         |
| `\\"`, `\\\\"`                          | JSON, labels of Prometheus, JSON in either         |
| `\\u0022`, `\\u006b`, `\\x22`, `\\x6b`    | JSON, repr                                         |
| `%22`, `%6B`, `%2522`                 | URLs                                               |
| `&quot;`, `&#34;`, `&#x22;`, `&#107;` | pages                                              |

A text that was cut may end in the beginning of a secret: whoever cuts does it with `short`, which cuts what has been struck
already, and strikes such a beginning too. The search takes time in proportion to the text, whatever is in it: the first
character is looked for by a pattern, and the others followed from there as a set of places, none of which is gone on from twice
with the same character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from html.entities import codepoint2name

from inferometer.printable import UNPRINTABLE

STRUCK = "[redacted]"
LEAST_PART = 6
"""Characters of a secret's beginning that are struck out at the end of a cut text; fewer say nothing."""

_SLASHES = r"\\{1,8}"
"""Backslashes in front of what they escape: one, doubled by each further level."""
_ESCAPES = rf"{_SLASHES}(?:u[0-9a-fA-F]{{4}}|x[0-9a-fA-F]{{2}}|[bfnrt])|%[0-9a-fA-F]{{2}}|&#?\w{{1,8}};"
_ESCAPING = "\\%&"
_MARKS = frozenset(f"{_ESCAPING} +")
"""Shown characters that may begin the spelling of another, or have several of their own."""
_UNSHOWN = re.compile("[^ -~]+")
_CONTROLS = dict.fromkeys([*range(32), 127])
_STUMP = re.compile(
    r"[^ -~]*+(?:\\{1,8}(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%[0-9a-fA-F]{0,5}|&[#\w]{0,8})?[^ -~]*+\Z"
)
"""The end of a text that was cut, behind a whole character: nothing that is shown, or the beginning of an escape."""


def encodable(text: str) -> str:
    """`text` with a question mark for each half of a surrogate pair, which JSON can spell and no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _spellings(character: str, slashes: str = _SLASHES) -> list[str]:
    """Patterns of the ways in which a character is spelled; each matches in one way only, but for what the next one can do
    without."""
    code, itself = ord(character), re.escape(character)
    if character == "\\":
        plain = [rf"\\{{{count}}}" for count in (1, 2, 4, 8)]
    elif character == " ":
        plain = [" ", r"\s", r"\s+", r"\+"]  # lines are folded, and a tab is shown as a blank
    else:
        plain = [itself if character.isalnum() else rf"\\{{0,8}}{itself}"]
    octets = [f"{octet:02x}" for octet in character.encode("utf-8", "replace")]
    quoted = ["".join(f"(?i:%{'25' * level}{octet})" for octet in octets) for level in range(3)]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = slashes.join(f"u{units[at : at + 4]}" for at in range(0, len(units), 4))
    hexed = rf"|x{code:02x}" if code < 256 else ""
    name = f"|{codepoint2name[code]}" if code in codepoint2name else ""
    entity = f"&(?:#0{{0,4}}{code}|#x0{{0,4}}{code:x}{name});"
    return [*plain, *quoted, rf"(?i:{slashes}(?:{escaped}{hexed}))", f"(?i:{entity})"]


def _shown(text: str) -> str | None:
    """The characters of a text that are shown; None if some of them may spell others."""
    if any(mark in text for mark in _ESCAPING):
        return None
    return text.translate(_CONTROLS) if text.isascii() else _UNSHOWN.sub("", text)


class _Secret:
    """One secret, as it may be spelled."""

    def __init__(self, secret: str) -> None:
        self._characters = [one for one in secret if unicodedata.category(one) not in UNPRINTABLE]
        beyond = "".join(re.escape(one) for one in dict.fromkeys(self._characters) if not " " <= one <= "~")
        # What is not shown, of any length where it is not spelled, before what is: as few as will do, since a secret may hold
        # such characters itself.
        self._gap = rf"(?:[^ -~{beyond}]++|{_ESCAPES}){{0,16}}?"
        self._patterns: dict[str, tuple[re.Pattern[str], ...]] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._characters)

    @cached_property
    def _first(self) -> re.Pattern[str]:
        """The first character, where the second is next."""
        first, *others = self._characters[:2]
        # Backslashes before the first stay: with them a text of nothing else would take long.
        ways = "|".join(_spellings(first, r"\\"))
        beside = "".join(f"(?={self._gap}(?:{'|'.join(_spellings(one))}))" for one in others)
        return re.compile(f"(?:{ways}){beside}")

    def _absent(self, shown: str | None) -> bool:
        """Whether it is plain to see that a text holds none: most do, and the patterns take their time."""
        head = "".join(self._characters[:LEAST_PART])
        return shown is not None and head.isascii() and " " not in head and head not in shown

    def _next(self, character: str) -> tuple[re.Pattern[str], ...]:
        """The ways in which a character goes on, behind one of all of them."""
        if character not in self._patterns:
            ways = _spellings(character)
            self._patterns[character] = tuple(
                re.compile(f"{self._gap}{way}") for way in (f"(?:{'|'.join(ways)})", *ways)
            )
        return self._patterns[character]

    def places(self, text: str, shown: str | None, cut: bool) -> Iterator[tuple[int, int]]:
        """From where to where it stands in a text. `shown`: see there. `cut`: of one at the end the beginning counts."""
        if self._absent(shown):
            return
        at, futile = 0, set[tuple[int, int]]()
        while (found := self._first.search(text, at)) is not None:
            start = found.start()
            end = self._end(text, start, cut, futile)
            if end is not None:
                yield start, end
            at = start + 1 if end is None else end

    def _end(self, text: str, start: int, cut: bool, futile: set[tuple[int, int]]) -> int | None:
        """Where the secret that may begin here ends; None: it is another text.

        `futile`: characters of the secret, by number, and places from which they lead nowhere: looked at once for all starts.
        """
        plain = 0
        for here, character in zip(
            text[start : start + len(self._characters)], self._characters, strict=False
        ):
            if here != character or here in _MARKS:
                if " " < here <= "~" and here not in _MARKS:
                    return None
                break
            plain += 1
        ends, left, tried = {start + plain}, False, list[tuple[int, int]]()
        for place, character in enumerate(self._characters[plain:], plain):
            states = [state for end in ends if (state := (place, end)) not in futile]
            tried += states
            # A mark at the end may be itself, or the beginning of an escape.
            left |= cut and place >= LEAST_PART and any(_STUMP.match(text, end) for _, end in states)
            ends = {at for _, end in states for at in self._after(text, end, character)}
            if not ends:
                if left:
                    return len(text)
                futile.update(tried)
                return None
        return max(ends)

    def _after(self, text: str, at: int, character: str) -> list[int]:
        """Where a character that may be spelled here ends."""
        here = text[at : at + 1]
        if " " < here <= "~" and here not in _MARKS:  # itself, or another
            return [at + 1] if here == character else []
        every, *ways = self._next(character)
        if every.match(text, at) is None:
            return []
        return [found.end() for pattern in ways if (found := pattern.match(text, at)) is not None]


class Redactor:
    """Strikes known secrets out of text, however they are spelled: see the head."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = [found for one in dict.fromkeys(secrets) if (found := _Secret(one))]

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets, and as text that a file can hold: see `encodable`."""
        return self.strike(encodable(text))

    def strike(self, text: str, *, cut: bool = False) -> str:
        """Return `text` without the secrets, otherwise as it is. `cut`: it may end in the middle of one."""
        shown = _shown(text)
        places = sorted(place for secret in self._secrets for place in secret.places(text, shown, cut))
        if not places:
            return text
        left, kept = [], 0
        last = -1
        for start, end in places:
            if start >= last:
                left += [text[kept:start], STRUCK]
            kept = last = max(last, end)
        return "".join([*left, text[kept:]])

    def short(self, text: str, limit: int | None = None) -> str:
        """The first `limit` characters of `text` without the secrets, and without the beginning of one at its end; None: all.

        `text` may have been cut before, in the middle of a secret.
        """
        return self.strike(encodable(text), cut=True)[:limit]

    def line(self, text: str, limit: int) -> str:
        """The same in one line, runs of white space as one blank."""
        return " ".join(self.short(text).split())[:limit]
