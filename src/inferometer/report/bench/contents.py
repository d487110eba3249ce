"""The parts of a benchmark's report, as rows of words: Markdown, HTML and the card write the same ones."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass

from inferometer.documents.agentic import Agentic, AgenticEngine
from inferometer.documents.bench import (
    METRICS_VERSION,
    Bench,
    Client,
    EngineMetadata,
    EngineResult,
    Figure,
    Rank,
    Ranking,
)
from inferometer.report.bench.names import Names, shortened
from inferometer.report.bench.remarks import reasons, worded
from inferometer.report.figures import ABSENT, UNKNOWN, clean, figure, share, size

ENDED = {"failed": "FAILED", "interrupted": "INTERRUPTED", "refused": "REFUSED"}
TITLES = {"tok_per_sec": "median tokens per second", "ttft_client_ms": "median client TTFT"}
MEANINGS = {
    "VALID": "The checks of every engine's run passed: these numbers can be relied on.",
    "INVALID": "At least one engine's run failed its checks: do not rely on its numbers.",
    "INCONCLUSIVE": "At least one engine was not measured to its end, or has too little evidence for its numbers.",
}
DEFINITIONS: tuple[tuple[str, str], ...] = (
    (
        "Tokens per second (M1)",
        "M4 / M5; 0 if M5 is below 10 ms. The median over all measured runs is the headline.",
    ),
    (
        "TTFT (M2)",
        "From the last byte of the request to the first text of any kind by the client's clock (client TTFT), by which engines "
        "are compared. An engine's own TTFT covers the evaluation of the prompt and is not comparable between engines.",
    ),
    (
        "Total duration (M3)",
        "The engine's own, else from the last byte of the request to the end of the stream.",
    ),
    (
        "Tokens generated (M4)",
        "The engine's count, else max(1, characters // 4), marked as an estimate. Never stream events.",
    ),
    ("Generation duration (M5)", "The engine's own, else max(0, M3 - M2)."),
    (
        "Power, tokens per second per watt (M6, M7)",
        "With --power: mean power from the first request to the end of the last answer, by the meter named, and tok/s by it. "
        "Else null.",
    ),
    (
        "Spread (M8)",
        "Standard deviation within prompts, pooled, with n - 1. CV = deviation / mean: below 5 % stable, below 10 % variable, "
        "else unstable.",
    ),
    (
        "Interval",
        "95 %, Student's, of the mean over prompts by the variance within prompts, or between rounds if that is more. Engines "
        "whose intervals overlap tie. What differs from turn to turn, such as heat or other load, is not in it.",
    ),
)
PAIRS = ("ahead", "ahead_within", "overlap", "opposite")
"""Reasons of a ranking that are about a pair of neighbours."""


def definitions_title() -> str:
    """The heading of the definitions, with their version."""
    return f"Definitions (metrics version {METRICS_VERSION})"


def condition(document: Bench) -> str:
    """How it was measured, in a sentence."""
    protocol = document.protocol
    many = len(document.engines)
    runs = f"{protocol.runs} run{'' if protocol.runs == 1 else 's'}"
    return (
        f"{many} engine{'' if many == 1 else 's'}, {runs} of {', '.join(map(clean, protocol.prompts))}; "
        f"one request at a time, temperature {protocol.temperature:g}, streamed."
    )


def machines(document: Bench | Agentic) -> str:
    """The chips and systems of the results, and of the client if an engine is elsewhere; empty if unknown."""
    known = [_machine(one.metadata) for one in document.engines]
    if not all(known) and (words := measured_from(document)):
        known.append(f"measured from {words}")
    return "; ".join(dict.fromkeys(one for one in known if one))


def measured_from(document: Bench | Agentic) -> str:
    """The machine that measured; empty if unknown."""
    return "" if document.client is None else _machine(document.client)


def _machine(known: EngineMetadata | Client) -> str:
    return clean(", ".join(part for part in (known.hw_chip, known.os_version) if part))


def verdict(one: EngineResult | AgenticEngine) -> str:
    """An engine's verdict, or how its turn ended."""
    return one.status if one.ended == "measured" and one.status else ENDED.get(one.ended, ABSENT)


def median(shown: Figure | None) -> str:
    """A figure's median."""
    return figure(None if shown is None else shown.median)


def mean(shown: Figure | None) -> str:
    """A figure's mean."""
    return figure(None if shown is None else shown.mean)


def span(shown: Figure | None) -> str:
    """A figure's interval: `12.1 to 13.2`."""
    if shown is None or shown.ci95 is None:
        return ABSENT
    return f"{figure(shown.ci95[0])} to {figure(shown.ci95[1])}"


def mean_span(shown: Figure | None) -> str:
    """A figure's mean with its interval: `12.6 (12.1 to 13.2)`."""
    words = mean(shown)
    return words if shown is None or shown.ci95 is None else f"{words} ({span(shown)})"


def called(document: Bench | Agentic) -> dict[str, str]:
    """Short names of the engines, by label."""
    return shortened([one.label for one in document.engines])


