"""Load hosts by ssh: the lists of hosts, the command line, and a real sshd of the test's own on loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from launching import JOIN, PATIENCE_S, TOKEN, facts, failures, launched, stand_in

from inferometer.cluster.launch.interface import Launcher
from inferometer.cluster.launch.ssh import Ssh, hosts_in
from inferometer.errors import PlanError


@dataclass(frozen=True)
class Daemon:
    """An sshd on 127.0.0.1, and the options with which the client reaches it."""

    port: int
    options: list[str]
    process: subprocess.Popen[bytes]

    def launcher(self, *command: str) -> Launcher:
        """Of one host, this machine."""
        return Ssh(command, self.options).launcher([f"{getpass.getuser()}@127.0.0.1:{self.port}"])

    @property
    def name(self) -> str:
        """What that host is called."""
        return f"127-0-0-1-{self.port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """With keys, configuration and known hosts of its own: nothing of the user's is read."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("OpenSSH's server and client are not both installed")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it confines itself before a login
    place, port = tmp_path_factory.mktemp("sshd"), free_port()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name], check=True)
    shutil.copy(place / "user.pub", place / "authorized")
    lines = [
        f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {place}/host", f"AuthorizedKeysFile {place}/authorized",
        f"PidFile {place}/pid", "StrictModes no", "UsePAM no", "PasswordAuthentication no",
    ]  # fmt: skip
    (place / "sshd_config").write_text("".join(f"{line}\n" for line in lines))
    kind, key, *_ = (place / "host.pub").read_text().split()
    (place / "known").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    options = [
        "-F",
        "none",
        "-i",
        f"{place}/user",
        "-o",
        f"UserKnownHostsFile={place}/known",
        "-o",
        "IdentityAgent=none",
    ]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", place / "sshd_config"], stderr=log)
    try:
        for _ in range(int(PATIENCE_S / 0.05)):
            if "Server listening" in (place / "log").read_text():
                break
            if process.poll() is not None:
                pytest.skip(f"sshd does not start here: {(place / 'log').read_text().strip()}")
            time.sleep(0.05)
        yield Daemon(port, options, process)
    finally:
        process.terminate()
        process.wait()


def test_a_host_is_started_by_ssh_with_the_token_in_its_environment(sshd: Daemon, tmp_path: Path) -> None:
    """The same as on this machine; no command line on either side shows the token."""
    with launched(sshd.launcher(*stand_in(tmp_path, "--stay"))) as launcher:
        found = facts(tmp_path, sshd.name)
        lines = [
            " ".join(one.info["cmdline"] or ())  # of one that has ended: None
            for one in psutil.process_iter(["cmdline"])
            if one.pid != os.getpid()
        ]
        assert launcher.failures() == []
    assert found["arguments"] == ["--join", JOIN.address, "--name", sshd.name]
    assert (found["token"], found["input"]) == (TOKEN, "")
    assert len([line for line in lines if sshd.name in line and "load_host_stand_in" in line]) >= 3
    assert not [line for line in lines if TOKEN in line]


def test_close_ends_the_host_over_there(sshd: Daemon, tmp_path: Path) -> None:
    """By SIGTERM, once the connection ends."""
    with launched(sshd.launcher(*stand_in(tmp_path, "--stay"))):
        pid = facts(tmp_path, sshd.name)["pid"]
    assert facts(tmp_path, sshd.name, "signal")["signal"] == "SIGTERM"
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=PATIENCE_S)
    assert not psutil.pid_exists(pid)


def test_a_host_ends_with_an_ssh_that_is_killed(sshd: Daemon, tmp_path: Path) -> None:
    """As when the machine that launched it is gone."""
    with launched(sshd.launcher(*stand_in(tmp_path, "--stay"))):
        facts(tmp_path, sshd.name)
        (client,) = [one for one in psutil.Process().children() if one.name() == "ssh"]
        client.kill()
        assert facts(tmp_path, sshd.name, "signal")["signal"] == "SIGTERM"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("no-such-program",), "install the same version of inferometer"),
        (("sh", "-c", "echo wrong token >&2; exit 2"), "refused (exit code 2): wrong token"),
        (("sh", "-c", "exit 71"), "its machine ran out of something"),
    ],
)
def test_how_a_host_over_there_ended_is_told(sshd: Daemon, command: tuple[str, ...], words: str) -> None:
    """ssh hands on exit code and last words."""
    with launched(sshd.launcher(*command)) as launcher:
        (said,) = failures(launcher, 1)
    assert said.startswith(f"load host {sshd.name}: ")
    assert words in said


def test_a_stranger_and_a_machine_that_does_not_answer_are_told(sshd: Daemon, tmp_path: Path) -> None:
    """A host key that is not known is never asked about; a closed port, and a name that there is not, are ssh's words."""
    nobody = ["-o", "UserKnownHostsFile=/dev/null", "-o", "GlobalKnownHostsFile=/dev/null"]
    unknown = [*nobody, *sshd.options]  # the first of two counts
    for place, words in [
        (f"127.0.0.1:{sshd.port}", "Host key verification failed"),
        (f"127.0.0.1:{free_port()}", "Connection refused"),
        ("no-such-machine.invalid", "Could not resolve hostname"),
    ]:
        with launched(Ssh(stand_in(tmp_path), unknown).launcher([place])) as launcher:
            (said,) = failures(launcher, 1)
        assert "ssh failed" in said
        assert words in said


def test_a_list_of_hosts_is_read_with_its_comments(tmp_path: Path) -> None:
    """One a line; on the command line, parted by commas."""
    path = tmp_path / "hosts.txt"
    path.write_text("# the rack\nroot@gpu1  # with the fast card\n\n  gpu2:2222\n[fe80::1]\n")
    assert hosts_in(str(path)) == ["root@gpu1", "gpu2:2222", "[fe80::1]"]
    assert hosts_in("root@a, b") == ["root@a", "b"]


@pytest.mark.parametrize(
    "host",
    [
        "-oProxyCommand=evil",
        "a b",
        "a;b",
        "$(x)",
        "a\tb",
        "@a",
        "a@",
        "-x@a",
        "a@-b",
        "a:0",
        "a:99999",
        "ssh://a",
        "a@b@c",
        "é",
    ],
)
def test_what_is_no_host_is_refused(tmp_path: Path, host: str) -> None:
    """Before it reaches ssh, which would take some for options; the message names the place."""
    path = tmp_path / "hosts.txt"
    path.write_text(f"good\n{host}\n")
    with pytest.raises(PlanError, match=r"hosts.txt:2: .*is no host"):
        hosts_in(str(path))
    if "," not in host and "/" not in host:
        with pytest.raises(PlanError, match="is no host"):
            hosts_in(f"good,{host}")


def test_a_list_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A machine twice, nothing in it, not there, not text, too large."""
    for content, words in [
        (b"root@a\nother@a\n", "would both be called a"),
        (b"# none\n", "is empty"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a\n" * (1 << 20), "larger than"),
        (None, "No such file"),
    ]:
        path = tmp_path / "hosts.txt"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(PlanError, match=words):
            hosts_in(str(path))


def test_the_host_ends_the_options_of_ssh() -> None:
    """What follows the host is one word, for the shell over there, and begins with no hyphen."""
    argv = Ssh().argv(JOIN, "root@gpu1:2222")
    assert argv[-5:-1] == ["-p", "2222", "--", "root@gpu1"]
    assert argv[-1].startswith("exec sh -c ")
    assert argv[-1].endswith("inferometer worker --join 127.0.0.1:7070 --name gpu1-2222")
    assert "BatchMode=yes" in argv
    assert TOKEN not in " ".join(argv)
