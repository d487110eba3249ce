"""Checks of the system under test and its surroundings: declared where no client can observe it, and held against what was
observed where one can (draft 4.1, 4.5.1, 4.7, 4.8, 5.1.2.3, 7); and of the states it is switched into (5.7, 5.10)."""

from __future__ import annotations

import math
from urllib.parse import urlsplit

from inferometer.documents.note import Fact, Note
from inferometer.documents.summary import InstrumentAccount
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    declared,
    each_run,
    not_applicable,
    note,
    satisfied,
    unknown,
    violated,
)
from inferometer.judge.procedure_verdict import contradictions
from inferometer.plan.procedure_parameters import Guardrail
from inferometer.plan.published import in_own_words

CLOCKS_AGREE_MS = 10.0
"""Draft 4.7.2; up to and including (Q-clock-sync)."""


def declaration(name: str) -> RuleCheck:
    """A duty of the tester's that no client can observe: `declared` if declared kept, violated if declared not kept."""

    def check(evidence: Evidence) -> Ruling | None:
        kept = evidence.declaration(name)
        if kept is None:
            return unknown(note("not_declared", declaration=name))
        if kept:
            return declared(note("declared_kept", declaration=name))
        return violated(note("declared_not_kept", declaration=name))

    return check


def _in_own_words(code: str, words: str, **facts: Fact) -> Note:
    """The tester's own words, which may tell anything."""
    return Note(code, {**facts, "words": words}, capacity=True)


def boundary(evidence: Evidence) -> Ruling | None:
    """Draft 4.1: part of the plan, so declared before the start."""
    found = evidence.system.boundary
    return violated(note("no_boundary")) if found is None else satisfied(note("boundary", boundary=found))


def loaded(evidence: Evidence) -> Ruling | None:
    """Draft 4.5.1."""
    if evidence.test == "cold-start":
        return not_applicable(note("loading_measured"))
    if evidence.embedded:
        return satisfied(note("no_weights"))
    return declaration("model_loaded")(evidence)


# Clocks and network, draft 4.7.


def one_machine(evidence: Evidence) -> bool | None:
    """Whether client and server share a machine: known of the embedded server, else as declared, else as the address says.

    A loopback address that is declared to lead elsewhere (a tunnel) does. Another address than that says nothing.
    """
    if evidence.embedded:
        return True
    same = evidence.plan.declared.same_machine
    if same is not None:
        return same
    return True if _loopback(evidence) else None


def _loopback(evidence: Evidence) -> bool:
    host = urlsplit(evidence.plan.target.url or "").hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def same_machine(evidence: Evidence) -> Ruling | None:
    """Draft 4.7.1, of engines."""
    if evidence.system.boundary != "engine":
        return not_applicable(note("not_an_engine"))
    if evidence.embedded and evidence.plan.declared.same_machine is False:
        return violated(note("embedded_declared_separate"))
    together = one_machine(evidence)
    if together is None:
        return violated(note("no_loopback_address", capacity=True, url=evidence.plan.target.url))
    if not together:
        return violated(note("separate_machines"))
    if evidence.embedded or _loopback(evidence):
        return satisfied(note("over_loopback"))
    return declared(note("one_machine_declared"))


def _read_clock(evidence: Evidence) -> tuple[InstrumentAccount, str] | None:
    """The account of the run whose client knew the least good of its clock, and the run's name: not synchronised, an error
    unknown, the largest error. None: no run's client knew anything."""
    known = [
        (run.summary.instrument, run.name)
        for run in evidence.runs
        if run.summary.instrument.clock_state is not None
        and run.summary.instrument.clock_state.synchronised is not None
    ]

    def badness(one: tuple[InstrumentAccount, str]) -> tuple[bool, float]:
        state = one[0].clock_state
        assert state is not None
        return not state.synchronised, math.inf if state.error_ms is None else state.error_ms

    return max(known, key=badness, default=None)


