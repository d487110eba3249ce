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

from inferometer.documents.summary import SCHEMA
from inferometer.metrics.catalogue import definitions
from inferometer.report import wording


@functools.cache
def summary_schema() -> dict[str, Any]:
    """The JSON Schema that ships with the package."""
    folder = importlib.resources.files("inferometer.documents.schemas")
    text = folder.joinpath("summary.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def compose(
    *, version: str, status: str, checks: Sequence[Mapping[str, Any]], **parts: Any
) -> dict[str, Any]:
    """Put a summary together in the schema's order of members; the tests hold it to the schema.

    `checks` are `{code, status, value, limit, unit, facts}`; their messages, the verdict's reasons and the definitions are
    worded here. `parts` are the remaining top-level members: run, sut, environment, plan, requests, success_rate, refusals,
    window, metrics, distributions, itl_shape, first_wave, workload, ttft_by_input, by_class, conversations, throughput, steady,
    in_flight_tokens, load, tokens, slos, server, preemption, instrument and, if any, compliance.
    """
    spoken = [{"unit": None, "facts": {}, **check, "message": wording.words(check)} for check in checks]
    verdict = {"status": status, "reasons": wording.reasons(checks), "checks": spoken}
    summary = {"schema": SCHEMA, "version": version, "verdict": verdict, "compliance": None, **parts}
    summary["definitions"] = definitions()
    return {name: summary[name] for name in summary_schema()["properties"]}
