"""A comparison as a document: its result with words. Console, Markdown and JUnit are made of it alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import asdict

from inferometer.documents.comparison import (
    SCHEMA,
    ComparedRun,
    ComparisonDocument,
    ComparisonMethod,
    Contrast,
    Difference,
    Item,
    NoiseSide,
    Side,
    TitledDifference,
    WordedItem,
)
from inferometer.documents.statement import ComplianceStatement
from inferometer.judge.comparison import welch
from inferometer.judge.comparison.compare import Comparison, Criteria, Run
from inferometer.judge.comparison.equivalence import accelerators, differences
from inferometer.judge.comparison.rules import LEAST_RUNS
from inferometer.measure.stats import CONFIDENCE
from inferometer.report.comparison import words
from inferometer.report.run.composition import moment

SECONDS_AN_HOUR = 3_600


def compose(
    version: str,
    names: Sequence[str],
    sides: Sequence[Sequence[Run]],
    criteria: Criteria,
    comparison: Comparison,
    compliance: ComplianceStatement,
) -> ComparisonDocument:
    """The document. `names`: those of the sides and, after them, of the A/A sides; `compliance`: the statement on it."""
    checklist = tuple(_worded(item) for item in comparison.items)
    contrasts = tuple(
        Contrast(words.label(at), tuple(map(_titled, row)))
        for at, row in enumerate(comparison.contrasts, start=1)
    )
    method = _method(criteria, comparison)
    return ComparisonDocument(
        schema=SCHEMA,
        version=version,
        outcome=comparison.outcome,
        conclusion=words.conclusion(comparison.outcome, method, checklist, contrasts),
        sides=tuple(_side(at, names[at], side, criteria) for at, side in enumerate(sides)),
        noise=tuple(
            NoiseSide(name, tuple(map(_run, side)))
            for name, side in zip(names[len(sides) :], criteria.noise, strict=True)
        ),
        checklist=checklist,
        compliance=compliance,
        differences=differences([[run.facts for run in side] for side in sides]),
        contrasts=contrasts,
        method=method,
    )


def _method(criteria: Criteria, comparison: Comparison) -> ComparisonMethod:
    tests = {one.test for row in comparison.contrasts for one in row if one.test is not None}
    return ComparisonMethod(
        confidence=CONFIDENCE,
        least_runs=LEAST_RUNS,
        runs=comparison.least_runs,
        deciding=comparison.deciding,
        threshold=criteria.threshold,
        price_source=criteria.declared.price_source,
        power=welch.POWER,
        replicates=criteria.replicates,
        seed=criteria.seed,
        seeds_paired=tests == {"paired"},
        noise_moves=comparison.noise_moves,
        invalid=comparison.invalid,
        decides=words.DECIDES,
        multiplicity=words.MULTIPLICITY,
        normalisation=words.NORMALISATION,
    )


def _side(at: int, name: str, side: Sequence[Run], criteria: Criteria) -> Side:
    price = criteria.declared.prices.get(at)
    rates = [run.values.get("output_tok_s") for run in side]
    known = [rate for rate in rates if rate is not None]
    mean = math.fsum(known) / len(known) if len(known) == len(rates) else None
    return Side(
        label=words.label(at),
        name=name,
        runs=tuple(map(_run, side)),
        accelerators=accelerators([run.facts for run in side]),
        price_hour=price,
        tokens_per_dollar=mean / price * SECONDS_AN_HOUR if mean is not None and price else None,
    )


def _run(run: Run) -> ComparedRun:
    facts = run.facts
    return ComparedRun(
        id=facts.id,
        seed=facts.seed,
        started=moment(facts.started_ns),
        status=facts.status,
        reasons=facts.reasons,
        simulated=facts.simulated,
        fingerprint=facts.fingerprint,
    )


def _worded(item: Item) -> WordedItem:
    return WordedItem(
        **asdict(item), title=words.ITEMS[item.code], message=words.finding(item), advice=words.advice(item)
    )


def _titled(one: Difference) -> TitledDifference:
    title = words.TITLES[one.name]
    return TitledDifference(**asdict(one), title=title.title, unit=title.unit)
