"""Checks of the tests that switch the system under test, draft 5.7 and 5.10: what each pass was, and that it was."""

from __future__ import annotations

from typing import Any

from inferometer.judge.compliance.evidence import Check, Evidence, Ran, Seen, broken, every, met, told
from inferometer.judge.procedure_verdict import contradictions


def _switched(evidence: Evidence, what: str) -> Seen:
    states = [one for one in evidence.switches if one["what"] == what]
    wrong = next((one for one in states if one["status"] == "contradicted"), None)
    if wrong is not None:
        return broken(
            f"{what} {wrong['state']} is contradicted: {wrong.get('evidence') or 'see the switches'}"
        )
    for ran in evidence.runs:
        against = contradictions({"run": ran.name, "part": ran.part, "state": ran.state}, ran.summary, what)
        if against:
            return broken(against[0]["message"], ran.name)
    declared = [str(one["state"]) for one in states if one["status"] != "verified"]
    if not states:
        return broken(f"{what} was never switched")
    return told(f"by somebody's word: {', '.join(declared)}") if declared else met(f"{what}: verified")


def two_configurations(evidence: Evidence) -> Seen | None:
    """Draft 5.7.2: off and on, and that it was."""
    if not evidence.runs:
        return None
    if not evidence.of("disabled") or not evidence.of("cold", "warm"):
        return broken("not measured both without and with the cache")
    return _switched(evidence, "prefix_cache")


def identical(evidence: Evidence) -> Seen | None:
    """Draft 5.7.3."""
    passes = evidence.of("disabled", "cold", "warm")
    if not passes:
        return None
    first = passes[0].summary["workload"]["fingerprint"]

    def wrong(one: Ran) -> str | None:
        found = one.summary["workload"]["fingerprint"]
        return (
            None
            if found is not None and found == first
            else "not shown to be the same requests as the first pass"
        )

    return every(passes, wrong, f"requests {str(first)[:12]} in each pass")


def prefix_given(evidence: Evidence) -> Seen | None:
    """Draft 5.7.2: what is shared, how long it is and by how many."""
    found: list[tuple[Any, str | None]] = [
        (
            next((i["value"] for i in one.summary["workload"]["items"] if i["id"] == "D-4.3.1-prefix"), None),
            one.name,
        )
        for one in evidence.of("disabled", "cold", "warm")
    ]
    if not found:
        found = [((evidence.items or {}).get("D-4.3.1-prefix"), None)]
        if evidence.items is None:
            return None
    for said, run in found:
        if said in (None, "none"):
            return broken("requests share no prefix that is told", run)
    return met(str(found[0][0]))


def configurations(evidence: Evidence) -> Seen | None:
    """Draft 5.10.2: those that were asked for, were measured, and were truly switched."""
    asked = evidence.parameter("configurations")
    if asked is None:
        return None
    missing = [name for name in ("baseline", "input", "output", "full") if name not in asked]
    if missing:
        return broken(f"without {', '.join(missing)}")
    if evidence.runs:
        done = {one.at.get("configuration") for one in evidence.levels}
        missing = [name for name in asked if name not in done]
        return broken(f"not measured: {', '.join(missing)}") if missing else _switched(evidence, "guardrails")
    return met(", ".join(asked))


def baseline_first(evidence: Evidence) -> Seen | None:
    """Draft 5.10.3."""
    found = [one.at.get("configuration") for one in evidence.of("level")]
    if not found:
        return None
    return met("baseline first") if found[0] == "baseline" else broken(f"{found[0]} came first")


CHECKS: dict[str, Check] = {
    "D-5.7.2-prefix": prefix_given,
    "D-5.7.2-two-configs": two_configurations,
    "D-5.7.3-identical": identical,
    "D-5.10.2-configs": configurations,
    "D-5.10.3-run": baseline_first,
}
