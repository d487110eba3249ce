"""A wheel of the package as it is installed here, for machines that lack it: the same files, whatever they came from.

The same installation gives the same bytes, so that Ray finds an environment that it made before.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import zipfile
from pathlib import Path

import inferometer

_EPOCH = (1980, 1, 1, 0, 0, 0)
_WHEEL = "Wheel-Version: 1.0\nGenerator: inferometer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def packed(folder: Path) -> Path:
    """Write the wheel into a folder; gives its path.

    Raises:
        OSError: a file cannot be read or written.
        importlib.metadata.PackageNotFoundError: the package is imported, and not installed.
    """
    about = importlib.metadata.distribution("inferometer")
    source = Path(inferometer.__file__).parent
    name = f"inferometer-{about.version}"
    files = {
        f"inferometer/{path.relative_to(source).as_posix()}": path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    for member in ("METADATA", "entry_points.txt"):
        files[f"{name}.dist-info/{member}"] = (about.read_text(member) or "").encode()
    files[f"{name}.dist-info/WHEEL"] = _WHEEL.encode()
    record = f"{name}.dist-info/RECORD"
    lines = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    files[record] = "".join(f"{line}\n" for line in [*lines, f"{record},,"]).encode()
    made = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return made


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
