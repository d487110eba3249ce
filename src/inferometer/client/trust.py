"""Which servers are trusted over TLS, what they are shown, and which protocols they are offered."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

HTTP1, H2 = ("http/1.1",), ("h2",)


def context(
    verify: bool,
    ca_file: str | None,
    alpn: Sequence[str] = HTTP1,
    *,
    cert_file: str | None = None,
    key_file: str | None = None,
) -> ssl.SSLContext:
    """A client's settings: the system's trust, or `ca_file`, or none where `verify` is off. `cert_file`: the certificate that
    the client shows, with its key unless that is in `key_file`. Raises OSError, ssl.SSLError."""
    made = ssl.create_default_context(cafile=ca_file)
    if cert_file is not None:
        made.load_cert_chain(
            cert_file, key_file, password=""
        )  # else OpenSSL would ask for one on the terminal
    made.set_alpn_protocols(list(alpn))
    if not verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made
