"""The history of results: one entry for each run, test, engine of a benchmark and comparison, and a check of the newest one.

An entry repeats what its result's own document says, never more: it holds no prompt, answer, header, key or URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from inferometer.documents.comparison import FigureVerdict, Outcome
from inferometer.documents.part import Part
from inferometer.documents.verdict import RunStatus
from inferometer.metrics.catalogue import Better
from inferometer.metrics.statistics import Interval

ENTRY_SCHEMA: Final = "inferometer/history-entry/1"
CHECK_SCHEMA: Final = "inferometer/history-check/1"

EntryKind = Literal["run", "test", "bench", "comparison"]
Scale = Literal["ratio", "points", "difference"]
"""How a figure's change is expressed: as a share of its usual value, in percentage points, or, for a figure that need not be
above zero, in its unit."""
CheckOutcome = Literal["regression", "no_regression", "too_little"]


class HistoryFigure(Part, frozen=True):
    """A figure of a result. `better`: None where neither direction is; `deciding`: `history check` decides by it unless it is
    told otherwise; `loads`: the absolute loads of the runs that a test's figure depends on, in requests per second or requests
    at a time, level by level."""

    name: str
    title: str
    unit: str
    better: Better | None
    scale: Scale
    deciding: bool
    value: float
    ci95: Interval | None
    loads: tuple[float, ...] = ()


class HistoryEntry(Part, frozen=True):
    """One result. `id`, `part` and `started` name it: `part` is the test of a campaign, or the engine of a benchmark, else
    empty. `verdict`: of a comparison its outcome. `reasons`: codes. `folder`: relative to the index's folder; None: the result
    has none here. `fingerprint`: of the requests, which depends on the seed. `conditions`: what has to agree between
    comparable results, by dotted keys; a key that is absent is not declared. `versions`: what may change between them."""

    schema: Literal["inferometer/history-entry/1"]
    kind: EntryKind
    id: str
    part: str
    name: str
    started: str
    verdict: RunStatus | Outcome
    reasons: tuple[str, ...]
    interrupted: bool
    folder: str | None
    seed: int | None
    fingerprint: str | None
    conditions: Mapping[str, str]
    versions: Mapping[str, str]
    figures: tuple[HistoryFigure, ...]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells this result from all others."""
        return self.kind, self.id, self.part, self.started


class NumberedEntry(Part, frozen=True):
    """An entry and its number in this index."""

    number: int
    entry: HistoryEntry


class RecentResults(Part, frozen=True):
    """The newest `k` results against the `n` before them. `change`: on the figure's scale, positive where it grew, None: a
    share of 0; `p`: two-sided; `p_holm`: after Holm's correction."""

    k: int
    n: int
    change: float | None
    p: float
    p_holm: float


class ChangePoint(Part, frozen=True):
    """Where a figure's level changed. `first`: the number of the first result after it; `change`: between the levels, None: a
    share of 0; `p`: of the permutation test; `stands`: it is the last one, and recent enough to decide."""

    figure: str
    first: int
    change: float | None
    p: float
    better: bool
    stands: bool


class CheckedFigure(Part, frozen=True):
    """A figure of the result that was checked. `usual`: the centre of the results before; `expected`: the 95 % interval of one
    new result; `change`: of the newest result from the usual; `noise`: the standard deviation between results, on the figure's
    scale; `detectable`: the change of one result that the test would have found four times out of five; these three are None
    where they were a share of 0; `outliers`: results without a say in the noise; `elsewhere`: comparable results that measured
    it at other absolute loads, and are left out."""

    name: str
    title: str
    unit: str
    scale: Scale
    better: Better
    deciding: bool
    newest: float
    n: int
    usual: float | None
    expected: Interval | None
    change: float | None
    noise: float | None
    detectable: float | None
    outliers: int
    elsewhere: int
    recent: tuple[RecentResults, ...]
    verdict: FigureVerdict


class Incomparable(Part, frozen=True):
    """A result of the same kind that was left out, and the keys of the conditions in which it differs; no key: it is not
    VALID, or was interrupted."""

    number: int
    keys: tuple[str, ...]


class VersionChange(Part, frozen=True):
    """A version that is another one than in the result before."""

    name: str
    before: str | None
    now: str | None


class CheckedResult(Part, frozen=True):
    """One result that was checked. `compared`: numbers of the comparable results before it, oldest first, of which each figure
    uses the newest that measured it; `later`: numbers of results of its kind that came to the index after it, although they are
    not newer by their dates, or dated ahead of now; `too_little`: why no
    claim is possible (`loads`: there would be enough results, but their loads are others; `lacking`: it has not a figure that
    decides in those before), None: one is; `same_requests`: all sent the same requests, None: not known."""

    number: int
    kind: EntryKind
    id: str
    part: str
    started: str
    verdict: RunStatus | Outcome
    compared: tuple[int, ...]
    later: tuple[int, ...]
    incomparable: tuple[Incomparable, ...]
    same_requests: bool | None
    versions: tuple[VersionChange, ...]
    undeclared: tuple[str, ...]
    figures: tuple[CheckedFigure, ...]
    changes: tuple[ChangePoint, ...]
    too_little: Literal["few", "loads", "not_valid", "no_figure", "lacking"] | None


class CheckMethod(Part, frozen=True):
    """How the verdicts come about. `alpha`: of all tests of recent results together, two-sided; `alpha_changes`: of all change
    points; `least`: results before the newest; `last`: most results before it; `threshold`: a share of one; `long`: results
    that a search for change points needs; `ignored`: conditions that need not agree."""

    alpha: float
    alpha_changes: float
    least: int
    last: int
    long: int
    threshold: float
    recent: tuple[int, ...]
    permutations: int
    seed: int
    ignored: tuple[str, ...]


class HistoryCheck(Part, frozen=True):
    """What `inferometer history check --json` prints."""

    schema: Literal["inferometer/history-check/1"]
    version: str
    outcome: CheckOutcome
    results: tuple[CheckedResult, ...]
    method: CheckMethod


class TrendPoint(Part, frozen=True):
    """A result's value of a figure. `at`: seconds since the epoch; `valid`: it is VALID and whole."""

    number: int
    at: float
    started: str
    value: float
    ci95: Interval | None
    valid: bool


class Trend(Part, frozen=True):
    """One figure over comparable results, oldest first. `changes`: numbers of the first results after a change of level;
    `incomparable`: results with this figure under other conditions, which are left out; `elsewhere`: and at other absolute
    loads."""

    name: str
    title: str
    unit: str
    better: Better | None
    kind: EntryKind
    part: str
    model: str | None
    engine: str | None
    points: tuple[TrendPoint, ...]
    changes: tuple[int, ...]
    incomparable: int
    elsewhere: int
