"""A comparison as JUnit XML, which CI systems show: a suite for each side, a test case for each of its figures.

| verdict of a figure               | in the test case                                |
| --------------------------------- | ----------------------------------------------- |
| worse, and it decides             | failure                                         |
| not comparable, or a run INVALID  | error where the figure decides, else skipped     |
| no claim                          | skipped                                         |
| any other                         | passed; what was found stands under system-out  |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from inferometer.documents.comparison import ComparisonDocument, FigureVerdict, Outcome, TitledDifference
from inferometer.report.comparison import words

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """A figure. `found`: what was, in words; `held`: what kept it from being called better or worse, in words."""

    name: str
    found: str
    held: str
    verdict: FigureVerdict
    deciding: bool


@dataclass(frozen=True, slots=True)
class Suite:
    """Figures that belong together. `classname`: of its cases; `started`: when the baseline was measured."""

    name: str
    classname: str
    started: str
    cases: Sequence[Case]


def render(document: ComparisonDocument) -> bytes:
    """The file of a comparison of runs."""
    started = document.sides[0].runs[0].started
    suites = [
        Suite(
            f"{contrast.side} against A",
            f"compare.{contrast.side}",
            started,
            [_case_of(one) for one in contrast.metrics],
        )
        for contrast in document.contrasts
    ]
    return render_suites(suites, document.outcome, document.conclusion)


def render_suites(suites: Sequence[Suite], outcome: Outcome, conclusion: str) -> bytes:
    """The file. `conclusion`: in words, the text of each failure and error."""
    root = Xml.Element("testsuites", name="inferometer compare")
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for one in suites:
        suite = Xml.SubElement(root, "testsuite", name=_xml(one.name), time="0")
        suite.set("timestamp", _xml(one.started.partition(".")[0].removesuffix("Z")))
        counts = dict.fromkeys(total, 0)
        for case in one.cases:
            counts["tests"] += 1
            element = Xml.SubElement(
                suite, "testcase", classname=_xml(one.classname), name=_xml(case.name), time="0"
            )
            if kind := _judged(element, case, outcome, conclusion):
                counts[kind] += 1
        for name, value in counts.items():
            suite.set(name, str(value))
            total[name] += value
    for name, value in total.items():
        if name != "skipped":  # the schema that CI systems share has this of a suite alone
            root.set(name, str(value))
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case_of(metric: TitledDifference) -> Case:
    found = (
        f"{metric.title}: {words.percent(metric.relative)}, 95 % interval {words.span(words.deciding_interval(metric))}, "
        f"{words.verdict_word(metric.verdict, metric.held)}"
    )
    return Case(metric.name, found, words.held(metric.held), metric.verdict, metric.deciding)


def _judged(element: Xml.Element, case: Case, outcome: Outcome, conclusion: str) -> str | None:
    """Write how it came out; gives the count that it goes into."""
    found = _xml(case.found)
    if case.verdict == "worse" and case.deciding:
        Xml.SubElement(element, "failure", message=found, type="regression").text = _xml(conclusion)
        return "failures"
    unusable = case.verdict == "not_comparable" or outcome == "invalid"
    if unusable and case.deciding:
        Xml.SubElement(element, "error", message=found, type=outcome).text = _xml(conclusion)
        return "errors"
    if unusable or case.verdict == "no_claim":
        Xml.SubElement(element, "skipped", message=found)
        return "skipped"
    Xml.SubElement(element, "system-out").text = _xml(
        f"{case.found} ({case.held})" if case.held else case.found
    )
    return None


def _xml(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("?", text)
