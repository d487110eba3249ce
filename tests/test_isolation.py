"""Processes of our own: nothing of the current directory is part of them, and no secret is in their environment."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from commands import SMALL, only, run, start, wait_for_answers, workers_of
from test_architecture import SOURCE, modules

from inferometer import isolation
from inferometer.isolation import environment
from inferometer.server.embedded import Embedded
from inferometer.workload.parallel import in_processes

ROOT = Path(isolation.__file__).parent.parent
HOSTILE = (
    "import os\nwith open({trap!r}, 'a') as file:\n    file.write(__file__ + '\\n')\nraise SystemExit(9)\n"
)
NAMES = ("json", "random", "queue", "signal", "pickle", "msgspec", "numpy", "sitecustomize", "usercustomize")
SECRET = "sk-not-for-children"
"""A key that no process but the first may know."""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: modules of common names, each of which leaves its name in the file that is returned."""
    trap, folder = tmp_path / "trap.txt", tmp_path / "download"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(HOSTILE.format(trap=str(trap)))
    (folder / "inferometer").mkdir()
    (folder / "inferometer" / "__init__.py").write_text(HOSTILE.format(trap=str(trap)))
    monkeypatch.chdir(folder)
    return trap


def test_the_trap_works(hostile: Path) -> None:
    """What the laws below rest on: without `-P` an interpreter runs what lies in the current directory."""
    psutil.Popen([sys.executable, "-m", "inferometer.drive.worker"]).wait(timeout=60)
    assert hostile.read_text().count("inferometer") == 1


@pytest.mark.parametrize("path", ["", ":", ".:", "{cwd}/../none::."])
def test_nothing_of_the_current_directory_is_imported(
    hostile: Path, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: a run with its workers, its scraper and the embedded server, and lanes that make prompts, import nothing that lies
    in the current directory, whatever relative entries PYTHONPATH has; and all of them work."""
    monkeypatch.setenv("PYTHONPATH", path.format(cwd=tmp_path))
    assert list(in_processes(abs, range(-40, 0), 2)) == [abs(x) for x in range(-40, 0)]
    with Embedded(tmp_path / "server.txt") as server:
        assert server.url().startswith("http://127.0.0.1:")
    monkeypatch.delenv("PYTHONPATH")
    if not path:
        code, _, told = run("run", "--requests", "4", "--rate", "20", *SMALL, out=tmp_path / "out")
        assert code in (0, 3, 4), told
        assert (only(tmp_path / "out") / "summary.json").is_file()
    assert not hostile.exists()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_no_process_that_a_run_starts_has_a_key_in_its_environment(tmp_path: Path) -> None:
    """Law: the worker, the scraper and the embedded server of a run have in their environment no variable but those on the
    list; the process that the user started has the key."""
    process = start(
        "run",
        "--rate",
        "50",
        "--duration",
        "60",
        *SMALL,
        out=tmp_path,
        OPENAI_API_KEY=SECRET,
        HF_TOKEN=SECRET,
    )
    try:
        wait_for_answers(process, tmp_path, more_than=3)
        own = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert own.count(SECRET.encode()) == 2
        children = psutil.Process(process.pid).children(recursive=True)
        assert {child.pid for child in children} >= set(workers_of(process).values())
        modules = {child.cmdline()[3] for child in children}
        assert modules == {
            "inferometer.drive.worker",
            "inferometer.server",
            "inferometer.telemetry.metrics.scraper",
        }
        for child in children:
            given = child.environ()
            assert given == environment(given)
            assert SECRET not in str(given)
    finally:
        process.kill()
        process.communicate()


def test_what_is_handed_on_is_on_a_list() -> None:
    """Law: variables by which the interpreter, the loader and TLS find their files are handed on; keys, tokens, proxies and all
    that runs code by its value are not."""
    needed = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "TMPDIR": "/tmp",
        "LD_LIBRARY_PATH": "/opt",
        "SSL_CERT_FILE": "/ca.pem",
    }
    other = {
        "OPENAI_API_KEY": SECRET,
        "HF_TOKEN": SECRET,
        "https_proxy": "http://u:p@proxy",
        "PYTHONINSPECT": "1",
    }
    other |= {
        "PYTHONSTARTUP": "x.py",
        "LD_PRELOAD": "x.so",
        "PATHS": "/",
        "MY_PATH": "/",
        "SSLKEYLOGFILE": "keys",
    }
    assert environment(needed | other) == needed


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/opt/a:/opt/b", "/opt/a:/opt/b"),
        (":/opt/a:", "/opt/a"),
        (".:src:/opt/a", "/opt/a"),
        (":", None),
        ("", None),
    ],
)
def test_of_pythonpath_only_what_it_names_absolutely_is_handed_on(
    path: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: an empty or relative entry, which is another folder in each current directory, is left out."""
    monkeypatch.chdir(tmp_path)
    assert environment({"PYTHONPATH": path}).get("PYTHONPATH") == expected


def test_a_relative_entry_that_the_package_was_imported_from_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: without it the processes would not find the package."""
    monkeypatch.chdir(ROOT.parent)
    assert environment({"PYTHONPATH": f"{ROOT.name}:"}) == {"PYTHONPATH": str(ROOT)}


def test_processes_of_our_own_are_started_in_one_place() -> None:
    """Law: no other file names the interpreter, or starts processes in a way that hands on the current directory."""
    for path in modules():
        tree = ast.parse(path.read_text())
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        imported = {
            alias.name
            if isinstance(node, ast.Import)
            else str(getattr(node, "module", "")) + "." + alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        started = {one for one in imported if "multiprocessing" in one or "ProcessPool" in one}
        assert not started, path
        # On a node of Ray it is the node's own, for a command that was made here.
        known = (SOURCE / "isolation.py", SOURCE / "cluster" / "launch" / "ray_driver.py")
        assert ("executable" in names) == (path in known), path


def test_the_command_starts_in_a_folder_of_hostile_modules(hostile: Path) -> None:
    """Law: of the installed command the first folder of imports is its own, not the current one."""
    command = Path(sys.executable).with_name("inferometer")
    if not command.exists():
        pytest.skip("the command is not installed")
    assert psutil.Popen([str(command), "doctor", "--help"], stdout=subprocess.DEVNULL).wait(timeout=60) == 0
    assert not hostile.exists()
