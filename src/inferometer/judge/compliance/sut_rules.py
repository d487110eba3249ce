"""Checks of the system under test and its surroundings, draft 4.1, 4.5.1, 4.7, 4.8, 5.1.2.3 and 7: declared where nobody can
see it, and held against what was seen where somebody can."""

from __future__ import annotations

from urllib.parse import urlsplit

from inferometer.judge.compliance.evidence import (
    Check,
    Evidence,
    Ran,
    Seen,
    beside,
    broken,
    every,
    met,
    number,
    told,
    unknown,
)
from inferometer.plan.declarations import NO_ADJUSTMENT

CLOCKS_AGREE_MS = 10.0
"""Draft 4.7.2; up to and including (Q-clock-sync)."""
SEPARATE = "client and server are on separate machines"


def declaration(name: str, words: str) -> Check:
    """A duty of the tester's that nobody can see kept: `declared` if it is declared kept, broken if declared not kept."""

    def look(evidence: Evidence) -> Seen | None:
        said = evidence.declared(name)
        if said is None:
            return unknown(f"not declared: {words} (--declare {name})")
        return told(words) if said else broken(f"declared otherwise: {name} is no")

    return look


def boundary(evidence: Evidence) -> Seen | None:
    """Draft 4.1: part of the plan, so declared before the start."""
    found = evidence.sut("boundary")
    return broken("no boundary is declared (--boundary)") if found is None else met(f"boundary: {found}")


def loaded(evidence: Evidence) -> Seen | None:
    """Draft 4.5.1."""
    if evidence.test == "cold-start":
        return beside("loading is what is measured")
    if evidence.embedded:
        return met("the reference server has no weights to load")
    return declaration("model_loaded", "the model was in accelerator memory before the warm-up")(evidence)


# Clocks and network, draft 4.7.


def together(evidence: Evidence) -> bool | None:
    """Whether client and server share a machine: seen of the embedded server, else declared, else as the address says.

    A loopback address that somebody declares to lead elsewhere (a tunnel) does. Another address than that says nothing.
    """
    said = evidence.declared("same_machine")
    if evidence.embedded:
        return True
    if said is not None:
        return bool(said)
    return True if _loopback(evidence) else None


def _loopback(evidence: Evidence) -> bool:
    host = urlsplit(evidence.plan["target"]["url"] or "").hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def same_machine(evidence: Evidence) -> Seen | None:
    """Draft 4.7.1, of engines."""
    if evidence.sut("boundary") != "engine":
        return beside("a duty of engines' tests")
    if evidence.embedded and evidence.declared("same_machine") is False:
        return broken("declared to be separate machines, yet the embedded server was measured")
    if together(evidence) is None:
        return broken(f"{evidence.plan['target']['url']} is no loopback address (or --declare same_machine)")
    if not together(evidence):
        return broken(SEPARATE)
    seen = evidence.embedded or _loopback(evidence)
    return met("over loopback") if seen else told("one machine, though its address is no loopback")


def clocks_agree(evidence: Evidence) -> Seen | None:
    """Draft 4.7.2."""
    if together(evidence):
        return beside("one machine, one clock")
    accuracy = evidence.declared("clock_accuracy_ms")
    if accuracy is None:
        return unknown(
            "clocks of separate machines: accuracy not declared (--declare clock_accuracy_ms=N, or same_machine)"
        )
    said = f"clocks agree to {number(accuracy)} ms, limit {number(CLOCKS_AGREE_MS)} ms"
    return told(said) if accuracy <= CLOCKS_AGREE_MS else broken(said)


def precise_clocks(evidence: Evidence) -> Seen | None:
    """Draft 4.7.2: where less than a millisecond is needed, which no figure here does: each is a difference on one clock."""
    if together(evidence):
        return beside("one machine, one clock")
    if "ptp" in str(evidence.declared("clock_sync") or "").lower():
        return told("PTP")
    return beside("no figure compares two clocks, so none needs them to agree below a millisecond")