ENGINE_HEAD = (
    "Engine",
    "Tokens/s, median",
    "Mean (95 %)",
    "CV",
    "Client TTFT, ms, median",
    "Mean (95 %)",
    "Verdict",
)
ANSWERS = "Answers"
"""The column of answers, where they were checked: words in common with the answers they are compared with, and faults."""


def engine_head(document: Bench) -> tuple[str, ...]:
    """The head of engine_rows: the verdict is the last column."""
    return (*ENGINE_HEAD[:-1], ANSWERS, ENGINE_HEAD[-1]) if checked(document) else ENGINE_HEAD


def engine_rows(document: Bench) -> list[tuple[str, ...]]:
    """A row for each engine, as engine_head."""
    return [
        (
            clean(one.label),
            median(one.tok_per_sec),
            mean_span(one.tok_per_sec),
            ABSENT
            if one.spread is None or one.spread.cv is None
            else f"{share(one.spread.cv)} {one.spread.stability}",
            median(one.ttft_client_ms),
            mean_span(one.ttft_client_ms),
            *((answers(one) or ABSENT,) if checked(document) else ()),
            verdict(one),
        )
        for one in document.engines
    ]


def checked(document: Bench) -> bool:
    """Whether answers were checked (--check-output)."""
    return any(one.answers for one in document.engines)


def answers(one: EngineResult) -> str:
    """The share of words in common (`first`: there is nothing to compare with), and what is wrong with answers; empty if they
    were not checked."""
    shares = [check.overlap for check in one.answers if check.overlap is not None]
    words = [f"{share(math.fsum(shares) / len(shares))} in common"] if shares else []
    if not shares and one.answers:
        words = ["first"]
    return ", ".join((*words, *answer_faults(one)))


def answer_faults(one: EngineResult) -> list[str]:
    """`2 cut short`, `3 loops`: answers with these faults."""
    short = sum(check.early_stops for check in one.answers)
    loops = sum(check.loops for check in one.answers)
    return [
        *([f"{short} cut short"] if short else []),
        *([f"{loops} loop{'' if loops == 1 else 's'}"] if loops else []),
    ]


ANSWER_HEAD = (
    "Prompt",
    "Engine",
    "Compared with",
    "Answers",
    "The same",
    "Words in common",
    "Cut short",
    "Loops",
)


def answer_rows(document: Bench) -> list[tuple[str, ...]]:
    """A row for each prompt and engine whose answers were checked, as ANSWER_HEAD."""
    names = called(document)
    return [
        (
            clean(name),
            names[engine.label],
            "none: it is the first" if one.against is None else names.get(one.against, clean(one.against)),
            figure(one.n),
            figure(one.exact),
            share(one.overlap),
            figure(one.early_stops),
            figure(one.loops),
        )
        for name in document.protocol.prompts
        for engine in document.engines
        for one in engine.answers
        if one.prompt == name
    ]


PROMPT_HEAD = (
    "Prompt",
    "Engine",
    "Prompt tokens",
    "Cached",
    "Tokens/s, median",
    "Mean (95 %)",
    "Client TTFT, ms, median",
    "Mean (95 %)",
    "Runs",
    "Drift",
)


def prompt_rows(document: Bench) -> list[tuple[str, ...]]:
    """A row for each prompt and engine, as PROMPT_HEAD: engines below each other within a prompt."""
    names = called(document)
    return [
        (
            clean(name),
            names[engine.label],
            figure(one.prompt_tokens),
            share(one.cached),
            median(one.tok_per_sec),
            mean_span(one.tok_per_sec),
            median(one.ttft_client_ms),
            mean_span(one.ttft_client_ms),
            figure(one.tok_per_sec.n),
            "none" if one.drift is None else share(one.drift),
        )
        for name in document.protocol.prompts
        for engine in document.engines
        for one in engine.prompts
        if one.prompt == name
    ]


@dataclass(frozen=True, slots=True)
class Order:
    """A ranking in words: `places` best first; `pairs`: why each pair of neighbours stands so; `reasons`: what else there is to
    know of it, such as who has no place."""

    title: str
    places: tuple[str, ...]
    pairs: tuple[str, ...]
    reasons: tuple[str, ...]


def orders(document: Bench, names: Names | None = None) -> list[Order]:
    """The rankings; none of a single engine. `names`: what to call engines."""
    short = called(document) if names is None else names
    return [_order(one, document, short) for one in document.rankings if len(document.engines) > 1]


def partial(ranking: Ranking, document: Bench) -> str:
    """The prompts that a ranking is over, where they are not all that were measured."""
    if not ranking.prompts or set(ranking.prompts) == set(document.protocol.prompts):
        return ""
    return f"Over {', '.join(map(clean, ranking.prompts))}: the prompts that every engine with a place has."


