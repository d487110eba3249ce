"""`inferometer bench` against the reference server, and against what is none."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from bench_command import ENGINE, SHORT, bench
from commands import finish, interrupted, only, run, start
from peers import Script, Seen, scripted, whole
from serving import serving
from shipped_schemas import shipped


@pytest.fixture
def address() -> Iterator[str]:
    with serving(engine=ENGINE) as port:
        yield f"http://127.0.0.1:{port}"


def test_engines_are_measured_with_runs_whose_records_lie_beside_the_result(
    address: str, tmp_path: Path
) -> None:
    """Each has a run folder with a record, its prompts, and samples with both TTFTs of one engine's answers."""
    _, document, _ = bench(tmp_path, reference=address, other=address)
    jsonschema.validate(document, shipped("bench"))
    folder = only(tmp_path)
    assert json.loads((folder / "bench.json").read_text()) == document
    assert [one["label"] for one in document["engines"]] == ["reference", "other"]
    for engine in document["engines"]:
        assert engine["ended"] == "measured"
        (record,) = engine["runs"]
        assert (folder / record / "requests.parquet").is_file()
        assert len(engine["samples"]) == 2
        for sample in engine["samples"]:
            assert sample["tokens_generated"] == 256
            assert sample["ttft_ms"] == sample["ttft_client_ms"] <= sample["total_duration_ms"]
            assert sample["ttft_source"] == sample["tok_per_sec_source"] == "client"
    assert {one["code"] for one in document["remarks"]} & {"same_engine", "same_address"} == {"same_engine"}


def test_an_engine_that_times_itself_has_its_own_and_the_clients_ttft(address: str, tmp_path: Path) -> None:
    """Over Ollama's interface: M2 and M5 by the server, and the parts within its total."""
    _, document, _ = bench(tmp_path, ollama=address)
    for sample in document["engines"][0]["samples"]:
        assert (sample["ttft_source"], sample["tok_per_sec_source"]) == ("server", "server")
        parts = sample["ttft_ms"] + sample["generation_duration_ms"] + sample["load_ms"]
        assert 0 < parts <= sample["total_duration_ms"] + 1e-6  # the rest is the wait in the queue
        assert sample["tok_per_sec"] == pytest.approx(256_000 / sample["generation_duration_ms"])
        assert sample["ttft_client_ms"] <= sample["total_client_ms"]


def test_context_fills_are_sized_by_the_engines_own_tokenizer(address: str, tmp_path: Path) -> None:
    """The result says by whose, and has its count; a tokenizer that is named comes first."""
    fills = ("--prompts", "none", "--contexts", "500", "--runs", "1")
    _, document, _ = bench(tmp_path / "a", *fills, here=address)
    (prompt,) = document["engines"][0]["prompts"]
    assert document["protocol"]["sized_by"].startswith("the /tokenize of here for ")
    assert prompt["sized_to"] == 500
    assert 470 <= prompt["sized_tokens"] <= 500
    assert prompt["sized_tokens"] <= prompt["prompt_tokens"] <= 564
    _, document, _ = bench(tmp_path / "b", *fills, "--tokenizer", "o200k_base", here=address)
    assert document["protocol"]["sized_by"] == "the tokenizer o200k_base"


