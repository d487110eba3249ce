"""Load hosts reached by OpenSSH's client: its configuration, keys and known hosts are the user's, and it never asks.

The token goes through ssh's standard input to the script of guard.py, so it is on no command line here or there, and the
load host ends when the connection does.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from inferometer import whole_file
from inferometer.cluster.launch.guard import guarded_line
from inferometer.cluster.launch.interface import Join, host_name, invalid
from inferometer.cluster.launch.processes import Processes
from inferometer.errors import check_machine, in_words

CONNECT_S = 10
LARGEST = 1 << 20
"""Bytes of a list of hosts."""
COMMAND = ("inferometer", "worker")
OPTIONS = (
    "-T",
    "-o", "BatchMode=yes",  # a question would wait for nobody
    "-o", f"ConnectTimeout={CONNECT_S}",
    "-o", "ServerAliveInterval=15",  # a connection that is gone without a word shows after a minute
    "-o", "ServerAliveCountMax=4",
    "-o", "ClearAllForwardings=yes",
    "-o", "LogLevel=ERROR",  # so that its last line says why it failed
)  # fmt: skip
FAILED = 255
_MEANINGS = {FAILED: "ssh failed, or the connection broke"}
_HOST = re.compile(
    r"(?:(?P<user>[a-z_][\w.-]*)@)?(?P<host>\w(?:[\w.-]*\w)?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?",
    re.ASCII | re.IGNORECASE,
)


def hosts_in(spec: str) -> list[str]:
    """The hosts that `--cluster ssh:SPEC` names: parted by commas, or, where SPEC has a slash or ends in `.txt`, in that file,
    one a line, `#` before a comment. Raises PlanError, and MachineError where this machine is why a file cannot be read."""
    if "/" not in spec and not spec.endswith(".txt"):
        return _checked([("--cluster", one.strip()) for one in spec.split(",")])
    try:
        lines = whole_file.read(Path(spec), LARGEST).decode().splitlines()
    except OSError as cause:
        check_machine(cause)
        raise invalid("--cluster", f"the list of hosts cannot be read: {in_words(cause)}") from None
    except UnicodeDecodeError:
        raise invalid("--cluster", f"{spec}: the list of hosts is not UTF-8") from None
    stripped = ((number, line.partition("#")[0].strip()) for number, line in enumerate(lines, 1))
    return _checked([(f"{spec}:{number}", host) for number, host in stripped if host])


def _checked(named: Sequence[tuple[str, str]]) -> list[str]:
    if not named:
        raise invalid("--cluster", "the list of hosts is empty: one host a line, as user@host or host:port")
    seen: dict[str, str] = {}
    for where, host in named:
        found = _HOST.fullmatch(host)
        if found is None or not 0 < int(found["port"] or 22) < 65_536:
            raise invalid(where, f"{host!r} is no host: write HOST, USER@HOST or HOST:PORT")
        if (name := name_of(host)) in seen:
            words = f"{host} and {seen[name]} would both be called {name}: each machine is one load host"
            raise invalid(where, words)
        seen[name] = host
    return [host for _, host in named]


def name_of(host: str) -> str:
    """What the load host is called: as the machine is written, without the user."""
    return host_name(host.rpartition("@")[2])


class Ssh:
    """How hosts are reached: ssh's own options, and the command there that is followed by `--join` and `--name`."""

    def __init__(self, command: Sequence[str] = COMMAND, options: Sequence[str] = ()) -> None:
        self._command, self._options = list(command), list(options)

    def argv(self, join: Join, host: str) -> list[str]:
        """The command line for one host."""
        found = _HOST.fullmatch(host)
        assert found is not None, "checked when it was read"
        place = found["host"].strip("[]")
        destination = f"{found['user']}@{place}" if found["user"] else place
        port = ["-p", found["port"]] if found["port"] else []
        line = guarded_line([*self._command, *join.arguments(name_of(host))])
        return ["ssh", *OPTIONS, *self._options, *port, "--", destination, line]

    def launcher(self, hosts: Sequence[str]) -> Processes:
        """For these hosts, as `hosts_in` gives them. Raises PlanError where there is no ssh."""
        if shutil.which("ssh") is None:
            raise invalid("--cluster", "ssh is not installed on this machine: install OpenSSH's client")
        by_name = {name_of(host): host for host in hosts}
        return Processes(
            list(by_name), lambda join, name: self.argv(join, by_name[name]), os.environ, _MEANINGS
        )
