"""A TLS certificate for this machine's loopback address, made for one calibration: nobody else is asked to trust it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from inferometer.errors import PlanError, Problem

NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class LocalIdentity:
    """PEM files: the authority that a client trusts, a certificate of its, and the key."""

    authority: Path
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """For a client that trusts this authority and no other."""
        return ssl.create_default_context(cafile=self.authority)


def local_identity(folder: Path) -> LocalIdentity:
    """A new one, in a folder that only its owner may read. Raises PlanError where trustme is not installed."""
    try:
        import trustme
    except ImportError:
        words = "a calibration over TLS needs trustme, which is not installed: pip install 'inferometer[tls]'"
        raise PlanError([Problem("--transport", words)]) from None
    made = LocalIdentity(*(folder / name for name in ("authority.pem", "certificate.pem", "key.pem")))
    authority = trustme.CA()
    issued = authority.issue_cert(*NAMES)
    authority.cert_pem.write_to_path(made.authority)
    issued.private_key_pem.write_to_path(made.key)
    for number, part in enumerate(issued.cert_chain_pems):
        part.write_to_path(made.certificate, append=number > 0)
    return made
