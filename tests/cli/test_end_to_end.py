"""The command as people use it: real processes, the embedded server or scripted peers, and what is left on disk."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import COMMAND, SMALL, finish, killed, only, run, run_process, start, wait_for_answers
from peers import Script, Seen, chunked, scripted, tokens, whole
from serving import serving
from shipped_schemas import shipped

from inferometer.drive.progress_counters import Counters
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import OUTCOME, RECORD
from inferometer.journal.seal import read_table, streams
from inferometer.plan.lead_in import LEAD_PER_SLOT

CANARY = "sk-canary-7f3a9e41"
ECHO = b'{"error":{"message":"bad key %b"}}' % CANARY.encode()
MODELS = whole(200, b'{"data":[{"id":"m"}]}')
HELLO = whole(
    200, b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}'
)


def serve_good(seen: Seen) -> Script:
    """A good server: models, a probe, then streams of as many tokens as asked for."""
    if seen.method == "GET":
        return Script(MODELS)
    body = json.loads(seen.body)
    if not body["stream"]:
        return Script(HELLO)
    return Script(chunked(*tokens(*[" word"] * body["max_tokens"])))


def loaded(seen: list[Seen]) -> list[str]:
    """The prompts of the load: before it, requests for one token each are sent to find out about the server."""
    bodies = [json.loads(one.body) for one in seen if one.method == "POST"]
    return [body["messages"][0]["content"] for body in bodies if body["max_tokens"] > 1]


def beside(summary: dict[str, Any]) -> int:
    """Requests of the lead-in and the lead-out."""
    return int(summary["requests"]["lead_in"] + summary["requests"]["lead_out"])


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any], str, Path]:
    """One small run against the embedded server: exit code, summary, stderr, run folder."""
    out = tmp_path_factory.mktemp("runs")
    arguments = ["--requests", "60", "--concurrency", "12", "--warmup", "12", "--workers", "2", *SMALL]
    code, stdout, stderr = run("run", *arguments, "--json", out=out)
    return code, json.loads(stdout), stderr, only(out)


def test_a_run_without_a_server_measures_the_embedded_one(
    embedded: tuple[int, dict[str, Any], str, Path],
) -> None:
    """All requests succeed, warm-up apart, and the exit code is the verdict's: too few samples for P99 is not VALID."""
    code, summary, _, _ = embedded
    requests = summary["requests"]
    assert (requests["sent"], requests["completed"], requests["failed"]) == (60, 60, 0)
    assert requests["warmup"] == {"sent": 12, "completed": 12}
    assert code == {"INVALID": 3, "INCONCLUSIVE": 4}[summary["verdict"]["status"]]
    assert summary["metrics"]["ttft_ms"]["n"] == 60
    assert summary["metrics"]["output_tokens"]["mean"] == 5
    assert summary["tokens"]["prompt"]["misses"] == 0
    assert len(summary["instrument"]["cpu_fraction"]) == 2


def test_stdout_is_the_summary_on_disk_and_keeps_its_schema(
    embedded: tuple[int, dict[str, Any], str, Path],
) -> None:
    """--json prints exactly summary.json, which an independent validator accepts."""
    _, summary, _, folder = embedded
    assert summary == json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, shipped("summary"))


def test_the_run_folder_holds_what_the_docs_say(embedded: tuple[int, dict[str, Any], str, Path]) -> None:
    """Plan, record and reports are there; the workers' live counters are gone."""
    folder = embedded[3]
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert names == {
        "plan.json", "run.json", "requests.arrow", "requests.parquet", "pulse.parquet", "summary.json",
        "report.md", "report.html", "log.txt", "journal/worker-0.arrows", "journal/worker-1.arrows",
        "journal/pulse-0.arrows", "journal/pulse-1.arrows", "telemetry/scrapes.jsonl.zst",
        "server_metrics_export.json", "server_metrics_export.csv",
    }  # fmt: skip
    assert (folder / "log.txt").read_text() == ""


def test_a_report_can_be_made_again_from_the_record_alone(
    embedded: tuple[int, dict[str, Any], str, Path],
) -> None:
    """`report` gives the same summary, byte for byte, without a server."""
    folder = embedded[3]
    before = (folder / "summary.json").read_bytes()
    (folder / "summary.json").unlink()
    code, stdout, _ = finish("report", str(folder))
    assert code == embedded[0]
    assert (folder / "summary.json").read_bytes() == before
    assert "Time to First Token" in stdout


