"""Readings of this machine as the text that Prometheus scrapes, under the names of terms.py. No reading, no line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from inferometer.telemetry.machines.terms import COUNTERS, OURS

_NAMES = {one.term: one.family for one in OURS}
_ESCAPED = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


class Text:
    """Collects samples; `str()` is the body. A value that is None is not there."""

    def __init__(self) -> None:
        self._samples: dict[str, list[str]] = {}
        """By family: its type, and its samples."""

    def add(self, term: str, value: float | None, labels: Mapping[str, str] | None = None) -> None:
        """One sample of a term. Raises KeyError for a term that is none of ours."""
        if value is None:
            return
        family = _family(term)
        kind = "counter" if term in COUNTERS else "gauge"
        lines = self._samples.setdefault(family, [f"# TYPE {family} {kind}"])
        shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in (labels or {}).items())
        lines.append(f"{family}{{{shown}}} {float(value)!r}" if shown else f"{family} {float(value)!r}")

    def take(self, other: Text, without: Collection[str] = ()) -> None:
        """Add the samples of another text, but for those of some terms."""
        left_out = {_family(term) for term in without}
        for family, (kind, *samples) in other._samples.items():
            if family not in left_out:
                self._samples.setdefault(family, [kind]).extend(samples)

    def __str__(self) -> str:
        return "".join(f"{line}\n" for lines in self._samples.values() for line in lines)


def _family(term: str) -> str:
    return _NAMES[term] + ("_total" if term in COUNTERS else "")


def _escaped(text: str) -> str:
    return re.sub(r'[\\"\n]', lambda match: _ESCAPED[match[0]], text)
