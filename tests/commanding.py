"""A command that wants load hosts, and hosts that join it, in one process: for tests of what one says to the other."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from inferometer import __version__
from inferometer.cluster.admission import ConductorLink, Listener, join
from inferometer.cluster.conductor import Holding, LoadHosts
from inferometer.cluster.messages import PROTOCOL, Hello
from inferometer.telemetry.host import environment

HERE = environment()


class Command:
    """The load hosts of a command, which hears them in a thread of its own meanwhile."""

    def __init__(self, hosts: LoadHosts, listener: Listener) -> None:
        self.hosts, self._listener = hosts, listener
        self.address = "{}:{}".format(*listener.address)

    def join(self, name: str | None, process: str, **changed: object) -> tuple[ConductorLink, str]:
        """A host's link and what it is called. Raises PlanError for one that is turned away."""
        hello = Hello(PROTOCOL, __version__, self._listener.token.secret, name, HERE, process=process)
        found: list[tuple[ConductorLink, str] | BaseException] = []

        def there() -> None:
            try:
                link, welcome = join(self.address, self._listener.token, replace(hello, **changed), 20)
                found.append((link, welcome.name))
            except BaseException as cause:
                found.append(cause)

        thread = threading.Thread(target=there)
        thread.start()
        self.until(lambda: bool(found))
        thread.join()
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]

    def until(self, ready: Callable[[], bool], patience_s: float = 20.0) -> None:
        """Hear the hosts until then."""
        ends = time.monotonic() + patience_s
        while not ready() and time.monotonic() < ends:
            list(self.hosts.heard(0.02))
        assert ready()


@contextlib.contextmanager
def commanding(wanted: int, holding: Holding | None = None) -> Iterator[Command]:
    listener = Listener("127.0.0.1:0")
    with LoadHosts(listener, wanted, 1, lambda _: None, holding) as hosts:
        yield Command(hosts, listener)
