"""`make release`: the wheel and the sdist, what they were built and run with, and their hashes, in dist/.

| file                         | is                                                                                    |
| ---------------------------- | ------------------------------------------------------------------------------------- |
| `*.whl`, `*.tar.gz`          | built by the pinned hatchling; the same bytes each time for one commit                |
| `inferometer-X.cdx.json`     | SBOM in CycloneDX: the pinned runtime dependencies (requirements/runtime.txt), hashes  |
| `SHA256SUMS`                 | of all of them, for `sha256sum --check`                                               |
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import inferometer

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"


def build(dist: Path) -> None:
    """Wheel and sdist, stamped with the instant of the last commit."""
    asked = ["git", "log", "-1", "--format=%ct"]
    committed = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(dist)]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"SOURCE_DATE_EPOCH": committed})


def list_components(dist: Path) -> None:
    """The SBOM. The tool does not see our version, which is in the code."""
    path = dist / f"inferometer-{inferometer.__version__}.cdx.json"
    subprocess.run(
        [
            ".release/bin/cyclonedx-py", "requirements", "requirements/runtime.txt", "--pyproject", "pyproject.toml",
            "--output-reproducible", "--output-file", str(path),
        ],
        cwd=ROOT,
        check=True,
    )  # fmt: skip
    document = json.loads(path.read_bytes())
    described = document["metadata"]["component"]
    described["version"] = inferometer.__version__
    described["purl"] = f"pkg:pypi/inferometer@{inferometer.__version__}"
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")


def write_hashes(dist: Path) -> Path:
    """SHA256SUMS of what lies in the folder."""
    sums = dist / "SHA256SUMS"
    sums.unlink(missing_ok=True)
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(dist.iterdir())
    ]
    sums.write_text("".join(lines))
    return sums


def main() -> int:
    """Build everything; the exit code."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    build(DIST)
    list_components(DIST)
    print(write_hashes(DIST).read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
