"""What only a person can know of a measurement: the declarations that the draft's duties ask for and no client can observe.

All are optional, and nothing is assumed where one is missing. What can be observed is, and beats what is declared here
(judge/compliance/). What the system under test is made of is declared in `sut`.
"""

from typing import Annotated

from pydantic import Field

from inferometer.plan.part import NUMBER, Part

Text = Annotated[str, Field(min_length=1, max_length=400)]

NO_ADJUSTMENT = "no adjustment was applied"
"""Draft 4.7.3: the instrument reports every latency as it was stamped, unless --subtract-rtt shows another beside it."""

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

    model_loaded: Annotated[bool | None, Field(description="The model was loaded before the run.")] = None
    same_machine: Annotated[bool | None, Field(description="Client and server ran on one machine.")] = None
    clock_sync: Annotated[
        Text | None, Field(description="Method and server of clock synchronisation (draft 4.7.2).")
    ] = None
    clock_accuracy_ms: Annotated[
        Annotated[float, Field(ge=0), NUMBER] | None,
        Field(description="How well the clocks agree, in ms (draft 4.7.2)."),
    ] = None
    network_rtt: Annotated[
        Text | None, Field(description="Round-trip time of the network between client and server.")
    ] = None
    latency_adjustment: Annotated[
        Text | None, Field(description="Adjustment of latencies after the measurement (draft 4.7.3).")
    ] = None
    bos_eos: Annotated[Text | None, Field(description="How special tokens are counted (draft 4.4.3).")] = None
    system_prompt: Annotated[
        Text | None, Field(description="How a system prompt's tokens are counted (draft 4.4.3).")
    ] = None
    tools: Annotated[Text | None, Field(description="How tool definitions are counted (draft 4.4.3).")] = None
    production_representative: Annotated[
        bool | None, Field(description="The system is configured as in production.")
    ] = None
    shared_resources: Annotated[
        bool | None, Field(description="The system shares resources with others.")
    ] = None
    isolated: Annotated[bool | None, Field(description="Nothing else ran on the system.")] = None
    recovery_ready: Annotated[
        bool | None, Field(description="The system can be recovered if a test brings it down.")
    ] = None
    monitored: Annotated[bool | None, Field(description="The system was monitored during the run.")] = None
    workloads_varied: Annotated[
        bool | None,
        Field(
            description="Several workloads were tried, and compared with production traffic where there is any."
        ),
    ] = None
    publication_considered: Annotated[
        bool | None, Field(description="The exposure caused by publishing the results was considered.")
    ] = None
    terminology_read: Annotated[bool | None, Field(description="The draft's terminology was read.")] = None


def declare(text: str) -> dict[str, object]:
    """`KEY` (yes) or `KEY=VALUE` as one key of `declared`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not name or (equals and not value):
        raise ValueError("must be KEY or KEY=VALUE: for example model_loaded, or clock_accuracy_ms=2")
    return {name: value if equals else True}