def test_no_engine_on_a_port_is_named_and_the_other_is_measured(address: str, tmp_path: Path) -> None:
    """Exit code 5."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    code, document, _ = bench(tmp_path, gone=f"http://127.0.0.1:{port}", here=address)
    gone, here = document["engines"]
    assert code == 5
    assert (gone["ended"], here["ended"]) == ("failed", "measured")
    assert gone["remarks"][-1]["code"] == "unreachable"


def test_an_engine_that_hangs_in_warm_up_is_given_up_after_the_timeout(address: str, tmp_path: Path) -> None:
    """And the other is measured."""

    def answer(request: Seen) -> Script:
        if request.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        return Script((), "hang")

    with scripted(answer) as peer:
        stuck = f"http://127.0.0.1:{peer.port}"
        code, document, _ = bench(tmp_path, "--timeout", "2", stuck=stuck, here=address)
    assert code == 5
    assert [one["ended"] for one in document["engines"]] == ["failed", "measured"]
    assert document["engines"][0]["remarks"][-1]["code"] == "warm_up_hung"


def test_a_model_that_the_engine_lacks_is_named_with_those_it_has(tmp_path: Path) -> None:
    """Not measured under another model's name."""

    def answer(request: Seen) -> Script:
        if request.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"},{"id":"n"}]}'))
        return Script(whole(404, b'{"error":{"message":"no such model"}}'))

    with scripted(answer) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        _, document, _ = bench(tmp_path, "--model", "tiny", here=url)
        _, unnamed, _ = bench(tmp_path, here=url)
    found, unnamed_found = document["engines"][0]["remarks"][-1], unnamed["engines"][0]["remarks"][-1]
    assert (found["code"], found["facts"]["offered"]) == ("model_missing", "m, n")
    assert (unnamed_found["code"], unnamed_found["facts"]["offered"]) == ("model_open", "m, n")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
@pytest.mark.parametrize("served", [0, 1])
def test_advice_names_only_flags_that_the_command_has(status: int, served: int, tmp_path: Path) -> None:
    """Whatever a server refuses, the warm-up or the run's own probe: `bench` and `cross-validate` name flags of theirs."""
    from inferometer.cli import bench as of_bench
    from inferometer.cli import cross_validate as of_cross_validate

    sent = 0

    def answer(request: Seen) -> Script:
        nonlocal sent
        if request.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        sent += 1
        if sent <= served:
            message = b'{"role":"assistant","content":"Hi"},"finish_reason":"stop"}'
            return Script(whole(200, b'{"choices":[{"index":0,"message":' + message + b"]}"))
        return Script(whole(status, b'{"error":{"message":"no such field"}}'))

    for module, name, flag in ((of_bench, "bench", "a="), (of_cross_validate, "cross-validate", "")):
        sent = 0
        with scripted(answer) as peer:
            url = f"{flag}http://127.0.0.1:{peer.port}"
            _, stdout, stderr = run(name, "--url", url, "--runs", "1", "--json", out=tmp_path / name)
        assert str(status) in stdout
        flags = {flag for option in module.command.params for flag in option.opts}
        assert set(re.findall(r"--[a-z][a-z-]+", stdout + stderr)) <= flags


def test_an_engine_that_dies_in_its_turn_keeps_what_it_answered(tmp_path: Path) -> None:
    """The second generation of the run is refused; the first is a sample."""
    with serving("status:503=1,skip=4", engine=ENGINE) as port:  # two greetings, one count, one generation
        code, document, _ = bench(tmp_path, here=f"http://127.0.0.1:{port}")
    (engine,) = document["engines"]
    assert (code, engine["ended"]) == (5, "failed")
    assert [one["discarded"] for one in engine["samples"]] == [None, "failed"]


def test_what_answers_under_an_engines_name_is_checked(address: str, tmp_path: Path) -> None:
    """An engine is recognised by itself; another than the one named is a remark."""
    _, document, _ = bench(tmp_path, mine=address, vllm=address)
    mine, vllm = document["engines"]
    assert (mine["metadata"]["engine"], mine["metadata"]["runner"]) == ("reference", "simulated")
    assert mine["metadata"]["engine_version"]
    assert {"code": "other_engine", "facts": {"expected": "vllm", "found": "reference"}} in vllm["remarks"]


def test_the_reference_engine_is_started_for_the_benchmark(tmp_path: Path) -> None:
    """It ends with the benchmark, whose result has the memory of its process as an estimate."""
    code, stdout, stderr = run("bench", "--engines", "reference", *SHORT, "--json", out=tmp_path)
    (engine,) = json.loads(stdout)["engines"]
    assert engine["ended"] == "measured", stderr
    assert engine["metadata"]["engine"] == "reference"
    assert code in (0, 3, 4)


