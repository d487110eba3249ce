"""Who is let in among the load hosts of a command: each once, under a name of its own, and again when it comes back."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from commanding import commanding

from inferometer.cluster import admission
from inferometer.cluster.conductor import Holding
from inferometer.cluster.launch.interface import Join
from inferometer.cluster.launch.local import local
from inferometer.cluster.messages import Beat, Probes
from inferometer.errors import PeerError, PlanError


def test_no_two_hosts_have_one_name() -> None:
    """Whatever their users call some of them."""
    with commanding(4) as command:
        joined = [command.join(name, str(at)) for at, name in enumerate(("host-2", None, None, "host-9"))]
        names = [name for _, name in joined]
        assert len(set(names)) == 4
        with pytest.raises(PlanError, match="give each another --name"):
            command.join("host-2", "other")


def test_a_host_that_is_lost_before_all_are_there_keeps_nobody_out() -> None:
    with commanding(2) as command:
        link, _ = command.join(None, "a")
        link.close()
        command.until(lambda: not command.hosts.alive)
        joined = [command.join(None, process) for process in "bc"]
        assert len({name for _, name in joined}) == len(command.hosts.alive) == 2
        with pytest.raises(PlanError, match="all 2 load hosts are there"):
            command.join(None, "d")


def test_a_host_whose_connection_broke_comes_back_before_its_conductor_knows() -> None:
    """And has no part in the run any more: its workers ended with the connection."""
    with commanding(2) as command:
        before = command.join("east", "a")
        other = command.join("west", "b")
        again = command.join("east", "a", kept={"run": ("east",)})
        east = command.hosts.members[0]
        assert (before[1], other[1], again[1]) == ("east", "west", "east")
        assert (east.lost, east.takes_part, east.kept) == (None, False, {"run"})
        assert len(command.hosts.alive) == 2


def test_what_a_host_said_last_is_heard_though_its_connection_ended() -> None:
    """It is lost then, and neither hearing nor telling it anything is an error."""
    with commanding(1) as command:
        link, _ = command.join("east", "a")
        east = command.hosts.members[0]
        link.send(Probes([]))
        link.close()
        ends = time.monotonic() + 20
        heard: list[object] = []
        while east.link.open and time.monotonic() < ends:
            heard += east.receive()
        assert heard == [Probes([])]
        assert list(command.hosts.heard(0.0)) == []
        east.send(Beat())
        assert east.lost is not None


@pytest.mark.parametrize("name", ["\x1b[2Jeast", "../east", "<b>east</b>", "", "e" * 41])
def test_a_name_that_could_be_anything_else_is_refused(name: str) -> None:
    with commanding(1) as command, pytest.raises(PlanError, match="letters, digits"):
        command.join(name, "a")


def test_what_is_left_of_a_run_is_taken_from_those_that_sent_it() -> None:
    with commanding(2, Holding("run", ("east", "west"))) as command:
        with pytest.raises(PlanError, match="--folder"):
            command.join("east", "a")
        with pytest.raises(PlanError, match="--name"):
            command.join("north", "b", kept={"run": ("west",)})
        assert command.join(None, "c", kept={"run": ("west",)})[1] == "west"


def test_a_host_waits_until_strangers_have_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many connections that say nothing as are heard at once keep it out for as long as they are heard, no longer."""
    monkeypatch.setattr(admission, "HANDSHAKE_S", 0.5)
    with commanding(1) as command, contextlib.ExitStack() as stack:
        host, port = command.address.split(":")
        for _ in range(admission.AT_ONCE + 5):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=5))
        assert command.join("east", "a")[1] == "east"


@pytest.mark.parametrize("line", ["exec sleep 60", "exit 0"], ids=["waits", "ends"])
def test_what_a_host_wrote_that_does_not_join_is_told(line: str) -> None:
    """Law: where a login takes the token for an answer, or ends as if all were well, its own words are the reason that its
    user needs."""
    with commanding(1) as command:
        command.hosts.starter = local(1, ["sh", "-c", f"echo Do you accept the terms?; {line}", "sh"])
        command.hosts.starter.launch(Join(command.address, "Secret-Token"))
        command.until(lambda: bool(command.hosts.starter and command.hosts.starter.said()))
        with pytest.raises(PeerError, match=r"local-1 wrote last: 'Do you accept the terms\?'") as told:
            command.hosts.gather(0.3)
    assert "Secret-Token" not in str(told.value)
