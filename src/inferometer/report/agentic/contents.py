"""The parts of an agentic benchmark's report, as rows of words: console, Markdown, HTML and the card write the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from inferometer.documents.agentic import (
    Agentic,
    AgenticEngine,
    AgenticSample,
    AgenticSizes,
    PrefixCacheReuse,
    Restart,
)
from inferometer.judge.agentic_means import Mean, mean_known, ttft_of
from inferometer.report.bench import contents as bench
from inferometer.report.bench.remarks import reasons
from inferometer.report.figures import ABSENT, UNKNOWN, clean, figure, share

MEANINGS = {
    "VALID": "The checks of every engine's run passed, and no gate tripped: these verdicts on reuse can be relied on.",
    "INVALID": "At least one engine's run failed its checks: do not rely on its verdict on reuse.",
    "INCONCLUSIVE": "At least one engine's verdict on reuse is not certain: its reasons stand below it.",
}
_SIGNALS = {
    "cached_tokens": "the engine's cached tokens",
    "ttft": "TTFT, as the engine does not report cached tokens",
}
_OPEN = {
    "early_stop": "answers' tokens were not counted",
    "memory_pressure": "swap cannot be read, or is another machine's",
    "duplicate_processes": "the engine is on another machine, or its processes are hidden",
}
DEFINITIONS: tuple[tuple[str, str], ...] = (
    (
        "Prefix cache reuse",
        "Whether an engine reuses what it computed for a system prompt that several requests share.",
    ),
    (
        "By cached tokens",
        "Cached of prompt tokens as the engine reports them, mean over the three prefix tests: yes from 0.5, partial from 0.1, "
        "else no.",
    ),
    (
        "By TTFT",
        "Mean TTFT of the prefix tests / TTFT of cold: yes below 1/5, partial below 1/2, else no. Used if an engine does not "
        "report cached tokens in each prefix test.",
    ),
    ("TTFT", "From the last byte of the request to the first text of any kind, by the client's clock."),
    (
        "Interval",
        "95 %, Student's, of the mean over the repetitions, whose texts are unrelated; with a single one there is none.",
    ),
    (
        "Gates",
        "early_stop: two or more answers with fewer than half of the tokens asked for. memory_pressure: swap in use grew by "
        "more than 500 MB, or more than 1,000 pages were swapped out. duplicate_processes: two instances of the engine.",
    ),
)


def condition(document: Agentic) -> str:
    """How it was measured, in a sentence."""
    protocol = document.protocol
    repeats = "" if protocol.repeats == 1 else f", {protocol.repeats} times with other text"
    return (
        f"{len(protocol.phases)} phases{repeats}; one request at a time, temperature {protocol.temperature:g}. Salt of the "
        f"prompts: {clean(protocol.salt)}."
    )


def reuse(one: AgenticEngine) -> str:
    """`yes`, `partial`, `no`, or `not known`, and how the turn ended if it did not end well."""
    ended = "" if one.ended == "measured" else f" ({bench.ENDED.get(one.ended, ABSENT)})"
    return f"{one.prefix_cache_reuse.verdict or 'not known'}{ended}"


def warnings(one: AgenticEngine) -> tuple[str, ...]:
    """A sentence for each gate that tripped."""
    gates, found = one.quality_gates, []
    if gates.early_stop.tripped:
        stop = gates.early_stop
        found.append(
            f"early_stop: {stop.short} of {stop.counted} answers have fewer than half of the tokens asked for "
            f"({', '.join(map(clean, stop.phases))}): the engine may cut answers off, or the model gives short ones."
        )
    if gates.memory_pressure.tripped:
        memory = gates.memory_pressure
        grown = None if memory.grown_bytes is None else memory.grown_bytes / 1e6
        pages = (
            "an unknown number of"
            if memory.swapped_out_pages is None
            else figure(memory.swapped_out_pages, trim=True)
        )
        found.append(
            f"memory_pressure: swap grew by {'an unknown size' if grown is None else f'{figure(grown)} MB'}, and {pages} pages "
            "were swapped out: what was measured may be the disk."
        )
    if gates.duplicate_processes.tripped:
        numbers = ", ".join(map(str, gates.duplicate_processes.processes))
        found.append(f"duplicate_processes: the engine runs more than once (processes {numbers}).")
    return tuple(found)


def basis(found: PrefixCacheReuse) -> str:
    """What a verdict is by, with its interval, without a full stop; empty if there is none."""
    if found.source is None or found.value is None:
        return ""
    if found.source == "cached_tokens":
        value = f"{share(found.value)} of the prompts of the prefix tests was cached"
    else:
        value = f"TTFT of the prefix tests was {figure(found.value)} of that of cold"
    text = f"By {_SIGNALS[found.source]}: {value}"
    if found.ci95 is None:
        return text
    verdicts = (
        f"{found.verdict_low}"
        if found.decided
        else f"{found.verdict_low} to {found.verdict_high}, not decided"
    )
    return f"{text} ({_ends(found)} at 95 % over {len(found.repeats)} repetitions: {verdicts})"


def _ends(found: PrefixCacheReuse) -> str:
    write = share if found.source == "cached_tokens" else figure
    return " to ".join(write(end) for end in found.ci95 or ())


def open_gates(one: AgenticEngine) -> list[str]:
    """A sentence for each gate that did not run."""
    gates = one.quality_gates
    return [
        f"The gate {name} did not run: {why}."
        for name, why in _OPEN.items()
        if one.samples and getattr(gates, name).tripped is None
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """An engine's verdict in words. `tone`: for colour; `status`: empty if its turn did not end well; `alarms`: gates that
    tripped; `lines`: what the verdict is by, what speaks against it, and gates that did not run."""

    name: str
    reuse: str
    tone: str
    status: str
    alarms: tuple[str, ...]
    lines: tuple[str, ...]


_TONES = {"yes": "valid", "partial": "inconclusive", "no": "invalid"}


def found(document: Agentic) -> list[Found]:
    """The verdicts, in the order of the engines."""
    names = bench.called(document)
    return [
        Found(
            name=names[one.label],
            reuse=reuse(one),
            tone=_TONES.get(one.prefix_cache_reuse.verdict or "", ""),
            status="" if one.ended != "measured" or one.status is None else one.status,
            alarms=warnings(one),
            lines=tuple(_lines(one)),
        )
        for one in document.engines
    ]


def _lines(one: AgenticEngine) -> Iterator[str]:
    if by := basis(one.prefix_cache_reuse):
        yield f"{by}."
    if one.reasons:
        yield f"{one.status or 'No verdict'} ({reasons(one.reasons)})."
    yield from open_gates(one)


ENGINE_HEAD = ("Engine", "Reuse", "By", "Value", "95 %", "TTFT / cold-prefix", "Gates", "Verdict")


def engine_rows(document: Agentic) -> list[tuple[str, ...]]:
    """A row for each engine, as ENGINE_HEAD."""
    return [_engine_row(one) for one in document.engines]


def _engine_row(one: AgenticEngine) -> tuple[str, ...]:
    shown = one.prefix_cache_reuse
    write = share if shown.source == "cached_tokens" else figure
    return (
        clean(one.label),
        shown.verdict or "not known",
        {"cached_tokens": "cached tokens", "ttft": "TTFT / cold"}.get(shown.source or "", ABSENT),
        write(shown.value),
        _ends(shown) or ABSENT,
        figure(mean_known(repeat.ttft_ratio_second for repeat in shown.repeats)),
        _gates(one),
        bench.verdict(one),
    )


def _gates(one: AgenticEngine) -> str:
    gates = one.quality_gates
    words = [f"{name} tripped" for name in _OPEN if getattr(gates, name).tripped]
    words += [f"{name} did not run" for name in _OPEN if getattr(gates, name).tripped is None]
    return ", ".join(words) or "passed"


PHASE_HEAD = (
    "Phase",
    "Engine",
    "TTFT, ms, mean",
    "95 %",
    "Prompt tokens",
    "Cached",
    "Answer, tokens",
    "Asked for",
    "Not answered",
)


def phase_rows(document: Agentic) -> list[tuple[str, ...]]:
    """A row for each phase and engine, as PHASE_HEAD: means over the repetitions, engines below each other."""
    names = bench.called(document)
    return [
        _phase_row(phase, names[one.label], mine)
        for phase in phases(document)
        for one in document.engines
        if (mine := [sample for sample in one.samples if sample.phase == phase])
    ]


def phases(document: Agentic) -> tuple[str, ...]:
    """The phases that were measured, in their order."""
    every = (*document.protocol.phases, *(one.phase for engine in document.engines for one in engine.samples))
    measured = {one.phase for engine in document.engines for one in engine.samples}
    return tuple(phase for phase in dict.fromkeys(every) if phase in measured)


def _phase_row(phase: str, name: str, mine: Sequence[AgenticSample]) -> tuple[str, ...]:
    wait = ttft_of(mine, (phase,))
    missing = sum(one.outcome != "ok" for one in mine)
    return (
        clean(phase),
        name,
        figure(None if wait is None else wait.mean),
        span(wait),
        _whole(mean_known(one.prompt_tokens for one in mine)),
        share(mean_known(one.cached_share for one in mine)),
        _whole(mean_known(one.completion_tokens for one in mine)),
        figure(mine[0].max_tokens),
        f"{missing} of {len(mine)}" if missing else "none",
    )


def _whole(value: float | None) -> str:
    return figure(value, trim=True)


def span(wait: Mean | None) -> str:
    """The interval of a mean."""
    return ABSENT if wait is None or wait.ci95 is None else " to ".join(map(figure, wait.ci95))


REPEAT_HEAD = ("Engine", "Repetition", "Reuse", "Cached", "TTFT / cold", "TTFT / cold-prefix")


def repeat_rows(document: Agentic) -> list[tuple[str, ...]]:
    """A row for each repetition, as REPEAT_HEAD; none of a single one."""
    names = bench.called(document)
    return [
        (
            names[one.label],
            figure(repeat.repeat),
            repeat.verdict or "not known",
            share(repeat.cached_share),
            figure(repeat.ttft_ratio),
            figure(repeat.ttft_ratio_second),
        )
        for one in document.engines
        for repeat in one.prefix_cache_reuse.repeats
        if len(one.prefix_cache_reuse.repeats) > 1
    ]


def protocol_rows(document: Agentic) -> list[tuple[str, str]]:
    """How it was carried out, and the conditions of each engine."""
    protocol = document.protocol
    rows = [
        ("Follows", "; ".join(map(clean, protocol.follows))),
        ("Phases", ", ".join(map(clean, protocol.phases))),
        ("Repetitions", figure(protocol.repeats)),
        ("Salt of the prompts", clean(protocol.salt)),
        ("Temperature", f"{protocol.temperature:g}"),
        ("Warm-up", clean(protocol.warm_up)),
    ]
    names = bench.called(document)
    rows += _alike("Sizes of the parts", {names[one.label]: _sizes(one.sizes) for one in document.engines})
    rows += _alike(
        "Restart before the first phase",
        {names[one.label]: _restart(one.restart) for one in document.engines},
    )
    return [
        *rows,
        ("Measured from", bench.measured_from(document) or UNKNOWN),
        ("Records", bench.records(document)),
    ]


def _alike(title: str, values: Mapping[str, str]) -> list[tuple[str, str]]:
    """One row if all engines have the same, else one for each."""
    if len(set(values.values())) <= 1:
        return [(title, value) for value in list(values.values())[:1]]
    return [(f"{title}, {name}", value) for name, value in values.items()]


def _sizes(sizes: AgenticSizes | None) -> str:
    if sizes is None:
        return "nothing was sent"
    system = f"SYS_A {figure(sizes.system_a)}, SYS_B {figure(sizes.system_b)}"
    user = f"USER_X {figure(sizes.user_x)}, USER_Y {figure(sizes.user_y)}"
    wanted = "" if sizes.long_tokens == sizes.long_wanted else f" instead of {figure(sizes.long_wanted)}"
    return f"{system}, {user}, USER_L {figure(sizes.long_tokens)}{wanted} tokens, by {clean(sizes.sized_by)}"


def _restart(restart: Restart | None) -> str:
    if restart is None:
        return "not asked for"
    if restart.restarted:
        return f"done, healthy after {figure(restart.seconds, 3)} s"
    return f"not done: {clean(restart.why or 'unknown')}"
