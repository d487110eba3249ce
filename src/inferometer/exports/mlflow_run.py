"""A run in MLflow, by MLflow's own client: parameters, metrics, tags, and the reports as artifacts.

| in MLflow | holds                                                                                                        |
| --------- | ------------------------------------------------------------------------------------------------------------ |
| run name  | the run's name, and its verdict unless that is VALID                                                         |
| tags      | `inferometer.verdict`, `inferometer.reasons`, `inferometer.run`, `inferometer.simulated`, `.interrupted`      |
| params    | the plan, a key each: `load.rate`                                                                            |
| metrics   | `ttft_ms.p99` and so on, in the units of summary.json; what is undefined is not there                        |
| artifacts | summary.json, report.md, report.html, written for this                                                       |

The tracking URI is given with the command (`sqlite:///mlflow.db`, `http://localhost:5000`). MLflow makes the requests: its own
variables (`MLFLOW_TRACKING_TOKEN`, `MLFLOW_HTTP_REQUEST_TIMEOUT`...) hold, and none is set here.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from inferometer.addresses import shown
from inferometer.errors import PeerError
from inferometer.exports.exported_run import ExportedRun, period_of
from inferometer.exports.formats import Place
from inferometer.exports.tracked import EXPERIMENT, parameters, tags, title, values
from inferometer.printable import printable
from inferometer.report.run.files import write_reports
from inferometer.units import NS_PER_MS

LONGEST = 6_000
"""Characters of a parameter's value that MLflow keeps."""
SAID = 400
"""Characters of an error of MLflow that are shown."""
BATCH = 100
"""Parameters that one request takes; of metrics it is 1,000."""


def log(run: ExportedRun, place: Place) -> str:
    """Log the run to the tracking URI; its id and experiment there. Raises PeerError."""
    try:
        return _log(MlflowClient(tracking_uri=place.uri), run)
    except MlflowException as cause:
        uri = place.uri or ""
        said = printable(str(cause)).strip().replace(uri, shown(uri))
        raise PeerError(f"MLflow: {said[:SAID]}") from cause


def _log(client: MlflowClient, run: ExportedRun) -> str:
    summary, period = run.summary, period_of(run.summary)
    start_ms, end_ms = period.start_ns // NS_PER_MS, period.end_ns // NS_PER_MS
    found = client.get_experiment_by_name(EXPERIMENT)
    experiment = client.create_experiment(EXPERIMENT) if found is None else found.experiment_id
    made = client.create_run(experiment, start_time=start_ms, run_name=title(summary)).info.run_id
    client.log_batch(made, tags=[RunTag(name, value) for name, value in tags(summary).items()])
    params = [Param(name, value[:LONGEST]) for name, value in parameters(summary).items()]
    for begin in range(0, len(params), BATCH):
        client.log_batch(made, params=params[begin : begin + BATCH])
    client.log_batch(made, [Metric(name, value, end_ms, 0) for name, value in values(summary).items()])
    with tempfile.TemporaryDirectory() as folder:
        write_reports(Path(folder), summary, run.series)
        client.log_artifacts(made, folder)
    client.set_terminated(made, "KILLED" if summary.run.interrupted else "FINISHED", end_ms)
    return f"run {made} of experiment {EXPERIMENT}"
