"""Certificates on disk: found where they fit, refused by name where they do not, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inferometer.calibration import certificate as certificates
from inferometer.calibration.certificate import cited, find, folder, read, store
from inferometer.documents.certificate import Certificate, CertificateLookup
from inferometer.plan.transports import TRANSPORTS, Transport
from inferometer.telemetry.host import environment, hot_path

Make = Callable[..., Certificate]


def look(where: Path, certificate: Certificate, workers: int = 1) -> certificates.SearchResult:
    """Find on the machine that the certificate was made on."""
    return find(where, certificate.machine, certificate.packages, workers, certificate.transport)


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
    found = find(tmp_path, {**certificate.machine, name: "new"}, certificate.packages, 1, "http/1.1")
    assert (found.status, found.certificate) == ("mismatch", None)
    assert found.why == f"{name} was some {name}, is new"


def test_packages_and_workers_count_too(made: Make, tmp_path: Path) -> None:
    """A certificate speaks for as many workers as it was made with or fewer, never for more."""
    certificate = made(workers=2)
    store(certificate, tmp_path)
    assert look(tmp_path, certificate, 1).status == look(tmp_path, certificate, 2).status == "found"
    found = find(tmp_path, certificate.machine, {"msgspec": "0.19", "more": "1"}, 3, "http/1.1")
    assert found.why == ("more was None, is 1; msgspec was 0.18, is 0.19; made with 2 workers, the run has 3")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_certificate_speaks_for_one_transport(made: Make, tmp_path: Path, transport: Transport) -> None:
    """Law: over any other one a run has none, and is told over which it was made."""
    certificate = made(transport=transport)
    store(certificate, tmp_path)
    for other in TRANSPORTS:
        found = find(tmp_path, certificate.machine, certificate.packages, 1, other)
        assert (found.status == "found") == (other == transport)
        if other != transport:
            assert found.why == f"made over {transport}, the run is over {other}"


def test_a_certificate_from_before_there_were_transports_is_for_http_1(made: Make, tmp_path: Path) -> None:
    """Then nothing else could be measured, and no whole answer was calibrated."""
    path = store(made(), tmp_path)
    older = json.loads(path.read_text())
    del older["transport"], older["limits"]["whole_answers_s"]
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
