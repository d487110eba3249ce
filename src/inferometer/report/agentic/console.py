"""An agentic benchmark in a terminal or a pipe: the verdicts, the gates that tripped below them, the phases, and what else to
know."""

from __future__ import annotations

from rich.console import Console

from inferometer.documents.agentic import Agentic, AgenticEngine
from inferometer.documents.bench import Remark
from inferometer.judge.agentic_means import mean_known, ttft_of
from inferometer.report.agentic import contents
from inferometer.report.bench.remarks import reasons, worded
from inferometer.report.figures import ABSENT, clean, figure, share
from inferometer.report.tables import VERDICT_STYLES, Screen

_STYLES = {"yes": "bold green", "partial": "bold yellow", "no": "bold red"}
HEAD = ("phase", "TTFT, ms", "95 %", "prompt tokens", "cached", "answer, tokens")


def render(document: Agentic, console: Console, file: str | None = None) -> None:
    """Print the benchmark. `file`: where agentic.html lies."""
    screen = Screen(console, most=100)
    screen.say("")
    screen.say(f"Agentic mode: {contents.condition(document)}")
    for one in document.engines:
        _engine(one, screen)
    lines: list[tuple[str | None, Remark]] = [(None, remark) for remark in document.remarks]
    lines += [(one.label, remark) for one in document.engines for remark in one.remarks]
    if lines or any(one.reasons for one in document.engines):
        screen.say("")
    for label, remark in lines:
        screen.say(worded(remark) + ".", first="NOTE  " if label is None else f"{clean(label)}: ")
    for one in document.engines:
        if one.reasons:
            screen.say(
                f"{one.status or 'no verdict'} ({reasons(one.reasons)}).", first=f"{clean(one.label)}: "
            )
    screen.say("")
    screen.say(document.status, VERDICT_STYLES[document.status])
    if file is not None:
        screen.path("Report", file)


def _engine(one: AgenticEngine, screen: Screen) -> None:
    screen.say("")
    screen.say(
        contents.reuse(one),
        _STYLES.get(one.prefix_cache_reuse.verdict or "", ""),
        first=f"{clean(one.label)}: prefix cache reuse ",
    )
    for warning in contents.warnings(one):
        screen.say(warning, "bold red", first="  WARNING  ")
    if basis := contents.basis(one.prefix_cache_reuse):
        screen.say(f"{basis}.", "dim", first="  ")
    for line in contents.open_gates(one):
        screen.say(line, "dim", first="  ")
    if one.samples:
        _phases(one, screen)


def _phases(one: AgenticEngine, screen: Screen) -> None:
    """Means over the repetitions."""
    rows = []
    for phase in dict.fromkeys(sample.phase for sample in one.samples):
        mine = [sample for sample in one.samples if sample.phase == phase]
        wait = ttft_of(mine, (phase,))
        rows.append(
            (
                clean(phase),
                figure(None if wait is None else wait.mean),
                contents.span(wait),
                figure(mean_known(sample.prompt_tokens for sample in mine), trim=True),
                share(mean_known(sample.cached_share for sample in mine)),
                f"{figure(mean_known(sample.completion_tokens for sample in mine), trim=True)} of {mine[0].max_tokens}",
            )
        )
    kept = [at for at in range(len(HEAD)) if at != 2 or any(row[2] != ABSENT for row in rows)]
    screen.table(
        [HEAD[at] for at in kept],
        [[row[at] for at in kept] for row in rows],
        rank=[kept.index(at) for at in (0, 1, 4, 2, 3, 5) if at in kept],
    )
