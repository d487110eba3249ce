"""The console report fits its width, its encoding and its pipe, and says the verdict."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from inferometer.report import wording
from inferometer.report.figures import figure
from inferometer.report.run.console import render_console


def printed(summary: dict[str, Any], width: int, encoding: str = "utf-8", **options: Any) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    render_console(summary, Console(file=file, width=width, **options), "runs/x/report.html")
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [40, 50, 60, 72, 80, 100, 120, 160, 200])
def test_no_line_is_wider_than_the_console(sample: Any, width: int) -> None:
    """From 40 to 200 columns nothing runs over, except a path, which must stay whole."""
    for line in printed(sample[0], width).splitlines():
        assert cell_len(line) <= width or line.startswith("Report:")


@pytest.mark.parametrize("width", [40, 50, 80, 200])
def test_numbers_are_never_cut(valid: dict[str, Any], width: int) -> None:
    """Median and P99 of TTFT stand whole on one line at every width, and a column left out is named."""
    text = printed(valid, width)
    stats = valid["metrics"]["ttft_ms"]
    row = next(line for line in text.splitlines() if line.startswith(("Time to First Token", "TTFT ms")))
    assert figure(stats["p50"]) in row
    assert figure(stats["p99"]) in row
    heading = next(line for line in text.splitlines() if "Mean" in line)
    for name in ("Min", "Std", "P75", "P99.9"):
        assert name in heading or re.search(rf"{name}[^:]*: in\s+the\s+report", text)


def test_a_wide_console_shows_every_row_and_column(valid: dict[str, Any]) -> None:
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


def test_an_ascii_console_gets_ascii(sample: Any) -> None:
    """No sign is lost in an error and none slips through."""
    assert printed(sample[0], 80, "ascii").isascii()


def test_a_pipe_gets_no_colour_and_no_control_characters(sample: Any) -> None:
    """Neither our styles nor a server's escape sequences reach a file."""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", printed(sample[0], 80).replace("\r", ""))


def test_a_terminal_shows_the_servers_words_as_text(invalid: dict[str, Any]) -> None:
    """With colours on, the only escape sequences are colours, and a name in brackets is not read as markup."""
    invalid["sut"]["model"] = "[bold]loud[/bold] [link=http://x]"
    text = printed(invalid, 100, force_terminal=True, color_system="standard")
    assert "[bold]loud[/bold] [link=http://x]" in text
    assert set(re.findall(r"\x1b.[^a-zA-Z]*[a-zA-Z]", text)) <= set(re.findall(r"\x1b\[[0-9;]*m", text))


def test_the_verdict_and_every_reason_are_told(sample: Any) -> None:
    """One line opens with the status; every deciding check's sentence and advice follows; the report's path ends it."""
    summary = sample[0]
    lines = printed(summary, 400).splitlines()
    status = summary["verdict"]["status"]
    at = next(place for place, line in enumerate(lines) if line.startswith(status + " "))
    after = " ".join(" ".join(lines[at:]).split())
    assert wording.VERDICTS[status] in lines[at]
    for check in summary["verdict"]["checks"]:
        if check["status"] in ("fail", "unsure"):
            assert " ".join(wording.sentence(check).replace("\u202f", "").split()) in after
            assert (wording.advice(check) or "") in after
    assert lines[-1] == "Report: runs/x/report.html"


def test_few_samples_are_marked_and_explained(valid: dict[str, Any]) -> None:
    """P99.9 of 1,006 samples carries the mark and the footnote; with samples enough neither is there."""
    text = printed(valid, 160)
    assert figure(valid["metrics"]["ttft_ms"]["p99_9"]) + "\u00b0" in text
    assert "\n\u00b0 fewer samples" in text
    for of in (valid["metrics"], *valid["by_class"]):
        for stats in of.values():
            if isinstance(stats, dict) and "n" in stats:
                stats["n"] = 10_000
    assert "\u00b0" not in printed(valid, 160)
