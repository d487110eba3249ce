"""The header line that says which session a request is of, so that a router can keep a session's requests together.

Its value is the same for all requests of a session, another for each session, and another in every run: a router that remembers
it knows nothing of it from before. It tells nothing else.
"""

from __future__ import annotations

import hashlib

Field = tuple[bytes, bytes]
"""Name and value."""


class SessionHeader:
    """`salt`: of the run, at most 64 bytes, shared by its workers."""

    def __init__(self, name: str, salt: str) -> None:
        self._name, self._salt = name.encode("ascii"), salt.encode("ascii")

    def field(self, phase: int, session: int | None, row: int, cycle: int) -> Field:
        """The line of a request. One without a session is a session of its own."""
        whose = b"%d s %d %d" % (phase, session, cycle) if session is not None else b"r %d %d" % (row, cycle)
        return self._name, hashlib.blake2b(whose, key=self._salt, digest_size=16).hexdigest().encode()
