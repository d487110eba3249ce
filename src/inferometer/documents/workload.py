"""The workload in the summary and in `run.json`: its specification (draft 4.3.1), its sources, and what was drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from inferometer.documents.part import Part
from inferometer.plan.length_histogram import LengthHistogram
from inferometer.plan.lengths import Distribution
from inferometer.plan.request_class import ClassContent, RequestClass
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.target import Fields
from inferometer.plan.workload import (
    AnyRows,
    LengthsWorkload,
    MixtureWorkload,
    StandardWorkload,
    TraceWorkload,
)


class DisclosureItem(Part, frozen=True):
    """One item of draft 4.3.1's list; `value` None: missing."""

    id: str
    name: str
    value: str | None


class WorkloadFile(Part, frozen=True):
    """The workload file that was sent."""

    file: str
    format: Literal["arrow", "jsonl"]
    digest: str


class LengthTally(Part, frozen=True):
    """Lengths requested in tokens, over the requests of the measurement. `std` divides by n - 1."""

    n: int
    mean: float
    std: float | None
    min: int
    max: int


class PromptFile(Part, frozen=True):
    """The user's file of prompts, without any of its text."""

    file: str
    format: Literal["jsonl", "csv"]
    sha256: str
    bytes: int
    rows: int
    with_system_prompt: int
    input_tokens: LengthTally | None = None
    output_tokens: LengthTally | None = None


class SessionFile(Part, frozen=True):
    """The user's file of recorded sessions, without any of its text. `branching`: sessions whose steps are no plain chain;
    `with_tools`: steps whose recorded reply calls tools; `images`: parts of messages that are images; `without_reply`: steps of
    which no reply is recorded."""

    file: str
    format: str
    sha256: str
    bytes: int
    sessions: int
    steps: int
    branching: int
    with_tools: int
    images: int
    without_reply: int


class Corpus(Part, frozen=True):
    """A bundled corpus."""

    name: str
    sha256: str
    language: str
    source: str


class DatasetFile(Part, frozen=True):
    """A file of a dataset."""

    name: str
    bytes: int
    sha256: str


class Dataset(Part, frozen=True):
    """A dataset of the user's. `left_out`: rows by the reason for which they were not used."""

    kind: Literal["sharegpt", "the-stack"]
    name: str
    revision: str | None
    subset: str | None
    files: tuple[DatasetFile, ...]
    sha256: str
    rows: int
    texts: int
    sampled: int
    left_out: dict[str, int]
    preprocessing: str
    version: str | None


class TextSource(Part, frozen=True):
    """Where natural text came from: one of the two."""

    corpus: Corpus | None
    dataset: Dataset | None


class SourceFacts(Part, frozen=True):
    """Where the requests came from: of a file, all but its words."""

    classes: tuple[str, ...]
    prompts: PromptFile | None = None
    texts: TextSource | None = None
    made: WorkloadFile | None = None
    sessions: SessionFile | None = None


class PrefixHits(Part, frozen=True):
    """Shares of the prompt tokens that a prefix cache without limit could find: token by token, and by blocks of
    `block_tokens`."""

    exact: float | None
    blocks: float | None
    block_tokens: int


class Lengths(Part, frozen=True):
    """A distribution of lengths in tokens."""

    mean: float
    p50: float
    p95: float
    p99: float
    min: int
    max: int


class SharedPrefixes(Part, frozen=True):
    """Prefixes that requests share. `curve`: (number of prefixes, requests that carry one of them), the most used first."""

    requests: int
    fraction: float | None
    tokens: Lengths | None
    groups: tuple[int, ...] | None
    curve: tuple[tuple[int, ...], ...]


class PublishedFigure(Part, frozen=True):
    """A figure that the workload's source publishes, beside what was drawn; `off`: the relative difference."""

    side: Literal["input", "output"]
    figure: Literal["mean", "p50", "p95", "p99"]
    published: float
    source: str
    drawn: float | None
    off: float | None


WarmPrefixes = Literal["populated", "not populated", "none shared"]
"""Whether the warm-up's requests carried the prefixes that measured ones share."""


class RequestStatistics(Part, frozen=True):
    """What was drawn for the measured requests; lengths in tokens."""

    requests: int
    input_tokens: Lengths | None
    unshared_input_tokens: Lengths | None
    repeated_input_tokens: Lengths | None
    sent_tokens: Lengths | None
    output_tokens: Lengths | None
    shared: SharedPrefixes
    prefix_hits: PrefixHits
    published: tuple[PublishedFigure, ...]


class DrawnRequests(RequestStatistics, frozen=True):
    """What was drawn for the measured requests; the summary repeats all but the histograms."""

    histograms: Mapping[str, LengthHistogram | None]


