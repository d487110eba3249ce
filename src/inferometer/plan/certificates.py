"""Whether the certificates and keys that a plan names can be used, found out before anything is sent: TLS itself reads them at
the first connection, and of metrics that is while a run is under way.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator

from inferometer.errors import check_machine
from inferometer.plan.server_metrics import MetricsEndpoint

MISSING = "names a file that does not exist or cannot be read"
FILES = ("ca_file", "cert_file", "key_file")
_OTHER_KEY = "KEY_VALUES_MISMATCH"


def faults(one: MetricsEndpoint, own: MetricsEndpoint | None) -> Iterator[tuple[str, str]]:
    """What is wrong with the files of an endpoint of metrics: the key of the plan and words. `own`: what the plan says of it
    alone, None for nothing."""
    missing = [name for name in FILES if _is_missing(getattr(one, name))]
    yield from ((name, MISSING) for name in missing)
    if missing:
        return
    if one.ca_file is not None and (why := untrusted(one.ca_file)) is not None:
        yield "ca_file", why
    if one.cert_file is not None and (why := _unshown(one.cert_file, one.key_file)) is not None:
        of_its_key = own is not None and own.cert_file is None and own.key_file is not None
        yield "key_file" if of_its_key else "cert_file", why


def untrusted(file: str) -> str | None:
    """Why the certificates in a file cannot be trusted, in words; None: they can."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except OSError as cause:
        check_machine(cause)
        return f"holds no certificates (PEM) that can be read ({_reason(cause)})"
    return None


def _unshown(certificate: str, key: str | None) -> str | None:
    """Why a certificate cannot be shown with this key, None: the one in its own file."""
    try:
        # Without a password OpenSSL would ask for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except OSError as cause:
        check_machine(cause)
        reason = _reason(cause)
        if reason == _OTHER_KEY:
            return "is not the certificate of its key"
        place = "beside it" if key is None else "in its own file"
        return f"cannot be shown: a certificate (PEM) and its unencrypted key {place} are needed ({reason})"
    return None


def _reason(cause: OSError) -> str:
    """OpenSSL's own word, which repeats nothing of a file."""
    found = cause.reason if isinstance(cause, ssl.SSLError) else cause.strerror
    return found or type(cause).__name__


def _is_missing(file: str | None) -> bool:
    return file is not None and not (os.path.isfile(file) and os.access(file, os.R_OK))
