"""A Ray cluster whose nodes are network namespaces, joined by veth through one that forwards. Needs root, and Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from launching import JOIN, TOKEN, once, stand_in
from ray_nodes import Cluster

pytest.importorskip("ray", reason="the extra ray is not installed")

# What runs in a namespace of its own, beside those of the nodes: launches, says that it has, and then each failure.
LAUNCH = """
import json, sys, time
from inferometer.cluster.launch.interface import Join
from inferometer.cluster.launch.ray_hosts import RayHosts
address, hosts, join, token, *command = sys.argv[1:]
launcher = RayHosts(address, int(hosts), 1, command=command)
try:
    launcher.launch(Join(join, token))
    print(json.dumps("launched"), flush=True)
    sys.stdin.readline()
    while not launcher.failures():
        time.sleep(0.1)
    print(json.dumps(launcher.failures()), flush=True)
finally:
    launcher.close()
"""


@dataclass(frozen=True)
class Network:
    """Namespaces 1 to `count`, each with the address 10.213.N.2, and one in their middle."""

    count: int
    middle: str = f"inf-{os.getpid()}-0"

    @staticmethod
    def name(number: int) -> str:
        """Of one namespace."""
        return f"inf-{os.getpid()}-{number}"

    @staticmethod
    def address(number: int) -> str:
        """Of its end of the cable."""
        return f"10.213.{number}.2"

    def inside(self, number: int) -> list[str]:
        """The words before a command that runs in it."""
        return ["ip", "netns", "exec", self.name(number)]

    def make(self) -> None:
        """Raises OSError or CalledProcessError."""
        ip(f"netns add {self.middle}")
        subprocess.run(
            ["ip", "netns", "exec", self.middle, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"],
            check=True,
        )
        for number in range(1, self.count + 1):
            name = self.name(number)
            ip(f"netns add {name}")
            ip(f"link add e0 netns {name} type veth peer name v{number} netns {self.middle}")
            ip(f"-n {name} addr add {self.address(number)}/24 dev e0")
            ip(f"-n {self.middle} addr add 10.213.{number}.1/24 dev v{number}")
            for words in (
                f"-n {name} link set lo up",
                f"-n {name} link set e0 up",
                f"-n {self.middle} link set v{number} up",
            ):
                ip(words)
            ip(f"-n {name} route add default via 10.213.{number}.1")

    def part(self, number: int) -> None:
        """Cut one off: nothing reaches it, and it is not told."""
        ip(f"-n {self.middle} link set v{number} down")

    def remove(self) -> None:
        """As far as there are any."""
        for name in (self.middle, *(self.name(number) for number in range(1, self.count + 1))):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network(4)
    try:
        made.make()
    except (OSError, subprocess.CalledProcessError) as wrong:
        made.remove()
        pytest.skip(f"no network namespaces can be made here: {wrong}")
    try:
        yield made
    finally:
        made.remove()


def test_a_node_that_is_cut_off_is_named(network: Network, tmp_path: Path) -> None:
    """Three nodes in three networks run a host each, launched from a fourth; one loses its network, and Ray says so."""
    cluster = Cluster()
    try:
        cluster.head(network.address(1), network.inside(1))
        for number in (2, 3):
            cluster.join(network.address(number), network.inside(number))
        arguments = [cluster.client, "3", JOIN.address, TOKEN, *stand_in(tmp_path, "--stay")]
        with subprocess.Popen(
            [*network.inside(4), sys.executable, "-c", LAUNCH, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as launch:
            assert launch.stdin is not None
            assert launch.stdout is not None
            assert json.loads(launch.stdout.readline()) == "launched"
            found = once(tmp_path, 3)
            assert sorted(name[5:] for name in found) == [f"10-213-{number}-2" for number in (1, 2, 3)]
            network.part(3)
            launch.stdin.write("\n")
            launch.stdin.flush()
            (said,) = json.loads(launch.stdout.readline())
            launch.wait()
        assert "-10-213-3-2: Ray lost it" in said
    finally:
        cluster.close()
