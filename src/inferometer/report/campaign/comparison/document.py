"""A comparison of campaigns as a document: its result with words. Console, Markdown, HTML and JUnit are made of it alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import asdict

from inferometer.documents.campaign_comparison import (
    SCHEMA,
    CampaignComparison,
    CampaignContrast,
    CampaignMethod,
    CampaignNoise,
    CampaignSide,
    ComparedCampaign,
    ComparedTest,
)
from inferometer.documents.comparison import WordedItem
from inferometer.documents.statement import ComplianceStatement
from inferometer.judge.comparison import welch
from inferometer.judge.comparison.campaign_figures import MAXIMUM
from inferometer.judge.comparison.campaigns import CampaignCriteria, ComparedCampaigns, Repeat
from inferometer.judge.comparison.equivalence import accelerators
from inferometer.judge.comparison.rules import LEAST_RUNS
from inferometer.measure.stats import CONFIDENCE
from inferometer.report.campaign.comparison import words
from inferometer.report.comparison.document import SECONDS_AN_HOUR
from inferometer.report.comparison.words import NORMALISATION, label
from inferometer.report.run.composition import moment


def compose(
    version: str,
    names: Sequence[str],
    sides: Sequence[Sequence[Repeat]],
    criteria: CampaignCriteria,
    compared: ComparedCampaigns,
    compliance: ComplianceStatement,
) -> CampaignComparison:
    """The document. `names`: those of the sides and, after them, of the A/A sides; `compliance`: the statement on it."""
    checklist = tuple(
        WordedItem(
            **asdict(item), title=words.title_of(item), message=words.finding(item), advice=words.advice(item)
        )
        for item in compared.items
    )
    contrasts = tuple(CampaignContrast(label(at), row) for at, row in enumerate(compared.contrasts, start=1))
    method = _method(criteria, compared)
    return CampaignComparison(
        schema=SCHEMA,
        version=version,
        outcome=compared.outcome,
        conclusion=words.conclusion(compared.outcome, method, checklist, contrasts),
        sides=tuple(_side(at, names[at], side, criteria) for at, side in enumerate(sides)),
        noise=tuple(
            CampaignNoise(name, tuple(map(_campaign, side)))
            for name, side in zip(names[len(sides) :], criteria.noise, strict=True)
        ),
        checklist=checklist,
        compliance=compliance,
        differences=compared.differences,
        contrasts=contrasts,
        method=method,
    )


def _method(criteria: CampaignCriteria, compared: ComparedCampaigns) -> CampaignMethod:
    tests = {one.test for row in compared.contrasts for one in row if one.test is not None}
    return CampaignMethod(
        confidence=CONFIDENCE,
        least_campaigns=LEAST_RUNS,
        campaigns=compared.least,
        deciding=compared.deciding,
        threshold=criteria.threshold,
        price_source=criteria.declared.price_source,
        power=welch.POWER,
        seeds_paired=tests == {"paired"},
        noise_moves=compared.noise_moves,
        invalid=compared.invalid,
        unmatched=compared.unmatched,
        unlike=compared.unlike,
        decides=words.DECIDES,
        multiplicity=words.MULTIPLICITY,
        normalisation=NORMALISATION,
    )


def _side(at: int, name: str, side: Sequence[Repeat], criteria: CampaignCriteria) -> CampaignSide:
    price = criteria.declared.prices.get(at)
    rates = [rate for one in side if (rate := _maximum(one)) is not None]
    mean = math.fsum(rates) / len(rates) if rates and len(rates) == len(side) else None
    return CampaignSide(
        label=label(at),
        name=name,
        campaigns=tuple(map(_campaign, side)),
        accelerators=accelerators([one.facts for one in side]),
        price_hour=price,
        tokens_per_dollar=mean / price * SECONDS_AN_HOUR if mean is not None and price else None,
    )


def _maximum(one: Repeat) -> float | None:
    test = one.test("throughput")
    found = next((value.value for value in test.values if value.name == MAXIMUM), None) if test else None
    return float(found) if isinstance(found, int | float) else None


def _campaign(one: Repeat) -> ComparedCampaign:
    facts, document = one.facts, one.document
    return ComparedCampaign(
        id=facts.id,
        seed=facts.seed,
        started=moment(facts.started_ns),
        status=facts.status,
        simulated=facts.simulated,
        quick=document.quick,
        tests=tuple(
            ComparedTest(
                test.test,
                test.verdict.status,
                tuple(dict.fromkeys(reason.code for reason in test.verdict.reasons)),
                test.ended_by is not None,
            )
            for test in document.tests
        ),
        unchecked=document.unchecked,
    )
