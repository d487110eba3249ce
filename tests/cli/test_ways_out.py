"""However a command ends, its exit code tells how: a lost reader, a signal and a damaged file are no bugs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import only

from inferometer.cli.app import run

START = "import sys; from inferometer.cli.main import main; main()"
SIGNALLED = """
import os, signal
from inferometer.cli import app, main
app.run = lambda arguments: os.kill(os.getpid(), signal.SIGTERM)
main.main([])
"""
REFUSED_LATE = """
from inferometer.cli import app, main
from inferometer.errors import PlanError, Problem
def refuse(*_, **__):
    wrong = PlanError([Problem("load", "takes too long")])
    wrong.add_note("`inferometer recover` goes on")
    raise wrong
app.group.main = refuse
main.main([])
"""
SIGNALLED_AFTERWARDS = """
import atexit, os, sys
from inferometer.cli import app, main
number = int(sys.argv.pop())
app.run = lambda arguments: 4
class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=number):
        kill(pid, number)
last = Last()
atexit.register(os.kill, os.getpid(), number)
main.main()
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a simulated run."""
    out = tmp_path_factory.mktemp("runs")
    words = ["simulate", "--requests", "20", "--warmup", "0", "--quiet", "--out", str(out)]
    assert run(words) == 4
    return only(out)


@pytest.fixture
def folder(simulated: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(simulated, tmp_path / "copy"))


def _changed(path: Path, *place: str, value: object) -> None:
    document = holder = json.loads(path.read_text())
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = value
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("redirected", [">&-", "| exec true", "2>&-", "2>&1 | exec true", "0<&-"])
def test_nobody_reading_changes_no_exit_code(simulated: Path, redirected: str) -> None:
    """An output closed from the start, or whose reader has left, leaves the command's own code."""
    script = f'set -o pipefail; "{sys.executable}" -c "{START}" report "{simulated}" {redirected} >&2'
    if "|" not in redirected:
        script = script.removesuffix(" >&2")
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=120, check=False)
    assert done.returncode == 4, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("asked", [[], ["--json"]])
