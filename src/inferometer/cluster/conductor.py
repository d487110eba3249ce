"""The load hosts of a command: who has joined, who is lost, who comes back. One of them is started by a launcher or by hand."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from msgspec.structs import replace

from inferometer.cluster.admission import HostLink, Listener
from inferometer.cluster.clock_probe import ClockResponder
from inferometer.cluster.join_token import TOKEN_VARIABLE
from inferometer.cluster.link import LinkLost
from inferometer.cluster.member import Member
from inferometer.cluster.messages import FromHost, Hello, Leave, Live, Probes, Refused
from inferometer.errors import PeerError

JOIN_S = 300.0
"""For so long hosts are waited for."""
BEAT_S = 1.0
SLICE_S = 0.25


class Starter(Protocol):
    """What starts load hosts (cluster/launch/)."""

    def failures(self) -> list[str]:
        """Words about hosts that ended before they should, each once."""

    def said(self) -> dict[str, str]:
        """The last line that each of them has written so far, by its name."""

    def close(self) -> None:
        """End what it started."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What is left of a run on the hosts that sent it, by their names."""

    run: str
    names: tuple[str, ...]

    def called(self, hello: Hello) -> str | None:
        """Which of them a host is, by the name that it is given, or else was given then."""
        given = hello.kept[self.run] if hello.name is None else (hello.name,)
        return next((name for name in given if name in self.names), None)

    def why_not(self, hello: Hello) -> str | None:
        """Why a host is of no use here; None: it is."""
        if self.run not in hello.kept:
            return f"it holds nothing of {self.run}: give it the --folder that it had then"
        if self.called(hello) is None:
            return f"{self.run} was sent by {', '.join(self.names)}: give it the --name of one of them"
        return None


class LoadHosts:
    """As many load hosts as a command wants, each with so many `workers`. Use as a context manager: at its end they leave."""

    def __init__(
        self,
        listener: Listener,
        hosts: int,
        workers: int,
        note: Callable[[str], None],
        holding: Holding | None = None,
    ) -> None:
        """`holding`: let in none but those that hold this."""
        self.wanted, self.workers, self._holding = hosts, workers, holding
        self._gathered = False
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
                    + self._said_instead()
                )
            for member, message in self.heard(SLICE_S):
                if not isinstance(message, Live | Probes):
                    self._note(f"{member.name} has said something before it was asked")
        self._gathered = True

    def _said_instead(self) -> str:
        """What those wrote that were started and have not joined: a login that asks something, say."""
        joined = {member.name for member in self.alive}
        said = {} if self.starter is None else self.starter.said()
        return "".join(f" {name} wrote last: {line!r}." for name, line in said.items() if name not in joined)

    @property
    def alive(self) -> list[Member]:
        """Those that are there."""
        return [member for member in self.members if member.lost is None]

    def heard(self, timeout_s: float) -> Iterator[tuple[Member, FromHost]]:
        """What hosts say within so long; those that join meanwhile are let in."""
        self.admit()
        # A connection that has ended while something was sent may still hold what the host said before.
        ready = [member for member in self.alive if not member.link.open]
        with selectors.DefaultSelector() as selector:
            for member in self.alive:
                if member.link.open:
                    selector.register(member.link, selectors.EVENT_READ, member)
            if selector.get_map():
                ready += [key.data for key, _ in selector.select(0 if ready else timeout_s)]
            elif not ready:
                time.sleep(timeout_s)
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
        if self._holding is not None:
            if (why := self._holding.why_not(hello)) is not None:
                self._turn_away(link, why)
                return
            hello = replace(hello, name=self._holding.called(hello))
        known = self._known(hello)
        if known is not None and known.process and known.process == hello.process:
            known.lose("its connection broke")  # which only it has noticed
        if known is not None and known.lost is not None:
            known.back(link, hello, self.clock.port)
            self._note(f"{known.name} is back")
        elif known is not None:
            self._turn_away(link, f"there is a load host {hello.name!r} already: give each another --name")
        elif (number := self._place()) is None:
            self._turn_away(link, f"all {self.wanted} load hosts are there")
        else:
            named = replace(hello, name=hello.name or self._free_name(number))
            member = Member.joined(number, link, named, self.clock.port)
            self.members[number : number + 1] = [member]
            self._note(f"{member.name} has joined ({len(self.alive)} of {self.wanted})")

    def _known(self, hello: Hello) -> Member | None:
        """The host that it is, if it was here before: the same process, or one that was given its name."""
        same = (one for one in self.members if one.process and one.process == hello.process)
        named = (one for one in self.members if one.name == hello.name)
        return next(same, None) or next(named, None)

    def _place(self) -> int | None:
        """The number of the next host to join: one that was lost before all were there keeps nobody out."""
        if len(self.members) < self.wanted:
            return len(self.members)
        lost = (one.number for one in self.members if one.lost is not None)
        return None if self._gathered else next(lost, None)

    def _free_name(self, number: int) -> str:
        """What to call a host that was given no name: as no other is."""
        taken = {one.name for one in self.members}
        return next(name for at in count(number + 1) if (name := f"host-{at}") not in taken)

    @staticmethod
    def _turn_away(link: HostLink, why: str) -> None:
        link.send(Refused(why))
        link.close()
