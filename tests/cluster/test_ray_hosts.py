"""Load hosts on a Ray cluster of the test's own: three nodes, on three addresses of loopback. `make test-ray` installs Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from launching import JOIN, TOKEN, facts, failures, launched, once, stand_in
from ray_nodes import Cluster, free_port

from inferometer.cluster.launch.ray_hosts import RayHosts
from inferometer.errors import PeerError

pytest.importorskip("ray", reason="the extra ray is not installed")
if sys.platform != "linux":
    pytest.skip("needs several loopback addresses, as Linux has them", allow_module_level=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        made.head("127.0.0.2")
        made.join("127.0.0.3")
        made.join("127.0.0.4")
        yield made
    finally:
        made.close()


@pytest.fixture(params=["client", "auto"])
def address(cluster: Cluster, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to a cluster."""
    if request.param == "client":
        return cluster.client
    monkeypatch.setenv("RAY_ADDRESS", f"{cluster.head_address}:{cluster.port}")
    return "auto"


def test_each_node_runs_one_host(address: str, tmp_path: Path) -> None:
    """Named by its node, with the token in its environment alone, until `close` ends it by SIGTERM."""
    with launched(RayHosts(address, 3, 2, command=stand_in(tmp_path, "--stay"))) as launcher:
        found = once(tmp_path, 3)
        lines = [
            " ".join(one.info["cmdline"] or ())  # of one that has ended: None
            for one in psutil.process_iter(["cmdline"])
            if one.pid != os.getpid()
        ]
        assert launcher.failures() == []
    assert sorted(name.partition("-")[2] for name in found) == ["127-0-0-2", "127-0-0-3", "127-0-0-4"]
    for name, one in found.items():
        assert (one["token"], one["input"]) == (TOKEN, "")
        assert one["arguments"] == ["--join", JOIN.address, "--name", name]
        assert facts(tmp_path, name, "signal")["signal"] == "SIGTERM"
    assert not [line for line in lines if TOKEN in line]
    assert launcher.failures() == []


def test_how_a_host_ended_is_told(cluster: Cluster, tmp_path: Path) -> None:
    """With its exit code and last words, by name; the others are not mentioned."""
    command = [
        "sh",
        "-c",
        'case "$4" in ray2-*) echo "no token: $INFEROMETER_JOIN_TOKEN"; exit 2;; esac; exit 0',
        "sh",
    ]
    with launched(RayHosts(cluster.client, 3, 1, command=command)) as launcher:
        (said,) = failures(launcher, 1)
    assert said.startswith("load host ray2-127-0-0-")
    assert said.endswith("it was refused (exit code 2): no token: <redacted>")


def test_nothing_that_ray_writes_has_the_token(cluster: Cluster, tmp_path: Path) -> None:
    """Its logs, and every other file of its session."""
    with launched(RayHosts(cluster.client, 2, 1, command=stand_in(tmp_path, "--say", "hello"))):
        once(tmp_path, 2)
    files = [path for path in cluster.place.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 20
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


def test_too_few_nodes_are_told_within_bounds(cluster: Cluster, tmp_path: Path) -> None:
    """How many there are, and what to do."""
    for hosts, cpus, words in [
        (4, 1, r"3 of its 3 nodes have 1 CPUs"),
        (1, 64, r"0 of its 3 nodes have 64 CPUs"),
    ]:
        launcher = RayHosts(cluster.client, hosts, cpus, command=stand_in(tmp_path), patience_s=3.0)
        with pytest.raises(PeerError, match=words), launched(launcher):
            pass
    assert not list(tmp_path.iterdir())


def test_a_cluster_that_is_not_there_is_told_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """For both ways, with the address."""
    address = f"ray://127.0.0.1:{free_port()}"
    with (
        pytest.raises(PeerError, match=r"cannot be reached: Connection refused"),
        launched(RayHosts(address, 1, 1)),
    ):
        pass
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    with (
        pytest.raises(PeerError, match=r"Ray at auto: .*Connection refused"),
        launched(RayHosts("auto", 1, 1)),
    ):
        pass


def test_hosts_end_with_a_driver_that_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    """And the launcher says that it lost the cluster."""
    with launched(RayHosts(cluster.client, 1, 1, command=stand_in(tmp_path, "--stay"))) as launcher:
        found = once(tmp_path, 1)
        (driver,) = [
            one
            for one in psutil.Process().children()
            if "inferometer.cluster.launch.ray_driver" in one.cmdline()
        ]
        driver.kill()
        assert "no longer answers" in failures(launcher, 1)[0]
        (name,) = found
        assert facts(tmp_path, name, "signal")["signal"] == "SIGTERM"


def test_a_node_that_dies_is_named(cluster: Cluster, tmp_path: Path) -> None:
    """The host on it, by its name, which holds the node's address."""
    cluster.join("127.0.0.5")
    with launched(RayHosts(cluster.client, 4, 1, command=stand_in(tmp_path, "--stay"))) as launcher:
        once(tmp_path, 4)
        cluster.kill("127.0.0.5")
        (said,) = failures(launcher, 1)
    assert "127-0-0-5: Ray lost it" in said
