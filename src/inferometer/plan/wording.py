"""The schema's refusals in plain words, and the right key for a misspelled one.

Values are repeated only where they cannot be a secret: never those of unknown keys, headers, bodies and key references.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from inferometer.plan.fault import Fault
from inferometer.plan.flags import fields, models
from inferometer.plan.schema import READABLE, Plan
from inferometer.plan.workload import KINDS, kinds_with

_LIMITS = {
    "greater_than": "above",
    "greater_than_equal": "at least",
    "less_than": "below",
    "less_than_equal": "at most",
}
_LIMIT_NAMES = {
    "greater_than": "gt",
    "greater_than_equal": "ge",
    "less_than": "lt",
    "less_than_equal": "le",
    "too_short": "min_length",
    "too_long": "max_length",
}
"""Pydantic's name of the limit in an error of each kind that has one."""
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text (quote it)",
    "tuple": "a list",
    "dict": "a mapping of names to values",
    "model": "a mapping of keys to values",
    "literal": "one of the values listed",
}
_QUIET = (
    "url",
    "urls",
    "headers",
    "extra_body",
    "api_key_env",
    "api_key_file",
    "token_env",
    "endpoints",
    "prompt",
    "messages",
    "system",
)
_LONGEST_MESSAGE = 400
_KEY = "[key]"


def every_key() -> tuple[str, ...]:
    """Every key of a plan, dotted, parts before what they hold; those of a workload of every kind."""
    return tuple(dict.fromkeys(key for key, _ in fields()))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A value that the schema refuses: its place, pydantic's name for the kind of error and message, and the value given.

    `cause`: what a validator raised. `expected`: the values allowed, `tag`: the one that named a kind. `limit`: the bound that
    was not kept. Each is empty in an error of another kind.
    """

    place: tuple[str | int, ...]
    kind: str
    message: str
    given: object
    cause: str = ""
    expected: str = ""
    tag: str = ""
    limit: float = 0


def refusals(error: ValidationError) -> list[Refusal]:
    """Every one of pydantic's errors."""
    return [_refusal(one) for one in error.errors(include_url=False)]


def _refusal(error: ErrorDetails) -> Refusal:
    kind, context, place = error["type"], error.get("ctx", {}), error["loc"]
    # Pydantic marks a refused key of a mapping so; a key can also be called that.
    if len(place) > 1 and place[-1] == _KEY and kind != "extra_forbidden" and error["input"] == place[-2]:
        place = place[:-1]
    return Refusal(
        place=place,
        kind=kind,
        message=error["msg"],
        given=error["input"],
        cause=str(context.get("error", "")),
        expected=context.get("expected_tags", context.get("expected", "")),
        tag=context.get("tag", ""),
        limit=context.get(_LIMIT_NAMES.get(kind, ""), 0),
    )


def refused(error: ValidationError) -> list[Refusal]:
    """Pydantic's errors, but for a list that is too short only because items in it are refused."""
    every = refusals(error)
    within = {one.place[:end] for one in every for end in range(len(one.place))}
    return [one for one in every if one.kind != "too_short" or one.place not in within]


