"""`inferometer export RUN`: a run in the formats that other programs read, as a file or sent to a URL."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from inferometer.cli.command import Command, GroupedOption
from inferometer.cli.outlet import say, tell
from inferometer.errors import PlanError, Problem
from inferometer.exports.formats import FORMATS, Format, Place, Wanted

FOLDER = "exports"
"""Where files go inside the run's folder, unless `--out` names another place."""
EXAMPLES = (
    "inferometer export runs/20260102T030405Z-run --format llm-d",
    "inferometer export RUN --format prometheus --out /var/lib/node_exporter/inferometer.prom",
    "inferometer export RUN --format otlp --endpoint http://localhost:4318/v1/metrics",
    "inferometer export RUN --format mlflow --endpoint sqlite:///mlflow.db",
    "inferometer export --format grafana --out dashboard.json",
)


@click.command(
    "export",
    cls=Command,
    exits="0 exported, whatever the run's verdict; 2 usage or a file; 5 the endpoint did not take it",
    examples=EXAMPLES,
)
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--format",
    "name",
    cls=GroupedOption,
    type=click.Choice(list(FORMATS)),
    required=True,
    metavar="NAME",
    help="One of " + ", ".join(f"{one.name} ({one.means})" for one in FORMATS.values()) + ".",
)
@click.option(
    "--out",
    cls=GroupedOption,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="File or folder to write to; for wandb a folder. Default: exports in the run's folder, for grafana the current one.",
)
@click.option(
    "--endpoint",
    cls=GroupedOption,
    metavar="URL",
    help="Send it there instead: the URL of a receiver of OTLP/HTTP or remote write, MLflow's tracking URI, W&B's server.",
)
@click.option("--token-times", is_flag=True, help="Of requests: also when each event of an answer arrived.")
@click.option("--answers", is_flag=True, help="Of requests: also the text of each answer.")
@click.option(
    "--token-env", metavar="NAME", help="Environment variable that holds a bearer token for the endpoint."
)
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE", help="File that holds that token."
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="K: V",
    help="Extra header line. May be repeated. Not for keys.",
)
@click.option("--ca-file", metavar="FILE", help="Certificates (PEM) to trust instead of the system's.")
@click.option("--insecure", is_flag=True, help="Do not verify the endpoint's TLS certificate.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=600),
    default=10.0,
    metavar="S",
    help="Give the endpoint up after this long. Default: 10.",
)
def command(
    run: Path | None,
    name: str,
    out: Path | None,
    endpoint: str | None,
    token_times: bool,
    answers: bool,
    token_env: str | None,
    token_file: Path | None,
    headers: tuple[str, ...],
    ca_file: str | None,
    insecure: bool,
    timeout: float,
) -> int:
    """Export a finished run. Its record is judged again, and every format bears the verdict: a consumer of the figures of an
    INVALID run can tell. Prompts are never exported, and answers only with --answers.
    """
    chosen = FORMATS[name]
    _check(chosen, run, out, endpoint)
    _check_options(
        chosen, endpoint, rows=token_times or answers, request=bool(token_env or token_file or headers)
    )
    if run is None:
        _write(chosen.static(), out or Path(), chosen)
        return 0
    from inferometer.exports.exported_run import read

    exported = read(run)
    marks = exported.marks
    if marks.verdict != "VALID":
        tell(f"The run is {marks.verdict} ({', '.join(marks.reasons)}), and marked so in the export.")
    if chosen.kind == "tracker":
        place = Place(endpoint, None if endpoint is not None else out or _folder(run))
        say(chosen.track(exported, place))
        return 0
    body = chosen.render(exported, Wanted(token_times, answers))
    if endpoint is None:
        _write(body, out or _folder(run), chosen)
        return 0
    from inferometer.exports.push import Destination, read_token, send

    token = read_token(token_env, token_file, os.environ)
    to = Destination(endpoint, _lines(headers), token, timeout, ca_file, not insecure)
    say(send(body, chosen.pushed(), to))
    return 0


def _check(chosen: Format, run: Path | None, out: Path | None, endpoint: str | None) -> None:
    """Raises PlanError for what does not go together."""
    problems = []
    if chosen.kind == "static" and run is not None:
        problems.append(Problem("--format", f"{chosen.name} is about no run"))
    if chosen.kind != "static" and run is None:
        problems.append(Problem("RUN", f"--format {chosen.name} needs the folder of a run"))
    if out is not None and endpoint is not None:
        problems.append(Problem("--out", "says nothing beside --endpoint"))
    if endpoint is not None and chosen.kind in ("file", "static") and chosen.push is None:
        problems.append(Problem("--endpoint", f"{chosen.name} is a file"))
    if endpoint is None and chosen.needs_endpoint:
        problems.append(Problem("--endpoint", f"{chosen.name} needs one"))
    if problems:
        raise PlanError(problems)


def _check_options(chosen: Format, endpoint: str | None, *, rows: bool, request: bool) -> None:
    """Raises PlanError for options that would change nothing: of the rows of requests, and of a request to an endpoint."""
    problems = []
    if rows and not chosen.per_request:
        problems.append(Problem("--token-times, --answers", f"{chosen.name} has no row for a request"))
    if request and (endpoint is None or chosen.push is None):
        words = "say nothing without an --endpoint that takes one request"
        problems.append(Problem("--token-env, --token-file, --header", words))
    if problems:
        raise PlanError(problems)


def _lines(texts: Sequence[str]) -> Mapping[str, str]:
    """Header lines. Raises PlanError, which repeats no text."""
    from inferometer.plan.flags import header
    from inferometer.plan.target import header_name, header_value

    found: dict[str, str] = {}
    try:
        for text in texts:
            for name, value in header(text).items():
                found[header_name(name)] = header_value(value)
    except ValueError as wrong:
        raise PlanError([Problem("--header", str(wrong))]) from None
    return found


def _folder(run: Path) -> Path:
    """Raises RecordError where a link in its place leads out of the run's folder."""
    from inferometer.journal.documents import not_elsewhere

    folder = not_elsewhere(run / FOLDER, run)
    folder.mkdir(exist_ok=True)
    return folder


def _write(body: bytes, out: Path, chosen: Format) -> None:
    """Into a folder under the format's name, or to the file itself, whole or not at all. Raises OSError."""
    from inferometer import whole_file

    path = out / chosen.file if out.is_dir() else out
    whole_file.write(path, body)
    say(str(path))
