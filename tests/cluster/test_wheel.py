"""The wheel that is made of an installation: installable, whole, and the same each time."""

from __future__ import annotations

import base64
import csv
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import inferometer
from inferometer.cluster.launch.wheel import packed


def test_a_wheel_of_the_same_installation_has_the_same_bytes(tmp_path: Path) -> None:
    """So that what was made of it before is found."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = packed(tmp_path / "a"), packed(tmp_path / "b")
    assert one.name == other.name == f"inferometer-{inferometer.__version__}-py3-none-any.whl"
    assert one.read_bytes() == other.read_bytes()


def test_a_wheel_holds_every_file_and_records_its_hash(tmp_path: Path) -> None:
    """All files of the package but compiled ones, each as it is here."""
    source = Path(inferometer.__file__).parent
    wanted = {
        f"inferometer/{path.relative_to(source)}": path.read_bytes()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(packed(tmp_path)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    assert wanted.items() <= held.items()
    (record,) = [name for name in held if name.endswith("/RECORD")]
    rows = {name: digest for name, digest, _ in csv.reader(held[record].decode().splitlines())}
    assert rows.keys() == held.keys()
    for name, digest in rows.items():
        if name != record:
            found = base64.urlsafe_b64encode(hashlib.sha256(held[name]).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={found}"


def test_pip_installs_the_wheel_and_the_command_runs(tmp_path: Path) -> None:
    """Into a folder of its own, with what is installed here beside it."""
    where = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(where),
    ]
    subprocess.run([*pip, str(packed(tmp_path))], check=True, capture_output=True)
    program = (
        "import inferometer, sys; from inferometer.cli.main import main; "
        "sys.stderr.write(inferometer.__file__); main(['--version'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={"PYTHONPATH": str(where)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"inferometer {inferometer.__version__}\n"
    assert done.stderr.startswith(str(where))
