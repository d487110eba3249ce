"""Checks of what is sent: workload (draft 4.3), tokenizer (4.4), warm-up (4.5) and protocol by boundary (4.6.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

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
)
from inferometer.plan.declarations import BOS_EOS, SYSTEM_PROMPTS, TOOLS, UNCOUNTED

DRAFTS = ("synthetic-uniform", "synthetic-skewed", "conversation", "code-completion", "long-context")
"""The draft's five."""
WARM_REQUESTS, WARM_TOKENS, VARIATION = 100, 10_000, 0.10


def named(workload: Mapping[str, Any]) -> str:
    """A workload in words."""
    base = workload.get("based_on")
    return f"{workload['name']}, based on {base}" if base else str(workload["name"])


def _items(evidence: Evidence) -> list[tuple[Mapping[str, str | None], str | None]]:
    """Draft 4.3.1's items by id, of each run; before there are any, as the plan has them."""
    found: list[tuple[Mapping[str, str | None], str | None]] = [
        ({one["id"]: one["value"] for one in ran.summary["workload"]["items"]}, ran.name)
        for ran in evidence.levels
    ]
    return found or ([] if evidence.items is None else [(evidence.items, None)])


def item(rule: str) -> Check:
    """One item of draft 4.3.1: told, or missing."""

    def look(evidence: Evidence) -> Seen | None:
        found = _items(evidence)
        for items, run in found:
            if items.get(rule) is None:
                return broken("missing from the workload's specification", run)
        return met(str(found[0][0][rule])) if found else None

    return look


def specified(evidence: Evidence) -> Seen | None:
    """Draft 4.3 (D-4.3-custom-full): a workload of one's own has all seven items."""
    if all(workload["name"] in DRAFTS for workload, _ in evidence.workloads):
        return beside("a standard workload")
    return _whole(evidence)


def _whole(evidence: Evidence) -> Seen | None:
    found = _items(evidence)
    for items, run in found:
        missing = [name for name, value in items.items() if value is None]
        if missing:
            return broken(f"missing: {', '.join(missing)}", run)
    return met("a workload of its own, fully specified") if found else None


def standard(evidence: Evidence) -> Seen | None:
    """A test's workload is one of the draft's, or fully specified (5.1.2.1 and its like)."""
    if all(workload["name"] in DRAFTS for workload, _ in evidence.workloads):
        return met(named(evidence.workloads[0][0]))
    return _whole(evidence)


def workload(*names: str, variant: bool = False) -> Check:
    """A test's own workload. `variant`: with lengths of the test's own (Q-capacity-output, Q-fairness-classes,
    Q-long-context-input)."""

    def look(evidence: Evidence) -> Seen | None:
        if evidence.ahead and evidence.test in BROUGHT:
            return None
        for one, run in evidence.workloads:
            if one["name"] not in names and not (variant and _base(one) in names):
                return broken(f"{named(one)}; the draft has {' or '.join(names)}", run)
        first = evidence.workloads[0][0]
        return met(named(first) if first["name"] in names else f"{_base(first)}, with this test's lengths")

    return look


def _base(workload: Mapping[str, Any]) -> str | None:
    """The standard workload that one of its own is drawn from: named, or told by its classes' lengths."""
    drawn = [(str(one["input_tokens"]), str(one["output_tokens"])) for one in workload.get("classes") or ()]
    if drawn and all(SKEWED[0].match(prompt) and SKEWED[1].match(answer) for prompt, answer in drawn):
        return "synthetic-skewed"
    base: str | None = workload.get("based_on")
    return base


SKEWED = re.compile(r"lognormal\(5\.5,1(\.0)?[,)]"), re.compile(r"lognormal\(4\.5,1\.2[,)]")
"""Draft A.2's lengths, within whatever bounds a class has."""
BROUGHT = ("fairness", "memory-pressure", "long-context")
"""Tests that bring their words along, whatever the plan says."""
OWN = ("capacity", "fairness", "prefix-cache", "memory-pressure", "long-context")
"""Tests whose section asks for another workload than Conversation, which goes first, as Q-engine-workload has it."""


def conversation(evidence: Evidence) -> Seen | None:
    """Draft 4.3.2.3, of gateways."""
    if evidence.sut("boundary") != "gateway":
        return beside("a duty of gateways' tests")
    if evidence.test in OWN:
        return beside("this test has a workload of its own")
    return workload("conversation")(evidence)


def _of_run(find: Callable[[Mapping[str, Any]], object], words: str) -> Check:
    """A fact that each run's summary has to tell."""

    def look(evidence: Evidence) -> Seen | None:
        return every(
            evidence.runs,
            lambda one: f"{words}: not known" if find(one.summary) is None else None,
            lambda one: f"{words} {find(one.summary)}",
        )

    return look


def _seed(summary: Mapping[str, Any]) -> object:
    return summary["plan"]["workload"].get("seed")


