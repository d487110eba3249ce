"""The forms of `--cluster`: what each makes, and what is none."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from launching import JOIN

from inferometer.cluster.launch.spec import launcher_of
from inferometer.errors import PlanError


def test_by_hand_nothing_is_started() -> None:
    """And nothing is known of those that join."""
    launcher = launcher_of("join", 3, 2)
    launcher.launch(JOIN)
    assert (launcher.hosts, launcher.failures()) == (3, [])
    launcher.close()


def test_ssh_has_as_many_hosts_as_are_named(tmp_path: Path) -> None:
    """Or the first of them."""
    (tmp_path / "rack.txt").write_text("a\nb\nc\n")
    assert launcher_of(f"ssh:{tmp_path}/rack.txt", None, 1).hosts == 3
    assert launcher_of("ssh:a,b,c", 2, 1).hosts == 2
    assert launcher_of("local", 2, 1).hosts == 2


@pytest.mark.parametrize(
    ("spec", "hosts", "words"),
    [
        ("ssh:a,b", 3, r"--hosts: 3 hosts are requested, and --cluster names 2"),
        ("local", None, "--hosts: how many"),
        ("join", None, "--hosts: how many"),
        ("ray:auto", None, "--hosts: how many"),
        ("kubernetes", 1, "--cluster: .*write join, local, ssh:"),
        ("", 1, "--cluster: .*write join"),
        ("ssh", 1, "--cluster: .*write join"),
        ("ray://", 1, "ray://HOST:PORT"),
        ("ray://head", 1, "ray://HOST:PORT"),
        ("ray://-x:1", 1, "ray://HOST:PORT"),
        ("ray:head:10001", 1, "ray://HOST:PORT"),
    ],
)
def test_what_is_no_cluster_is_named(spec: str, hosts: int | None, words: str) -> None:
    """With the flag, and the forms that there are."""
    with pytest.raises(PlanError, match=words):
        launcher_of(spec, hosts, 1)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="the extra ray is installed")
@pytest.mark.parametrize("spec", ["ray:auto", "auto", "ray://10.0.0.1:10001", "ray://[::1]:10001"])
def test_without_ray_the_extra_is_named(spec: str) -> None:
    """Before anything is started."""
    with pytest.raises(PlanError, match=r"pip install 'inferometer\[ray\]'"):
        launcher_of(spec, 2, 1)


def test_a_wheel_that_is_none_is_refused(tmp_path: Path) -> None:
    """A path that is not there, or no wheel."""
    with pytest.raises(PlanError, match="is no wheel"):
        launcher_of("ray:auto", 1, 1, wheel=tmp_path / "inferometer.whl")
