"""A comparison's document and its three renderings: all say the same, and each keeps to its format."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

import jsonschema
import junit_schema
import pytest
from comparing import changed, document, side
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from rich.console import Console

from inferometer.documents.comparison import ComparisonDocument, Item, ItemFacts
from inferometer.documents.part import from_data, to_data, to_json
from inferometer.documents.schemas.__main__ import generated
from inferometer.judge.comparison.compare import FIGURES, Criteria
from inferometer.judge.comparison.equivalence import Declared
from inferometer.report.comparison import console, junit, markdown
from inferometer.report.comparison.words import finding, span, told_apart

QUICK = Criteria(replicates=50)
BASE, SLOW, SAME = side(first=1), side(1.5, first=2), side(first=3)
PRICED = replace(QUICK, declared=Declared({0: 2.0, 1: 1.0}, "a <list> of | prices"))


def documents() -> dict[str, ComparisonDocument]:
    return {
        "regression": document([BASE, SLOW], QUICK),
        "no_regression": document([BASE, SAME], replace(QUICK, noise=(tuple(side(first=4)),), threshold=0.5)),
        "three": document([BASE, SAME, SLOW], QUICK),
        "one_run": document([BASE[:1], SLOW[:1]], QUICK),
        "invalid": document([BASE, changed(SLOW, status="INVALID", reasons=("lateness",))], QUICK),
        "not_comparable": document([BASE, changed(SLOW, fingerprint="x")], QUICK),
        "priced": document([BASE, SLOW], PRICED),
    }


DOCUMENTS = documents()
SHIPPED = json.loads(generated("comparison"))


def screen(found: ComparisonDocument, width: int = 80, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console.render(found, Console(file=file, width=width))
    file.seek(0)
    return file.read()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_keeps_to_the_schema(name: str) -> None:
    """The one that ships, which is itself a schema; it is read back the same."""
    jsonschema.Draft202012Validator.check_schema(SHIPPED)
    data = json.loads(to_json(DOCUMENTS[name]))
    jsonschema.validate(data, SHIPPED)
    assert from_data(data, ComparisonDocument) == DOCUMENTS[name]


def test_the_schema_knows_every_verdict_and_reason_and_refuses_others() -> None:
    """A document with a word of its own is none."""
    wrong = {**to_data(DOCUMENTS["regression"]), "outcome": "fine"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SHIPPED)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_screen_has_checklist_figures_and_one_conclusion_in_80_columns(name: str, encoding: str) -> None:
    """In a pipe too, and where there is nothing but ASCII."""
    found = DOCUMENTS[name]
    shown = screen(found, encoding=encoding)
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    for item in found.checklist:
        assert f"{item.status} {item.section}" in words
    for metric in found.contrasts[0].metrics:
        assert metric.title in shown
    last = shown.rstrip().rsplit("\n\n", 1)[-1] if "\n\n" in shown else shown
    assert found.conclusion.split()[0] in last


@pytest.mark.parametrize("paired", [True, False])
def test_every_rendering_names_the_test_that_decides_and_shows_its_interval(paired: bool) -> None:
    """Law: beside a change stands the interval of the test of which p-value and verdict are, and the words name that one."""
    other = (
        SLOW if paired else [replace(run, facts=replace(run.facts, seed=run.facts.seed + 9)) for run in SLOW]
    )
    found = document([BASE, other], QUICK)
    one = next(metric for metric in found.contrasts[0].metrics if metric.name == "ttft_p50")
    decides = span(one.paired if paired else one.welch)
    assert (one.test, found.method.seeds_paired) == (("paired", True) if paired else ("welch", False))
    shown, page = " ".join(screen(found).split()), markdown.render(found)
    assert f"({decides})" in shown
    assert ("change by the t-test on pairs" in shown) is paired
    assert ("change by Welch's t" in shown) is not paired
    row = next(line for line in page.splitlines() if "**TTFT P50**" in line)
    assert [cell.strip() for cell in row.split("|")][5:7] == [decides, "pairs" if paired else "Welch's"]
    assert f"95 % interval {decides}" in junit.render(found).decode()
    rule = next(rule for rule in found.compliance.findings if rule.id == "D-6.3-tests")
    assert ("pairs of runs" in (rule.note or "")) is paired


def test_a_comparison_without_a_test_names_none() -> None:
    """One run a side has no spread: nothing is called Welch's or paired."""
    found = DOCUMENTS["one_run"]
    assert {one.test for one in found.contrasts[0].metrics} == {None}
    assert not found.method.seeds_paired
    assert "no test was possible" in " ".join(screen(found).split())


