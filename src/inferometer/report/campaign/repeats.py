"""Repeats of a campaign in a terminal or a pipe: the headline of each test over the repeats, and where they lie."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from inferometer.documents.campaign import Campaign, ProcedureDocument, ReportedValue
from inferometer.measure.heterogeneity import heterogeneous
from inferometer.measure.stats import mean_interval
from inferometer.report.campaign import overview, titles
from inferometer.report.campaign.cells import is_number, labelled
from inferometer.report.figures import UNMEASURED, clean, figure, interval
from inferometer.report.tables import VERDICT_STYLES, Screen

LEAST = 3
"""Draft 6.3: at least 3 independent runs."""


def render_repeats(campaigns: Sequence[Campaign], requested: int, console: Console, folder: str) -> None:
    """Print what the repeats came to. `campaigns`: one or more, in their order; `folder`: where they lie."""
    screen = Screen(console, most=100)
    screen.say("")
    for word, means in overview.banners(campaigns[0]):
        screen.say(f"{word}  {means}", "bold magenta")
    head = ["Test", "Verdicts", "Mean", "95 %", "Which is"]
    names = dict.fromkeys(test.test for one in campaigns for test in overview.in_order(one))
    rows = [_row(name, campaigns) for name in names]
    missing = screen.table(head, rows, [False, False, True, True, False], words=4, rank=(0, 2, 3, 4, 1))
    if missing:
        screen.say(f"{', '.join(missing)}: in the reports", "dim")
    screen.say("Mean of the headlines that are not INVALID, with Student's interval over repeats.", "dim")
    apart = [name for name in names if _apart(_believed(name, campaigns))]
    if apart:
        screen.say(
            f"{', '.join(map(clean, apart))}: repeats differ by more than their own intervals explain. Either the system "
            "changed between them, or it differs from start to start.",
            "bold yellow",
        )
    screen.say("")
    for one in campaigns:
        status = one.verdict.status
        seeds = ", ".join(map(str, one.reproduction.seeds))
        screen.say(f"{clean(one.id)}: {status}, seed {seeds}", VERDICT_STYLES.get(status, "bold"))
    if len(campaigns) < requested:
        screen.say(f"{len(campaigns)} of {requested} repeats were carried out.", "bold yellow")
    if len(campaigns) < LEAST:
        screen.say(f"A comparison claims nothing of fewer than {LEAST} repeats a side (draft 6.3).", "dim")
    screen.say("")
    screen.path("Repeats", clean(folder))


def _tests(name: str, campaigns: Sequence[Campaign]) -> list[ProcedureDocument]:
    return [test for one in campaigns for test in one.tests if test.test == name]


def _believed(name: str, campaigns: Sequence[Campaign]) -> list[ReportedValue]:
    """A test's headlines, all of the same name, but for those of INVALID repeats."""
    tests = _tests(name, campaigns)
    found = [
        one
        for test in tests
        if test.verdict.status != "INVALID"
        if (one := titles.headline(test)) is not None
    ]
    # The headline is the best value that a test has, which another repeat may be without.
    return [one for one in found if one.name == found[0].name and is_number(one.value)]


def _apart(values: Sequence[ReportedValue]) -> bool:
    known = [(float(one.value), one.ci) for one in values if one.ci is not None]  # type: ignore[arg-type]  # it is a number
    return heterogeneous([value for value, _ in known], [ci for _, ci in known])


def _row(name: str, campaigns: Sequence[Campaign]) -> list[str]:
    tests = _tests(name, campaigns)
    counts = Counter(test.verdict.status for test in tests)
    verdicts = ", ".join(f"{count} {status}" for status, count in counts.items())
    first = next((one for test in tests if (one := titles.headline(test)) is not None), None)
    if first is None:
        return [clean(name), verdicts, UNMEASURED, "", ""]
    believed = _believed(name, campaigns)
    if not believed:
        return [clean(name), verdicts, UNMEASURED, "", labelled(first.label, first.at)]
    values = [float(one.value) for one in believed]  # type: ignore[arg-type]  # it is a number
    mean = math.fsum(values) / len(values)
    ci = mean_interval(len(values), mean, statistics.stdev(values) if len(values) > 1 else None)
    shown = f"{figure(mean, trim=True)} {clean(believed[0].unit)}".strip()
    of = f" (of {len(values)})" if len(values) < len(tests) else ""
    label = labelled(believed[0].label, believed[0].at)
    return [clean(name), verdicts, shown + of, "" if ci is None else interval(ci), label]
