"""Secrets: however a server spells, parts or cuts what it was sent, nobody reads it afterwards."""

from __future__ import annotations

import html
import json
import sys
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inferometer.journal.redact import LEAST_PART, STRUCK, Redactor
from inferometer.printable import printable, printable_lines

KEY = 'sk-live "0123\\4567/89%41+abcdef&<x>'
"""With all that anything escapes."""
UNSHOWN = [one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one) in ("Cc", "Cf")]
SECRETS = st.text(st.sampled_from("abkK01-_.\"\\/%+& <>'"), min_size=1, max_size=12).filter(
    lambda secret: secret.strip() == secret and secret not in STRUCK
)
SHOWN: list[Callable[[str], str]] = [
    printable,
    printable_lines,
    lambda text: " ".join(printable(text).split()),
]


def label(text: str) -> str:
    """As Prometheus escapes the value of a label."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "label": label,
    "json": in_json,
    "json in a label": lambda text: label(in_json(text)),
    "json in json in json": lambda text: in_json(in_json(in_json(text))),
    "json of escapes": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "capital escapes in a label": lambda text: label("".join(f"\\u{ord(one):04X}" for one in text)),
    "repr": lambda text: "".join(f"\\x{ord(one):02x}" for one in text),
    "url": lambda text: quote(text, safe=""),
    "url, all": lambda text: "".join(f"%{ord(one):02x}" for one in text),
    "url in a url": lambda text: quote(quote(text, safe=""), safe=""),
    "form": lambda text: quote(text, safe=" ").replace(" ", "+"),
    "html": html.escape,
    "html, by numbers": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "html, by hexadecimal numbers": lambda text: "".join(f"&#x{ord(one):X};" for one in text),
}


@st.composite
def parted(draw: st.DrawFn) -> tuple[str, str]:
    """A secret, and a text with it in which what is not shown stands anywhere."""
    secret = draw(SECRETS)
    gaps = st.text(
        st.sampled_from(UNSHOWN) | st.characters(categories=("Cc", "Cf", "Zl", "Zp", "Co", "Cn")), max_size=3
    )
    inside = "".join(one + draw(gaps) for one in secret)
    return secret, draw(st.text(max_size=8)) + inside + draw(st.text(max_size=8))


@given(parted())
def test_a_secret_parted_by_what_is_not_shown_is_struck_as_a_whole(given: tuple[str, str]) -> None:
    """Law: whichever comes first, striking out or dropping what is unprintable, the result never holds the secret, whatever
    control and format characters stand in it."""
    secret, text = given
    redact = Redactor([secret])
    for shown in SHOWN:
        assert secret not in shown(redact(text)).replace(STRUCK, "")
        assert secret not in redact(shown(text)).replace(STRUCK, "")
        assert secret not in shown(redact.short(text, 400)).replace(STRUCK, "")


@given(SECRETS, st.data())
def test_a_secret_is_found_in_every_mixture_of_spellings(secret: str, data: st.DataObject) -> None:
    """Law: each character may be spelled in its own way; backslashes before the first may stay."""
    ways = st.sampled_from(list(SPELLINGS.values()))
    spelled = "".join(data.draw(ways)(one) for one in secret)
    assert Redactor([secret])(f"({spelled})").replace("\\", "") == f"({STRUCK})"


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_wherever_a_text_is_cut_no_part_of_a_secret_is_left(spell: Callable[[str], str]) -> None:
    """Law: at every position, in the text and in what is shown of it, in every spelling: of a secret's beginning fewer than
    LEAST_PART characters are left."""
    redact = Redactor([KEY])
    said = f"no such key: {spell(KEY)}, and {spell(KEY)}."
    least = spell(KEY[:LEAST_PART])
    for cut in range(len(said) + 1):
        whole = redact.short(said[:cut])
        assert least not in whole, cut
        assert KEY[: LEAST_PART + 1] not in html.unescape(whole)
        assert "0123" not in whole
    for limit in range(len(said) + 1):
        shown = redact.short(said, limit)
        assert len(shown) <= limit
        assert shown == redact(said)[:limit]
        assert least not in redact.line(said, limit)


@given(SECRETS, st.text(st.sampled_from("abk01 ,"), max_size=20))
def test_what_holds_no_secret_stays_as_it_is(secret: str, text: str) -> None:
    """Law: nothing else is struck out; what was cut may lose a secret's beginning at its end, which begins as the secret."""
    assume(secret not in text)
    assume(" " not in secret)
    redact = Redactor([secret])
    assert redact(text) == text
    kept = redact.short(text)
    if kept != text:
        assert kept.endswith(STRUCK)
        assert secret.startswith(text[len(kept) - len(STRUCK) :])


@pytest.mark.parametrize(
    "unit",
    [
        "s",
        "\\",
        "%",
        "&",
        "sk-liv",
        KEY[:-1],
        "s\u200b",
        "s\\n",
        "s\\u200b",
        "\\u0073",
        "%73",
        "&#115;",
        "\u200b",
    ],
)
def test_a_text_made_to_take_long_comes_to_its_end(unit: str) -> None:
    """Law: nothing that a server repeats makes the search take more than time in proportion; the text holds no secret, and
    stays, but for a beginning at its end."""
    text = unit * (200_000 // len(unit))
    assert Redactor([KEY])(text) == text
    assert Redactor([KEY]).short(text).removesuffix(STRUCK) in text


def escaped(text: str, times: int) -> str:
    """Each character so many times, as URLs spell it: one may be the secret's, or be between two of them."""
    return "".join(f"%{ord(one):02x}" * times for one in text)


@pytest.mark.parametrize("secret", [KEY, "nvapi-" + KEY, "s" * 9 + "x"])
@pytest.mark.parametrize("times", [2, 8])
def test_the_steps_of_the_search_grow_with_the_text_alone(secret: str, times: int) -> None:
    """Law: twice the text takes twice the steps, of which each is a match bounded by itself, wherever what may be the next
    character may be between two as well, and the end is another."""
    for unit in (
        escaped(secret[:LEAST_PART], times) + "%21",
        escaped(secret[:-1], times),
        secret[:LEAST_PART] + escaped(secret[LEAST_PART:-1], times),
        secret[0] + "\\n" * times,
        "".join(f"\\u{ord(secret[0]):04x}%{ord(secret[0]):02x}&#{ord(secret[0])};" for _ in range(times)),
    ):
        once, twice = (steps(secret, unit * (size // len(unit))) for size in (2000, 4000))
        assert twice <= 2.5 * once + 400


def steps(secret: str, text: str) -> int:
    """Calls that the search makes, of Python's functions and of patterns."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event.endswith("call")

    redact = Redactor([secret])
    redact.short(secret[:LEAST_PART] * 2)  # patterns are made once
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        redact.strike(text, cut=True)
    finally:
        sys.setprofile(before)
    return calls


def test_several_secrets_that_overlap_are_struck_as_one() -> None:
    """Law: of one within another, or that begins in another, nothing is left."""
    redact = Redactor(["abcdef", "abcdefgh", "efghij", ""])
    assert redact("<abcdefghij>") == f"<{STRUCK}>"
    assert redact("<abcdef><efghij>") == f"<{STRUCK}><{STRUCK}>"
    assert Redactor([""])("as it is") == "as it is"
