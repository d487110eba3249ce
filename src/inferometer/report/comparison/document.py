"""A comparison as data, in the shape comparison.schema.json fixes. Console, Markdown and JUnit are made of it alone."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from inferometer.judge.comparison import welch
from inferometer.judge.comparison.compare import FIGURES, LEAST_RUNS, Asked, Comparison, Difference, Run
from inferometer.judge.comparison.equivalence import accelerators, differences
from inferometer.measure.stats import CONFIDENCE
from inferometer.report.comparison import words
from inferometer.report.run.composition import moment

SCHEMA = "inferometer/comparison/1"
SECONDS_AN_HOUR = 3_600


@functools.cache
def comparison_schema() -> dict[str, Any]:
    """The JSON Schema that ships with the package."""
    text = (
        importlib.resources.files("inferometer.report")
        .joinpath("comparison.schema.json")
        .read_text(encoding="utf-8")
    )
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def compose(
    version: str,
    names: Sequence[str],
    sides: Sequence[Sequence[Run]],
    asked: Asked,
    found: Comparison,
    compliance: Mapping[str, Any],
) -> dict[str, Any]:
    """The document. `names`: those of the sides and, after them, of the A/A sides; `compliance`: the statement on it, as JSON
    has it."""
    told = [[run.told for run in side] for side in sides]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": version,
        "outcome": found.outcome,
        "sides": [_side(at, names[at], side, asked) for at, side in enumerate(sides)],
        "noise": [
            {"name": name, "runs": [_run(run) for run in side]}
            for name, side in zip(names[len(sides) :], asked.noise, strict=True)
        ],
        "checklist": [
            {**asdict(item), "facts": _plain(dict(item.facts)), **words.item(item)} for item in found.items
        ],
        "compliance": _plain(dict(compliance)),
        "differences": _plain(differences(told)),
        "contrasts": [
            {"side": words.label(at), "metrics": [_metric(one) for one in row]}
            for at, row in enumerate(found.contrasts, start=1)
        ],
        "method": {
            "confidence": CONFIDENCE,
            "least_runs": LEAST_RUNS,
            "runs": found.least_runs,
            "deciding": list(found.deciding),
            "threshold": asked.threshold,
            "price_source": asked.declared.price_source,
            "power": welch.POWER,
            "replicates": asked.replicates,
            "seed": asked.seed,
            "seeds_paired": all(
                one.paired is not None for row in found.contrasts for one in row if one.welch
            ),
            "noise_moves": list(found.noise_moves),
            "invalid": list(found.invalid),
            "decides": words.DECIDES,
            "multiplicity": words.MULTIPLICITY,
            "normalisation": words.NORMALISATION,
        },
    }
    document["conclusion"] = words.conclusion(document)
    return {name: document[name] for name in comparison_schema()["properties"]}


def _side(at: int, name: str, side: Sequence[Run], asked: Asked) -> dict[str, Any]:
    price = asked.declared.prices.get(at)
    rates = [run.values.get("output_tok_s") for run in side]
    known = [rate for rate in rates if rate is not None]
    mean = sum(known) / len(known) if len(known) == len(rates) else None
    return {
        "label": words.label(at),
        "name": name,
        "runs": [_run(run) for run in side],
        "accelerators": accelerators([run.told for run in side]),
        "price_hour": price,
        "tokens_per_dollar": mean / price * SECONDS_AN_HOUR if mean is not None and price else None,
    }


def _run(run: Run) -> dict[str, Any]:
    told = run.told
    return {
        "id": told.id,
        "seed": told.seed,
        "started": moment(told.started_ns),
        "status": told.status,
        "reasons": list(told.reasons),
        "simulated": told.simulated,
        "fingerprint": told.fingerprint,
    }


def _metric(one: Difference) -> dict[str, Any]:
    made = _plain(asdict(one))
    name = made.pop("figure")
    title = words.TITLES[name]
    more = "more" if FIGURES[name].more else "less"
    return {"name": name, "title": title.title, "unit": title.unit, "better": more, **made}


def _plain(value: Any) -> Any:
    """The same with lists for tuples, as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