class TraceLengths(Part, frozen=True):
    """Tokens, one entry a row of the trace."""

    sum: int
    mean: float
    min: int
    max: int
    p50: int
    p95: int
    p99: int


class TraceFacts(Part, frozen=True):
    """The trace that is replayed, as far as the plan's window goes; the last three are known once all its requests are made.

    `file`: its base name. `rows`: arrivals, all of which are replayed. `failed`: rows left out, because they failed where they
    were recorded. `span_s`: of the run, to the window's end, or to the last arrival where the plan names no end.
    `first_second`: arrivals of the run's first second. `input_tokens`: of the rows without a text of their own, `texts` have
    one. `shares_prefixes`: whether any two prompts may begin alike by the trace's wish. `lasts_s`: from the first to the last
    row of the file. `rate`: requests per second of the run; None where all come at once.
    """

    file: str
    format: str
    sha256: str
    rows: int
    failed: int
    span_s: float
    first_second: int
    input_tokens: TraceLengths | None
    output_tokens: TraceLengths | None
    texts: int
    shares_prefixes: bool
    lasts_s: float
    rate: float | None
    unprepared: int = 0
    unprepared_ms: float = 0.0
    prefix_hits: PrefixHits | None = None


class LearnedRatio(Part, frozen=True):
    """How prompts were sized without a tokenizer of the server's: tokens it counts for one of cl100k_base, `low` to `high` its
    95 % interval; those of a nonce, and of what it puts around a text (`template`). Learned from `requests` unmeasured
    requests of `prompt_tokens` tokens in all by its usage. `disputed`: tokens that the server's /tokenize leads to expect for
    one of usage, where the two contradict each other."""

    ratio: float
    low: float
    high: float
    nonce: int
    template: int
    requests: int
    prompt_tokens: int
    disputed: float | None = None


UNDECLARED_KINDS = ("server", "ids", "learned", "none")
"""Kinds of tokenizers of which nobody declared a vocabulary: the server counts."""


class TokenizerFacts(Part, frozen=True):
    """The tokenizer that measured the prompts (draft 4.4.1). `learned`: only of the kind of that name. `unsound`: of none,
    since the server's usage was found to be no count of its prompts."""

    kind: Literal["shipped", "file", "hub", "server", "ids", "learned", "none"] | None = None
    name: str | None = None
    version: str | None = None
    vocab_size: int | None = None
    source: str | None = None
    learned: LearnedRatio | None = None
    unsound: bool = False


class WorkloadAccount(Part, frozen=True):
    """`missing`: ids of the items of draft 4.3.1 without a value. `fingerprint`: SHA-256 of the measured requests without
    their nonces; None where not all were made. `prefix_hits`: None where it was not worked out."""

    items: tuple[DisclosureItem, ...]
    missing: tuple[str, ...]
    fingerprint: str | None
    made: WorkloadFile | None
    prompts: PromptFile | None
    deviations: tuple[str, ...]
    texts: TextSource | None
    drawn: RequestStatistics | None
    prefix_hits: PrefixHits | None
    sessions: SessionFile | None = None


# What a report has to say of a workload: the seven items of draft 4.3.1, and which of them are missing.
#
# | id                      | item                                                                                          |
# | ----------------------- | --------------------------------------------------------------------------------------------- |
# | `D-4.3.1-input`         | distribution of input lengths: type, parameters, unit                                         |
# | `D-4.3.1-output`        | distribution of output lengths: the same                                                      |
# | `D-4.3.1-control`       | how output length is controlled                                                               |
# | `D-4.3.1-domain`        | domain of the content                                                                         |
# | `D-4.3.1-language`      | its language                                                                                  |
# | `D-4.3.1-system-prompt` | whether there is a system prompt, and how long it is                                          |
# | `D-4.3.1-prefix`        | share of requests with a common prefix, and how long those are                                |
#
# What the plan decides is derived from it. Of prompts from a file, lengths and system prompts are what was found in it; what
# they are about, and what they have in common, only their owner knows: that is declared (`workload.domain`, `language`,
# `prefix_sharing`), or missing. Of a trace, lengths are what was found in it. Its prompts are random words, unless it brings
# texts; what share of them begins alike by its wish, and for how long, is declared or missing too.


@dataclass(frozen=True, slots=True)
class Disclosed:
    """The seven items in words; None: missing."""

    input: str | None
    output: str | None
    control: str | None
    domain: str | None
    language: str | None
    system_prompt: str | None
    prefix: str | None


NAMES: dict[str, str] = {
    "input": "Input lengths",
    "output": "Output lengths",
    "control": "Output control",
    "domain": "Domain",
    "language": "Language",
    "system_prompt": "System prompt",
    "prefix": "Shared prefixes",
}


