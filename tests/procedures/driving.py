"""Procedures carried out in virtual time, on an engine whose truth is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferometer.documents.part import to_data
from inferometer.drive.progress_counters import Progress
from inferometer.errors import PeerError
from inferometer.journal.schema import Phase
from inferometer.plan.campaign import Campaign
from inferometer.plan.procedure_parameters import Tests, quickened
from inferometer.plan.schema import Plan
from inferometer.run.evaluate import RunResult
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.stand import Stand, Virtual

IDS = Plan.model_validate({"target": {"api": "completions"}})
"""A plan whose prompts are sent as ids: no time goes into words, and the server puts nothing around them."""


class Silent:
    """A Ui that says nothing, and keeps what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """See Ui."""
        self.notes.append(text)

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


class Failing(Virtual):
    """A system in virtual time that is gone after so many runs."""

    def __init__(self, engine: Settings, after: int) -> None:
        super().__init__(Chosen("tiny-cpu", engine), Silent())
        self._left = after

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        self._left -= 1
        if self._left < 0:
            raise PeerError("http://test: no connection")
        return super().measure(plan, out)


@dataclass(frozen=True, slots=True)
class Ran:
    """A campaign that was carried out: its document, and the summaries of its runs by the name of their folder."""

    document: dict[str, Any]
    summaries: dict[str, dict[str, Any]]

    def test(self, name: str) -> dict[str, Any]:
        """The document of one test."""
        found: dict[str, Any] = next(one for one in self.document["tests"] if one["test"] == name)
        return found

    def value(self, test: str, name: str) -> Any:
        """One of its values."""
        return next(one["value"] for one in self.test(test)["values"] if one["name"] == name)

    def rows(self, test: str, table: str) -> list[dict[str, Any]]:
        """The rows of one of its tables, by the names of the columns."""
        found = next(one for one in self.test(test)["tables"] if one["name"] == table)
        names = [column["name"] for column in found["columns"]]
        return [dict(zip(names, row, strict=True)) for row in found["rows"]]

    def of(self, test: str, *parts: str) -> list[dict[str, Any]]:
        """Summaries of a test's runs, of these parts or of all."""
        return [
            self.summaries[run["run"]] for run in self.test(test)["runs"] if not parts or run["part"] in parts
        ]


def carried_out(
    folder: Path,
    *names: str,
    engine: Settings | None = None,
    plan: Plan | None = None,
    tests: Mapping[str, Any] | None = None,
    quick: bool = False,
    stand: Stand | None = None,
) -> Ran:
    """Tests by name, in virtual time. `tests`: parameters by test, as a plan file has them. `stand`: in place of a virtual one
    of this engine."""
    given = dict(tests or {})
    whole = Campaign(
        names=names,
        plan=plan or Plan(),
        tests=Tests.model_validate(quickened(given) if quick else given),
        simulated=True,
        quick=quick,
    )
    stand = stand or Virtual(Chosen("tiny-cpu", engine or Settings()), Silent())
    tested = carry_out(whole, stand, folder, Silent(), "inferometer test")
    summaries = {
        path.parent.name: json.loads(path.read_bytes())
        for path in sorted((folder / "runs").glob("*/summary.json"))
    }
    return Ran(sentences(to_data(tested.document)), summaries)


def sentences(value: Any) -> Any:
    """A document as data, with each note as its sentence."""
    if isinstance(value, dict):
        if value.keys() == {"code", "facts", "capacity", "message"}:
            return value["message"]
        return {name: sentences(part) for name, part in value.items()}
    return [sentences(part) for part in value] if isinstance(value, list) else value
