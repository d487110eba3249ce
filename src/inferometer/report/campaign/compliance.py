"""What a report says of compliance: the label in words, and each rule that was not simply kept.

judge/compliance works the statement out; here it is read. A test without one claims nothing, and the report says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from inferometer.report.figures import clean

NONE_CLAIMED = "none claimed"
WORDS = {
    "violated": "violated",
    "unknown": "unknown",
    "declared": "kept by the tester's word",
    "satisfied": "satisfied",
    "not applicable": "not applicable",
}


def label(statement: Mapping[str, Any] | None) -> str:
    """`unconditionally compliant`, `conditionally compliant`, `not compliant`, or that none is claimed."""
    return clean(statement["label"]) if statement and statement.get("label") else NONE_CLAIMED


def findings(statement: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Each finding that is not simply in order: deviations in the judge's order, then what is taken on trust."""
    declared = [one for one in (statement or {}).get("findings") or [] if one["state"] == "declared"]
    return [*deviations(statement), *map(_told, declared)]


def deviations(statement: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """What is broken or unknown, in the judge's order: {state, class, id, level, text}."""
    return [_told(one) for one in (statement or {}).get("deviations") or []]


def _told(finding: Mapping[str, Any]) -> dict[str, str]:
    return {
        "state": WORDS.get(finding["state"], clean(finding["state"])),
        "class": {"violated": "fail", "unknown": "unsure"}.get(finding["state"], "note"),
        "id": clean(finding["id"]),
        "level": clean(finding["level"]),
        "text": sentence(finding),
    }


def sentence(finding: Mapping[str, Any]) -> str:
    """The rule, then what was found, with the first run that shows it."""
    run = f" (run {finding['run']})" if finding.get("run") else ""
    return clean(" ".join(str(finding[key]) for key in ("text", "note") if finding.get(key)) + run)


def limitations(statement: Mapping[str, Any] | None) -> list[str]:
    """What a reader has to take on trust."""
    return [clean(one) for one in (statement or {}).get("limitations") or []]


def tally(statement: Mapping[str, Any] | None) -> str:
    """`41 satisfied, 2 violated`: how many findings there are of each state."""
    counts = Counter(one["state"] for one in (statement or {}).get("findings") or [])
    return ", ".join(f"{counts[name]} {words}" for name, words in WORDS.items() if counts[name])
