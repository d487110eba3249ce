"""What a report, a folder or a saved plan says was done, so that it can be done again.

| given                                             | done again        |
| ------------------------------------------------- | ----------------- |
| a run's folder, its plan.json or summary.json     | the run           |
| a campaign's folder, its tests.json, campaign.json| the campaign      |
| a report.html of either                           | the same, out of the data inside it |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from inferometer import foreign_json, whole_file
from inferometer.errors import RecordError
from inferometer.journal.documents import holds, place_of
from inferometer.plan import campaign as campaigns
from inferometer.plan.campaign import Campaign
from inferometer.plan.document import Document, check
from inferometer.plan.parse import build
from inferometer.plan.part import Values
from inferometer.plan.schema import READABLE, Plan

_OPENING, _CLOSE = '<script type="application/json" id="data">', "</script>"
_IN_FOLDER = ("tests.json", "plan.json", "campaign.json")


class _Run(msgspec.Struct):
    """As much of a summary's `run` as matters here."""

    simulated: bool


class _Reproduction(msgspec.Struct):
    """As much of a campaign's `reproduction` as matters here: a text where it was withheld."""

    plan_file: Values | str


class _Engine(msgspec.Struct):
    """As much of the `engine` of run.json as matters here."""

    preset: str
    settings: Values
    client: Values = {}
    system: str | None = None
    system_settings: Values = {}


class _Known(msgspec.Struct):
    """What documents of every kind and version may say of what was done; the rest of them is left alone."""

    schema: str | None = None
    redacted: tuple[str, ...] | None = None
    plan: Values | None = None
    run: _Run | None = None
    reproduction: _Reproduction | None = None


class _Facts(msgspec.Struct):
    """As much of a run.json as matters here."""

    engine: _Engine | None = None


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Simulated:
    """A run in virtual time: its plan, and the engine as run.json has it: its preset and settings, the client's, and those of
    the system on it."""

    plan: Plan
    preset: str
    settings: Values
    client: Values
    system: str | None = None
    system_settings: Values = field(default_factory=dict)


def again(path: Path) -> Plan | Campaign | Simulated:
    """What was done, according to what lies at `path`. Raises RecordError when it is nothing that can be done again."""
    if path.is_dir():
        found = next((path / name for name in _IN_FOLDER if holds(path, name)), None)
        if found is None:
            raise RecordError(
                f"{path}: neither a run's folder nor a campaign's: it holds no {', no '.join(_IN_FOLDER)}"
            )
        plan = _of(_document(found), str(found))
        engine = _engine(place_of(path, "run.json")) if found.name == "plan.json" else None
        if isinstance(plan, Plan) and engine is not None:
            return Simulated(
                plan, engine.preset, engine.settings, engine.client, engine.system, engine.system_settings
            )
        return plan
    facts = path.with_name("run.json")
    if path.name == "plan.json" and holds(path.parent, facts.name) and _engine(facts) is not None:
        raise RecordError(f"{path}: was simulated; give the run's folder, which records the engine")
    return _of(_document(path), str(path))


def _engine(facts: Path) -> _Engine | None:
    """The engine of a run that was simulated."""
    return _typed(_document(facts), _Facts, str(facts)).engine


def _typed(document: Values, kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as cause:
        raise RecordError(f"{where}: is damaged, or was not written by this program: {cause}") from cause


def _document(path: Path) -> Values:
    try:
        text = whole_file.read(path).decode("utf-8")
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read: {(cause.strerror or 'unknown error').lower()}") from cause
    except UnicodeDecodeError as cause:
        raise RecordError(f"{path}: is not UTF-8 text") from cause
    inside = _embedded(text) if path.suffix in (".html", ".htm") else None
    try:
        found = foreign_json.loads(text if inside is None else inside)
    except foreign_json.NotJSON as cause:
        hint = "give the report.html, the JSON beside it, or the folder"
        raise RecordError(f"{path}: holds no data to repeat it from: {hint}") from cause
    if not isinstance(found, dict):
        raise RecordError(f"{path}: holds no plan")
    return found


def _embedded(page: str) -> str | None:
    """The data inside a page. Each part is looked for once: a pattern of both would look for the close after every opening."""
    _, opening, behind = page.partition(_OPENING)
    inside, close, _ = behind.partition(_CLOSE)
    return inside if opening and close else None


def _of(document: Values, where: str) -> Plan | Campaign:
    known = _typed(document, _Known, where)
    schema = str(known.schema)
    if known.redacted:
        raise RecordError(
            f"{where}: was redacted ({', '.join(known.redacted)}), and cannot be repeated without what was left out"
        )
    if schema == campaigns.SCHEMA:
        _within_limits(document, where)
        return campaigns.of_values(document, where)
    if schema in READABLE:
        return _plan(document, where)
    file = None if known.reproduction is None else known.reproduction.plan_file
    if schema.startswith("inferometer/campaign/") and isinstance(file, dict):
        return _of(file, where)
    if known.run is not None and known.run.simulated:
        raise RecordError(f"{where}: was simulated; give the run's folder, which records the engine")
    if known.plan is not None:  # a run's summary, or what its report.html holds
        return _plan(known.plan, where)
    raise RecordError(f"{where}: its schema is {schema[:60]!r}, which cannot be repeated")


def _plan(values: Values, where: str) -> Plan:
    """The plan, checked as one of a file is. Raises PlanError."""
    _within_limits(values, where)
    return build(Path(where), file=Document(where, dict(values)))


def _within_limits(values: Values, where: str) -> None:
    """That a plan inside a document is no larger than one in a file of its own may be. Raises RecordError."""
    try:
        check(values)
    except foreign_json.NotJSON as cause:
        raise RecordError(f"{where}: {cause}") from cause