def clocks_agree(evidence: Evidence) -> Ruling | None:
    """Draft 4.7.2: by what the client's machine says of its own clock. The server's is not visible to a client, so beside that
    there is only the tester's word."""
    if one_machine(evidence):
        return not_applicable(note("one_clock"))
    accuracy = evidence.plan.declared.clock_accuracy_ms
    if accuracy is not None and accuracy > CLOCKS_AGREE_MS:
        return violated(note("clock_accuracy", ms=accuracy, limit_ms=CLOCKS_AGREE_MS))
    read = _read_clock(evidence)
    state = None if read is None else read[0].clock_state
    if read is None or state is None:
        if accuracy is None:
            return None if evidence.ahead else unknown(note("clock_accuracy_not_declared"))
        return declared(note("clock_accuracy", ms=accuracy, limit_ms=CLOCKS_AGREE_MS))
    if not state.synchronised:
        if accuracy is None:
            return violated(note("clock_not_synchronised"), read[1])
        return declared(note("clock_accuracy_only_declared", ms=accuracy, limit_ms=CLOCKS_AGREE_MS))
    error = state.error_ms
    if error is not None and error <= CLOCKS_AGREE_MS:
        return satisfied(note("client_clock", ms=error, limit_ms=CLOCKS_AGREE_MS, method=state.method))
    if accuracy is not None:
        return declared(note("clock_accuracy", ms=accuracy, limit_ms=CLOCKS_AGREE_MS))
    return unknown(note("client_clock_not_shown", ms=error, limit_ms=CLOCKS_AGREE_MS), read[1])


def precise_clocks(evidence: Evidence) -> Ruling | None:
    """Draft 4.7.2: where less than a millisecond is needed, which no figure here does: each is a difference on one clock."""
    if one_machine(evidence):
        return not_applicable(note("one_clock"))
    read = _read_clock(evidence)
    if read is not None and read[0].clock_state is not None and read[0].clock_state.by_ptp:
        return satisfied(note("client_clock_by_ptp", method=read[0].clock_state.method))
    if "ptp" in (evidence.plan.declared.clock_sync or "").lower():
        return declared(note("ptp"))
    return not_applicable(note("clocks_not_compared"))


def clocks_disclosed(evidence: Evidence) -> Ruling | None:
    """Draft 4.7.2."""
    if one_machine(evidence):
        return not_applicable(note("one_clock"))
    method, accuracy = evidence.plan.declared.clock_sync, evidence.plan.declared.clock_accuracy_ms
    if method is not None and accuracy is not None:
        return satisfied(note("clock_sync", capacity=True, method=method, ms=accuracy))
    read = _read_clock(evidence)
    state = None if read is None else read[0].clock_state
    if state is None:
        return None if evidence.ahead else violated(note("clock_sync_not_declared"))
    if not state.synchronised:
        return violated(note("clock_not_synchronised"))
    own_words = method is not None
    method, accuracy = method or state.method, state.error_ms if accuracy is None else accuracy
    if accuracy is None:
        return violated(note("clock_sync_not_declared"))
    return satisfied(note("client_clock_sync", capacity=own_words, method=method, ms=accuracy))


def round_trip(evidence: Evidence) -> Ruling | None:
    """Draft 4.7.3: a TCP handshake takes one round trip. Runs of earlier versions have those of the load alone."""
    if evidence.system.boundary != "gateway":
        return not_applicable(note("not_a_gateway"))
    if one_machine(evidence):
        return not_applicable(note("no_network"))
    for run in evidence.runs:
        trips = run.summary.round_trips
        if trips is not None and trips.least_ms is not None:
            before, during, after = (
                None if one is None else one.p50_ms for one in (trips.before, trips.during, trips.after)
            )
            return satisfied(note("round_trips", before_ms=before, during_ms=during, after_ms=after))
    for run in evidence.runs:
        handshake = run.measured("connect_ms")
        if handshake is not None:
            return satisfied(note("handshakes", p50_ms=handshake.p50))
    words = evidence.plan.declared.network_rtt
    if words is not None:
        return declared(_in_own_words("network_rtt", words))
    return None if evidence.ahead else unknown(note("no_handshake"))


