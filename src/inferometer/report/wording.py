"""The words of a report: what is said of a check. Other rooms hand over codes, numbers and limits; `sentences` has the texts.

A status no entry foresees gets a general sentence, so an older report program still says something true about a newer run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.report.check_words import Wording
from inferometer.report.figures import clean, figure, share
from inferometer.report.sentences import CHECKS, LATE_CAUSES, VARIANT

_GENERAL = {
    "pass": "{title}: as it should be (value {value}, limit {limit}).",
    "fail": "{title}: outside its limit (value {value}, limit {limit}).",
    "unsure": "{title}: could not be decided (value {value}, limit {limit}).",
    "note": "{title}: worth knowing (value {value}, limit {limit}).",
    "na": "{title}: does not apply to this run.",
}

STATUS = {"fail": "FAIL", "unsure": "UNSURE", "note": "NOTE", "pass": "PASS", "na": "N/A"}
"""Check status to the word printed, worst first: the order in which checks are listed."""

VERDICTS = {
    "VALID": "Every check that decides passed: these numbers may be believed.",
    "INVALID": "At least one check failed: do not rely on these numbers.",
    "INCONCLUSIVE": "Nothing failed, but this run cannot show that its numbers hold.",
}
SIMULATED_VALID = "Every check that applies passed: these numbers are the model's, and say nothing of a server by themselves."

SIMULATED = "SIMULATED"
"""Over every report of a simulation."""
SIMULATED_MEANS = (
    "No server was measured: a model of an engine ran this plan in virtual time. No compliance is claimed."
)
COLD_START = "COLD START"
"""Over every report of a run whose first requests are what counts (draft 4.5.3)."""
COLD_START_MEANS = "No warm-up, by intent: the load's first requests are among these, which are no figures of a steady state."
_NA_SIMULATED = "Time was simulated, so there is nothing here to look at."


def marks(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What has to stand over everything that is said of this run: a word, and what it means."""
    found = [(SIMULATED, SIMULATED_MEANS)] if summary["run"]["simulated"] else []
    return found + ([(COLD_START, COLD_START_MEANS)] if summary["warm_up"]["skipped"] else [])


def meaning(summary: Mapping[str, Any]) -> str:
    """The verdict in a sentence."""
    status = summary["verdict"]["status"]
    simulated = summary["run"]["simulated"] and status == "VALID"
    return SIMULATED_VALID if simulated else VERDICTS[status]


def _entry(check: Mapping[str, Any]) -> Wording | None:
    code = str(check["code"])
    variant = (check.get("facts") or {}).get(VARIANT.get(code))
    return CHECKS.get(f"{code}:{variant}") or CHECKS.get(code)


def _kind(check: Mapping[str, Any]) -> str:
    entry = _entry(check)
    return entry.kind if entry else {"share": "share", "ms": "ms"}.get(check.get("unit") or "", "number")


def quantity(check: Mapping[str, Any], which: str) -> str:
    """The check's `value` or `limit` with its unit; `[lo, hi]` as `lo to hi`."""
    amount = check.get(which)
    if isinstance(amount, list | tuple):
        return " to ".join(quantity({**check, which: part}, which) for part in amount)
    if amount is None:
        return "not known" if which == "value" else "no limit"
    kind = _kind(check)
    if kind == "share":
        return share(float(amount))
    text = figure(amount, trim=True)
    return f"{text} ms" if kind == "ms" else text


def _fact(value: object, name: str = "") -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{clean(key)} {_fact(part)}" for key, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_fact(part, name) for part in value) or "none"
    if value is None:
        return "not known"
    if name == "cause":
        return LATE_CAUSES.get(str(value), clean(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return clean(value)
    return share(value) if name.endswith("_share") else figure(value, trim=True)


def title(check: Mapping[str, Any]) -> str:
    """The check's name in words."""
    entry = _entry(check)
    return entry.title if entry else clean(check["code"]).replace("_", " ").capitalize()


def sentence(check: Mapping[str, Any]) -> str:
    """What the check found: value, limit and facts, without advice. Never raises on a code or status it does not know."""
    entry = _entry(check)
    status = str(check["status"])
    if status == "na" and (check.get("facts") or {}).get("simulated"):
        return _NA_SIMULATED
    says = entry.says if entry else {}
    unknown = says.get(f"{status} unknown") if check.get("value") is None else None
    pattern = unknown or says.get(status) or _GENERAL.get(status, _GENERAL["note"])
    said = [
        pattern.format(title=title(check), value=quantity(check, "value"), limit=quantity(check, "limit"))
    ]
    facts = {key: value for key, value in (check.get("facts") or {}).items() if value not in (None, {}, [])}
    for needed, clause in (entry.clauses if entry and status != "na" else {}).items():
        if all(name in facts for name in needed):
            said.append(clause.format(**{name: _fact(facts[name], name) for name in needed}))
    return " ".join(said)


def advice(check: Mapping[str, Any]) -> str | None:
    """What to do next, where something is to be done."""
    entry = _entry(check)
    return entry.advice.get(str(check["status"])) if entry else None


def words(check: Mapping[str, Any]) -> str:
    """The check in words: sentence, then advice. This is the `message` in summary.json."""
    return " ".join(part for part in (sentence(check), advice(check)) if part)


def reasons(checks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Why the verdict is not VALID: the failed checks, then the undecided ones, in the order judged. Empty when VALID."""
    deciding = [check for status in ("fail", "unsure") for check in checks if check["status"] == status]
    return [
        {
            "code": check["code"],
            "message": words(check),
            "value": check.get("value"),
            "limit": check.get("limit"),
        }
        for check in deciding
    ]


def ordered(checks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The checks, worst status first, else in the order judged."""
    rank = {status: position for position, status in enumerate(STATUS)}
    return sorted(checks, key=lambda check: rank.get(str(check["status"]), len(rank)))
