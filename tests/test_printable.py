"""Text of others on its way to people: nothing in it steers a terminal, and JSON loses nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import unicodedata

import pytest
from hostile import HOSTILE, SEQUENCES
from hypothesis import example, given
from hypothesis import strategies as st
from peers import Script, Seen, scripted, whole

from inferometer.cli.outlet import say, say_json, tell
from inferometer.printable import UNPRINTABLE, fitting, fitting_json, json_text, printable, printable_lines

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


ENCODINGS = ("ascii", "latin-1", "cp1252", "utf-8", "utf-16", "shift_jis", "iso2022_jp", "johab", None)
MISREAD = "\u00a5\u203e\u20a9"
"""Yen, overline and won: some encodings write them as the backslash and the tilde."""


@given(VALUES, st.sampled_from(ENCODINGS))
@example(f"{MISREAD}n", "shift_jis")
@example(f"{MISREAD}n", "johab")
def test_json_fits_every_stream_and_loses_nothing(value: object, encoding: str | None) -> None:
    """Law: whatever the encoding of a stream, the same value is read back from it."""
    text = fitting_json(json_text(value), encoding)
    assert json.loads(text.encode(encoding or "utf-8").decode(encoding or "utf-8")) == value


@given(TEXTS, st.sampled_from(ENCODINGS))
@example(MISREAD, "shift_jis")
@example(MISREAD, "johab")
def test_lines_fit_every_stream(text: str, encoding: str | None) -> None:
    """Law: what a stream cannot hold is a question mark there; the rest is read as it is."""
    shown = printable_lines(text)
    fitted = fitting(shown, encoding)
    assert fitted.encode(encoding or "utf-8").decode(encoding or "utf-8") == fitted
    assert len(fitted) == len(shown)
    assert all(new in (old, "?") for old, new in zip(shown, fitted, strict=True))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-16"])
def test_results_are_written_to_every_stream(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: neither output makes a command fail, even one that refuses what it cannot hold."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding, "strict") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    value = {"name": "\u65e5\U0001f600", "load": "10\u202f000"}
    say_json(value, value)
    say("load 10\u202f000 \u65e5")
    tell("load 10\u202f000 \u65e5")
    first, second, third = out.buffer.getvalue().decode(encoding).splitlines()
    assert json.loads(first) == json.loads(second) == value
    assert third.startswith("load 10")
    assert err.buffer.getvalue().decode(encoding).startswith("load 10")


NAME = "\u65e5\u672c\U0001f600"


def ollama(seen: Seen) -> Script:
    """One whose model has a name that few encodings hold."""
    bodies: dict[str, object] = {"/api/version": {"version": "1"}, "/api/tags": {"models": [{"name": NAME}]}}
    body = bodies.get(seen.target)
    return Script(whole(404, b"{}") if body is None else whole(200, json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("environ", "encoding"),
    [
        ({"PYTHONIOENCODING": "cp1252:strict"}, "cp1252"),
        ({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, "ascii"),
    ],
)
def test_a_command_ends_as_usual_where_output_is_not_utf8(environ: dict[str, str], encoding: str) -> None:
    """Law: as tables and as JSON, which holds the same as anywhere."""
    with scripted(ollama) as peer:
        for more in ([], ["--json"]):
            words = ["detect", "--url", f"http://127.0.0.1:{peer.port}", *more]
            done = subprocess.run(
                [sys.executable, "-c", "from inferometer.cli.main import main; main()", *words],
                capture_output=True,
                env={**os.environ, **environ},
            )
            assert done.returncode == 0, done.stderr
            shown = done.stdout.decode(encoding)
            if more:
                assert json.loads(shown)["endpoints"][0]["models"][0]["name"] == NAME
            else:
                assert "Ollama" in shown
