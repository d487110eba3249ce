"""Simulations for tests: a plan by its flags in virtual time, watched by nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inferometer.documents.part import to_data
from inferometer.documents.summary import Summary
from inferometer.drive.progress_counters import Progress
from inferometer.drive.shares import Shares, share_of
from inferometer.journal.schema import Phase
from inferometer.plan.parse import build
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose


class Nobody:
    """A Ui that tells nobody."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


def simulated(
    out: Path,
    flags: dict[str, object],
    *settings: str,
    system: str | None = None,
    shares: Shares = share_of,
) -> RunResult:
    """One simulation, of an engine or of a system on it."""
    return simulate(build(None, flags), choose(None, settings, system), out, Nobody(), shares=shares)


def timeless(summary: Summary) -> dict[str, Any]:
    """A summary without its ids and dates."""
    left = to_data(summary)
    for name in ("id", "started", "ended"):
        left["run"][name] = None
    left["window"]["start"] = None
    return dict(left)
