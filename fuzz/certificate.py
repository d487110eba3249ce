"""Certificates of calibration, and what a run's facts cite of one: as they were written, or refused by name."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from fuzz.bounds import bounded_memory
from fuzz.place import FOLDER
from inferometer import foreign_json
from inferometer.calibration.certificate import cited, differences, find, id_of, named, read, store
from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.part import to_data

WHERE = FOLDER / "certificates"


def check(data: bytes) -> None:
    """Read it as the only certificate there is, and as a run's citation."""
    WHERE.mkdir(exist_ok=True)
    path = WHERE / "20260102T030405Z-00000000.json"
    path.write_bytes(signed(data))
    with bounded_memory():
        lookup = find(WHERE, {}, {}, 1, "http/1.1", math.inf)
        assert lookup.status in ("mismatch", "damaged")
        citation(data)
    try:
        certificate = read(path)
    except ValueError:
        assert lookup.status == "damaged"
        return
    own = certificate.machine, certificate.packages, certificate.workers, certificate.transport
    assert not differences(certificate, *own)
    found = find(WHERE, *own, math.inf)
    facts = cited(found)
    assert CertificateLookup.of_facts(to_data(facts.facts())) == facts
    ours = named(certificate)
    written = store(ours, FOLDER / "written")
    assert read(written) == ours
    written.unlink()


def signed(data: bytes) -> bytes:
    """The certificate with the id of what it says, else no change of it would be read; what is none as it is."""
    try:
        content: Any = msgspec.json.decode(data)
        if isinstance(content, dict) and isinstance(content.get("date"), str):
            return msgspec.json.encode(content | {"id": id_of(content)})
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):
        return data
    return data


def citation(data: bytes) -> None:
    """What run/evaluate.py takes for a damaged one is refused that way."""
    try:
        facts = foreign_json.loads(data)
    except foreign_json.NotJSON:
        return
    if isinstance(facts, dict):
        try:
            CertificateLookup.of_facts(facts)
        except (msgspec.ValidationError, LookupError, TypeError):
            return