def _order(ranking: Ranking, document: Bench, names: Names) -> Order:
    unsure = {one.label for one in document.engines if one.status == "INCONCLUSIVE"}
    pairs = [one for one in ranking.reasons if one.code in PAIRS]
    known = [f"{worded(one, names)}." for one in ranking.reasons if one not in pairs]
    if not ranking.decided:
        known.insert(0, "No order is claimed: no engine's figures allow one.")
    if over := partial(ranking, document):
        known.insert(0, over)
    if len(models := _models_of(ranking, document)) > 1:
        known.append(
            f"Models have different names ({', '.join(models)}): where they are different models, the order compares models, "
            "and their tokens are not alike."
        )
    if ranking.left_out:
        left = ", ".join(_named(label, names) for label in ranking.left_out)
        known.append(f"Without a place: {left}.")
    return Order(
        title=f"By {TITLES[ranking.figure]}",
        places=tuple(_place(one, unsure, names) for one in ranking.places),
        pairs=tuple(f"{worded(one, names)}." for one in pairs),
        reasons=tuple(known),
    )


def _models_of(ranking: Ranking, document: Bench) -> list[str]:
    """The models of the engines with a place."""
    placed = {label for place in ranking.places for label in place.labels}
    models = (one.metadata.model for one in document.engines if one.label in placed)
    return list(shortened(list(dict.fromkeys(model for model in models if model))).values())


def _place(place: Rank, unsure: Container[str], names: Names) -> str:
    engines = [
        f"{_named(label, names)}{' (INCONCLUSIVE)' if label in unsure else ''}" for label in place.labels
    ]
    return f"{place.place}. {', '.join(engines)}{' (tie)' if place.tie else ''}"


def _named(label: str, names: Names) -> str:
    return names.get(label, clean(label))


def warnings(document: Bench | Agentic) -> list[tuple[str, str]]:
    """(whose, sentence) of every remark and of every reason against a result."""
    lines = [("benchmark", f"{worded(one)}.") for one in document.remarks]
    for engine in document.engines:
        label = clean(engine.label)
        lines += [(label, f"{worded(one)}.") for one in engine.remarks]
        if engine.reasons:
            lines.append((label, f"{engine.status or 'no verdict'} ({reasons(engine.reasons)})."))
    return lines


_MEMBERS = (
    ("Engine", "engine"),
    ("Version", "engine_version"),
    ("Runner", "runner"),
    ("Model", "model"),
    ("Format", "model_format"),
    ("Quantization", "model_quantization"),
    ("Memory", "memory_bytes"),
    ("Memory by", "memory_source"),
    ("Chip", "hw_chip"),
    ("System", "os_version"),
    ("Thermal level", "thermal_level"),
    ("Lowest speed limit, %", "thermal_speed_limit"),
    ("Power, W", "power_watts"),
    ("Power by", "power_source"),
    ("Metrics version", "metrics_version"),
)


def metadata_head(document: Bench | Agentic) -> tuple[str, ...]:
    """The head of metadata_rows."""
    return ("", *called(document).values())


def metadata_rows(document: Bench | Agentic) -> list[tuple[str, ...]]:
    """The metadata of each engine, side by side; a dash where unknown."""
    return [(title, *(_member(one, name) for one in document.engines)) for title, name in _MEMBERS]


def _member(one: EngineResult | AgenticEngine, name: str) -> str:
    value: str | float | None = getattr(one.metadata, name)
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return clean(value)
    return size(value) if name == "memory_bytes" else figure(value, trim=True)


def protocol_rows(document: Bench) -> list[tuple[str, str]]:
    """How it was carried out."""
    protocol = document.protocol
    rows = [
        ("Follows", "; ".join(map(clean, protocol.follows))),
        ("Warm-up", clean(protocol.warm_up)),
        ("Runs of each prompt", figure(protocol.runs)),
        ("Prompts", ", ".join(map(clean, protocol.prompts))),
        ("Temperature", f"{protocol.temperature:g}"),
        ("Least pause between engines, s", figure(protocol.cooldown_s, trim=True)),
    ]
    if protocol.sized_by is not None:
        rows.append(("Context fills sized in tokens by", clean(protocol.sized_by)))
    return [
        *rows,
        ("Measured from", measured_from(document) or UNKNOWN),
        ("Records", records(document)),
    ]


def records(document: Bench | Agentic) -> str:
    """The folders of the engines' records."""
    runs = [f"{clean(one.label)}: {', '.join(map(clean, one.runs)) or 'none'}" for one in document.engines]
    return "; ".join(runs)


def models(document: Bench | Agentic) -> str:
    """The models of the results with their quantization; empty if unknown."""
    known = [(one.metadata.model, one.metadata.model_quantization) for one in document.engines]
    named = dict.fromkeys(clean(" ".join(part for part in pair if part)) for pair in known)
    return "; ".join(name for name in named if name)


def titles(document: Bench | Agentic) -> Sequence[str]:
    """What stands above everything: words for a benchmark that a person ended."""
    return ("INTERRUPTED: this benchmark was ended before its end.",) if document.interrupted else ()
