"""The header `traceparent` of each request of a run of tasks (W3C Trace Context), by which a system's spans are found again.

    00-<trace id, 32 hexadecimal digits>-<span id, 16>-01

Both ids follow from the run's own id and the request, so that no column of the record has to hold them, and another run's are
others. The last byte asks for the trace to be kept.
"""

from __future__ import annotations

import hashlib

NAME = b"traceparent"


class TraceContext:
    """The ids of one run's requests."""

    def __init__(self, run: str) -> None:
        self._key = hashlib.blake2b(run.encode(), digest_size=32).digest()

    def trace_id(self, row: int, cycle: int) -> str:
        """The trace of a request: 32 hexadecimal digits, never all zero."""
        return self._digest(b"trace", row, cycle, 16)

    def field(self, row: int, cycle: int) -> tuple[bytes, bytes]:
        """The header of a request."""
        return NAME, f"00-{self.trace_id(row, cycle)}-{self.span_id(row, cycle)}-01".encode()

    def span_id(self, row: int, cycle: int) -> str:
        """The span that a request says it comes from: 16 hexadecimal digits, never all zero."""
        return self._digest(b"span", row, cycle, 8)

    def _digest(self, what: bytes, row: int, cycle: int, size: int) -> str:
        found = hashlib.blake2b(b"%b %d %d" % (what, row, cycle), key=self._key, digest_size=size).digest()
        return (found if any(found) else b"\1" * size).hex()
