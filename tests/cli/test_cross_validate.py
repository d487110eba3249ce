"""`inferometer cross-validate` against the reference server, whose times are known."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import COMMAND, finish, interrupted, only, run, start
from forwarding import forwarding
from peers import Script, Seen, scripted, whole
from serving import serving
from shipped_schemas import shipped

from inferometer.server.engine.settings import Settings

ENGINE = Settings(step_base_ns=1_000_000, prefill_base_ns=20_000_000, jitter=0)
SHORT = ("--prompt", "tool-call", "--runs", "3")


def cross_validated(out: Path, url: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document."""
    code, stdout, _ = run("cross-validate", "--url", url, *SHORT, *arguments, "--json", out=out)
    return code, json.loads(stdout) if stdout else {}


def rows(document: dict[str, Any], figure: str) -> dict[str, dict[str, Any]]:
    """The rows of a table by method."""
    (table,) = (one for one in document["tables"] if one["figure"] == figure)
    return {row["method"]: row for row in table["rows"]}


def codes(document: dict[str, Any]) -> set[str]:
    return {one["code"] for one in document["remarks"]}


def test_counters_stand_beside_streamed_and_whole_answers(tmp_path: Path) -> None:
    """Counters are of the streamed requests alone: neither the probe's nor the whole ones. Each delta is to the reference."""
    with serving(engine=ENGINE) as port:
        code, document = cross_validated(tmp_path, f"http://127.0.0.1:{port}")
    jsonschema.validate(document, shipped("cross-validation"))
    assert json.loads((only(tmp_path) / "cross-validation.json").read_text()) == document
    assert (code, document["engine"], codes(document)) == (0, "reference", set())
    assert all((only(tmp_path) / one / "requests.parquet").is_file() for one in document["runs"])
    speeds, waits, totals = (rows(document, one) for one in ("tok_per_sec", "ttft_ms", "total_ms"))
    assert list(speeds) == ["counters", "streamed", "whole"]
    assert list(waits) == ["counters", "streamed"]
    assert list(totals) == ["streamed", "whole"]
    for table in (speeds, waits, totals):
        (reference, *others) = table.values()
        assert {row["n"] for row in table.values()} == {3}
        assert reference["delta"] is None
        for row in others:
            assert row["delta"]["absolute"] == pytest.approx(row["mean"] - reference["mean"])
            low, high = row["delta"]["ci95"] or (None, None)
            assert (low is None) == (table is speeds and row["method"] == "whole")
            assert low is None or low <= row["delta"]["absolute"] <= high
    assert waits["counters"]["mean"] >= 20
    added = document["overhead"]["ttft_ms"]
    assert added == waits["streamed"]["delta"]
    assert document["ended"] is not None
    assert speeds["whole"]["mean"] < speeds["streamed"]["mean"]  # its time holds the prompt's


def test_an_engine_that_times_itself_is_compared_with_its_own_timings(tmp_path: Path) -> None:
    """Over Ollama's interface, which has no counters."""
    with serving(engine=ENGINE) as port:
        code, document = cross_validated(tmp_path, f"http://127.0.0.1:{port}", "--engine", "ollama")
    assert (code, document["engine"], codes(document)) == (0, "ollama", {"counters_unknown", "other_engine"})
    for figure in ("tok_per_sec", "ttft_ms", "total_ms"):
        methods = list(rows(document, figure))
        assert methods[:2] == ["timings", "streamed"]
    assert document["overhead"]["tok_per_sec"]["share_ci95"] is not None


def test_an_engine_with_nothing_of_its_own_gets_no_overhead(tmp_path: Path) -> None:
    """Exit code 4, and no delta of one side."""
    with serving(engine=ENGINE) as port:
        url = f"http://127.0.0.1:{port}"
        code, document = cross_validated(tmp_path, url, "--engine", "mlx-lm")
    assert (code, codes(document)) == (4, {"counters_unknown", "other_engine"})
    (only_one,) = rows(document, "ttft_ms").values()
    assert only_one["delta"] is None
    assert (document["overhead"]["ttft_ms"], document["overhead"]["tok_per_sec"]) == (None, None)


def test_counters_that_fall_are_left_out(tmp_path: Path) -> None:
    """Of an engine that counts down: they are named, and what the client measured stands."""
    scrapes = itertools.count(1)

    def falling(path: str, content: bytes) -> bytes:
        if not path.endswith("/metrics"):
            return content
        factor = 1 / next(scrapes)
        lines = [line.rpartition(" ") for line in content.decode().splitlines()]
        changed = (f"{name} {1e6 * factor}" if name and name[0] != "#" else name + blank + value
                   for name, blank, value in lines)  # fmt: skip
        return ("\n".join(changed) + "\n").encode()

    with serving(engine=ENGINE) as port, forwarding(lambda _: port, falling) as url:
        code, document = cross_validated(tmp_path, url)
    assert (code, codes(document)) == (4, {"counters_went_back"})
    assert list(rows(document, "tok_per_sec")) == ["streamed", "whole"]
    assert document["overhead"]["ttft_ms"] is None


def test_counters_that_are_not_there_are_named(tmp_path: Path) -> None:
    """Of an engine whose metrics are switched off."""

    def silent(path: str, content: bytes) -> bytes | None:
        return None if path.endswith("/metrics") else content

    with serving(engine=ENGINE) as port, forwarding(lambda _: port, silent) as url:
        code, document = cross_validated(tmp_path, url)
    assert (code, codes(document)) == (4, {"counters_absent"})


