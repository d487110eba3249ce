"""What the tests of Prometheus say of its text format (github.com/prometheus/prometheus, model/textparse, and
prometheus/common, expfmt), each line in a body with two good ones.

Ours takes more, since a server's slip must not cost a number that can be read: escapes other than the three, `__name__` as a
label, a label given twice (the last counts), a timestamp with a fraction. Of what both refuse and read nothing differs.
"""

from __future__ import annotations

import pytest

from inferometer.telemetry.metrics.exposition import Cell, parse

GOOD = "ok 1\nfine 2\n"


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a{b='c'} 1",
        "a{b=",
        'a{\ufffd="c"} 1',
        '{"a", "b = "c"}',
        '{"a",b\\nc="d"} 1',
        "a true",
        'a{b="',
        'a{=""} 0',
        "a 1_2",
        "a 0x1p-3",
        "a 0 1_2",
        'a{b=\x00"c"} 1',
        'a{b\x00="c"}\t1',
        'a\x00{b="c"} 1',
        "a 0 1\x00",
        "a 3.14 17 89",
        'a{b="c"} blubb',
        'a{b="c"} ',
        "a{b=c} 3.14",
        'a{@="c"} 3.14',
        'a{b+="c"} 3.14',
        'a{,b="c"} 1',
        'a{b="c",,} 1',
        "1a 1",
        "-a 1",
    ],
)
def test_a_line_that_prometheus_refuses_is_refused(line: str) -> None:
    """And counted; the lines around it are read."""
    layout = parse(GOOD + line + "\n")
    assert layout.skipped["bad_line"].count == 1
    assert [cell and cell.family for cell in layout.cells] == ["ok", "fine", None, None]


@pytest.mark.parametrize(
    ("line", "name", "labels", "value"),
    [
        ('a{q="0.25",} 7.4e-05', "a", {"q": "0.25"}, 7.4e-05),
        ('a { q = "1.0", b = "c" } 8', "a", {"q": "1.0", "b": "c"}, 8),
        ('a{ q= "1.0", b= "c", } 8', "a", {"q": "1.0", "b": "c"}, 8),
        ('a:b:rate5m{c_d="e"}\t1', "a:b:rate5m", {"c_d": "e"}, 1),
        ("a 33  \t123123", "a", {}, 33),
        ('_a{_b="c"} 1', "_a", {"_b": "c"}, 1),
        ('a{b="\\"c\\""} 1', "a", {"b": '"c"'}, 1),
        ('a{b="c\x00"} 1', "a", {"b": "c\x00"}, 1),
        ('{"a.b",q="0.25",} 7', "a.b", {"q": "0.25"}, 7),
        ('{"a b"} 99', "a b", {}, 99),
        ('{"ö €{\\n}","ß\\n\\"x\\""="6"} 10.0', "ö €{\n}", {'ß\n"x"': "6"}, 10),
        ("a{} 1", "a", {}, 1),
        ('a{b=""} 1', "a", {"b": ""}, 1),
        ("a 1 -5", "a", {}, 1),
    ],
)
def test_a_line_that_prometheus_reads_is_read_alike(
    line: str, name: str, labels: dict[str, str], value: float
) -> None:
    """Name, labels and value."""
    layout = parse(GOOD + line + "\n")
    assert not layout.skipped
    assert layout.cells[2] == Cell(name, tuple(sorted(labels.items())), "value")
    assert layout.values[2] == value