def test_a_process_of_its_own_shows_and_exits_with_the_same(
    embedded: tuple[int, dict[str, Any], str, Path],
) -> None:
    """What tests carry out in this process (`finish`) is what the command's own process does."""
    arguments = ["report", str(embedded[3]), "--json"]
    assert run_process(*arguments) == finish(*arguments)


def test_a_saved_plan_runs_again_as_the_same_plan(
    embedded: tuple[int, dict[str, Any], str, Path], tmp_path: Path
) -> None:
    """plan.json given as PLAN resolves to the same hash and offers the same requests."""
    code, stdout, _ = run("run", str(embedded[3] / "plan.json"), "--json", out=tmp_path)
    again = json.loads(stdout)
    assert again["run"]["plan_hash"] == embedded[1]["run"]["plan_hash"]
    assert code == embedded[0] or {code, embedded[0]} <= {3, 4}
    facts = [json.loads((folder / "run.json").read_text()) for folder in (embedded[3], only(tmp_path))]
    assert facts[0]["fingerprint"] == facts[1]["fingerprint"]
    assert facts[0]["salt"] != facts[1]["salt"]


@pytest.mark.parametrize(
    ("load", "sent"),
    [
        (["--rate", "200", "--requests", "40"], 40),
        (["--rate", "200", "--arrival", "constant", "--requests", "40"], 40),
        (["--rate", "200", "--burstiness", "0.5", "--requests", "40", "--workers", "2"], 40),
        (["--concurrency", "3", "--requests", "40", "--connection", "new"], 40),
        (["--concurrency", "2", "--requests", "30", "--no-stream"], 30),
    ],
)
def test_every_load_sends_exactly_what_was_asked(load: list[str], sent: int, tmp_path: Path) -> None:
    """Open and closed loops by count: the server gets each scheduled request once, with its own nonce. In a closed loop it gets
    those of the lead-in too, and of the lead-out, which have nonces of the lead-in before other words."""
    with scripted(serve_good, limit=300) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        _, stdout, _ = run("run", "--url", url, *load, *SMALL, "--warmup", "0", "--json", out=tmp_path)
    summary = json.loads(stdout)
    assert (summary["requests"]["sent"], summary["requests"]["completed"]) == (sent, sent)
    prompts = loaded(peer.seen)
    assert len(prompts) == len(set(prompts)) == sent + beside(summary)
    assert len({prompt[:9] for prompt in prompts}) == sent + summary["requests"]["lead_in"]


def test_a_duration_ends_the_run_and_goes_through_the_prompts_again(tmp_path: Path) -> None:
    """Closed loop by time: it ends, everything sent has an outcome, and no two requests share a nonce."""
    with scripted(serve_good, limit=300) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        arguments = ["--concurrency", "4", "--duration", "1s", "--warmup", "0", "--json", *SMALL]
        _, stdout, _ = run("run", "--url", url, *arguments, out=tmp_path)
    summary = json.loads(stdout)
    posts = loaded(peer.seen)
    assert summary["requests"]["sent"] == summary["requests"]["completed"] == len(posts) - beside(summary) > 4
    assert len(set(posts)) == len(posts)


