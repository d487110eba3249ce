"""The one point that every text from outside passes before it reaches disk, a log, a report or the screen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

STRUCK = "[redacted]"


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
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets."""
        return text if self._pattern is None else self._pattern.sub(STRUCK, text)
