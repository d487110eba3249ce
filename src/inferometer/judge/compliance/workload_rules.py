"""Checks of what is sent: workload (draft 4.3), tokenizer (4.4), warm-up (4.5) and protocol by boundary (4.6.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from inferometer.documents.note import Note
from inferometer.documents.summary import WarmUp
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
from inferometer.plan.published import in_own_words
from inferometer.plan.schema import NO_TOKENIZER
from inferometer.plan.standard import STAND_INS
from inferometer.plan.workload import AnyWorkload, StandardWorkload

STANDARD = ("synthetic-uniform", "synthetic-skewed", "conversation", "code-completion", "long-context")
"""The draft's five."""
WARM_REQUESTS, WARM_TOKENS, VARIATION = 100, 10_000, 0.10


def _items(evidence: Evidence) -> list[tuple[Mapping[str, str | None], str | None]]:
    """Draft 4.3.1's items by id, of each run; before there are any, as the plan has them."""
    items_by_run: list[tuple[Mapping[str, str | None], str | None]] = [
        ({item.id: item.value for item in run.summary.workload.items}, run.name) for run in evidence.levels
    ]
    return items_by_run or ([] if evidence.items is None else [(evidence.items, None)])


def item(rule: str) -> RuleCheck:
    """One item of draft 4.3.1: disclosed, or missing."""

    def check(evidence: Evidence) -> Ruling | None:
        items_by_run = _items(evidence)
        for items, run in items_by_run:
            if items.get(rule) is None:
                return violated(note("item_missing"), run)
        free = any(in_own_words(workload) for workload, _ in evidence.workloads)
        return (
            satisfied(note("item", capacity=free, value=items_by_run[0][0][rule])) if items_by_run else None
        )

    return check


def specified(evidence: Evidence) -> Ruling | None:
    """Draft 4.3 (D-4.3-custom-full): a custom workload has all seven items."""
    if all(workload.name in STANDARD for workload, _ in evidence.workloads):
        return not_applicable(note("standard_workload"))
    return _custom_workload(evidence)


def _custom_workload(evidence: Evidence) -> Ruling | None:
    items_by_run = _items(evidence)
    for items, run in items_by_run:
        missing = tuple(name for name, value in items.items() if value is None)
        if missing:
            return violated(note("items_missing", items=missing), run)
    return satisfied(note("custom_workload")) if items_by_run else None


def _named(workload: AnyWorkload) -> Note:
    return note("workload", name=workload.name, based_on=workload.based_on)


def standard(evidence: Evidence) -> Ruling | None:
    """A test's workload is one of the draft's, or fully specified (5.1.2.1 and its like)."""
    if all(workload.name in STANDARD for workload, _ in evidence.workloads):
        return satisfied(_named(evidence.workloads[0][0]))
    return _custom_workload(evidence)


def workload(*names: str, variant: bool = False) -> RuleCheck:
    """A test's own workload. `variant`: with lengths of the test's own (Q-capacity-output, Q-fairness-classes,
    Q-long-context-input). A stand-in without the dataset that the draft names is none, and the note says what is missing."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.ahead and evidence.test in BRINGS_WORKLOAD:
            return None
        for one, run in evidence.workloads:
            if one.name not in names and not (variant and _base(one) in names):
                if one.based_on in names and _stands_in(one):
                    return violated(note("stand_in", based_on=one.based_on), run)
                other = note("other_workload", name=one.name, based_on=one.based_on, draft=names)
                return violated(other, run)
        first = evidence.workloads[0][0]
        if first.name in names:
            return satisfied(_named(first))
        return satisfied(note("workload_variant", name=_base(first)))

    return check


def _stands_in(workload: AnyWorkload) -> bool:
    """Whether it has all of the standard workload that it is based on but the texts of its dataset."""
    if (
        not isinstance(workload, StandardWorkload)
        or workload.dataset is not None
        or workload.turns is not None
    ):
        return False
    return (workload.input_tokens, workload.output_tokens) == STAND_INS.get(workload.based_on or "")


def _base(workload: AnyWorkload) -> str | None:
    """The standard workload that a custom one is drawn from: named, or shown by its classes' lengths."""
    lengths = [(str(one.input_tokens), str(one.output_tokens)) for one in workload.classes]
    if lengths and all(SKEWED[0].match(prompt) and SKEWED[1].match(answer) for prompt, answer in lengths):
        return "synthetic-skewed"
    return workload.based_on


