"""The history in a terminal, in a pipe and as a page: nothing is cut, and nothing of others is obeyed."""

from __future__ import annotations

import io
from typing import Any

import pytest
from histories import CONDITIONS, entry, figure, history, noisy
from html_page import LOADING, Page
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console
from sample_runs import HOSTILE

from inferometer.documents.history import HistoryEntry, NumberedEntry
from inferometer.judge.history.regression import Sensitivity
from inferometer.report.history import page, words
from inferometer.report.history.console import (
    plot,
    render_check,
    render_entry,
    render_list,
    render_trend,
    sparkline,
)
from inferometer.studies.history.check import Question, check
from inferometer.studies.history.trend import trend


class _Ascii(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "ascii")


def shown(render: Any, *arguments: Any, width: int = 80, ascii_only: bool = False) -> str:
    out = _Ascii() if ascii_only else io.TextIOWrapper(io.BytesIO(), "utf-8")
    render(*arguments, Console(file=out, width=width))
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def vile() -> HistoryEntry:
    """An entry that another machine sent, every text of which is hostile."""
    made = entry(1, {})
    return replace(
        made,
        id=HOSTILE,
        part=HOSTILE,
        name=HOSTILE,
        folder=HOSTILE,
        reasons=(HOSTILE,),
        fingerprint=HOSTILE,
        conditions={HOSTILE: HOSTILE, "sut.model": HOSTILE, "sut.engine": HOSTILE},
        versions={HOSTILE: HOSTILE},
        figures=(figure(HOSTILE, 1.0, title=HOSTILE, unit=HOSTILE),),
    )


def vile_history() -> list[NumberedEntry]:
    made = [
        NumberedEntry(at, replace(vile(), started=f"2026-01-{at:02}T00:00:00Z", figures=(
            replace(vile().figures[0], value=value),
        )))
        for at, value in enumerate([*noisy(12), 130.0], start=1)
    ]  # fmt: skip
    other = replace(made[0], entry=replace(made[0].entry, conditions={"\x1b[31mkey": "x"}))
    newest = replace(made[-1], entry=replace(made[-1].entry, versions={HOSTILE: "other"}))
    return [other, *made[1:-1], newest]


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_everything_fits_its_width_and_its_encoding(width: int, ascii_only: bool) -> None:
    """A list, an entry, a check of a regression with a change of level, and a plot."""
    made = history([*noisy(40, 1), *noisy(12, 2, level=115)])
    made[-1] = replace(
        made[-1], entry=replace(made[-1].entry, conditions=CONDITIONS, versions={"engine": "new"})
    )
    texts = [
        shown(render_list, made[-5:], 7, width=width, ascii_only=ascii_only),
        shown(render_entry, made[0], width=width, ascii_only=ascii_only),
        shown(render_check, check(made, Question()), width=width, ascii_only=ascii_only),
        shown(render_trend, trend(made, "ttft_p50", None, ()), width=width, ascii_only=ascii_only),
    ]
    for text in texts:
        assert all(cell_len(line) <= width for line in text.splitlines())
        assert text.isascii() or not ascii_only


def test_a_check_says_what_it_found_and_why() -> None:
    """The result, what it stands against, each figure, and the conclusion."""
    made = history([*noisy(12), 120.0])
    text = " ".join(shown(render_check, check(made, Question()), width=120).split())
    for said in (
        "run run-13 (entry 13, 2026-01-14 00:00:00 UTC, VALID)",
        "Against 12 comparable VALID results before it (entries 1, 2 ... 12); seeds differ, which is part of the noise.",
        "REGRESSION Worse than the results before: ttft_p50.",
        "ttft_p50 is worse: the newest result: +",
    ):
        assert said in text
    few = " ".join(shown(render_check, check(made[:4], Question()), width=120).split())
    assert "No claim: 3 comparable VALID results before it; 8 are needed." in few
    assert few.endswith("INCONCLUSIVE There is too little history for a claim.")


def test_a_change_of_level_is_told_with_its_size() -> None:
    """And whether it decides."""
    made = history([*noisy(40, 1), *noisy(12, 2, level=115)])
    document = check(made, Question(sensitivity=Sensitivity()))
    (change,) = document.results[0].changes
    line = words.level_change(change, {one.name: one for one in document.results[0].figures})
    assert line.startswith("ttft_p50: the level changed at entry 41 by +1")
    assert line.endswith("(worse, p 0.00020).")


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [(0.05, "ratio", "+5 %"), (-0.05, "ratio", "\u22125 %"), (3.0, "points", "+3 points"), (2.5, "difference", "+2.5 ms"),
     (None, "ratio", "\u2013"), (0.0, "ratio", "0 %")],
)  # fmt: skip
def test_a_change_has_its_sign_and_its_unit(value: float | None, scale: Any, text: str) -> None:
    """By the figure's scale."""
    assert words.change(value, scale, "ms") == text


def test_a_plot_has_a_column_for_each_result() -> None:
    """The highest in the first line, the lowest in the last; what is not VALID is an x."""
    made = history([1.0, 3.0, 2.0])
    made[2] = replace(made[2], entry=replace(made[2].entry, verdict="INVALID"))
    lines = plot(trend(made, "ttft_p50", None, ()).points, (2,), 3, unicode=False)
    assert lines == ["3 | o", "2 |  x", "1 |o", "    ^"]
    assert sparkline([1, 2, 3], unicode=False) == "_+#"
    assert sparkline([5, 5]) == "\u2584\u2584"


def test_hostile_texts_steer_no_terminal() -> None:
    """Of every part of an entry."""
    made = vile_history()
    texts = [
        shown(render_list, made, 0, width=200),
        shown(render_entry, made[1], width=200),
        shown(render_check, check(made, Question()), width=200),
        shown(render_trend, trend(made, HOSTILE, None, ()), width=200),
    ]
    for text in texts:
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_page_holds_its_data_and_loads_and_runs_nothing_of_others() -> None:
    """Whatever its texts hold."""
    made = vile_history()
    text = page.render(trend(made, HOSTILE, None, ()))
    seen = Page(text)
    assert seen.open == []
    assert "img" not in {tag for tag, _ in seen.tags}
    assert not [one for _, given in seen.tags for one in given if one in LOADING]
    assert len(seen.scripts) == 2
    assert "12 comparable results" in seen.text
    assert "svg" in {tag for tag, _ in seen.tags}


def test_a_result_that_nobody_measured_is_said_to_be_one() -> None:
    """In the list and where it is shown whole; a measured one is not."""
    simulated = replace(entry(1, {"ttft_p50": 4.0}), conditions=CONDITIONS | {"instrument.simulated": "true"})
    measured = replace(simulated, conditions=CONDITIONS | {"instrument.simulated": "false"})
    for one, said in ((simulated, True), (measured, False)):
        numbered = NumberedEntry(1, one)
        assert ("VALID, simulated" in shown(render_entry, numbered)) is said
        assert ("simulated" in shown(render_list, [numbered], 0, width=140)) is said
