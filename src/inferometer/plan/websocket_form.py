"""The messages of a WebSocket server with a form of its own, as a plan file describes them (`target.websocket`)."""

import json
from collections.abc import Iterator
from math import inf
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from inferometer import foreign_json
from inferometer.engines.message_form import PLACEHOLDERS, Mark, MessageForm, Path, parse_path
from inferometer.plan.part import Part


def _path(text: str) -> str:
    parse_path(text)
    return text


def _alone(value: Any) -> Any:
    """A path by itself is a mark without conditions."""
    return {"path": _path(value)} if isinstance(value, str) else value


def _scalar(value: Any) -> Any:
    if not (value is None or isinstance(value, str | int | float)) or value in (inf, -inf) or value != value:
        raise ValueError("must be a text, a number, true, false or null")
    return value


JsonScalar = Annotated[
    Any, AfterValidator(_scalar), Field(json_schema_extra={"type": ["string", "number", "boolean", "null"]})
]
JsonPath = Annotated[str, AfterValidator(_path)]
"""Where a value stands in a message: `usage.output`, `choices[0].text`, `data["a.b"]`."""


class MessageMark(Part):
    """What tells the messages of a kind from others: something at `path`, the values of `where` at theirs, or both."""

    path: Annotated[
        JsonPath | None,
        Field(description="Path of a member that is neither missing nor null, false, zero or empty."),
    ] = None
    where: Annotated[
        dict[JsonPath, JsonScalar],
        Field(max_length=8, description="Values that other members have, by path."),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _of_something(self) -> "MessageMark":
        if self.path is None and not self.where:
            raise ValueError("needs a path, or values in where")
        return self

    @property
    def mark(self) -> Mark:
        """The same, with its paths as steps."""
        where = tuple((parse_path(path), value) for path, value in self.where.items())
        return Mark(_steps(self.path), where)


Marked = Annotated[MessageMark, BeforeValidator(_alone)]


def _steps(path: str | None) -> Path:
    return () if path is None else parse_path(path)


EXAMPLE = {"prompt": "{prompt}", "max_tokens": "{max_tokens}"}


def _target(target: str) -> str:
    if not target.startswith("/") or not all("!" <= char <= "~" for char in target) or "#" in target:
        raise ValueError("must begin with / and hold no spaces, no # and only ASCII, for example /v1/stream")
    return target


def _template(request: dict[str, Any]) -> dict[str, Any]:
    foreign_json.check_depth(request)
    try:
        text = json.dumps(request, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError):
        raise ValueError("must be expressible in JSON: no dates, no NaN, no infinity") from None
    for name in _names(request):
        if any(place in name for place in PLACEHOLDERS):
            raise ValueError(f"the name {name!r} stays as it is: only values are filled in")
    if (count := text.count("{prompt}")) != 1:
        raise ValueError(f'must hold "{{prompt}}" once, not {count} times')
    if "{max_tokens}" not in text:
        raise ValueError('must hold "{max_tokens}": answers would have other lengths than the plan\'s')
    return request


def _names(value: Any) -> Iterator[str]:
    """The names of all members of an object, at any depth."""
    if isinstance(value, dict):
        yield from map(str, value)
        value = [*value.values()]
    if isinstance(value, list):
        for inner in value:
            yield from _names(inner)


class WebSocketForm(Part):
    """The messages of a server of others. A request is one message, an answer is the messages up to the one that ends it."""

    path: Annotated[
        str,
        Field(description="Path of the handshake, below the base URL; {model} stands for the model's name."),
        AfterValidator(_target),
    ] = "/"
    request: Annotated[
        dict[str, Any],
        Field(examples=[EXAMPLE], description=f"JSON object to send. It may hold {', '.join(PLACEHOLDERS)}."),
        AfterValidator(_template),
    ]
    text: Annotated[
        Marked,
        Field(examples=["text"], description="Path of the text of a message, and which messages have it."),
    ]
    end: Annotated[Marked, Field(examples=["done"], description="Which message ends the answer.")]
    error: Annotated[
        Marked | None, Field(description="Which message is an error; its path has the words.")
    ] = None
    prompt_tokens: Annotated[
        JsonPath | None, Field(description="Path of the server's count of the prompt's tokens.")
    ] = None
    completion_tokens: Annotated[
        JsonPath | None, Field(description="Path of the server's count of the answer's tokens.")
    ] = None
    finish_reason: Annotated[
        JsonPath | None, Field(description="Path of the reason why an answer ended.")
    ] = None
    greets: Annotated[bool, Field(description="The server sends messages that no request asked for.")] = False

    @model_validator(mode="after")
    def _distinct(self) -> "WebSocketForm":
        if self.text.path is None:
            raise ValueError("text needs a path")
        read = {_steps(self.text.path): "text"}
        for name in ("prompt_tokens", "completion_tokens", "finish_reason"):
            steps = _steps(getattr(self, name))
            if steps and (other := read.setdefault(steps, name)) != name:
                raise ValueError(f"{name} would be read where {other} is: one member is not both")
        for name, mark in (("end", self.end), ("error", self.error)):
            if (
                mark is not None
                and mark.path in (None, self.text.path)
                and mark.where.items() <= self.text.where.items()
            ):
                raise ValueError(
                    f"{name} would hold for every message with text: give it another path, or values in where"
                )
        return self

    @property
    def filled(self) -> frozenset[str]:
        """Members of the request that hold what a plan decides: the prompt, the model, the length of the answer."""
        decided = ("{prompt}", "{model}", "{max_tokens}")
        texts = {name: json.dumps(value, ensure_ascii=False) for name, value in self.request.items()}
        return frozenset(name for name, text in texts.items() if any(place in text for place in decided))

    @property
    def form(self) -> MessageForm:
        """The same, as a dialect is made of it."""
        return MessageForm(
            target=self.path,
            request=json.dumps(self.request, ensure_ascii=False),
            text=self.text.mark,
            end=self.end.mark,
            error=None if self.error is None else self.error.mark,
            prompt_tokens=_steps(self.prompt_tokens),
            completion_tokens=_steps(self.completion_tokens),
            finish_reason=_steps(self.finish_reason),
            greets=self.greets,
        )
