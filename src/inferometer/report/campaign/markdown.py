"""report.md of a campaign: the verdicts in one table, then draft C.2's six sections.

Pictures are in report.html; here each is named with what it marks. The numbers behind it stand in the tables.
"""

from __future__ import annotations

from inferometer.documents.campaign import Campaign, ProcedureDocument, ReportedTable
from inferometer.documents.note import WITHHELD
from inferometer.report.campaign import compliance, contents, deviations, overview
from inferometer.report.campaign.cells import ROUGH, heading, labelled, numeric, texts
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.figures import MARK, UNMEASURED, clean
from inferometer.report.tables import bullets
from inferometer.report.tables import escaped as safe
from inferometer.report.tables import markdown_table as table


def _overview(campaign: Campaign) -> str:
    rows = []
    for test in overview.in_order(campaign):
        one = overview.row(test)
        verdict = f"{one.verdict} ({one.partial.lower()})" if one.partial else one.verdict
        headline = f"{one.label} {one.value}".strip()
        rows.append([f"{one.section} {one.title}", headline, one.interval, verdict, one.compliance])
    marked = ["", ROUGH] if any(MARK in row[1] for row in rows) else []
    return "\n".join([table(["Test", "Headline", "95 % interval", "Verdict", "Compliance"], rows), *marked])


def _shown(one: ReportedTable) -> str:
    parts = [f"**{safe(labelled(one.title, one.at))}** (draft {safe(one.section)})"]
    if one.rows:
        rows = texts(one)
        right = [numeric(one, index) for index in range(len(one.columns))]
        parts.append(table([heading(column) for column in one.columns], rows, right))
    elif not one.notes:
        parts.append("Not measured.")
    return "\n\n".join([*parts, *(safe(note.message) for note in one.notes)])


def _figures(test: ProcedureDocument) -> str:
    lines = []
    for one in test.figures:
        marked = ", ".join(clean(mark.label) for mark in one.marks)
        where = "see report.html" if one.series else WITHHELD if one.capacity else UNMEASURED
        lines.append(clean(one.title) + (f" (marked: {marked})" if marked else "") + f": {where}")
    return bullets(lines)


def _test(test: ProcedureDocument, number: int) -> list[str]:
    about = contents.detail(test)
    values = [[one.label, one.value, one.interval, one.note] for one in about.values]
    runs = [[run.run, run.part, run.at, run.verdict, run.requests, run.why] for run in about.runs]
    return [
        f"### 4.{number} {safe(about.title)} (draft {safe(about.section)})",
        f"**{safe(about.verdict)}**, {safe(about.compliance)}. {safe(about.when)}.",
        f"**{safe(about.problem)}**" if about.problem else "",
        bullets([*about.reasons, *about.undecided]),
        f"Objective: {safe(about.objective)}",
        f"Procedure: {safe(about.procedure)}" if about.procedure else "",
        table(["Parameter", "Value"], about.setup) if about.setup else "",
        bullets(about.switches),
        table(["Measured", "Value", "95 % interval", "Note"], values) if values else "Nothing was measured.",
        *(_shown(one) for one in test.tables),
        _figures(test),
        bullets(about.notes),
        bullets(f"{name}: {means}" for name, means in about.meanings),
        table(["Run", "Part", "At", "Verdict", "Requests", "Why"], runs) if runs else "",
    ]


def _compliance(campaign: Campaign) -> list[str]:
    tests = overview.in_order(campaign)
    rows = [
        [
            overview.title(test),
            compliance.labelled(test.compliance),
            compliance.tally(test.compliance) or "none",
        ]
        for test in tests
    ]
    parts = [table(["Test performed", "Compliance", "Findings"], rows)]
    if findings := deviations.findings(campaign):
        lines = [
            [one.finding.state, one.finding.id, one.finding.level, one.tests, one.finding.text]
            for one in findings
        ]
        head = ["State", "Rule", "Level", "Tests", "In words"]
        parts += ["Deviations and declarations:", table(head, lines)]
    return [*parts, "Limitations:", bullets(contents.limitations(campaign))]


def _reproduction(campaign: Campaign) -> list[str]:
    about = contents.reproduction(campaign)
    rerun = ["```text\ninferometer rerun report.html\n```", "or, from the plan:", _fenced(about.command)]
    return [
        *([f"**{safe(about.redacted)}**"] if about.redacted else rerun),
        table(["Harness", "Version"], about.harness),
        "Configuration:",
        _fenced(about.plan),
        table(["Data", "Value"], about.data),
    ]


def _fenced(text: str) -> str:
    # A fence inside outside text would end ours.
    return "```text\n" + "\n".join(clean_line(line) for line in text.splitlines()) + "\n```"


def clean_line(line: str) -> str:
    """A line for a code fence: indented as it was, no control characters, no fence."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * indent + clean(line).replace("```", "'''")


def render_markdown(campaign: Campaign) -> str:
    """The whole of report.md."""
    verdict = campaign.verdict
    names = contents.SECTIONS
    results = [
        part
        for title, rows in contents.summaries(campaign).items()
        for part in (f"### {title}", table([title, "Value"], rows))
    ]
    banners = overview.banners(campaign, campaign.redacted)
    numbered = enumerate(overview.in_order(campaign), 1)
    parts = [
        *(part for word, means in banners for part in (f"# {word}", safe(means))),
        f"# Inferometer test report: {safe(campaign.name)}",
        f"**{verdict.status}.** {overview.meaning(campaign)}",
        f"Compliance: {safe(deviations.label(campaign))}.",
        bullets(overview.reasons(verdict)),
        safe(contents.lede(campaign)),
        _overview(campaign),
        f"## 1. {names[0]}",
        table(["Item", "Value"], contents.system(campaign)),
        f"## 2. {names[1]}",
        table(["Item", "Value"], contents.configuration(campaign)),
        f"## 3. {names[2]}",
        *results,
        f"## 4. {names[3]}",
        *(part for number, test in numbered for part in _test(test, number)),
        f"## 5. {names[4]}",
        *_compliance(campaign),
        f"## 6. {names[5]}",
        *_reproduction(campaign),
        "## Minimum report",
        _fenced(render_minimum(campaign)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
