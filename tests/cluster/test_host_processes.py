"""Load hosts as processes of this machine: what each is given, how its end is told, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from launching import JOIN, PATIENCE_S, TOKEN, facts, failures, launched, stand_in

from inferometer.cluster.launch.guard import guarded, guarded_line
from inferometer.cluster.launch.interface import Ended, Join, failure, host_name, last_line
from inferometer.cluster.launch.local import local
from inferometer.cluster.launch.processes import Processes


def test_each_host_is_started_with_the_address_its_name_and_the_token(tmp_path: Path) -> None:
    """The token is in its environment, and its input is empty."""
    with launched(local(3, stand_in(tmp_path, "--stay"))) as launcher:
        found = [facts(tmp_path, f"local-{number}") for number in (1, 2, 3)]
        assert launcher.hosts == 3
        assert launcher.failures() == []
    for number, one in enumerate(found, 1):
        assert one["arguments"][:4] == ["--join", JOIN.address, "--name", f"local-{number}"]
        assert (one["token"], one["input"]) == (TOKEN, "")
    folders = {one["arguments"][one["arguments"].index("--folder") + 1] for one in found}
    assert len(folders) == 3


def test_no_command_line_shows_the_token(tmp_path: Path) -> None:
    """Neither the host's nor that of what started it, nor does the launcher's own representation."""
    with launched(local(2, stand_in(tmp_path, "--stay"))):
        facts(tmp_path, "local-1")
        facts(tmp_path, "local-2")
        lines = [" ".join(one.cmdline()) for one in psutil.Process().children(recursive=True)]
    assert any("local-2" in line for line in lines)
    assert not [line for line in lines if TOKEN in line]
    assert TOKEN not in repr(JOIN)


def test_a_host_on_this_machine_gets_no_other_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the environment of our own processes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with launched(local(1, stand_in(tmp_path))):
        assert "OPENAI_API_KEY" not in facts(tmp_path, "local-1")["variables"]


@pytest.mark.parametrize(
    ("code", "words"),
    [(2, "refused"), (5, "cannot reach the conductor"), (71, "ran out"), (127, "not found"), (9, "failed")],
)
def test_a_host_that_ends_badly_is_named_with_its_last_words(tmp_path: Path, code: int, words: str) -> None:
    """By its exit code and the last line that it wrote; the others are not mentioned."""
    command = [
        "sh", "-c", '[ "$5" = local-2 ] && { echo first; echo last words; exit "$1"; }; exit 0', "sh", str(code)
    ]  # fmt: skip
    with launched(local(3, command)) as launcher:
        (said,) = failures(launcher, 1)
    assert said.startswith("load host local-2: ")
    assert words in said
    assert f"(exit code {code}): last words" in said


def test_a_host_that_was_killed_is_named_with_the_signal(tmp_path: Path) -> None:
    """It says nothing itself."""
    with launched(local(1, stand_in(tmp_path, "--stay"))) as launcher:
        os.kill(facts(tmp_path, "local-1")["pid"], signal.SIGKILL)
        (said,) = failures(launcher, 1)
    assert "SIGKILL" in said


def test_a_host_that_the_conductor_is_done_with_is_no_failure(tmp_path: Path) -> None:
    """Exit code 0."""
    with launched(local(1, stand_in(tmp_path))) as launcher:
        facts(tmp_path, "local-1")
        children = psutil.Process().children()
        psutil.wait_procs(children, timeout=PATIENCE_S)
        assert launcher.failures() == []


def test_the_token_is_struck_out_of_last_words(tmp_path: Path) -> None:
    """A host may repeat what it was given."""
    command = ["sh", "-c", 'echo "token $INFEROMETER_JOIN_TOKEN"; exit 1', "sh"]
    with launched(local(1, command)) as launcher:
        (said,) = failures(launcher, 1)
    assert TOKEN not in said
    assert "token <redacted>" in said


def test_a_talkative_host_never_waits_to_write(tmp_path: Path) -> None:
    """Its output is read, far beyond what a pipe holds, though nobody asks for failures."""
    with launched(local(1, stand_in(tmp_path, "--chatter", "2000000", "--stay"))):
        assert facts(tmp_path, "local-1")["token"] == TOKEN


def test_close_ends_hosts_that_stay(tmp_path: Path) -> None:
    """By SIGTERM, and their ends are no failures; closing again does nothing."""
    launcher = local(2, stand_in(tmp_path, "--stay"))
    with launched(launcher):
        pids = [facts(tmp_path, f"local-{number}")["pid"] for number in (1, 2)]
    assert facts(tmp_path, "local-1", "signal")["signal"] == "SIGTERM"
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    launcher.close()
    assert launcher.failures() == []


def test_a_host_that_ignores_the_end_is_killed(tmp_path: Path) -> None:
    """Politely, then not."""
    with launched(local(1, stand_in(tmp_path, "--stay", "--deaf"))):
        pid = facts(tmp_path, "local-1")["pid"]
    assert not psutil.pid_exists(pid)


def test_hosts_end_with_a_launcher_that_is_killed(tmp_path: Path) -> None:
    """Nobody is left who could end them."""
    program = (
        "import sys, time; from inferometer.cluster.launch.interface import Join; "
        "from inferometer.cluster.launch.local import local; "
        f"local(1, sys.argv[1:]).launch(Join({JOIN.address!r}, {TOKEN!r})); time.sleep(600)"
    )
    killed = subprocess.Popen([sys.executable, "-c", program, *stand_in(tmp_path, "--stay")])
    facts(tmp_path, "local-1")
    killed.kill()
    killed.wait()
    assert facts(tmp_path, "local-1", "signal")["signal"] == "SIGTERM"


def test_a_host_outlives_nothing_if_the_shell_around_it_is_killed(tmp_path: Path) -> None:
    """Another process than the one that waits for the host sees the end of the input."""
    launcher = local(1, stand_in(tmp_path, "--stay"))
    with launched(launcher):
        pid = facts(tmp_path, "local-1")["pid"]
        shell = psutil.Process(pid).parent()
        assert shell is not None
        shell.kill()
        assert "SIGKILL" in failures(launcher, 1)[0]
    assert facts(tmp_path, "local-1", "signal")["signal"] == "SIGTERM"


def test_what_cannot_be_started_is_an_error_of_the_machine_and_the_rest_is_ended(tmp_path: Path) -> None:
    """`launch` raises, and `close` ends those before."""

    def argv(_: Join, name: str) -> Sequence[str]:
        return (
            guarded(stand_in(tmp_path, "--stay", "--name", name, "--join")) if name == "a" else ["/no/such"]
        )

    launcher = Processes(["a", "b"], argv, os.environ)
    with pytest.raises(FileNotFoundError), launched(launcher):
        pass
    alive = [one for one in psutil.Process().children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
    assert not [one for one in alive if "load_host_stand_in" in " ".join(one.cmdline())]


@pytest.mark.parametrize(
    "shell", [["sh", "-c"], ["bash", "-c"], ["dash", "-c"], ["csh", "-c"], ["fish", "-c"]]
)
def test_the_line_for_a_login_shell_means_the_same_to_each(tmp_path: Path, shell: list[str]) -> None:
    """The script and words with blanks and quotes arrive whole; a shell that is not installed is skipped."""
    words = ["a b", "it's", '"$HOME"', "*"]
    command = [
        sys.executable,
        "-c",
        "import os, sys; print(sys.argv[1:], os.environ['INFEROMETER_JOIN_TOKEN'])",
    ]
    try:
        done = subprocess.Popen(
            [*shell, guarded_line([*command, *words])], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except FileNotFoundError:
        pytest.skip(f"{shell[0]} is not installed")
    assert done.stdin is not None
    assert done.stdout is not None
    with done:
        done.stdin.write(f"{TOKEN}\n".encode())
        done.stdin.flush()
        assert done.stdout.read().decode().strip() == f"{words} {TOKEN}"


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":80", "host:0", "host:65536", "-x:80", "a b:80", "h;x:80", "[::1:80"]
)
def test_no_host_joins_what_is_no_address(address: str) -> None:
    """HOST:PORT, and nothing that a shell or an option parser could take for something else."""
    with pytest.raises(ValueError, match="HOST:PORT"):
        Join(address, TOKEN)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "\x1b[31m", "töken"])
def test_no_host_joins_with_what_is_no_token(token: str) -> None:
    """It has to fit on a line; the error does not repeat it."""
    with pytest.raises(ValueError, match="token") as wrong:
        Join("10.0.0.1:7070", token)
    assert not token.strip() or token not in str(wrong.value)


def test_words_of_an_end_are_printable_and_short() -> None:
    """What a host wrote steers no terminal."""
    assert last_line(b"one\n\x1b[31mtwo\x1b[0m\n \n", "s") == "[31mtwo[0m"
    assert len(last_line(b"x" * 5000, "s")) == 400
    assert failure(Ended("a", None, "")) == "load host a: it is gone"
    assert failure(Ended("a", 0, "bye")) is None


def test_a_name_holds_what_the_conductor_takes() -> None:
    """Letters, digits, hyphens and underscores, 40 at most."""
    assert host_name("gpu7.example.com:2222") == "gpu7-example-com-2222"
    assert host_name("[fe80::1]") == "fe80-1"
    assert len(host_name("x" * 99)) == 40