SKEWED = re.compile(r"lognormal\(5\.5,1(\.0)?[,)]"), re.compile(r"lognormal\(4\.5,1\.2[,)]")
"""Draft A.2's lengths, within whatever bounds a class has."""
BRINGS_WORKLOAD = ("fairness", "memory-pressure", "long-context")
"""Tests that bring their words along, whatever the plan says."""
OTHER_WORKLOAD = ("capacity", "fairness", "prefix-cache", "memory-pressure", "long-context")
"""Tests whose section asks for another workload than Conversation, which goes first, as Q-engine-workload has it."""


def conversation(evidence: Evidence) -> Ruling | None:
    """Draft 4.3.2.3, of gateways."""
    if evidence.system.boundary != "gateway":
        return not_applicable(note("not_a_gateway"))
    if evidence.test in OTHER_WORKLOAD:
        return not_applicable(note("workload_of_test"))
    return workload("conversation")(evidence)


def seed(evidence: Evidence) -> Ruling | None:
    """Draft 4.3.3."""
    return _seeded(evidence, lambda seed: note("seed", seed=seed))


def reproducible(evidence: Evidence) -> Ruling | None:
    """Draft 4.3.3: requests that can be made again need not be published."""
    return _seeded(evidence, lambda seed: note("requests_from_seed", seed=seed))


def _seeded(evidence: Evidence, kept: Callable[[int | None], Note]) -> Ruling | None:
    def seed_of(run: MeasuredRun) -> int | None:
        return run.summary.plan.workload.seed

    return each_run(
        evidence.runs,
        lambda run: note("no_seed") if seed_of(run) is None else None,
        lambda run: kept(seed_of(run)),
    )


def dataset(evidence: Evidence) -> Ruling | None:
    """Draft 4.3.3."""
    texts = [(run, run.summary.workload.texts) for run in evidence.runs]
    sets = [(run, of.dataset) for run, of in texts if of is not None and of.dataset is not None]
    if evidence.runs and not sets:
        return not_applicable(note("no_dataset"))
    for run, used in sets:
        if not (used.version or used.revision):
            return violated(note("no_dataset_version", capacity=True, dataset=used.name), run.name)
        if not used.preprocessing:
            return violated(note("no_preprocessing", capacity=True, dataset=used.name), run.name)
    return satisfied(note("dataset_disclosed")) if evidence.runs else None


def counting(evidence: Evidence) -> Ruling | None:
    """Draft 4.4.2: native or reference, and native only where the counts agree."""

    def problem(run: MeasuredRun) -> Note | None:
        method = run.summary.tokens.tokenizer.method
        if method not in ("native", "reference"):
            return note("no_counting_method")
        failed = run.failure("token_counts") if method == "native" else None
        return None if failed is None else note("not_native", capacity=True, **failed.facts)

    return each_run(
        evidence.runs,
        problem,
        lambda run: note("counting_method", method=run.summary.tokens.tokenizer.method),
    )


def _handled(name: str) -> RuleCheck:
    """Draft 4.4.3: what the instrument does, and what the tester adds to that."""

    def check(evidence: Evidence) -> Ruling | None:
        words = evidence.declaration(name)
        kinds = {run.summary.tokens.tokenizer.kind for run in evidence.runs}
        nobody = evidence.plan.tokenizer.name == NO_TOKENIZER or bool(kinds & {"none", "ids", "learned"})
        uncounted = name == "bos_eos" and nobody
        topic = "uncounted" if uncounted else name
        if words is None:
            return satisfied(note("special_tokens", topic=topic))
        return declared(note("special_tokens_declared", capacity=True, topic=topic, words=words))

    return check


def vocabulary(evidence: Evidence) -> Ruling | None:
    """Draft 4.4.1."""
    return each_run(
        evidence.runs,
        lambda run: note("no_vocab_size") if run.summary.tokens.tokenizer.vocab_size is None else None,
        lambda run: note("vocab_size", size=run.summary.tokens.tokenizer.vocab_size),
    )


