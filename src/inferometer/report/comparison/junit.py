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
from xml.etree import ElementTree as Xml

from inferometer.documents.comparison import ComparisonDocument, TitledDifference
from inferometer.report.comparison import words

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(document: ComparisonDocument) -> bytes:
    """The file."""
    root = Xml.Element("testsuites", name="inferometer compare")
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for contrast in document.contrasts:
        suite = Xml.SubElement(root, "testsuite", name=f"{contrast.side} against A", time="0")
        suite.set("timestamp", document.sides[0].runs[0].started.partition(".")[0])
        counts = dict.fromkeys(total, 0)
        for metric in contrast.metrics:
            counts["tests"] += 1
            if kind := _case(suite, document, contrast.side, metric):
                counts[kind] += 1
        for name, value in counts.items():
            suite.set(name, str(value))
            total[name] += value
    for name, value in total.items():
        root.set(name, str(value))
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(
    suite: Xml.Element, document: ComparisonDocument, side: str, metric: TitledDifference
) -> str | None:
    """Write one; gives the count that it goes into."""
    case = Xml.SubElement(suite, "testcase", classname=f"compare.{side}", name=metric.name, time="0")
    found = (
        f"{metric.title}: {words.percent(metric.relative)}, 95 % interval {words.span(words.deciding_interval(metric))}, "
        f"{words.VERDICTS[metric.verdict]}"
    )
    held = words.held(metric.held)
    if metric.verdict == "worse" and metric.deciding:
        Xml.SubElement(case, "failure", message=_xml(found), type="regression").text = _xml(
            document.conclusion
        )
        return "failures"
    unusable = metric.verdict == "not_comparable" or document.outcome == "invalid"
    if unusable and metric.deciding:
        Xml.SubElement(case, "error", message=_xml(found), type=document.outcome).text = _xml(
            document.conclusion
        )
        return "errors"
    if unusable or metric.verdict == "no_claim":
        Xml.SubElement(case, "skipped", message=_xml(found))
        return "skipped"
    Xml.SubElement(case, "system-out").text = _xml(f"{found} ({held})" if held else found)
    return None


def _xml(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("?", text)
