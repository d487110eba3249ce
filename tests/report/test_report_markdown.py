"""report.md: the minimum report is appendix C.1 line for line, and outside text stays text."""

from __future__ import annotations

import re
from typing import Any

from inferometer.documents.summary import Summary
from inferometer.report.figures import figure
from inferometer.report.run import disclosure
from inferometer.report.run.markdown import minimum_report, render_markdown
from inferometer.report.tables import escaped, markdown_table

TEMPLATE = r"""=== LLM Benchmark Report \(Minimum\) ===

System Identification:
- Model: .+
- Hardware: .+
- Software: .+
- SUT Boundary: (Model Engine|Gateway|Compound|not declared)

Test Configuration:
- Workload: .+
- Load Model: (open-loop .+|closed-loop concurrency .+)
- Request Count: \S+
- Test Duration: (\S+ seconds|not measured)

Key Results:
- TTFT P50: (\S+ ms|not measured)
- TTFT P99: (\S+ ms|not measured)
- TPOT P50: (\S+ ms|not measured)
- TPOT P99: (\S+ ms|not measured)
- Max Throughput: not measured
- Throughput at P99 TTFT < 500ms: not measured

Notes:
(- .+\n)+
=== End Report ==="""


def squeezed(text: str) -> str:
    """Without the padding that lines columns up."""
    return re.sub(r"-{3,}(:?)", r"--\1", re.sub(r" {2,}", " ", text)).replace("| -- |", "| --- |")


def test_the_minimum_report_has_the_lines_of_appendix_c1_in_their_order(sample: Any) -> None:
    """Title, four groups, every line, end marker; throughput of a search nobody ran is not invented."""
    assert re.fullmatch(TEMPLATE, minimum_report(sample[0]))
    assert minimum_report(sample[0]) in render_markdown(sample[0])


def test_the_minimum_report_of_a_run_reads_as_expected(valid: Summary) -> None:
    """The values stand behind the words they belong to."""
    lines = minimum_report(valid).splitlines()
    assert valid.window.duration_s is not None
    assert lines[3:7] == [
        "- Model: meta-llama/Llama-3.1-8B-Instruct (main@5f0b02c)",
        "- Hardware: NVIDIA H100 SXM x 1",
        "- Software: vLLM 0.10.1",
        "- SUT Boundary: Model Engine",
    ]
    assert lines[9:13] == [
        "- Workload: synthetic-uniform",
        "- Load Model: open-loop 20 req/s",
        "- Request Count: 1000",
        f"- Test Duration: {figure(valid.window.duration_s)} seconds",
    ]
    assert "- Guardrails: input filter off" in minimum_report(valid)


def test_every_table_row_has_as_many_cells_as_its_heading(sample: Any) -> None:
    """No text from outside opens or closes a cell."""
    wanted = None
    for line in render_markdown(sample[0]).splitlines():
        if not line.startswith("|"):
            wanted = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        wanted = wanted or cells
        assert cells == wanted, line


def test_outside_text_opens_no_markup_outside_the_fence(invalid: Summary) -> None:
    """A hostile model name is neither HTML nor Markdown, and the code fence holds exactly one block."""
    text = render_markdown(invalid)
    assert text.count("```") == 2
    outside = text.split("```")[0] + text.split("```")[2]
    assert "<img" not in outside
    assert "</script" not in outside
    assert "\x1b" not in text


def test_markdown_and_html_signs_are_escaped_in_a_cell() -> None:
    """The signs that mean something in Markdown or HTML come out as themselves."""
    assert escaped("a|b <i> `c` [d](e) &amp;\nf") == r"a\|b &lt;i&gt; \`c\` \[d\](e) &amp;amp; f"


def test_the_disclosure_names_what_the_draft_demands(valid: Summary) -> None:
    """Tokenizer, seed, ITL option, clocks, warm-up, caching, special tokens, all five TTFT percentiles with their count."""
    text = squeezed(render_markdown(valid))
    tokenizer = valid.tokens.tokenizer
    named = f"{tokenizer.name}, version {tokenizer.version}, vocabulary {figure(tokenizer.vocab_size)}"
    assert escaped(f"{named}, source {tokenizer.source}") in text
    for needed in ("| Seed | 42 |", "| ITL option | direct: over 90 %", "monotonic clock", "special tokens"):
        assert needed in text
    for needed in (
        "20 requests sent, 20 completed",
        "output tokens, kept apart",
        "| Warm-up verified | stable: end-to-end latency",
        "| Prefix caching | disabled",
        "| Steady window | ",
    ):
        assert needed in text
    heading = "| Input tokens | n | P50 | P90 | P95 | P99 | P99.9 |\n| --- |" + " --: |" * 6
    assert f"{heading}\n| all | 1000 |" in text


def test_what_nobody_declared_is_a_deviation(empty: Summary, valid: Summary) -> None:
    """A blank declaration is said, a full one is not."""
    assert any(line.startswith("Not declared: SUT boundary") for line in disclosure.deviations(empty))
    assert not any(line.startswith("Not declared") for line in disclosure.deviations(valid))


def test_each_check_that_is_not_passed_is_a_deviation(invalid: Summary) -> None:
    """As many deviations as fails, undecided checks and notes, plus the missing declarations."""
    worse = [check for check in invalid.verdict.checks if check.status in ("fail", "unsure", "note")]
    assert len(disclosure.deviations(invalid)) == len(worse) + 2  # and what of the workload is not specified


def test_the_columns_of_a_table_line_up_in_the_text() -> None:
    """Numbers are set to the right, words to the left."""
    assert markdown_table(
        ["Name", "n", "Words"], [["a", "10", "so it is"], ["bcdef", "5", "x"]], [False, True]
    ) == (
        "| Name  |   n | Words    |\n| ----- | --: | -------- |\n| a     |  10 | so it is |\n| bcdef |   5 | x        |"
    )