def test_a_planted_key_reaches_no_file_and_no_output(tmp_path: Path) -> None:
    """The key goes to the server and nowhere else, though the server echoes it in errors, text and finish reasons."""

    def echo(seen: Seen) -> Script:
        assert seen.headers["authorization"] == f"Bearer {CANARY}"
        if seen.method == "GET":
            return Script(MODELS)
        if not json.loads(seen.body)["stream"]:
            return Script(HELLO)
        if seen.place % 2:
            return Script(whole(401, ECHO))
        return Script(chunked(*tokens("sk-", "canary-7f3a9e41", finish=CANARY)))

    with scripted(echo) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        arguments = ["--requests", "12", "--concurrency", "2", *SMALL, "--api-key-env", "TEST_KEY"]
        process = start("run", "--url", url, *arguments, out=tmp_path, TEST_KEY=CANARY)
        command_lines: set[str] = set()
        while process.poll() is None:
            for line in Path("/proc").glob("[0-9]*/cmdline") if Path("/proc").is_dir() else []:
                try:
                    command_lines.add(line.read_text())
                except OSError:
                    continue
        stdout, stderr = process.communicate(timeout=60)
    assert len(peer.seen) >= 14
    assert CANARY not in stdout + stderr + "".join(command_lines)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        assert b"canary" not in path.read_bytes(), path
    folder = RunFolder.open(only(tmp_path))
    assert "canary" not in str(streams(folder, "worker", OUTCOME).to_pylist())
    assert "canary" not in str(read_table(folder.record, RECORD).to_pylist())
    details = read_table(RunFolder.open(only(tmp_path)).record, RECORD).column("detail").to_pylist()
    assert "bad key [redacted]" in details


def test_a_server_that_is_not_there_is_exit_5_and_leaves_nothing(tmp_path: Path) -> None:
    """The message says what was tried; no run folder is left."""
    with serving("refuse=0") as port:
        code, stdout, stderr = run("run", "--url", f"http://127.0.0.1:{port}", out=tmp_path)
    assert (code, stdout) == (5, "")
    assert f"127.0.0.1 port {port}" in stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_wants_a_key_is_told_with_the_flag_that_helps(tmp_path: Path) -> None:
    """Before anything is timed the user is told what to change."""
    with serving("status:401=1") as port:
        code, _, stderr = run("run", "--url", f"http://127.0.0.1:{port}", out=tmp_path)
    assert code == 5
    assert "--api-key-env" in stderr


def test_a_web_site_is_told_with_the_flag_that_helps(tmp_path: Path) -> None:
    """It names no model, so the user may; more cannot be known of it."""
    page = whole(200, b"<html>hello</html>", kind=b"text/html")
    with scripted(lambda seen: Script(page)) as peer:
        code, _, stderr = run("run", "--url", f"http://127.0.0.1:{peer.port}", out=tmp_path)
    assert code == 2
    assert "--model" in stderr


def test_a_server_that_fails_at_everything_is_exit_5_with_a_record(tmp_path: Path) -> None:
    """Every request counted by its class, a report written, and the exit code says the server failed."""
    with serving("status:503=1,skip=1") as port:  # the probe succeeds
        url = f"http://127.0.0.1:{port}"
        code, stdout, _ = run(
            "run", "--url", url, "--requests", "9", "--warmup", "0", "--json", *SMALL, out=tmp_path
        )
    summary = json.loads(stdout)
    assert code == 5
    assert summary["requests"]["by_error"] == {"http_5xx": 9}
    assert (only(tmp_path) / "report.html").exists()


def test_every_wrong_flag_is_told_at_once(tmp_path: Path) -> None:
    """Exit 2, one line a problem, each with its flag."""
    code, _, stderr = run("run", "--rate", "fast", "--slo", "ttft", "--workers", "0", out=tmp_path)
    assert code == 2
    assert all(flag in stderr for flag in ("--rate", "--slo", "--workers"))
    assert run("run", "--no-such-flag", out=tmp_path)[0] == 2


ENDLESS = ["--requests", "20000", "--concurrency", "4", "--warmup", "0", *SMALL]


