"""The streams of load hosts as they arrive at the conductor, and what they become.

    journal/fetched/hosts.json          which hosts there are, in their order
    journal/fetched/K/worker-3.arrows   as the K-th host wrote it, on its own clock
    journal/fetched/K/clock.jsonl       the comparisons of its clock with the conductor's
    journal/worker-3.arrows             the same rows on the conductor's clock: from here on a stream of any run

What has arrived is on disk: should the conductor be killed, `recover` goes on from there.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inferometer import whole_file
from inferometer.cluster.clock_fit import ClockFit, ClockProbe, fit
from inferometer.cluster.merging import move
from inferometer.cluster.messages import StreamPart
from inferometer.errors import RecordError
from inferometer.journal.documents import not_elsewhere
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import OUTCOME
from inferometer.journal.seal import read_stream
from inferometer.measure.load_hosts import HostClock, LoadHost

CLOCK = "clock.jsonl"
STREAM = re.compile(r"(worker|pulse)-[0-9]{1,5}\.arrows")


class Fetched:
    """What has been fetched of one run from its hosts, which are numbered by their order."""

    def __init__(self, folder: RunFolder, hosts: int) -> None:
        self._journal, self._root, self._list = folder.journal, folder.fetched, folder.fetched_hosts
        self._whole: set[int] = set()
        for number in range(hosts):
            self._of(number).mkdir(parents=True, exist_ok=True)

    def begun(self, hosts: Sequence[LoadHost]) -> None:
        """From now on hosts may hold what was measured: write down which there are, unless that is done."""
        if not self._list.exists():
            whole_file.write(self._list, msgspec.json.encode(list(hosts)))

    def _of(self, host: int) -> Path:
        return self._root / str(host)

    def sizes(self, host: int) -> dict[str, int]:
        """How much of each stream of a host is here, in bytes."""
        return {path.name: path.stat().st_size for path in self._of(host).glob("*.arrows")}

    def add(self, host: int, part: StreamPart) -> None:
        """Append the next bytes of a stream. Raises RecordError for a name that is no stream's."""
        if STREAM.fullmatch(part.name) is None:
            raise RecordError(f"a load host calls a stream {part.name[:40]!r}")
        with (self._of(host) / part.name).open("ab") as file:
            file.write(part.data)

    def compared(self, host: int, probes: list[ClockProbe]) -> None:
        """Keep comparisons of a host's clock."""
        with (self._of(host) / CLOCK).open("ab") as file:
            file.writelines(msgspec.json.encode(one) + b"\n" for one in probes)

    def complete(self, host: int) -> None:
        """All streams of a host are here."""
        self._whole.add(host)

    def whole(self, host: int) -> bool:
        """Whether they are."""
        return host in self._whole

    def outcomes(self) -> pa.Table:
        """What has become of the requests that have ended, each on its host's own clock."""
        paths = sorted(self._root.glob("*/worker-*.arrows"))
        return pa.concat_tables([read_stream(path, OUTCOME) for path in paths] or [OUTCOME.empty_table()])

    def merge(self, clocks: Mapping[int, ClockFit | None]) -> None:
        """Put all that is here on the conductor's clock, in the journal itself."""
        for number, clock in clocks.items():
            merge_host(self._of(number), self._journal, clock)
        shutil.rmtree(self._root)


def merge_host(fetched: Path, journal: Path, clock: ClockFit | None) -> None:
    """Put one host's streams on the conductor's clock. Raises RecordError for streams without any comparison of clocks."""
    for raw in sorted(fetched.glob("*.arrows")):
        if clock is None:
            raise RecordError(f"{raw}: nothing is known of its clock")
        move(raw, journal / raw.name, partial(_offsets, clock))


def _offsets(clock: ClockFit, at: NDArray[np.int64]) -> NDArray[np.int64]:
    return clock.conductor_times(at) - at


def merge_left(folder: RunFolder) -> bool:
    """Go on from what a conductor that was killed had fetched; whether there was any."""
    root = folder.fetched
    if not root.is_dir():
        return False
    for number in range(len(known_hosts(folder))):
        merge_host(root / str(number), folder.journal, clock_of(root / str(number) / CLOCK))
    shutil.rmtree(root)
    return True


def known_hosts(folder: RunFolder) -> tuple[LoadHost, ...]:
    """The hosts of a run that has not yet been merged; none: it has, or had none. Raises RecordError."""
    path = not_elsewhere(folder.fetched_hosts, folder.path)
    try:
        return msgspec.json.decode(whole_file.read(path), type=tuple[LoadHost, ...])
    except FileNotFoundError:
        return ()
    except msgspec.DecodeError as cause:
        raise RecordError(f"{path}: is damaged ({cause})") from cause


def hosts_of(folder: RunFolder) -> tuple[LoadHost, ...]:
    """The hosts of a run that was cut short, with what is known of their clocks."""
    return tuple(
        replace(one, clock=host_clock(folder, number)) for number, one in enumerate(known_hosts(folder))
    )


def host_clock(folder: RunFolder, number: int) -> HostClock | None:
    """What is known of a host's clock from the comparisons on disk."""
    probes = _probes(folder.fetched / str(number) / CLOCK)
    return described(probes, probes[0].host_ns) if probes else None


def described(probes: Sequence[ClockProbe], at_host_ns: int) -> HostClock:
    """A host's clock, with its offset at an instant of its own, from one comparison or more."""
    fitted = fit(probes)
    return HostClock(
        offset_ns=fitted.conductor_ns(at_host_ns) - at_host_ns,
        drift_ppm=fitted.drift * 1e6,
        bound_ns=fitted.bound_ns,
        round_trip_ns=min(one.round_trip_ns for one in probes),
        probes=len(probes),
        stepped=fitted.stepped,
    )


def clock_of(path: Path) -> ClockFit | None:
    """The fit of the comparisons in a file, as far as it is whole; None: there are none. Raises RecordError."""
    probes = _probes(path)
    return fit(probes) if probes else None


def _probes(path: Path) -> list[ClockProbe]:
    try:
        lines = whole_file.read(path).split(b"\n")[:-1]
        return [msgspec.json.decode(line, type=ClockProbe) for line in lines]
    except FileNotFoundError:
        return []
    except msgspec.DecodeError as cause:
        raise RecordError(f"{path}: is damaged ({cause})") from cause
