"""Writes a run's reports into its folder: summary.json, report.md, report.html.

Each file is written beside its place and moved into it, so a reader sees the old file or the whole new one, also after a
crash. All three are rendered before the first is written: a run folder never holds reports of two different results.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from inferometer.documents.part import to_json
from inferometer.documents.summary import Summary
from inferometer.errors import InstrumentError
from inferometer.measure.series import RunSeries
from inferometer.report.run.html import render_html
from inferometer.report.run.markdown import render_markdown


def write_reports(run_dir: Path, summary: Summary, series: RunSeries) -> dict[str, Path]:
    """Render and write; returns the paths by file name.

    Raises:
        InstrumentError: a value cannot be written as JSON. Nothing is written then.
        OSError: the folder cannot be written to.
    """
    try:
        texts = {
            "summary.json": to_json(summary),
            "report.md": render_markdown(summary),
            "report.html": render_html(summary, series),
        }
    except (TypeError, ValueError) as cause:
        raise InstrumentError(f"the report holds a value that JSON cannot: {cause}") from cause
    return {name: replace(run_dir / name, text) for name, text in texts.items()}


def replace(path: Path, content: str | bytes) -> Path:
    """Write beside its place and move into it; the path again."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            # A lone surrogate in a server's words has no UTF-8; it must not cost us the report.
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
            # mkstemp makes the file private; a report is for everyone who may read the folder.
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(file.fileno(), 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException as cause:
        os.unlink(temporary)
        if (
            isinstance(cause, OSError) and cause.errno is not None
        ):  # the file that was wanted, not the one beside it
            raise OSError(cause.errno, cause.strerror, str(path)) from cause
        raise
    return path
