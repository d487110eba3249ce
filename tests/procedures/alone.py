"""One procedure in virtual time, with what it would search for known already: so a test can choose its load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from procedures.driving import Silent

from inferometer.errors import CannotSwitch
from inferometer.journal.schema import Phase
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.registry import PROCEDURES
from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup, workload_key
from inferometer.procedures.step import (
    KnownLimits,
    Measured,
    Performed,
    PerformedRun,
    Refused,
    Run,
    Switch,
    Switched,
)
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Stand, Virtual

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Alone:
    """What was done, in which folder, and what came of it."""

    setup: Setup
    done: list[Performed]
    results: Results
    folder: Path

    def value(self, name: str) -> Any:
        """One of the values."""
        return next(one.value for one in self.results.values if one.name == name)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table, by the names of its columns."""
        found = next(one for one in self.results.tables if one.name == table)
        return [dict(zip([column.name for column in found.columns], row, strict=True)) for row in found.rows]

    def of(self, part: str, **at: object) -> PerformedRun:
        """The run of this part that lies there."""
        return next(
            one
            for one in self.done
            if isinstance(one, PerformedRun)
            and one.step.part == part
            and all(getattr(one.step.at, name) == value for name, value in at.items())
        )

    def record(self, ran: PerformedRun) -> dict[str, Floats]:
        """Its measured requests out of requests.parquet, in their order: numbers by column (None is NaN), and `ttft` and `e2e`
        in ms, worked out here."""
        table = pq.read_table(self.folder / ran.outcome.run / "requests.parquet")
        rows = [row for row in table.to_pylist() if row["phase"] == Phase.MEASURE]
        rows.sort(key=lambda row: row["index"])
        names = ("request_class", "usage_input", "usage_output", "usage_cached", "input_tokens_shared", "input_tokens_asked",
                 "output_tokens_asked", "t_intended")  # fmt: skip
        found = {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows], float)
            for name in names
        }
        submit = np.array([row["t_submit"] for row in rows], float)
        first = np.array(
            [row["event_ns"][row["first_visible"]] if row["first_visible"] >= 0 else np.nan for row in rows],
            float,
        )
        last = np.array([row["event_ns"][-1] if row["event_ns"] else np.nan for row in rows], float)
        return found | {"ttft": (first - submit) / 1e6, "e2e": (last - submit) / 1e6}


def alone(
    folder: Path,
    name: str,
    engine: Settings,
    workload: Plan | None,
    base: float,
    tests: Mapping[str, Any] | None = None,
    plan: Plan | None = None,
    stand: Stand | None = None,
) -> Alone:
    """A procedure carried out. `base`: what is known to be sustained of `workload`, in requests a second."""
    known = KnownLimits() if workload is None else KnownLimits(saturation={workload_key(workload): base})
    setup = Setup(plan or Plan(), Tests.model_validate(dict(tests or {})), known)
    stand = stand or Virtual(Chosen("tiny-cpu", engine), Silent())
    steps = PROCEDURES[name].steps(setup)
    done: list[Performed] = []
    came: Any = None
    while True:
        try:
            step = steps.throw(came) if isinstance(came, Exception) else steps.send(came)
        except StopIteration:
            break
        came = _do(stand, step, folder)
        if isinstance(step, Run) and isinstance(came, Measured):
            done.append(PerformedRun(step, came))
        else:
            done.append(Performed(step, Refused(str(came)) if isinstance(came, Exception) else came))
    return Alone(setup, done, PROCEDURES[name].results(setup, done), folder)


def _do(stand: Stand, step: Run | Switch, folder: Path) -> Measured | Switched | CannotSwitch:
    if isinstance(step, Run):
        finding = stand.measure(step.plan, folder)
        return Measured(finding.folder.name, finding.summary, finding.requests)
    try:
        return stand.switch(step.what, step.state)
    except CannotSwitch as why:
        return why
