"""Which engines run, found by asking: every known port of the loopback interface, or given URLs, in parallel.

One look at one place asks what all adapters ask (engines/adapters/registry.py), one request after the other, and ends early
where nothing can come of it:

| at the first request        | what is there             |
| --------------------------- | ------------------------- |
| the connection is refused   | `refused`: nothing        |
| no answer in time           | `hangs`                   |
| bytes that break HTTP       | `not_http`                |
| closed without an answer    | `closed`                  |
| more than an engine answers | `too_large`               |

Later requests that fail leave their reply unknown, and two without an answer in time end the look. Everything is over by one
deadline for all. Nothing is sent that changes anything, and no key goes to a port that merely listens here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from msgspec import convert, structs

from inferometer.addresses import is_loopback, shown
from inferometer.client.http_client import Unanswered
from inferometer.documents.detection import (
    SCHEMA,
    DetectedEndpoint,
    DetectedModel,
    Detection,
    PortProcess,
    State,
)
from inferometer.drive.probe import Endpoint
from inferometer.engines.adapters.adapter import Adapter, EngineFacts, Reply, ServedModel
from inferometer.engines.adapters.fields import MODELS, text
from inferometer.engines.adapters.registry import ADAPTERS, asks, ports, recognised
from inferometer.studies.engine_client import EngineClient
from inferometer.telemetry import processes as machine

BUDGET_S = 5.0
"""For everything."""
PATIENCE_S = 2.0
"""For the first answer of a server, and for each further one."""
_WORKERS = 64
_STATES: Mapping[str, State] = {
    "refused": "refused",
    "timeout": "hangs",
    "not_http": "not_http",
    "too_large": "too_large",
    "tls": "not_http",
    "closed": "closed",
}
PATTERNS = {key: one.processes for key, one in ADAPTERS.items()}


@dataclass(frozen=True, slots=True)
class Local:
    """This machine's processes and listening ports at one instant."""

    running: tuple[machine.Process, ...]
    listening: machine.Listening

    @classmethod
    def now(cls) -> Local:
        """As the system shows them now."""
        return cls(machine.processes(), machine.listening())

    def engine_ports(self) -> tuple[int, ...]:
        """The ports on which the first processes of engines listen; their workers' are for themselves."""
        apart = machine.own_line(self.running)
        heads = machine.engine_processes(PATTERNS, self.running, self.listening, apart)
        pids = {one.process.pid for one in heads}
        return tuple(sorted({one.port for one in self.listening.ports if one.pid in pids}))

    def listeners(self, port: int, host: str = "localhost") -> tuple[machine.Process, ...] | None:
        """The processes that take connections to a port at this host, a loopback address or name; None where the system does
        not say."""
        pids = {one.pid for one in machine.taking(self.listening.ports, port, host)}
        if not pids or None in pids:
            return None
        return tuple(one for one in self.running if one.pid in pids)

    def commands(self, pids: Iterable[int]) -> tuple[str, ...]:
        """How the command lines begin of processes and of all below them."""
        several = {pid for head in pids for pid in machine.family(head, self.running)}
        return tuple(one.begins for one in self.running if one.pid in several)


@dataclass(frozen=True, slots=True)
class Detected:
    """A place and what is there; `adapter` and `facts` if that is one known engine."""

    endpoint: DetectedEndpoint
    adapter: Adapter | None = None
    facts: EngineFacts | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """One look at one place: what it came to if nothing answered, and the replies by path."""

    state: State | None
    replies: Mapping[str, Reply]
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look: base URLs, and ports of the loopback interface."""

    urls: tuple[str, ...]
    ports: tuple[int, ...]


def places(urls: Sequence[str], numbers: Sequence[int] | None, here: Local) -> Places:
    """The URLs and ports that are asked for; without any, the engines' usual ports and those of engine processes."""
    if numbers is None:
        numbers = () if urls else sorted({*ports(), *here.engine_ports()})
    return Places(tuple(dict.fromkeys(urls)), tuple(dict.fromkeys(numbers)))


def detect(
    where: Places,
    here: Local,
    *,
    headers: Mapping[str, str] | None = None,
    budget_s: float = BUDGET_S,
) -> tuple[Detected, ...]:
    """What is at these places, in their order, URLs first; ports where nothing listens are left out.

    Args:
        where: as of `places`.
        here: this machine's processes.
        headers: sent to the URLs only.
        budget_s: all is over by then.

    Raises PlanError for a URL whose host is no name.
    """
    until = time.monotonic() + budget_s
    clients = [EngineClient(url, headers) for url in where.urls]
    with ThreadPoolExecutor(_WORKERS) as pool:
        given = [pool.submit(_look_closing, client, until) for client in clients]
        scanned = [pool.submit(_look_at_port, number, until) for number in where.ports]
        looks = [(one.endpoint, found.result()) for one, found in zip(clients, given, strict=True)]
        seen = [one.result() for one in scanned]
    found = [_detected(place, looked, here) for place, looked in looks]
    for at_port in seen:
        found += _apart([_detected(place, looked, here) for place, looked in at_port])
    return tuple(found)


