"""What a report, a folder or a saved plan says was done, so that it can be done again.

| given                                             | done again        |
| ------------------------------------------------- | ----------------- |
| a run's folder, its plan.json or summary.json     | the run           |
| a campaign's folder, its tests.json, campaign.json| the campaign      |
| a report.html of either                           | the same, out of the data inside it |
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inferometer import whole_file
from inferometer.errors import RecordError
from inferometer.plan import campaign as campaigns
from inferometer.plan.campaign import Campaign
from inferometer.plan.document import Document
from inferometer.plan.parse import build
from inferometer.plan.part import Values
from inferometer.plan.schema import READABLE, Plan

_EMBEDDED = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_IN_FOLDER = ("tests.json", "plan.json", "campaign.json")


@dataclass(frozen=True, slots=True)
class Simulated:
    """A run in virtual time: its plan, and the engine as run.json has it: its preset and settings, and the client's."""

    plan: Plan
    preset: str
    settings: Values
    client: Values


def again(path: Path) -> Plan | Campaign | Simulated:
    """What was done, according to what lies at `path`. Raises RecordError when it is nothing that can be done again."""
    if path.is_dir():
        found = next((path / name for name in _IN_FOLDER if (path / name).is_file()), None)
        if found is None:
            raise RecordError(
                f"{path}: neither a run's folder nor a campaign's: it holds no {', no '.join(_IN_FOLDER)}"
            )
        plan = _of(_document(found), str(found))
        engine = _document(path / "run.json").get("engine") if found.name == "plan.json" else None
        if isinstance(plan, Plan) and engine is not None:
            return _simulated(plan, engine, f"{path / 'run.json'}")
        return plan
    facts = path.with_name("run.json")
    if path.name == "plan.json" and facts.is_file() and _document(facts).get("engine") is not None:
        raise RecordError(f"{path}: was simulated; give the run's folder, which records the engine")
    return _of(_document(path), str(path))


def _simulated(plan: Plan, engine: object, where: str) -> Simulated:
    parts = engine if isinstance(engine, Mapping) else {}
    preset, settings, client = parts.get("preset"), parts.get("settings"), parts.get("client", {})
    if not isinstance(preset, str) or not isinstance(settings, dict) or not isinstance(client, dict):
        raise RecordError(f"{where}: the engine is damaged: it has no preset, or no settings")
    return Simulated(plan, preset, settings, client)


def _document(path: Path) -> Values:
    try:
        text = whole_file.read(path).decode("utf-8")
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read: {(cause.strerror or 'unknown error').lower()}") from cause
    except UnicodeDecodeError as cause:
        raise RecordError(f"{path}: is not UTF-8 text") from cause
    inside = _EMBEDDED.search(text) if path.suffix in (".html", ".htm") else None
    try:
        found = json.loads(inside[1] if inside else text)
    except (ValueError, RecursionError) as cause:
        hint = "give the report.html, the JSON beside it, or the folder"
        raise RecordError(f"{path}: holds no data to repeat it from: {hint}") from cause
    if not isinstance(found, dict):
        raise RecordError(f"{path}: holds no plan")
    return found


def _of(document: Values, where: str) -> Plan | Campaign:
    try:
        return _plan_of(document, where)
    except (
        KeyError,
        TypeError,
        AttributeError,
    ) as cause:  # a member that is not there, or is of another kind
        raise RecordError(f"{where}: is damaged, or was not written by this program") from cause


def _plan_of(document: Values, where: str) -> Plan | Campaign:
    schema = str(document.get("schema"))
    if document.get("redacted"):
        raise RecordError(
            f"{where}: was redacted ({', '.join(document['redacted'])}), and cannot be repeated without what was left out"
        )
    if schema == campaigns.SCHEMA:
        return campaigns.of_values(document, where)
    if schema in READABLE:
        return _plan(document, where)
    if schema.startswith("inferometer/campaign/"):
        return _of(document["reproduction"]["plan_file"], where)
    if schema.startswith("inferometer/summary/") and document["run"]["simulated"]:
        raise RecordError(f"{where}: was simulated; give the run's folder, which records the engine")
    if schema.startswith("inferometer/summary/"):
        return _plan(document["plan"], where)
    inner = document.get("plan")
    if isinstance(inner, dict):  # a run's report.html
        return _plan(inner, where)
    raise RecordError(f"{where}: its schema is {schema[:60]!r}, which cannot be repeated")


def _plan(values: Values, where: str) -> Plan:
    """The plan, checked as one of a file is. Raises PlanError."""
    return build(Path(where), file=Document(where, dict(values)))
