"""`rerun` of somebody else's report lists what would be read, run, contacted and sent, and does none of it untrusted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SMALL, finish, only
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.cli.app import run
from inferometer.plan import saved
from inferometer.plan.campaign import SCHEMA as CAMPAIGN
from inferometer.plan.campaign import Campaign, to_json
from inferometer.plan.schema import Plan
from inferometer.server.embedded import Embedded

WATCHED = """
import sys
EVENTS = ("open", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.posix_spawn", "os.exec")
def see(event, about):
    if event in EVENTS:
        print(event, *map(str, about[:1]), file=out)
out = open(sys.argv.pop(1), "w", buffering=1)
sys.addaudithook(see)
from inferometer.cli.main import main
main()
"""
"""The command, in a process that writes down what it opens, runs and contacts."""


def watched(*words: str, place: Path) -> tuple[int, str, list[str]]:
    """Exit code, stderr and what was opened, run and contacted."""
    seen = place / "seen.txt"
    done = subprocess.run(
        [sys.executable, "-P", "-c", WATCHED, str(seen), *words],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ | {"SOME_KEY": "sk-secret"},
    )  # fmt: skip
    return done.returncode, done.stderr, seen.read_text().splitlines()


def whole(place: Path) -> Plan:
    """A plan that names files, variables and servers of all kinds."""
    return Plan.model_validate({
        "target": {
            "url": "https://127.0.0.1:9", "model": "m", "api_key_file": str(place / "private-key"),
            "tls_ca_file": str(place / "private-ca"),
        },
        "workload": {"prompts": str(place / "private-prompts.jsonl")},
        "tokenizer": {"name": str(place / "private-tokenizer.json")},
        "server_metrics": {"urls": ["http://127.0.0.1:10"], "cert_file": str(place / "private-cert")},
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["report.html", "plan.json", "tests.json"])
def test_untrusted_nothing_is_read_run_or_contacted(kind: str, tmp_path: Path) -> None:
    """Law: beyond the report itself no file that a report names is opened, no process started and nobody contacted; all of it
    is listed, and the exit code is that of a plan that cannot be carried out."""
    for name in (
        "private-key",
        "private-ca",
        "private-prompts.jsonl",
        "private-tokenizer.json",
        "private-cert",
    ):
        (tmp_path / name).write_text('{"prompt": "private"}\n')
    plan, report = whole(tmp_path), tmp_path / kind
    if kind == "tests.json":
        switch = {"server": {"stopped": {"command": f"touch {tmp_path}/ran"}}}
        given = {"names": ["ttft"], "plan": saved.resolved(plan), "switch": switch}
        report.write_bytes(to_json(Campaign.model_validate(given)))
    elif kind == "plan.json":
        report.write_bytes(saved.to_json(plan))
    else:
        data = json.dumps({"schema": "any", "plan": saved.resolved(plan)})
        report.write_text(f'<p>A report</p><script type="application/json" id="data">{data}</script>')
    code, told, seen = watched("rerun", str(report), "--out", str(tmp_path / "out"), place=tmp_path)
    assert code == 2, told
    assert [line for line in seen if not line.startswith("open ")] == []
    assert [line for line in seen if "private" in line] == []
    assert [line for line in seen if line == f"open {report}"]
    for listed in (
        "private-key",
        "private-ca",
        "private-prompts",
        "private-tokenizer",
        "private-cert",
        ":9",
        ":10",
    ):
        assert listed in told
    assert ("touch" in told) == (kind == "tests.json")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "out").exists()


def test_trusted_it_is_listed_and_done(tmp_path: Path) -> None:
    """Law: with --trust the list comes first, and the run is repeated."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(
        "".join(json.dumps({"prompt": f"word {n}", "output_tokens": 3}) + "\n" for n in range(8))
    )
    with Embedded(tmp_path / "log.txt") as server:
        words = ["--url", server.url(), "--requests", "8", "--warmup", "0", "--prompts", str(prompts)]
        code, _, told = finish("run", *words, "--quiet", "--out", str(tmp_path / "one"))
        assert code in (0, 3, 4), told
        again = [
            "rerun",
            str(only(tmp_path / "one") / "report.html"),
            "--quiet",
            "--out",
            str(tmp_path / "two"),
        ]
        assert finish(*again)[0] == 2
        assert not (tmp_path / "two").exists()
        code, _, told = finish(*again, "--trust")
    assert code in (0, 3, 4), told
    assert f"target.url: requests would be sent to {server.url()}" in told
    assert f"workload.prompts: {prompts} would be read" in told
    assert (only(tmp_path / "two") / "summary.json").is_file()


def test_what_reaches_nothing_needs_no_trust(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Law: of a plan for the reference engine nothing is listed."""
    words = ["simulate", *SMALL, "--requests", "10", "--warmup", "0", "--quiet", "--out"]
    assert run([*words, str(tmp_path / "one")]) == 4
    capsys.readouterr()
    assert run(["rerun", str(only(tmp_path / "one")), "--quiet", "--out", str(tmp_path / "two")]) == 4
    assert "reaches" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "huge", "missing", "link", "loop"])
@pytest.mark.parametrize("name", ["report.html", "plan.json"])
def test_a_report_that_is_no_file_is_refused_at_once(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Law: what has no end, or nobody writes to, is neither read nor waited for."""
    path = tmp_path / name
    if kind == "device":
        path = Path("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    assert run(["rerun", str(path), "--out", str(tmp_path / "out")]) == 2
    assert str(path) in capsys.readouterr().err
    assert run(["rerun", str(tmp_path), "--out", str(tmp_path / "out")]) == 2


OPENING = '<script type="application/json" id="data">'


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (OPENING * 20_000, "holds no data to repeat it from"),
        (OPENING * 20_000 + "</script>", "holds no data to repeat it from"),
        (f"</script>{OPENING}{{}}", "holds no data to repeat it from"),
        (f"{OPENING}{{}}</script>{OPENING}[]</script>", "its schema is 'None'"),
        ("{}", "its schema is 'None'"),
    ],
    ids=["openings without end", "and one end", "an end before", "two", "none"],
)
def test_data_is_between_the_first_opening_and_the_close_behind_it(
    page: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Law: a page is looked through once, however often the data seems to begin in it; without marks it is the data itself."""
    path = tmp_path / "report.html"
    path.write_text(page)
    assert run(["rerun", str(path), "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("schema", ["any", CAMPAIGN])
def test_a_plan_in_a_report_is_no_larger_than_one_of_its_own(
    schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Law: the limits of a plan hold wherever it is; a report may be 256 times as long."""
    path = tmp_path / "report.html"
    plan = {f"key {n}": n for n in range(30_000)}
    path.write_text(json.dumps({"schema": schema, "plan": plan}))
    assert run(["rerun", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "holds more than 20,000 keys and values, too many for a plan" in capsys.readouterr().err


@settings(max_examples=60)
@given(
    st.text()
    | st.recursive(
        st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_whatever_a_report_holds_is_no_bug(tmp_path_factory: pytest.TempPathFactory, held: object) -> None:
    """Law: any text and any JSON is refused in words."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    data = held if isinstance(held, str) else json.dumps(held)
    path.write_text(
        f'<script type="application/json" id="data">{data}</script>', encoding="utf-8", errors="replace"
    )
    assert run(["rerun", str(path), "--out", str(path.parent / "out")]) == 2
