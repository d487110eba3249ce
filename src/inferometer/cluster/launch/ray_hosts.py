"""Load hosts on the nodes of a Ray cluster, one a node, through a process of its own that is Ray's driver (ray_driver.py).

Ray takes over the process that connects to it: handlers of signals, threads, the way an exception is shown; and some of its
calls have no bound. In a process of its own it can be waited for within bounds, and ended.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

import inferometer
from inferometer.cluster.launch.guard import END_S, guarded
from inferometer.cluster.launch.interface import Ended, Join, failure, invalid, last_line
from inferometer.cluster.launch.local import PROGRAM
from inferometer.cluster.launch.processes import LastWords
from inferometer.cluster.launch.ray_messages import AUTO, HostEnded, Order, Refused, Report, Stage, Started
from inferometer.errors import PeerError
from inferometer.isolation import Child

COMMAND = ("{python}", "-P", "-c", PROGRAM, "worker")
PATIENCE_S = 60.0
"""For nodes with free CPUs; a cluster that grows on demand may need longer."""
IMPORT_S = 60.0
MARGIN_S = 15.0
"""Beyond what the driver allows itself: then it hangs."""
CLOSE_S = 2 * END_S + MARGIN_S
"""For hosts to end, and the cluster to be left."""
ABANDON_S = 3.0
"""The same where no host was started: a driver that waits for Ray takes no notice of the end of its input."""
_ADDRESS = re.compile(r"ray://(?:\w(?:[\w.-]*\w)?|\[[0-9A-Fa-f:.]+\]):\d{1,5}", re.ASCII)


class RayHosts:
    """A launcher on Ray. `cpus`: that a load host takes on its node; `command` and `wheel`: see ray_messages.Order.

    Raises:
        PlanError: Ray is not installed, or the address is none.
    """

    def __init__(
        self,
        address: str,
        hosts: int,
        cpus: int,
        *,
        command: Sequence[str] = COMMAND,
        wheel: Path | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        if address != AUTO and not _ADDRESS.fullmatch(address):
            raise invalid("--cluster", "a Ray cluster is ray://HOST:PORT (of Ray Client, 10001), or ray:auto")
        if wheel is not None and not (wheel.suffix == ".whl" and wheel.is_file()):
            raise invalid("--cluster", f"{wheel} is no wheel")
        if importlib.util.find_spec("ray") is None:
            raise invalid("--cluster", "Ray is not installed: pip install 'inferometer[ray]'")
        self._address, self._hosts, self._cpus = address, hosts, cpus
        self._command, self._wheel, self._patience_s = list(command), wheel, patience_s
        self._driver: Child | None = None
        self._buffer, self._token = b"", ""
        self._failures: list[str] = []
        self._started = self._closed = False

    @property
    def hosts(self) -> int:
        """As many as nodes that are needed."""
        return self._hosts

    def launch(self, join: Join) -> None:
        """See Launcher. Returns once all are started. Raises PlanError too, where Ray cannot take them as they are."""
        environ = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
        self._driver = Child(
            "inferometer.cluster.launch.ray_driver",
            called="the process that drives Ray",
            stderr=subprocess.PIPE,
            also=environ,
        )
        assert self._driver.process.stderr is not None
        self._words, self._token = LastWords(self._driver.process.stderr), join.token
        order = Order(
            address=self._address,
            hosts=self._hosts,
            cpus=self._cpus,
            command=guarded([*self._command, *join.arguments("{name}")]),
            token=join.token,
            version=inferometer.__version__,
            wheel=None if self._wheel is None else str(self._wheel.resolve()),
            patience_s=self._patience_s,
        )
        with contextlib.suppress(OSError):  # it has ended already, as its output shows
            self._driver.stdin.write(msgspec.json.encode(order) + b"\n")
            self._driver.stdin.flush()
        self._follow(Stage("importing Ray", IMPORT_S))
        self._started = True

    def _follow(self, stage: Stage) -> None:
        """Wait until the hosts are started, each stage as long as it may take."""
        while True:
            reports = self._received(stage.within_s + MARGIN_S)
            if reports is None:
                raise self._lost()
            if not reports:
                words = f"no answer within {stage.within_s + MARGIN_S:g} s while {stage.doing}"
                raise PeerError(f"Ray at {self._address}: {words}")
            for report in reports:
                if isinstance(report, Refused):
                    if report.fault == "plan":
                        raise invalid("--cluster", report.said)
                    raise PeerError(f"Ray at {self._address}: {report.said}")
                self._note(report)
                if isinstance(report, Stage):
                    stage = report
            if any(isinstance(report, Started) for report in reports):
                return

    def _received(self, patience_s: float) -> list[Report] | None:
        """The next whole messages, none if there are none in this time; None at the end of the driver's output."""
        assert self._driver is not None
        output = self._driver.stdout
        lines: list[bytes] = []
        while not lines and select.select([output], [], [], patience_s)[0]:
            data = os.read(output.fileno(), 65_536)
            if not data:
                return None
            *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [msgspec.json.decode(line, type=Report) for line in lines]

    def _note(self, report: Report) -> None:
        if isinstance(report, HostEnded):
            words = failure(Ended(report.name, report.exit_code, report.said))
            self._failures += [] if words is None else [words]
        elif isinstance(report, Refused):
            self._failures.append(f"Ray at {self._address}: {report.said}")

    def _lost(self) -> PeerError:
        """What to raise where the driver has ended."""
        assert self._driver is not None
        if (killed := self._driver.killed()) is not None:
            raise killed
        said = last_line(self._words.text(), self._token)
        return PeerError(f"Ray at {self._address}: the process that drives it ended: {said}")

    def failures(self) -> list[str]:
        """See Launcher. With a cluster that no longer answers, the last one says so."""
        while self._driver is not None and not self._closed:
            reports = self._received(0.0)
            if reports is None:
                self._closed = True
                said = last_line(self._words.text(), self._token)
                self._failures.append(f"Ray at {self._address} no longer answers, and ends its hosts: {said}")
            elif not reports:
                break
            else:
                for report in reports:
                    self._note(report)
        return self._failures

    def said(self) -> dict[str, str]:
        """See Launcher. Ray hands over what a host wrote once it has ended."""
        return {}

    def close(self) -> None:
        """See Launcher: at most CLOSE_S. What Ray still holds for a driver that was killed, it takes back itself."""
        if self._driver is None:
            return
        self.failures()
        self._closed = True
        self._driver.end(CLOSE_S if self._started else ABANDON_S)
        self._driver.close()
        self._words.close()
        self._driver = None