def clocks_told(evidence: Evidence) -> Seen | None:
    """Draft 4.7.2."""
    if together(evidence):
        return beside("one machine, one clock")
    method, accuracy = evidence.declared("clock_sync"), evidence.declared("clock_accuracy_ms")
    if method is None or accuracy is None:
        return broken(
            "how clocks are synchronised, and how well, is not stated (--declare clock_sync=..., clock_accuracy_ms=N)"
        )
    return met(f"{method}; {number(accuracy)} ms")


def round_trip(evidence: Evidence) -> Seen | None:
    """Draft 4.7.3: a TCP handshake takes one round trip."""
    if evidence.sut("boundary") != "gateway":
        return beside("a duty of gateways' tests")
    if together(evidence):
        return beside("no network in between")
    for one in evidence.runs:
        shaken = one.measured("connect_ms")
        if shaken is not None:
            return met(f"TCP handshakes took P50 {number(shaken['p50'])} ms, reported as connect_ms")
    said = evidence.declared("network_rtt")
    if said is not None:
        return told(str(said))
    return (
        None
        if evidence.ahead
        else unknown("no connection was opened while measuring (--declare network_rtt=...)")
    )


def adjustments(evidence: Evidence) -> Seen | None:
    """Draft 4.7.3."""
    said = evidence.declared("latency_adjustment")
    return met(NO_ADJUSTMENT) if said is None else told(str(said))


# Guardrails, draft 4.8.


def _filtered(evidence: Evidence) -> Ran | None:
    """The first run in which a filter is seen at work: answers it ended, and requests that policy turned away. What the model
    itself refuses shows none."""
    for one in evidence.runs:
        signals = (one.summary.get("refusals") or {}).get("by_signal") or {}
        if signals.get("finish_reason") or signals.get("policy_status"):
            return one
    return None


def guardrails(evidence: Evidence) -> Seen | None:
    """Draft 4.8: their state is declared, and nothing seen contradicts it."""
    if None in evidence.filters:
        return broken("the state of guardrails is not declared (--guardrails)")
    seen = _filtered(evidence)
    if evidence.filters == (False, False) and seen is not None:
        return broken("declared off, yet a content filter ended answers", seen.name)
    if evidence.sut("boundary") == "engine" and any(evidence.filters):
        return broken("declared on, yet the boundary engine leaves filters out (draft 4.1.1)")
    return met("the reference server has none") if evidence.embedded else told(_rails(evidence))


def _rails(evidence: Evidence) -> str:
    words = {True: "on", False: "off", None: "not declared"}
    return f"input filter {words[evidence.filters[0]]}, output filter {words[evidence.filters[1]]}"


def _filter(side: int, words: str) -> Check:
    def look(evidence: Evidence) -> Seen | None:
        if evidence.filters[side] is None:
            return broken(f"{words}: not declared (--guardrails)")
        said = f"{words}: {'on' if evidence.filters[side] else 'off'}"
        return met(said) if evidence.embedded else told(said)

    return look


def filter_names(evidence: Evidence) -> Seen | None:
    """Draft 4.8.1: as far as there are any."""
    if evidence.filters == (False, False):
        return beside("none are on")
    names = evidence.sut("guardrails")["names"]
    return (
        told(", ".join(names)) if names else unknown("safety systems are not named (--guardrails both:NAME)")
    )


def refusals(evidence: Evidence) -> Seen | None:
    """Draft 4.8.1: seen by their signals in each run."""

    def count(one: Ran) -> int:
        told_apart = one.summary.get("refusals")
        found = (
            told_apart["requests"] if told_apart else one.summary["requests"]["by_error"].get("refused", 0)
        )
        return int(found or 0)

    total = sum(map(count, evidence.runs))
    return every(evidence.runs, lambda _: None, f"{total} requests were refused, by the server's own signals")


def _production(evidence: Evidence) -> bool:
    return evidence.sut("boundary") == "gateway" and bool(evidence.declared("production_representative"))


def rails_default(evidence: Evidence) -> Seen | None:
    """Draft 4.8.2."""
    if not _production(evidence):
        return beside("not declared a production-representative gateway")
    if None in evidence.filters:
        return unknown("the state of guardrails is not declared (--guardrails)")
    return told(_rails(evidence)) if any(evidence.filters) else broken(_rails(evidence))


