"""The streams of load hosts as they arrive at the conductor, and what they become.

    journal/fetched/run                 what the hosts call this run
    journal/fetched/hosts.json          which hosts there are, in their order
    journal/fetched/K/worker-3.arrows   as the K-th host wrote it, on its own clock
    journal/fetched/K/clock.jsonl       the comparisons of its clock with the conductor's
    journal/worker-3.arrows             the same rows on the conductor's clock: from here on a stream of any run

What has arrived is on disk: should the conductor be killed, `recover` goes on from there. The folder stays until all is
here and sealed: what a host still holds is put to what it has sent.
"""

from __future__ import annotations

import re
import secrets
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
from inferometer.errors import RecordError, in_words
from inferometer.journal.documents import not_elsewhere
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import OUTCOME, PULSE
from inferometer.journal.seal import read_stream
from inferometer.journal.stream_batches import END_MARK
from inferometer.measure.load_hosts import HostClock, LoadHost

CALLED = "run"
"""In the folder of what has been fetched: see `called`."""
CLOCK, WHOLE = "clock.jsonl", "whole"
"""In a host's folder: the comparisons of its clock; there once it has sent all."""
_CALLED = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
STREAM = re.compile(r"(worker|pulse)-([0-9]{1,5})\.arrows")


class Fetched:
    """What has been fetched of one run from its hosts, which are numbered by their order."""

    def __init__(self, folder: RunFolder, hosts: int) -> None:
        self._journal, self._root, self._list = folder.journal, folder.fetched, folder.fetched_hosts
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
        (self._of(host) / WHOLE).touch()

    def whole(self, host: int) -> bool:
        """Whether they are."""
        return (self._of(host) / WHOLE).is_file()

    def outcomes(self) -> pa.Table:
        """What has become of the requests that have ended, each on its host's own clock."""
        paths = sorted(self._root.glob("*/worker-*.arrows"))
        return pa.concat_tables([read_stream(path, OUTCOME) for path in paths] or [OUTCOME.empty_table()])

    def merge(self, clocks: Mapping[int, ClockFit | None]) -> dict[int, str]:
        """Put all that is here on the conductor's clock, in the journal itself. Of hosts whose streams are damaged: why; what
        they sent stays as it is, and the others' is of use without it."""
        damaged = {}
        for number, clock in clocks.items():
            try:
                merge_host(self._of(number), self._journal, clock)
            except RecordError as cause:
                damaged[number] = str(cause)
                (self._of(number) / WHOLE).unlink(missing_ok=True)
        return damaged


def merge_host(fetched: Path, journal: Path, clock: ClockFit | None) -> None:
    """Put one host's streams on the conductor's clock. Raises RecordError for streams without any comparison of clocks."""
    for raw in sorted(fetched.glob("*.arrows")):
        if clock is None:
            raise RecordError(f"{raw}: nothing is known of its clock")
        move(raw, journal / raw.name, partial(_offsets, clock))


def _offsets(clock: ClockFit, at: NDArray[np.int64]) -> NDArray[np.int64]:
    return clock.conductor_times(at) - at


def merge_left(folder: RunFolder) -> list[str]:
    """Go on from what has been fetched, by a conductor that was killed or after one. In words: what of it cannot be read."""
    hosts = known_hosts(folder)
    clocks = {number: clock_of(folder.fetched / str(number) / CLOCK) for number in range(len(hosts))}
    damaged = Fetched(folder, len(hosts)).merge(clocks)
    return [
        f"{hosts[number].name}: what was fetched from it cannot be read, and is not in the record ({why})"
        for number, why in damaged.items()
    ]


def not_fetched(folder: RunFolder) -> list[str]:
    """The hosts that may still hold something of a run, by their names."""
    root = folder.fetched
    return [one.name for at, one in enumerate(known_hosts(folder)) if not (root / str(at) / WHOLE).is_file()]


def named(folder: RunFolder) -> str:
    """What the hosts are to call a run that begins: by its folder, and as no other. Those of two conductors that began within
    one second have one folder name, and what one host keeps of them must not be taken for one run's. It is written down for
    `called`."""
    name = f"{folder.path.name}.{secrets.token_hex(4)}"
    folder.fetched.mkdir(parents=True, exist_ok=True)
    whole_file.write(folder.fetched / CALLED, name.encode())
    return name


