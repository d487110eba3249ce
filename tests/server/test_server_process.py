"""The server as a process of its own: how it starts, how it ends, what it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace

import pytest

from inferometer.cli.app import run
from inferometer.errors import PlanError
from inferometer.server.__main__ import ARGUMENTS, Argument, parse
from inferometer.server.answer_parts import Parts
from inferometer.server.options import Options
from inferometer.server.presets import PRESETS
from inferometer.server.serve import serve

PATIENCE_S = 60


def start(*flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "inferometer.server", *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    word, url = process.stdout.readline().split()
    assert word == "listening"
    return url


def test_it_answers_as_soon_as_it_says_so_and_ends_with_its_standard_input() -> None:
    """An embedded server does not outlive its parent, and ends without a word."""
    process = start("--until-stdin-closes")
    with urllib.request.urlopen(url_of(process) + "/health", timeout=PATIENCE_S) as response:
        assert response.status == 200
    out, err = process.communicate(timeout=PATIENCE_S)  # closes its standard input
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_on_a_signal(number: signal.Signals) -> None:
    """SIGTERM and SIGINT end it with 0 and no traceback."""
    process = start()
    url_of(process)
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 0
    assert process.communicate()[1] == ""


def test_every_problem_is_told_at_once_with_exit_code_2() -> None:
    """An address open to others without leave, a missing key, half of a key pair: three lines, no traceback."""
    process = start("--host", "0.0.0.0", "--api-key-env", "INFEROMETER_NO_SUCH", "--tls-cert", "x.pem")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert [line.split(":")[0] for line in err.splitlines()] == [
        "--host",
        "--tls-cert/--tls-key",
        "--api-key-env",
    ]


def test_a_port_in_use_is_refused_in_words() -> None:
    """PlanError naming the flags, not an OSError."""
    process = start("--until-stdin-closes")
    port = int(url_of(process).rsplit(":", 1)[1])
    with pytest.raises(PlanError, match="--port"):
        serve(Options(port=port), lambda _: None)
    process.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_what_is_no_port_is_refused(port: int) -> None:
    """A port is 16 bits: the resolver would take 99999 for 34463 and listen there."""
    with pytest.raises(PlanError, match="--port: must be from 0"):
        serve(Options(port=port), lambda _: None)


def test_flags_become_options() -> None:
    """A preset, and settings over it; no flag at all gives the defaults."""
    assert parse([]) == Options()
    options = parse(
        [
            "--model",
            "m",
            "--set",
            "step_base=1.5us",
            "--set",
            "policy=priority",
            "--set",
            "max_batch=3",
            "--seed",
            "4",
        ]
    )
    engine = options.engine
    assert (options.model, options.seed) == ("m", 4)
    assert (engine.step_base_ns, engine.policy, engine.max_batch) == (1_500, "priority", 3)
    assert parse(["--preset", "a100-8b", "--set", "jitter=0"]).engine == replace(PRESETS["a100-8b"], jitter=0)
    with pytest.raises(PlanError, match="step_base_ns"):
        parse(["--set", "step_base=0us"])


def test_what_answers_are_made_of_is_told_by_flags() -> None:
    """Parts, stamps and the load; a negative length is refused."""
    flags = [
        "--reasoning-tokens",
        "3",
        "--tool-call-tokens",
        "2",
        "--token-timestamps",
        "--load-ms",
        "1.5",
        "--cold",
    ]
    options = parse(flags)
    assert options.parts == Parts(reasoning=3, tool=2)
    assert (options.token_timestamps, options.load_ns, options.cold) == (True, 1_500_000, True)
    for wrong in ("--reasoning-tokens", "--tool-call-tokens", "--load-ms"):
        with pytest.raises(ValueError, match=wrong):
            parse([wrong, "-1"])


@pytest.mark.parametrize(
    "number", [one for one in ARGUMENTS if one.kind is not str and not one.choices], ids=lambda one: one.flag
)
def test_a_number_out_of_its_range_is_refused_in_words(number: Argument) -> None:
    """Law: every number has a least and a most, and what lies beyond, or is none, is named with its flag."""
    ends = [number.least - 1, number.most + 1, "9" * 400, "9" * 5_000]
    for wrong in [*ends, "nan", "inf", "-inf", "1e300", "x", ""]:
        with pytest.raises(ValueError, match=number.flag):
            parse([f"{number.flag}={wrong}"])
        assert run(["serve", f"{number.flag}={wrong}"]) == 2
    for right in (number.least, number.most):
        assert number.read(str(right)) == right


def test_the_environment_holds_the_key_and_the_command_line_its_name() -> None:
    """Processes are listed with their arguments: the key itself never is one."""
    os.environ["INFEROMETER_TEST_KEY"] = "canary"
    try:
        process = start("--until-stdin-closes", "--api-key-env", "INFEROMETER_TEST_KEY")
    finally:
        del os.environ["INFEROMETER_TEST_KEY"]
    request = urllib.request.Request(
        url_of(process) + "/v1/models", headers={"Authorization": "Bearer canary"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        assert response.status == 200
    process.communicate(timeout=PATIENCE_S)
