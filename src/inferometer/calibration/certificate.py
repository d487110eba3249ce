"""Certificates: what a calibration found, kept on disk for the runs that follow on the same machine.

    <id>.json in $INFEROMETER_CALIBRATIONS, else in $XDG_STATE_HOME/inferometer/calibrations, where that is ~/.local/state
    unless set

A certificate speaks for one machine, kernel, Python, Inferometer and the packages its hot path is made of. If any of these has
changed since, it is not used, and the run says which. It speaks for one transport, and for as many workers as it was made with,
or fewer.

What was changed since it was written certifies nothing: its id holds a digest of all else. One that is dated more than a day
ahead of this machine's clock is passed over, for it would stay the newest for as long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from inferometer import whole_file
from inferometer.documents.certificate import (
    CalibrationRung,
    Certificate,
    CertificateLookup,
    CertificateRung,
    CitedCertificate,
)
from inferometer.documents.part import from_data
from inferometer.plan.transports import Transport
from inferometer.telemetry.host import Environment

FOLDER_VARIABLE = "INFEROMETER_CALIBRATIONS"
MOST_BYTES = 4 << 20
"""Of a certificate, which has some ten kilobytes."""
AHEAD_S = 86_400
"""How far ahead of this machine's clock a certificate may be dated."""

MACHINE = ("cpu", "cores", "machine", "kernel", "os", "python", "inferometer")
"""What of telemetry's environment has to be the same."""
Machine = Mapping[str, str | int | None]
"""The values of MACHINE."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The certificate that fits, or why there is none: `none`, `mismatch` (`why`: what differs) or `damaged`."""

    status: Literal["found", "none", "mismatch", "damaged"]
    certificate: Certificate | None = None
    why: str | None = None


def folder(environ: Mapping[str, str]) -> Path:
    """Where certificates are kept."""
    if given := environ.get(FOLDER_VARIABLE):
        return Path(given)
    state = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "inferometer" / "calibrations"


def named(certificate: Certificate) -> Certificate:
    """The certificate with its id: its date without punctuation, and eight digits of the digest of all it says."""
    return msgspec.structs.replace(certificate, id=id_of(msgspec.to_builtins(certificate)))


def id_of(content: dict[str, Any]) -> str:
    """The id of a certificate that says this, whatever version wrote it."""
    said = {name: value for name, value in content.items() if name != "id"}
    digest = hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:8]
    date = "".join(char for char in said["date"][:19] if char.isalnum())
    return f"{date}Z-{digest}"


def machine_of(environment: Environment) -> Machine:
    """The part of the client's machine that a certificate is bound to."""
    return {name: getattr(environment, name) for name in MACHINE}


def store(certificate: Certificate, where: Path) -> Path:
    """Write it, so that a reader sees all of it or nothing. Raises OSError."""
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"{certificate.id}.json"
    whole_file.write(path, msgspec.json.format(msgspec.json.encode(certificate), indent=1) + b"\n")
    return path


def read(path: Path) -> Certificate:
    """One file. Raises ValueError if it is none of this version, was changed, has no date or certifies no load, OSError."""
    try:
        encoded = whole_file.read(path, MOST_BYTES)
        certificate = msgspec.json.decode(encoded, type=Certificate)
        changed = certificate.id != id_of(msgspec.json.decode(encoded))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as cause:
        raise ValueError(f"{path.name} is damaged or of another version") from cause
    if changed:
        raise ValueError(f"{path.name} was changed: its id is of another content")
    _citation(certificate)
    _instant(certificate)
    return certificate


def _instant(certificate: Certificate) -> float:
    """Its date in seconds since the epoch. Raises ValueError."""
    try:
        return datetime.fromisoformat(certificate.date).timestamp()
    except OverflowError as cause:  # the first or the last day that there is, in another time zone
        raise ValueError(f"{certificate.date} is no date of a certificate") from cause


def find(
    where: Path, machine: Machine, packages: Mapping[str, str], workers: int, transport: Transport, now: float
) -> SearchResult:
    """The newest certificate that fits; else why the newest does not. `now`: seconds since the epoch. Never raises: no
    certificate is only a pity."""
    dated: list[tuple[float, str, Certificate]] = []
    damaged: SearchResult | None = None
    try:
        paths = sorted(where.glob("*.json"))
    except OSError:
        return SearchResult("none")
    for path in paths:
        try:
            certificate = read(path)
            dated.append((_instant(certificate), certificate.id, certificate))
        except (ValueError, OSError):
            damaged = SearchResult("damaged", why=path.name)
    mismatch: SearchResult | None = None
    for instant, _, certificate in sorted(dated, key=lambda one: one[:2], reverse=True):
        differs = differences(certificate, machine, packages, workers, transport)
        if instant > now + AHEAD_S:
            differs.append(f"dated {certificate.date}, ahead of this machine's clock")
        if not differs:
            return SearchResult("found", certificate)
        mismatch = mismatch or SearchResult("mismatch", why="; ".join(differs))
    return mismatch or damaged or SearchResult("none")


def differences(
    certificate: Certificate,
    machine: Machine,
    packages: Mapping[str, str],
    workers: int,
    transport: Transport,
) -> list[str]:
    """In words, what this machine, these packages or a run of so many workers have that the certificate does not speak for."""
    found = [
        f"{name} was {certificate.machine.get(name)}, is {machine.get(name)}"
        for name in MACHINE
        if certificate.machine.get(name) != machine.get(name)
    ]
    found += [
        f"{name} was {certificate.packages.get(name)}, is {packages.get(name)}"
        for name in sorted(certificate.packages.keys() | packages.keys())
        if certificate.packages.get(name) != packages.get(name)
    ]
    if workers > certificate.workers:
        found.append(f"made with {certificate.workers} workers, the run has {workers}")
    if transport != certificate.transport:
        found.append(f"made over {certificate.transport}, the run is over {transport}")
    return found


def cited(result: SearchResult) -> CertificateLookup:
    """What a run notes when it begins: enough to judge it by later and elsewhere."""
    certificate = result.certificate
    if certificate is None:
        return CertificateLookup(result.status, result.why)
    return CertificateLookup("found", None, _citation(certificate))


def _citation(certificate: Certificate) -> CitedCertificate:
    """What is cited of a certificate. Raises ValueError if it certifies no load."""
    rungs = tuple(_cited(rung) for rung in certificate.rungs if rung.good and rung.kind != "plan")
    return CitedCertificate(
        certificate.id,
        certificate.date,
        certificate.workers,
        certificate.timestamp_source,
        certificate.quick,
        certificate.limits,
        rungs,
        certificate.transport,
    )


def _cited(rung: CalibrationRung) -> CertificateRung:
    return from_data(
        {name: getattr(rung, name) for name in CertificateRung.__struct_fields__}, CertificateRung
    )


NO_CERTIFICATE = cited(SearchResult("none"))
"""What a run cites on a machine that was never calibrated."""