def called(folder: RunFolder) -> str:
    """What the hosts of a run call it, wherever its folder has been moved to since. Raises RecordError."""
    path = not_elsewhere(folder.fetched / CALLED, folder.path)
    try:
        name = whole_file.read(path, 1 << 10).decode()
    except FileNotFoundError:
        raise RecordError(f"{path}: is missing, and with it what the load hosts call this run") from None
    except (OSError, UnicodeDecodeError) as cause:
        raise RecordError(f"{path}: cannot be read ({in_words(cause)})") from cause
    if _CALLED.fullmatch(name) is None:
        raise RecordError(f"{path}: is damaged (it names no run)")
    return name


def remove(folder: RunFolder, *, keep_cut: bool) -> list[Path]:
    """Remove what has been fetched, once it is sealed. `keep_cut`: but for outcomes that could not be read to their end, whose
    hosts have removed theirs: they are what is returned."""
    listed = not_elsewhere(folder.fetched_hosts, folder.path)
    listed.unlink(missing_ok=True)  # first: without it the rest is nothing
    found = sorted(folder.fetched.glob("*/worker-*.arrows"))
    kept = [path for path in found if keep_cut and _cut(path, folder.journal / path.name)]
    if not kept and folder.fetched.is_dir():
        shutil.rmtree(folder.fetched)
    elif kept:
        for path in set(found) - set(kept):
            path.unlink()
    return kept


def _cut(raw: Path, merged: Path) -> bool:
    """Whether a stream that has been merged could not be read to its end; one that holds nothing has none."""
    if not raw.stat().st_size or not merged.is_file():
        return bool(raw.stat().st_size)
    with merged.open("rb") as file:
        file.seek(max(0, merged.stat().st_size - len(END_MARK)))
        return file.read() != END_MARK


def known_hosts(folder: RunFolder) -> tuple[LoadHost, ...]:
    """The hosts of a run that has not yet been merged; none: it has, or had none. Raises RecordError."""
    path = not_elsewhere(folder.fetched_hosts, folder.path)
    try:
        return msgspec.json.decode(whole_file.read(path), type=tuple[LoadHost, ...])
    except FileNotFoundError:
        return ()
    except msgspec.DecodeError as cause:
        raise RecordError(f"{path}: is damaged ({cause})") from cause


def hosts_of(folder: RunFolder, stated: tuple[LoadHost, ...]) -> tuple[LoadHost, ...]:
    """The hosts of a run of which not all is merged, with what is known of their clocks by now. `stated`: as its facts have
    them; none before its conductor wrote them."""
    known = known_hosts(folder)
    if len(stated) == len(known):
        known = stated
    return tuple(replace(one, clock=host_clock(folder, number)) for number, one in enumerate(known))


def host_clock(folder: RunFolder, number: int) -> HostClock | None:
    """What is known of a host's clock, while its workers lived, from the comparisons on disk."""
    fetched = folder.fetched / str(number)
    probes = _probes(fetched / CLOCK)
    if not probes:
        return None
    lived = [read_stream(path, PULSE).column("t_ns").to_numpy() for path in fetched.glob("pulse-*.arrows")]
    lived = [times for times in lived if len(times)] or [np.array([probes[0].host_ns])]
    return described(probes, int(min(times[0] for times in lived)), int(max(times[-1] for times in lived)))


def number_of(stream: str) -> int | None:
    """Of the worker that wrote a stream of this name; None: it is no stream's."""
    found = STREAM.fullmatch(stream)
    return None if found is None else int(found[2])


def described(probes: Sequence[ClockProbe], from_ns: int, until_ns: int) -> HostClock:
    """A host's clock between two instants of its own, from one comparison or more; with its offset at the first."""
    fitted = fit(probes)
    return HostClock(
        offset_ns=fitted.conductor_ns(from_ns) - from_ns,
        drift_ppm=fitted.drift * 1e6,
        bound_ns=max(fitted.bound_at(from_ns), fitted.bound_at(until_ns)),
        round_trip_ns=min(one.round_trip_ns for one in probes),
        probes=len(probes),
        stepped=fitted.stepped,
        uncompared_s=max(fitted.first_ns - from_ns, until_ns - fitted.last_ns, 0) / 1e9,
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
