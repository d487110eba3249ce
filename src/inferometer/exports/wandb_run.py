"""A run in Weights & Biases, by its own library: the plan as config, figures as summary, marks as tags, reports as an artifact.

Without a URL the run is written to a folder in W&B's offline mode, and no request is made; `wandb sync` uploads it. With one,
the library sends it to that server, with the key of `WANDB_API_KEY`. It is told to record nothing else: no console, code,
Git state, machine or system metrics.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import wandb

from inferometer.errors import PeerError
from inferometer.exports.exported_run import ExportedRun
from inferometer.exports.formats import Place
from inferometer.exports.tracked import EXPERIMENT, parameters, tags, title, values
from inferometer.printable import printable
from inferometer.report.run.files import write_reports

LONGEST_TAG = 64
"""Characters of a tag."""


def log(run: ExportedRun, place: Place) -> str:
    """Log the run to a folder, or to a server; where it is there. Raises PeerError."""
    summary, marks = run.summary, run.marks
    kept = tags(summary)
    words = [f"verdict:{marks.verdict}", *(f"reason:{code}" for code in marks.reasons)]
    folder = place.folder or Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        made = wandb.init(
            project=EXPERIMENT,
            name=title(summary),
            dir=str(folder),
            tags=[word[:LONGEST_TAG] for word in words],
            config={**parameters(summary), **kept},
            settings=_settings(place.uri),
        )
        made.summary.update({**values(summary), **kept})
        with tempfile.TemporaryDirectory() as reports:
            write_reports(Path(reports), summary, run.series)
            artifact = wandb.Artifact(f"report-{made.id}", type="report", metadata=kept)
            artifact.add_dir(reports)
            made.log_artifact(artifact)
            made.finish()
    except wandb.Error as cause:
        raise PeerError(f"W&B: {printable(str(cause))[:400]}") from cause
    return str(Path(made.dir).parent) if place.uri is None else f"run {made.id} of project {EXPERIMENT}"


def _settings(url: str | None) -> wandb.Settings:
    """Nothing is recorded but what is logged."""
    return wandb.Settings(
        mode="offline" if url is None else "online",
        console="off",
        disable_code=True,
        disable_git=True,
        save_code=False,
        silent=True,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
        **({} if url is None else {"base_url": url}),
    )
