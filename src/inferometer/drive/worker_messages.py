"""Messages between the run and a worker process. Two parts of a job, the address and the headers, may hold secrets: a job
travels through a pipe and is never written down.
"""

from __future__ import annotations

import msgspec

from inferometer.drive.answer_limits import UNLESS_SET, AnswerLimits
from inferometer.drive.channel import RequestHead
from inferometer.drive.channel_kinds import Protocol
from inferometer.engines.message_form import MessageForm


class Job(msgspec.Struct, frozen=True):
    """One worker's orders. Times in ns."""

    api: str
    """The interface's name: the worker loads its dialect."""
    folder: str
    worker: int
    workers: int
    family: int
    address: list[str | int]
    protocol: Protocol
    heads: list[RequestHead]
    """One for all requests, or one for each class."""
    secrets: list[str]
    tls: bool
    tls_verify: bool
    tls_ca_file: str | None
    server_name: str
    reuse: bool
    open_loop: bool
    slots: int
    """Closed loop: requests in flight over all workers."""
    prepare: int
    """Exchanges that this worker opens connections for, ahead of need."""
    timeout_ns: int
    connect_timeout_ns: int
    drain_ns: int
    form: MessageForm | None = None
    """Of the interface's messages, where the plan describes them."""
    limits: AnswerLimits = UNLESS_SET
    streams: int = 1
    """Exchanges at once on a connection, where the protocol can carry several."""
    session_header: str | None = None
    session_salt: str = ""
    """The name of the header line that says which session a request is of, and what its values are made of."""
    trace_run: str | None = None
    """The run whose requests carry a trace of their own each (trace_context.py)."""


class Go(msgspec.Struct, frozen=True, tag="go"):
    """Begin a phase at `start_ns`. `duration_ns` 0: until all is sent. `again`: go through the schedule over and over.

    `appended`: the phase's rows are in the appended schedule, and this is the row that it begins with. `part`: only the rows
    from the first up to before the second. `cycle`: how often they were gone through before; then with other nonces.
    """

    phase: int
    start_ns: int
    duration_ns: int
    again: bool
    appended: int | None = None
    part: tuple[int, int] | None = None
    cycle: int = 0


class More(msgspec.Struct, frozen=True, tag="more"):
    """The appended schedule may be read up to `size` bytes. `final`: that is all of it."""

    size: int
    final: bool


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Send no more; let what is in flight end within `drain_ns`."""

    drain_ns: int


class Quit(msgspec.Struct, frozen=True, tag="quit"):
    """No further phase comes."""


Command = Go | More | Stop | Quit


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Connections stand, as far as the server took them."""


class PhaseDone(msgspec.Struct, frozen=True, tag="done"):
    """All requests of a phase have ended. Of its reads so many had a kernel stamp, and so many had none. `single_use`: the
    server closes each connection after one answer, so that every request gets a fresh one."""

    phase: int
    stamped: int
    unstamped: int
    single_use: bool


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The worker ends before its time: why, in words, and a code of SHORTAGES if the machine ran out of something. The log may
    be on the very disk that is full."""

    reason: str
    shortage: str | None


Report = Ready | PhaseDone | Failed
