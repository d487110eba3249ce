"""A certificate as a calibration makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inferometer.calibration import certificate as certificates
from inferometer.documents.certificate import (
    SCHEMA,
    CalibrationRung,
    Certificate,
    CertifiedLimit,
    CertifiedLimits,
    ErrorSpread,
)

ERRORS = ErrorSpread(1000, 0.01, 0.01, 0.02, 0.1, 0.01, 0.03, 0.2)
MACHINE: dict[str, str | int | None] = {name: f"some {name}" for name in certificates.MACHINE}
PACKAGES = {"msgspec": "0.18"}


def rung(kind: str, load: float, tok_s: float, request_s: float, *faults: str) -> CalibrationRung:
    """A rung of one load; broken limits make it bad."""
    itl = None if kind == "requests" else ERRORS
    return CalibrationRung(
        kind, load, tok_s, tok_s, request_s, 0.1, ERRORS, itl, ERRORS,  # type: ignore[arg-type]  # tests name kinds freely
        0.0, 0.0, 0.1, 0.1, False, "VALID", (), faults, 1,
    )  # fmt: skip


@pytest.fixture(scope="session")
def made() -> Callable[..., Certificate]:
    """`made(workers=2, ...)`: a good certificate with these members changed."""

    def make(**changes: Any) -> Certificate:
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "date": "2026-01-02T03:04:05.678Z",
            "machine": MACHINE,
            "packages": PACKAGES,
            "workers": 1,
            "timestamp_source": "kernel",
            "truth_from_kernel": True,
            "quick": False,
            "pinned": None,
            "interval_ms": 20.0,
            "limits": CertifiedLimits(CertifiedLimit(40_000.0, "server"), CertifiedLimit(2_000.0, "instrument")),
            "rungs": (
                rung("streams", 64, 3_000, 60),
                rung("streams", 1024, 40_000, 900),
                rung("requests", 2000, 2_000, 2_000),
                rung("requests", 4000, 3_900, 3_900, "ttft_p99"),
            ),
        } | changes  # fmt: skip
        return certificates.named(Certificate(id="", **content))

    return make
