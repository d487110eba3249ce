"""What a campaign's plan declares of a reference system that the campaign starts itself (draft 4.1.3, 4.8.1)."""

from __future__ import annotations

import dataclasses

from inferometer.plan.campaign import Campaign
from inferometer.procedures.setup import variant
from inferometer.run.facts import filters_of
from inferometer.simulation.engine import choose


def with_system_declared(campaign: Campaign) -> Campaign:
    """The campaign with the name of its system, where none was declared, and with the guardrails that the system has in every
    test but that of their cost, so that no figure of the system without them is taken for one with them. Raises PlanError for
    settings that make no system."""
    engine = campaign.engine
    chosen = choose(engine.preset, engine.settings, engine.system)
    filters = filters_of(dataclasses.asdict(chosen.settings), chosen.guards)
    software = (
        f"Inferometer's reference system {engine.system} on its reference engine, preset {engine.preset}"
    )
    declared = {
        "guardrails": filters.model_dump(),
        "software": campaign.plan.sut.software or software,
    }
    plan = variant(campaign.plan, sut=declared)
    return campaign.model_copy(update={"plan": plan})
