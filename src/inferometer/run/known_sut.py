"""What is known about the system under test without being declared: the embedded reference server and simulated engines."""

from __future__ import annotations

from typing import Any

from inferometer import __version__
from inferometer.documents.run_facts import SimulatedEngine
from inferometer.plan.schema import REFERENCE_TOKENIZER, Guardrails, Plan


def with_known_sut(plan: Plan, engine: SimulatedEngine | None) -> Plan:
    """The plan; where it measures the embedded server or simulates an `engine`, undeclared facts about it are filled in."""
    if plan.target.url is not None:
        return plan
    what = "embedded reference server" if engine is None else f"simulated engine, preset {engine.preset}"
    settings = {} if engine is None else engine.settings
    ours = {
        "boundary": "engine",
        "software": f"inferometer {__version__}, {what}",
        "notes": ", ".join(f"{name} {value}" for name, value in settings.items()) or None,
        "accelerator": "cpu" if engine is None else "simulated",
        "accelerator_count": 0,
        "prefix_caching": "enabled" if settings.get("prefix_caching") else "disabled",
        "cache_state": "cold",
        "guardrails": Guardrails(input_filter=False, output_filter=False),
    }
    # A saved plan spells every default, so undeclared is what still has its default.
    undeclared = {
        name: value
        for name, value in ours.items()
        if getattr(plan.sut, name) in (None, "unknown", Guardrails())
    }
    updates: dict[str, Any] = {"sut": plan.sut.model_copy(update=undeclared)}
    if plan.tokenizer.name == REFERENCE_TOKENIZER:  # it counts with this one
        updates["tokenizer"] = plan.tokenizer.model_copy(update={"method": "native"})
    return plan.model_copy(update=updates)
