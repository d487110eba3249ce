"""The load hosts of a command: who has joined, who is lost, who comes back. One of them is started by a launcher or by hand."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from inferometer.cluster.admission import HostLink, Listener
from inferometer.cluster.clock_probe import ClockResponder
from inferometer.cluster.join_token import TOKEN_VARIABLE
from inferometer.cluster.link import LinkLost
from inferometer.cluster.member import Member
from inferometer.cluster.messages import FromHost, Hello, Leave, Refused
from inferometer.errors import PeerError

JOIN_S = 300.0
"""For so long hosts are waited for."""
BEAT_S = 1.0
SLICE_S = 0.25


class Starter(Protocol):
    """What starts load hosts (cluster/launch/)."""

    def failures(self) -> list[str]:
        """Words about hosts that ended before they should, each once."""

    def close(self) -> None:
        """End what it started."""


class LoadHosts:
    """As many load hosts as a command wants, each with so many `workers`. Use as a context manager: at its end they leave."""

    def __init__(self, listener: Listener, hosts: int, workers: int, note: Callable[[str], None]) -> None:
        self.wanted, self.workers = hosts, workers
        self._listener, self._note = listener, note
        self.clock = ClockResponder((listener.address[0], 0), listener.token.probe_key())
        self.members: list[Member] = []
        self.starter: Starter | None = None

    def __enter__(self) -> LoadHosts:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """They leave; nobody joins any more."""
        for member in self.members:
            member.send(Leave())
        self._listener.close()
        for member in self.members:
            member.link.close()
        if self.starter is not None:
            self.starter.close()
        self.clock.close()

    def join_line(self, address: str, *, known: bool) -> str:
        """What to type on a load host that nobody starts; without the token where its user has it."""
        token = f"${TOKEN_VARIABLE}" if known else str(self._listener.token)
        return f"{TOKEN_VARIABLE}={token} inferometer worker --join {address}"

    def gather(self, patience_s: float = JOIN_S) -> None:
        """Wait until all have joined. Raises PeerError if one does not."""
        until = time.monotonic() + patience_s
        while len(self.alive) < self.wanted:
            if self.starter is not None and (failed := self.starter.failures()):
                raise PeerError("; ".join(failed))
            if time.monotonic() > until:
                raise PeerError(
                    f"{len(self.alive)} of {self.wanted} load hosts joined within {patience_s:.0f} s. Can they reach "
                    f"port {self._listener.address[1]} of this machine, by TCP and by UDP port {self.clock.port}?"
                )
            for member, _ in self.heard(SLICE_S):
                self._note(f"{member.name} has said something before it was asked")

    @property
    def alive(self) -> list[Member]:
        """Those that are there."""
        return [member for member in self.members if member.lost is None]

    def heard(self, timeout_s: float) -> Iterator[tuple[Member, FromHost]]:
        """What hosts say within so long; those that join meanwhile are let in."""
        self.admit()
        with selectors.DefaultSelector() as selector:
            for member in self.alive:
                selector.register(member.link, selectors.EVENT_READ, member)
            if not selector.get_map():
                time.sleep(timeout_s)
                return
            ready = [key.data for key, _ in selector.select(timeout_s)]
        for member in ready:
            for message in member.receive():
                yield member, message

    def admit(self) -> None:
        """Let in who has come. One that was lost and comes again under its name is the same host."""
        for link, hello in self._listener.admitted():
            try:
                self._let_in(link, hello)
            except LinkLost as cause:
                self._note(f"a load host was lost while it joined ({cause})")

    def _let_in(self, link: HostLink, hello: Hello) -> None:
        known = next((one for one in self.members if one.name == hello.name), None)
        if known is not None and known.lost is not None:
            known.back(link, hello, self.clock.port)
            self._note(f"{known.name} is back")
        elif known is not None:
            self._turn_away(link, f"there is a load host {hello.name!r} already: give each another --name")
        elif len(self.members) >= self.wanted:
            self._turn_away(link, f"all {self.wanted} load hosts are there")
        else:
            member = Member.joined(len(self.members), link, hello, self.clock.port)
            self.members.append(member)
            self._note(f"{member.name} has joined ({len(self.alive)} of {self.wanted})")

    @staticmethod
    def _turn_away(link: HostLink, why: str) -> None:
        link.send(Refused(why))
        link.close()
