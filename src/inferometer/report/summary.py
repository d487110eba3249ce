"""The summary: one run's result as data, in the shape summary.schema.json fixes.

What was measured and judged comes in as plain dicts; the words are added here, so that every other rendering (console,
Markdown, HTML, another program reading summary.json) says the same.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.errors import InstrumentError
from inferometer.report import metrics, schema, wording

SCHEMA = "inferometer/summary/1"


@functools.cache
def summary_schema() -> dict[str, Any]:
    """The JSON Schema that ships with the package."""
    text = importlib.resources.files(__package__).joinpath("summary.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(summary: Mapping[str, Any]) -> None:
    """Hold a summary to its schema.

    Raises:
        InstrumentError: it does not fit, which is our fault; names every place.
    """
    found = list(schema.problems(summary, summary_schema()))
    if found:
        raise InstrumentError("the summary breaks its own schema: " + "; ".join(found[:20]))


def compose(
    *, version: str, status: str, checks: Sequence[Mapping[str, Any]], **parts: Any
) -> dict[str, Any]:
    """Put a summary together and hold it to its schema.

    `checks` are `{code, status, value, limit, unit, facts}`; their messages, the verdict's reasons and the definitions are
    worded here. `parts` are the remaining top-level members: run, sut, environment, plan, requests, window, metrics,
    ttft_by_input, throughput, load, tokens, slos, instrument and, if there is one, compliance.

    Raises:
        InstrumentError: the result does not fit the schema.
    """
    spoken = [{"unit": None, "facts": {}, **check, "message": wording.words(check)} for check in checks]
    verdict = {"status": status, "reasons": wording.reasons(checks), "checks": spoken}
    summary = {"schema": SCHEMA, "version": version, "verdict": verdict, "compliance": None, **parts}
    summary["definitions"] = metrics.definitions()
    validate(summary)
    return {name: summary[name] for name in summary_schema()["properties"]}