def tokenizer_source(evidence: Evidence) -> Ruling | None:
    """Draft 4.4.1."""
    return each_run(
        evidence.runs,
        lambda run: note("no_tokenizer_source") if run.summary.tokens.tokenizer.source is None else None,
        lambda run: note("tokenizer_source", source=run.summary.tokens.tokenizer.source),
    )


def tokenizer_name(evidence: Evidence) -> Ruling | None:
    """Draft 4.4.1: somebody has to have counted."""

    def problem(run: MeasuredRun) -> Note | None:
        tokenizer = run.summary.tokens.tokenizer
        if tokenizer.kind in ("none", "ids", "learned") or tokenizer.name is None:
            return note("no_tokenizer")
        return note("no_tokenizer_version", name=tokenizer.name) if tokenizer.version is None else None

    def kept(run: MeasuredRun) -> Note:
        tokenizer = run.summary.tokens.tokenizer
        return note("tokenizer", name=tokenizer.name, version=tokenizer.version)

    return each_run(evidence.runs, problem, kept)


# Warm-up, draft 4.5.


def starts(evidence: Evidence) -> list[MeasuredRun]:
    """The runs whose warm-up counts: the first of the test, the first after each switch of the system, and the pass over a
    cache that its own warm-up has filled, before which nothing is switched."""
    runs = list(evidence.runs)
    states = [run.state or _state(evidence.test, run) for run in runs]
    return [
        run
        for i, run in enumerate(runs)
        if i == 0 or states[i] != states[i - 1] or _first_of(runs, i, "warm")
    ]


def _first_of(runs: Sequence[MeasuredRun], i: int, part: str) -> bool:
    return runs[i].part == part and all(run.part != part for run in runs[:i])


def _state(test: str, run: MeasuredRun) -> object:
    if test == "guardrail":
        return run.at.configuration or "baseline"
    if test == "prefix-cache":
        passes = {"disabled": "disabled", "cold": "cold", "warm": "warm"}
        return passes.get(run.part) or run.at.cache or "disabled"
    return None


def _warmed(problem: Callable[[WarmUp], Note | None], kept: Note, *, drained: bool = False) -> RuleCheck:
    """`drained`: the rule is about whether it had ended, which a warm-up without requests does not show."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.test == "cold-start":
            return not_applicable(note("cold_start"))
        # A pass over an emptied cache may have none (Q-cold-cache-row): the pass before it warmed the rest.
        runs = [run for run in starts(evidence) if run.part != "cold" or run.summary.warm_up.completed]
        for run in runs:
            if drained and run.summary.warm_up.drained is None:
                return unknown(note("warm_up_not_known"), run.name)
        return each_run(runs, lambda run: problem(run.summary.warm_up), kept)

    return check


def _short(warm_up: WarmUp) -> Note | None:
    requests, tokens = warm_up.completed, warm_up.output_tokens
    if requests >= WARM_REQUESTS and (tokens or 0) >= WARM_TOKENS:
        return None
    least = {"least_requests": WARM_REQUESTS, "least_output_tokens": WARM_TOKENS}
    if tokens is None:
        return note("warm_up_not_counted", capacity=True, requests=requests, **least)
    return note("short_warm_up", capacity=True, requests=requests, output_tokens=tokens, **least)


def _undrained(warm_up: WarmUp) -> Note | None:
    return None if warm_up.drained else note("warm_up_not_drained")


def _unprobed(warm_up: WarmUp) -> Note | None:
    probes = warm_up.probes
    return None if probes.before_ms is not None and probes.after_ms else note("no_probes")


def _unsettled(warm_up: WarmUp) -> Note | None:
    probes = warm_up.probes
    if probes.stable:
        return None
    return note("probes_vary", variation=probes.variation, limit=VARIATION)


def filled(evidence: Evidence) -> Ruling | None:
    """Draft 4.5.1: where the cache is what is tested, the pass called warm."""
    if evidence.test != "prefix-cache":
        return not_applicable(note("caching_not_tested"))

    def problem(run: MeasuredRun) -> Note | None:
        prefixes = run.summary.warm_up.prefixes
        return None if prefixes == "populated" else note("cache_not_filled", prefixes=prefixes)

    return each_run(evidence.of("warm")[:1], problem, note("cache_filled"))


def unwarmed(evidence: Evidence) -> Ruling | None:
    """Draft 4.5.3."""
    if evidence.test != "cold-start":
        return not_applicable(note("no_cold_start"))

    def problem(run: MeasuredRun) -> Note | None:
        sent = run.summary.requests.warmup.sent
        return note("warm_up_sent", capacity=True, requests=sent) if sent else None

    return each_run(evidence.levels, problem, note("no_warm_up"))


def marked(evidence: Evidence) -> Ruling | None:
    """Draft 4.5.3: the test's own name says it, and so does the note on the warm-up left out."""
    if evidence.test != "cold-start":
        return not_applicable(note("no_cold_start"))

    def problem(run: MeasuredRun) -> Note | None:
        return None if run.summary.warm_up.skipped else note("not_marked_cold")

    return each_run(evidence.of("first"), problem, note("marked_cold"))


