"""Tokenizers by a model's name: from the local cache without a word to anybody, else from the hub, else refused in words."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from inferometer.workload.hub import hub_id

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LOAD = (
    "import sys\n"
    "from inferometer.errors import PlanError\n"
    "from inferometer.plan.schema import Tokenizer\n"
    "from inferometer.workload.tokenizers import facts, load\n"
    "try:\n"
    "    known = facts(load(Tokenizer(name=sys.argv[1])))\n"
    "    print(known.kind, known.name, known.vocab_size, known.source)\n"
    "except PlanError as error:\n"
    "    print(error)\n"
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("org/name", ("org/name", None)),
        ("Qwen/Qwen2.5-7B@v1.0", ("Qwen/Qwen2.5-7B", "v1.0")),
        ("o/n@refs/pr/3", ("o/n", "refs/pr/3")),
        ("name", None),
        ("a/b/c", None),
        ("./a", None),
        ("/a/b", None),
        ("../b", None),
        ("a/b@main/../../../etc", None),
        ("a/b@", None),
    ],
)
def test_an_id_is_two_names_and_perhaps_a_revision(name: str, found: tuple[str, str | None] | None) -> None:
    """What looks like a path is none."""
    assert hub_id(name) == found


def load(name: str, home: Path, cwd: Path, **variables: str) -> str:
    """What a fresh process finds: huggingface_hub reads its variables once, when it is imported."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_"))}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, name],
        env=kept | {"HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1", **variables},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip()


def cached(home: Path, tiny_file: Path) -> None:
    """A cache as huggingface_hub leaves it behind."""
    model = home / "hub" / "models--org--name"
    snapshot = model / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "tokenizer.json").write_bytes(tiny_file.read_bytes())
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT)


@pytest.mark.parametrize("revision", ["", "@main", f"@{COMMIT}"])
def test_what_lies_in_the_cache_needs_no_network(tmp_path: Path, tiny_file: Path, revision: str) -> None:
    """Named by the branch or by the commit; the source names the commit, and the name is the model's."""
    cached(tmp_path / "home", tiny_file)
    found = load(f"org/name{revision}", tmp_path / "home", tmp_path, HF_HUB_OFFLINE="1")
    assert found == f"hub org/name 4096 Hugging Face org/name@{COMMIT}"


def test_a_path_that_exists_comes_first(tmp_path: Path, tiny_file: Path) -> None:
    """A folder spelled like an id is the folder."""
    cached(tmp_path / "home", tiny_file)
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "org" / "name" / "tokenizer.json").write_bytes(tiny_file.read_bytes())
    assert load("org/name", tmp_path / "home", tmp_path).startswith("file name 4096 custom file")


def test_offline_and_not_in_the_cache_is_told(tmp_path: Path) -> None:
    """With what forbids it, and the way out."""
    told = load("org/other@v1", tmp_path / "home", tmp_path, HF_HUB_OFFLINE="1")
    assert "--tokenizer: org/other@v1" in told
    assert "HF_HUB_OFFLINE" in told
    assert "give its path" in told


class Hub(BaseHTTPRequestHandler):
    """As much of a hub as the download of one file needs. Anything but org/name at main or v1 is not there."""

    content = b""

    def do_HEAD(self) -> None:
        """What it is, and of which commit."""
        self.answer(body=False)

    def do_GET(self) -> None:
        """The file."""
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        """With the headers that huggingface_hub looks at."""
        there = self.path in ("/org/name/resolve/main/tokenizer.json", "/org/name/resolve/v1/tokenizer.json")
        self.send_response(200 if there else 404)
        if there:
            self.send_header("ETag", '"abc"')
            self.send_header("X-Repo-Commit", COMMIT)
        elif "/org/name/resolve/v2" in self.path:
            self.send_header("X-Error-Code", "RevisionNotFound")
        elif "/org/bare/" in self.path:
            self.send_header("X-Error-Code", "EntryNotFound")
        else:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", str(len(self.content) if there else 0))
        self.end_headers()
        if body and there:
            self.wfile.write(self.content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def hub(tiny_file: Path) -> Iterator[str]:
    """A hub on the loopback."""
    served = type("Served", (Hub,), {"content": tiny_file.read_bytes()})
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["org/name", "org/name@v1"])
def test_a_download_ends_in_the_cache(tmp_path: Path, hub: str, name: str) -> None:
    """And the second time nobody is asked."""
    expected = f"hub org/name 4096 Hugging Face org/name@{COMMIT}"
    assert load(name, tmp_path / "home", tmp_path, HF_ENDPOINT=hub) == expected
    assert load(name, tmp_path / "home", tmp_path, HF_HUB_OFFLINE="1") == expected


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nobody/nothing", "no such model"),
        ("org/name@v2", "no such revision"),
        ("org/bare", "the model has no tokenizer.json"),
    ],
)
def test_what_the_hub_does_not_have_is_told(tmp_path: Path, hub: str, name: str, told: str) -> None:
    """Whose fault it is, and what to do."""
    assert told in load(name, tmp_path / "home", tmp_path, HF_ENDPOINT=hub)


def test_without_a_network_it_fails_soon_and_in_words(tmp_path: Path) -> None:
    """Nobody listens on port 9 of this machine."""
    told = load("org/name", tmp_path / "home", tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert "is there a network?" in told
