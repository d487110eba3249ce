"""`inferometer simulate`: a plan in virtual time, through everything that a run goes through after the drive."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from commands import SMALL, finish, only, run, start
from rich.console import Console
from shipped_schemas import shipped
from simulating import Nobody, simulated, timeless

from inferometer.documents.part import to_data
from inferometer.errors import PlanError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import PULSE, RECORD
from inferometer.journal.seal import read_table
from inferometer.judge.judge import NOT_SIMULATED
from inferometer.measure.load import Span, Sweep
from inferometer.measure.record import Record
from inferometer.plan.parse import build
from inferometer.report.run.console import render_console
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

FLAGS: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "uniform(3,9)", "--seed": "5"}
OPEN = FLAGS | {"--rate": "40", "--requests": "120", "--warmup": "20"}


@pytest.fixture(scope="module")
def finding(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """An open loop of 120 requests."""
    return simulated(tmp_path_factory.mktemp("runs"), OPEN)


def test_two_simulations_of_one_plan_are_the_same(finding: RunResult, tmp_path: Path) -> None:
    """Bit for bit: the requests with their nonces, the record with its nanoseconds, and the summary but for ids and dates."""
    again = simulated(tmp_path, OPEN)
    assert timeless(again.summary) == timeless(finding.summary)
    one, other = (read_table(RunFolder(each.folder).record, RECORD) for each in (finding, again))
    assert one.equals(other)
    assert one.num_rows == 140
    asked = [Schedule(each.folder / "requests.arrow").table for each in (finding, again)]
    assert asked[0].equals(asked[1])


def test_another_seed_is_another_run(finding: RunResult, tmp_path: Path) -> None:
    """Prompts, nonces, arrivals and the engine's jitter all come from the plan's seed."""
    other = simulated(tmp_path, OPEN | {"--seed": "6"})
    salts = {json.loads((each.folder / "run.json").read_text())["salt"] for each in (finding, other)}
    assert len(salts) == 2
    assert other.summary.metrics.ttft_ms != finding.summary.metrics.ttft_ms


def test_the_settings_of_the_engine_are_carried_out_and_told(finding: RunResult, tmp_path: Path) -> None:
    """A slower prefill shows in TTFT; run.json and the declaration hold what was set."""
    slower = simulated(tmp_path, OPEN, "prefill_base=9ms")
    slow, plain = slower.summary.metrics.ttft_ms, finding.summary.metrics.ttft_ms
    assert slow is not None
    assert plain is not None
    assert slow.p50 > plain.p50 + 4
    engine = json.loads((slower.folder / "run.json").read_text())["engine"]
    assert (engine["preset"], engine["settings"]["prefill_base_ns"]) == ("tiny-cpu", 9_000_000)
    assert "prefill_base_ns 9000000" in str(slower.summary.sut.notes)


def test_every_report_says_simulated_and_no_compliance_is_claimed(finding: RunResult) -> None:
    """The data, the console, Markdown (also where its minimum report is copied alone) and HTML (also in the tab's title)."""
    summary = finding.summary
    jsonschema.validate(to_data(summary), shipped("summary"))
    assert summary.compliance is not None
    assert summary.run.simulated is True
    assert summary.compliance.label == "not a measurement"
    assert (summary.sut.url, summary.sut.protocol) == (None, "none: simulated")
    screen = io.StringIO()
    render_console(summary, Console(file=screen, width=80), None)
    assert "*   SIMULATED   *" in screen.getvalue()
    markdown = (finding.folder / "report.md").read_text()
    assert markdown.startswith("# SIMULATED\n")
    assert "(Minimum) ===\nSIMULATED: " in markdown
    html = (finding.folder / "report.html").read_text()
    assert '<p class="word">SIMULATED</p>' in html
    assert "<title>SIMULATED, " in html
    assert "no compliance is claimed" in (markdown + html).lower()


def test_what_is_about_the_instrument_does_not_apply(finding: RunResult) -> None:
    """No lateness, no lag, no CPU, no clock, no certificate: n/a and null, never a perfect 0."""
    checks = {check.code: check.status for check in finding.summary.verdict.checks}
    assert {code for code in NOT_SIMULATED if checks[code] != "na"} == set()
    assert checks["arrival_rate"] == checks["stationary"] == checks["prompt_length"] == "pass"
    instrument = finding.summary.instrument
    assert instrument.timestamp_source == "virtual"
    assert instrument.cpu_fraction == (None,)
    assert all(
        one is None for one in (instrument.receive_lag_ms, instrument.stall_max_ms, instrument.calibration)
    )
    assert finding.summary.load.lateness_ms is not None
    assert finding.summary.load.lateness_ms.max == 0


def test_little_holds_of_a_simulated_record(finding: RunResult) -> None:
    """L = lambda W, with L from the measured sweep, lambda and W from the requests."""
    record = Record.from_tables(
        read_table(RunFolder(finding.folder).record, RECORD),
        read_table(RunFolder(finding.folder).pulse, PULSE),
        timestamp_source="virtual",
    )
    times = (record.t_end - record.t_send.values)[record.measured] / 1e9
    span = Span(int(record.t_send.values[record.measured].min()), int(record.t_end[record.measured].max()))
    assert Sweep(record).mean(span) == pytest.approx(len(times) / span.seconds * np.mean(times))


def test_a_simulation_sends_what_a_run_sends(finding: RunResult, tmp_path: Path) -> None:
    """The same plan on the embedded server: the same words, lengths, warm-up and instants, and as many tokens back."""
    flags = [word for flag, value in OPEN.items() for word in (flag, str(value))]
    _, stdout, _ = run("run", *flags, "--json", out=tmp_path)
    facts = [json.loads((each / "run.json").read_text()) for each in (finding.folder, only(tmp_path))]
    assert facts[0]["fingerprint"] == facts[1]["fingerprint"]
    asked = [Schedule(each / "requests.arrow").table for each in (finding.folder, only(tmp_path))]
    names = ["phase", "due_ns", "input_tokens_sent", "output_tokens_asked", "nonce_len"]
    assert asked[0].select(names).equals(asked[1].select(names))
    records = [
        read_table(RunFolder(each).record, RECORD).sort_by("index")
        for each in (finding.folder, only(tmp_path))
    ]
    same = [
        "index",
        "phase",
        "event_class",
        "outcome",
        "finish_reason",
        "usage_input",
        "usage_output",
        "status",
    ]
    assert records[0].select(same).equals(records[1].select(same))
    assert json.loads(stdout)["run"]["simulated"] is False


def test_reports_of_a_simulation_can_be_made_again(finding: RunResult) -> None:
    """`report` and `recover` read its folder like any other and know what it is."""
    before = (finding.folder / "summary.json").read_bytes()
    for command in ("report", "recover"):
        code, stdout, _ = finish(command, str(finding.folder))
        assert code == finding.exit_code
        assert "SIMULATED" in stdout
        assert (finding.folder / "summary.json").read_bytes() == before


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("stream", [True, False])
def test_the_command_simulates_every_kind_of_request(api: str, stream: bool, tmp_path: Path) -> None:
    """In closed loop, through the command line: all succeed, at the lengths asked for, and too few are INCONCLUSIVE."""
    flags = [
        "--api",
        api,
        *([] if stream else ["--no-stream"]),
        "--concurrency",
        "4",
        "--requests",
        "30",
        *SMALL,
    ]
    code, stdout, _ = run("simulate", *flags, "--json", out=tmp_path)
    summary = json.loads(stdout)
    assert code == 4
    assert summary["requests"]["completed"] == 30
    assert summary["tokens"]["prompt"]["misses"] == summary["tokens"]["output"]["misses"] == 0
    statuses = {check["code"]: check["status"] for check in summary["verdict"]["checks"]}
    assert "fail" not in statuses.values()
    assert stream == (statuses["tokens_per_event"] == "pass")


@pytest.mark.parametrize("command", [("simulate",), ("test", "ttft", "--simulate")])
@pytest.mark.parametrize(
    "flags",
    [("--host-telemetry",), ("--host-telemetry-interval", "2"), ("--power", "rapl", "--power", "command:x")],
)
def test_readings_of_this_machine_are_refused(
    command: tuple[str, ...], flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Law: a flag that a simulation cannot follow is refused by name, before anything is made."""
    code, stdout, stderr = run(*command, *flags, out=tmp_path)
    assert (code, stdout) == (2, "")
    assert f"{flags[0]}: reads this machine" in stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("simulate",), ("test", "ttft", "--simulate")])
def test_a_network_that_is_not_there_is_not_subtracted(command: tuple[str, ...], tmp_path: Path) -> None:
    """Refused by name as a flag; a plan file, which is shared with runs, may ask for it."""
    code, stdout, stderr = run(*command, "--subtract-rtt", out=tmp_path)
    assert (code, stdout) == (2, "")
    assert "--subtract-rtt: is about the way to a server, and a simulation has no network" in stderr
    plan = tmp_path / "plan.yaml"
    plan.write_text("load: {concurrency: 2, requests: 5, warmup: 0}\ninstrument: {subtract_rtt: true}\n")
    code, stdout, _ = run("simulate", str(plan), "--json", out=tmp_path / "runs")
    summary = json.loads(stdout)
    assert (code, summary["round_trips"], summary["ttft_less_round_trip"]) == (4, None, None)


def test_what_a_plan_says_of_a_server_is_left_aside(tmp_path: Path) -> None:
    """Nothing is asked at the URL, no key or meter is read, and what was declared of that server is not said of the model."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "target: {url: 'https://127.0.0.1:1', model: big, api_key_env: NOT_SET, tls_verify: false}\n"
        "load: {concurrency: 2, requests: 5, warmup: 0}\nsut: {accelerator: H100}\nworkload: {output_tokens: 3}\n"
        "host_telemetry: {power: ['command:no-such-meter']}\n"
    )
    code, stdout, stderr = run("simulate", str(plan), "--json", out=tmp_path / "runs")
    summary = json.loads(stdout)
    assert (code, summary["sut"]["model"], summary["sut"]["url"]) == (4, "big", None)
    assert summary["sut"]["accelerator"] == "simulated"
    assert "virtual time" in stderr


def test_prompts_beyond_the_context_are_refused_as_the_server_refuses_them(tmp_path: Path) -> None:
    """To the token, template included: one more than a server with this cache takes is an error of the plan, and no folder."""
    flags = {"--requests": "3", "--concurrency": "1", "--warmup": "1", "--output-tokens": "3"}
    settings = ["kv_blocks=10", "block_tokens=16"]
    fits = simulate(
        build(None, flags | {"--input-tokens": "150"}), choose(None, settings), tmp_path / "fits", Nobody()
    )
    assert fits.summary.requests.completed == 3
    with pytest.raises(
        PlanError, match=r"warm-up request 1 is 151 tokens.* 7 of the chat template.*takes 160 in all"
    ):
        simulate(
            build(None, flags | {"--input-tokens": "151"}),
            choose(None, settings),
            tmp_path / "none",
            Nobody(),
        )
    assert list((tmp_path / "none").iterdir()) == []


def test_a_chat_that_is_too_long_by_its_second_template_is_refused_by_the_server(tmp_path: Path) -> None:
    """What nobody can know beforehand: each is an http_4xx with the server's words, and a loop that ends by time does end."""
    path = tmp_path / "own.jsonl"
    path.write_text('{"system": "Be brief.", "prompt": "Why is the sky blue today?", "output_tokens": 3}\n')
    flags = {"--prompts": str(path), "--duration": "20ms", "--concurrency": "1", "--warmup": "0"}
    plan = build(None, flags)
    small = plan.model_copy(update={"load": plan.load.model_copy(update={"requests": 3})})
    finding = simulate(small, choose(None, ["kv_blocks=28", "block_tokens=1"]), tmp_path, Nobody())
    assert finding.exit_code == 5
    assert finding.summary.requests.by_error == {"http_4xx": 3}
    details = read_table(RunFolder(finding.folder).record, RECORD).column("detail").to_pylist()
    assert all("exceed the model's context" in detail for detail in details)


def test_ctrl_c_saves_and_reports_what_was_simulated(tmp_path: Path) -> None:
    """SIGINT ends a week of virtual time: what ended until then is sealed and reported, exit 130."""
    process = start("simulate", "--duration", "168h", "--concurrency", "8", *SMALL, "--json", out=tmp_path)
    for _ in range(1200):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        if any(path.stat().st_size > 100_000 for path in tmp_path.glob("*/journal/worker-0.arrows")):
            break
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    summary = json.loads(stdout)
    assert summary["run"]["interrupted"]
    assert summary["requests"]["completed"] > 100


@pytest.mark.parametrize("wrong", [["--preset", "none"], ["--set", "speed=3"], ["--set", "max_batch=0"]])
def test_an_engine_that_is_none_is_refused_before_anything_is_made(wrong: list[str], tmp_path: Path) -> None:
    """Exit 2, the flag named, no folder."""
    code, stdout, stderr = run("simulate", *wrong, out=tmp_path)
    assert (code, stdout) == (2, "")
    assert wrong[0] in stderr
    assert list(tmp_path.iterdir()) == []