def test_several_models_are_compared_on_each_engine(tmp_path: Path) -> None:
    """An engine's label then names the model."""
    with serving(engine=ENGINE) as port:
        _, document, _ = bench(tmp_path, "--compare", "a", "--compare", "b", here=f"http://127.0.0.1:{port}")
    assert [one["label"] for one in document["engines"]] == ["here/a", "here/b"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engines", "llama"), "no engine 'llama'"),
        (("--url", "http://127.0.0.1:1"), "needs a name before the address"),
        (("--url", "a=http://127.0.0.1:1", "--url", "a=http://127.0.0.1:2"), "a name of its own"),
        (("--url", "a=ftp://127.0.0.1:1"), "--url"),
        (("--url", "a=http://127.0.0.1:1", "--model", "x", "--model", "y"), "several models"),
        (("--url", "a=http://127.0.0.1:1", "--model", "a=x", "--model", "a=y"), "two models"),
        (("--url", "a=http://127.0.0.1:1", "--model", "vllm=x"), "no engine vllm here: a"),
        (("--engines", "reference", "--model", "vllm=x"), "no engine vllm here: reference"),
        (("--url", "a=http://127.0.0.1:1", "--model", "a="), "names no model"),
        (("--url", "a=http://127.0.0.1:1", "--model", ""), "names no model"),
        (("--url", "a=http://127.0.0.1:1", "--compare", " "), "--compare: names no model"),
        (("--url", "a=http://127.0.0.1:1", "--api", "soap"), "--api"),
        (("--engines", "reference", "--timeout", "soon"), "--timeout"),
        (("--url", "a=http://127.0.0.1:1", "--long-tokens", "0"), "is for --agentic"),
        (("--url", "a=http://127.0.0.1:1", "--salt", ""), "is for --agentic"),
        (("--url", "a=http://127.0.0.1:1", "--prompts", "poem"), "no prompt 'poem'"),
        (("--url", "a=http://127.0.0.1:1", "--prompts", "none"), "nothing to measure"),
        *(
            (("--engines", "reference", flag, nothing), f"{flag}: {nothing!r} names no ")
            for flag in ("--engines", "--prompts", "--contexts")
            for nothing in ("", ",", " , ,")
        ),
        (("--engines", "reference", "--timeout", ""), "--timeout"),
        (("--engines", "reference", "--api-key-env", ""), "--api-key-env"),
        (("--url", "a=http://127.0.0.1:1", "--contexts", "many"), "no size"),
        (("--url", "a=http://127.0.0.1:1", "--timeout", "soon"), "--timeout"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_its_flag(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    """Before a folder is made."""
    code, _, stderr = run("bench", *arguments, out=tmp_path)
    assert code == 2
    assert words in stderr
    assert not list(tmp_path.iterdir())


def test_a_model_of_one_engine_goes_to_that_one_and_may_hold_an_equals_sign(tmp_path: Path) -> None:
    """Also where the engine is found and not named; what stands before the sign and is no engine belongs to the model."""
    from inferometer.cli.bench import _models

    assert _models(["vllm=m=1", "other=2"], [], ["vllm", "ollama"]) == ({"vllm": "m=1"}, "other=2")
    assert _models(["a=m", "x"], ["a", "b"], ["vllm"]) == ({"a": "m"}, "x")


def test_the_table_names_engines_prompts_order_and_remarks(address: str, tmp_path: Path) -> None:
    """For a person."""
    _, stdout, stderr = run("bench", "--url", f"a={address}", "--url", f"b={address}", *SHORT, out=tmp_path)
    for words in ("tokens/s", "tool-call", "By median tokens per second", "bench.html"):
        assert words in stdout
    assert "engine 2 of 2: b" in stderr


def test_the_reports_of_a_benchmark_are_written_and_written_again_the_same(
    address: str, tmp_path: Path
) -> None:
    """Beside bench.json, by `bench` and by `report`, whose exit code is that of the result."""
    code, document, _ = bench(tmp_path, reference=address, other=address)
    folder = only(tmp_path)
    first = {
        name: (folder / name).read_bytes() for name in ("bench.md", "bench.html", "card.svg", "card.png")
    }
    for name in first:
        (folder / name).unlink()
    again, stdout, _ = finish("report", str(folder), "--json")
    assert (again, json.loads(stdout)) == (code, document)
    assert {name: (folder / name).read_bytes() for name in first} == first


def test_answers_are_checked_on_request(address: str, tmp_path: Path) -> None:
    """Two names of one engine answer alike, and the table says so; without the option nothing is checked."""
    _, document, _ = bench(tmp_path, "--check-output", one=address, two=address)
    one, two = (engine["answers"][0] for engine in document["engines"])
    assert (one["against"], two["against"]) == (None, "one")
    assert (two["n"], two["loops"], two["early_stops"]) == (2, 0, 0)
    assert 0 <= two["overlap"] <= 1
    _, unchecked, _ = bench(tmp_path, one=address)
    assert unchecked["engines"][0]["answers"] == []


def test_the_table_has_a_column_of_answers(address: str, tmp_path: Path) -> None:
    """If they were checked."""
    urls = ("--url", f"one={address}", "--url", f"two={address}")
    _, stdout, _ = run("bench", *urls, *SHORT, "--check-output", "--quiet", out=tmp_path, COLUMNS="120")
    assert "answers" in stdout


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_what_was_measured_outlives_an_interruption(
    sent: signal.Signals, code: int, address: str, tmp_path: Path
) -> None:
    """In the second engine's turn, the first one's result is on disk, as one of a benchmark that is not whole and names who
    was not measured; only Ctrl-C leaves time for the result of the turn under way."""
    urls = [word for name in ("a", "b", "c") for word in ("--url", f"{name}={address}")]
    process = start("bench", *urls, *SHORT, "--json", out=tmp_path)
    assert interrupted(process, "engine 2 of 3: b", sent) == code
    document = json.loads((only(tmp_path) / "bench.json").read_text())
    jsonschema.validate(document, shipped("bench"))
    a, *others = document["engines"]
    assert (a["label"], a["ended"], len(a["samples"])) == ("a", "measured", 2)
    assert document["interrupted"]
    assert [one["ended"] for one in others] == (["interrupted"] if sent == signal.SIGINT else [])
    missing = [one["facts"]["engine"] for one in document["remarks"] if one["code"] == "not_measured"]
    assert missing == (["c"] if sent == signal.SIGINT else ["b", "c"])
    assert finish("report", str(only(tmp_path)))[0] == 130


def test_a_document_of_figures_that_cannot_be_is_damaged(tmp_path: Path) -> None:
    """Its squares are no numbers: a damaged file, and no bug."""
    from benches import usual

    from inferometer.documents.part import to_json

    text = to_json(usual())
    speed = json.loads(text)["engines"][0]["samples"][0]["tok_per_sec"]
    (tmp_path / "bench.json").write_text(text.replace(f'"tok_per_sec": {speed},', '"tok_per_sec": 1e300,', 1))
    code, _, err = finish("report", str(tmp_path))
    assert (code, "cannot be calculated with" in err) == (2, True)


@pytest.mark.parametrize("kind", ["bench", "agentic"])
def test_a_verdict_that_is_not_that_of_the_engines_is_damaged(kind: str, tmp_path: Path) -> None:
    """A report shows no status but the one that follows from its engines, and a benchmark without any is none."""
    from agentics import usual as agentic
    from benches import usual as bench

    from inferometer.documents.part import to_data

    path = tmp_path / f"{kind}.json"
    document = to_data(bench() if kind == "bench" else agentic())
    other = "INVALID" if document["status"] != "INVALID" else "VALID"
    changes: list[dict[str, object]] = [{"engines": []}, {"status": other}]
    for changed in changes:
        path.write_text(json.dumps(document | changed))
        code, _, err = finish("report", str(tmp_path))
        assert (code, "the file was changed" in err) == (2, True)
        assert list(tmp_path.iterdir()) == [path]
