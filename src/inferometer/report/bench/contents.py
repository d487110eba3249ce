"""The parts of a benchmark's report, as rows of words: Markdown, HTML and the card write the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.documents.bench import METRICS_VERSION, Bench, EngineResult, Figure, Ranking
from inferometer.report.bench.remarks import worded
from inferometer.report.figures import ABSENT, clean, figure, share, size

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
    ("Power, tokens per second per watt (M6, M7)", "Not measured: null."),
    (
        "Spread (M8)",
        "Standard deviation within prompts, pooled, with n - 1. CV = deviation / mean: below 5 % stable, below 10 % variable, "
        "else unstable.",
    ),
    (
        "Interval",
        "95 %, Student's, of the mean over prompts by the variance within prompts. Engines whose intervals overlap tie.",
    ),
)


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


def machines(document: Bench) -> str:
    """The chips and systems of the results; empty if unknown."""
    known = [
        clean(", ".join(part for part in (one.metadata.hw_chip, one.metadata.os_version) if part))
        for one in document.engines
    ]
    return "; ".join(dict.fromkeys(one for one in known if one))


def verdict(one: EngineResult) -> str:
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


ENGINE_HEAD = (
    "Engine",
    "Tokens/s, median",
    "Mean",
    "95 % of the mean",
    "CV",
    "Client TTFT, ms, median",
    "95 % of the mean",
    "Verdict",
)


def engine_rows(document: Bench) -> list[tuple[str, ...]]:
    """A row for each engine, as ENGINE_HEAD."""
    return [
        (
            clean(one.label),
            median(one.tok_per_sec),
            mean(one.tok_per_sec),
            span(one.tok_per_sec),
            ABSENT
            if one.spread is None or one.spread.cv is None
            else f"{share(one.spread.cv)} {one.spread.stability}",
            median(one.ttft_client_ms),
            span(one.ttft_client_ms),
            verdict(one),
        )
        for one in document.engines
    ]


PROMPT_HEAD = (
    "Prompt",
    "Engine",
    "Prompt tokens",
    "Cached",
    "Tokens/s, median",
    "95 % of the mean",
    "Client TTFT, ms, median",
    "95 % of the mean",
    "Runs",
    "Drift",
)


def prompt_rows(document: Bench) -> list[tuple[str, ...]]:
    """A row for each prompt and engine, as PROMPT_HEAD: engines below each other within a prompt."""
    return [
        (
            clean(name),
            clean(engine.label),
            figure(one.prompt_tokens),
            share(one.cached),
            median(one.tok_per_sec),
            span(one.tok_per_sec),
            median(one.ttft_client_ms),
            span(one.ttft_client_ms),
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
    """A ranking in words: `places` best first, and why each pair stands so."""

    title: str
    places: tuple[str, ...]
    reasons: tuple[str, ...]


def orders(document: Bench) -> list[Order]:
    """The rankings; none of a single engine."""
    return [_order(one, document) for one in document.rankings if len(document.engines) > 1]


def partial(ranking: Ranking, document: Bench) -> str:
    """The prompts that a ranking is over, where they are not all that were measured."""
    if not ranking.prompts or set(ranking.prompts) == set(document.protocol.prompts):
        return ""
    return f"Over {', '.join(map(clean, ranking.prompts))}: the prompts that every engine with a place has."


def _order(ranking: Ranking, document: Bench) -> Order:
    unsure = {one.label for one in document.engines if one.status == "INCONCLUSIVE"}
    places = tuple(
        f"{place.place}. {', '.join(_placed(label, label in unsure) for label in place.labels)}{' (tie)' if place.tie else ''}"
        for place in ranking.places
    )
    reasons = [f"{worded(one)}." for one in ranking.reasons]
    if not ranking.decided:
        reasons.insert(0, "No order is claimed: no engine's figures allow one.")
    if over := partial(ranking, document):
        reasons.insert(0, over)
    if ranking.left_out:
        reasons.append(f"Without a place: {', '.join(map(clean, ranking.left_out))}.")
    return Order(f"By {TITLES[ranking.figure]}", places, tuple(reasons))


def _placed(label: str, unsure: bool) -> str:
    return f"{clean(label)}{' (INCONCLUSIVE)' if unsure else ''}"


def warnings(document: Bench) -> list[tuple[str, str]]:
    """(whose, sentence) of every remark and of every reason against a result."""
    lines = [("benchmark", f"{worded(one)}.") for one in document.remarks]
    for engine in document.engines:
        label = clean(engine.label)
        lines += [(label, f"{worded(one)}.") for one in engine.remarks]
        if engine.reasons:
            lines.append(
                (label, f"{engine.status or 'no verdict'} by {', '.join(map(clean, engine.reasons))}.")
            )
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


def metadata_head(document: Bench) -> tuple[str, ...]:
    """The head of metadata_rows."""
    return ("", *(clean(one.label) for one in document.engines))


def metadata_rows(document: Bench) -> list[tuple[str, ...]]:
    """The metadata of each engine, side by side; a dash where unknown."""
    return [(title, *(_member(one, name) for one in document.engines)) for title, name in _MEMBERS]


def _member(one: EngineResult, name: str) -> str:
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
    runs = [f"{clean(one.label)}: {', '.join(map(clean, one.runs)) or 'none'}" for one in document.engines]
    return [*rows, ("Records", "; ".join(runs))]


def titles(document: Bench) -> Sequence[str]:
    """What stands above everything: words for a benchmark that a person ended."""
    return ("INTERRUPTED: this benchmark was ended before its end.",) if document.interrupted else ()
