"""From a plan that wants load hosts to those that have joined."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping

from inferometer.cluster.admission import Listener
from inferometer.cluster.conductor import LoadHosts
from inferometer.cluster.join_token import TOKEN_VARIABLE, read_token
from inferometer.cluster.launch.interface import Join
from inferometer.cluster.launch.spec import launcher_of
from inferometer.errors import PlanError, Problem
from inferometer.plan.schema import Plan

BY_HAND = "join"
LISTEN = "0.0.0.0:0"
LOOPBACK = "127.0.0.1:0"


@contextlib.contextmanager
def load_hosts(
    plan: Plan,
    cluster: str | None,
    listen: str | None,
    note: Callable[[str], None],
    environ: Mapping[str, str],
) -> Iterator[LoadHosts | None]:
    """The load hosts of a plan; None where this machine sends the load itself. `cluster`: what starts them (launch/), None:
    their users do. A token in the environment is used, so that hosts may have it beforehand. Raises PlanError, PeerError."""
    count = plan.instrument.hosts
    if count is None:
        if cluster is not None or listen is not None:
            flag = "--cluster" if cluster is not None else "--listen"
            raise PlanError([Problem(flag, "is for load hosts: add --hosts N")])
        yield None
        return
    if plan.target.url is None:
        words = "load hosts need a server that they can reach: add --url (`inferometer serve` starts the reference server)"
        raise PlanError([Problem("--hosts", words)])
    spec = cluster or BY_HAND
    token = read_token(None, environ) if environ.get(TOKEN_VARIABLE) else None
    listener = Listener(listen or (LOOPBACK if spec == "local" else LISTEN), token)
    with LoadHosts(listener, count, plan.instrument.workers, note) as hosts:
        address = advertised(listener, plan.target.url)
        if spec == BY_HAND:
            note(
                f"waiting for {count} load hosts; on each of them:\n  {hosts.join_line(address, known=token is not None)}"
            )
        else:
            hosts.starter = launcher_of(spec, count, plan.instrument.workers)
            hosts.starter.launch(Join(address, str(listener.token)))
        yield hosts


def advertised(listener: Listener, url: str) -> str:
    """`HOST:PORT` by which load hosts can reach a listener: of one that is bound to every address, the one from which this
    machine reaches the server."""
    host, port = listener.address
    if host in ("0.0.0.0", "::"):  # noqa: S104 - a comparison
        host = _outgoing(listener.family, url)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _outgoing(family: int, url: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((parts.hostname or "localhost", parts.port or 80))  # sends nothing
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()
