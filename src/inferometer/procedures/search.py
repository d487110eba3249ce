"""The search for the highest load a system sustains: step up, bracket, bisect, confirm (draft 5.2.3, 5.5.3).

| what is known of the loads tried                    | what comes next                                              |
| --------------------------------------------------- | ------------------------------------------------------------ |
| nothing                                             | the first                                                    |
| the last one was not settled by its intervals       | the same again, twice as long, `longer` times at most        |
| all were sustained                                  | one step up, to `most`                                       |
| none was sustained                                  | half of it, down to `least`                                  |
| lowest not sustained less highest sustained: wide   | the middle                                                   |
| the same: narrow                                    | the highest sustained once more, with another seed           |
| that was not sustained                              | the same again, twice as long, `longer` times at most: the   |
|                                                     | two disagree, and the longest decides                        |
| that was sustained                                  | the answer                                                   |

Where a capacity is expected (plateau.py), the search begins just below it, and a bracket about it is narrow when it is no wider
than NEAR of it. A trial that contradicts it is done again, as one that contradicts an earlier one is. Where nothing above it
has to fail (`above`), a level just below it that was sustained is the answer.

What comes next follows from what was tried, and from nothing else: `advance` has no memory. A load that stays unsettled counts
as not sustained, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NEAR = 0.35
"""Of an expected capacity: the width of a bracket about it. It shows that the capacity is what it was measured to be."""
JUST_BELOW = 0.85
MOST_TRIALS = 60
"""No search that makes sense is longer; a system that answers at random could make one endless."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Where to look. Levels are requests a second, or requests in flight (`integral`).

    One step up is `step` more, or `factor` times as much if that is more. The bracket is narrow when it is no wider than
    `resolution` of its lower end, or than 1 where levels are whole. After `trials` it is given up. `confirm`: whether the
    answer has to hold once more.
    """

    first: float
    step: float
    most: float
    least: float
    factor: float = 1.0
    resolution: float = 0.05
    longer: int = 2
    integral: bool = False
    trials: int = MOST_TRIALS
    expected: float | None = None
    above: bool = True
    confirm: bool = True

    def up(self, level: float) -> float:
        """The next higher level."""
        return min(self.rounded(max(level + self.step, level * self.factor)), self.most)

    def middle(self, low: float, high: float) -> float:
        """Between two levels."""
        return float((int(low) + int(high)) // 2) if self.integral else self.rounded((low + high) / 2)

    def rounded(self, level: float) -> float:
        """A level as it is asked for: whole, or four digits of it."""
        return float(round(level)) if self.integral else float(f"{level:.4g}")

    def contradicted_by(self, trial: Trial) -> bool:
        """Whether a trial says something else of a load than the expected capacity does."""
        return self.expected is not None and trial.sustained is not (trial.level <= self.expected)

    def narrow(self, low: float, high: float) -> bool:
        """Whether there is nothing left to look for between two levels."""
        if self.expected is not None and low <= self.expected <= high and high - low <= NEAR * self.expected:
            return True
        return high - low <= max(self.resolution * low, 1.0 if self.integral else 0.0) or not (
            low < self.middle(low, high) < high
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """A load that was tried: `times` as long as usual (1, 2, 4, ...); whether it was sustained, None: its intervals do not
    say. `confirms`: it repeats one that was sustained."""

    level: float
    sustained: bool | None
    times: int = 1
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Try this load next."""

    level: float
    times: int = 1
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The highest load sustained, None: not even the least was. `below` is the lowest that was not.

    `why`: `bracketed` between the two; `ceiling`: sustained at the most that was to be tried; `floor`: nothing was sustained;
    `endless`: given up. `unsettled`: loads that counted as not sustained because their intervals never said.
    """

    level: float | None
    below: float | None
    why: Literal["bracketed", "ceiling", "floor", "endless"]
    unsettled: tuple[float, ...] = ()


def reason(ask: Ask) -> Literal["longer", "confirm", "next"]:
    """Why a load is tried: for longer than before, to confirm it, or as the next one."""
    return "longer" if ask.times > 1 else "confirm" if ask.confirms else "next"


def advance(ladder: Ladder, trials: Sequence[Trial]) -> Ask | Answer:
    """What comes next, by the table above."""
    if not trials:
        return Ask(ladder.rounded(ladder.first))
    last = trials[-1]
    disagrees = (last.confirms and not last.sustained) or ladder.contradicted_by(last)
    if (last.sustained is None or disagrees) and last.times < 2**ladder.longer:
        return Ask(last.level, last.times * 2, last.confirms)
    low, high, unsettled = _bracket(trials)
    if len(trials) >= ladder.trials:
        return Answer(low, high, "endless", unsettled)
    if low is None:
        assert high is not None  # every trial is one or the other
        if high <= ladder.least:
            return Answer(None, high, "floor", unsettled)
        half = ladder.rounded(high / 2)
        return Ask(max(half if half < high else high - 1, ladder.least))
    if high is None:
        if not ladder.above and ladder.expected is not None and low >= JUST_BELOW * ladder.expected:
            return Answer(low, None, "bracketed", unsettled)
        if low < ladder.most:
            return Ask(ladder.up(low))
        return _confirmed(ladder, low, None, trials, "ceiling", unsettled)
    if not ladder.narrow(low, high):
        return Ask(ladder.middle(low, high))
    return _confirmed(ladder, low, high, trials, "bracketed", unsettled)


def reached(ladder: Ladder, trials: Sequence[Trial]) -> float | None:
    """The answer's level; of a search that was cut short, the highest sustained below the lowest that was not."""
    move = advance(ladder, trials) if trials else None
    return move.level if isinstance(move, Answer) else _bracket(trials)[0]


def _bracket(trials: Sequence[Trial]) -> tuple[float | None, float | None, tuple[float, ...]]:
    """The highest level sustained below the lowest that was not, that one, and the levels that never settled."""
    final = {trial.level: trial for trial in trials}  # the last word on a level counts
    failed = [level for level, trial in final.items() if not trial.sustained]
    high = min(failed, default=None)
    below = [level for level, trial in final.items() if trial.sustained and (high is None or level < high)]
    unsettled = tuple(sorted(level for level, trial in final.items() if trial.sustained is None))
    return max(below, default=None), high, unsettled


def _confirmed(
    ladder: Ladder,
    low: float,
    high: float | None,
    trials: Sequence[Trial],
    why: Literal["bracketed", "ceiling"],
    unsettled: tuple[float, ...],
) -> Ask | Answer:
    """The answer, once it was repeated, if it has to be."""
    if not ladder.confirm or any(trial.level == low and trial.confirms for trial in trials):
        return Answer(low, high, why, unsettled)
    return Ask(low, confirms=True)
