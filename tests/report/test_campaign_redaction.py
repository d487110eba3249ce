"""What is withheld is nowhere: not in the data, not in a rendering, not in the page's own copy of the data."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import documents
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from inferometer.report.campaign.cells import WITHHELD
from inferometer.report.campaign.console import render_campaign, render_test
from inferometer.report.campaign.html import render_html
from inferometer.report.campaign.markdown import render_markdown
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.campaign.redaction import redact
from inferometer.report.figures import THIN, figure

Document = dict[str, Any]


def renderings(document: Document) -> str:
    """Everything that a reader can get hold of, as one text without the space between thousands."""
    screen = Console(width=200, file=StringIO())
    render_campaign(document, screen)
    for test in document["tests"]:
        render_test(test, screen)
    parts = [
        json.dumps(document),
        render_minimum(document),
        render_markdown(document),
        render_html(document),
        screen.file.getvalue(),  # type: ignore[attr-defined] # it is the StringIO above
    ]
    return "\n".join(parts).replace(THIN, "").replace("\u00a0", " ")


class Marks:
    """Numbers that occur nowhere else, each as long as nothing else in a report: 7 digits, 86xxxxx and up."""

    def __init__(self) -> None:
        self.count = itertools.count(8_600_003, 17)
        self.given: list[int] = []

    def next(self) -> int:
        """One more."""
        self.given.append(next(self.count))
        return self.given[-1]

    def sentence(self) -> str:
        """A number in words."""
        return f"It held at {self.next()} requests/s and no more."

    def in_place(self, value: Any) -> Any:
        """The same shape with every number marked."""
        if isinstance(value, dict):
            return {key: self.in_place(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.in_place(part) for part in value]
        return self.next() if isinstance(value, int | float) and not isinstance(value, bool) else value


def told_of_capacity() -> tuple[Document, list[int]]:
    """A campaign that tells its loads wherever a document can tell one; and those numbers."""
    marks, document = Marks(), documents.campaign()
    for test in document["tests"]:
        for kind in ("values", "tables", "figures"):
            test[kind] = [marks.in_place(part) if part["capacity"] else part for part in test[kind]]
        for part in test["values"] + test["tables"] + test["figures"]:
            if part["capacity"]:
                part["name"] = f"at_{marks.next()}"
                part["title" if "title" in part else "label"] = f"At {marks.next()}"
        first = test["values"][0]
        first["note"] = marks.sentence()
        first["label"] += f", {marks.next()} requests/s"
        test["tables"].append(
            documents.table(
                "extra",
                f"By level, {marks.next()} req/s",
                "5",
                [("rate", "Offered", "req/s"), ("slots", "Concurrency", ""), ("ttft", "TTFT", "ms")],
                [[marks.next(), marks.next(), 1.0], [f"{marks.next()} requests/s", None, 2.0]],
                [marks.sentence()],
            )
        )
        shown = documents.axis
        series = [(f"{marks.next()} req/s", [1.0, 2.0], [0.5, 1.0])]
        test["figures"].append(
            documents.figure("a", "By load", "lines", shown("Load", "req/s"), shown("TTFT", "ms"),
                             [("a", [marks.next(), 2.0], [0.5, marks.next()])]),
        )  # fmt: skip
        test["figures"].append(
            documents.figure("b", f"Distribution, {marks.next()} in flight", "cdf", shown("TTFT", "ms"), shown("Share"),
                             series, [documents.mark(f"{marks.next()} req/s", x=1.0)]),
        )  # fmt: skip
        test["notes"], test["undecided"], test["problem"] = (
            [marks.sentence()],
            [marks.sentence()],
            marks.sentence(),
        )
        test["parameters"] |= {"rates": [marks.next()], "initial": marks.next(), "unheard_of": marks.next()}
        test["plan"]["load"] = {"rate": marks.next()}
        test["plan"]["slos"] = [f"rate>{marks.next()}"]
        test["plan_hash"] = f"sha256:{marks.next()}"
        run = f"20260801T101112Z-{marks.next()}rps"
        reason = {"code": "x", "message": marks.sentence(), "run": run}
        test["verdict"] = {"status": "INVALID", "reasons": [reason]}
        told = {
            "run": run,
            "at": {"rate": marks.next()},
            "why": marks.sentence(),
            "fingerprint": str(marks.next()),
        }
        test["runs"] = [{**one, **told} for one in test["runs"]]
        test["switches"] = [
            {
                "what": "a",
                "state": "b",
                "status": "declared",
                "how": marks.sentence(),
                "evidence": marks.sentence(),
            }
        ]
        if test["compliance"]:
            for one in (*test["compliance"]["findings"], *test["compliance"]["deviations"]):
                one |= {"note": marks.sentence(), "run": run}
            test["compliance"]["limitations"] = [marks.sentence()]
    document["verdict"]["reasons"] = [{"code": "x", "message": marks.sentence(), "run": None}]
    document["name"] = f"h100-{marks.next()}rps"
    document["id"] = f"20260801T101112Z-h100-{marks.next()}rps"
    document["sut"]["notes"] = marks.sentence()
    document["disclosed"] += [
        {"name": "Load", "value": marks.sentence()},
        {"name": "New", "value": marks.sentence()},
    ]
    document["minimum"] |= {
        "load_model": marks.sentence(),
        "max_throughput_tok_s": marks.next(),
        "of_run": str(marks.next()),
    }
    document["minimum"] |= {
        "request_count": marks.next(),
        "test_duration_s": marks.next(),
        "notes": [marks.sentence()],
    }
    document["reproduction"] = marks.in_place(document["reproduction"]) | {
        "command": f"inferometer test all --rate {marks.next()}",
        "run_folders": [f"{marks.next()}rps"],
        "campaign": {"rate": marks.next()},
        "seeds": [42],
    }
    document["unheard_of"] = marks.next()
    written = json.dumps(document)
    return document, [number for number in marks.given if str(number) in written]


def spellings(number: float) -> Iterator[str]:
    yield str(number)
    yield figure(number).replace(THIN, "")


def test_every_place_would_tell() -> None:
    """Without redaction all of them can be found, most of them in the page: the law below is about something."""
    document, given_ = told_of_capacity()
    text = renderings(document)
    assert all(str(number) in text for number in given_)
    page = render_markdown(document).replace(THIN, "")
    assert sum(any(word in page for word in spellings(number)) for number in given_) > 200


def test_no_number_of_what_is_withheld_is_anywhere() -> None:
    """In JSON, text, Markdown, HTML with its embedded copy, or on the screen; as it was or as it is written."""
    document, given_ = told_of_capacity()
    text = renderings(redact(document, "capacity"))
    assert [number for number in given_ for word in spellings(number) if word in text] == []
    assert not re.search(r"(?<![\d.])86\d{5}(?!\d)", text)


def test_the_document_itself_is_untouched() -> None:
    """Redaction is of a copy."""
    document, _ = told_of_capacity()
    before = copy.deepcopy(document)
    redact(document, "capacity")
    assert document == before


@given(st.text(max_size=30), st.integers(0, 10**9), st.text(max_size=30))
def test_a_sentence_with_a_number_is_never_kept(head: str, number: int, tail: str) -> None:
    """Whatever stands around it, unless it is the number of a section, a rule or a percentile."""
    document = documents.valid()
    document["tests"][0]["notes"] = [f"{head} {number} {tail}"]
    (note,) = redact(document, "capacity")["tests"][0]["notes"]
    assert (
        note == WITHHELD or str(number) in re.sub(r"\D", " ", " ".join(_harmless(head, number, tail))).split()
    )


def _harmless(head: str, number: int, tail: str) -> list[str]:
    return re.findall(r"(?:draft|section|table|appendix)\s+[A-C0-9][\d.]*|D-[\w.-]+|P\d\d(?:\.9)?|HTTP/\d(?:\.\d)?",
                      f"{head} {number} {tail}", re.IGNORECASE)  # fmt: skip


def test_what_tells_nothing_stays() -> None:
    """Latency, verdicts, labels, the system, seeds and the rules of the draft are what a shared report is for."""
    redacted = redact(documents.campaign(), "capacity")
    text = render_markdown(redacted).replace("\u00a0", " ")
    for words in ("524.3 ms", "INCONCLUSIVE", "conditionally compliant", "vLLM 0.10.1", "D-4.6.1-grpc-engine", "0.8712",
                  "9123", "| Seeds ", "68.6 %"):  # fmt: skip
        assert words in text, words


def test_it_says_so_prominently_and_cannot_be_rerun() -> None:
    """First line of Markdown and minimum report, a banner and the title of the page; no command to carry it out."""
    redacted = redact(documents.campaign(), "capacity")
    assert redacted["redacted"] == ["capacity"]
    assert render_markdown(redacted).startswith("# REDACTED\n")
    assert render_minimum(redacted).startswith("REDACTED: ")
    page = render_html(redacted)
    assert "<title>REDACTED, INVALID" in page
    for text in (page, render_markdown(redacted)):
        assert "cannot be carried out again" in text
        assert "inferometer rerun" not in text
    for label in ("Max Throughput", "Throughput at P99 TTFT < 500ms", "Load Model", "Chunking"):
        assert f"- {label}: {WITHHELD}\n" in render_minimum(redacted)


def test_redacting_again_changes_nothing_more() -> None:
    """What was shared can be shared again."""
    once = redact(documents.campaign(), "capacity")
    assert redact(once, "capacity")["tests"] == once["tests"]


def test_there_is_one_kind() -> None:
    """Another is refused, not ignored."""
    with pytest.raises(ValueError, match="latency"):
        redact(documents.campaign(), "latency")
