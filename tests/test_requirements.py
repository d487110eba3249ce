"""The pinned versions in requirements/ against what pyproject.toml declares."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCKS = ROOT / "requirements"
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME: list[str] = DECLARED["project"]["dependencies"]
GROUPS: dict[str, list[str]] = DECLARED["dependency-groups"]


def pinned(name: str) -> dict[str, list[Version]]:
    """The versions of each package in a lock; several where they differ by Python."""
    found: dict[str, list[Version]] = {}
    for line in (LOCKS / name).read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            one = Requirement(line.removesuffix("\\"))
            (only,) = one.specifier
            assert only.operator == "=="
            found.setdefault(canonicalize_name(one.name), []).append(Version(only.version))
    return found


@pytest.mark.parametrize(
    ("lock", "declared"),
    [
        ("dev.txt", RUNTIME + GROUPS["dev"]),
        ("runtime.txt", RUNTIME),
        ("release.txt", GROUPS["release"]),
        ("floors.txt", RUNTIME + GROUPS["dev"]),
    ],
)
def test_a_lock_pins_all_that_is_declared(lock: str, declared: list[str]) -> None:
    """`make lock` was run after the last change: each declared package is there, in versions that it allows."""
    versions = pinned(lock)
    for one in map(Requirement, declared):
        found = versions.get(canonicalize_name(one.name), [])
        assert found, one.name
        assert all(one.specifier.contains(version) for version in found), one.name


def test_the_lowest_version_declared_is_the_one_that_is_tested() -> None:
    """`numpy>=X` says that X works, so X itself is what `make floors` installs."""
    versions = pinned("floors.txt")
    for one in map(Requirement, RUNTIME):
        (floor,) = one.specifier
        assert floor.operator == ">="
        assert versions[canonicalize_name(one.name)] == [Version(floor.version)], one.name


@pytest.mark.parametrize("path", sorted(LOCKS.iterdir()), ids=lambda path: path.name)
def test_a_lock_has_a_hash_for_each_package_and_no_registry(path: Path) -> None:
    """What is installed is what was resolved, wherever it is fetched from."""
    text = path.read_text()
    assert "://" not in text
    assert "index-url" not in text
    entries = re.split(r"\n(?=[a-z])", text)
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)


def test_runtime_and_development_are_pinned_alike() -> None:
    """The SBOM of a release lists what its tests ran with."""
    development = pinned("dev.txt")
    assert all(development[name] == versions for name, versions in pinned("runtime.txt").items())