def test_a_result_that_a_full_disk_cuts_off_is_no_success(asked: list[str], simulated: Path) -> None:
    """Somebody reads that file, and would take a part for the whole: exit code 71, and words."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", START, "report", str(simulated), *asked],
            stdout=full, stderr=subprocess.PIPE, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 71
    assert b"standard output: the disk is full" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    ("asked", "redirected", "code"),
    [
        ("--help", ">/dev/full", 71),
        ("--version", ">/dev/full", 71),
        ("workload show", ">/dev/full", 71),
        ("report", ">/dev/full 2>/dev/full", 71),
        ("no-such-command", "2>/dev/full", 2),
        ("report", "2>/dev/full", 4),
    ],
)
def test_a_full_disk_under_an_output_leaves_a_documented_code(
    asked: str, redirected: str, code: int, simulated: Path
) -> None:
    """Law: also where what was said is so little that it is written last, and where the words about it find no place."""
    rest = "" if asked.startswith("-") else f'"{simulated}"'
    script = f'"{sys.executable}" -c "{START}" {asked} {rest} {redirected}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=120, check=False)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    if "2>" not in redirected:
        assert done.stderr.count(b"the disk is full") == 1


def test_sigterm_is_an_interruption_at_any_time() -> None:
    """Also where no load is running: the exit code is Ctrl-C's."""
    done = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, timeout=120, check=False)
    assert done.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_signal_changes_how_a_command_has_ended(number: signal.Signals) -> None:
    """Law: the second of two, while the interpreter ends, leaves the exit code and says nothing."""
    words = [sys.executable, "-c", SIGNALLED_AFTERWARDS, str(int(number))]
    done = subprocess.run(words, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (4, b"")


def test_a_plan_that_fails_late_tells_how_to_go_on() -> None:
    """Law: what was measured until then is not only there, but named, whatever ended it."""
    done = subprocess.run([sys.executable, "-c", REFUSED_LATE], capture_output=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[1:] == [
        "  load: takes too long",
        "`inferometer recover` goes on",
    ]


def test_a_plan_of_another_run_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """run.json holds the hash of the plan: a report would else mix two runs."""
    _changed(folder / "plan.json", "workload", "seed", value=43)
    assert run(["report", str(folder)]) == 2
    said = capsys.readouterr().err
    assert str(folder / "plan.json") in said
    assert str(folder / "run.json") in said


def test_the_spelling_of_a_plan_does_not_matter(folder: Path) -> None:
    """The same values in other bytes are the same plan."""
    path = folder / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert run(["report", str(folder)]) == 4


@pytest.mark.parametrize("name", ["requests.parquet", "pulse.parquet"])
def test_a_record_of_another_run_is_refused(
    name: str, simulated: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its metadata hold the id of run.json: both files are named. A record without one, of an earlier version, is read."""
    words = ["simulate", "--requests", "10", "--warmup", "0", "--quiet", "--out", str(tmp_path / "other")]
    assert run(words) == 4
    shutil.copy(only(tmp_path / "other") / name, folder / name)
    capsys.readouterr()
    assert run(["report", str(folder)]) == 2
    message = capsys.readouterr().err
    assert str(folder / name) in message
    assert str(folder / "run.json") in message
    table = pq.read_table(simulated / name)
    kept = {key: value for key, value in table.schema.metadata.items() if key == b"inferometer"}
    pq.write_table(table.replace_schema_metadata(kept), folder / name)
    assert run(["report", str(folder)]) == 4


def test_recover_leaves_the_reports_of_a_run_without_a_journal(folder: Path) -> None:
    """There is nothing to recover, and sealing nothing would replace what was measured."""
    before = (folder / "summary.json").read_bytes()
    shutil.rmtree(folder / "journal")
    (folder / "requests.parquet").unlink()
    assert run(["recover", str(folder)]) == 2
    assert (folder / "summary.json").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "place", "value"),
    [
        ("rerun", ("engine",), 7),
        ("rerun", ("engine", "preset"), 7),
        ("rerun", ("engine", "settings"), None),
        ("rerun", ("engine", "settings", "max_batch"), "x"),
        ("rerun", ("engine", "settings", "max_batch"), -1),
        ("rerun", ("engine", "settings", "step_per_request_ns"), "x"),
        ("rerun", ("engine", "settings"), {"colour": "red"}),
        ("rerun", ("engine", "settings", "kv_read_per_token_ns"), 1e308),
        ("rerun", ("engine", "settings", "load_ns"), 10**400),
        ("rerun", ("engine", "client", "late_ns"), 1e15),
        ("rerun", ("engine", "client", "reaction_ns"), -1),
        ("report", ("calibration",), {"status": 7}),
        ("report", ("calibration",), {"status": "found"}),
        ("report", ("calibration",), {"status": "found", "rungs": [7]}),
    ],
)
def test_a_damaged_run_json_is_named(
    command: str, place: tuple[str, ...], value: object, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One member of a wrong type ends in the file's name and exit code 2."""
    _changed(folder / "run.json", *place, value=value)
    assert run([command, str(folder), *(["--out", str(folder)] if command == "rerun" else [])]) == 2
    assert str(folder / "run.json") in capsys.readouterr().err


def test_the_plan_of_a_simulated_run_does_not_measure(folder: Path) -> None:
    """Its engine is in run.json: the plan alone would be carried out on a server."""
    assert run(["rerun", str(folder / "plan.json"), "--out", str(folder)]) == 2


def test_a_seed_below_0_is_refused(folder: Path) -> None:
    """A generator has none."""
    assert run(["compare", str(folder), str(folder), "--seed", "-1"]) == 2


@pytest.mark.parametrize("name", ["plan.json", "run.json", "summary.json"])
def test_compliance_of_a_file_asks_for_the_folder(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file of a run is not enough: the message names the folder to give."""
    assert run(["compliance", str(folder / name)]) == 2
    assert f"give the run's folder, {folder}" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named_itself(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the temporary one beside it."""
    (folder / "summary.json").unlink()
    (folder / "summary.json").mkdir()
    assert run(["report", str(folder)]) != 70
    message = capsys.readouterr().err
    assert str(folder / "summary.json") in message
    assert ".summary.json." not in message


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_arrays_are_the_work_of_one_thread_unless_the_user_says_otherwise(
    given: dict[str, str], used: str
) -> None:
    """Law: before anything of numpy is loaded."""
    code = (
        "import os, sys; from inferometer.cli.process import carry_out; assert 'numpy' not in sys.modules;"
        "carry_out(['--help'], own_outputs=False); print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environ = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | given
    found = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[-1] == used
