"""A comparison of sides with a baseline, side A ([comparison.md](../../../docs/comparison.md)).

Differences, thresholds and noise floors are shares of the baseline's mean over its runs: 0.1 is 10 %. Members that the
statistics do not define for the runs at hand are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from inferometer.documents.part import Part
from inferometer.documents.statement import ComplianceStatement
from inferometer.documents.verdict import RunStatus
from inferometer.metrics.statistics import Interval

SCHEMA: Final = "inferometer/comparison/3"

Outcome = Literal["regression", "no_regression", "no_claim", "invalid", "not_comparable"]
"""regression: worse in a deciding figure; no_claim: the evidence does not suffice; invalid: a run is INVALID;
not_comparable: a requirement of draft 6.1 is violated."""
FigureVerdict = Literal["better", "worse", "no_difference", "no_claim", "not_comparable"]
Held = Literal["interval", "holm", "bootstrap", "threshold", "noise"]
"""What kept a figure from being called better or worse."""
ItemLevel = Literal["MUST", "RECOMMENDED", "checklist"]
ItemStatus = Literal["satisfied", "declared", "unknown", "violated"]


class ComparedRun(Part, frozen=True):
    """A run of a side. `reasons`: codes of the checks that keep it from being VALID."""

    id: str
    seed: int
    started: str
    status: RunStatus
    reasons: tuple[str, ...]
    simulated: bool
    fingerprint: str | None


class Side(Part, frozen=True):
    """Runs of one system. `price_hour`: declared; `tokens_per_dollar`: output tokens (draft 6.2)."""

    label: str
    name: str
    runs: tuple[ComparedRun, ...]
    accelerators: int | None
    price_hour: float | None
    tokens_per_dollar: float | None


class NoiseSide(Part, frozen=True):
    """A/A runs: further runs of the baseline's system."""

    name: str
    runs: tuple[ComparedRun, ...]


class ComparedLoads(Part, frozen=True):
    """The load of a level of a test on each side, the mean over its campaigns; None: a side has no such level.

    `percent`: of the system's own maximum; None: the level is no percentage. `measure`: of `values`, a rate per second or what
    is in flight; `of`: what that counts.
    """

    test: str
    percent: float | None
    measure: Literal["rate", "concurrency"]
    values: tuple[float | None, ...]
    of: Literal["requests", "conversations", "sessions"] = "requests"


class ItemFacts(Part, frozen=True, omit_defaults=True):
    """What an item of the checklist rests on; an item has the members that are about it.

    `seeds`: of each side; `one_seed`: all runs have the same; `why`: what decided about the workload; `apart`: seeds whose
    fingerprints differ. `values`: the declarations met on each side; `normalised`: what throughput is divided by. `keys`:
    plan keys that differ; `interrupted`: ids of runs. `methods` to `recommended`: how tokens were counted. `spans`: first
    start and last end of each side, wall clock ns; `shared`: resources declared shared; `how`: measured in which order.
    `count`: differences in configuration; `simulated`: all runs are. `loads`: tests whose absolute loads differ although their
    parameters agree, each at the level that is farthest apart; `within`: for each side, keys in which its own campaigns differ.
    """

    seeds: tuple[tuple[int, ...], ...] | None = None
    one_seed: bool | None = None
    why: Literal["seeds", "fingerprints", "plans"] | None = None
    apart: tuple[int, ...] | None = None
    values: tuple[tuple[Mapping[str, str | int | None], ...], ...] | None = None
    normalised: Literal["price", "gpu"] | None = None
    keys: tuple[str, ...] | None = None
    interrupted: tuple[str, ...] | None = None
    methods: tuple[str | None, ...] | None = None
    tokenizers: tuple[str | None, ...] | None = None
    sources: tuple[str | None, ...] | None = None
    models: tuple[str | None, ...] | None = None
    recommended: bool | None = None
    spans: tuple[tuple[int, int], ...] | None = None
    shared: bool | None = None
    how: Literal["virtual", "interleaved", "in turn"] | None = None
    count: int | None = None
    simulated: bool | None = None
    loads: tuple[ComparedLoads, ...] | None = None
    within: tuple[tuple[str, ...], ...] | None = None


