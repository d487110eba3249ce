"""The console report fits its width, its encoding and its pipe, and says the verdict."""

from __future__ import annotations

import dataclasses
import io
import re
from typing import Any

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from inferometer.documents.summary import Summary
from inferometer.metrics.statistics import Stats
from inferometer.report import checks
from inferometer.report.figures import figure
from inferometer.report.run.console import render_console
from inferometer.report.run.markdown import render_markdown


def printed(summary: Summary, width: int, encoding: str = "utf-8", **options: Any) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    render_console(summary, Console(file=file, width=width, **options), "runs/x/report.html")
    file.flush()
    return raw.getvalue().decode(encoding)


def of_many(part: Any) -> Any:
    """The same with 10,000 samples behind every statistic."""
    many = {
        name: dataclasses.replace(stats, n=10_000)
        for name in part.__struct_fields__
        if isinstance(stats := getattr(part, name), Stats)
    }
    return replace(part, **many)


@pytest.mark.parametrize("width", [40, 50, 60, 72, 80, 100, 120, 160, 200])
def test_no_line_is_wider_than_the_console(sample: Any, width: int) -> None:
    """From 40 to 200 columns nothing runs over, except a path, which must stay whole."""
    for line in printed(sample[0], width).splitlines():
        assert cell_len(line) <= width or line.startswith("Report:")


@pytest.mark.parametrize("width", [40, 50, 80, 200])
def test_numbers_are_never_cut(valid: Summary, width: int) -> None:
    """Median and P99 of TTFT stand whole on one line at every width, and a column left out is named."""
    text = printed(valid, width)
    stats = valid.metrics.ttft_ms
    assert stats is not None
    row = next(line for line in text.splitlines() if line.startswith(("Time to First Token", "TTFT ms")))
    assert figure(stats.p50) in row
    assert figure(stats.p99) in row
    heading = next(line for line in text.splitlines() if "Mean" in line)
    for name in ("Min", "Std", "P75", "P99.9"):
        assert name in heading or re.search(rf"{name}[^:]*: in\s+the\s+report", text)


def test_a_wide_console_shows_every_row_and_column(valid: Summary) -> None:
    """Nine rows, ten statistics."""
    text = printed(valid, 160)
    heading = next(line for line in text.splitlines() if "Mean" in line)
    assert heading.split() == ["Mean", "Min", "Max", "Std", "P50", "P75", "P90", "P95", "P99", "P99.9"]
    for row in (
        "Time to First Token (ms)",
        "Request Latency (ms)",
        "Inter-Token Latency (ms)",
        "Time per Output Token (ms)",
        "Per-Request Output Token Throughput (tokens/s)",
        "Input Sequence Length (tokens)",
        "Output Sequence Length (tokens)",
        "Output Token Throughput (tokens/s)",
        "Request Throughput (req/s)",
    ):
        assert f"\n{row} " in text


def test_the_whole_run_stands_beside_the_window(valid: Summary) -> None:
    """Throughput from first send to last end, in the console's line and the table of report.md."""
    whole = valid.throughput.whole_run
    text = " ".join(printed(valid, 160).split())
    assert "Over the whole run, from first send to last end: Output Token Throughput" in text
    assert f"Request Throughput {figure(whole.request_s)} req/s" in text
    (row,) = re.findall(r"\| Throughput .*\n(?:.*\n)*?(\| Request Throughput .*)\n", render_markdown(valid))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert (cells[1], cells[3]) == (figure(valid.throughput.request_s), figure(whole.request_s))


def test_an_ascii_console_gets_ascii(sample: Any) -> None:
    """No sign is lost in an error and none slips through."""
    assert printed(sample[0], 80, "ascii").isascii()


def test_a_pipe_gets_no_colour_and_no_control_characters(sample: Any) -> None:
    """Neither our styles nor a server's escape sequences reach a file."""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", printed(sample[0], 80).replace("\r", ""))


def test_a_terminal_shows_the_servers_words_as_text(invalid: Summary) -> None:
    """With colours on, the only escape sequences are colours, and a name in brackets is not read as markup."""
    loud = replace(invalid, sut=replace(invalid.sut, model="[bold]loud[/bold] [link=http://x]"))
    text = printed(loud, 100, force_terminal=True, color_system="standard")
    assert "[bold]loud[/bold] [link=http://x]" in text
    assert set(re.findall(r"\x1b.[^a-zA-Z]*[a-zA-Z]", text)) <= set(re.findall(r"\x1b\[[0-9;]*m", text))


def test_the_verdict_and_every_reason_are_told(sample: Any) -> None:
    """One line opens with the status; every deciding check's sentence and advice follows; the report's path ends it."""
    summary = sample[0]
    lines = printed(summary, 400).splitlines()
    status = summary.verdict.status
    at = next(place for place, line in enumerate(lines) if line.startswith(status + " "))
    after = " ".join(" ".join(lines[at:]).split())
    assert checks.VERDICTS[status] in lines[at]
    for check in summary.verdict.checks:
        if check.status in ("fail", "unsure"):
            assert " ".join(checks.sentence(check).replace("\u202f", "").split()) in after
            assert (checks.advice(check) or "") in after
    assert lines[-1] == "Report: runs/x/report.html"


def test_few_samples_are_marked_and_explained(valid: Summary) -> None:
    """P99.9 of 1,006 samples carries the mark and the footnote; with samples enough neither is there."""
    text = printed(valid, 160)
    assert valid.metrics.ttft_ms is not None
    assert figure(valid.metrics.ttft_ms.p99_9) + "\u00b0" in text
    assert "\n\u00b0 fewer samples" in text
    enough = replace(
        valid,
        metrics=of_many(valid.metrics),
        by_class=tuple(of_many(one) for one in valid.by_class),
    )
    assert "\u00b0" not in printed(enough, 160)
