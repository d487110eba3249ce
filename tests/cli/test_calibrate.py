"""`inferometer calibrate` at its smallest, and a certificate's way into a run's reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from commands import COMMAND, SMALL, finish
from shipped_schemas import shipped

from inferometer.calibration import certificate as certificates
from inferometer.documents.certificate import (
    SCHEMA,
    CalibrationRung,
    Certificate,
    CertifiedLimit,
    CertifiedLimits,
    ErrorSpread,
)
from inferometer.plan.schema import Plan
from inferometer.plan.transports import Transport
from inferometer.report.calibration import FAULTS, lines
from inferometer.studies.calibration import Ask, Calibrated, calibrate
from inferometer.telemetry.host import environment, hot_path

FEW = ["--requests", "20", "--concurrency", "4", *SMALL]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Calibrated, Path, Path, list[str]]:
    """A real calibration with one low rung a ladder and a plan's own: result, state folder, run folders, progress."""
    state, out, said = tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("runs"), list[str]()
    before = os.environ[certificates.FOLDER_VARIABLE]
    os.environ[certificates.FOLDER_VARIABLE] = str(state)
    try:
        load = {"load": {"rate": 20}, "workload": {"output_tokens": 3}, "name": "mine"}
        ask = Ask(Plan.model_validate(load), like=True, quick=True, streams=(4,), requests=(200,))
        return calibrate(ask, out, said.append), state, out, said
    finally:
        os.environ[certificates.FOLDER_VARIABLE] = before


def test_a_calibration_joins_every_rung_with_the_truth(
    tiny: tuple[Calibrated, Path, Path, list[str]],
) -> None:
    """Not a token is missing, every request and gap is compared, and the parts agree with each other.

    Whether the figures were right enough is for the machine to say and not asserted.
    """
    done, state, out, said = tiny
    made = done.certificate
    by_kind = {rung.kind: rung for rung in made.rungs}
    assert set(by_kind) == {"streams", "requests", "whole", "plan"}
    whole = by_kind["whole"]
    assert (whole.missing, whole.ttft_ms, whole.itl_ms) == (0, None, None)
    assert whole.e2e_ms is not None
    assert whole.e2e_ms.n == 500
    for kind, requests, tokens in (("streams", 16, 50), ("requests", 500, 1), ("plan", 200, 3)):
        rung = by_kind[kind]  # type: ignore[index]  # the names of the kinds
        assert rung.missing == 0
        assert rung.ttft_ms is not None
        assert rung.e2e_ms is not None
        assert rung.ttft_ms.n == rung.e2e_ms.n == requests
        assert (rung.itl_ms.n if rung.itl_ms else 0) == requests * (tokens - 1)
        assert rung.tok_s > 0
        assert rung.good == (not rung.faults)
    assert (done.stored is not None) == all(by_kind[kind].good for kind in ("streams", "requests", "whole"))
    assert made.transport == "http/1.1"
    assert list(state.iterdir()) == ([done.stored] if done.stored else [])
    assert done.exit_code == (0 if done.stored and by_kind["plan"].good else 4)
    assert 4 <= len(said) <= 8
    assert len([path for path in out.iterdir() if path.is_dir()]) == len(said)


