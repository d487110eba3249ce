"""Campaigns compared: the figures of the draft's tests on each side, by the rules of a comparison of runs.

A campaign gives one value of each figure; what is independent are campaigns (draft 6.3).
"""

from __future__ import annotations

from typing import Final, Literal

from inferometer.documents.campaign import Unchecked
from inferometer.documents.comparison import (
    ComparedLoads,
    ConfigurationDifference,
    Difference,
    Outcome,
    WordedItem,
)
from inferometer.documents.part import Part
from inferometer.documents.statement import ComplianceStatement
from inferometer.documents.verdict import RunStatus
from inferometer.metrics.statistics import Interval

SCHEMA: Final = "inferometer/campaign-comparison/1"

Bar = Literal["invalid", "partial", "bound", "load", "parameters", "labels", "tokens", "missing"]
"""Why a figure cannot be claimed, or cannot be compared: its test is INVALID in a campaign; did not come to its end; gives
only a bound of the figure, such as a search that met its ceiling; was made at another absolute load on the sides; has other
parameters on the sides; is of another kind on the sides, such as gaps of tokens and of chunks; hangs on tokens that are counted
in different ways; or has no such figure in some campaign."""


class ComparedTest(Part, frozen=True):
    """A test of a campaign. `reasons`: the codes of what keeps it from being VALID; `partial`: it did not come to its end."""

    test: str
    status: RunStatus
    reasons: tuple[str, ...]
    partial: bool


class ComparedCampaign(Part, frozen=True):
    """A campaign of a side. `unchecked`: why its figures could not be held against its runs; None: they were."""

    id: str
    seed: int
    started: str
    status: RunStatus
    simulated: bool
    quick: bool
    tests: tuple[ComparedTest, ...]
    unchecked: Unchecked | None = None


class CampaignSide(Part, frozen=True):
    """Campaigns of one system. `price_hour`: declared; `tokens_per_dollar`: output tokens at the maximum of 5.2 (draft 6.2)."""

    label: str
    name: str
    campaigns: tuple[ComparedCampaign, ...]
    accelerators: int | None
    price_hour: float | None
    tokens_per_dollar: float | None


class CampaignNoise(Part, frozen=True):
    """An A/A side: further campaigns of the baseline's system."""

    name: str
    campaigns: tuple[ComparedCampaign, ...]


class CampaignFigure(Difference, frozen=True):
    """A figure of a test of the draft (`procedure`) on a side against the baseline's; `name` is `procedure.figure`.

    `headline`: it stands for its test. `change`: what `relative` and the intervals are: a share of the baseline's mean, or, of
    figures in per cent, a share of one (0.01 is a percentage point). `own`: where each side has one campaign, the interval of
    the change by the two values' own 95 % intervals, which know nothing of how campaigns differ; None without them. `barred`:
    why no claim is possible. `loads`: the baseline's and the side's absolute load, where `load` is among `barred`.
    """

    procedure: str
    title: str
    unit: str
    headline: bool
    change: Literal["ratio", "points"]
    own: Interval | None
    barred: tuple[Bar, ...]
    loads: ComparedLoads | None = None


class CampaignContrast(Part, frozen=True):
    """All figures of one side against the baseline, in the order of the draft's sections."""

    side: str
    figures: tuple[CampaignFigure, ...]


class CampaignMethod(Part, frozen=True):
    """How the verdicts come about. `campaigns`: of the side with the fewest; `deciding`: figures; `threshold`: a share of one;
    `invalid`: ids of campaigns with the test that is INVALID; `noise_moves`: figures in which A/A campaigns differ beyond
    chance; `unmatched`: tests that not every campaign has; `unlike`: tests whose parameters differ."""

    confidence: float
    least_campaigns: int
    campaigns: int
    deciding: tuple[str, ...]
    threshold: float
    price_source: str | None
    power: float
    seeds_paired: bool
    noise_moves: tuple[str, ...]
    invalid: tuple[tuple[str, str], ...]
    unmatched: tuple[str, ...]
    unlike: tuple[str, ...]
    decides: str
    multiplicity: str
    normalisation: str


class CampaignComparison(Part, frozen=True):
    """What `inferometer compare --json` prints of campaigns. `contrasts`: one for each side after the baseline."""

    schema: Literal["inferometer/campaign-comparison/1"]
    version: str
    outcome: Outcome
    conclusion: str
    sides: tuple[CampaignSide, ...]
    noise: tuple[CampaignNoise, ...]
    checklist: tuple[WordedItem, ...]
    compliance: ComplianceStatement
    differences: tuple[ConfigurationDifference, ...]
    contrasts: tuple[CampaignContrast, ...]
    method: CampaignMethod
