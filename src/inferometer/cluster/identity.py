"""A conductor's TLS certificate, made from its token's secret alone: the same secret gives the same key and the same
certificate, byte for byte. So `recover` is the conductor that hosts of a killed one wait for, and no key was ever on disk.

Ed25519 signatures are deterministic (RFC 8032), and all else in the certificate is fixed. Nobody has signed it but itself: the
token, not a name or an authority, is why a host believes it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NAME = "inferometer conductor"


def certificate_of(secret: bytes) -> bytes:
    """The certificate in DER. Raises PlanError where cryptography is not installed."""
    return _certificate(_key(secret))


def server_context(secret: bytes) -> ssl.SSLContext:
    """For the conductor's side of TLS. Raises PlanError where cryptography is not installed."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = _key(secret)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    # The library takes files only. This one is in memory where there is such a place, its owner's, and gone at once.
    with tempfile.TemporaryDirectory(dir=_in_memory()) as folder:
        chain = Path(folder, "conductor.pem")
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        chain.touch(0o600)
        chain.write_text(private + ssl.DER_cert_to_PEM_cert(_certificate(key)))
        made.load_cert_chain(chain)
    return made


def _in_memory() -> str | None:
    place = Path("/dev/shm")  # noqa: S108 - a folder below it, of mode 0700
    return str(place) if place.is_dir() else None


def _key(secret: bytes) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ModuleNotFoundError as cause:
        words = "load hosts need cryptography, which is not installed: pip install 'inferometer[hosts]'"
        raise PlanError([Problem("--hosts", words)]) from cause
    seed = hashlib.blake2b(b"conductor's key", key=secret, digest_size=32).digest()
    return Ed25519PrivateKey.from_private_bytes(seed)


def _certificate(key: Ed25519PrivateKey) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, NAME)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2120, 1, 1, tzinfo=dt.UTC))
        .sign(key, None)
    )
    return made.public_bytes(Encoding.DER)
