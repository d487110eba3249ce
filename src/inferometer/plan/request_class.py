"""One class of a mixture: what its requests are like, and how often they come."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from inferometer.plan.lengths import LONGEST, Length
from inferometer.plan.part import HARMLESS, NUMBER, Part
from inferometer.plan.target import Body, Fields, Headers, Priority, Sampling, fields_of, refuse_twice

MOST_CLASSES = 127
"""A class is one signed byte in the schedule and in the record."""

ClassContent = Literal["random", "english", "code"]
Domain = Literal["general", "code", "conversation", "instruction"]
"""Draft 4.3.1's."""
Language = Annotated[str, Field(min_length=1, max_length=80)]
ClassName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class SharedPrefix(Part):
    """A text of `tokens` tokens at the head of some prompts of a class, on top of their own length.

    The share `share` of the class's requests carries one of `groups` such texts: each equally likely, or with `zipf` = s the
    k-th of them in proportion to 1 / k^s.
    """

    tokens: Annotated[
        int,
        Field(ge=1, le=LONGEST, examples=[512], description="Length of the prefix in tokens."),
        NUMBER,
        HARMLESS,
    ]
    share: Annotated[
        float,
        Field(gt=0, le=1, description="Fraction of the class's requests that carry a prefix."),
        NUMBER,
        HARMLESS,
    ] = 1.0
    groups: Annotated[
        int, Field(ge=1, le=100_000, description="Number of different prefixes."), NUMBER, HARMLESS
    ] = 1
    zipf: Annotated[
        Annotated[float, Field(gt=0, le=20), NUMBER] | None,
        Field(description="Exponent of a Zipf choice among groups; null: equally likely."),
        HARMLESS,
    ] = None

    @field_validator("zipf")
    @classmethod
    def _among_several(cls, zipf: float | None, info: ValidationInfo) -> float | None:
        if zipf is not None and info.data.get("groups") == 1:
            raise ValueError(
                "chooses among groups, but there is only one: set groups to 2 or more, or omit it"
            )
        return zipf

    @property
    def weights(self) -> list[float]:
        """How likely each group is, up to a factor."""
        return [1.0 if self.zipf is None else rank**-self.zipf for rank in range(1, self.groups + 1)]

    def __str__(self) -> str:
        """In words."""
        which = "one text" if self.groups == 1 else f"{self.groups} texts"
        if self.groups > 1:
            which += ", equally likely" if self.zipf is None else f", Zipf with s = {self.zipf:g}"
        return f"{self.share:.4g} of its requests, {self.tokens} tokens, {which}"


class RequestClass(Part):
    """One class. `weight` over the sum of all weights is the chance that a request is of it.

    `priority`, `sampling`, `extra_body` and `headers` are its requests' own and go before the target's.
    `domain` and `language` declare what is not known of the content (draft 4.3.1).
    """

    name: Annotated[
        ClassName, Field(examples=["chat"], description="Name of the class, in all reports."), HARMLESS
    ]
    weight: Annotated[
        float,
        Field(gt=0, le=1e9, description="Share of the requests, over the sum of all weights."),
        NUMBER,
        HARMLESS,
    ] = 1.0
    input_tokens: Annotated[
        Length, Field(examples=["uniform(128,512)"], description="Prompt lengths."), HARMLESS
    ]
    output_tokens: Annotated[
        Length, Field(examples=["uniform(128,512)"], description="Answer lengths."), HARMLESS
    ]
    shared_prefix: Annotated[
        SharedPrefix | None,
        Field(description="A text at the head of some prompts of the class."),
        HARMLESS,
    ] = None
    content: Annotated[ClassContent, Field(description="random tokens, english text or code."), HARMLESS] = (
        "random"
    )
    domain: Annotated[Domain | None, Field(description="Domain of the content (declared)."), HARMLESS] = None
    language: Annotated[Language | None, Field(description="Language of the content (declared).")] = None
    priority: Annotated[
        Priority | None,
        Field(description="Priority of its requests; vLLM serves lower ones sooner."),
        HARMLESS,
    ] = None
    sampling: Annotated[Sampling, Field(description="Sampling parameters of its requests."), HARMLESS] = (
        Field(default_factory=Sampling)
    )
    extra_body: Annotated[Body, Field(description="JSON object merged into its requests.")] = Field(
        default_factory=dict
    )
    headers: Annotated[Headers, Field(description="Extra header lines of its requests.")] = Field(
        default_factory=dict
    )

    @field_validator("extra_body")
    @classmethod
    def _once(cls, extra: Fields, info: ValidationInfo) -> Fields:
        return refuse_twice(extra, info.data.get("sampling"), info.data.get("priority"))

    @property
    def fields(self) -> Fields:
        """The fields of the body that its requests have beside everybody's."""
        return fields_of(self.sampling, self.priority, self.extra_body)
