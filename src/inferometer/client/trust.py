"""Which servers are trusted over TLS, and which protocols they are offered."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

HTTP1 = ("http/1.1",)


def context(verify: bool, ca_file: str | None, alpn: Sequence[str] = HTTP1) -> ssl.SSLContext:
    """A client's settings: the system's trust, or `ca_file`, or none where `verify` is off. Raises OSError, ssl.SSLError."""
    made = ssl.create_default_context(cafile=ca_file)
    made.set_alpn_protocols(list(alpn))
    if not verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made