def test_ctrl_c_saves_and_reports_what_was_measured(tmp_path: Path) -> None:
    """SIGINT: no more requests, those in flight end, the record is sealed, exit 130. Answers to the lead-in are none of it."""
    process = start("run", *ENDLESS, out=tmp_path)
    folder = wait_for_answers(process, tmp_path, LEAD_PER_SLOT * 4 + 3)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["run"]["interrupted"]
    assert summary["requests"]["completed"] > 3
    assert summary["requests"]["cancelled"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes of a run in /proc")
def test_a_killed_run_is_recovered_up_to_its_last_flush(tmp_path: Path) -> None:
    """kill -9 of every process of the run: `recover` reports all requests after the lead-in but those of the last second."""
    process = start("run", *ENDLESS, out=tmp_path)
    lead_in = LEAD_PER_SLOT * 4
    folder = wait_for_answers(process, tmp_path, lead_in + 3)
    before = Counters.attach(folder, 0, 1).progress().ok - lead_in
    killed(process, folder)
    code, stdout, _ = finish("recover", str(folder), "--json")
    summary = json.loads(stdout)
    assert code == 130
    assert summary["verdict"]["status"] != "VALID"
    assert summary["requests"]["completed"] >= before
    assert (folder / "report.html").exists()


def test_a_key_echoed_before_the_run_is_not_shown_either(tmp_path: Path) -> None:
    """The probe's errors and the server's own headers and names pass the same point as the record."""

    def refuse(seen: Seen) -> Script:
        if seen.method == "GET":
            return Script(MODELS)
        return Script(whole(400, ECHO, b"Server: " + CANARY.encode()))

    with scripted(refuse) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        code, _, stderr = run("run", "--url", url, "--api-key-env", "TEST_KEY", out=tmp_path, TEST_KEY=CANARY)
    assert code == 5
    assert "bad key [redacted]" in stderr
    assert CANARY not in stderr


def test_a_server_that_wants_the_newer_name_of_the_length_gets_it(tmp_path: Path) -> None:
    """A refusal of max_tokens that names max_completion_tokens decides the field, which is on record."""

    def modern(seen: Seen) -> Script:
        if seen.method == "POST" and "max_tokens" in json.loads(seen.body):
            return Script(whole(400, b'{"error":{"message":"use max_completion_tokens instead"}}'))
        if seen.method == "POST" and json.loads(seen.body)["stream"]:
            return Script(chunked(*tokens(*[" w"] * json.loads(seen.body)["max_completion_tokens"])))
        return serve_good(seen)

    with scripted(modern) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        _, stdout, _ = run(
            "run", "--url", url, "--requests", "8", "--warmup", "0", "--json", *SMALL, out=tmp_path
        )
    assert json.loads(stdout)["requests"]["completed"] == 8
    assert json.loads((only(tmp_path) / "run.json").read_text())["length_field"] == "max_completion_tokens"


def test_a_count_ends_a_run_before_its_duration(tmp_path: Path) -> None:
    """With both ends given the first one counts: few requests do not wait for the clock."""
    with scripted(serve_good) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        arguments = ["--requests", "8", "--duration", "100s", "--warmup", "0", "--json", *SMALL]
        _, stdout, _ = run("run", "--url", url, *arguments, out=tmp_path)
    summary = json.loads(stdout)
    assert summary["requests"]["completed"] == 8
    assert summary["window"]["duration_s"] < 90


def test_a_reader_who_leaves_changes_neither_record_nor_exit_code(tmp_path: Path) -> None:
    """stdout closed early, or stderr: the run goes on, is reported, and exits with its verdict's code."""
    command = [*COMMAND, "run", "--requests", "20", "--warmup", "0", "--json", *SMALL, "--out", str(tmp_path)]
    with scripted(serve_good) as peer:
        process = subprocess.Popen(
            [*command, "--url", f"http://127.0.0.1:{peer.port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        code = process.wait(60)
    summary = json.loads((only(tmp_path) / "summary.json").read_text())
    assert code == {"INVALID": 3, "INCONCLUSIVE": 4}[summary["verdict"]["status"]]


def test_the_plan_of_an_embedded_run_says_nothing_of_the_server_it_is_sent_to_next(
    embedded: tuple[int, dict[str, Any], str, Path], tmp_path: Path
) -> None:
    """What we know of our own server is not declared of another: no software, no caching, and not its tokenizer."""
    assert embedded[1]["sut"]["prefix_caching"] == "disabled"
    with scripted(serve_good) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        _, stdout, _ = run("run", str(embedded[3] / "plan.json"), "--url", url, "--json", out=tmp_path)
    summary = json.loads(stdout)
    assert (summary["sut"]["software"], summary["sut"]["prefix_caching"]) == (None, None)
    assert summary["tokens"]["tokenizer"]["kind"] != "shipped"


def test_a_folder_that_cannot_be_written_is_told_in_words(tmp_path: Path) -> None:
    """Exit 2 and the path, not our bug."""
    (tmp_path / "file").write_text("")
    code, _, stderr = run("run", "--requests", "3", out=tmp_path / "file")
    assert code == 2
    assert "file" in stderr