def adjustments(evidence: Evidence) -> Ruling | None:
    """Draft 4.7.3: the one that the instrument offers, which is observed, and what was done behind it, by the tester's word."""
    words = evidence.plan.declared.latency_adjustment
    shown = [less for run in evidence.runs if (less := run.summary.ttft_less_round_trip) is not None]
    if shown or (not evidence.runs and evidence.plan.instrument.subtract_rtt):
        most = max((one.round_trip_ms for one in shown), default=None)
        if words is not None:
            return declared(_in_own_words("latency_adjustments", words, most_ms=most))
        return satisfied(note("ttft_less_round_trip", most_ms=most))
    if words is None:
        return satisfied(note("no_adjustment"))
    return declared(_in_own_words("latency_adjustment", words))


# Guardrails, draft 4.8.


def filter_at_work(evidence: Evidence) -> MeasuredRun | None:
    """The first run in which a filter is seen at work: answers it ended, and requests that policy turned away. What the model
    itself refuses shows none; a run whose filters the test had switched on is none of these."""
    for run in evidence.runs:
        if run.state.get("guardrails", "baseline") != "baseline":
            continue
        signals = run.summary.refusals.by_signal
        if signals.get("finish_reason") or signals.get("policy_status"):
            return run
    return None


def filtered(evidence: Evidence) -> MeasuredRun | None:
    """The first run that disclosed filters that were on in it; a test that switches them begins without."""
    return next((run for run in evidence.runs if any(_rails(run))), None)


def guardrails(evidence: Evidence) -> Ruling | None:
    """Draft 4.8: their state is declared, and nothing observed contradicts it."""
    filters = evidence.system.filters
    if None in filters:
        return violated(note("guardrails_not_declared"))
    run = filter_at_work(evidence)
    if filters == (False, False) and run is not None:
        return violated(note("filter_at_work"), run.name)
    on = filtered(evidence)
    if evidence.system.boundary == "engine" and (any(filters) or on is not None):
        return violated(note("filter_inside_engine"), None if on is None else on.name)
    if not evidence.embedded:
        return declared(_filters(evidence))
    return satisfied(_filters(evidence) if any(filters) else note("no_guardrails"))


def _filters(evidence: Evidence) -> Note:
    input_filter, output_filter = evidence.system.filters
    return note("filters", input_filter=input_filter, output_filter=output_filter)


def _filter(side: int, name: str) -> RuleCheck:
    def check(evidence: Evidence) -> Ruling | None:
        on = evidence.system.filters[side]
        if on is None:
            return violated(note("filter_not_declared", filter=name))
        each = {_rails(run)[side] for run in evidence.runs}
        state = (
            note("filter_switched", filter=name)
            if {True, False} <= each
            else note("filter", filter=name, on=on)
        )
        return satisfied(state) if evidence.embedded else declared(state)

    return check


def _rails(run: MeasuredRun) -> tuple[bool | None, bool | None]:
    """The filters of prompts and of answers that a run disclosed."""
    rails = run.summary.sut.guardrails
    return rails.input_filter, rails.output_filter


def filter_names(evidence: Evidence) -> Ruling | None:
    """Draft 4.8.1: as far as there are any; of a test that switches filters, those of all its runs."""
    names = evidence.system.filter_names
    if evidence.system.filters == (False, False):
        on = [one.summary.sut.guardrails.names for one in evidence.runs if any(_rails(one))]
        if not on:
            return not_applicable(note("filters_off"))
        names = tuple(dict.fromkeys(name for one in on for name in one))
    if not names:
        return unknown(note("filters_not_named"))
    named = note("filter_names", names=names)
    return satisfied(named) if evidence.embedded else declared(named)


