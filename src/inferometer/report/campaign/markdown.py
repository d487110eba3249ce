"""report.md of a campaign: the verdicts in one table, then draft C.2's six sections.

Pictures are in report.html; here each is named with what it marks. The numbers behind it stand in the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferometer.report.campaign import compliance, compliance_summary, contents
from inferometer.report.campaign.cells import WITHHELD, heading, numeric
from inferometer.report.campaign.contents import Campaign
from inferometer.report.campaign.document import whole
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.figures import UNMEASURED, clean
from inferometer.report.tables import bullets
from inferometer.report.tables import escaped as safe
from inferometer.report.tables import markdown_table as table


def _overview(campaign: Campaign) -> str:
    rows = [
        [
            f"{row['section']} {row['title']}",
            f"{row['label']} {row['value']}".strip(),
            row["interval"],
            " ".join(
                part for part in (row["verdict"], row["partial"] and f"({row['partial'].lower()})") if part
            ),
            row["compliance"],
        ]
        for row in compliance_summary.overview(campaign)
    ]
    return table(["Test", "Headline", "95 % interval", "Verdict", "Compliance"], rows)


def _shown(one: Mapping[str, Any]) -> str:
    parts = [f"**{safe(one['title'])}** (draft {safe(one['section'])})"]
    if one["rows"]:
        rows = [[text for text, _ in row] for row in contents.cells_of(one)]
        right = [numeric(one, index) for index in range(len(one["columns"]))]
        parts.append(table([heading(column) for column in one["columns"]], rows, right))
    elif not one["notes"]:
        parts.append("Not measured.")
    return "\n\n".join([*parts, *(safe(note) for note in one["notes"])])


def _figures(test: Mapping[str, Any]) -> str:
    lines = []
    for one in test["figures"]:
        marked = ", ".join(clean(mark["label"]) for mark in one["marks"])
        where = "see report.html" if one["series"] else WITHHELD if one["capacity"] else UNMEASURED
        lines.append(clean(one["title"]) + (f" (marked: {marked})" if marked else "") + f": {where}")
    return bullets(lines)


def _test(test: Mapping[str, Any], number: int) -> list[str]:
    about = contents.detail(test)
    values = [[one["label"], one["value"], one["interval"], one["note"]] for one in about["values"]]
    runs = [
        [run[key] for key in ("run", "part", "at", "verdict", "requests", "why")] for run in about["runs"]
    ]
    return [
        f"### 4.{number} {safe(about['title'])} (draft {safe(about['section'])})",
        f"**{safe(about['verdict'])}**, {safe(about['compliance'])}. {safe(about['when'])}.",
        f"**{safe(about['problem'])}**" if about["problem"] else "",
        bullets([*about["reasons"], *about["undecided"]]),
        f"Objective: {safe(about['objective'])}",
        f"Procedure: {safe(about['procedure'])}" if about["procedure"] else "",
        table(["Parameter", "Value"], about["setup"]) if about["setup"] else "",
        bullets(about["switches"]),
        table(["Measured", "Value", "95 % interval", "Note"], values) if values else "Nothing was measured.",
        *(_shown(one) for one in test["tables"]),
        _figures(test),
        bullets(about["notes"]),
        bullets(f"{name}: {means}" for name, means in about["meanings"]),
        table(["Run", "Part", "At", "Verdict", "Requests", "Why"], runs) if runs else "",
    ]


def _compliance(campaign: Campaign) -> list[str]:
    rows = [[row["title"], row["compliance"], row["tally"] or "none"] for row in contents.performed(campaign)]
    parts = [table(["Test performed", "Compliance", "Findings"], rows)]
    found = [
        [one[key] for key in ("state", "id", "level", "tests", "text")] for one in contents.findings(campaign)
    ]
    if found:
        parts += [
            "Deviations and declarations:",
            table(["State", "Rule", "Level", "Tests", "In words"], found),
        ]
    return [*parts, "Limitations:", bullets(contents.limitations(campaign))]


def _reproduction(campaign: Campaign) -> list[str]:
    about = contents.reproduction(campaign)
    rerun = ["```text\ninferometer rerun report.html\n```", "or, from the plan:", _fenced(about["command"])]
    return [
        *([f"**{safe(about['redacted'])}**"] if about["redacted"] else rerun),
        table(["Harness", "Version"], about["harness"]),
        "Configuration:",
        _fenced(about["plan"]),
        table(["Data", "Value"], about["data"]),
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
    campaign = whole(campaign)
    verdict = campaign["verdict"]
    names = contents.SECTIONS
    results = [
        part
        for title, rows in contents.summaries(campaign).items()
        for part in (f"### {title}", table([title, "Value"], rows))
    ]
    numbered = enumerate(campaign["tests"], 1)
    parts = [
        *(
            part
            for word, means in compliance_summary.banners(campaign)
            for part in (f"# {word}", safe(means))
        ),
        f"# Inferometer test report: {safe(campaign['name'])}",
        f"**{safe(verdict['status'])}.** {compliance_summary.MEANINGS.get(str(verdict['status']), '')}",
        f"Compliance: {safe(compliance.label(campaign['compliance']))}.",
        bullets(compliance_summary.reasons(verdict)),
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
