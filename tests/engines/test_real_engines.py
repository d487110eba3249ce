"""The whole command against real engines: what it says of them, against what they are known to do.

Every run is the installed program in a process of its own. What is proved is counting: who was asked, who answered, how many
tokens went in and came out. Speed is not: engine and instrument share a few cores here, so the checks that guard
timing may fail, and nothing else may (`explained`).

The requests carry prompts of 20 to 60 tokens and ask for 8 to 24; the tiny model never ends an answer by itself, unless its
end-of-sequence token is favoured (`FAVOUR_THE_END`).
"""

from __future__ import annotations

import importlib.resources
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from inferometer.documents.schemas.__main__ import generated
from inferometer.journal.schema import EventClass, Phase
from scripts.engines.launch import RunningEngine

PROGRAM = str(Path(sys.executable).with_name("inferometer"))
PATIENCE = 120.0  # seconds any command may take
REQUESTS, WARMUP, CONCURRENCY = 24, 4, 4
LENGTHS = ("--input-tokens", "uniform(20,60)", "--output-tokens", "uniform(8,24)")
LOAD = ("--requests", str(REQUESTS), "--warmup", str(WARMUP), *LENGTHS)
CLOSED = (*LOAD, "--concurrency", str(CONCURRENCY))
FAVOUR_THE_END = ("--extra-body", '{"logit_bias": {"2": 7}}')

TAKES_IDS = {"mlx": "text", "llamacpp": "ids", "vllm": "ids"}
"""The form in which completions prompts go out when the plan leaves it open."""

SHARED_CORES = frozenset(
    {"lateness", "concurrency_held", "receive_lag", "worker_cpu", "streamed", "error_bound"}
)
"""What engine and client do to each other on two cores; a hurried vLLM writes a short answer in one event."""
NONCE_TOKENS = 9
"""A prompt of text begins with nine digits, each a token at most, and no two prompts with the same nine."""
BLOCK = 128
"""Tokens in a block of vLLM's prefix cache on a CPU."""


@dataclass
class Run:
    """One command that ended: exit code, what it said, the summary on stdout and the rows of its record."""

    code: int
    errors: str
    summary: dict[str, Any]
    folder: Path
    rows: list[dict[str, Any]]

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The rows of the measurement, without the warm-up's."""
        return [row for row in self.rows if row["phase"] == Phase.MEASURE]

    def check(self, code: str) -> dict[str, Any]:
        """One check of the verdict."""
        [found] = [check for check in self.summary["verdict"]["checks"] if check["code"] == code]
        return dict(found)

    @property
    def failing(self) -> set[str]:
        """Codes of the checks that failed."""
        return {check["code"] for check in self.summary["verdict"]["checks"] if check["status"] == "fail"}


def command(engine: RunningEngine, out: Path, *flags: str, model: str | None = None) -> list[str]:
    target = ("--url", engine.url, "--model", model or engine.model, "--tokenizer", str(engine.tokenizer_dir))
    return [PROGRAM, "run", *target, *flags, "--json", "--out", str(out)]


