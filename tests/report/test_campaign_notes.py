"""The words for notes: each code that a procedure emits has an entry, and no entry is left over."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferometer import procedures
from inferometer.documents.note import Note
from inferometer.report.campaign.notes import WORDS, with_words, worded


def calls() -> Iterator[ast.Call]:
    """Every place in the procedures where a note is made."""
    for path in sorted(Path(procedures.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note":
                yield node


def test_every_code_that_procedures_emit_has_words_and_no_words_are_unused() -> None:
    """Codes stand in the source as they are, so that they can be found."""
    codes = {call.args[0].value for call in calls() if isinstance(call.args[0], ast.Constant)}
    assert len(codes) > 100
    assert all(isinstance(call.args[0], ast.Constant) for call in calls())
    assert codes == set(WORDS)


@pytest.mark.parametrize("code", sorted(WORDS))
def test_a_code_is_a_plain_name(code: str) -> None:
    """Programs read it."""
    assert code.replace("_", "").isalnum()
    assert code == code.lower()


def test_the_places_of_a_template_are_facts_given_where_the_note_is_made() -> None:
    """Of notes whose facts stand at the call; the others are worded in the tests of their procedures."""
    held = 0
    for call in calls():
        template = WORDS[str(getattr(call.args[0], "value", ""))]
        facts = call.args[1] if len(call.args) > 1 else ast.Dict([], [])
        if not isinstance(template, str) or not isinstance(facts, ast.Dict):
            continue
        given = {key.value for key in facts.keys if isinstance(key, ast.Constant)}
        places = {field for _, field, _, _ in string.Formatter().parse(template) if field}
        assert places <= given or None in facts.keys, ast.unparse(call)
        held += 1
    assert held > 50


def test_a_note_in_a_document_has_its_code_its_facts_and_its_sentence() -> None:
    """What programs read and what people read say the same."""
    note = Note("throughput_still_rose", {"concurrency": 512}, capacity=True)
    shown = with_words(note)
    assert (shown.code, shown.facts, shown.capacity) == (note.code, note.facts, True)
    assert shown.message == worded(note) == "Throughput still rose at the highest concurrency, 512."
