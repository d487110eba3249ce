"""The schema of JUnit files that CI systems share, restated: what an element may hold, in which order, and its attributes.

JUnit itself has none. The one of Jenkins is what others were checked against; it is a subset of what GitLab and GitHub read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree as Xml

WORDS, COUNT, SECONDS = ".*", r"\d+", r"\d+(\.\d+)?"
INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"


@dataclass(frozen=True)
class Element:
    """Children in their order, each with how many there may be; attributes and their form, and which must be there."""

    children: tuple[tuple[str, int | None], ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    text: bool = False


OUTCOME = Element(attributes={"message": WORDS, "type": WORDS}, text=True)
OUTPUT = Element(text=True)
COUNTS = {"name": WORDS, "tests": COUNT, "failures": COUNT, "errors": COUNT, "time": SECONDS}
SCHEMA = {
    "testsuites": Element((("testsuite", None),), COUNTS | {"disabled": COUNT}),
    "testsuite": Element(
        (("properties", 1), ("testcase", None), ("system-out", 1), ("system-err", 1)),
        COUNTS
        | {"skipped": COUNT, "disabled": COUNT, "timestamp": INSTANT}
        | dict.fromkeys(("hostname", "id", "package"), WORDS),
        ("name", "tests"),
    ),
    "testcase": Element(
        (("skipped", 1), ("error", None), ("failure", None), ("system-out", None), ("system-err", None)),
        {"name": WORDS, "classname": WORDS, "time": SECONDS, "assertions": COUNT, "status": WORDS},
        ("name",),
    ),
    "skipped": OUTCOME,
    "error": OUTCOME,
    "failure": OUTCOME,
    "system-out": OUTPUT,
    "system-err": OUTPUT,
}


def problems(document: bytes) -> list[str]:
    """Where a file parts from the schema, in words; none if it keeps to it."""
    root = Xml.fromstring(document)
    if root.tag not in ("testsuites", "testsuite"):
        return [f"the root is {root.tag}"]
    return [problem for element in root.iter() for problem in _of(element)]


def _of(element: Xml.Element) -> list[str]:
    kind = SCHEMA.get(element.tag)
    if kind is None:
        return [f"no element of the schema: {element.tag}"]
    found = [f"{element.tag} without {name}" for name in kind.required if name not in element.attrib]
    for name, value in element.attrib.items():
        form = kind.attributes.get(name)
        if form is None:
            found.append(f"{element.tag} has no attribute {name}")
        elif not re.fullmatch(form, value, re.DOTALL):
            found.append(f"{element.tag} {name}={value!r}")
    if not kind.text and (element.text or "").strip():
        found.append(f"text in {element.tag}")
    order = [name for name, _ in kind.children]
    tags = [child.tag for child in element]
    found += [f"{tag} in {element.tag}" for tag in tags if tag not in order]
    places = [order.index(tag) for tag in tags if tag in order]
    if places != sorted(places):
        found.append(f"{element.tag}: children out of order")
    found += [
        f"{tags.count(name)} {name} in {element.tag}"
        for name, most in kind.children
        if most and tags.count(name) > most
    ]
    return found