def refusals(evidence: Evidence) -> Ruling | None:
    """Draft 4.8.1: seen by their signals in each run."""
    total = sum(run.summary.refusals.requests for run in evidence.runs)
    return each_run(evidence.runs, lambda _: None, note("refusals", capacity=True, requests=total))


def _production(evidence: Evidence) -> bool:
    representative = evidence.plan.declared.production_representative
    return evidence.system.boundary == "gateway" and bool(representative)


def rails_default(evidence: Evidence) -> Ruling | None:
    """Draft 4.8.2."""
    if not _production(evidence):
        return not_applicable(note("not_production"))
    if None in evidence.system.filters:
        return unknown(note("guardrails_not_declared"))
    return declared(_filters(evidence)) if any(evidence.system.filters) else violated(_filters(evidence))


def rails_off_noted(evidence: Evidence) -> Ruling | None:
    """Draft 4.8.2."""
    if not _production(evidence):
        return not_applicable(note("not_production"))
    if None in evidence.system.filters:
        return violated(note("guardrails_off_not_declared"))
    if any(evidence.system.filters):
        return not_applicable(note("filters_on"))
    return satisfied(note("guardrails_off_disclosed"))


def rails_compared(evidence: Evidence) -> Ruling | None:
    """Draft 4.8.2."""
    if not _production(evidence):
        return not_applicable(note("not_production"))
    found: set[str] = set(_configurations(evidence) or ())
    if {"baseline", "full"} <= found:
        return satisfied(note("guardrails_compared"))
    return violated(note("guardrails_not_compared", configurations=tuple(sorted(found))))


def _configurations(evidence: Evidence) -> tuple[str, ...] | None:
    return evidence.parameters.configurations if isinstance(evidence.parameters, Guardrail) else None


# The configuration of a TTFT test, draft 5.1.2.3.


def model(evidence: Evidence) -> Ruling | None:
    """Name, version, and where that applies, quantization."""
    system = evidence.system
    if evidence.runs and system.model is None:
        return violated(note("no_model"))
    if system.model_version is None:
        return violated(note("no_model_version"))
    described = note(
        "model", model=system.model, version=system.model_version, quantization=system.quantization
    )
    return satisfied(described) if evidence.embedded else declared(described)


def hardware(evidence: Evidence) -> Ruling | None:
    """Type, count, and of accelerators their memory."""
    system = evidence.system
    name, count, memory = system.accelerator, system.accelerator_count, system.accelerator_memory
    if name is None or count is None:
        return violated(note("no_hardware"))
    if count and memory is None:
        return violated(note("no_accelerator_memory", accelerator=name, count=count))
    described = note("hardware", accelerator=name, count=count, memory=memory)
    return satisfied(described) if evidence.embedded else declared(described)


def caching(evidence: Evidence) -> Ruling | None:
    """Whether a prefix cache is on; one that is declared off and answers all the same is not off."""
    state = evidence.system.prefix_caching
    if state is None:
        return violated(note("prefix_caching_not_declared"))
    if state == "disabled":
        for run in evidence.runs:
            share = run.summary.throughput.cached_input_share
            if share:
                return violated(note("cache_at_work", share=share), run.name)
    described = note("prefix_caching", state=state)
    return satisfied(described) if evidence.embedded else declared(described)


# The states that a test switches the system into, draft 5.7 and 5.10: what each pass was, and that it was.


def switched(evidence: Evidence, what: str) -> Ruling:
    """Whether the system was in the states that it was switched into: verified, declared, or contradicted by a run."""
    states = [one for one in evidence.switches if one.what == what]
    wrong = next((one for one in states if one.status == "contradicted"), None)
    if wrong is not None:
        contradicted = note(
            "switch_contradicted", capacity=True, what=what, state=wrong.state, evidence=wrong.evidence
        )
        return violated(contradicted)
    for run in evidence.runs:
        against = contradictions(run.part, run.state, run.summary, what)
        if against:
            return violated(against[0], run.name)
    if not states:
        return violated(note("never_switched", what=what))
    unverified = tuple(one.state for one in states if one.status != "verified")
    if unverified:
        return declared(note("switches_declared", states=unverified))
    return satisfied(note("switches_verified", what=what))