# Protocol by boundary, draft 4.6.1.


def sse(evidence: Evidence) -> Ruling | None:
    """Draft 4.6.1, of gateways."""
    if evidence.system.boundary != "gateway":
        return not_applicable(note("not_a_gateway"))
    target = evidence.plan.target
    if not target.stream:
        return violated(note("whole_answers"))
    if target.interface.framing != "server-sent events":
        return violated(note("other_streams", framing=str(target.interface.framing)))
    return satisfied(note("server_sent_events"))


def grpc(evidence: Evidence) -> Ruling | None:
    """Draft 4.6.1, of engines."""
    if evidence.system.boundary != "engine":
        return not_applicable(note("not_an_engine"))
    target = evidence.plan.target
    if not target.interface.grpc:
        return violated(
            note("no_grpc", framing=str(target.interface.framing), stream=target.stream, http=target.http)
        )
    return satisfied(note("grpc_streams")) if target.stream else violated(note("whole_answers"))


def warm(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.5.1: what the warm-up was is known."""

    def kept(run: MeasuredRun) -> Note:
        return note("warm_up", capacity=True, requests=run.summary.requests.warmup.completed)

    return each_run(starts(evidence), lambda _: None, kept)


CHECKS: dict[str, RuleCheck] = {
    "D-4.3-custom-full": specified,
    **{
        f"D-4.3.1-{name}": item(f"D-4.3.1-{name}")
        for name in ("input", "output", "control", "domain", "language", "system-prompt", "prefix")
    },
    "D-4.3.2.3-gateway": conversation,
    "D-4.3.3-seed": seed,
    "D-4.3.3-seed-report": seed,
    "D-4.3.3-publish": reproducible,
    "D-4.3.3-dataset": dataset,
    "D-4.4.1-name": tokenizer_name,
    "D-4.4.1-vocab": vocabulary,
    "D-4.4.1-source": tokenizer_source,
    "D-4.4.2-declare": counting,
    "D-4.4.3-bos-eos": _handled("bos_eos"),
    "D-4.4.3-system": _handled("system_prompt"),
    "D-4.4.3-tools": _handled("tools"),
    "D-4.5.1-volume": _warmed(
        _short, note("warm_up_volume", least_requests=WARM_REQUESTS, least_output_tokens=WARM_TOKENS)
    ),
    "D-4.5.1-drain": _warmed(_undrained, note("warm_up_drained"), drained=True),
    "D-4.5.1-prefix": filled,
    "D-4.5.2-probe": _warmed(_unprobed, note("probes")),
    "D-4.5.2-stable": _warmed(_unsettled, note("probes_agree", limit=VARIATION)),
    "D-4.5.3-skip": unwarmed,
    "D-4.5.3-mark": marked,
    "D-4.6.1-sse-gateway": sse,
    "D-4.6.1-grpc-engine": grpc,
    "D-5.1.2-workload": standard,
    "D-5.2.2-workload": standard,
    "D-5.3.2-workload": standard,
    "D-5.1.5.1-workload": standard,
    "D-5.1.5.1-warmup": warm,
}
