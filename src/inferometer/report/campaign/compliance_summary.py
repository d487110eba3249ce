"""How tests stand, at a glance: verdict and label of each in one row, and the words that belong over every page of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from inferometer.report import checks
from inferometer.report.campaign import compliance, titles
from inferometer.report.campaign.cells import WITHHELD, amount, bounds
from inferometer.report.figures import clean

QUICK = ("QUICK", "Shortened for trying out: sizes are below the draft's, and the deviations say where.")
REDACTED = (
    "REDACTED",
    "What tells how much load the system takes is left out (draft 7.1), so this report cannot be carried out again.",
)
MEANINGS = {
    "VALID": "Every run behind these tests may be believed, and every search was settled.",
    "INVALID": "At least one test rests on runs that failed their checks: do not rely on its numbers.",
    "INCONCLUSIVE": "Nothing failed, but at least one test cannot show that its numbers hold.",
}
PARTIAL = "Ended early"
ENDS = {
    "interrupted": "interrupted by the tester",
    "server": "the server could not go on",
    "plan": "the plan cannot be carried out",
    "instrument": "the instrument could not go on",
}


def banners(campaign: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What nobody may overlook, each with its meaning: simulated, redacted, quick."""
    simulated = (checks.SIMULATED, checks.SIMULATED_MEANS)
    return [
        *([simulated] if campaign["simulated"] else []),
        *([REDACTED] if campaign["redacted"] else []),
        *([QUICK] if campaign["quick"] else []),
    ]


def overview(campaign: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row for each test: what it is about and came to, whether that may be believed, whether it was done by the rules."""
    return [row(test) for test in campaign["tests"]]


def row(test: Mapping[str, Any]) -> dict[str, str]:
    """Of one test."""
    first = titles.headline(test)
    return {
        "test": clean(test["test"]),
        "title": title(test),
        "section": clean(test["section"]),
        "label": clean(first["label"]) if first else "",
        "value": amount(first) if first else "not measured",
        "interval": bounds(first) if first else "",
        "verdict": clean(test["verdict"]["status"]),
        "partial": PARTIAL if test["problem"] else "",
        "compliance": compliance.label(test["compliance"]),
    }


def title(test: Mapping[str, Any]) -> str:
    """The test's title, with the draft's section."""
    return clean(test["title"] or titles.of(test).title or test["test"])


def problem(test: Mapping[str, Any]) -> str:
    """Why the test is partial, or nothing."""
    if not test["problem"] and not test["ended_by"]:
        return ""
    why = ENDS.get(str(test["ended_by"]))
    told = clean(test["problem"]) if test["problem"] else ""
    return f"{PARTIAL}{f', {why}' if why else ''}. {told}".strip()


def tally(campaign: Mapping[str, Any]) -> str:
    """`10 tests: 8 VALID, 1 INVALID, 1 INCONCLUSIVE`."""
    tests = campaign["tests"]
    counts = Counter(clean(test["verdict"]["status"]) for test in tests)
    listed = ", ".join(f"{counts[name]} {name}" for name in MEANINGS if counts[name])
    return f"{len(tests)} test{'' if len(tests) == 1 else 's'}: {listed}"


def runs(test: Mapping[str, Any]) -> str:
    """`12 runs: 11 VALID, 1 INVALID`."""
    counts = Counter(clean(run["verdict"]) for run in test["runs"])
    number = len(test["runs"])
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{number} run{'' if number == 1 else 's'}{': ' if listed else ''}{listed}"


def redacted(campaign: Mapping[str, Any]) -> bool:
    """Whether something was left out."""
    return bool(campaign["redacted"])


def reasons(verdict: Mapping[str, Any]) -> list[str]:
    """Each reason in words, with the run that it came from."""
    told = []
    for reason in verdict["reasons"]:
        run = f" (run {clean(reason['run'])})" if reason.get("run") else ""
        message = clean(reason["message"])
        told.append(message if message == WITHHELD else f"{message}{run}")
    return list(dict.fromkeys(told))
