"""The schema's refusals in plain words, and the right key for a misspelled one.

Values are repeated only where they cannot be a secret: never those of unknown keys, headers, bodies and key references.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from inferometer.plan.schema import SCHEMA, Plan

_LIMITS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}
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
    "prompt",
    "messages",
    "system",
)
_LONGEST_MESSAGE = 400


def every_key() -> tuple[str, ...]:
    """Every key of a plan, dotted, parts before what they hold."""
    return tuple(_keys(Plan, ""))


def _keys(part: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, info in part.model_fields.items():
        key = prefix + (info.alias or name)
        yield key
        for kind in (info.annotation, *get_args(info.annotation)):
            if (
                isinstance(kind, type)
                and issubclass(kind, BaseModel)
                and "model_serializer" not in vars(kind)
            ):
                yield from _keys(kind, f"{key}.")


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
        return f"no such key; here are {', '.join(siblings)}", None
    return f"no such key; did you mean {meant}?", meant


def refusal(error: dict[str, Any]) -> str:
    """One of pydantic's errors (an item of `ValidationError.errors()`) in a sentence about the value."""
    kind, context, given = error["type"], error.get("ctx", {}), error.get("input")
    path = error["loc"]
    if path == ("schema",):
        return f"this version of inferometer reads {SCHEMA}"
    told = "" if any(part in _QUIET for part in path) else f", not {_shown(given)}"
    if kind == "value_error":
        message = str(context["error"])
    elif kind in _LIMITS:
        words, limit = _LIMITS[kind]
        message = f"must be {words} {context[limit]:,}{told}"
    elif kind == "literal_error":
        message = _literal(context["expected"], given, told)
    elif kind == "string_pattern_mismatch":
        message = "must be 1 to 64 letters, digits, dots, hyphens and underscores" + told
    elif kind == "missing":
        message = "is missing, and has to be given"
    elif kind == "too_short":
        message = f"holds too few: at least {context['min_length']}"
    elif kind == "too_long":
        message = f"holds too many: at most {context['max_length']}"
    elif kind == "string_too_short":
        message = "must not be empty"
    else:
        wanted = _WANTED.get(kind.split("_")[0])
        message = f"must be {wanted}{told}" if wanted else error["msg"]
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
