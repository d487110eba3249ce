"""The token by which a load host and its conductor know each other: a secret, and the fingerprint of the conductor's
certificate. Whoever holds it talks to that conductor and to nobody in between; whoever lacks it learns nothing.

It travels in an environment variable or a file, since a process list shows command lines to everybody.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inferometer.errors import PlanError, Problem

TOKEN_VARIABLE = "INFEROMETER_JOIN_TOKEN"  # noqa: S105 - a name, no secret
SECRET_BYTES = 18
DIGEST_BYTES = 30
"""Of SHA-256, whose first 240 bits are compared: with the secret a multiple of three bytes, so that base64 pads nothing."""


@dataclass(frozen=True, slots=True)
class JoinToken:
    """`secret`: of one command and its hosts; `fingerprint`: of the conductor's certificate, in DER."""

    secret: bytes = field(repr=False)
    fingerprint: bytes

    @classmethod
    def parse(cls, text: str) -> JoinToken:
        """From its text. Raises PlanError, without the text."""
        try:
            data = base64.b64decode(text.strip(), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if len(data) != SECRET_BYTES + DIGEST_BYTES:
            raise PlanError(
                [Problem(TOKEN_VARIABLE, "is no join token: copy it whole from what the conductor printed")]
            )
        return cls(data[:SECRET_BYTES], data[SECRET_BYTES:])

    def __str__(self) -> str:
        return base64.b64encode(self.secret + self.fingerprint, altchars=b"-_").decode()

    def is_of(self, certificate: bytes) -> bool:
        """Whether this certificate (DER) is the conductor's."""
        return hmac.compare_digest(self.fingerprint, fingerprint_of(certificate))

    def admits(self, secret: bytes) -> bool:
        """Whether this is the secret."""
        return hmac.compare_digest(self.secret, secret)

    def probe_key(self) -> bytes:
        """What the clock's probes, which are datagrams, are signed with."""
        return hashlib.blake2b(b"clock probes", key=self.secret, digest_size=32).digest()


def fingerprint_of(certificate: bytes) -> bytes:
    """Of a certificate in DER."""
    return hashlib.sha256(certificate).digest()[:DIGEST_BYTES]


def read_token(file: Path | None, environ: Mapping[str, str]) -> JoinToken:
    """From a file, `-` for standard input, else from the environment. Raises PlanError."""
    if file is None:
        text = environ.get(TOKEN_VARIABLE, "")
        if not text:
            words = f"no token: set {TOKEN_VARIABLE} to what the conductor printed, or name a --token-file"
            raise PlanError([Problem("--join", words)])
        return JoinToken.parse(text)
    try:
        return JoinToken.parse(sys.stdin.readline() if str(file) == "-" else file.read_text()[:1000])
    except (OSError, UnicodeDecodeError) as cause:
        raise PlanError([Problem("--token-file", f"cannot be read ({cause})")]) from cause