def test_no_engine_there_is_named(tmp_path: Path) -> None:
    """Exit code 5."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    code, document = cross_validated(tmp_path, f"http://127.0.0.1:{port}")
    assert (code, codes(document)) == (5, {"engine_unknown", "unreachable"})


def test_an_unknown_engine_that_fails_is_named(tmp_path: Path) -> None:
    """Exit code 5."""

    def answer(request: Seen) -> Script:
        if request.target == "/v1/models":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        return Script(whole(500, b'{"error":{"message":"out of memory"}}'))

    with scripted(answer) as peer:
        code, document = cross_validated(tmp_path, f"http://127.0.0.1:{peer.port}")
    assert (code, codes(document)) == (5, {"engine_unknown", "warm_up_failed"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "gpt"), "has no adapter"),
        (("--prompt", "poem"), "has no prompt"),
        (("--url", "ftp://x"), "--url"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    """With exit code 2 and what to do."""
    code, _, stderr = run("cross-validate", "--url", "http://127.0.0.1:1", *arguments, out=tmp_path)
    assert code == 2
    assert words in stderr


def test_a_document_with_other_figures_than_its_runs_is_refused(tmp_path: Path) -> None:
    """Its records say what was measured; a figure, a difference or the status that was changed by hand is named. Alone, without
    its runs, nothing contradicts it."""
    with serving(engine=ENGINE) as port:
        code, document = cross_validated(tmp_path, f"http://127.0.0.1:{port}")
    assert code == 0
    folder = only(tmp_path)
    path = folder / "cross-validation.json"
    whole = path.read_text()
    assert finish("report", str(folder))[0] == 0
    mean, absolute = (
        document["tables"][0]["rows"][1]["mean"],
        document["tables"][0]["rows"][1]["delta"]["absolute"],
    )
    for before, after in (
        (f'"mean": {mean}', f'"mean": {mean * 1.01}'),
        (f'"absolute": {absolute}', '"absolute": 0.0'),
        (f'"status": "{document["status"]}"', f'"status": "{_other(document["status"])}"'),
    ):
        assert before in whole
        path.write_text(whole.replace(before, after))
        code, _, stderr = finish("report", str(folder))
        assert (code, "the file was changed" in stderr) == (2, True)
    shutil.rmtree(folder / "runs")
    assert finish("report", str(folder))[0] == 0


def _other(status: str) -> str:
    return "INVALID" if status == "VALID" else "VALID"


def test_tables_are_printed_in_words(tmp_path: Path) -> None:
    """Method, figure, spread, number and delta; and what the client adds."""
    with serving(engine=ENGINE) as port:
        code, stdout, _ = run("cross-validate", "--url", f"http://127.0.0.1:{port}", *SHORT, out=tmp_path)
    assert code == 0
    for words in ("engine, its counters", "client, streamed", "client, whole reply", "reference", "TTFT, ms"):
        assert words in stdout
    assert "95 % interval" in " ".join(stdout.replace("\u202f", " ").split())


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_what_was_measured_outlives_an_interruption(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    """In the streamed run, whole answers are in the document already; it says that it did not end, or was interrupted."""
    slow = Settings(step_base_ns=4_000_000, prefill_base_ns=20_000_000, jitter=0)
    with serving(engine=slow) as port:
        process = start("cross-validate", "--url", f"http://127.0.0.1:{port}", *SHORT, "--json", out=tmp_path)
        assert interrupted(process, "3 streamed answers", sent) == code
    document = json.loads((only(tmp_path) / "cross-validation.json").read_text())
    jsonschema.validate(document, shipped("cross-validation"))
    assert document["interrupted"] == (sent == signal.SIGINT)
    assert (document["ended"] is None) == (sent == signal.SIGKILL)
    assert rows(document, "total_ms")["whole"]["n"] == 3
    assert (only(tmp_path) / document["runs"][-1] / "requests.parquet").is_file()


def test_another_engine_than_the_one_named_is_a_remark(tmp_path: Path) -> None:
    """Its figures would stand under the wrong name."""
    with serving(engine=ENGINE) as port:
        _, document = cross_validated(tmp_path, f"http://127.0.0.1:{port}", "--engine", "vllm")
    assert {"code": "other_engine", "facts": {"expected": "vllm", "found": "reference"}} in document[
        "remarks"
    ]


def test_a_result_is_printed_again_without_the_server(tmp_path: Path) -> None:
    """With its exit code, and as it stands in the file."""
    with serving(engine=ENGINE) as port:
        code, document = cross_validated(tmp_path, f"http://127.0.0.1:{port}")
    folder = str(only(tmp_path))
    assert finish("report", folder, "--json")[:2] == (code, json.dumps(document, ensure_ascii=False) + "\n")
    again, shown, _ = finish("report", folder)
    assert again == code
    assert "client, whole reply" in shown
    with Path("/dev/full").open("w") as full:
        command = [*COMMAND, "report", folder]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 71
    assert b"standard output: " in done.stderr
    written = only(tmp_path) / "cross-validation.json"
    written.write_text(written.read_text()[:-9])
    assert finish("report", folder)[0] == 2


def test_a_folder_without_a_result_names_the_runs_in_it(tmp_path: Path) -> None:
    """What a killed process leaves before its first document."""
    inner = tmp_path / "runs" / "one"
    inner.mkdir(parents=True)
    (inner / "plan.json").write_text("{}")
    code, _, err = finish("report", str(tmp_path))
    assert code == 2
    assert f"`inferometer recover` rebuilds each that was cut off: {inner}" in err
