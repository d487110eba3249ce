"""What a report says of a check: its title, its sentence, what to do next. The texts themselves are in `check_sentences`.

A status or code without an entry gets a general sentence: an older report program still says something true about a newer run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inferometer.documents.summary import Summary
from inferometer.documents.verdict import CheckResult
from inferometer.errors import SHORTAGES
from inferometer.judge.verdict import Check
from inferometer.metrics.catalogue import METRICS, RATES
from inferometer.metrics.statistics import STATISTICS
from inferometer.report.check_sentences import CHECKS, LATE_CAUSES, VARIANT, Wording
from inferometer.report.figures import clean, figure, share
from inferometer.report.steadiness_sentences import SERIES

AnyCheck = Check | CheckResult
"""As judged, or as a summary has it."""

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
    "VALID": "Every deciding check passed: these numbers can be trusted.",
    "INVALID": "At least one check failed: do not rely on these numbers.",
    "INCONCLUSIVE": "Nothing failed, but this run has too little evidence for its numbers.",
}
SIMULATED_VALID = (
    "Every applicable check passed: these numbers describe the model, and by themselves no server."
)

SIMULATED = "SIMULATED"
"""Over every report of a simulation."""
SIMULATED_MEANS = (
    "No server was measured: a model of an engine ran this plan in virtual time. No compliance is claimed."
)
COLD_START = "COLD START"
"""Over every report of a run whose first requests are what counts (draft 4.5.3)."""
COLD_START_MEANS = (
    "Deliberately no warm-up: these figures include the load's first requests, not a steady state only."
)
_NA_SIMULATED = "Time was simulated, so this check does not apply."


def marks(summary: Summary) -> list[tuple[str, str]]:
    """The banners that belong over every report of this run: a word, and its meaning."""
    found = [(SIMULATED, SIMULATED_MEANS)] if summary.run.simulated else []
    return found + ([(COLD_START, COLD_START_MEANS)] if summary.warm_up.skipped else [])


def meaning(summary: Summary) -> str:
    """The verdict in a sentence."""
    status = summary.verdict.status
    return SIMULATED_VALID if summary.run.simulated and status == "VALID" else VERDICTS[status]


def _entry(check: AnyCheck) -> Wording | None:
    variant = check.facts.get(VARIANT.get(check.code, ""))
    return CHECKS.get(f"{check.code}:{variant}") or CHECKS.get(check.code)


def value(check: AnyCheck) -> str:
    """What was observed, with its unit; a range as `low to high`."""
    return "not known" if check.value is None else _quantity(check, check.value)


def limit(check: AnyCheck) -> str:
    """What it is held to, with its unit; a range as `low to high`."""
    return "no limit" if check.limit is None else _quantity(check, check.limit)


def _quantity(check: AnyCheck, amount: float | Sequence[float]) -> str:
    if isinstance(amount, list | tuple):
        return " to ".join(_quantity(check, part) for part in amount)
    assert isinstance(amount, int | float)
    entry = _entry(check)
    kind = entry.kind if entry else {"share": "share", "ms": "ms"}.get(check.unit or "", "number")
    if kind == "share":
        return share(float(amount))
    text = figure(amount, trim=True)
    return f"{text} ms" if kind == "ms" else text


def _fact(fact: object, name: str = "") -> str:
    if isinstance(fact, Mapping):
        return ", ".join(f"{clean(key)} {_fact(part)}" for key, part in fact.items()) or "none"
    if isinstance(fact, list | tuple):
        return ", ".join(_fact(part, name) for part in fact) or "none"
    if fact is None:
        return "not known"
    if name in ("headline", "beyond"):
        return headline_words(str(fact))
    if name == "cause":
        return LATE_CAUSES.get(str(fact), clean(fact))
    if name == "shortages":
        return SHORTAGES.get(str(fact), (clean(fact),))[0]
    if name in ("series", "source"):
        return SERIES.get(str(fact), clean(fact))
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return clean(fact)
    return share(fact) if name.endswith("_share") else figure(fact, trim=True)


def headline_words(headline: str) -> str:
    """A headline's name and statistic, as `ttft_ms p99`, in words; the name itself where it is not known."""
    name, _, statistic = headline.partition(" ")
    entry = METRICS.get(name) or RATES.get(name)
    return clean(f"{entry.short if entry else name} {STATISTICS.get(statistic, statistic)}".strip())


def title(check: AnyCheck) -> str:
    """The check's name in words."""
    entry = _entry(check)
    return entry.title if entry else clean(check.code).replace("_", " ").capitalize()


def sentence(check: AnyCheck) -> str:
    """The outcome: value, limit and facts, without advice. Never raises on a code or status it does not know."""
    entry = _entry(check)
    if check.status == "na" and check.facts.get("simulated"):
        return _NA_SIMULATED
    said = _of_outcome(entry.says, check) if entry else None
    pattern = said or _GENERAL.get(check.status, _GENERAL["note"])
    parts = [pattern.format(title=title(check), value=value(check), limit=limit(check))]
    facts = {key: fact for key, fact in check.facts.items() if fact not in (None, {}, [])}
    explained = check.status != "na" or "silent" in facts  # of what does not apply: what it would need
    for needed, clause in (entry.clauses if entry and explained else {}).items():
        if all(name in facts for name in needed):
            parts.append(clause.format(**{name: _fact(facts[name], name) for name in needed}))
    return " ".join(parts)


def advice(check: AnyCheck) -> str | None:
    """What to do next, where something is to be done."""
    entry = _entry(check)
    return _of_outcome(entry.advice, check) if entry else None


def _of_outcome(words: Mapping[str, str], check: AnyCheck) -> str | None:
    """What is said of this status, or of it without a value."""
    unknown = words.get(f"{check.status} unknown") if check.value is None else None
    return unknown or words.get(check.status)


def message(check: AnyCheck) -> str:
    """Sentence, then advice: the `message` in summary.json."""
    return " ".join(part for part in (sentence(check), advice(check)) if part)


def ordered(checks: Iterable[CheckResult]) -> list[CheckResult]:
    """The checks, worst status first, else in the order judged."""
    rank = {status: position for position, status in enumerate(STATUS)}
    return sorted(checks, key=lambda check: rank.get(check.status, len(rank)))