class Item(Part, frozen=True):
    """An item of the checklist: the section of the draft it is from, its level, its status, and what was found."""

    code: str
    section: str
    level: ItemLevel
    status: ItemStatus
    facts: ItemFacts

    @property
    def forbids(self) -> bool:
        """Whether it alone makes the sides not comparable. Loads that differ in some tests bar figures of those tests only."""
        return self.level == "MUST" and self.status == "violated" and not self.facts.loads


class WordedItem(Item, frozen=True):
    """An item with its words; `advice`: what to do about it, if anything."""

    title: str
    message: str
    advice: str | None


class ConfigurationDifference(Part, frozen=True):
    """A key in which plans or declarations differ: for each side, the values met among its runs."""

    key: str
    values: tuple[tuple[Any, ...], ...]


class Estimate(Part, frozen=True):
    """A side's runs: how many, their mean with its 95 % interval (None for fewer than two), and their values."""

    n: int
    mean: float
    ci95: Interval | None
    values: tuple[float, ...]


class NoiseFloor(Part, frozen=True):
    """The largest relative difference of A/A runs, without its sign, and its 95 % interval."""

    value: float
    ci95: Interval | None


class Difference(Part, frozen=True):
    """One figure of one side against the baseline.

    `p_holm`: after Holm's correction; `detectable`: what the test would have found four times out of five, with its own
    interval, for the spread of few runs is known but roughly; `equivalent`: whether the whole interval lies within the
    threshold; `held`: what kept it from being called better or worse; `test`: which of the two intervals decides, `p` and
    `detectable` are of the same test; None: there was nothing to test.
    """

    name: str
    better: Literal["more", "less"]
    deciding: bool
    baseline: Estimate | None
    side: Estimate | None
    relative: float | None
    welch: Interval | None
    p: float | None
    p_holm: float | None
    paired: Interval | None
    bootstrap: Interval | None
    hedges_g: float | None
    hedges_ci95: Interval | None
    detectable: float | None
    floor: NoiseFloor | None
    equivalent: bool | None
    verdict: FigureVerdict
    held: tuple[Held, ...]
    test: Literal["welch", "paired"] | None
    detectable_ci95: Interval | None


class TitledDifference(Difference, frozen=True):
    """A difference with the figure's title and unit; values of the success rate are shares of one all the same."""

    title: str
    unit: str


class Contrast(Part, frozen=True):
    """All figures of one side against the baseline."""

    side: str
    metrics: tuple[TitledDifference, ...]


class ComparisonMethod(Part, frozen=True):
    """How the verdicts come about. `runs`: of the side with the fewest; `power`: with which a detectable difference would
    have been found; `replicates`, `seed`: of the bootstrap; `seeds_paired`: all figures tested are decided by pairs of runs;
    `noise_moves`: figures in which A/A runs differ beyond chance; `invalid`: ids of INVALID runs."""

    confidence: float
    least_runs: int
    runs: int
    deciding: tuple[str, ...]
    threshold: float
    price_source: str | None
    power: float
    replicates: int
    seed: int
    seeds_paired: bool
    noise_moves: tuple[str, ...]
    invalid: tuple[str, ...]
    decides: str
    multiplicity: str
    normalisation: str


class ComparisonDocument(Part, frozen=True):
    """What `inferometer compare --json` prints. `contrasts`: one for each side after the baseline; `compliance`: the
    statement on draft section 6."""

    schema: Literal["inferometer/comparison/3"]
    version: str
    outcome: Outcome
    conclusion: str
    sides: tuple[Side, ...]
    noise: tuple[NoiseSide, ...]
    checklist: tuple[WordedItem, ...]
    compliance: ComplianceStatement
    differences: tuple[ConfigurationDifference, ...]
    contrasts: tuple[Contrast, ...]
    method: ComparisonMethod
