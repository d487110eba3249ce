"""Certificates on disk: found where they fit, refused by name where they do not, never a crash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError, structs

from inferometer.calibration import certificate as certificates
from inferometer.calibration.certificate import cited, find, folder, read, store
from inferometer.documents.certificate import Certificate, CertificateLookup, CertifiedLimit
from inferometer.plan.transports import TRANSPORTS, Transport
from inferometer.telemetry.host import environment, hot_path

Make = Callable[..., Certificate]
NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()


def look(where: Path, certificate: Certificate, workers: int = 1) -> certificates.SearchResult:
    """Find on the machine that the certificate was made on."""
    return find(where, certificate.machine, certificate.packages, workers, certificate.transport, NOW)


def test_what_is_stored_is_found_again_whole(made: Make, tmp_path: Path) -> None:
    """Under its id, in a folder made for it, with nothing beside it."""
    certificate = made()
    path = store(certificate, tmp_path / "new" / "folder")
    assert path.name == f"{certificate.id}.json"
    assert list(path.parent.iterdir()) == [path]
    assert read(path) == certificate
    assert json.loads(path.read_text())["schema"] == "inferometer/certificate/1"
    assert look(path.parent, certificate) == certificates.SearchResult("found", certificate)


def test_the_newest_that_fits_is_used(made: Make, tmp_path: Path) -> None:
    """Also where a newer one does not fit, or cannot be read."""
    old, new = made(), made(date="2026-02-01T00:00:00.000Z")
    other = made(date="2026-03-01T00:00:00.000Z", packages={"msgspec": "9"})
    for one in (old, new, other):
        store(one, tmp_path)
    (tmp_path / "20260401T000000Z-00000000.json").write_text("{")
    assert look(tmp_path, old).certificate == new


@pytest.mark.parametrize("name", certificates.MACHINE)
def test_another_machine_kernel_or_version_is_named(made: Make, tmp_path: Path, name: str) -> None:
    """What differs is said, with both values."""
    certificate = made()
    store(certificate, tmp_path)
    found = find(tmp_path, {**certificate.machine, name: "new"}, certificate.packages, 1, "http/1.1", NOW)
    assert (found.status, found.certificate) == ("mismatch", None)
    assert found.why == f"{name} was some {name}, is new"


def test_packages_and_workers_count_too(made: Make, tmp_path: Path) -> None:
    """A certificate speaks for as many workers as it was made with or fewer, never for more."""
    certificate = made(workers=2)
    store(certificate, tmp_path)
    assert look(tmp_path, certificate, 1).status == look(tmp_path, certificate, 2).status == "found"
    found = find(tmp_path, certificate.machine, {"msgspec": "0.19", "more": "1"}, 3, "http/1.1", NOW)
    assert found.why == ("more was None, is 1; msgspec was 0.18, is 0.19; made with 2 workers, the run has 3")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_certificate_speaks_for_one_transport(made: Make, tmp_path: Path, transport: Transport) -> None:
    """Law: over any other one a run has none, and is told over which it was made."""
    certificate = made(transport=transport)
    store(certificate, tmp_path)
    for other in TRANSPORTS:
        found = find(tmp_path, certificate.machine, certificate.packages, 1, other, NOW)
        assert (found.status == "found") == (other == transport)
        if other != transport:
            assert found.why == f"made over {transport}, the run is over {other}"


def test_a_certificate_from_before_there_were_transports_is_for_http_1(made: Make, tmp_path: Path) -> None:
    """Then nothing else could be measured, and no whole answer was calibrated."""
    path = store(made(), tmp_path)
    older = json.loads(path.read_text())
    del older["transport"], older["limits"]["whole_answers_s"]
    said = {name: value for name, value in older.items() if name != "id"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    older["id"] = f"{older['id'][:-8]}{digest[:8]}"
    path.write_text(json.dumps(older))
    found = read(path)
    assert (found.transport, found.limits.whole_answers_s) == ("http/1.1", None)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[]", b'{"schema":"inferometer/certificate/2"}'])
def test_a_damaged_certificate_is_a_reason_not_a_crash(made: Make, tmp_path: Path, damage: bytes) -> None:
    """Cut, no text, no certificate, of another version."""
    (tmp_path / "x.json").write_bytes(damage)
    found = look(tmp_path, made())
    assert (found.status, found.why) == ("damaged", "x.json")
    assert cited(found) == CertificateLookup("damaged", "x.json")
    assert cited(found).facts() == {"status": "damaged", "why": "x.json"}


def test_no_folder_no_file_and_a_file_for_a_folder_are_no_certificate(made: Make, tmp_path: Path) -> None:
    """And nothing is made by looking."""
    (tmp_path / "file").write_text("")
    for where in (tmp_path / "nowhere", tmp_path, tmp_path / "file"):
        assert look(where, made()) == certificates.SearchResult("none")
    assert not (tmp_path / "nowhere").exists()


def test_where_certificates_are_is_for_the_environment_to_say() -> None:
    """A variable of our own, then the XDG one, then its default."""
    assert folder({"INFEROMETER_CALIBRATIONS": "/a", "XDG_STATE_HOME": "/b"}) == Path("/a")
    assert folder({"XDG_STATE_HOME": "/b"}) == Path("/b/inferometer/calibrations")
    assert folder({}) == Path.home() / ".local/state/inferometer/calibrations"


def test_a_citation_is_plain_data_without_the_rungs_that_failed(made: Make) -> None:
    """It goes into run.json, and holds what a later judgement needs."""
    noted = cited(certificates.SearchResult("found", made())).facts()
    assert json.loads(json.dumps(noted)) == noted
    assert noted["status"] == "found"
    assert [rung["load"] for rung in noted["rungs"]] == [64, 1024, 2000]
    assert noted["limits"]["requests_s"] == {"per_worker": 2000.0, "ended_by": "instrument"}


def test_the_machine_is_described_by_facts_that_telemetry_has() -> None:
    """None of the names is one that the environment does not know."""
    assert set(certificates.MACHINE) <= set(environment().__struct_fields__)
    assert all(hot_path().values())


def members(value: Any, *, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all numbers and texts of plain data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from members(one, place=(*place, key))
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield place


def test_a_certificate_that_was_changed_anywhere_certifies_nothing(made: Make, tmp_path: Path) -> None:
    """Law: no number or text of it can be another one, not even its id: a raised limit would pass any load."""
    certificate = made()
    path = store(certificate, tmp_path)
    whole = path.read_text()
    for *way, last in members(json.loads(whole)):
        content = inner = json.loads(whole)
        for name in way:
            inner = inner[name]
        inner[last] = (
            inner[last] * 2 + (1 if inner[last] == 0 else 0)
            if not isinstance(inner[last], str)
            else inner[last] + "x"
        )
        path.write_text(json.dumps(content))
        assert look(tmp_path, certificate) == certificates.SearchResult("damaged", why=path.name), (way, last)
    path.write_text(whole)
    assert look(tmp_path, certificate).certificate == certificate


@pytest.mark.parametrize("limit", [0.0, -1.0, 5e-324])
@pytest.mark.parametrize("name", ["token_events_s", "requests_s", "whole_answers_s"])
def test_a_certificate_of_no_load_is_none(made: Make, tmp_path: Path, name: str, limit: float) -> None:
    """Law: neither a file nor a record cites one, for no load is a share of it."""
    good = made()
    none = structs.replace(good.limits, **{name: CertifiedLimit(limit, "ladder")})
    store(made(limits=none), tmp_path)
    assert look(tmp_path, good).status == "damaged"
    facts = cited(certificates.SearchResult("found", good)).facts()
    facts["limits"][name] = {"per_worker": limit, "ended_by": "ladder"}
    for wrong in (facts, {**cited(certificates.SearchResult("found", good)).facts(), "workers": 0}):
        with pytest.raises(ValidationError, match="certifies no load"):
            CertificateLookup.of_facts(wrong)


def test_the_newest_is_the_newest_by_its_date_and_not_by_the_name_of_its_file(
    made: Make, tmp_path: Path
) -> None:
    """Law: a file that was renamed stays what it is."""
    old, new = made(), made(date="2026-02-01T00:00:00.000Z")
    store(old, tmp_path).rename(tmp_path / "z.json")
    store(new, tmp_path).rename(tmp_path / "a.json")
    assert look(tmp_path, old).certificate == new


def test_a_certificate_of_a_clock_that_was_ahead_hides_no_other(made: Make, tmp_path: Path) -> None:
    """Law: it is cited in no run, until its day has come; without another the reason is named."""
    today, ahead = made(date="2026-06-01T12:00:00.000Z"), made(date="2031-01-01T00:00:00.000Z")
    store(ahead, tmp_path)
    found = look(tmp_path, ahead)
    assert (found.status, found.why) == ("mismatch", f"dated {ahead.date}, ahead of this machine's clock")
    store(today, tmp_path)
    assert look(tmp_path, today).certificate == today
    store(made(date="yesterday"), tmp_path)
    assert look(tmp_path, today).certificate == today


def test_a_number_beyond_all_certificates_is_damage(made: Make, tmp_path: Path) -> None:
    """Law: a certificate whose digest cannot be made is read no further."""
    path = store(made(), tmp_path)
    path.write_text(path.read_text().replace('"interval_ms": 20.0', f'"interval_ms": {10**30}'))
    assert look(tmp_path, made()) == certificates.SearchResult("damaged", why=path.name)
