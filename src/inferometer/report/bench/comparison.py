"""Two benchmarks compared, in a terminal or a pipe, as Markdown and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from inferometer.documents.bench_comparison import BenchComparison, BenchSide, ComparedFigure
from inferometer.report.bench.names import Names, shortened
from inferometer.report.bench.remarks import reasons
from inferometer.report.comparison.junit import Case, Suite, render_suites
from inferometer.report.comparison.words import OUTCOMES, held, percent, tolerated, verdict_word
from inferometer.report.comparison.words import span as change_span
from inferometer.report.figures import clean, figure, moment, text
from inferometer.report.tables import Screen, bullets, escaped, markdown_table

HEAD = ("engine", "prompt", "A -> B", "change in %, 95 %", "p, Holm", "floor", "could see", "verdict")
RANK = (0, 1, 7, 3, 2, 6, 4, 5)
"""Its columns, those that are kept longest first."""
RIGHT = [False, False, *[True] * 5, False]
TITLES = {"tok_per_sec": "Tokens per second", "ttft_client_ms": "Client TTFT, ms"}
_STYLES = {"regression": "bold red", "no_regression": "bold green"}
NOTE = (
    "A figure is better or worse only if Welch's t on the generations that count rejects after Holm's correction over all "
    "figures that decide, and the change exceeds threshold and noise floor. Intervals are not corrected. Generations of one "
    "benchmark share its engine's start and hour: --noise says how far benchmarks of one engine differ."
)


def render(document: BenchComparison, console: Console) -> None:
    """Print the comparison."""
    screen = Screen(console, most=100)
    names = shortened(_labels(document), max(screen.width // 5, 12))
    screen.say("")
    for side in (*document.sides, *document.noise):
        screen.say(_side(side))
    for name, title in TITLES.items():
        if rows := _rows(document, name, names):
            screen.say("")
            screen.say(_title(document, name, title), "bold")
            screen.table(HEAD, rows, RIGHT, rank=RANK)
    screen.say("")
    for line in _lines(document):
        screen.say(line)
    screen.say(NOTE, "dim")
    screen.say("")
    words = f"{OUTCOMES[document.outcome]}  {conclusion(document)}"
    screen.say(words, _STYLES.get(document.outcome, "bold yellow"))


def render_markdown(document: BenchComparison) -> str:
    """The page."""
    names = shortened(_labels(document), 1_000)
    parts = [
        f"# {OUTCOMES[document.outcome]}",
        escaped(conclusion(document)),
        bullets(map(_side, (*document.sides, *document.noise))),
    ]
    for name, title in TITLES.items():
        rows = _rows(document, name, names)
        parts += [f"## {_title(document, name, title)}", markdown_table(HEAD, rows, RIGHT)] if rows else []
    parts += [bullets(_lines(document)), escaped(NOTE)]
    return "\n\n".join(part for part in parts if part) + "\n"


def render_junit(document: BenchComparison) -> bytes:
    """JUnit XML: a suite for each engine, a test case for each figure of each prompt."""
    engines = dict.fromkeys(one.engine for one in document.figures)
    suites = [
        Suite(
            f"{clean(engine)}: B against A",
            f"compare.{clean(engine)}",
            document.sides[0].started,
            [_case(one) for one in document.figures if one.engine == engine],
        )
        for engine in engines
    ]
    return render_suites(suites, document.outcome, conclusion(document))


def _case(one: ComparedFigure) -> Case:
    found = (
        f"{clean(one.prompt)}, {TITLES[one.figure]}: {percent(one.change)}, 95 % interval {change_span(one.ci95)}, "
        f"{verdict_word(one.verdict, one.held)}"
    )
    return Case(f"{clean(one.prompt)} {one.figure}", found, held(one.held), one.verdict, one.deciding)


def conclusion(document: BenchComparison) -> str:
    """What a comparison comes to, in a paragraph."""
    if document.outcome == "not_comparable":
        return "The benchmarks have no engine with a prompt in common that can be compared."
    if document.outcome == "invalid":
        engines = ", ".join(map(clean, document.invalid))
        return f"No claim: {engines} INVALID on a side, so the numbers cannot be believed. Mend that, and measure again."
    deciding = [one for one in document.figures if one.deciding]
    parts = [
        f"{verdict} in {'; '.join(_claim(one) for one in found)}"
        for verdict in ("worse", "better")
        if (found := [one for one in deciding if one.verdict == verdict])
    ]
    if small := [one for one in deciding if tolerated(one.verdict, one.held)]:
        parts.append(f"a difference within the threshold in {'; '.join(_claim(one) for one in small)}")
    words = {
        "no_difference": "no difference shown in {} of {} figures",
        "no_claim": "no claim about {} of {} figures",
        "not_comparable": "{} of {} figures not comparable",
    }
    for verdict, sentence in words.items():
        if many := sum(one.verdict == verdict and one not in small for one in deciding):
            parts.append(sentence.format(many, len(deciding)))
    return f"B against A: {'; '.join(parts) or 'nothing decides'}.{_missed(deciding)}"


def _claim(one: ComparedFigure) -> str:
    title = {"tok_per_sec": "tokens per second", "ttft_client_ms": "client TTFT"}[one.figure]
    return f"{clean(one.engine)} {clean(one.prompt)} {title} ({percent(one.change)}, {change_span(one.ci95)})"


def _missed(deciding: Sequence[ComparedFigure]) -> str:
    """What could have been there without being seen."""
    seen = [
        max(one.detectable, one.floor.value if one.floor else 0.0)
        for one in deciding
        if one.verdict in ("no_difference", "no_claim") and one.detectable is not None
        if not tolerated(one.verdict, one.held)
    ]
    if not seen:
        return ""
    low, high = (percent(value).lstrip("+") for value in (min(seen), max(seen)))
    least = low if low == high else f"{low} to {high}, by figure,"
    return f" A change of {least} would have been seen four times out of five."


def _title(document: BenchComparison, name: str, title: str) -> str:
    return title if name in document.method.metrics else f"{title} (does not decide)"


def _labels(document: BenchComparison) -> list[str]:
    return list(dict.fromkeys(one.engine for one in document.figures))


def _side(one: BenchSide) -> str:
    return f"{one.label}: {clean(one.name)}, {one.status}, {moment(one.started)}"


def _rows(document: BenchComparison, name: str, names: Names) -> list[tuple[str, ...]]:
    return [_row(one, names) for one in document.figures if one.figure == name]


def _row(one: ComparedFigure, names: Names) -> tuple[str, ...]:
    change = percent(one.change).removesuffix(" %")
    return (
        names[one.engine],
        clean(one.prompt),
        f"{figure(one.baseline.mean)} -> {figure(one.side.mean)}",
        change if one.ci95 is None else f"{change} ({change_span(one.ci95)})",
        "-" if one.p_holm is None else f"{one.p_holm:.3f}",
        _unsigned(None if one.floor is None else one.floor.value),
        _unsigned(one.detectable),
        verdict_word(one.verdict, one.held),
    )


def _unsigned(share: float | None) -> str:
    return percent(share).lstrip("+")


def _lines(document: BenchComparison) -> Iterator[str]:
    """What else to know: what held figures back, results that are not VALID, engines of one side, metadata that differ."""
    method = document.method
    if method.threshold:
        yield f"Threshold: {figure(method.threshold * 100)} %."
    if method.tests:
        yield f"Holm's correction is over {method.tests} figures that decide."
    for one in document.figures:
        if one.held and "interval" not in one.held and one.verdict in ("no_difference", "no_claim"):
            title = TITLES[one.figure]
            yield f"{clean(one.engine)}, {clean(one.prompt)}, {title}: {held(one.held)}."
    for move in method.noise_moves:
        yield (
            f"{clean(move.engine)}, {clean(move.prompt)}, {TITLES[move.figure]}: A/A benchmarks differ beyond chance: the "
            "system does not hold still, and no comparison of it is safe."
        )
    for side in (*document.sides, *document.noise):
        for engine in side.engines:
            if engine.status != "VALID" or engine.ended != "measured":
                why = f" ({reasons(engine.reasons)})" if engine.reasons else ""
                yield f"{side.label}, {clean(engine.engine)}: {engine.ended}, {engine.status or 'no verdict'}{why}."
    if document.unmatched:
        yield f"On one side only: {', '.join(map(clean, document.unmatched))}."
    for other in document.differences:
        yield f"{clean(other.engine)}, {other.name}: A: {text(other.baseline)}, B: {text(other.side)}."
