"""What only a person can know of a measurement: the declarations that the draft's duties ask for and no client can observe.

All are optional, and nothing is assumed where one is missing. What can be observed is, and beats what is declared here
(judge/compliance/). What the system under test is made of is declared in `sut`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from inferometer.plan.part import NUMBER, Part

Text = Annotated[str, Field(min_length=1, max_length=400)]

NO_ADJUSTMENT = "no adjustment was applied"
"""Draft 4.7.3: the instrument reports every latency as it was stamped."""

BOS_EOS = (
    "special tokens (BOS, EOS) are left out of the client's counts and are part of the server's prompt count"
)
UNCOUNTED = (
    "the client counts nothing: local counts are not applicable; special tokens (BOS, EOS) are part of the server's "
    "prompt count"
)
"""The same without a tokenizer."""
SYSTEM_PROMPTS = "a system prompt's tokens are part of the prompt's"
TOOLS = "the chat template and any tool formatting are part of the server's prompt count alone"


class Declared(Part):
    """Everything a plan declares beside the system under test. None: nothing is said.

    `bos_eos`, `system_prompt`, `tools` (draft 4.4.3) and `latency_adjustment` (4.7.3) add to what the instrument says of
    itself; they are for whoever changes counts or times behind it. `clock_sync` is method and server (`ntp, pool.ntp.org`),
    `clock_accuracy_ms` how well clocks agree by it (4.7.2).
    """

    model_loaded: bool | None = None
    same_machine: bool | None = None
    clock_sync: Text | None = None
    clock_accuracy_ms: Annotated[float, Field(ge=0), NUMBER] | None = None
    network_rtt: Text | None = None
    latency_adjustment: Text | None = None
    bos_eos: Text | None = None
    system_prompt: Text | None = None
    tools: Text | None = None
    production_representative: bool | None = None
    shared_resources: bool | None = None
    isolated: bool | None = None
    recovery_ready: bool | None = None
    monitored: bool | None = None
    workloads_varied: bool | None = None
    publication_considered: bool | None = None
    terminology_read: bool | None = None


def declare(text: str) -> dict[str, object]:
    """`KEY` (yes) or `KEY=VALUE` as one key of `declared`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not name or (equals and not value):
        raise ValueError("must be KEY or KEY=VALUE: for example model_loaded, or clock_accuracy_ms=2")
    return {name: value if equals else True}
