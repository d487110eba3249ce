"""Checks of what is measured at all: subjects that the draft leaves out (3), and what does not belong inside a declared
boundary (4.1.1, 4.1.2). A client sees hints of these and no more; the notes say what was seen."""

from __future__ import annotations

from urllib.parse import urlsplit

from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    not_applicable,
    note,
    satisfied,
    unknown,
    violated,
)
from inferometer.judge.compliance.sut_rules import filter_at_work, filtered, one_machine

ON_DEVICE_SERVERS = ("ollama", "lm studio", "lmstudio", "mlx")
"""Servers made for the machine of one user, by what they say of themselves or are declared to be."""
ON_DEVICE_HARDWARE = ("apple m", "jetson", "snapdragon", "raspberry")
NOT_AUTOREGRESSIVE = ("diffusion", "llada", "encoder-only", "bert-")
"""Parts of the names of models that are not transformers writing one token after the other."""


def _text(*parts: str | None) -> str:
    return " ".join(part for part in parts if part).lower()


def _named(text: str, parts: tuple[str, ...]) -> str | None:
    return next((part for part in parts if part in text), None)


def scope(evidence: Evidence) -> Ruling | None:
    """Draft 3: on-device inference and models that do not write token by token are out of scope. Training and products
    are nothing that a run could be about; that tasks succeed is stated as completion, not as quality.

    What hints at them leaves the rule unknown: a server for one user's machine may be deployed as a service too.
    """
    if not evidence.runs:
        return None
    summary = evidence.runs[0].summary
    sut, machine = summary.sut, summary.environment.os
    served = _named(_text(sut.observed.server, sut.software), ON_DEVICE_SERVERS)
    hardware = _named(_text(sut.accelerator), ON_DEVICE_HARDWARE)
    kind = _named(_text(sut.model), NOT_AUTOREGRESSIVE)
    if kind is not None:
        return unknown(note("perhaps_not_autoregressive", model=sut.model, part=kind))
    if not evidence.embedded and one_machine(evidence):
        if served is not None:
            return unknown(note("perhaps_on_device", hint=served))
        if hardware is not None or "macos" in (machine or "").lower():
            return unknown(note("perhaps_on_device", hint=sut.accelerator or machine))
    if any(run.summary.tasks is not None for run in evidence.runs):
        return satisfied(note("completion_no_accuracy"))
    return not_applicable(note("nothing_out_of_scope"))


def excluded(evidence: Evidence) -> Ruling | None:
    """Draft 4.1.1: what a Model Engine leaves out, and the plan or a run shows to be there all the same."""
    if evidence.system.boundary != "engine":
        return not_applicable(note("not_an_engine"))
    target, run = evidence.plan.target, _limited(evidence)
    at_work, on = filter_at_work(evidence), filtered(evidence)
    seen = {
        "https": urlsplit(target.url or "").scheme == "https",
        "network": not evidence.embedded and not one_machine(evidence),
        "api_key": target.api_key_env is not None or target.api_key_file is not None,
        "rate_limit": run is not None,
        "filter": any(evidence.system.filters) or at_work is not None or on is not None,
    }
    parts = tuple(name for name, there in seen.items() if there)
    if parts:
        first = run or at_work or on
        return violated(note("outside_the_engine", parts=parts), None if first is None else first.name)
    return satisfied(note("nothing_outside_the_engine")) if evidence.runs else None


def _limited(evidence: Evidence) -> MeasuredRun | None:
    """The first run with requests turned away by a limit on their rate. The reference engine's full queue answers so as well,
    and is no such limit."""
    if evidence.embedded:
        return None
    return next((run for run in evidence.runs if run.summary.requests.by_error.get("http_429")), None)


SCHEMES = {"engine": ("http",), "gateway": ("https",)}


def interface(evidence: Evidence) -> Ruling | None:
    """Draft 4.1.1 and 4.1.2, figures 1 and 2: an engine is reached over gRPC or HTTP, a gateway over HTTPS."""
    expected = SCHEMES.get(evidence.system.boundary or "")
    if expected is None:
        return not_applicable(note("no_interface_of_boundary"))
    scheme = urlsplit(evidence.plan.target.url or "http:").scheme
    observed = note(
        "interface", scheme=scheme.upper(), expected=expected[0].upper(), boundary=evidence.system.boundary
    )
    return satisfied(observed) if scheme in expected else violated(observed)


CHECKS: dict[str, RuleCheck] = {
    "D-3-out-of-scope": scope,
    "D-4.1.1-excluded": excluded,
    "D-4.1.1-api": interface,
}