def dataset(evidence: Evidence) -> Seen | None:
    """Draft 4.3.3."""
    sets = [(one, (one.summary["workload"]["texts"] or {}).get("dataset")) for one in evidence.runs]
    if evidence.runs and not any(found for _, found in sets):
        return beside("no dataset was drawn from")
    for one, found in sets:
        if found and not (found["version"] or found["revision"]):
            return broken(f"the version of {found['name']} is not told (--dataset-version)", one.name)
        if found and not found["preprocessing"]:
            return broken(f"how {found['name']} was preprocessed is not told", one.name)
    return met("version, selection and preprocessing are among the disclosures") if evidence.runs else None


def counting(evidence: Evidence) -> Seen | None:
    """Draft 4.4.2: native or reference, and native only where the counts agree."""

    def wrong(one: Ran) -> str | None:
        method = one.summary["tokens"]["tokenizer"]["method"]
        if method not in ("native", "reference"):
            return "not declared"
        said = one.fails("token_counts") if method == "native" else None
        return None if said is None else f"declared native, but {said}"

    return every(
        evidence.runs, wrong, lambda one: f"{one.summary['tokens']['tokenizer']['method']} (draft 4.4.2)"
    )


def _handled(name: str, ours: str) -> Check:
    """Draft 4.4.3: what the instrument does, and what the tester adds to that."""

    def look(evidence: Evidence) -> Seen | None:
        said = evidence.declared(name)
        uncounted = name == "bos_eos" and evidence.plan["tokenizer"]["name"] == "none"
        fact = UNCOUNTED if uncounted else ours
        return met(fact) if said is None else told(f"{fact}; {said}")

    return look


def _tokenizer(name: str) -> Check:
    return _of_run(lambda summary: summary["tokens"]["tokenizer"][name], name.replace("_", " "))


def tokenizer_name(evidence: Evidence) -> Seen | None:
    """Draft 4.4.1: somebody has to have counted."""

    def wrong(one: Ran) -> str | None:
        found = one.summary["tokens"]["tokenizer"]
        if found["kind"] == "none" or found["name"] is None:
            return "no tokenizer is named (--tokenizer)"
        return f"{found['name']}: its version is not known" if found["version"] is None else None

    def right(one: Ran) -> str:
        found = one.summary["tokens"]["tokenizer"]
        return f"{found['name']}, version {found['version']}"

    return every(evidence.runs, wrong, right)


# Warm-up, draft 4.5.


def starts(evidence: Evidence) -> list[Ran]:
    """The runs whose warm-up counts: the first of the test, and the first after each switch of the system."""
    runs = list(evidence.runs)
    states = [one.state or _state(evidence.test, one) for one in runs]
    return [one for i, one in enumerate(runs) if i == 0 or states[i] != states[i - 1]]


def _state(test: str, one: Ran) -> object:
    if test == "guardrail":
        return one.at.get("configuration") or "baseline"
    if test == "prefix-cache":
        return (
            {"disabled": "disabled", "cold": "cold", "warm": "warm"}.get(one.part)
            or one.at.get("cache")
            or "disabled"
        )
    return None


def _warm(one: Ran) -> Mapping[str, Any]:
    """What its warm-up came to; of a summary that tells no more, how many requests."""
    told_of = one.summary.get("warm_up")
    if told_of is not None:
        return dict(told_of)
    check = one.check("warmup") or {}
    tokens = (check.get("facts") or {}).get("output_tokens", 0)
    completed = one.summary["requests"]["warmup"]["completed"]
    return {"completed": completed, "output_tokens": tokens}


def _warmed(wrong: Callable[[Mapping[str, Any]], str | None], right: str, *members: str) -> Check:
    """`members`: what a warm-up has to tell for this to be seen at all."""

    def look(evidence: Evidence) -> Seen | None:
        if evidence.test == "cold-start":
            return beside("a cold start has no warm-up (draft 4.5.3)")
        # A pass over an emptied cache may have none (Q-cold-cache-row): the pass before it warmed the rest.
        ours = [one for one in starts(evidence) if one.part != "cold" or _warm(one)["completed"]]
        for one in ours:
            if any(_warm(one).get(name) is None for name in members):
                return Seen("unknown", "the run does not tell", one.name)
        return every(ours, lambda one: wrong(_warm(one)), right)

    return look


def _short(warm: Mapping[str, Any]) -> str | None:
    requests, tokens = warm.get("completed") or 0, warm.get("output_tokens") or 0
    if requests >= WARM_REQUESTS and tokens >= WARM_TOKENS:
        return None
    return f"{requests} requests and {tokens} output tokens, at least {WARM_REQUESTS} and {WARM_TOKENS}"


def _undrained(warm: Mapping[str, Any]) -> str | None:
    return (
        None
        if warm.get("drained")
        else "not all of the warm-up had ended before the measurement, or nobody looked"
    )


def _unprobed(warm: Mapping[str, Any]) -> str | None:
    probes = warm["probes"]
    both = probes.get("before_ms") is not None and bool(probes.get("after_ms"))
    return None if both else "no probe was measured before and after"


