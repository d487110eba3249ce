"""`inferometer workload` as people use it: made, shown, verified, and run on the embedded server with two workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from commands import SMALL, finish, only, run, run_process
from peers import Script, Seen, chunked, scripted, tokens, whole
from shipped_schemas import shipped

from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase

LOAD = [*SMALL, "--requests", "40", "--warmup", "5"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 40 requests and 5 of warm-up."""
    out = tmp_path_factory.mktemp("made") / "w"
    code, stdout, _ = run("workload", "make", *LOAD, out=out)
    assert code == 0
    assert "40 requests, and 5 of warm-up" in stdout
    return out


@pytest.fixture(scope="module")
def ran(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run folder of a run on the embedded server: of the plan, or of the file, with two workers."""
    found: dict[str, Path] = {}

    def folder(how: str) -> Path:
        if how not in found:
            out = tmp_path_factory.mktemp("runs")
            flags = (
                LOAD
                if how == "plan"
                else ["--workload-file", str(made / f"workload.{how}"), "--workers", "2"]
            )
            run("run", *flags, "--quiet", out=out)
            found[how] = only(out)
        return found[how]

    return folder


def test_another_process_writes_the_same_bytes(made: Path, tmp_path: Path) -> None:
    """Whatever its hash seed, time zone and language."""
    run(
        "workload",
        "make",
        *LOAD,
        "--quiet",
        out=tmp_path / "w",
        PYTHONHASHSEED="7",
        TZ="Asia/Tokyo",
        LC_ALL="C",
    )
    for form in ("arrow", "jsonl"):
        assert (tmp_path / "w" / f"workload.{form}").read_bytes() == (made / f"workload.{form}").read_bytes()


def bodies(folder: Path) -> list[str]:
    """What was to be sent, nonces written over, without the lead-in: a file has none, and leads in with its warm-up."""
    schedule = Schedule(RunFolder.open(folder).schedule)
    places = schedule.table.select(["nonce_at", "nonce_len", "phase"]).to_pylist()
    return [
        (body[: place["nonce_at"]] + body[place["nonce_at"] + place["nonce_len"] :]).decode()
        for body, place in ((schedule.body(row), place) for row, place in enumerate(places))
        if place["phase"] != Phase.LEAD
    ]


@pytest.mark.parametrize("form", ["arrow", "jsonl"])
def test_a_run_of_the_file_is_the_run_of_its_plan_with_other_nonces(
    made: Path, ran: Callable[[str], Path], form: str
) -> None:
    """Any number of workers; every report names the fingerprint, and the file."""
    of_plan, of_file = ran("plan"), ran(form)
    facts = [json.loads(RunFolder.open(folder).facts.read_bytes()) for folder in (of_plan, of_file)]
    header = json.loads((made / "workload.jsonl").open().readline())
    assert facts[0]["fingerprint"] == facts[1]["fingerprint"] == header["fingerprint"]
    assert bodies(of_plan) == bodies(of_file)
    assert facts[0]["salt"] != facts[1]["salt"]
    summary = json.loads((of_file / "summary.json").read_bytes())
    jsonschema.validate(summary, shipped("summary"))
    assert summary["workload"]["made"] == {
        "file": f"workload.{form}",
        "format": form,
        "digest": header["digest"],
    }
    for name in ("report.md", "report.html"):
        text = (of_file / name).read_text()
        assert header["fingerprint"] in text
        assert header["digest"] in text
    for report in (of_plan, of_file / "summary.json", of_file / "run.json"):
        code, stdout, _ = finish("workload", "verify", str(made / f"workload.{form}"), str(report))
        assert (code, stdout.count("same  ")) == (0, 4)


def test_the_plan_of_such_a_run_can_be_run_again_with_that_file_only(
    made: Path, ran: Callable[[str], Path], tmp_path: Path
) -> None:
    """plan.json pins the file's digest; another file under that name is refused with exit code 2."""
    plan = ran("jsonl") / "plan.json"
    code, stdout, _ = run("simulate", str(plan), "--json", "--quiet", out=tmp_path / "runs")
    assert code in (0, 3, 4)
    before = json.loads((ran("jsonl") / "summary.json").read_bytes())["workload"]
    assert json.loads(stdout)["workload"]["fingerprint"] == before["fingerprint"]
    saved = json.loads(plan.read_bytes())
    (tmp_path / "other").mkdir()
    run("workload", "make", *LOAD, "--seed", "43", "--quiet", out=tmp_path / "other")
    saved["workload"]["file"] = str(tmp_path / "other" / "workload.jsonl")
    (tmp_path / "plan.json").write_text(json.dumps(saved))
    code, _, stderr = run("run", str(tmp_path / "plan.json"), out=tmp_path / "runs2")
    assert code == 2
    assert "is another file than the plan's" in stderr
    assert not (tmp_path / "runs2").exists() or not list((tmp_path / "runs2").iterdir())


def test_a_bad_file_is_refused_before_the_server_is_asked_anything(made: Path, tmp_path: Path) -> None:
    """Exit code 2, with file, line and field; the server has seen no request."""
    lines = (made / "workload.jsonl").read_text().splitlines()
    row = json.loads(lines[3]) | {"output_tokens": 0}
    lines[3] = json.dumps(row)
    (tmp_path / "w.jsonl").write_text("\n".join(lines) + "\n")

    def answer(_: Seen) -> Script:
        return Script(whole(200, b"{}"))

    with scripted(answer, limit=1) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        code, _, stderr = run(
            "run", "--url", url, "--workload-file", str(tmp_path / "w.jsonl"), out=tmp_path / "r"
        )
        assert peer.seen == []
    assert code == 2
    assert "w.jsonl:4: output_tokens: must be at least 1, not 0" in stderr


def test_a_server_that_takes_no_ids_is_not_sent_them(tmp_path: Path) -> None:
    """A file of ids for a server of text: exit code 2 after the try-out."""
    run("workload", "make", *LOAD, "--api", "completions", "--quiet", out=tmp_path / "w")

    def answer(seen: Seen) -> Script:
        if seen.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        body = json.loads(seen.body)
        if isinstance(body["prompt"], list):
            return Script(whole(400, b'{"error":{"message":"text only"}}'))
        if body["stream"]:
            return Script(chunked(*tokens(" word")))
        return Script(whole(200, b'{"choices":[{"text":"hi","finish_reason":"stop"}]}'))

    with scripted(answer, limit=10) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        file = str(tmp_path / "w" / "workload.arrow")
        code, _, stderr = run("run", "--url", url, "--workload-file", file, out=tmp_path / "r")
    assert code == 2
    assert "does not accept token ids" in stderr


@pytest.mark.parametrize("columns", ["80", "40"])
def test_what_is_shown_fits_and_survives_a_pipe(
    made: Path, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line but a hash is wider than asked for; in ASCII too; and as JSON."""
    monkeypatch.setenv("COLUMNS", columns)
    for encoding in ("utf-8", "ascii"):
        monkeypatch.setenv("PYTHONIOENCODING", encoding)
        code, stdout, _ = run_process("workload", "show", str(made))
        assert code == 0
        assert stdout.isascii() == (encoding == "ascii")
        lines = [line for line in stdout.splitlines() if "sha256:" not in line]
        assert max(map(len, lines)) <= int(columns)
        assert "  20  40  " in stdout
    code, stdout, _ = finish("workload", "show", str(made), "--json")
    asked = json.loads(stdout)["account"]["histograms"]["input_tokens"]
    assert asked["counts"]["asked"] == [40]
    assert asked["edges"] == [20, 21]
    page = made.parent / "w.html"
    assert finish("workload", "show", str(made), "--html", str(page))[0] == 0
    assert "A workload of 40 requests" in page.read_text()


def test_exit_codes_tell_another_file_from_one_that_cannot_be_read(
    made: Path, ran: Callable[[str], Path], tmp_path: Path
) -> None:
    """0 the same, 3 another or changed, 2 unreadable."""
    assert finish("workload", "verify", str(made), str(ran("plan")))[0] == 0
    run("workload", "make", *LOAD, "--seed", "43", "--quiet", out=tmp_path / "w")
    code, stdout, _ = finish("workload", "verify", str(tmp_path / "w"), str(ran("plan")))
    assert code == 3
    assert "the report is of other requests" in stdout
    file = tmp_path / "w" / "workload.jsonl"
    file.write_text(file.read_text().replace('"output_tokens":5', '"output_tokens":6', 1))
    code, stdout, _ = finish("workload", "verify", str(file), "--json")
    assert code == 3
    assert not json.loads(stdout)["same"]
    file.write_text("nothing")
    code, _, stderr = finish("workload", "verify", str(file))
    assert code == 2
    assert "is no workload" in stderr
    code, stdout, _ = finish("workload", "verify", str(made))
    assert (code, stdout.count("is as it was made.")) == (0, 2)


def test_a_test_of_many_levels_sends_the_requests_of_a_workload_file(tmp_path: Path) -> None:
    """Law: levels that would have a seed of their own have the file's; what that may do is said before the start."""
    lengths = ["--input-tokens", "20", "--output-tokens", "4"]
    assert finish("workload", "make", *lengths, "--requests", "1500", "--out", str(tmp_path / "made"))[0] == 0
    words = [
        "test",
        "throughput",
        "ttft",
        "--simulate",
        "--quick",
        "--set",
        "max_batch=4",
        "--set",
        "step_base=20ms",
    ]
    file = ["--workload-file", str(tmp_path / "made/workload.arrow"), "--param", "ttft.requests=40"]
    code, _, said = finish(*words, *file, "--out", str(tmp_path / "runs"), "--json")
    (path,) = (tmp_path / "runs").glob("*/campaign.json")
    document = json.loads(path.read_bytes())
    assert code in (0, 4)
    assert [test["problem"] for test in document["tests"]] == [None, None]
    assert sum(len(test["runs"]) for test in document["tests"]) > 4
    assert "the workload file's requests are those of every run" in " ".join(said.split())
