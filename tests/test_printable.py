"""Text of others on its way to people: nothing in it steers a terminal, and JSON loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import pytest
from hostile import HOSTILE, SEQUENCES
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cli.outlet import say, tell
from inferometer.printable import UNPRINTABLE, json_text, printable, printable_lines

TEXTS = st.text(
    st.sampled_from([*HOSTILE, *SEQUENCES, "\ud800", "\U0001f600", "\u00e9"]) | st.characters(), max_size=40
)
"""Half of what they hold is made to harm."""
VALUES = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def harmful(text: str) -> list[str]:
    return [sign for sign in text if unicodedata.category(sign) in UNPRINTABLE]


def test_what_is_made_to_harm_is_unprintable() -> None:
    """Each sign of the first list is one, and each sequence begins with one: the properties below are about them."""
    assert harmful(HOSTILE) == list(HOSTILE)
    assert {"\x1b", "\x07", "\x08", "\r", "\x90", "\x9b", "\x9c", "\x9d"} <= set(harmful(SEQUENCES))


@given(TEXTS)
def test_a_line_has_nothing_unprintable_and_all_else(text: str) -> None:
    """What is left out is exactly that; and the result can be encoded."""
    assert printable(text) == "".join(sign for sign in text if unicodedata.category(sign) not in UNPRINTABLE)
    printable(text).encode()


@given(TEXTS)
def test_lines_keep_their_breaks_alone(text: str) -> None:
    """As many as before."""
    shown = printable_lines(text)
    assert set(harmful(shown)) <= {"\n"}
    assert shown.count("\n") == text.count("\n")


@given(VALUES, st.none() | st.just(1))
def test_json_has_nothing_unprintable_and_loses_nothing(value: object, indent: int | None) -> None:
    """The same value is read back, halves of surrogate pairs included; the breaks are the indented document's."""
    text = json_text(value, indent)
    assert set(harmful(text)) <= ({"\n"} if indent else set())
    assert json.loads(text) == value
    text.encode()


def test_json_that_has_no_number_is_refused() -> None:
    """`NaN` would end every other reader."""
    with pytest.raises(ValueError, match="JSON"):
        json_text([float("nan")])


def test_neither_outlet_of_a_command_passes_it_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever wrote it, and whatever it looks like."""
    tell(f"a{HOSTILE}{SEQUENCES}b")
    say(f"a{HOSTILE}{SEQUENCES}b")
    captured = capsys.readouterr()
    for shown in (captured.err, captured.out):
        assert set(harmful(shown)) == {"\n"}
        assert shown.startswith("a")
        assert shown.endswith("b\n")


SCRIPT = """
import sys, threading
from inferometer.journal.redact import Redactor
from inferometer.printable import guard_stderr
guard_stderr(Redactor(["sk-canary"]).strike)
text = bytes.fromhex(sys.argv[1]).decode()
def fail():
    raise ValueError(text)
thread = threading.Thread(target=fail)
thread.start()
thread.join()
print(text, file=sys.stderr)
raise ValueError(text)
"""


def test_a_process_whose_errors_go_to_a_log_writes_no_server_s_text_raw() -> None:
    """Neither an exception that ends it, nor one of a thread, nor what is printed; the traceback is there."""
    text = f"{HOSTILE}{SEQUENCES}sk-\u200bca\x01nary end"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, text.encode().hex()], capture_output=True, timeout=120, check=False
    )
    written = done.stderr.decode()
    assert set(harmful(written)) == {"\n"}
    assert written.count("Traceback") == 2
    assert written.count("[redacted]") == 3
    assert "canary" not in written
    assert "end" in written