def run(engine: RunningEngine, out: Path, *flags: str) -> Run:
    """Run the program to its end, and hold the result to what is true of any run."""
    done = subprocess.run(
        command(engine, out, *flags), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return understood(done.returncode, done.stdout, done.stderr, out)


def understood(code: int, said: str, errors: str, out: Path) -> Run:
    """Exit code and verdict agree; the summary keeps its schema and is the one on disk; the reports and the record exist."""
    assert "Traceback" not in errors
    assert code in (0, 3, 4, 5, 130), errors
    summary = json.loads(said)
    schema = (
        importlib.resources.files("inferometer.documents.schemas")
        .joinpath("summary.schema.json")
        .read_text("utf-8")
    )
    jsonschema.Draft202012Validator(json.loads(schema)).validate(summary)
    folder = out / summary["run"]["id"]
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8")) == summary
    for name in ("report.md", "report.html", "plan.json"):
        assert (folder / name).stat().st_size > 0
    rows = pq.read_table(folder / "requests.parquet").to_pylist()
    return Run(code, errors, summary, folder, rows)


def explained(found: Run) -> None:
    """Only these may fail: what sharing cores does to timing, and three whose reason is looked up in the record.

    token_counts  broken characters in the text, which is then not read back as the tokens it was written in; events alone
                  do not outweigh that where answers are whole, or several tokens came in one event of a hurried engine
    cache_hits    nothing was found in a cache beyond the chat template and the digits two nonces have in common, which are
                  more than a twentieth of so short a prompt
    error_rate    answers without a visible character, all of whose tokens the server counted (`nothing_lost`)
    """
    allowed = set(SHARED_CORES)
    if any("\ufffd" in (row["text"] or "") for row in found.measured):
        allowed.add("token_counts")
    if all(
        row["usage_cached"] <= row["usage_input"] - row["input_tokens_sent"] + NONCE_TOKENS
        for row in found.measured
    ):
        allowed.add("cache_hits")
    if any(row["outcome"] == "empty" for row in found.measured):
        allowed.add("error_rate")
    assert found.failing <= allowed, [found.check(code) for code in found.failing - allowed]
    assert (found.code == 3) == bool(found.failing)


def nothing_lost(found: Run) -> None:
    """Every request of the plan was sent once, ended once, and was answered.

    A model of random weights writes blanks and halves of characters too: about one answer in a thousand shows nothing and
    counts as `empty`, though every token of it was made.
    """
    counted = found.summary["requests"]
    empty = sum(row["outcome"] == "empty" for row in found.measured)
    assert (counted["sent"], counted["completed"], counted["failed"]) == (REQUESTS, REQUESTS - empty, empty)
    assert empty <= 2
    planned = [
        row for row in found.rows if row["phase"] != Phase.LEAD
    ]  # which leads a closed loop in and out
    indexes = sorted(row["index"] for row in found.measured)
    assert indexes == list(range(indexes[0], indexes[0] + REQUESTS))
    assert len(planned) == WARMUP + REQUESTS
    for row in planned:
        assert row["outcome"] in ("ok", "empty"), row["detail"]
        assert row["usage_output"] == row["output_tokens_asked"]


def template_tokens(engine: RunningEngine) -> int:
    """Tokens the chat template adds to a message, by the tokenizer's own library."""
    tokenizer = Tokenizer.from_file(str(engine.tokenizer_dir / "tokenizer.json"))
    settings = json.loads((engine.tokenizer_dir / "tokenizer_config.json").read_text(encoding="utf-8"))
    render = jinja2.Template(settings["chat_template"]).render
    chat = render(messages=[{"role": "user", "content": "a"}], add_generation_prompt=True)
    return len(tokenizer.encode(chat).ids) - len(tokenizer.encode("a").ids)


def lengths_as_asked(found: Run, overhead: int) -> None:
    """The server counts each prompt and each answer exactly as long as asked; what is sent leaves room for its template."""
    for row in found.measured:
        assert row["input_tokens_sent"] + overhead == row["input_tokens_asked"]
        assert row["usage_input"] == row["input_tokens_asked"]
        assert row["usage_output"] == row["output_tokens_asked"]
        assert row["finish_reason"] == "length"
        assert 0 <= row["usage_cached"] <= row["usage_input"]
    assert found.check("prompt_length")["status"] == "pass"
    lengths = found.check("output_length")
    assert lengths["facts"]["misses"] == 0
    # A model of random weights may produce control characters: then the text cannot show as many tokens as were counted.
    assert lengths["status"] == "pass" or lengths["facts"]["judged_by"] == "text"
    assert found.summary["tokens"]["count_source"] == "server usage"


def kinds(row: dict[str, Any]) -> list[str]:
    return [EventClass(kind).name.lower() for kind in row["event_class"]]


def events_in_order(found: Run, *, streamed: bool) -> None:
    """Events come in the order of their times, never more with text than tokens, the first of them singled out."""
    for row in (row for row in found.measured if row["outcome"] == "ok"):
        assert row["event_ns"] == sorted(row["event_ns"])
        assert row["t_first_byte"] <= row["event_ns"][0]
        assert row["event_ns"][-1] <= row["t_end"]
        texts = [at for at, kind in enumerate(kinds(row)) if kind == "content"]
        assert row["first_text"] == texts[0]
        assert len(texts) <= row["usage_output"]
        assert len(texts) == 1 or streamed
        assert (kinds(row)[-1] == "done") == streamed


def connections(found: Run, *, streamed: bool) -> None:
    """Fresh connections as each engine makes us open them: mlx-lm for all, llama.cpp after a stream, vLLM for none; and
    none is sent twice."""
    fresh = sum(row["t_connect"] is not None for row in found.measured)
    name = found.summary["run"]["name"]
    if name == "mlx" or (name == "llamacpp" and streamed):
        assert fresh == REQUESTS
    else:
        assert fresh <= CONCURRENCY
    assert {row["attempts"] for row in found.measured} == {1}
    learned = found.check("stale_connections")["facts"].get("kept") == "single_use"
    assert learned == (name == "llamacpp" and streamed), (
        "closed without announcing it, and seen in the warm-up"
    )


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_every_request_is_answered_and_counted(
    engine: RunningEngine, api: str, streamed: bool, tmp_path: Path
) -> None:
    """Closed loop, both interfaces, streamed and whole: none lost, lengths as asked, counts taken from the server."""
    form = () if streamed else ("--no-stream",)
    found = run(engine, tmp_path, *CLOSED, "--api", api, "--name", engine.name, *form)
    nothing_lost(found)
    lengths_as_asked(found, template_tokens(engine) if api == "chat" else 0)
    events_in_order(found, streamed=streamed)
    connections(found, streamed=streamed)
    facts = json.loads((found.folder / "run.json").read_text(encoding="utf-8"))
    assert facts["prompt_format"] == (TAKES_IDS[engine.name] if api == "completions" else "text")
    explained(found)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", ["responses", "anthropic"])
def test_vllm_is_counted_alike_over_its_other_interfaces(
    vllm: RunningEngine, api: str, streamed: bool, tmp_path: Path
) -> None:
    """As over chat: all is sent, answered and counted, and lengths are those asked for."""
    stream = () if streamed else ("--no-stream",)
    found = run(vllm, tmp_path, "--api", api, *stream, *CLOSED)
    nothing_lost(found)
    lengths_as_asked(found, template_tokens(vllm))
    events_in_order(found, streamed=streamed)
    explained(found)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_vllm_is_counted_alike_over_grpc(vllm_grpc: RunningEngine, streamed: bool, tmp_path: Path) -> None:
    """As over completions, by token ids in and out: all is sent, answered and counted."""
    stream = () if streamed else ("--no-stream",)
    found = run(vllm_grpc, tmp_path, "--api", "vllm-grpc", *stream, *CLOSED)
    nothing_lost(found)
    assert [row["usage_input"] for row in found.measured] == [
        row["input_tokens_sent"] for row in found.measured
    ]
    assert [row["usage_output"] for row in found.measured] == [
        row["output_tokens_asked"] for row in found.measured
    ]
    facts = json.loads((found.folder / "run.json").read_text(encoding="utf-8"))
    assert facts["prompt_format"] == "ids"
    assert found.summary["sut"]["protocol"].startswith("gRPC over HTTP/2, uncompressed")
    assert found.failing <= SHARED_CORES


def test_the_engines_own_counters_are_what_the_client_was_told(engine: RunningEngine, tmp_path: Path) -> None:
    """Prompt and output tokens, warm-up, lead-in, lead-out and cached ones included; mlx-lm shows no metrics, and nothing is
    made up."""
    found = run(engine, tmp_path, *CLOSED)
    told = found.summary["server"]
    if engine.name == "mlx":
        assert told is None
        assert {found.check(f"server_{name}")["status"] for name in ("tokens", "ttft", "queue")} == {"na"}
        return
    assert (told["engine"], told["seen"]) == ({"vllm": "vLLM", "llamacpp": "llama.cpp"}[engine.name], True)
    for name, column in (("prompt_tokens", "usage_input"), ("generation_tokens", "usage_output")):
        assert told["whole"][name]["server"] == sum(row[column] for row in found.rows)
    assert found.check("server_tokens")["status"] == "pass"
    assert told["whole"]["server_n"] == (len(found.rows) if engine.name == "vllm" else 0)


def test_the_engines_own_tokenizer_makes_prompts_as_long_as_asked(
    engine: RunningEngine, tmp_path: Path
) -> None:
    """Where there is a /tokenize: prompts and answers are counted by it. mlx-lm has none, and is refused in words."""
    if engine.name == "mlx":
        words = command(engine, tmp_path, *CLOSED, "--tokenizer", "server")
        refused = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert refused.returncode == 2
        assert "does not answer /tokenize" in refused.stderr
        return
    found = run(engine, tmp_path, *CLOSED, "--tokenizer", "server")
    nothing_lost(found)
    lengths_as_asked(found, template_tokens(engine))
    assert found.summary["tokens"]["tokenizer"]["kind"] == "server"
    assert found.summary["tokens"]["output"]["local_mean"] is not None


def test_without_a_tokenizer_lengths_and_tokens_are_the_engines_own(
    engine: RunningEngine, tmp_path: Path
) -> None:
    """What everybody types first: prompts and answers as long as asked by the engine's count, each where it has a /tokenize,
    and in the mean on mlx-lm, which has none."""
    words = [PROGRAM, "run", "--url", engine.url, "--model", engine.model, "--json", "--out", str(tmp_path)]
    load = ("--requests", "48", "--warmup", "4", "--input-tokens", "400", "--output-tokens", "10")
    done = subprocess.run([*words, *load], capture_output=True, text=True, timeout=PATIENCE, check=False)
    found = understood(done.returncode, done.stdout, done.stderr, tmp_path)
    tokens, counts = found.summary["tokens"], [row["usage_input"] for row in found.measured]
    assert tokens["tokenizer"]["kind"] == ("learned" if engine.name == "mlx" else "server")
    assert tokens["count_source"] == "server usage"
    assert sum(counts) / len(counts) == pytest.approx(400, rel=0.03 if engine.name == "mlx" else 0.002)
    assert found.check("prompt_length")["status"] in ("pass", "unsure" if engine.name == "mlx" else "pass")
    assert {row["usage_output"] for row in found.measured} == {10}
    assert found.summary["metrics"]["output_tokens"]["mean"] == 10


def test_an_open_loop_offers_every_request_at_its_instant(engine: RunningEngine, tmp_path: Path) -> None:
    """The instants on record are those of the schedule, to the nanosecond, whatever the engine did meanwhile."""
    found = run(engine, tmp_path, *LOAD, "--rate", "30", "--seed", "7")
    nothing_lost(found)
    lengths_as_asked(found, template_tokens(engine))
    schedule = scheduled(found.folder)
    assert {row["t_intended"] - schedule[row["index"]] for row in found.measured} == {
        found.measured[0]["t_intended"] - schedule[found.measured[0]["index"]]
    }
    explained(found)


def scheduled(folder: Path) -> dict[int, int]:
    """Due offsets of the schedule by index, in ns."""
    with pa.OSFile(str(folder / "requests.arrow")) as source:
        table = pa.ipc.open_file(source).read_all()
    return dict(zip(table.column("index").to_pylist(), table.column("due_ns").to_pylist(), strict=True))


@pytest.mark.parametrize("form", ["ids", "text"])
def test_completions_take_prompts_as_ids_and_as_text(
    engine: RunningEngine, form: str, tmp_path: Path
) -> None:
    """Both forms arrive at the length asked for; an engine that takes no ids is a fault of the plan, said before anything."""
    flags = (*CLOSED, "--api", "completions", "--prompt-format", form)
    if TAKES_IDS[engine.name] == "text" and form == "ids":
        done = refused(engine, tmp_path, *flags)
        assert done.returncode == 2
        assert "--prompt-format" in done.stderr
        return
    found = run(engine, tmp_path, *flags)
    nothing_lost(found)
    lengths_as_asked(found, 0)
    explained(found)


def refused(
    engine: RunningEngine, out: Path, *flags: str, model: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command that must end before it measures: no traceback, nothing on stdout, no run folder left."""
    done = subprocess.run(
        command(engine, out, *flags, model=model),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert not done.stdout
    assert not any(out.iterdir())
    return done


def test_an_engine_that_heeds_no_ignore_eos_is_found_out(engine: RunningEngine, tmp_path: Path) -> None:
    """With the end made likely, mlx-lm stops short and the verdict says so; vLLM and llama.cpp go on to the length asked.

    Most of vLLM's tokens are then ends of text, which nobody sees: its word for their number is not enough.
    """
    found = run(engine, tmp_path, *CLOSED, *FAVOUR_THE_END)
    rows = found.measured
    if engine.name == "mlx":
        assert any(row["usage_output"] < row["output_tokens_asked"] for row in rows)
        assert found.check("output_length")["status"] == "fail"
        assert found.code in (3, 5)
    else:
        assert all(row["usage_output"] == row["output_tokens_asked"] for row in rows)
        lengths = found.check("output_length")
        assert lengths["status"] == "unsure" or (engine.name, lengths["status"]) == ("llamacpp", "pass")
        assert lengths["status"] == "pass" or lengths["facts"]["judged_by"] == "text"


@pytest.mark.parametrize(
    ("name", "words"), [("vllm", "The model `absent` does not exist"), ("mlx", "cached snapshot folder")]
)
def test_a_model_the_engine_does_not_have_ends_with_its_own_words(
    name: str, words: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Exit 5 before anything is measured, with the server's status and message."""
    done = refused(request.getfixturevalue(name), tmp_path, *CLOSED, model="absent")
    assert done.returncode == 5
    assert "404" in done.stderr
    assert words in done.stderr


def test_a_model_name_llamacpp_does_not_know_is_served_and_on_record(
    llamacpp: RunningEngine, tmp_path: Path
) -> None:
    """It answers for any name: the run succeeds, and the record holds the name asked for and the names offered."""
    done = subprocess.run(
        command(llamacpp, tmp_path, *CLOSED, model="absent"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    found = understood(done.returncode, done.stdout, done.stderr, tmp_path)
    nothing_lost(found)
    facts = json.loads((found.folder / "run.json").read_text(encoding="utf-8"))
    assert (facts["model"], facts["models"]) == ("absent", ["tiny"])


@pytest.mark.parametrize(
    ("name", "to"), [("mlx", "process"), ("mlx", "group"), ("llamacpp", "group"), ("vllm", "process")]
)
def test_ctrl_c_in_mid_run_keeps_what_was_measured(
    name: str, to: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """SIGINT, to the program or as a terminal sends it: exit 130 once the answers in flight are in, and a record that reads.

    Neither the time left of the plan nor the time allowed for draining is waited out: both are longer than PATIENCE.
    """
    flags = ("--duration", "10m", "--drain", "10m", "--warmup", "0", "--concurrency", "2")
    lengths = ("--input-tokens", "30", "--output-tokens", "16")
    tell: Callable[[int, int], None] = os.killpg if to == "group" else os.kill
    with subprocess.Popen(
        command(request.getfixturevalue(name), tmp_path, *flags, *lengths),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=0,
        start_new_session=True,
    ) as process:
        try:
            progress = line_with(process, "measuring ")
            tell(process.pid, signal.SIGINT)
            said, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    found = understood(process.returncode, said, progress + errors, tmp_path)
    assert found.code == 130
    assert found.summary["run"]["interrupted"] is True
    assert found.check("interrupted")["status"] == "unsure"
    assert len(found.measured) == found.summary["requests"]["sent"] > 0
    assert {row["outcome"] for row in found.rows} <= {"ok", "empty", "cancelled"}
    again = subprocess.run(
        [PROGRAM, "report", str(found.folder), "--json"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert json.loads(again.stdout) == found.summary


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """What the program says on stderr up to the line that holds `words`."""
    assert process.stderr is not None
    said = ""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while words not in said or not said.endswith("\n"):
            assert selector.select(PATIENCE), f"nothing said for {PATIENCE} s; before that: {said}"
            data = os.read(process.stderr.fileno(), 65536)
            assert data, f"ended too early: {said}"
            said += data.decode()
    return said


def test_prompts_repeated_by_wish_hit_the_prefix_cache_and_others_do_not(
    vllm: RunningEngine, tmp_path: Path
) -> None:
    """vLLM reports whole blocks of cached tokens: none where prompts are new, most of them when a run is repeated."""
    long = (*CLOSED, "--input-tokens", "uniform(200,300)", "--seed", "11")
    fresh = run(vllm, tmp_path, *long)
    assert {row["usage_cached"] for row in fresh.rows} == {0}
    assert fresh.check("cache_hits")["status"] == "pass"
    explained(fresh)
    run(vllm, tmp_path, *long, "--repeatable-prompts")
    second = run(vllm, tmp_path, *long, "--repeatable-prompts")
    for row in second.measured:
        assert row["usage_cached"] == (row["usage_input"] - 1) // BLOCK * BLOCK
    assert second.check("cache_hits")["value"] > 0.5
    assert second.check("cache_hits")["status"] != "fail"
    explained(second)


def test_an_engine_like_vllm_is_found_from_a_run_of_it(vllm: RunningEngine, tmp_path: Path) -> None:
    """`simulate --fit` reads vLLM's iterations off its tokens. Where it cannot, the run itself says its client was late."""
    varied = (
        "--input-tokens",
        "uniform(20,600)",
        "--output-tokens",
        "uniform(20,60)",
        "--api",
        "completions",
    )
    found = run(vllm, tmp_path, "--requests", "60", "--warmup", "4", "--concurrency", "4", *varied)
    fit = subprocess.run(
        [
            PROGRAM,
            "simulate",
            "--fit",
            str(found.folder),
            "--trust",
            "--json",
            "--out",
            str(tmp_path / "fit"),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if fit.returncode == 2:
        assert "client could not follow" in " ".join(fit.stderr.split())
        assert found.check("receive_lag")["status"] == "fail"
        return
    assert fit.returncode == 4, fit.stderr  # the simulation has 60 requests too: too few for a P99
    document = json.loads(fit.stdout)
    jsonschema.Draft202012Validator(json.loads(generated("fit"))).validate(document)
    costs = {one["key"]: one["value"] for one in document["parameters"]}
    assert costs["step_base"] > 100_000
    assert max(costs["prefill_base"], costs["prefill_per_token"]) > 0
    assert all(row["simulated"] for row in document["comparison"])
