"""Load hosts on this machine, to try a cluster out. They share its cores, its network card and its clock."""

from __future__ import annotations

import os
from collections.abc import Sequence

from inferometer import isolation
from inferometer.cluster.launch.guard import guarded
from inferometer.cluster.launch.interface import Join
from inferometer.cluster.launch.processes import Processes

PROGRAM = "from inferometer.cli.main import main; main()"
"""For `python -P -c`: the command `inferometer` of the interpreter that runs it, wherever its script is."""
COMMAND = tuple(isolation.program(PROGRAM, "worker"))


def local(hosts: int, command: Sequence[str] = COMMAND) -> Processes:
    """A launcher of so many, named `local-1` and so on, with the environment of our own processes. Each keeps what it measures
    in a folder of its own, beside that of a load host which the user starts."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")

    def argv(join: Join, name: str) -> list[str]:
        folder = os.path.join(state, "inferometer", name)
        return guarded([*command, *join.arguments(name), "--folder", folder])

    names = [f"local-{number}" for number in range(1, hosts + 1)]
    return Processes(names, argv, isolation.environment(os.environ))
