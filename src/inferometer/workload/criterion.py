"""What the answer to a task is held to (draft 4.1.3 measures task completion). One of these, or nothing: then an answer that is
complete is enough.

| criterion                                  | an answer passes if                                                           |
| ------------------------------------------ | ----------------------------------------------------------------------------- |
| `{"exact": "Paris"}`                       | it is that text, white space around both left aside                           |
| `{"regex": "^yes\\b"}`                      | the pattern (Python's `re`) is found in it                                    |
| `{"json_schema": {...}}`                   | it is JSON, a Markdown fence around it left aside, and valid by the schema    |
| `{"number": 3.14, "tolerance": 0.01}`      | its last number is within the tolerance, bounds included                      |
| `{"command": ["./check", "--strict"]}`     | the command, with the answer as its input, ends with exit code 0; 1: it fails |
| `{"judge": {"url": ..., "pass": "^PASS"}}` | the pattern is found in what a model says of it                               |

These are criteria of completion. They say nothing of a model's accuracy, which draft section 3 leaves out.
"""

import re
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator, model_validator

from inferometer.plan.part import NUMBER
from inferometer.workload.prompt_file import Line

OUTSIDE = ("command", "judge")
"""Those that something outside this program decides."""

Kind = Literal["exact", "regex", "json_schema", "number", "command", "judge"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST_PATTERN = 2_000
"""Characters."""
LONGEST_S = 600.0
MISSING = "needs the package jsonschema: pip install 'inferometer[tasks]'"

_NO_SCHEMA = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, re.error)
"""What checking a schema may end with beside a SchemaError, where its author wrote another kind of value."""

_Word = Annotated[str, Field(min_length=1, max_length=4096)]


def _pattern(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as cause:
        raise ValueError(f"is no regular expression: {cause}") from None
    return text


class Judge(Line):
    """A model that says whether an answer passes, over OpenAI's chat interface.

    `url`: of the completions themselves, `http://host/v1/chat/completions`. In `prompt`, `{input}` and `{answer}` stand for the
    task and what was answered. `pass`: the pattern that its own answer must hold. `fail`: the pattern of the other verdict:
    with it, a reply that holds both or neither decides nothing.
    """

    model_config = ConfigDict(populate_by_name=True)

    url: Annotated[str, Field(max_length=2048, pattern=r"^https?://")]
    model: _Word
    prompt: Annotated[str, Field(min_length=1, max_length=100_000)]
    pass_: Annotated[str, Field(alias="pass", max_length=LONGEST_PATTERN)]
    fail: Annotated[str, Field(max_length=LONGEST_PATTERN)] | None = None

    @field_validator("url")
    @classmethod
    def _can_be_sent_to(cls, url: str) -> str:
        """What no request can hold is refused before anything is measured. The words never repeat it: it may hold a key."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            host.encode("idna")
        except ValueError:
            raise ValueError("is not a URL: http://host:port/v1/chat/completions is expected") from None
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                "must not hold a user name or password: the key is taken from INFEROMETER_JUDGE_KEY"
            )
        if not host or port == 0 or not url.isprintable() or " " in url:
            raise ValueError("needs a host, and has no spaces")
        if not (parts.path + parts.query).isascii():
            raise ValueError("needs its path in ASCII: write other characters as %XX")
        return url

    @field_validator("pass_", "fail")
    @classmethod
    def _compiles(cls, text: str | None) -> str | None:
        return _pattern(text)

    @field_validator("prompt")
    @classmethod
    def _holds_the_answer(cls, text: str) -> str:
        if "{answer}" not in text:
            raise ValueError("has no {answer}, so the judge would not see it")
        return text


class Criterion(Line):
    """One criterion. `timeout_s`: for deciding it; a pattern, a command or a judge may not end."""

    exact: str | None = None
    regex: Annotated[str, Field(max_length=LONGEST_PATTERN)] | None = None
    json_schema: dict[str, Any] | None = None
    number: Annotated[int | float, NUMBER] | None = None
    tolerance: Annotated[float, Field(ge=0), NUMBER] = 0.0
    command: Annotated[tuple[_Word, ...], Field(min_length=1, max_length=100)] | None = None
    judge: Judge | None = None
    timeout_s: Annotated[float, Field(gt=0, le=LONGEST_S), NUMBER] | None = None

    @field_validator("regex")
    @classmethod
    def _compiles(cls, text: str | None) -> str | None:
        return _pattern(text)

    @field_validator("json_schema")
    @classmethod
    def _is_a_schema(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        if schema is None:
            return None
        try:
            from jsonschema import SchemaError, validators  # an extra
        except ImportError:
            raise ValueError(MISSING) from None
        try:
            validators.validator_for(schema, validators.Draft202012Validator).check_schema(schema)
        except SchemaError as cause:
            raise ValueError(f"is no JSON Schema: {cause.message[:200]}") from None
        except _NO_SCHEMA:
            raise ValueError("is no JSON Schema: it has a $schema or a reference that is none") from None
        return schema

    @model_validator(mode="after")
    def _one(self) -> "Criterion":
        named = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(named) != 1:
            raise ValueError(
                f"needs one of {', '.join(KINDS)}" + (f", and has {', '.join(named)}" if named else "")
            )
        if self.tolerance and self.number is None:
            raise ValueError("tolerance is about a number")
        return self

    @property
    def kind(self) -> Kind:
        """Which of them it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)
