"""The pictures of a campaign's first page, and any figure of a test drawn for HTML.

| picture                         | of test        | answers                                             |
| ------------------------------- | -------------- | --------------------------------------------------- |
| TTFT against output throughput  | `tradeoff`     | how much load the system takes before it gets slow  |
| distribution of ITL             | `itl`          | how evenly tokens come                              |
| TTFT by context length          | `long-context` | what a longer prompt costs                          |
| distribution of TTFT            | `ttft`         | how long it takes until an answer begins            |

A campaign without any of these tests shows the first figure of each test, as many as MOST.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from inferometer.documents.campaign import Campaign, ProcedureDocument
from inferometer.documents.note import WITHHELD
from inferometer.documents.results import Figure, Series
from inferometer.report.campaign import overview
from inferometer.report.campaign.cells import labelled
from inferometer.report.charts import of_figure
from inferometer.report.figures import UNMEASURED
from inferometer.report.html_page import Picture, picture

MOST = 4

CHOSEN: Mapping[str, tuple[str, str]] = {
    "tradeoff": (
        "curve",
        "One point per load level: further right is more throughput, further up a longer wait for the first token.",
    ),
    "itl": (
        "itl_cdf",
        "The share of gaps between tokens that are no longer than x, by load. A steep line is an even stream; a long tail "
        "to the right is pauses.",
    ),
    "long-context": (
        "scaling",
        "Measured lengths and fitted curves. Both axes are logarithmic: a slope of 1 is proportional to the length.",
    ),
    "ttft": ("ttft_cdf", "The share of requests whose first token came within x."),
}
"""Test to the name of its figure on the first page, and how to read it."""


@dataclass(frozen=True, slots=True)
class FrontPicture:
    """A picture of the first page. `number`: of its test on the page, from 1; `verdict`: of that test."""

    number: int
    test: str
    verdict: str
    picture: Picture
    reading: str


def front(campaign: Campaign) -> list[FrontPicture]:
    """The pictures of the first page, in the order of CHOSEN."""
    tests = list(enumerate(overview.in_order(campaign), 1))
    found = [shown for name in CHOSEN for shown in _chosen(name, tests)]
    return (found or [_front(at, test, one, "") for at, test in tests for one in test.figures[:1]])[:MOST]


def _chosen(name: str, tests: Sequence[tuple[int, ProcedureDocument]]) -> Iterator[FrontPicture]:
    figure, reading = CHOSEN[name]
    for at, test in tests:
        if test.test == name:
            yield from (_front(at, test, one, reading) for one in test.figures if one.name == figure)


def _front(number: int, test: ProcedureDocument, one: Figure, reading: str) -> FrontPicture:
    return FrontPicture(number, overview.title(test), test.verdict.status, drawn(one), reading)


def drawn(one: Figure) -> Picture:
    """A figure of a test, ready for a template."""
    named = replace(one, title=_title(one), series=tuple(_named(line) for line in one.series))
    missing = WITHHELD if one.capacity and not one.series else UNMEASURED
    return picture(of_figure(named), missing)


def _title(one: Figure) -> str:
    """The title; a distribution that is alone has no legend, so its load is named here."""
    if one.kind != "cdf" or len(one.series) != 1 or one.series[0].at == WITHHELD:
        return one.title
    return labelled(one.title, labelled(one.series[0].label, one.series[0].at))


def _named(line: Series) -> Series:
    return replace(line, label=labelled(line.label, line.at))
