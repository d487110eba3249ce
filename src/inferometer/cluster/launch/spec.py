"""The forms of `--cluster`, and the launcher of each.

| form                        | load hosts are started                                                         |
| --------------------------- | ------------------------------------------------------------------------------ |
| `join`                      | by hand, or by something else: `inferometer worker --join HOST:PORT` on each   |
| `local`                     | on this machine                                                                |
| `ssh:HOST,HOST`, `ssh:FILE` | by ssh on each; FILE has a slash in it or ends in `.txt`                       |
| `ray://HOST:PORT`           | on the nodes of a Ray cluster, through Ray Client                              |
| `ray:auto`, `auto`          | on the nodes of the cluster that this machine is a node of                     |
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inferometer.cluster.launch.interface import Join, Launcher, invalid
from inferometer.cluster.launch.local import COMMAND as LOCAL
from inferometer.cluster.launch.local import local
from inferometer.cluster.launch.ray_hosts import COMMAND as ON_RAY
from inferometer.cluster.launch.ray_hosts import RayHosts
from inferometer.cluster.launch.ray_messages import AUTO
from inferometer.cluster.launch.ssh import COMMAND as BY_SSH
from inferometer.cluster.launch.ssh import Ssh, hosts_in

FORMS = "join, local, ssh:HOST,HOST, ssh:FILE, ray://HOST:PORT or ray:auto"


class ByHand:
    """The launcher that starts nothing."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts

    @property
    def hosts(self) -> int:
        """How many are expected."""
        return self._hosts

    def launch(self, join: Join) -> None:
        """Nothing."""

    def failures(self) -> list[str]:
        """None are known of."""
        return []

    def said(self) -> dict[str, str]:
        """Nothing is heard of them."""
        return {}

    def close(self) -> None:
        """Nothing: whoever started them ends them."""


def launcher_of(
    spec: str,
    hosts: int | None,
    workers_per_host: int,
    *,
    command: Sequence[str] | None = None,
    wheel: Path | None = None,
) -> Launcher:
    """The launcher of `--cluster SPEC --hosts HOSTS --workers-per-host WORKERS_PER_HOST`.

    Args:
        spec: See the head.
        hosts: How many load hosts; None: as many as `ssh:` names.
        workers_per_host: The CPUs that Ray reserves on each node.
        command: In place of `inferometer worker`, if given: the words before `--join`.
        wheel: What Ray installs on its nodes; None: nothing where they have this version, else one of this installation.

    Raises:
        PlanError: the form is none of these, `hosts` is missing or more than are named, a list of hosts cannot be read, or a
            program or package that the form needs is not installed.
    """
    if spec.startswith("ssh:"):
        named = hosts_in(spec.removeprefix("ssh:"))
        if hosts is not None and hosts > len(named):
            raise invalid("--hosts", f"{hosts} hosts are requested, and --cluster names {len(named)}")
        return Ssh(command or BY_SSH).launcher(named[:hosts])
    ray = {"ray:auto": AUTO, AUTO: AUTO}.get(spec, spec)
    if spec not in ("join", "local") and ray != AUTO and not ray.startswith("ray:"):
        raise invalid("--cluster", f"{spec!r} is no cluster: write {FORMS}")
    if hosts is None:
        raise invalid("--hosts", "how many load hosts is not set")
    if spec == "join":
        return ByHand(hosts)
    if spec == "local":
        return local(hosts, command or LOCAL)
    return RayHosts(ray, hosts, workers_per_host, command=command or ON_RAY, wheel=wheel)