def rails_off_noted(evidence: Evidence) -> Seen | None:
    """Draft 4.8.2."""
    if not _production(evidence):
        return beside("not declared a production-representative gateway")
    if None in evidence.filters:
        return broken("whether they are off is not declared (--guardrails)")
    return beside("they are on") if any(evidence.filters) else met("noted among the disclosures: off")


def rails_compared(evidence: Evidence) -> Seen | None:
    """Draft 4.8.2."""
    if not _production(evidence):
        return beside("not declared a production-representative gateway")
    asked = set(evidence.parameter("configurations") or ())
    return (
        met("off and on")
        if {"baseline", "full"} <= asked
        else broken(f"only: {', '.join(sorted(asked)) or 'none'}")
    )


# The configuration of a TTFT test, draft 5.1.2.3.


def model(evidence: Evidence) -> Seen | None:
    """Name, version, and where that applies, quantization."""
    name = evidence.sut("model") if evidence.runs else evidence.plan["target"]["model"]
    version, quantized = evidence.sut("model_version"), evidence.sut("quantization")
    if evidence.runs and name is None:
        return broken("no model is named")
    if version is None:
        return broken("the model's version is not declared (sut.model_version)")
    said = f"{name or 'the one served'}, version {version}, quantization {quantized or 'none declared'}"
    return met(said) if evidence.embedded else told(said)


def hardware(evidence: Evidence) -> Seen | None:
    """Type, count, and of accelerators their memory."""
    name, count, memory = (evidence.sut(f"accelerator{end}") for end in ("", "_count", "_memory"))
    if name is None or count is None:
        return broken("no hardware is declared (--hardware H100x4:80GB)")
    if count and memory is None:
        return broken(f"the memory of {name} is not declared (--hardware {name}x{count}:80GB)")
    said = f"{name} x {count}, {memory}" if count else f"{name}, no accelerator"
    return met(said) if evidence.embedded else told(said)


def caching(evidence: Evidence) -> Seen | None:
    """Whether a prefix cache is on; one that is declared off and answers all the same is not off."""
    state = evidence.sut("prefix_caching")
    if state is None:
        return broken("whether prefix caching is on is not declared (--prefix-caching)")
    if state == "disabled":
        for one in evidence.runs:
            share = one.summary["throughput"]["cached_input_share"]
            if share:
                return broken(
                    f"declared disabled, yet {share:.1%} of the input tokens came from a cache", one.name
                )
    return met(f"prefix caching {state}") if evidence.embedded else told(f"prefix caching {state}")


CHECKS: dict[str, Check] = {
    "D-1-terms": declaration("terminology_read", "the terminology draft was read beside this one"),
    "D-4.1-boundary": boundary,
    "D-4.5.1-load": loaded,
    "D-4.7.1-same-machine": same_machine,
    "D-4.7.2-ntp": clocks_agree,
    "D-4.7.2-ptp": precise_clocks,
    "D-4.7.2-report": clocks_told,
    "D-4.7.3-rtt": round_trip,
    "D-4.7.3-document": adjustments,
    "D-4.8-account": guardrails,
    "D-4.8.1-input": _filter(0, "input filter"),
    "D-4.8.1-output": _filter(1, "output filter"),
    "D-4.8.1-names": filter_names,
    "D-4.8.1-refusals": refusals,
    "D-4.8.2-default": rails_default,
    "D-4.8.2-disabled": rails_off_noted,
    "D-4.8.2-compare": rails_compared,
    "D-5.1.2-sut": boundary,
    "D-5.1.2-model": model,
    "D-5.1.2-hardware": hardware,
    "D-5.1.2-cache": caching,
    "D-5.1.5.1-sut": boundary,
    "D-5.1.5.1-cache": caching,
    "D-7.1-publish": declaration(
        "publication_considered", "what publishing capacity figures exposes was weighed"
    ),
    "D-7.2-vary": declaration(
        "workloads_varied", "workloads were varied and held against production traffic"
    ),
    "D-7.4-isolated": declaration("isolated", "the system is isolated"),
    "D-7.4-recovery": declaration("recovery_ready", "recovery is prepared"),
    "D-7.4-cascade": declaration("monitored", "cascading failures are watched for"),
}
