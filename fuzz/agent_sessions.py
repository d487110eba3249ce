"""Recorded agent sessions in all formats: sessions that hang together and can be stored as they are sent, or what is wrong."""

from __future__ import annotations

from contextlib import suppress

from fuzz.bounds import bounded_memory
from fuzz.place import lain
from fuzz.problems import told
from inferometer.errors import PlanError
from inferometer.workload.agent_sessions.readers import READERS, reader_of
from inferometer.workload.agent_sessions.stored_sessions import Encoding, Unsendable

FORMATS = ("auto", *READERS)


def check(data: bytes) -> None:
    """The first byte chooses the format that a plan names; the rest is the file."""
    if not data:
        return
    path = lain("agent_sessions", data[1:])
    encoding = Encoding(server=bool(data[0] & 64), plain=bool(data[0] & 128))
    with bounded_memory():
        try:
            for session in reader_of(path, FORMATS[data[0] % 32 % len(FORMATS)]).sessions(path):
                assert session.fault() is None
                for step in session.steps:
                    assert step.delay.total_ns >= 0
                with suppress(Unsendable):
                    encoding.stored(session)
        except PlanError as error:
            told(error)
