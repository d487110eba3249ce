"""Where the documents of a folder are: a folder may be a stranger's, so each is a regular file inside it.

| what lies in a document's place           | is                                                                  |
| ----------------------------------------- | ------------------------------------------------------------------- |
| a regular file, or a link to one inside   | the document                                                        |
| nothing                                   | no document                                                         |
| a link out of the folder                  | refused: others' files would stand in the folder's reports          |
| a device, a pipe, a folder, a dead link   | refused: it is not absent, and reading it may wait or never end     |

A path whose bytes are no UTF-8 is refused as a whole: Arrow opens none, and no document can name it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from inferometer.errors import RecordError


def holds(folder: Path, name: str) -> bool:
    """Whether a folder has the document of this name, `telemetry/x` for one. Raises RecordError for what is refused."""
    place = in_text(folder / name)
    try:
        about = os.stat(not_elsewhere(place, folder))
    except (FileNotFoundError, NotADirectoryError):
        if place.is_symlink():
            raise RecordError(f"{place}: is a link to nothing") from None
        return False
    except (OSError, ValueError) as cause:
        why = cause.strerror if isinstance(cause, OSError) else cause
        raise RecordError(f"{place}: cannot be read ({why})") from cause
    if not stat.S_ISREG(about.st_mode):
        raise RecordError(f"{place}: is no regular file")
    return True


def in_text(path: Path) -> Path:
    """The path, if its bytes are text. Raises RecordError."""
    shown = str(path).encode("utf-8", "backslashreplace").decode()
    if shown != str(path):
        raise RecordError(f"{shown}: holds bytes that are no UTF-8: rename it")
    return path


def place_of(folder: Path, name: str) -> Path:
    """Where that document is, or would be. Raises RecordError as `holds` does."""
    holds(folder, name)
    return folder / name


def not_elsewhere(place: Path, folder: Path) -> Path:
    """A place in a folder. Raises RecordError where a link leads out of it."""
    if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder)):
        raise RecordError(
            f"{place}: is a link, or behind one, that leads out of {folder}: put what it leads to in its place"
        )
    return place
