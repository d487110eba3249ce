"""An agentic benchmark in a terminal or a pipe: the verdicts, the gates that tripped below them, the phases, and what else to
know."""

from __future__ import annotations

import statistics

from rich.console import Console

from inferometer.documents.agentic import Agentic, AgenticEngine, PrefixCacheReuse
from inferometer.documents.bench import Remark
from inferometer.report.bench.remarks import worded
from inferometer.report.figures import clean, figure, share
from inferometer.report.tables import VERDICT_STYLES, Screen

_STYLES = {"yes": "bold green", "partial": "bold yellow", "no": "bold red"}
_ENDED = {"failed": "FAILED", "interrupted": "INTERRUPTED", "refused": "REFUSED"}
_SIGNALS = {
    "cached_tokens": "the engine's cached tokens",
    "ttft": "TTFT, as the engine does not report cached tokens",
}
_OPEN = {
    "early_stop": "answers' tokens were not counted",
    "memory_pressure": "swap cannot be read, or is another machine's",
    "duplicate_processes": "the engine is on another machine, or its processes are hidden",
}


def render(document: Agentic, console: Console, file: str | None = None) -> None:
    """Print the benchmark. `file`: where agentic.json lies."""
    screen = Screen(console, most=100)
    protocol = document.protocol
    repeats = "" if protocol.repeats == 1 else f", {protocol.repeats} times with other text"
    screen.say("")
    screen.say(
        f"Agentic mode: {len(protocol.phases)} phases{repeats}; one request at a time, temperature "
        f"{protocol.temperature:g}. Salt of the prompts: {clean(protocol.salt)}."
    )
    for one in document.engines:
        _engine(one, screen)
    lines: list[tuple[str | None, Remark]] = [(None, remark) for remark in document.remarks]
    lines += [(one.label, remark) for one in document.engines for remark in one.remarks]
    if lines:
        screen.say("")
    for label, remark in lines:
        screen.say(worded(remark) + ".", first="NOTE  " if label is None else f"{clean(label)}: ")
    for one in document.engines:
        if one.reasons:
            reasons = ", ".join(one.reasons)
            screen.say(f"{reasons}.", first=f"{clean(one.label)}: {one.status or 'no verdict'} by ")
    screen.say("")
    screen.say(document.status, VERDICT_STYLES[document.status])
    if file is not None:
        screen.path("Result", file)


def _engine(one: AgenticEngine, screen: Screen) -> None:
    reuse = one.prefix_cache_reuse
    screen.say("")
    ended = "" if one.ended == "measured" else f" ({_ENDED[one.ended]})"
    screen.say(
        f"{reuse.verdict or 'not known'}{ended}",
        _STYLES.get(reuse.verdict or "", ""),
        first=f"{clean(one.label)}: prefix cache reuse ",
    )
    for warning in warnings(one):
        screen.say(warning, "bold red", first="  WARNING  ")
    if reuse.source is not None:
        screen.say(f"{basis(reuse)}.", "dim", first="  ")
    gates = one.quality_gates
    for name, why in _OPEN.items():
        if one.samples and getattr(gates, name).tripped is None:
            screen.say(f"The gate {name} did not run: {why}.", "dim", first="  ")
    if one.samples:
        _phases(one, screen)


def warnings(one: AgenticEngine) -> tuple[str, ...]:
    """A sentence for each gate that tripped."""
    gates, found = one.quality_gates, []
    if gates.early_stop.tripped:
        stop = gates.early_stop
        found.append(
            f"early_stop: {stop.short} of {stop.counted} answers have fewer than half of the tokens asked for "
            f"({', '.join(stop.phases)}): the engine may cut answers off, or the model gives short ones."
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


def basis(reuse: PrefixCacheReuse) -> str:
    """What a verdict is by, with its interval, without a full stop."""
    assert reuse.source is not None
    assert reuse.value is not None
    if reuse.source == "cached_tokens":
        value = f"{share(reuse.value)} of the prompts of the prefix tests was cached"
        ends = [share(end) for end in reuse.ci95 or ()]
    else:
        value = f"TTFT of the prefix tests was {figure(reuse.value)} of that of cold"
        ends = [figure(end) for end in reuse.ci95 or ()]
    text = f"By {_SIGNALS[reuse.source]}: {value}"
    if not ends:
        return text
    verdicts = (
        f"{reuse.verdict_low}"
        if reuse.decided
        else f"{reuse.verdict_low} to {reuse.verdict_high}, not decided"
    )
    return f"{text} ({ends[0]} to {ends[1]} at 95 % over {len(reuse.repeats)} repetitions: {verdicts})"


def _phases(one: AgenticEngine, screen: Screen) -> None:
    """Means over the repetitions."""
    rows = []
    for phase in dict.fromkeys(sample.phase for sample in one.samples):
        mine = [sample for sample in one.samples if sample.phase == phase]
        shares = _mean([sample.cached_share for sample in mine])
        rows.append(
            (
                phase,
                _shown(_mean([sample.ttft_ms for sample in mine])),
                _shown(_mean([sample.prompt_tokens for sample in mine])),
                "-" if shares is None else share(shares),
                f"{_shown(_mean([sample.completion_tokens for sample in mine]))} of {mine[0].max_tokens}",
            )
        )
    screen.table(
        ("phase", "TTFT, ms", "prompt tokens", "cached", "answer, tokens"), rows, rank=(0, 1, 3, 2, 4)
    )


def _mean(values: list[float | None] | list[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _shown(value: float | None) -> str:
    return "-" if value is None else figure(value, trim=True)
