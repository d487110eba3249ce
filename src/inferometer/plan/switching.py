"""How the system under test is brought into a state that a test needs: per thing and state, one way.

    switch:
      prefix_cache:
        enabled: {command: "systemctl restart vllm-cached"}
        disabled: {command: "systemctl restart vllm-plain"}
      guardrails:
        baseline: {http: {method: POST, url: "http://localhost:9000/guard", body: {mode: off}}}
        full: {ask: "switch all filters on, then press Enter"}

The reference engine switches by itself, and needs none of it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from inferometer.addresses import secrets_of
from inferometer.plan.part import SECONDS, Part
from inferometer.plan.target import secret_in

STATES: dict[str, tuple[str, ...]] = {
    "prefix_cache": ("disabled", "enabled", "flushed"),
    "guardrails": ("baseline", "input", "output", "full"),
    "server": ("stopped", "started"),
}
"""What tests switch, and into which states. `flushed`: enabled, with nothing in it."""


_OUTSIDE = "looks like a secret and would be recorded: use a command that reads it from its environment"
_IN_COMMAND = re.compile(
    r"authorization:\s*\w+\s+[^\s$\"'`]|\b(sk|hf|gsk|xai|nvapi)[-_]\w{8}|://[^/\s@$]*:[^/\s@$]+@",
    re.IGNORECASE,
)
"""A key or a password as it is, not the name of a variable that holds it."""


class Call(Part):
    """One HTTP request; any answer of 2xx is success. Its URL holds no password: the plan is saved, and reports cite it."""

    url: Annotated[str, Field(min_length=1)]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    body: Any = None

    @field_validator("url")
    @classmethod
    def _without_password(cls, url: str) -> str:
        if secrets_of(url):
            raise ValueError(f"holds a user or a password: it {_OUTSIDE}")
        return url

    @field_validator("body")
    @classmethod
    def _without_secret(cls, body: Any) -> Any:
        if (name := secret_in(body)) is not None:
            raise ValueError(f"{name or 'it'} {_OUTSIDE}")
        return body


class Way(Part):
    """How to reach a state: run a `command` (by the shell; exit code 0 is success), make an `http` call, or `ask` the
    person. Then wait until the server answers, up to `patience_s`."""

    command: Annotated[str, Field(min_length=1)] | None = None
    http: Call | None = None
    ask: Annotated[str, Field(min_length=1)] | None = None
    patience_s: Annotated[float, Field(gt=0, le=86_400), SECONDS] = 600.0

    @field_validator("command")
    @classmethod
    def _without_secret(cls, command: str | None) -> str | None:
        if command is not None and _IN_COMMAND.search(command):
            raise ValueError(_OUTSIDE)
        return command

    @model_validator(mode="after")
    def _one(self) -> Way:
        if sum(way is not None for way in (self.command, self.http, self.ask)) != 1:
            raise ValueError("set exactly one of command, http and ask")
        return self


class Switching(Part):
    """The ways by thing and state."""

    prefix_cache: dict[Literal["disabled", "enabled", "flushed"], Way] = Field(default_factory=dict)
    guardrails: dict[Literal["baseline", "input", "output", "full"], Way] = Field(default_factory=dict)
    server: dict[Literal["stopped", "started"], Way] = Field(default_factory=dict)

    def way(self, what: str, state: str) -> Way | None:
        """The declared way to a state, if there is one."""
        ways: dict[str, Way] = getattr(self, what)
        return ways.get(state)
