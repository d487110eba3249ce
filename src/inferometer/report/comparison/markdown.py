"""A comparison as Markdown, fit for the summary of a CI job: conclusion first, then figures, checklist, differences."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.comparison import ComparisonDocument, Contrast, Estimate
from inferometer.report.comparison import words
from inferometer.report.comparison.console import moving, side_line
from inferometer.report.figures import figure
from inferometer.report.tables import Escaped, markdown_table
from inferometer.report.tables import escaped as cell


def render(document: ComparisonDocument) -> str:
    """The page."""
    method = document.method
    lines = [
        f"# {words.OUTCOMES[document.outcome]}",
        "",
        cell(document.conclusion),
        "",
        *(f"- {cell(side_line(side))}" for side in document.sides),
        "",
    ]
    for contrast in document.contrasts:
        lines += [f"## {contrast.side} against A", "", _figures(contrast), ""]
    lines += ["Bold figures decide. Changes are shares of A's mean with 95 % intervals. " + words.DECIDES, ""]
    lines += [words.MULTIPLICITY, ""]
    if method.threshold:
        lines += [f"Threshold: {figure(method.threshold * 100)} %.", ""]
    if method.price_source:
        lines += [f"Prices: {cell(method.price_source)}. {words.NORMALISATION}", ""]
    if method.noise_moves:
        lines += [moving(method.noise_moves), ""]
    items = [
        (
            one.title,
            f"{one.section} {one.level if one.level != 'checklist' else ''}".strip(),
            one.status,
            f"{one.message} {one.advice or ''}".strip(),
        )
        for one in document.checklist
    ]
    lines += ["## Checklist", "", markdown_table(["item", "draft", "status", "found"], items)]
    lines += ["", cell(words.complied(document.compliance))]
    lines += ["", "## Differences in configuration", "", _differences(document), ""]
    return "\n".join(lines)


def _differences(document: ComparisonDocument) -> str:
    if not document.differences:
        return "None."
    rows = []
    for one in document.differences:
        values = (
            " or ".join("not declared" if value is None else str(value) for value in side)
            for side in one.values
        )
        rows.append([one.key, *values])
    return markdown_table(["key", *(side.label for side in document.sides)], rows)


def _figures(contrast: Contrast) -> str:
    heads = (
        "figure", "A", contrast.side, "change, %", "95 % interval", "test", "p (Holm)", "bootstrap", "Welch's", "Hedges g",
        "noise floor", "could see", "verdict",
    )  # fmt: skip
    rows = []
    for one in sorted(contrast.metrics, key=lambda one: not one.deciding):
        why = f" ({words.held(one.held)})" if one.held else ""
        cells = (
            Escaped(f"**{cell(one.title)}**, {cell(one.unit)}")
            if one.deciding
            else f"{one.title}, {one.unit}",
            _mean(one.name, one.baseline),
            _mean(one.name, one.side),
            words.percent(one.relative).removesuffix(" %"),
            words.span(words.deciding_interval(one)),
            {"paired": "pairs", "welch": "Welch's"}[one.test] if one.test else "-",
            "-" if one.p_holm is None else f"{one.p_holm:.4f}",
            words.span(one.bootstrap),
            words.span(one.welch),
            _effect(one.hedges_g, one.hedges_ci95),
            words.percent(one.floor.value if one.floor else None).lstrip("+"),
            words.could_see(one),
            words.verdict_word(one.verdict, one.held) + why,
        )
        rows.append(cells)
    right = [False, *[True] * (len(heads) - 2), False]
    return markdown_table(heads, rows, right)


def _effect(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None or interval is None:
        return "-"
    return f"{value:.1f} ({interval[0]:.1f} to {interval[1]:.1f})"


def _mean(name: str, estimate: Estimate | None) -> str:
    return words.shown(name, estimate.mean if estimate else None)