def located(loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The place of one of pydantic's errors as the plan's author knows it: without the kind of the workload."""
    tagged = loc[:1] == ("workload",) and len(loc) > 1 and loc[1] in KINDS
    return (*loc[:1], *loc[2:]) if tagged else loc


def misplaced(error: Refusal) -> Fault | None:
    """The fault in one of pydantic's errors that is about a workload's kind: a key or a value that other kinds have."""
    loc = error.place
    if len(loc) != 3 or loc[0] != "workload" or loc[1] not in KINDS:
        return None
    kind, key = KINDS[loc[1]], str(loc[2])
    having = [other for other in kinds_with(key) if other is not kind]
    chosen = list(dict.fromkeys(other.chosen_by for other in having))
    own = f"workload.{key}"
    if error.kind == "extra_forbidden" and having:
        belongs = f"is about {having[0].noun}: set {{{chosen[0]}}}"
        message = f"{kind.decides}: leave {{{own}}} out" if kind.decides else belongs
        if kind.decides and len(chosen) == 1 and chosen[0] not in (own, "workload.name"):
            message += f"; it {belongs}"
        return Fault((own, kind.chosen_by, *chosen), message)
    if error.kind == "literal_error" and any(_allows(other, key, error.given) for other in having):
        instead = error.expected.replace("'", "")
        why = kind.decides or f"{{workload.kind}} is {loc[1]}"
        message = f"{why}: leave {{{own}}} out, or set it to {instead}"
        return Fault((own, kind.chosen_by), message)
    return None


def _allows(kind: type[BaseModel], key: str, value: object) -> bool:
    return value in get_args(kind.model_fields[key].annotation)


def example(loc: tuple[str | int, ...]) -> object:
    """A value for the field at the place of one of pydantic's errors."""
    parts: list[type[BaseModel]] = [Plan]
    info: FieldInfo | None = None
    for at, name in enumerate(loc):
        if at == 1 and loc[0] == "workload" and name in KINDS:
            parts = [KINDS[str(name)]]
        elif isinstance(name, str):
            fields = [(key, one) for part in parts for key, one in part.model_fields.items()]
            info = next(one for key, one in fields if name in (key, one.alias))
            parts = list(models(info.annotation))
    assert info is not None
    assert info.examples, f"a field that has to be given has an example: {loc}"
    return info.examples[0]


def unknown(path: tuple[str | int, ...]) -> tuple[str, str | None]:
    """What to say about a key that is none, and the key probably meant."""
    name = str(path[-1])
    parent = ".".join(part for part in path[:-1] if isinstance(part, str))
    every = [key for key in every_key() if not key.startswith("slos.")]
    siblings = {key.rpartition(".")[2]: key for key in every if key.rpartition(".")[0] == parent}
    near = difflib.get_close_matches(name, siblings, n=1, cutoff=0.6)
    if name in ("api_key", "key", "token", "password", "bearer"):
        return "no such key: a plan never holds a secret; use target.api_key_env or target.api_key_file", None
    elsewhere = [key for key in every if key.rpartition(".")[2] == name]
    if not near and not elsewhere:
        leaves = {key.rpartition(".")[2]: key for key in every}
        elsewhere = [leaves[leaf] for leaf in difflib.get_close_matches(name, leaves, n=1, cutoff=0.8)]
    meant = elsewhere[0] if elsewhere else siblings[near[0]] if near else None
    if meant is None:
        return f"no such key; the keys here are {', '.join(siblings)}", None
    return f"no such key; did you mean {meant}?", meant


def reason(error: Refusal) -> str:
    """Why a value is refused, in a sentence about it."""
    kind, given, path = error.kind, error.given, error.place
    if path == ("schema",):
        return f"this version of inferometer reads {' and '.join(READABLE)}"
    told = "" if any(part in _QUIET for part in path) else f", not {_shown(given)}"
    if kind == "value_error":
        message = error.cause
    elif kind in _LIMITS:
        message = f"must be {_LIMITS[kind]} {error.limit:,}{told}"
    elif kind == "literal_error":
        message = _literal(error.expected, given, told)
    elif kind == "string_pattern_mismatch":
        message = "must be 1 to 64 letters, digits, dots, hyphens and underscores" + told
    elif kind == "union_tag_invalid":
        message = _literal(error.expected, error.tag, f", not {_shown(error.tag)}")
    elif kind == "missing":
        message = "is missing but required"
    elif kind == "too_short":
        message = f"has too few: at least {error.limit}"
    elif kind == "too_long":
        message = f"has too many: at most {error.limit}"
    elif kind == "string_too_short":
        message = "must not be empty"
    else:
        wanted = _WANTED.get(kind.split("_")[0])
        message = f"must be {wanted}{told}" if wanted else error.message
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"


def _literal(expected: str, given: object, told: str) -> str:
    choices = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
    word = str(given).lower()
    near = difflib.get_close_matches(word, choices, n=1) or [
        choice for choice in choices if word and word in choice
    ]
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"must be {' or '.join(choices)}{told}{hint}"


def _shown(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = "nothing" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