def requirement(name: str) -> str:
    """The id of an item: `D-4.3.1-system-prompt` for `system_prompt`."""
    return f"D-4.3.1-{name.replace('_', '-')}"


_DOMAINS: dict[ClassContent, str] = {
    "random": "none: random tokens without meaning",
    "english": "general: Python's language reference",
    "code": "code: Python's standard library",
}
_LANGUAGES: dict[ClassContent, str] = {"random": "none", "english": "English", "code": "Python"}


def disclosed(
    plan: Plan,
    file: PromptFile | None = None,
    trace: TraceFacts | None = None,
    sessions: SessionFile | None = None,
) -> Disclosed:
    """The items of a plan's workload. `file`, `trace`, `sessions`: what was found in its file of prompts, its trace or its
    recorded sessions, if it has any."""
    if isinstance(plan.workload, SessionsWorkload):
        return _of_sessions(plan, plan.workload, sessions)
    items = _of_requests(plan, file, trace)
    turns = plan.workload.turns
    if turns is None:
        return items
    whose = "the server's own answers" if plan.workload.replies == "server" else "recorded answers"
    each = (
        "the file's conversations"
        if isinstance(plan.workload, AnyRows)
        else f"conversations of {turns} requests"
    )
    said = f"{each}: a request repeats all before it in its own, with {whose}"
    before = "" if items.prefix in (None, "none") else f"{items.prefix}; "
    named = None if items.input is None else f"{items.input}, without what a conversation repeats"
    return replace(items, input=named, prefix=before + said)


def _of_requests(plan: Plan, file: PromptFile | None, trace: TraceFacts | None) -> Disclosed:
    """Of requests each by itself."""
    workload = plan.workload
    name = plan.tokenizer.name
    whose = "the server" if name in ("auto", "server", "ids", "learned") else name
    unit = f", in tokens of {whose}"
    if isinstance(workload, AnyRows):
        return _of_file(plan, workload, file, unit)
    if isinstance(workload, MixtureWorkload):
        return _of_classes(plan, workload, unit)
    if isinstance(workload, TraceWorkload):
        return _of_trace(plan, workload, trace, unit)
    assert isinstance(workload, StandardWorkload | LengthsWorkload), "a workload file that was read"
    return _of_lengths(plan, workload, unit)


def missing(items: Disclosed) -> list[str]:
    """The ids of what is missing (D-4.3-custom-full)."""
    return [requirement(name) for name in NAMES if getattr(items, name) is None]


def _of_lengths(plan: Plan, workload: StandardWorkload | LengthsWorkload, unit: str) -> Disclosed:
    """Of a standard workload, or of lengths of one's own over random tokens."""
    content = workload.content
    sharing = content.sharing
    system = "none"
    if sharing is not None and sharing.system:
        where = "a system message" if plan.target.interface.takes_messages else "in front of the prompt"
        system = f"{sharing.tokens} tokens, {where}, of {sharing.fraction:.4g} of the requests"
    return Disclosed(
        input=f"{workload.input_tokens}{unit}{'' if sharing is None else ', without shared prefixes'}",
        output=f"{workload.output_tokens}{unit}",
        control=_control(plan, stops=_stops(plan, {})),
        domain=workload.domain or (_DOMAINS["random"] if content.text is None else content.domain),
        language=workload.language or _language(workload),
        system_prompt=system,
        prefix="none" if sharing is None else str(sharing),
    )


def _language(workload: StandardWorkload | LengthsWorkload) -> str:
    """Without a dataset code is that of the package, which is Python's."""
    content = workload.content
    if content.text is None or (
        content.text == "code" and isinstance(workload, StandardWorkload) and workload.dataset is None
    ):
        return _LANGUAGES[content.text or "random"]
    return content.language


def _of_classes(plan: Plan, workload: MixtureWorkload, unit: str) -> Disclosed:
    stops = any(_stops(plan, one.fields) for one in workload.classes)
    shared = {one.name: one.shared_prefix for one in workload.classes if one.shared_prefix is not None}
    total = math.fsum(one.weight for one in workload.classes)
    carry = math.fsum(
        one.weight * one.shared_prefix.share for one in workload.classes if one.shared_prefix is not None
    )
    prefix = f"{carry / total:.4g} of all requests: " + "; ".join(
        f"{name}: {what}" for name, what in shared.items()
    )
    return Disclosed(
        input=_each(workload, lambda one: str(one.input_tokens))
        + unit
        + (", without shared prefixes" if shared else ""),
        output=_each(workload, lambda one: str(one.output_tokens)) + unit,
        control=_control(plan, stops=stops),
        domain=_each(workload, lambda one: one.domain or workload.domain or _DOMAINS[one.content]),
        language=_each(workload, lambda one: one.language or workload.language or _LANGUAGES[one.content]),
        system_prompt="none",
        prefix=prefix if shared else "none",
    )


