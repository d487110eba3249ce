"""minimum.txt: draft C.1's own lines, then what the draft makes mandatory beyond them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import documents
import pytest

from inferometer.report.campaign import disclosure
from inferometer.report.campaign.document import LINES, whole
from inferometer.report.campaign.minimum import c1, render_minimum

TEMPLATE = (Path(__file__).parent.parent / "vectors" / "report" / "minimum.txt").read_text().splitlines()
"""Draft C.1 as it stands, with its placeholders in brackets."""


def pattern(line: str) -> str:
    """A template line with anything, but something, in the place of each bracket."""
    parts = re.split(r"\[[^\]]*\]", line)
    return ".+".join(map(re.escape, parts))


def test_the_lines_are_those_of_the_draft() -> None:
    """Line by line, in order; a note more or fewer is all that may differ, and the hardware's count is a number."""
    lines = c1(whole(documents.campaign()))
    assert len(lines) == len(TEMPLATE)
    for line, template in zip(lines, TEMPLATE, strict=True):
        assert re.fullmatch(pattern(template), line) or line.endswith(": not measured"), (line, template)


@pytest.mark.parametrize("name", documents.SAMPLES)
def test_the_template_stands_in_every_report(name: str) -> None:
    """Whatever was measured: each line up to its bracket, between title and end."""
    lines = render_minimum(documents.SAMPLES[name]()).splitlines()
    start, end = (lines.index(TEMPLATE[i]) for i in (0, -1))
    heads = [line.partition("[")[0] for line in TEMPLATE if line.startswith("- ") and line[2] != "["]
    between = lines[start:end]
    assert [line for line in between if line.startswith(tuple(heads))] == [
        next(line for line in between if line.startswith(head)) for head in heads
    ]


def test_null_is_not_measured_and_never_zero() -> None:
    """Every line of a campaign in which nothing was measured says so; what is declared says that it was not."""
    text = render_minimum(documents.empty())
    for label in ("TTFT P50", "TTFT P99", "TPOT P50", "Max Throughput", "Request Count", "Test Duration"):
        assert f"- {label}: not measured\n" in text
    assert "- Model: not declared\n" in text
    assert "- SUT Boundary: not declared\n" in text
    assert not re.search(r": 0(\.0)?( |$)", text, re.MULTILINE)


def test_an_absent_member_is_null() -> None:
    """A campaign of which no run came to an end has three members of `minimum`."""
    document = documents.empty()
    document["minimum"] = {"notes": []}
    document["sut"] = document["environment"] = document["tokenizer"] = None
    assert "- TTFT P99: not measured\n" in render_minimum(document)
    assert set(LINES) <= set(whole(document)["minimum"])


def test_the_disclosures_hold_what_c1_lacks() -> None:
    """Tokenizer with version, vocabulary and source; counting option by word, section and letter; seed, protocol, chunking,
    ITL option, special tokens, all five percentiles with their count."""
    text = render_minimum(documents.campaign())
    block = text.partition("=== End Report ===")[2]
    for words in (
        "Seeds: 42",
        "Tokenizer: cl100k_base, version tiktoken 0.9.0",
        "Vocabulary size: 100",
        "Tokenizer source: tiktoken",
        "reference: one declared tokenizer for every system (draft 4.4.2, option B)",
        "BOS, EOS",
        "Streaming: HTTP/1.1 SSE",
        "Chunking: 98.1 %",
        "ITL option: direct",
        "Warm-up: 100",
        "Guardrails: input filter off",
        "TTFT Requests: 10",
        "TTFT P50: 127\u00a0ms",
        "TTFT P90: 245\u00a0ms",
        "TTFT P95: 312\u00a0ms",
        "TTFT P99: 524\u00a0ms",
        "TTFT P99.9: 891\u00a0ms",
    ):
        assert words in block, words
    assert "claims no compliance" in block


def test_what_no_run_told_is_not_known() -> None:
    """Without a run's method the fields stand there all the same; what was declared of the system is used."""
    rows = dict(disclosure.rows(whole(documents.empty())))
    assert {rows[name] for name in ("Chunking", "ITL option", "Clocks", "Warm-up")} == {"not known"}
    assert rows["Guardrails"].startswith("input filter off")
    assert rows["TTFT P99.9"] == "not measured"


def test_a_run_tells_its_method(valid: dict[str, Any]) -> None:
    """All rows that the disclosures take are in a run's method."""
    told = {one["name"] for one in disclosure.of_run(valid)}
    assert set(disclosure.SHARED) <= told


def test_several_columns_are_told_apart() -> None:
    """A table of results with intervals has each number with its heading."""
    document = documents.valid()
    (results, *_) = document["tests"][0]["tables"]
    results["columns"].append({"name": "low", "label": "95 % from", "unit": "ms"})
    for row in results["rows"]:
        row.append(None if row[0] == "Requests" else row[1] - 1)
    rows = dict(disclosure.ttft(whole(document)))
    assert rows["TTFT P99"] == "Value: 524\u00a0ms; 95 % from: 523\u00a0ms"
    assert rows["TTFT Requests"] == "10\u202f000"


@pytest.mark.parametrize(("name", "words"), [("simulated", ["SIMULATED", "QUICK"]), ("all", [])])
def test_what_nobody_may_overlook_stands_first(name: str, words: list[str]) -> None:
    """Simulated and quick, above the title."""
    above = render_minimum(documents.SAMPLES[name]()).partition("=== LLM")[0]
    assert re.findall(r"^([A-Z]+):", above, re.MULTILINE) == words
