"""Every input of the fuzzers' corpus keeps the law of its target."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fuzz.__main__ import CORPUS, TARGETS

INPUTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: str(path.relative_to(CORPUS)))
def test_an_input_of_the_corpus_keeps_the_law_of_its_target(path: Path) -> None:
    """Seeds and what was found before."""
    importlib.import_module(f"fuzz.{path.parent.name}").check(path.read_bytes())


def test_each_target_has_a_corpus() -> None:
    """And no corpus is without a target."""
    assert {path.parent.name for path in INPUTS} == set(TARGETS)
