"""Engine processes on this machine: which run, on which ports they listen, how much memory is theirs.

What the system shows of other users' processes depends on privileges: a process whose command line, ports or memory it hides
has None there, and a port whose owner it hides has no process or (macOS) is not listed.

An engine often is several processes (a server and its workers or runners). A process whose ancestor belongs to
the same engine is part of it.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from inferometer.telemetry.linux import ROOT, footprint
from inferometer.telemetry.machine_readings import Reading

_LOOPBACK_OR_ANY = ("127.", "::1", "0.0.0.0", "::")  # noqa: S104 - addresses to compare with, not to bind
_ANY = ("0.0.0.0", "::", "*", "")  # noqa: S104 - addresses to compare with, not to bind
_SEARCHED = 4096
"""Characters of a command line in which an engine's name is looked for."""
_RUSAGE_INFO_V0 = 0
_RUSAGE_BYTES = 1024
_FOOTPRINT_AT = 16 + 7 * 8
"""Offset of ri_phys_footprint in rusage_info_v0 (<sys/resource.h>): a UUID of 16 bytes, then user and system time, two kinds
of wake-ups, page-ins, wired and resident size."""


class Process(Reading, frozen=True):
    """A process. `command`: its words, None where hidden; `started`: in seconds since the epoch, which with the number
    identifies a process; `cpu_s`: processor time so far; `own`: this user's, or this user is root, so that its ports are
    shown."""

    pid: int
    parent: int | None
    name: str
    command: tuple[str, ...] | None
    started: float | None
    cpu_s: float | None
    own: bool = True

    @property
    def begins(self) -> str:
        """How the line begins: all in which patterns are searched. Any user of the machine can write one of megabytes."""
        return self.line[:_SEARCHED]

    @property
    def line(self) -> str:
        """The command line, else the name."""
        return " ".join(self.command) if self.command else self.name


class EngineProcess(Reading, frozen=True):
    """The first process of a running engine. `engine`: the key of the pattern that it matched; `ports`: TCP ports on which it
    or a process below it listens, empty if it surely listens on none, None where the system does not show that."""

    engine: str
    process: Process
    ports: tuple[int, ...] | None


class Listener(Reading, frozen=True):
    """A listening TCP port and its process; None where the system hides it."""

    address: str
    port: int
    pid: int | None


def processes() -> tuple[Process, ...]:
    """All processes that this user may see, by number."""
    found = []
    for one in psutil.process_iter(["ppid", "name", "cmdline", "create_time", "cpu_times", "uids"]):
        info = one.info
        cpu, users = info["cpu_times"], info["uids"]
        found.append(
            Process(
                pid=one.pid,
                parent=info["ppid"],
                name=info["name"] or "",
                command=tuple(info["cmdline"]) if info["cmdline"] else None,
                started=info["create_time"],
                cpu_s=None if cpu is None else cpu.user + cpu.system,
                own=os.geteuid() == 0 or (users is not None and users.effective == os.geteuid()),
            )
        )
    return tuple(sorted(found, key=lambda process: process.pid))


class Listening(Reading, frozen=True):
    """The listening TCP ports. `complete`: every one is listed, with its process."""

    ports: tuple[Listener, ...]
    complete: bool


def listening() -> Listening:
    """The listening TCP ports that the system shows, each with its process where it shows that too."""
    try:
        found = tuple(_listeners(psutil.net_connections("tcp")))
        return Listening(found, complete=all(one.pid is not None for one in found))
    except (psutil.Error, OSError):
        return _of_own_processes()  # macOS shows them to the owner of the process only


def _of_own_processes() -> Listening:
    found: list[Listener] = []
    complete = True
    for process in psutil.process_iter():
        ask = getattr(process, "net_connections", None) or process.connections  # the second before psutil 6
        try:
            found += _listeners(ask("tcp"), process.pid)
        except psutil.NoSuchProcess:
            continue
        except (psutil.Error, OSError):
            complete = False
    return Listening(tuple(found), complete)


def _listeners(connections: Iterable[Any], pid: int | None = None) -> Iterator[Listener]:
    for one in connections:
        if one.status == psutil.CONN_LISTEN:
            yield Listener(one.laddr[0], one.laddr[1], pid or one.pid)


def process_of_port(port: int, found: Listening) -> int | None:
    """The process that listens on a port of this machine's loopback interface or of all interfaces; None: hidden, or none.

    Where several share the port (SO_REUSEPORT), the one with the lowest number.
    """
    return min(
        (
            one.pid
            for one in found.ports
            if one.port == port and one.pid is not None and one.address.startswith(_LOOPBACK_OR_ANY)
        ),
        default=None,
    )