def two_configurations(evidence: Evidence) -> Ruling | None:
    """Draft 5.7.2: off and on, and that it was."""
    if not evidence.runs:
        return None
    if not evidence.of("disabled") or not evidence.of("cold", "warm"):
        return violated(note("cache_passes_missing"))
    return switched(evidence, "prefix_cache")


def identical(evidence: Evidence) -> Ruling | None:
    """Draft 5.7.3."""
    passes = evidence.of("disabled", "cold", "warm")
    if not passes:
        return None
    first = passes[0].summary.workload.fingerprint

    def problem(run: MeasuredRun) -> Note | None:
        fingerprint = run.summary.workload.fingerprint
        return None if fingerprint is not None and fingerprint == first else note("other_requests")

    return each_run(passes, problem, note("same_requests", capacity=True, fingerprint=first))


def prefix_given(evidence: Evidence) -> Ruling | None:
    """Draft 5.7.2: what is shared, how long it is and by how many."""
    code = "D-4.3.1-prefix"
    found: list[tuple[str | None, str | None]] = [
        (next((item.value for item in run.summary.workload.items if item.id == code), None), run.name)
        for run in evidence.of("disabled", "cold", "warm")
    ]
    if not found:
        if evidence.items is None:
            return None
        found = [(evidence.items.get(code), None)]
    for value, run in found:
        if value in (None, "none"):
            return violated(note("no_shared_prefix"), run)
    free = any(in_own_words(workload) for workload, _ in evidence.workloads)
    return satisfied(note("item", capacity=free, value=found[0][0]))


def configurations(evidence: Evidence) -> Ruling | None:
    """Draft 5.10.2: those requested were measured, and were truly switched."""
    requested = _configurations(evidence)
    if requested is None:
        return None
    missing = tuple(name for name in ("baseline", "input", "output", "full") if name not in requested)
    if missing:
        return violated(note("configurations_left_out", configurations=missing))
    if not evidence.runs:
        return satisfied(note("configurations", configurations=requested))
    done = {run.at.configuration for run in evidence.levels}
    missing = tuple(name for name in requested if name not in done)
    if missing:
        return violated(note("not_measured", names=missing))
    return switched(evidence, "guardrails")


def baseline_first(evidence: Evidence) -> Ruling | None:
    """Draft 5.10.3."""
    measured = [str(run.at.configuration) for run in evidence.of("level")]
    if not measured:
        return None
    if measured[0] == "baseline":
        return satisfied(note("baseline_first"))
    return violated(note("other_first", configuration=measured[0]))


CHECKS: dict[str, RuleCheck] = {
    "D-1-terms": declaration("terminology_read"),
    "D-4.1-boundary": boundary,
    "D-4.5.1-load": loaded,
    "D-4.7.1-same-machine": same_machine,
    "D-4.7.2-ntp": clocks_agree,
    "D-4.7.2-ptp": precise_clocks,
    "D-4.7.2-report": clocks_disclosed,
    "D-4.7.3-rtt": round_trip,
    "D-4.7.3-document": adjustments,
    "D-4.8-account": guardrails,
    "D-4.8.1-input": _filter(0, "input"),
    "D-4.8.1-output": _filter(1, "output"),
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
    "D-5.7.2-prefix": prefix_given,
    "D-5.7.2-two-configs": two_configurations,
    "D-5.7.3-identical": identical,
    "D-5.10.2-configs": configurations,
    "D-5.10.3-run": baseline_first,
    "D-7.1-publish": declaration("publication_considered"),
    "D-7.2-vary": declaration("workloads_varied"),
    "D-7.4-isolated": declaration("isolated"),
    "D-7.4-recovery": declaration("recovery_ready"),
    "D-7.4-cascade": declaration("monitored"),
}
