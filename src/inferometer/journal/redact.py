"""The one point that every text from outside passes before it reaches disk, a log, a report or the screen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

STRUCK = "[redacted]"
LEAST_PART = 6
"""Characters of a secret's beginning that are struck out at the end of a cut text; fewer say nothing."""


def encodable(text: str) -> str:
    """`text` with a question mark for each half of a surrogate pair, which JSON can spell and no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class Redactor:
    """Strikes known secrets out of text: each as it is, URL-quoted, and as JSON would escape it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spelled = {
            form
            for secret in secrets
            if secret
            for form in (secret, quote(secret, safe=""), secret.replace("\\", "\\\\").replace('"', '\\"'))
        }
        # The longest first, so that a secret which contains another is struck whole.
        longest_first = sorted(spelled, key=len, reverse=True)
        self._spelled = longest_first
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets, and as text that a file can hold: see `encodable`."""
        return self.strike(encodable(text))

    def strike(self, text: str) -> str:
        """Return `text` without the secrets, otherwise as it is."""
        return text if self._pattern is None else self._pattern.sub(STRUCK, text)

    def short(self, text: str, limit: int) -> str:
        """The first `limit` characters of `text` without the secrets, and without the beginning of one at its end.

        `text` may have been cut before, in the middle of a secret.
        """
        text = self(text)
        if self._pattern is None:
            return text[:limit]
        for secret in self._spelled:
            for length in range(min(len(secret), len(text)), LEAST_PART - 1, -1):
                if text.endswith(secret[:length]):
                    text = text[:-length] + STRUCK
                    break
        return text[:limit]
