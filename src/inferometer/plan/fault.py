"""A rule of a plan that is broken, in words that name its keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACE = re.compile(r"\{([a-z_.]+)\}")


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule: the keys involved (dotted, the one at fault first) and a message that names keys in braces."""

    keys: tuple[str, ...]
    message: str

    def worded(self, names: dict[str, str] | None = None) -> str:
        """The message with every key replaced by what `names` calls it, or else by the key itself."""
        return _PLACE.sub(lambda match: (names or {}).get(match[1], match[1]), self.message)