@pytest.mark.parametrize("transport", ["http/2+tls", "grpc", "websocket+tls"])
def test_another_transport_is_calibrated_by_what_it_carries(
    transport: Transport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: every run of it goes over this transport, no token is missing, and the certificate says so."""
    monkeypatch.setenv(certificates.FOLDER_VARIABLE, str(tmp_path / "state"))
    ask = Ask(Plan(), quick=True, streams=(4,), requests=(200,), transport=transport)
    made = calibrate(ask, tmp_path / "runs", lambda _: None).certificate
    assert made.transport == transport
    assert {rung.kind for rung in made.rungs} == {"streams", "requests", "whole"}
    assert not any(rung.missing for rung in made.rungs)
    assert made.truth_from_kernel == (not transport.endswith("+tls"))
    plans = [json.loads(path.read_text())["plan"] for path in (tmp_path / "runs").glob("*/summary.json")]
    assert {Plan.model_validate(plan).target.transport for plan in plans} == {transport}


def test_without_trustme_a_calibration_over_tls_is_refused(tmp_path: Path) -> None:
    """The words name what to install, and nothing was started."""
    program = "import sys; sys.modules['trustme'] = None; from inferometer.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "calibrate", "--transport", "http/2+tls", "--out", str(tmp_path / "runs")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "pip install 'inferometer[tls]'" in ended.stderr
    assert not list((tmp_path / "runs").glob("*"))


def test_the_runs_of_a_calibration_do_not_judge_themselves(
    tiny: tuple[Calibrated, Path, Path, list[str]],
) -> None:
    """Their check does not apply, and they cite nothing."""
    for path in tiny[2].glob("*/summary.json"):
        summary = json.loads(path.read_text())
        assert summary["instrument"]["calibration"] is None
        (check,) = [one for one in summary["verdict"]["checks"] if one["code"] == "calibration"]
        assert check["status"] == "na"


def test_a_rung_of_a_busy_machine_fits_a_terminal_too(tiny: tuple[Calibrated, Path, Path, list[str]]) -> None:
    """Law: 80 columns whatever the errors, with all limits broken, at the highest rungs of all ladders."""
    made = tiny[0].certificate
    broken = tuple(FAULTS)
    (rung, *_) = made.rungs
    late = ErrorSpread(
        n=9, mean=-1234.5678, p50=0.0, p99=-23456.789, max=3e4, each_p50=1.0, each_p99=1.0, each_max=1.0
    )
    rungs = [
        msgspec.structs.replace(
            rung, kind=kind, load=load, offered_tok_s=204_800.0, tok_s=204_799.0, cpu=1.0, ttft_ms=late, itl_ms=late,
            e2e_ms=late, server_behind=behind, faults=faults, reasons=("lateness", "receive_lag", "error_bound"),
        )
        for kind, load in (("streams", 4096.0), ("requests", 16_000.0), ("whole", 16_000.0))
        for behind in (False, True)
        for faults in (broken, broken[::-1], ())
    ]  # fmt: skip
    said = lines(msgspec.structs.replace(made, rungs=tuple(rungs)), None)
    assert max(map(len, said)) <= 80


def test_the_table_has_a_line_a_rung_and_fits_a_terminal(
    tiny: tuple[Calibrated, Path, Path, list[str]],
) -> None:
    """80 columns, ASCII, and the certificate's name where there is one."""
    made = tiny[0].certificate
    said = lines(made, "the/file.json")
    assert all(len(line) <= 80 for line in said if made.id not in line)
    assert "\n".join(said).isascii()
    for word in ("streams", "req/s", "whole/s", "plan"):
        assert [line for line in said if line.startswith(word)]
    assert made.id in said[-1]
    assert "Not certified" in lines(made, None)[-1]


def here(**changes: Any) -> Certificate:
    """A certificate of the machine that the tests run on."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "date": "2026-01-02T03:04:05.678Z",
        "machine": certificates.machine_of(environment()),
        "packages": hot_path(),
        "workers": 1,
        "timestamp_source": "kernel",
        "truth_from_kernel": True,
        "quick": True,
        "pinned": None,
        "interval_ms": 20.0,
        "limits": CertifiedLimits(CertifiedLimit(1e9, "ladder"), CertifiedLimit(1e9, "ladder")),
        "rungs": (),
    } | changes
    return certificates.named(Certificate(id="", **content))


def test_a_rung_that_fails_many_checks_still_fits_a_terminal() -> None:
    """All its reasons are named, within 80 columns."""
    reasons = (
        "lateness",
        "arrival_rate",
        "arrival_dispersion",
        "receive_lag",
        "worker_cpu",
        "concurrency_held",
    )
    bad = CalibrationRung(
        "streams", 2000.0, 99e3, 90e3, 900.0, 0.99, None, None, None, 0.0, 0.0, 0.1, 0.1, False, "INVALID", reasons,
        ("verdict", "ttft_p99"), 2,
    )  # fmt: skip
    shown = lines(here(rungs=(bad,)), None)
    assert all(len(line) <= 80 for line in shown)
    assert all(any(reason in line for line in shown) for reason in reasons)


def test_a_run_cites_the_certificate_it_began_with_also_when_that_is_gone(tmp_path: Path) -> None:
    """In summary, reports and run.json; and nobody learns where it lay."""
    state, out = tmp_path / "state", tmp_path / "runs"
    path = certificates.store(here(), state)
    _, stdout, _ = finish("run", *FEW, "--json", "--out", str(out), INFEROMETER_CALIBRATIONS=str(state))
    summary = json.loads(stdout)
    jsonschema.validate(summary, shipped("summary"))
    if summary["instrument"]["timestamp_source"] != "kernel":
        pytest.skip("no kernel time stamps here")
    cited = summary["instrument"]["calibration"]
    assert cited["id"] == here().id
    assert 0 < cited["used"] < 1
    (folder,) = (path for path in out.iterdir() if path.is_dir())
    path.unlink()
    _, stdout, _ = finish("report", str(folder), "--json", INFEROMETER_CALIBRATIONS=str(state))
    assert json.loads(stdout)["instrument"]["calibration"] == cited
    texts = [(folder / name).read_text() for name in ("report.md", "report.html")]
    assert all(here().id in text and str(state) not in text for text in [*texts, stdout])


def test_beyond_what_is_certified_a_run_is_inconclusive_and_says_so(tmp_path: Path) -> None:
    """The check names the load and the limit, per worker."""
    low = here(limits=CertifiedLimits(CertifiedLimit(0.5, "instrument"), CertifiedLimit(1e9, "ladder")))
    certificates.store(low, tmp_path / "state")
    out = str(tmp_path / "runs")
    _, stdout, _ = finish(
        "run", *FEW, "--json", "--out", out, INFEROMETER_CALIBRATIONS=str(tmp_path / "state")
    )
    summary = json.loads(stdout)
    if summary["instrument"]["timestamp_source"] != "kernel":
        pytest.skip("no kernel time stamps here")
    (check,) = [one for one in summary["verdict"]["checks"] if one["code"] == "calibration"]
    assert (check["status"], check["limit"]) == ("unsure", 0.5)
    assert low.id in check["message"]
    assert summary["verdict"]["status"] != "VALID"


def test_a_damaged_certificate_does_not_stop_a_run(tmp_path: Path) -> None:
    """It is as good as none."""
    (tmp_path / "x.json").write_text("{")
    out = str(tmp_path / "runs")
    code, stdout, _ = finish("run", *FEW, "--json", "--out", out, INFEROMETER_CALIBRATIONS=str(tmp_path))
    assert code in (3, 4)
    assert json.loads(stdout)["instrument"]["calibration"] is None


def test_interrupted_nothing_is_stored_and_nothing_is_left(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a rung: 130, a word, no certificate."""
    state, out = tmp_path / "state", tmp_path / "out"
    process = subprocess.Popen(
        [*COMMAND, "calibrate", "--quick", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, certificates.FOLDER_VARIABLE: str(state)},
        start_new_session=True,
        # A shell's background job ignores Ctrl-C, and what it starts would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("calibrating: 64 streams")
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout) == (130, "")
    assert "nothing is certified" in stderr
    assert "Traceback" not in stderr
    assert not state.exists()


def test_a_plan_that_describes_messages_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """Law: the reference server does not speak them, so there is nothing that such a load could be tried on."""
    described = {"request": {"p": "{prompt}", "n": "{max_tokens}"}, "text": "t", "end": "e"}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"target": {"url": "ws://h", "websocket": described}}))
    code, stdout, stderr = finish("calibrate", "--like", str(plan), "--quick")
    assert (code, stdout) == (2, "")
    assert "knows no messages that a plan describes" in stderr


def test_a_wrong_command_line_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """A plan that is not there, a number of workers that is none."""
    for wrong in (["--like", str(tmp_path / "none.yaml")], ["--workers", "0"], ["--nonsense"]):
        code, stdout, stderr = finish("calibrate", *wrong)
        assert (code, stdout) == (2, "")
        assert stderr
