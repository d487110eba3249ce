"""Which engine is simulated is said by a preset and settings, and every mistake in them is told at once."""

from __future__ import annotations

import pytest

from inferometer.errors import PlanError
from inferometer.server.engine.settings import Settings
from inferometer.server.presets import PRESETS
from inferometer.simulation.engine import choose


def test_without_a_word_it_is_the_reference_servers_engine() -> None:
    """So that a simulation and a run of one plan can be compared."""
    assert choose().settings == Settings()
    assert choose("tiny-cpu", ["max_batch=4", "jitter=0"]).settings == Settings(max_batch=4, jitter=0.0)
    assert choose("a100-8b").settings == PRESETS["a100-8b"]
    assert choose(None, ["max_batch=4"]).settings.max_batch == 4


@pytest.mark.parametrize(
    ("preset", "settings", "problems"),
    [
        ("none", [], 1),
        (None, ["max_batch"], 1),
        (None, ["size=1", "jitter=x", "max_batch=1.5"], 3),
        (None, ["max_batch=0"], 1),
    ],
)
def test_what_makes_no_engine_is_refused_with_its_flag(
    preset: str | None, settings: list[str], problems: int
) -> None:
    """A preset that is not there, a key that is not there, a value that is none, and one out of range."""
    with pytest.raises(PlanError) as refused:
        choose(preset, settings)
    assert len(refused.value.problems) == problems
    assert all(problem.where.startswith(("--preset", "--set")) for problem in refused.value.problems)
