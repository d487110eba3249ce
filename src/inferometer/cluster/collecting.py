"""What load hosts still hold of a run whose conductor was killed: they are asked for it, and it is put on one clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from inferometer.cluster.admission import Listener
from inferometer.cluster.conductor import SLICE_S, LoadHosts
from inferometer.cluster.fetched import Fetched, known_hosts
from inferometer.cluster.join_token import read_token
from inferometer.cluster.member import Member
from inferometer.cluster.messages import FromHost, Kept, Probes, SendStreams, StreamPart, StreamsSent
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.measure.load_hosts import LoadHost

PATIENCE_S = 60.0


def collect(folder: RunFolder, listen: str, environ: Mapping[str, str], note: Callable[[str], None]) -> None:
    """Fetch from the hosts of a run what they kept; those that do not come within PATIENCE_S are named. Raises PlanError for a
    token or an address that is none, and RecordError for a run that no hosts sent."""
    known = known_hosts(folder)
    if not known:
        raise RecordError(f"{folder.path}: no load hosts sent this run, or all of theirs is here already")
    listener = Listener(listen, read_token(None, environ))
    with LoadHosts(listener, len(known), known[0].workers, note) as hosts:
        fetched = Fetched(folder, len(known))
        missing = {one.name for one in known}
        note(
            f"waiting {PATIENCE_S:.0f} s for {', '.join(sorted(missing))}, which join {listen} by themselves or by hand"
        )
        until = time.monotonic() + PATIENCE_S
        asked: set[str] = set()
        while missing and time.monotonic() < until:
            for member, message in hosts.heard(SLICE_S):
                if member.name in missing:
                    _take(folder, fetched, _number(known, member), message)
                    if isinstance(message, StreamsSent) and message.final:
                        member.send(Kept(message.run))
                        missing.discard(member.name)
            for member in hosts.alive:
                if member.name in missing and member.name not in asked:
                    asked.add(member.name)
                    number = _number(known, member)
                    member.send(SendStreams(folder.path.name, fetched.sizes(number), final=True))
        if missing:
            note(f"{', '.join(sorted(missing))}: did not come; what was fetched from there before is used")


def _number(known: tuple[LoadHost, ...], member: Member) -> int:
    return next(at for at, one in enumerate(known) if one.name == member.name)


def _take(folder: RunFolder, fetched: Fetched, number: int, message: FromHost) -> None:
    if isinstance(message, StreamPart) and message.run == folder.path.name:
        fetched.add(number, message)
    elif isinstance(message, Probes):
        fetched.compared(number, message.probes)
