"""Declarations only a person can make: in a file, by flag, and refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferometer.errors import PlanError
from inferometer.plan import saved
from inferometer.plan.declarations import Declared
from inferometer.plan.parse import build


def test_a_declaration_by_flag_is_that_of_a_file(tmp_path: Path) -> None:
    """A key alone means yes; flags go over the file's keys one by one; and the saved plan keeps them all."""
    path = tmp_path / "plan.yaml"
    path.write_text("declared: {model_loaded: false, clock_sync: 'ntp, a', isolated: true}\n")
    plan = build(path, {"--declare": ["model_loaded", "clock_accuracy_ms=2", "clock_sync = ptp, b"]})
    asked = Declared(model_loaded=True, clock_sync="ptp, b", clock_accuracy_ms=2.0, isolated=True)
    assert plan.declared == asked
    (tmp_path / "plan.json").write_bytes(saved.to_json(plan))
    assert saved.read(tmp_path / "plan.json") == plan


def test_nothing_is_declared_by_default() -> None:
    """A declaration nobody made is None, not no."""
    assert set(Declared().model_dump().values()) == {None}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("modelloaded", "did you mean declared.model_loaded"),
        ("model_loaded=perhaps", "true or false"),
        ("clock_accuracy_ms=-1", "at least 0"),
        ("clock_sync", "must be text"),
        ("=yes", "KEY or KEY=VALUE"),
        ("isolated=", "KEY or KEY=VALUE"),
    ],
)
def test_a_wrong_declaration_is_refused_at_its_flag(text: str, told: str) -> None:
    """With what would be right."""
    with pytest.raises(PlanError) as refused:
        build(None, {"--declare": [text]})
    assert "--declare" in str(refused.value)
    assert told in str(refused.value)
