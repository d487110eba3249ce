"""Run folders that were cut off, damaged, or made by somebody who means harm: a command has a result or words, and writes
nowhere else. INFEROMETER_FUZZ=5000 tries so many, in place of the few that a test run has time for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import SMALL, only
from fuzzed_folders import CODES, MUTATIONS, Mutation, keep_the_law
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from inferometer.cli.app import run

EXAMPLES = int(os.environ.get("INFEROMETER_FUZZ", "45"))
COMMANDS = {
    "report": ("report", "FOLDER"),
    "recover": ("recover", "FOLDER"),
    "compliance": ("compliance", "FOLDER"),
    "compare": ("compare", "OTHER", "FOLDER"),
    "rerun": ("rerun", "FOLDER", "--quiet", "--out", "OUT"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A measured run with a record of scrapes and a simulated one, and one to compare either with."""
    place = tmp_path_factory.mktemp("whole")
    load = [*SMALL, "--requests", "12", "--warmup", "2", "--quiet", "--out"]
    assert run(["run", *load, str(place / "measured")]) in CODES
    for name, number in (("simulated", "42"), ("other", "43")):
        assert run(["simulate", "--seed", number, *load, str(place / name)]) == 4
    found = {name: only(place / name) for name in ("measured", "simulated", "other")}
    assert (found["measured"] / "telemetry" / "scrapes.jsonl.zst").is_file()
    return found


@seed(0)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.sampled_from(["measured", "simulated"]),
    st.sampled_from(list(COMMANDS)),
    st.lists(st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 2**32)), min_size=1, max_size=2),
)
def test_a_damaged_folder_ends_in_a_result_or_in_words(
    whole: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    command: str,
    mutations: list[tuple[Mutation, int]],
) -> None:
    """Law: whatever became of the files of a run's folder, each command ends within bounds with a code of docs/exit-codes.md
    and no traceback, and changes nothing outside the folder."""
    # A measured run would be measured again: what rerun reads is the same.
    subject = whole["simulated" if command == "rerun" else kind]
    place = tmp_path_factory.mktemp("fuzzed")
    keep_the_law(COMMANDS[command], subject, {"OTHER": whole["other"]}, mutations, place, capsys)
