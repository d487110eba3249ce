"""Settings of the reference engine that a test's state takes back, found before anything is sent: tests bring it into a known
state before they measure, filters and prefix cache off, and only the test that is about one of these switches it on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from inferometer.plan.campaign import Campaign
from inferometer.server.engine.settings import FIELDS, GUARDRAILS
from inferometer.simulation.engine import choose

OF_STATES = (("guardrail", "filters", GUARDRAILS), ("prefix-cache", "a prefix cache", ("prefix_caching",)))
"""The test that switches something, what that is, and its settings."""


def state_cautions(campaign: Campaign) -> Iterator[str]:
    """Lines to be shown before the start. Raises PlanError for settings that make no engine."""
    if not campaign.simulated and campaign.plan.target.url is not None:
        return
    engine = campaign.engine
    values = dataclasses.asdict(choose(engine.preset, engine.settings, engine.system).settings)
    for test, what, settings in OF_STATES:
        if engine.system is not None and test == "guardrail":
            continue  # they are a part of a system, in every test
        others = [name for name in campaign.names if name != test]
        asked = [
            word
            for word in campaign.engine.settings
            if (field := FIELDS.get(word.partition("=")[0], "")) in settings and values[field]
        ]
        if others and asked:
            named = " ".join(f"--set {word}" for word in asked)
            yield f"{', '.join(others)}: without {what}; {named} is for {test} alone, which switches that on"
