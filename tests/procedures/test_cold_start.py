"""Draft 4.5.3: starts of an engine whose loading is a setting, in virtual time, as a process, and as somebody else's server."""

from __future__ import annotations

import json
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from procedures.driving import Failing, Ran, Silent, carried_out
from procedures.scripted import played
from procedures.summaries import stats, summary

from inferometer.calibration.certificate import NO_CERTIFICATE
from inferometer.errors import CannotSwitch
from inferometer.plan import procedure_parameters
from inferometer.plan.campaign import EngineChoice
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.plan.switching import Switching
from inferometer.procedures.cold_start import results, steps
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Run, Step, Switch, Switched
from inferometer.run.conduct import conduct
from inferometer.server.embedded import Embedded
from inferometer.server.engine.settings import Settings
from inferometer.studies.stand import Live

LOAD_MS, COLD_MS, STEP_MS, PREFILL_MS = 2_500.0, 40.0, 4.0, 6.0
ENGINE = Settings(
    jitter=0.0,
    step_base_ns=STEP_MS * 1e6,
    step_per_request_ns=0,
    prefill_base_ns=PREFILL_MS * 1e6,
    prefill_per_token_ns=0,
    load_ns=LOAD_MS * 1e6,
    cold_steps=3,
    cold_factor=COLD_MS / (STEP_MS + PREFILL_MS),
)
"""A prompt takes 10 ms, whatever its length, and as one of the first three iterations 40 ms."""


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The default number of starts."""
    return carried_out(tmp_path_factory.mktemp("cold"), "cold-start", engine=ENGINE)


def test_load_time_and_cold_start_latency_are_the_engines(virtual: Ran) -> None:
    """Of each of six starts: `load` and `cold_factor` as set; the second request meets the same engine, warm."""
    rows = virtual.rows("cold-start", "starts")
    assert [row["n"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        assert row["load_s"] == LOAD_MS / 1e3
        assert row["cold_ms"] == pytest.approx(COLD_MS)
        assert row["warm_ms"] == pytest.approx(STEP_MS + PREFILL_MS)
    assert virtual.value("cold-start", "load_time") == LOAD_MS / 1e3
    assert virtual.value("cold-start", "cold_start_latency") == pytest.approx(COLD_MS)


def test_a_simulated_engine_without_a_load_has_no_load_time(tmp_path: Path) -> None:
    """Nothing was loaded, in 0 s: that is no measurement. A setting is called one."""
    at_once = Settings(**{**_values(ENGINE), "load_ns": 0.0})
    ran = carried_out(tmp_path, "cold-start", engine=at_once, tests={"cold-start": {"starts": 1}})
    (value,) = [one for one in ran.test("cold-start")["values"] if one["name"] == "load_time"]
    assert value["value"] is None
    assert "nothing was loaded" in value["note"]
    assert ran.value("cold-start", "cold_start_latency") == pytest.approx(COLD_MS)


def test_a_cold_start_is_marked_and_has_no_warm_up(virtual: Ran) -> None:
    """Draft 4.5.3: warm-up skipped, and the report says so."""
    firsts = virtual.of("cold-start", "first")
    assert len(firsts) == 6
    for first in firsts:
        assert first["plan"]["load"]["cold_start"]
        assert first["warm_up"]["skipped"]
        assert first["warm_up"]["requests"] == 0
        assert first["requests"]["sent"] == 1
    assert any(note.startswith("Cold start measurement") for note in virtual.test("cold-start")["notes"])


def test_a_model_loaded_by_its_first_request_is_in_that_requests_latency(tmp_path: Path) -> None:
    """`preloaded=off`: the server is there at once, and the first token has waited for the load."""
    lazy = Settings(**{**_values(ENGINE), "preloaded": False})
    ran = carried_out(tmp_path, "cold-start", engine=lazy, tests={"cold-start": {"starts": 1}})
    (row,) = ran.rows("cold-start", "starts")
    assert row["load_s"] == 0
    assert row["cold_ms"] == pytest.approx(LOAD_MS + COLD_MS)
    assert row["warm_ms"] == pytest.approx(STEP_MS + PREFILL_MS)


def _values(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in Settings.__dataclass_fields__}


def test_a_server_that_does_not_come_back_leaves_the_starts_before(tmp_path: Path) -> None:
    """The third run finds nobody: one start is whole, the second has a load time and no latency."""
    ran = carried_out(tmp_path, "cold-start", engine=ENGINE, stand=Failing(ENGINE, after=2))
    document = ran.test("cold-start")
    assert document["ended_by"] == "server"
    first, second = ran.rows("cold-start", "starts")
    assert first["warm_ms"] is not None
    assert (second["load_s"], second["cold_ms"], second["warm_ms"]) == (LOAD_MS / 1e3, None, None)
    assert document["undecided"] == ["1 of 6 starts were measured whole."]


def test_medians_are_of_what_was_measured() -> None:
    """Scripted starts of 1, 2 and 9 s: the median, not the mean; before anything, nothing."""
    setup = Setup(Plan(), procedure_parameters.Tests.model_validate({"cold-start": {"starts": 3}}))
    loads, ttfts = iter([1.0, 2.0, 9.0]), iter([100.0, 10.0, 300.0, 12.0, 110.0, 11.0])

    def answer(step: Step) -> Any:
        if isinstance(step, Run):
            return summary(ttft=stats(latency := next(ttfts), latency, n=1), completed=1)
        seconds = next(loads) if step.state == "started" else None
        return Switched("verified", "a script", None, seconds)

    done = played(steps(setup), answer)
    order = [one.step.state if isinstance(one.step, Switch) else one.step.part for one in done]
    assert order == ["stopped", "started", "first", "second"] * 3
    found = {value.name: value.value for value in results(setup, done).values}
    assert found == {"load_time": 2.0, "cold_start_latency": 110.0, "second_ttft": 11.0}
    nothing = results(setup, [])
    assert nothing.undecided
    assert all(value.value is None for value in nothing.values)


SMALL: dict[str, object] = {
    "--input-tokens": "20",
    "--output-tokens": "3",
    "--concurrency": "1",
    "--requests": "1",
}


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_before_a_cold_start_the_server_generates_nothing(tmp_path: Path, api: str) -> None:
    """By the server's own log: one generation, the one that was measured, and it has waited for the model. A usual run of
    the same plan has its questions in the log too."""
    plan = build(None, SMALL | {"--warmup": "0", "--api": api})
    cold = plan.model_copy(update={"load": plan.load.model_copy(update={"cold_start": True})})
    with Embedded(tmp_path / "server.txt", "--cold", "--load-ms", "400") as server:
        finding = conduct(cold, tmp_path / "runs", Silent(), certificate=NO_CERTIFICATE, embedded=server)
        rows = [json.loads(line) for line in server.truth().splitlines()]
        assert [row["max_tokens"] for row in rows] == [3]
        assert finding.summary.metrics.ttft_ms is not None
        assert finding.summary.metrics.ttft_ms.mean >= 400
        assert finding.summary.warm_up.skipped
        conduct(plan, tmp_path / "runs", Silent(), certificate=NO_CERTIFICATE, embedded=server)
        assert len(server.truth().splitlines()) > 2


def test_the_embedded_engine_is_started_anew_and_timed(tmp_path: Path) -> None:
    """Its load is part of the load time; the new process has had one request, and what was switched before is still so."""
    choice = EngineChoice(preset="tiny-cpu", settings=("load=600ms",))
    with Live(Plan(), choice, Switching(), Silent(), tmp_path / "log.txt", _nobody) as stand:
        stand.switch("prefix_cache", "enabled")
        assert stand.switch("server", "stopped").status == "verified"
        came = stand.switch("server", "started")
        assert came.status == "verified"
        assert came.seconds is not None
        assert came.seconds >= 0.6
        plan = build(None, SMALL | {"--warmup": "0"})
        cold = plan.model_copy(update={"load": plan.load.model_copy(update={"cold_start": True})})
        finding = stand.measure(cold, tmp_path / "runs")
        assert finding.summary.requests.completed == 1
        assert stand.usual("server") == "started"
        assert stand._embedded is not None
        state = httpx.get(f"{stand._embedded.url()}/inferometer/state").json()
        assert (state["prefix_cache"], state["truth"]["requests"]) == (True, 1)


def test_somebody_elses_server_is_stopped_and_started_by_the_plans_commands(tmp_path: Path) -> None:
    """A command that starts a server which loads for 0.5 s, one that ends it, and one that does not: it still answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pid = tmp_path / "pid"
    server = (
        f"{shlex.quote(sys.executable)} -m inferometer.server --port {port} --load-at-start --load-ms 500"
    )
    ways = {
        "started": {
            "command": f"{server} >/dev/null 2>&1 & echo $! > {shlex.quote(str(pid))}",
            "patience_s": 60,
        },
        "stopped": {"command": f"kill $(cat {shlex.quote(str(pid))})", "patience_s": 60},
    }
    plan = build(None, {"--url": f"http://127.0.0.1:{port}", "--model": "reference"})
    log = tmp_path / "log.txt"
    with Live(
        plan, EngineChoice(), Switching.model_validate({"server": ways}), Silent(), log, _nobody
    ) as stand:
        came = stand.switch("server", "started")
        try:
            assert came.seconds is not None
            assert came.seconds >= 0.5
            idle = Switching.model_validate({"server": {"stopped": {"command": "true", "patience_s": 0.2}}})
            with (
                Live(plan, EngineChoice(), idle, Silent(), log, _nobody) as other,
                pytest.raises(CannotSwitch, match="still answered"),
            ):
                other.switch("server", "stopped")
        finally:
            gone = stand.switch("server", "stopped")
        assert (gone.status, gone.seconds) == ("verified", None)


def _nobody(what: str) -> None:
    raise EOFError(what)