def test_no_figure_is_cut_on_a_narrow_screen() -> None:
    """Lines of tables go on instead."""
    wide, narrow = screen(DOCUMENTS["regression"], 200), screen(DOCUMENTS["regression"], 40)
    rows = re.findall(r"^TTFT P50 \*.*$", wide, re.MULTILINE)
    assert rows
    assert rows[0] in narrow


def test_the_conclusion_says_what_is_worse_and_what_could_have_been_missed() -> None:
    """The direction of each deciding figure with its interval; without a difference, how large a one would have been seen."""
    assert re.search(
        r"B against A: worse in .*TPOT P50 \(\+5\d\.\d %, \d", DOCUMENTS["regression"].conclusion
    )
    said = DOCUMENTS["no_regression"].conclusion
    assert "no difference shown in Output tok/s" in said
    assert re.search(r"four times out of five: \d+\.\d % of Output tok/s", said)
    assert DOCUMENTS["one_run"].conclusion.startswith("No claim: 1 run a side, and a claim needs 3")
    assert "run-0" in DOCUMENTS["invalid"].conclusion
    assert "--interleave" in DOCUMENTS["not_comparable"].conclusion


def test_prices_are_told_with_their_source_and_both_units() -> None:
    """Tokens per dollar-hour is a rate by a price, tokens per dollar that times 3600 (6.2)."""
    found = DOCUMENTS["priced"]
    cost = next(one for one in found.contrasts[0].metrics if one.name == "output_tok_dollar_h")
    assert cost.baseline is not None
    assert found.sides[0].tokens_per_dollar == pytest.approx(cost.baseline.mean * 3_600)
    assert "a <list> of | prices" in " ".join(screen(found).split())
    page = markdown.render(found)
    assert "a &lt;list&gt; of \\| prices" in page
    assert "3600" in page


@pytest.mark.parametrize("name", DOCUMENTS)
def test_markdown_has_every_figure_in_tables_of_equal_rows(name: str) -> None:
    """A row a figure, deciding ones in bold; every row of a table has its heading's number of cells."""
    found = DOCUMENTS[name]
    page = markdown.render(found)
    for contrast in found.contrasts:
        for metric in contrast.metrics:
            title = f"**{metric.title}**" if metric.deciding else metric.title
            assert f"| {title}, {metric.unit} |" in re.sub(" {2,}", " ", page)
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1


@pytest.mark.parametrize("name", DOCUMENTS)
def test_junit_has_a_case_a_figure_and_counts_that_add_up(name: str) -> None:
    """As CI systems read it: totals in both places, an outcome at most per case, failures exactly where a figure that decides
    is worse."""
    found = DOCUMENTS[name]
    root = Xml.fromstring(junit.render(found))
    assert root.tag == "testsuites"
    suites = root.findall("testsuite")
    assert len(suites) == len(found.contrasts)
    for suite, contrast in zip(suites, found.contrasts, strict=True):
        cases = suite.findall("testcase")
        assert [case.get("name") for case in cases] == [metric.name for metric in contrast.metrics]
        assert all(case.get("classname") and case.get("time") for case in cases)
        failed = {case.get("name") for case in cases if case.find("failure") is not None}
        assert failed == {one.name for one in contrast.metrics if one.deciding and one.verdict == "worse"}
        assert all(len(case) == 1 for case in cases)
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute, "-1")) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.get("tests", "-1")) == len(cases)
    for attribute in ("tests", "failures", "errors"):
        assert int(root.get(attribute, "-1")) == sum(int(suite.get(attribute, "0")) for suite in suites)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_junit_keeps_to_the_schema_that_ci_systems_share(name: str) -> None:
    """Elements, their order and their attributes; no other, none missing."""
    assert junit_schema.problems(junit.render(DOCUMENTS[name])) == []


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (b"<testsuites ", b'<testsuites skipped="1" '),
        (b'tests="', b'tests="many '),
        (b"<testcase ", b"<case "),
        (b"</testsuite>", b"<failure /></testsuite>"),
        (b' name="B against A"', b""),
    ],
)
def test_the_schema_finds_what_parts_from_it(was: bytes, becomes: bytes) -> None:
    """An attribute or an element that it does not have, a count that is none, a name that is missing."""
    good = junit.render(DOCUMENTS["regression"])
    assert was in good
    bad = good.replace(was, becomes, 1).replace(
        b"</testcase>", b"</case>" if b"<case" in becomes else b"</testcase>", 1
    )
    assert junit_schema.problems(bad)


