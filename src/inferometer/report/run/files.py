"""Writes a run's reports into its folder: summary.json, report.md, report.html.

Each file is written beside its place and moved into it, so a reader sees the old file or the whole new one, also after a
crash. All three are rendered before the first is written: a run folder never holds reports of two different results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from inferometer import whole_file
from inferometer.documents.part import to_json
from inferometer.documents.summary import Summary
from inferometer.errors import InstrumentError
from inferometer.measure.series import RunSeries
from inferometer.report.run.html import render_html
from inferometer.report.run.markdown import render_markdown


def write_reports(run_dir: Path, summary: Summary, series: RunSeries) -> dict[str, Path]:
    """As `write_all` does; returns the paths by file name."""
    return write_all(
        run_dir,
        lambda: {
            "summary.json": to_json(summary),
            "report.md": render_markdown(summary),
            "report.html": render_html(summary, series),
        },
    )


def write_all(folder: Path, render: Callable[[], Mapping[str, str | bytes]]) -> dict[str, Path]:
    """Render all files, then write them: a folder never holds reports of two different results. The paths by file name.

    Raises:
        InstrumentError: a value cannot be written as JSON. Nothing is written then.
        OSError: the folder cannot be written to.
    """
    try:
        contents = render()
    except (TypeError, ValueError) as cause:
        raise InstrumentError(f"the report holds a value that JSON cannot: {cause}") from cause
    for name, content in contents.items():
        # A lone surrogate in a server's words has no UTF-8; it must not cost us the report.
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        whole_file.write(folder / name, data)
    return {name: folder / name for name in contents}
