"""What a plan may put into requests beside their prompts: headers, fields of the body, sampling parameters.

None of them may hold a secret, for a plan is saved to disk, nor frame the request, which is ours to do.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from inferometer.plan.part import NUMBER, Part

_SECRET_NAME = re.compile(
    r"authorization|cookie|api[-_]?key|secret|passw|credential|(access|auth|bearer|refresh|session)[-_]?token|^x-auth|^token$|subscription[-_]?key",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"^\s*(bearer|basic)\s+\S|^\s*(sk|hf|gsk|xai|nvapi)[-_]\w{8}", re.IGNORECASE)
_FRAMING = {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te"}
_NO_SECRETS = (
    "looks like a secret, and a plan is saved to disk: "
    "use --api-key-env or --api-key-file (target.api_key_env, target.api_key_file)"
)
_OURS = {
    "model": "target.model",
    "messages": "workload",
    "prompt": "workload",
    "input": "workload",
    "stream": "target.stream",
    "max_tokens": "workload.output_tokens",
    "max_output_tokens": "workload.output_tokens",
    "n": "load.requests",
}


Fields = dict[str, Any]
"""Fields of a request's body, as they are sent."""


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):  # RFC 9110, 5.6.2: token
        raise ValueError(
            "a header's name is letters, digits and hyphens, for example X-Request-Source: bench"
        )
    if secret_name(name):
        raise ValueError(_NO_SECRETS)
    if name.lower() in _FRAMING:
        raise ValueError("is set by inferometer itself: it frames the request")
    return name


def _header_value(value: str) -> str:
    if _SECRET_VALUE.search(value):
        raise ValueError(_NO_SECRETS)
    if not all(char == "\t" or " " <= char <= "~" or "\x80" <= char <= "\xff" for char in value):
        raise ValueError("holds a character that an HTTP header cannot")
    return value


def _plain_body(body: Fields) -> Fields:
    ours = [f"{key} comes from {_OURS[key]}" for key in body if key in _OURS]
    options = body.get("options")
    if isinstance(options, dict) and "num_predict" in options:  # Ollama's
        ours.append("options.num_predict comes from workload.output_tokens")
    if ours:
        raise ValueError(f"cannot set what the plan decides: {', '.join(ours)}")
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        raise ValueError("must be something JSON can say: no dates, no NaN, no infinity") from None
    if (name := secret_in(body)) is not None:
        raise ValueError(f"{name} {_NO_SECRETS}")
    return body


def secret_in(value: object, name: str = "") -> str | None:
    """The name of the first member of a body that looks like a secret, by its name or its value; None: nothing does."""
    if isinstance(value, dict):
        found = (secret_in(inner, str(key)) for key, inner in value.items())
    elif isinstance(value, list):
        found = (secret_in(inner, name) for inner in value)
    else:
        return name if isinstance(value, str) and (secret_name(name) or _SECRET_VALUE.search(value)) else None
    return next((one for one in found if one is not None), None)


def secret_name(name: str) -> bool:
    """Whether what has this name, a header, a member of a body or an environment variable, is a secret."""
    return bool(_SECRET_NAME.search(name)) or name.lower().endswith("token")


Headers = dict[Annotated[str, AfterValidator(_header_name)], Annotated[str, AfterValidator(_header_value)]]
"""Header lines by name."""

Body = Annotated[Fields, AfterValidator(_plain_body)]
"""Fields merged into a request's JSON."""

Priority = Annotated[int, Field(ge=-(2**31), lt=2**31), NUMBER]
"""The body's `priority`. vLLM serves lower ones sooner."""


class Sampling(Part):
    """Sampling parameters by the names that OpenAI's interface and vLLM give them. None: not sent."""

    temperature: Annotated[
        Annotated[float, Field(ge=0, le=10), NUMBER] | None, Field(description="Temperature.")
    ] = None
    top_p: Annotated[
        Annotated[float, Field(gt=0, le=1), NUMBER] | None,
        Field(description="Nucleus sampling: probability mass."),
    ] = None
    top_k: Annotated[
        Annotated[int, Field(ge=-1, le=10_000_000), NUMBER] | None, Field(description="Number of candidates.")
    ] = None
    min_p: Annotated[
        Annotated[float, Field(ge=0, le=1), NUMBER] | None,
        Field(description="Least probability, relative to the likeliest."),
    ] = None
    presence_penalty: Annotated[
        Annotated[float, Field(ge=-2, le=2), NUMBER] | None,
        Field(description="Penalty of tokens that occurred."),
    ] = None
    frequency_penalty: Annotated[
        Annotated[float, Field(ge=-2, le=2), NUMBER] | None,
        Field(description="Penalty by how often tokens occurred."),
    ] = None
    repetition_penalty: Annotated[
        Annotated[float, Field(gt=0, le=10), NUMBER] | None, Field(description="Factor on repeated tokens.")
    ] = None
    seed: Annotated[
        Annotated[int, Field(ge=0, lt=2**63), NUMBER] | None, Field(description="Seed of the server.")
    ] = None
    stop: Annotated[
        Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1, max_length=16)] | None,
        Field(description="Texts that end an answer."),
    ] = None

    @property
    def fields(self) -> Fields:
        """The fields of a body that say it."""
        return self.model_dump(mode="json", exclude_none=True)


def fields_of(sampling: Sampling, priority: int | None, extra: Fields) -> Fields:
    """The fields that one request has beside everybody's."""
    said = sampling.fields if priority is None else {**sampling.fields, "priority": priority}
    return {**said, **extra}


def refuse_twice(extra: Fields, sampling: object, priority: object) -> Fields:
    """`extra` as it is, unless it sets what the other two have set: then ValueError."""
    said = set(sampling.fields) if isinstance(sampling, Sampling) else set()
    said |= {"priority"} if priority is not None else set()
    twice = sorted(said & extra.keys())
    if twice:
        raise ValueError(f"sets {', '.join(twice)} a second time: say it in one place")
    return extra