def test_what_cannot_be_judged_is_no_pass_in_junit() -> None:
    """Deciding figures of an invalid or incomparable comparison are errors; without enough runs all are skipped."""
    for name, tag in (("invalid", "error"), ("not_comparable", "error"), ("one_run", "skipped")):
        root = Xml.fromstring(junit.render(DOCUMENTS[name]))
        cases = {case.get("name"): case for case in root.iter("testcase")}
        assert set(cases) <= set(FIGURES)
        assert cases["ttft_p50"].find(tag) is not None
        assert not list(root.iter("system-out"))


def test_characters_that_xml_cannot_hold_do_not_break_it() -> None:
    """A name from a folder may hold anything."""
    found = structs.replace(DOCUMENTS["regression"], conclusion="a\x00b\ud800c <&>")
    root = Xml.fromstring(junit.render(found))
    assert next(root.iter("failure")).text == "a?b?c <&>"


@given(st.text("ab", max_size=60), st.lists(st.text("abc", max_size=40), min_size=2, max_size=4, unique=True))
def test_values_that_differ_are_shown_as_different(lead: str, ends: list[str]) -> None:
    """Whatever they have in common, and however long they are; short ones are shown whole."""
    values = [f"{lead}{end}" for end in ends]
    told = told_apart([[value] for value in values])
    assert len(set(told)) == len(values)
    if max(map(len, values)) <= 24:
        assert told == values


def test_a_long_note_is_shown_from_where_it_differs() -> None:
    """As `sut.notes` of two sides are that begin alike."""
    notes = "measured behind the new router with batch limit "
    assert told_apart([[f"{notes}16 on Monday"], [f"{notes}32 on Tuesday", None]]) == [
        "...limit 16 on Monday",
        "...limit 32 on Tuesday or not declared",
    ]


def test_of_settings_that_differ_those_are_shown_that_do() -> None:
    """A long list with commas, as `sut.notes` of a simulated engine is; a list that lacks them says so."""
    before, after = "step_base_ns 10000000, jitter 0.02", "token_budget 2048, policy fcfs, preloaded True"
    sides = [[f"{before}, max_batch {batch}, {after}, load_ns {load}"] for batch, load in ((32, 0), (8, 9))]
    assert told_apart(sides) == ["max_batch 32, load_ns 0", "max_batch 8, load_ns 9"]
    assert told_apart([*sides, [f"{before}, {after}", None]])[2] == "none of these or not declared"


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (("simulated", 0, None), "simulated, without an accelerator"),
        (("H100", 4, "80 GB"), "4 x H100, memory 80 GB"),
        (("H100", None, None), "H100, number not declared"),
        (("EPYC", 0, None), "EPYC, no accelerator"),
        ((None, 0, None), "no accelerator"),
        ((None, 2, None), "2 x an accelerator that is not named"),
        ((None, None, None), "not declared"),
    ],
)
def test_hardware_is_worded(declared: tuple[str | None, int | None, str | None], words: str) -> None:
    """Name, number and memory, each by what was declared of it."""
    keys = ("accelerator", "accelerator_count", "accelerator_memory")
    values = (dict(zip(keys, declared, strict=True)),)
    item = Item("hardware", "6.1", "MUST", "declared", ItemFacts(values=(values, values)))
    assert finding(item) == f"A: {words}; B: {words}."


@pytest.mark.parametrize("threshold", [3.0, 5.0])
def test_a_difference_that_the_threshold_alone_holds_back_is_never_called_none(threshold: float) -> None:
    """Law: a system that is half as slow again is no regression at a threshold beyond that, and every rendering says that there
    is a difference and how large; one without a difference is said to show none."""
    given = replace(QUICK, threshold=threshold)
    slow, same = document([BASE, SLOW], given), document([BASE, SAME], given)
    assert (slow.outcome, same.outcome) == ("no_regression", "no_regression")
    deciding = [one for one in slow.contrasts[0].metrics if one.deciding]
    held = [one for one in deciding if one.held == ("threshold",)]
    assert held
    small = slow.conclusion.partition("a difference within the threshold in ")[2]
    assert all(f"{one.title} (" in small for one in held)
    assert "no difference shown" not in slow.conclusion or len(held) < len(deciding)
    assert "within the threshold" not in same.conclusion
    for shown in (screen(slow), markdown.render(slow), junit.render(slow).decode()):
        assert shown.count("tolerated") >= len(held)
    assert "could have been seen" not in slow.conclusion or len(held) < len(deciding)
