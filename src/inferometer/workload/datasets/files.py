"""Which files a dataset is: one file, a directory, or a repository in the local Hugging Face cache. Nothing is downloaded.

| given                                | files                                                         | revision              |
| ------------------------------------ | ------------------------------------------------------------- | --------------------- |
| a file                               | that one                                                      | not known             |
| a directory                          | all below it of the first kind in KINDS that there is         | not known             |
| `.../datasets--org--name` of a cache | those of the snapshot that `refs/main` names, or the only one | the snapshot's commit |
| `org/name`                           | the same, in the cache that HF_HUB_CACHE or HF_HOME name      | the snapshot's commit |
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inferometer import whole_file
from inferometer.documents.workload import DatasetFile
from inferometer.errors import PlanError, Problem

KINDS = (".parquet", ".arrow", ".jsonl", ".json")
MOST = 100_000
"""Files and directories below a dataset's. Large ones have some ten thousand; a whole disk has millions."""
_NOT_ROWS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def refused(message: str) -> PlanError:
    """What is wrong with the dataset."""
    return PlanError([Problem("--dataset", message)])


@dataclass(frozen=True, slots=True)
class Files:
    """A dataset on disk. `name` holds no folder of this machine; `paths` are in order and not empty."""

    name: str
    revision: str | None
    base: Path
    paths: tuple[Path, ...]

    def called(self, path: Path) -> str:
        """A file's name within the dataset."""
        return path.name if path == self.base else path.relative_to(self.base).as_posix()


def find(given: str, subset: str | None, cache: Path | None = None, most: int = MOST) -> Files:
    """The files of a dataset. `subset`: of a directory only those in that folder, or that the glob matches; else PlanError.
    `cache`: the folder of the Hugging Face cache; None: huggingface_hub's own. `most`: entries of a directory that are
    looked at."""
    path = Path(given).expanduser()
    if path.is_file():
        if subset is not None:
            raise refused(
                f"{path.name} is a single file: --dataset-subset chooses among those of a directory"
            )
        return Files(path.name, None, path, (path,))
    if not path.is_dir():
        cached = _cached(given, cache)
        if cached is None:
            raise refused(
                f"{given!r} is no file, no directory, and no dataset in the local Hugging Face cache; nothing is downloaded"
            )
        path = cached
    base, revision = _snapshot(path)
    found = _below(base, most)
    if subset is not None:
        found = [one for one in found if _matches(one.relative_to(base).as_posix(), subset)]
    for kind in KINDS:
        if rows := tuple(one for one in found if one.suffix.lower() == kind):
            return Files(_name(path), revision, base, rows)
    where = f"{_name(path)}, subset {subset!r}," if subset else _name(path)
    raise refused(f"{where} holds no {', '.join(KINDS)} file")


def _below(base: Path, most: int) -> list[Path]:
    """The files of all kinds below a directory, in order, and in no hidden one. Links to directories are not followed. Raises
    PlanError once it has looked at more entries than a dataset has."""
    found: list[Path] = []
    looked = 0
    for folder, folders, names in os.walk(base):
        folders[:] = [name for name in folders if not name.startswith(".")]
        looked += len(folders) + len(names)
        if looked > most:
            raise refused(
                f"{base}: is no dataset, or holds several: there are more than {most:,} files and directories below it. "
                "Name the dataset's own directory"
            )
        kept = (name for name in names if name.lower().endswith(KINDS) and name not in _NOT_ROWS)
        found += [Path(folder, name) for name in kept if not name.startswith(".")]
    return sorted(path for path in found if path.is_file())


def digests(files: Files) -> tuple[DatasetFile, ...]:
    """Name, bytes and SHA-256 of each file. Raises PlanError where one cannot be read."""
    found: list[DatasetFile] = []
    for path in files.paths:
        try:
            with open(path, "rb") as source:
                digest = hashlib.file_digest(source, "sha256").hexdigest()
        except OSError as cause:
            raise refused(f"{files.called(path)}: cannot be read ({cause.strerror})") from cause
        found.append(DatasetFile(name=files.called(path), bytes=path.stat().st_size, sha256=digest))
    return tuple(found)


def digest_of_all(parts: Sequence[DatasetFile]) -> str:
    """One file's own SHA-256; of several, that of the lines `sha256  name`, as sha256sum writes them."""
    if len(parts) == 1:
        return parts[0].sha256
    lines = "".join(f"{part.sha256}  {part.name}\n" for part in parts)
    return hashlib.sha256(lines.encode()).hexdigest()


def _cached(given: str, cache: Path | None) -> Path | None:
    if not _ID.fullmatch(given):
        return None
    if cache is None:
        from huggingface_hub import constants

        cache = Path(constants.HF_HUB_CACHE)
    path = cache / f"datasets--{given.replace('/', '--')}"
    return path if path.is_dir() else None


def _snapshot(path: Path) -> tuple[Path, str | None]:
    """Where the files are, and the revision they are of, if it is known."""
    snapshots = path / "snapshots"
    if not snapshots.is_dir():
        return path, path.name if path.parent.name == "snapshots" else None
    main = path / "refs" / "main"
    names = sorted(one.name for one in snapshots.iterdir() if one.is_dir())
    only = names[0] if len(names) == 1 else None
    name = whole_file.read(main, 1 << 12).decode(errors="replace").strip() if main.is_file() else only
    if name not in names:
        raise refused(
            f"{_name(path)}: give the folder of one of its snapshots: {', '.join(names) or 'it has none'}"
        )
    return snapshots / name, name


def _name(path: Path) -> str:
    repository = path.parents[1] if path.parent.name == "snapshots" else path
    return repository.resolve().name.removeprefix("datasets--").replace("--", "/")


def _matches(name: str, subset: str) -> bool:
    folder = subset.rstrip("/") + "/"
    return name.startswith(folder) or f"/{folder}" in f"/{name}" or fnmatch.fnmatchcase(name, subset)
