"""No command blames a user or a file for what this machine ran out of, whichever file it was about to open."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import failing_opens
import pytest
from commands import only, run

from inferometer.errors import SHORTAGES, MachineError, PlanError, RecordError, machine_fault

NO_LOAD = ["--requests", "10", "--warmup", "0", "--input-tokens", "20", "--output-tokens", "5"]


def _each_failing(*arguments: str) -> list[tuple[str | None, int, str]]:
    """The outcome of a command without a failed open, and with each that fails: file, exit code, words."""
    done = subprocess.run(
        [sys.executable, failing_opens.__file__, str(errno.EMFILE), *arguments],
        capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    found: list[tuple[str | None, int, str]] = json.loads(done.stdout)
    return found


def _check(outcomes: list[tuple[str | None, int, str]], own: set[str]) -> None:
    (_, usual, _), *others = outcomes
    assert usual in (0, 3, 4)
    wrong = [(file, code, words[-300:]) for file, code, words in others if code not in (71, usual)]
    assert not wrong
    named = {
        Path(file).name
        for file, code, words in others
        if code == 71 and SHORTAGES["files"][0] in words and file
    }
    assert own <= named


def test_a_file_of_a_run_that_cannot_be_opened_now_is_neither_missing_nor_damaged(tmp_path: Path) -> None:
    """Law: for each file that `report` opens, a lack of descriptors is said, with exit code 71."""
    assert run("simulate", *NO_LOAD, "--index", "none", "--quiet", out=tmp_path)[0] in (0, 4)
    _check(_each_failing("report", str(only(tmp_path))), {"run.json", "plan.json"})


def test_a_file_of_the_users_that_cannot_be_opened_now_is_no_wrong_plan(tmp_path: Path) -> None:
    """The same of a plan and a file of prompts."""
    prompts, plan = tmp_path / "prompts.jsonl", tmp_path / "plan.yaml"
    prompts.write_text('{"prompt": "Say something.", "output_tokens": 3}\n' * 5)
    plan.write_text("load:\n  requests: 5\n  warmup: 0\n")
    words = ["simulate", str(plan), "--prompts", str(prompts), "--index", "none", "--quiet"]
    _check(_each_failing(*words, "--out", str(tmp_path / "runs")), {"plan.yaml", "prompts.jsonl"})


@pytest.mark.parametrize("kind", [RecordError, lambda said: PlanError([])])
def test_the_machines_fault_is_found_behind_any_number_of_errors_that_blame_others(kind: object) -> None:
    """Law: its words replace theirs, which are not true."""
    assert callable(kind)
    first = OSError(errno.ENOSPC, "No space left on device", "/x/y")
    middle, last = kind("is damaged"), kind("cannot be read")
    middle.__cause__, last.__cause__ = first, middle
    fault = machine_fault(last)
    assert fault is not None
    assert str(fault) == f"/x/y: {'; '.join(SHORTAGES['disk'])}"
    first.errno = errno.ENOENT
    assert machine_fault(last) is None
    assert machine_fault(MachineError("x", "disk")) is None  # says so itself