def _unsettled(warm: Mapping[str, Any]) -> str | None:
    probes = warm["probes"]
    if probes.get("stable"):
        return None
    found = probes.get("variation")
    return "not shown" if found is None else f"probes vary by {found:.1%}, limit {VARIATION:.0%}"


def filled(evidence: Evidence) -> Seen | None:
    """Draft 4.5.1: where the cache is what is tested, the pass called warm."""
    if evidence.test != "prefix-cache":
        return beside("prefix caching is not what is tested")
    if not evidence.of("warm"):
        return None
    # The run whose warm-up the first warm pass relies on: the last start up to it.
    begun = [one for one in evidence.runs if one in starts(evidence)]
    first = list(evidence.runs).index(evidence.of("warm")[0])
    passes = [one for one in begun if list(evidence.runs).index(one) <= first][-1:]

    def wrong(one: Ran) -> str | None:
        found = _warm(one).get("prefixes")
        return (
            None
            if found == "populated"
            else f"the cache was not filled with the prefixes ({found or 'nobody looked'})"
        )

    return every(passes, wrong, "the warm-up carried the prefixes")


def unwarmed(evidence: Evidence) -> Seen | None:
    """Draft 4.5.3."""
    if evidence.test != "cold-start":
        return beside("not about cold starts")

    def wrong(one: Ran) -> str | None:
        sent = one.summary["requests"]["warmup"]["sent"]
        return f"{sent} requests of warm-up were sent" if sent else None

    return every(evidence.levels, wrong, "no warm-up")


def marked(evidence: Evidence) -> Seen | None:
    """Draft 4.5.3: the test's own name says it, and so does the note on the warm-up left out."""
    if evidence.test != "cold-start":
        return beside("not about cold starts")

    def wrong(one: Ran) -> str | None:
        return (
            None
            if (one.summary.get("warm_up") or {}).get("skipped")
            else "the run is not marked as a cold start"
        )

    return every(evidence.of("first"), wrong, "marked as cold starts")


# Protocol by boundary, draft 4.6.1.


def sse(evidence: Evidence) -> Seen | None:
    """Draft 4.6.1, of gateways."""
    if evidence.sut("boundary") != "gateway":
        return beside("a duty of gateways' tests")
    streamed = evidence.plan["target"]["stream"]
    return met("server-sent events") if streamed else broken("answers are asked for whole")


def grpc(evidence: Evidence) -> Seen | None:
    """Draft 4.6.1, of engines; nothing here speaks it (Q-protocols)."""
    if evidence.sut("boundary") != "engine":
        return beside("a duty of engines' tests")
    streamed = evidence.plan["target"]["stream"]
    return broken(f"HTTP/1.1{' with server-sent events' if streamed else ''}; this program speaks no gRPC")


def hot(evidence: Evidence) -> Seen | None:
    """Draft 5.1.5.1: what the warm-up was is known."""
    return every(
        starts(evidence),
        lambda _: None,
        lambda one: (
            f"{number(one.summary['requests']['warmup']['completed'])} requests, told in full in the report"
        ),
    )


CHECKS: dict[str, Check] = {
    "D-4.3-custom-full": specified,
    **{
        f"D-4.3.1-{name}": item(f"D-4.3.1-{name}")
        for name in ("input", "output", "control", "domain", "language", "system-prompt", "prefix")
    },
    "D-4.3.2.3-gateway": conversation,
    "D-4.3.3-seed": _of_run(_seed, "seed"),
    "D-4.3.3-seed-report": _of_run(_seed, "seed"),
    "D-4.3.3-publish": _of_run(_seed, "`inferometer workload make` writes the requests of seed"),
    "D-4.3.3-dataset": dataset,
    "D-4.4.1-name": tokenizer_name,
    "D-4.4.1-vocab": _tokenizer("vocab_size"),
    "D-4.4.1-source": _tokenizer("source"),
    "D-4.4.2-declare": counting,
    "D-4.4.3-bos-eos": _handled("bos_eos", BOS_EOS),
    "D-4.4.3-system": _handled("system_prompt", SYSTEM_PROMPTS),
    "D-4.4.3-tools": _handled("tools", TOOLS),
    "D-4.5.1-volume": _warmed(_short, f"at least {WARM_REQUESTS} requests and {WARM_TOKENS} output tokens"),
    "D-4.5.1-drain": _warmed(_undrained, "all of it had ended", "drained"),
    "D-4.5.1-prefix": filled,
    "D-4.5.2-probe": _warmed(_unprobed, "one probe before, three and more after", "probes"),
    "D-4.5.2-stable": _warmed(_unsettled, f"three probes in a row within {VARIATION:.0%}", "probes"),
    "D-4.5.3-skip": unwarmed,
    "D-4.5.3-mark": marked,
    "D-4.6.1-sse-gateway": sse,
    "D-4.6.1-grpc-engine": grpc,
    "D-5.1.2-workload": standard,
    "D-5.2.2-workload": standard,
    "D-5.3.2-workload": standard,
    "D-5.1.5.1-workload": standard,
    "D-5.1.5.1-warmup": hot,
}
