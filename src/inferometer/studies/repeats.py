"""A campaign repeated: N campaigns of one plan, each with its own seed, so that its answers can be compared (draft 6.3).

    runs/<utc>-<name>/  <utc>-<name>-1/  <utc>-<name>-2/  ...   each a campaign's folder, complete in itself

Repeat k (from 0) has the plan's seed plus k * SEEDS. Runs of one campaign add less than SEEDS to its seed, so no two repeats
send the same requests; and equal plans give equal seeds, so the repeats of two systems pair by seed. Plans with a workload file
keep the seed of the file in every repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inferometer.errors import PeerError, PlanError, Problem
from inferometer.plan.campaign import Campaign
from inferometer.run.ui import Ui
from inferometer.studies.campaign import Tested, conduct_in, folder_of
from inferometer.studies.comparison import seeded
from inferometer.studies.stand import Confirm

SEEDS = 1_000_000
"""Between the seeds of two repeats."""
MOST = 1_000
WORST = (130, 5, 2, 3, 4, 0)
"""Exit codes of campaigns, worst first."""

Conduct = Callable[[Path, Campaign, Ui, Confirm, str], Tested]
"""Carries a campaign out in a folder, as `conduct_in` does."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """What was measured of `requested` repeats. `folder`: holds those of the repeats. `problem`: why there are no more."""

    folder: Path
    requested: int
    repeats: tuple[Tested, ...]
    problem: str | None = None
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """The worst of the repeats': 130 interrupted, 5 ended by the server, 2 by the plan, else by the verdicts."""
        found = {one.exit_code for one in self.repeats}
        if self.interrupted:
            found.add(130)
        if self.problem is not None:
            found.add(PeerError.exit_code)
        return next(code for code in WORST if code in found)


def check_repeats(repeats: int) -> None:
    """Raises PlanError for a number that no campaign can be repeated."""
    if not 1 <= repeats <= MOST:
        raise PlanError([Problem("--repeats", f"must be from 1 to {MOST:,}")])


def repeat_of(campaign: Campaign, number: int) -> Campaign:
    """The campaign as its repeat `number`, from 0."""
    seed = (campaign.plan.workload.seed + SEEDS * number) % 2**63
    return campaign.model_copy(update={"plan": seeded(campaign.plan, seed)})


def conduct_repeats(
    campaign: Campaign,
    repeats: int,
    out: Path,
    ui: Ui,
    confirm: Confirm,
    command: Callable[[Campaign], str],
    conduct: Conduct = conduct_in,
) -> Repeated:
    """Carry a campaign out `repeats` times. Ctrl-C ends it, and so does a server that cannot be reached any more; what was
    measured is kept. `command`: the command line that carries out one repeat.

    Raises what `conduct_campaign` does, PeerError and KeyboardInterrupt only in the first repeat.
    """
    check_repeats(repeats)
    folder = folder_of(campaign, out)
    done: list[Tested] = []
    problem, interrupted = None, False
    for number in range(repeats):
        one = repeat_of(campaign, number)
        ui.note(f"repeat {number + 1} of {repeats}, seed {one.plan.workload.seed}")
        place = folder / f"{folder.name}-{number + 1}"
        place.mkdir()
        try:
            done.append(conduct(place, one, ui, confirm, command(one)))
        except KeyboardInterrupt:
            if not done:
                raise
            interrupted = True
        except PeerError as why:
            if not done:
                raise
            problem = f"repeat {number + 1}: {why}"
        if problem is not None or interrupted or done[-1].exit_code == 130:
            break
    return Repeated(folder, repeats, tuple(done), problem, interrupted)