def _each(workload: MixtureWorkload, say: Callable[[RequestClass], str]) -> str:
    """What is said of every class, once where all are alike."""
    said = [say(one) for one in workload.classes]
    if len(set(said)) == 1:
        return said[0]
    total = math.fsum(one.weight for one in workload.classes)
    return "; ".join(
        f"{one.name} ({one.weight / total:.4g} of the requests): {what}"
        for one, what in zip(workload.classes, said, strict=True)
    )


def _of_file(plan: Plan, workload: AnyRows, file: PromptFile | None, unit: str) -> Disclosed:
    system = inputs = outputs = None
    if file is not None:
        inputs, outputs, systems = file.input_tokens, file.output_tokens, file.with_system_prompt
        system = f"in {systems} of {file.rows} prompts, counted with the input lengths" if systems else "none"
    return Disclosed(
        input=_empirical(inputs, unit),
        output=_outputs(workload.output_tokens, outputs, unit),
        control=_control(plan, stops=_stops(plan, {})),
        domain=workload.domain,
        language=workload.language,
        system_prompt=system,
        prefix=workload.prefix_sharing,
    )


def _of_sessions(plan: Plan, workload: SessionsWorkload, file: SessionFile | None) -> Disclosed:
    """How long prompts are only the server counts; what is recorded in messages is named as that."""
    inputs = outputs = None
    if file is not None:
        whole = f"{file.steps:,} steps of {file.sessions:,} recorded sessions"
        inputs = f"empirical: {whole}, in tokens of the server; a step repeats its conversation"
        drawn = (
            "" if workload.output_tokens is None else f"; {workload.output_tokens} where a step records none"
        )
        outputs = f"empirical: as recorded of {whole}{drawn}"
    whose = "the server's own answers" if workload.replies == "server" else "recorded answers"
    repeats = f"a step repeats the steps that it goes on with, with {whose}"
    return Disclosed(
        input=inputs,
        output=outputs,
        control=_control(plan, stops=_stops(plan, {})),
        domain=workload.domain,
        language=workload.language,
        system_prompt=None if file is None else "as recorded in the sessions' messages",
        prefix=f"{workload.prefix_sharing}; {repeats}" if workload.prefix_sharing else repeats,
    )


def _of_trace(plan: Plan, workload: TraceWorkload, trace: TraceFacts | None, unit: str) -> Disclosed:
    rows, texts = (0, 0) if trace is None else (trace.rows, trace.texts)
    lengths = None if trace is None else _traced(trace.input_tokens, rows - texts, unit)
    if lengths is not None and texts:
        lengths += f"; {texts} prompts are the trace's own texts, as long as they are"
    return Disclosed(
        input=lengths,
        output=None if trace is None else _traced(trace.output_tokens, rows, unit),
        control=_control(plan, stops=_stops(plan, {})),
        domain=workload.domain or (None if texts else "none: random words without meaning"),
        language=workload.language or (None if texts else _LANGUAGES["random"]),
        system_prompt="none",
        prefix=workload.prefix_sharing if trace is None or trace.shares_prefixes else "none",
    )


def _traced(seen: TraceLengths | None, requests: int, unit: str) -> str | None:
    if seen is None:
        return None
    points = f"min {seen.min:,}, P50 {seen.p50:,}, P95 {seen.p95:,}, P99 {seen.p99:,}, max {seen.max:,}"
    return f"empirical: mean {seen.mean:,.1f}, {points}, of {requests:,} arrivals{unit}"


def _empirical(tally: LengthTally | None, unit: str) -> str | None:
    if tally is None:
        return None
    spread = "" if tally.std is None else f", standard deviation {tally.std:.4g}"
    return (
        f"empirical: mean {tally.mean:.4g}{spread}, {tally.min} to {tally.max}, of {tally.n} requests{unit}"
    )


def _outputs(length: Distribution | None, tally: LengthTally | None, unit: str) -> str | None:
    said = _empirical(tally, unit)
    return said if said is None or length is None else f"{said}; {length} where a prompt names none"


def _stops(plan: Plan, fields: Fields) -> bool:
    return bool(fields.get("stop") or plan.target.extra_body.get("stop"))


def _control(plan: Plan, *, stops: bool) -> str:
    """max_tokens, or both that and what ends an answer before it."""
    ends = "" if plan.workload.forced else " and the model's own end of sequence"
    return f"max_tokens{ends}{' and stop sequences' if stops else ''}"
