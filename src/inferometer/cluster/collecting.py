"""What load hosts still hold of a run whose conductor was killed, or did not wait for them: they are asked for it, and it is
put on one clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from inferometer.cluster.admission import HostLink, Listener
from inferometer.cluster.conductor import SLICE_S, Holding, LoadHosts
from inferometer.cluster.fetched import Fetched, called, known_hosts, not_fetched, number_of
from inferometer.cluster.join_token import read_token
from inferometer.cluster.member import Member
from inferometer.cluster.messages import FromHost, Kept, Probes, SendStreams, StreamPart, StreamsSent
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder

PATIENCE_S = 60.0


def collect(folder: RunFolder, listen: str, environ: Mapping[str, str], note: Callable[[str], None]) -> None:
    """Fetch from the hosts of a run what they kept; those that do not come within PATIENCE_S are named. Raises PlanError for a
    token or an address that is none, and RecordError for a run that no hosts sent."""
    names = tuple(one.name for one in known_hosts(folder))
    if not not_fetched(folder):
        raise RecordError(f"{folder.path}: no load hosts sent this run, or all of theirs is here already")
    listener = Listener(listen, read_token(None, environ))
    holding = Holding(called(folder), names)
    with LoadHosts(listener, len(names), known_hosts(folder)[0].workers, note, holding) as hosts:
        missing = _Missing(folder, names, hosts)
        lacking = ", ".join(missing.names)
        note(f"waiting {PATIENCE_S:.0f} s for {lacking}, which join {listen} by themselves or by hand")
        until = time.monotonic() + PATIENCE_S
        while missing.names and time.monotonic() < until:
            for member, message in hosts.heard(SLICE_S):
                until = max(until, time.monotonic() + missing.take(member, message))
            missing.ask()
        if missing.names:
            note(f"{', '.join(missing.names)}: did not come; what was fetched from there before is used")


class _Missing:
    """The hosts of a run that have not yet sent all."""

    def __init__(self, folder: RunFolder, names: tuple[str, ...], hosts: LoadHosts) -> None:
        self._run, self._numbers, self._hosts = called(folder), names, hosts
        self._fetched = Fetched(folder, len(names))
        self._asked: dict[str, HostLink] = {}
        self.names = not_fetched(folder)

    def ask(self) -> None:
        """Have them send what is not here; each again when it comes again."""
        for member in self._hosts.alive:
            if member.name in self.names and self._asked.get(member.name) is not member.link:
                self._asked[member.name] = member.link
                have = self._fetched.sizes(self._numbers.index(member.name))
                member.send(SendStreams(self._run, have, final=True))

    def take(self, member: Member, message: FromHost) -> float:
        """What one of them says; for how long (s) it is now worth to wait for more."""
        host = self._numbers.index(member.name)
        match message:
            case Probes():
                self._fetched.compared(host, message.probes)
            case StreamPart() if self._own(host, member, message):
                self._fetched.add(host, message)
                return PATIENCE_S
            case StreamPart():
                member.lose("it speaks of workers that are not its own")
            case StreamsSent() if message.final and message.run == self._run:
                self._fetched.complete(host)
                member.send(Kept(message.run))
                self.names = [name for name in self.names if name != member.name]
        return 0.0

    def _own(self, host: int, member: Member, part: StreamPart) -> bool:
        worker = number_of(part.name)
        mine = worker is not None and worker // self._hosts.workers == host
        return mine and part.run == self._run and member.name in self.names
