"""What a report says of compliance: the label in words, and each rule that was not simply kept.

The judge works the statement out; here it is read. A test without one claims nothing, and the report says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from inferometer.report.figures import clean

NONE_CLAIMED = "none claimed"
ORDER = ("violated", "unknown", "declared")
"""Statuses that a reader has to know of, worst first; `satisfied` and `not applicable` are counted."""

WORDS = {
    "violated": "violated",
    "unknown": "unknown",
    "declared": "kept by the tester's word",
    "satisfied": "satisfied",
    "not applicable": "not applicable",
}


def label(statement: Mapping[str, Any] | None) -> str:
    """`unconditionally compliant`, `conditionally compliant`, `not compliant`, or that none is claimed."""
    if not statement or not statement.get("label"):
        return NONE_CLAIMED
    return clean(statement["label"]).replace("_", " ")


def findings(statement: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Each finding that is not simply in order, worst first: {status, id, level, section, text}."""
    told = [one for one in (statement or {}).get("findings") or [] if status(one) in ORDER]
    ordered = sorted(told, key=lambda one: ORDER.index(status(one)))
    return [
        {
            "status": WORDS[status(one)],
            "class": {"violated": "fail", "unknown": "unsure"}.get(status(one), "note"),
            "id": clean(one["id"]),
            "level": clean(one.get("level") or ""),
            "section": clean(one.get("section") or ""),
            "text": sentence(one),
        }
        for one in ordered
    ]


def deviations(statement: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """The findings that are deviations: violated, or unknown."""
    return [one for one in findings(statement) if one["class"] in ("fail", "unsure")]


def status(finding: Mapping[str, Any]) -> str:
    """A finding's status with blanks in place of underscores."""
    return str(finding["status"]).replace("_", " ")


def sentence(finding: Mapping[str, Any]) -> str:
    """The rule, then what was found."""
    return clean(" ".join(str(finding[key]) for key in ("text", "detail") if finding.get(key)))


def tally(statement: Mapping[str, Any] | None) -> str:
    """`41 satisfied, 2 violated`: how many findings there are of each status."""
    counts = Counter(status(one) for one in (statement or {}).get("findings") or [])
    return ", ".join(f"{counts[name]} {words}" for name, words in WORDS.items() if counts[name])
