"""Folders of a stranger: a command that reads one contacts nobody and opens nothing that the folder names outside itself.

Each command runs in a process of its own with an audit hook, which no code of that process can take away again: it ends the
process at the first attempt to use a socket, and writes down every file that is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, finish, only

from inferometer.plan.saved import file_hash

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WATCHED = """
import os, sys
opened = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
def watch(event, given):
    if event.startswith("socket.") and event != "socket.gethostname":
        os.write(opened, f"NETWORK {event} {given}\\n".encode())
        os._exit(99)
    if event == "open" and isinstance(given[0], (str, bytes, os.PathLike)):
        os.write(opened, os.fsencode(os.path.abspath(os.fsdecode(given[0]))) + b"\\n")
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        os.write(opened, f"PROCESS {given}\\n".encode())
sys.addaudithook(watch)
from inferometer.cli.app import run
sys.exit(run(sys.argv[2:]))
"""


def watched(place: Path, *command: str) -> tuple[int, str, list[str]]:
    """Exit code, stderr, and what was opened and started."""
    log = place / "opened.txt"
    log.unlink(missing_ok=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_"))}
    hub = {"HF_HOME": str(place / "hub"), "HF_TOKEN": "hf_of_the_user", "HF_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(log), *command],
        env=kept | hub,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stderr, log.read_text(errors="replace").splitlines()


def made(folder: Path) -> None:
    """A tokenizer of single bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({one: at for at, one in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    folder.mkdir(parents=True)
    inner.save(str(folder / "tokenizer.json"))


def version_of(file: Path) -> str:
    return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps its text, so that its journal is there to be sealed again."""
    out = tmp_path_factory.mktemp("whole")
    load = [*SMALL, "--requests", "12", "--warmup", "2", "--keep-text", "all", "--quiet", "--out", str(out)]
    assert finish("simulate", *load)[0] == 4
    return only(out)


@pytest.fixture
def killed(whole: Path, tmp_path: Path) -> Path:
    """The same, as a run leaves it that was killed before it was sealed."""
    folder = tmp_path / "killed"
    shutil.copytree(whole, folder)
    for path in folder.iterdir():
        if path.name not in ("plan.json", "run.json", "journal", "requests.arrow", "log.txt"):
            path.unlink() if path.is_file() else shutil.rmtree(path)
    return folder


def doctored(folder: Path, kind: str, name: str, private: Path, version: str | None = None) -> None:
    """Have a folder name everything outside itself that a plan can name."""
    plan = json.loads((folder / "plan.json").read_text())
    plan["tokenizer"] = {"name": name}
    plan["instrument"] = plan.get("instrument", {}) | {"keep_text": "none"}
    target: dict[str, Any] = plan.setdefault("target", {})
    target |= {"url": "https://127.0.0.1:9", "model": "m"}
    target |= {"api_key_file": str(private / "key"), "tls_ca_file": str(private / "ca.pem")}
    plan["server_metrics"] = plan.get("server_metrics", {}) | {"urls": ["https://127.0.0.1:9/metrics"]}
    plan["server_metrics"] |= {"enabled": True, "ca_file": str(private / "ca.pem"), "token_env": "HF_TOKEN"}
    (folder / "plan.json").write_text(json.dumps(plan))
    facts = json.loads((folder / "run.json").read_text())
    facts["plan_hash"] = file_hash(folder / "plan.json")
    facts["tokenizer"] |= {"kind": kind, "name": "of a stranger", "version": version}
    (folder / "run.json").write_text(json.dumps(facts))


def outside(opened: list[str], place: Path, *allowed: Path) -> list[str]:
    """What was opened or started beside the interpreter's own, the system's, and the folders that were given."""
    ours: list[str | Path] = [
        sys.prefix,
        sys.base_prefix,
        Path(__file__).parents[2] / "src",
        "/proc",
        "/sys",
        "/dev",
        "/etc",
        "/usr",
        *allowed,
    ]
    home = [str(Path(one).resolve()) for one in ours]
    return [one for one in opened if not any(one == root or one.startswith(f"{root}/") for root in home)]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("hub", "evil/model@main"),
        ("file", "PRIVATE"),
        ("shipped", "PRIVATE"),
    ],
)
@pytest.mark.parametrize("command", ["report", "recover", "compliance", "compare"])
def test_no_command_on_a_folder_follows_what_it_names(
    whole: Path, killed: Path, tmp_path: Path, command: str, kind: str, name: str
) -> None:
    """Law: nobody is contacted, no process started, and no file opened but those of the folders that the user gave; there is a
    result, or words."""
    private = tmp_path / "private"
    private.mkdir()
    for one in ("key", "ca.pem", "tokenizer.json"):
        (private / one).write_text("{}")
    sealed, other = tmp_path / "sealed", tmp_path / "other"
    shutil.copytree(whole, sealed)
    shutil.copytree(whole, other)
    folder = killed if command == "recover" else sealed
    doctored(folder, kind, str(private) if name == "PRIVATE" else name, private)
    words = [command, str(other), str(folder)] if command == "compare" else [command, str(folder)]
    code, stderr, opened = watched(tmp_path, *words)
    assert code in (0, 2, 3, 4, 6, 130), stderr
    assert "Traceback" not in stderr
    assert outside(opened, tmp_path, folder, other, tmp_path / "hub") == []
    if command == "recover":
        assert "the tokens of the answers are not counted" in stderr
        assert (folder / "summary.json").is_file()


def test_a_run_of_one_s_own_is_counted_from_the_cache_without_a_request(killed: Path, tmp_path: Path) -> None:
    """Law: the tokenizer of the hub that the run had is found where the hub keeps it; another of the same name does not
    count."""
    snapshot = tmp_path / "hub" / "hub" / "models--org--name" / "snapshots" / COMMIT
    made(snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(COMMIT)
    again = tmp_path / "again"
    shutil.copytree(killed, again)
    doctored(killed, "hub", "org/name", tmp_path, version_of(snapshot / "tokenizer.json"))
    code, stderr, _ = watched(tmp_path, "recover", str(killed))
    assert code == 4, stderr
    assert "not counted" not in stderr
    doctored(again, "hub", "org/name", tmp_path, "sha256:000000000000")
    code, stderr, _ = watched(tmp_path, "recover", str(again))
    assert "the tokens of the answers are not counted" in stderr


def test_a_file_is_opened_if_the_user_names_it_and_it_is_the_run_s(killed: Path, tmp_path: Path) -> None:
    """Law: without the flag the journal stays, whatever is to be kept of text, so that the answers can be counted later; with a
    file that is another, nothing is done."""
    made(tmp_path / "mine")
    mine = tmp_path / "mine" / "tokenizer.json"
    doctored(killed, "file", str(mine), tmp_path, version_of(mine))
    _, stderr, opened = watched(tmp_path, "recover", str(killed))
    assert str(mine) not in opened
    assert f"recover {killed} --tokenizer FILE" in " ".join(stderr.split())
    code, stderr, _ = watched(tmp_path, "recover", str(killed), "--tokenizer", "cl100k_base")
    assert code == 2
    assert "and the run has" in stderr
    code, stderr, opened = watched(tmp_path, "recover", str(killed), "--tokenizer", str(mine))
    assert code == 4, stderr
    assert str(mine) in opened
    assert not list((killed / "journal").glob("worker-*.arrows"))
