"""`inferometer compliance RUN`: how a run or a campaign stands by the draft's rules; `--list`: the rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from inferometer.errors import PlanError, Problem, RecordError

HELP = """\b
Examples:
  inferometer compliance runs/20260102T030405Z-run
  inferometer compliance runs/20260102T030405Z-campaign --test ttft --json
  inferometer compliance --list --level MUST

Say how a run or a campaign stands by the IETF draft's rules: label, deviations, and every rule with what was seen of it. RUN is
the folder of either, or a campaign.json. A run by itself is judged as the test of TTFT (section 5.1) with its own load.
"""
LEVELS = ("MUST", "REQUIRED", "SHOULD", "RECOMMENDED", "states")
"""Those of judge/compliance/rule.py, which help does not import."""
CAMPAIGN = "inferometer/campaign/1"


@click.command("compliance", help=HELP, context_settings={"max_content_width": 110})
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--test", metavar="NAME", help="Of a campaign: this test alone.")
@click.option("--list", "as_list", is_flag=True, help="Print the rules, and how each is checked.")
@click.option("--level", type=click.Choice(LEVELS), help="With --list: the rules of this level alone.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(run: Path | None, test: str | None, as_list: bool, level: str | None, as_json: bool) -> int:
    """See HELP."""
    from inferometer.cli.terminal import say

    if as_list:
        if run is not None or test is not None:
            raise PlanError(
                [Problem("--list", "prints the rules, which are of no run: leave RUN and --test out")]
            )
        say(_rules(level, as_json=as_json))
        return 0
    if run is None or level is not None:
        wanted = "RUN, or --list" if run is None else "--list, of which it is a part"
        raise PlanError([Problem("--level" if level else "RUN", f"needs {wanted}")])
    tests, together = _statements(run)
    if test is not None:
        tests, known = [one for one in tests if one["test"] == test], [one["test"] for one in tests]
        if not tests:
            raise PlanError([Problem("--test", f"{test} is not in {run}, which has {', '.join(known)}")])
        together = None
    say(
        json.dumps({"tests": tests, "campaign": together}, ensure_ascii=False)
        if as_json
        else _text(tests, together)
    )
    return 0


def _rules(level: str | None, *, as_json: bool) -> str:
    from inferometer.judge.compliance.statement import catalogue_data
    from inferometer.report.compliance import catalogue_lines

    rules = [one for one in catalogue_data() if level in (None, one["level"])]
    return json.dumps(rules, ensure_ascii=False) if as_json else "\n".join(catalogue_lines(rules))


def _text(tests: list[dict[str, Any]], together: dict[str, Any] | None) -> str:
    from inferometer.report.compliance import lines

    shown = [*tests, *([] if together is None else [together])]
    return "\n\n".join("\n".join(lines(one)) for one in shown)


def _statements(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The statements on the tests that are there, and the one on all of them. Raises RecordError."""
    from inferometer.judge.compliance.sources import of_run
    from inferometer.judge.compliance.statement import comply

    whole = path / "campaign.json" if path.is_dir() else path
    if whole.is_file() and not (path / "summary.json").is_file():
        try:
            return _campaign(whole)
        except (
            KeyError,
            TypeError,
            AttributeError,
        ) as cause:  # a member that is not there, or is of another kind
            raise RecordError(f"{whole}: is damaged, or was not written by this program") from cause
    return [comply(of_run(_summary(path))).as_dict()], None


def _campaign(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """As the campaign's document has them; what it lacks is worked out from its run folders."""
    document = _read(path)
    if document.get("schema") != CAMPAIGN:
        raise RecordError(f"{path}: is no campaign.json of a version this program reads")
    tests: list[dict[str, Any]] = document["tests"]
    together = document.get("compliance")
    missing = [one for one in tests if not _whole(one["compliance"])]
    if not missing and _whole(together):
        return [one["compliance"] for one in tests], together
    from inferometer.judge.compliance.sources import of_test
    from inferometer.judge.compliance.statement import campaign, comply

    folder = path.parent / "runs"
    evidence = [
        of_test(one, {ran["run"]: _summary(folder / ran["run"]) for ran in one["runs"]}) for one in tests
    ]
    return [comply(one).as_dict() for one in evidence], campaign(evidence).as_dict()


def _whole(statement: Mapping[str, Any] | None) -> bool:
    return statement is not None and "findings" in statement


def _summary(folder: Path) -> dict[str, Any]:
    from inferometer.documents.summary import SCHEMA

    if not folder.is_dir():
        raise RecordError(f"{folder}: no such folder of a run or a campaign")
    path = folder / "summary.json"
    if not path.is_file():
        raise RecordError(
            f"{folder}: holds no summary.json; `inferometer recover` makes that of a run that died"
        )
    summary = _read(path)
    if summary.get("schema") != SCHEMA:
        raise RecordError(
            f"{path}: is of a version this program does not read; `inferometer report` makes it anew"
        )
    return summary


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read ({cause.strerror})") from cause
    except (ValueError, RecursionError) as cause:
        raise RecordError(f"{path}: is no JSON") from cause
    if not isinstance(document, dict):
        raise RecordError(f"{path}: is no document of this program's")
    return document