def _apart(found: Sequence[Detected]) -> Sequence[Detected]:
    """What answers at the two loopback addresses of a port: two servers if different processes do, or, where the system does
    not show these, different engines or models; else the first, for many servers listen at both."""
    if len(found) < 2:
        return found
    first, second = (one.endpoint for one in found)
    if first.processes is not None and second.processes is not None:
        return found[: 1 if {*_pids(first)} & {*_pids(second)} else 2]
    same = _shape(first) == _shape(second)
    return found[: 1 if same else 2]


def _pids(one: DetectedEndpoint) -> tuple[int, ...]:
    return tuple(process.pid for process in one.processes or ())


def _shape(one: DetectedEndpoint) -> tuple[object, ...]:
    """What two looks at one server have in common."""
    return one.state, one.engine, one.version, tuple(model.name for model in one.models)


def document(where: Places, found: Iterable[Detected]) -> Detection:
    """A detection as a document."""
    urls = tuple(map(shown, where.urls))
    return Detection(SCHEMA, where.ports, urls, tuple(one.endpoint for one in found))


def _look_at_port(number: int, until: float) -> list[tuple[Endpoint, Look]]:
    """At each loopback address, of IPv4 and IPv6, that takes a connection."""
    found = []
    for host in ("127.0.0.1", "[::1]"):
        client = EngineClient(f"http://{host}:{number}")
        look = _look_closing(client, until)
        if look.state not in ("refused", "failed"):
            found.append((client.endpoint, look))
    return found


def _look_closing(client: EngineClient, until: float) -> Look:
    with client:
        return look(client, until)


def look(client: EngineClient, until: float) -> Look:
    """Ask everything that adapters ask. `until`: on the monotonic clock, s."""
    replies: dict[str, Reply] = {}
    late = 0
    for ask in asks():
        left = until - time.monotonic()
        if left <= 0 or late > 1:
            break
        try:
            replies[ask.path] = client.call(ask, min(left, PATIENCE_S))
        except Unanswered as cause:
            if not replies:
                return Look(_STATES.get(cause.reason, "failed"), {}, cause.reason)
            late += cause.reason == "timeout"
    if not replies:
        return Look("hangs", {}, "timeout")
    return Look(None, replies)


def _detected(place: Endpoint, looked: Look, here: Local) -> Detected:
    listeners = here.listeners(place.port, place.host) if is_loopback(place.url) else None
    owners = None if listeners is None else tuple(map(_process, listeners))
    found = recognised(looked.replies)
    if len(found) == 1:
        return _engine(found[0], looked, here, DetectedEndpoint(shown(place.url), "engine", processes=owners))
    state: State = looked.state or ("proxy" if found else "locked" if _locked(looked.replies) else "unknown")
    others = tuple(one.key for one in found)
    detail = looked.detail or _server(looked.replies)
    return Detected(DetectedEndpoint(shown(place.url), state, others=others, processes=owners, detail=detail))


def _engine(adapter: Adapter, looked: Look, here: Local, known: DetectedEndpoint) -> Detected:
    facts = adapter.read(looked.replies)
    pids = [one.pid for one in known.processes or ()]
    endpoint = structs.replace(
        known,
        engine=adapter.key,
        title=adapter.title,
        version=facts.version,
        runner=facts.runner or adapter.runner_of(here.commands(pids)),
        interface=adapter.interface,
        tried=adapter.tried,
        models=tuple(map(_model, facts.models)),
    )
    return Detected(endpoint, adapter, facts)


def _model(model: ServedModel) -> DetectedModel:
    """The document's form of it, which has the same members."""
    return convert(model, DetectedModel, from_attributes=True)


def _process(process: machine.Process) -> PortProcess:
    return PortProcess(process.pid, process.name, machine.engine_of(process, PATTERNS))


def _locked(replies: Mapping[str, Reply]) -> bool:
    """Without a key it answers nothing, or at least not the one route that engines share."""
    refusals = {path for path, reply in replies.items() if reply.status in (401, 403)}
    return MODELS in refusals or (bool(replies) and len(refusals) == len(replies))


def _server(replies: Mapping[str, Reply]) -> str | None:
    """What the server calls itself in its headers."""
    return next((name for reply in replies.values() if (name := text(reply.headers.get("server")))), None)
