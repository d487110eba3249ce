"""A comparison in a terminal or a pipe, at most 80 columns unless there are more: checklist, figures, one conclusion."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from inferometer.documents.comparison import (
    ComparedRun,
    ComparisonDocument,
    Contrast,
    Estimate,
    Side,
)
from inferometer.report.comparison import words
from inferometer.report.figures import clean
from inferometer.report.tables import Screen

_STYLES = {"regression": "bold red", "no_regression": "bold green"}


def render(document: ComparisonDocument, console: Console) -> None:
    """Print the comparison."""
    screen = Screen(console, most=100)
    for side in document.sides:
        screen.say(side_line(side))
    for noise in document.noise:
        screen.say(f"A/A: {clean(noise.name)}, {_runs(noise.runs)}")
    screen.say("")
    _checklist(document, screen)
    _differences(document, screen)
    for contrast in document.contrasts:
        _contrast(contrast, screen)
    method = document.method
    if method.price_source:
        screen.say(f"Prices: {clean(method.price_source)}. {words.NORMALISATION}")
    if method.noise_moves:
        screen.say(moving(method.noise_moves))
    outcome = document.outcome
    screen.say(f"{words.OUTCOMES[outcome]}  {document.conclusion}", _STYLES.get(outcome, "bold yellow"))


def moving(names: Sequence[str]) -> str:
    """A warning: the system does not hold still."""
    titles = ", ".join(words.TITLES[name].title for name in names)
    return f"A/A runs differ beyond chance in {titles}: the system does not hold still, and no comparison is safe."


def side_line(side: Side) -> str:
    """A side in one line: its letter, its name, its runs."""
    line = f"{side.label}: {clean(side.name)}, {_runs(side.runs)}"
    if side.price_hour is not None:
        line += f", ${side.price_hour:g} an hour"
    if side.tokens_per_dollar is not None:
        line += f", {side.tokens_per_dollar:,.0f} tokens a dollar"
    return line


def _runs(runs: Sequence[ComparedRun]) -> str:
    count = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    by = {
        status: sum(run.status == status for run in runs) for status in ("VALID", "INCONCLUSIVE", "INVALID")
    }
    states = ", ".join(f"{many} {status}" for status, many in by.items() if many)
    reasons = sorted({code for run in runs for code in run.reasons})
    why = f" by {', '.join(reasons)}" if reasons else ""
    simulated = "SIMULATED, " if any(run.simulated for run in runs) else ""
    seeds = ", ".join(str(run.seed) for run in runs)
    return f"{count} ({simulated}{states}{why}; seeds {seeds})"


def _checklist(document: ComparisonDocument, screen: Screen) -> None:
    for item in document.checklist:
        section = f"{item.section} MUST" if item.level == "MUST" else item.section
        first = f"{item.status:9}  {section:8}  "
        screen.say(f"{item.title}. {item.message}", first=first)
        if item.advice:
            screen.say(item.advice, "dim", first=f"{'->':>9}  {'':8}  ")
    screen.say("")
    screen.say(words.complied(document.compliance))
    screen.say("")


def _differences(document: ComparisonDocument, screen: Screen) -> None:
    if not document.differences:
        return
    screen.say("Differences in configuration:")
    for one in document.differences:
        told = words.told_apart(one.values)
        sides = ", ".join(f"{words.label(at)}: {value}" for at, value in enumerate(told))
        screen.say(sides, first=f"  {one.key}  ")
    screen.say("")


def _contrast(contrast: Contrast, screen: Screen) -> None:
    """Two tables: what differs, deciding figures first, and for those the evidence."""
    metrics = sorted(contrast.metrics, key=lambda one: not one.deciding)
    label = contrast.side
    rows = [
        (
            f"{one.title}{' *' if one.deciding else ''}",
            _estimate(one.name, one.baseline),
            _estimate(one.name, one.side),
            f"{words.percent(one.relative).removesuffix(' %')} ({words.span(words.deciding_interval(one))})",
            words.verdict_word(one.verdict, one.held),
        )
        for one in metrics
    ]
    screen.table((f"{label} against A", "A", label, "change in %, 95 %", "verdict"), rows, cut=False)
    screen.say("")
    by = words.intervals_by(contrast)
    screen.say(f"* decides. Mean of the runs and half its 95 % interval; {by}.", "dim")
    screen.say("")
    deciding = [one for one in metrics if one.deciding]
    screen.table(
        ("evidence, in %", "p, Holm", "bootstrap", "Welch's", "floor", "could see"),
        [
            (
                one.title,
                "-" if one.p_holm is None else f"{one.p_holm:.3f}",
                words.span(one.bootstrap),
                words.span(one.welch),
                _unsigned(one.floor.value if one.floor else None),
                _unsigned(one.detectable),
            )
            for one in deciding
        ],
        cut=False,
    )
    screen.say("")
    for one in deciding:
        if one.held and "interval" not in one.held:
            screen.say(f"{one.title}: {words.held(one.held)}")


def _unsigned(share: float | None) -> str:
    return words.percent(share).removesuffix(" %").lstrip("+")


def _estimate(name: str, estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    mean = words.shown(name, estimate.mean)
    if estimate.ci95 is None:
        return mean
    return f"{mean} \u00b1{words.shown(name, (estimate.ci95[1] - estimate.ci95[0]) / 2, 2)}"