def taking(found: Iterable[Listener], port: int, host: str) -> tuple[Listener, ...]:
    """Those that take connections to `port` at `host`, a loopback address or name. A listener on the address itself goes before
    one on all addresses, and those on other addresses are other servers, though the port is the same."""
    mine = [one for one in found if one.port == port]
    own = [one for one in mine if one.address in (host, f"::ffff:{host}")]
    if not own and not _is_address(host):
        own = [
            one
            for one in mine
            if one.address == "::1" or one.address.removeprefix("::ffff:").startswith("127.")
        ]
    return tuple(own or [one for one in mine if one.address in _ANY])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def own_line(running: Iterable[Process]) -> frozenset[int]:
    """The numbers of this process and its ancestors. A shell with `inferometer bench --engines ollama` names an engine, and
    is none."""
    parents = {one.pid: one.parent for one in running}
    pid: int | None = os.getpid()
    line: set[int] = set()
    while pid is not None and pid not in line:
        line.add(pid)
        pid = parents.get(pid)
    return frozenset(line)


def engine_processes(
    patterns: Mapping[str, Sequence[str]],
    running: Sequence[Process],
    found: Listening,
    apart: Collection[int] = (),
) -> tuple[EngineProcess, ...]:
    """The first process of each running engine, by number.

    Args:
        patterns: see `engine_of`.
        running: as of `processes`.
        found: as of `listening`.
        apart: numbers of processes that are no engine's, as of `own_line`.
    """
    by_pid = {one.pid: one for one in running}
    engine = {
        one.pid: key
        for one in running
        if one.pid not in apart and (key := engine_of(one, patterns)) is not None
    }
    heads = {pid: _head(by_pid[pid], engine, by_pid) for pid in engine}
    ports: dict[int, set[int]] = {}
    for listener in found.ports:
        head = _owner(listener.pid, heads, by_pid)
        if head is not None:
            ports.setdefault(head, set()).add(listener.port)
    return tuple(
        EngineProcess(
            engine[pid],
            by_pid[pid],
            tuple(sorted(ports[pid])) if pid in ports else () if found.complete or by_pid[pid].own else None,
        )
        for pid in sorted(set(heads.values()))
    )


def engine_of(process: Process, patterns: Mapping[str, Sequence[str]]) -> str | None:
    """The key of the engine that a process is of: the first of whose regular expressions one is found in how its command line
    begins; None: of none."""
    line = process.begins
    return next(
        (key for key, several in patterns.items() if any(re.search(one, line) for one in several)), None
    )


def duplicates(found: Iterable[EngineProcess]) -> dict[str, tuple[EngineProcess, ...]]:
    """The engines of which more than one instance listens, or may listen, with their first processes (asiai's methodology,
    Quality gates). A process that surely listens on no port, such as a command-line client, is no instance."""
    by_engine: dict[str, list[EngineProcess]] = {}
    for one in found:
        if one.ports is None or one.ports:
            by_engine.setdefault(one.engine, []).append(one)
    return {key: tuple(several) for key, several in by_engine.items() if len(several) > 1}


def family(pid: int, running: Iterable[Process]) -> tuple[int, ...]:
    """The number of a process and of all below it: a model is often in the memory of a child."""
    children: dict[int, list[int]] = {}
    for one in running:
        if one.parent is not None and one.parent != one.pid:
            children.setdefault(one.parent, []).append(one.pid)
    found, waiting = [pid], [pid]
    while waiting:
        below = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found += below
        waiting += below
    return tuple(sorted(found))


def physical_footprint(pid: int, root: Path = ROOT) -> int | None:
    """Bytes of memory that belong to a process; None where the system does not show them.

    Linux: PSS and the share of swap, of smaps_rollup. macOS: ri_phys_footprint, which Activity Monitor shows; written from the
    header and not yet tried on a Mac. Memory of an accelerator with its own is in neither.
    """
    if sys.platform == "darwin":
        return _ri_phys_footprint(pid)
    try:
        return footprint((root / f"proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return None


def _ri_phys_footprint(pid: int) -> int | None:
    buffer = ctypes.create_string_buffer(_RUSAGE_BYTES)
    try:
        failed = ctypes.CDLL(None).proc_pid_rusage(pid, _RUSAGE_INFO_V0, buffer)
    except (OSError, AttributeError):
        return None
    return None if failed else ctypes.c_uint64.from_buffer(buffer, _FOOTPRINT_AT).value


def _head(process: Process, engine: Mapping[int, str], by_pid: Mapping[int, Process]) -> int:
    """The farthest ancestor of the same engine, whatever stands between."""
    head, one, passed = process.pid, process, {process.pid}
    while one.parent is not None and one.parent in by_pid and one.parent not in passed:
        one = by_pid[one.parent]
        passed.add(one.pid)
        if engine.get(one.pid) == engine[process.pid]:
            head = one.pid
    return head


def _owner(pid: int | None, heads: Mapping[int, int], by_pid: Mapping[int, Process]) -> int | None:
    """The first process of the engine that a process belongs to, by itself or through an ancestor."""
    passed: set[int] = set()
    while pid is not None and pid not in passed:
        if pid in heads:
            return heads[pid]
        passed.add(pid)
        pid = by_pid[pid].parent if pid in by_pid else None
    return None
