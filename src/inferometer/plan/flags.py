"""The command line's view of a plan, drawn from its fields: which flag sets which key, how its text is read, what its help is.

`cli/` makes its options from FLAGS and `parse.py` its values and its error messages, so that the two cannot drift apart. A
flag is a field's `Option` (part.py): help is the field's description and default. Most flags hand their text on as it is, for
the schema reads `8`, `2m` and `uniform(128,512)` itself. The ones that set several keys at once give a mapping, which is merged
into the plan file's key by key.

A flag overrides the plan file. Where it decides more than its own key (`--rate` means open loop), its `drops` lists the file's
keys that go with the old decision; a flag that chooses a kind of workload drops all that the kind lacks.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from inferometer.errors import PlanError, Problem
from inferometer.plan.declarations import declare
from inferometer.plan.part import Group, Option, Values
from inferometer.plan.schema import Plan
from inferometer.plan.workload import KINDS


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `parse` turns its text into the value of `key`, raising ValueError in words.

    `switch`: it takes no text, and stands for `value`. `repeat`: it may be given several times; the values make a list, or
    if they are mappings, one mapping.
    """

    name: str
    key: str
    help: str
    group: Group
    metavar: str
    parse: Callable[[str], object]
    repeat: bool
    switch: bool
    value: object
    drops: tuple[str, ...]

    @property
    def parameter(self) -> str:
        """The flag as a Python identifier: `input_tokens` for `--input-tokens`."""
        return self.name.removeprefix("--").replace("-", "_")


def hardware(text: str) -> Values:
    """`H100x4`, `H100x4:80GB`, `MI300X` (one of them) or `cpu` (none) as keys of `sut`."""
    name, _, memory = (part.strip() for part in text.partition(":"))
    if not name:
        raise ValueError("needs the accelerator's name: for example H100x4, H100x4:80GB or cpu")
    if name.lower() in ("cpu", "none"):
        return {"accelerator": "cpu", "accelerator_count": 0, "accelerator_memory": memory or None}
    # A lower-case x only, and at most 3 digits: MI300X and rtx4090 are names.
    form = re.fullmatch(r"(?P<name>.+?)\s*x(?P<count>[0-9]{1,3})", name)
    count = int(form["count"]) if form else 1
    if count == 0:
        raise ValueError("the number of accelerators must be at least 1; for none write cpu")
    return {
        "accelerator": form["name"] if form else name,
        "accelerator_count": count,
        "accelerator_memory": memory or None,
    }


def guardrails(text: str) -> Values:
    """`none`, `input`, `output` or `both`, and after a colon the filters' names, as keys of `sut.guardrails`."""
    where, _, names = text.partition(":")
    sides = {"none": (False, False), "input": (True, False), "output": (False, True), "both": (True, True)}
    side = sides.get(where.strip().lower())
    if side is None:
        raise ValueError(
            "must be none, input, output or both, with names after a colon: for example both:Llama Guard"
        )
    listed = [name.strip() for name in names.split(",") if name.strip()]
    if listed and side == (False, False):
        raise ValueError("none has no names: write for example input:Llama Guard")
    return {"input_filter": side[0], "output_filter": side[1], "names": listed}


def header(text: str) -> Values:
    """`Name: value` as one key of `target.headers`. The text is never repeated: it may hold a key."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise ValueError("must be a name, a colon and a value: for example 'X-Request-Source: bench'")
    return {name.strip(): value.strip()}


def json_object(text: str) -> Values:
    """A JSON object. The text is never repeated: it may hold a key."""

    def once(pairs: list[tuple[str, object]]) -> Values:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("the same name occurs twice in one JSON object")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is not valid JSON: {error.msg} at character {error.pos + 1}; for example '{{\"top_p\": 0.9}}'"
        ) from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object: for example '{\"top_p\": 0.9}'")
    return value


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The parts that a field may be, with keys of their own."""
    if isinstance(annotation, type):
        if issubclass(annotation, BaseModel) and "model_serializer" not in vars(annotation):
            yield annotation
    elif get_origin(annotation) is Annotated or get_origin(annotation) is tuple:
        yield from models(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for one in get_args(annotation):
            yield from models(one)


def fields(part: type[BaseModel] = Plan, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every field by its dotted key, parts before what they hold; a workload's of every kind, so that a key may come again."""
    for name, info in part.model_fields.items():
        key = prefix + (info.alias or name)
        yield key, info
        for inner in models(info.annotation):
            yield from fields(inner, f"{key}.")


_PARSERS: dict[str, Callable[[str], object]] = {
    "target.headers": header,
    "server_metrics.headers": header,
    "target.extra_body": json_object,
    "sut": hardware,
    "sut.guardrails": guardrails,
    "declared": declare,
}
"""Keys whose flags have a spelling of their own."""


def _flag(key: str, info: FieldInfo, option: Option) -> Flag:
    return Flag(
        option.flag,
        key,
        _help(option, info),
        option.group,
        "" if option.value is not None else option.metavar,
        _PARSERS.get(key, str),
        option.repeat,
        option.value is not None,
        option.value,
        option.drops,
    )


def _help(option: Option, info: FieldInfo) -> str:
    """The field's description, or what is said instead; its default; and whether the flag may be given again."""
    said = option.help or info.description or ""
    default = option.default or _spelled(info.default)  # one that a factory makes has no spelling
    if default and option.value is None:
        said += f" Default: {default}."
    return f"{said} May be repeated." if option.repeat else said


def _spelled(default: object) -> str:
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    return (
        f"{default:g}"
        if isinstance(default, float)
        else str(default)
        if isinstance(default, str | int)
        else ""
    )


_OPTIONS = [
    (key, info, option) for key, info in fields() for option in info.metadata if isinstance(option, Option)
]
# Kinds of workload share keys: the first one's says what a flag is, the last one's where it stands.
_BY_FLAG = {option.flag: (key, info, option) for key, info, option in reversed(_OPTIONS)}
FLAGS: tuple[Flag, ...] = tuple(_flag(*chosen) for chosen in reversed(_BY_FLAG.values()))

BY_NAME = {flag.name: flag for flag in FLAGS}

_OF_ANOTHER = ("kind", "name", "based_on", "file", "file_sha256", "prompts_sha256", "sessions_sha256")
"""What says that a workload is a certain one, and so is no longer true where a flag chooses another."""


def overridden(flag: Flag, value: object) -> list[str]:
    """The plan file's keys that go where a flag overrides it: of a workload of another kind all that the new kind lacks."""
    kind = {
        **{f"workload.{one}": one for one in ("prompts", "tasks", "sessions", "file")},
        "trace.file": "trace",
    }.get(flag.key)
    if flag.key == "workload.name":
        kind = "lengths" if value == "custom" else "standard"
    if kind is None:
        return list(flag.drops)
    every = {key for one in KINDS.values() for key in one.model_fields}
    lacking = every - KINDS[kind].model_fields.keys()
    return [*flag.drops, *(f"workload.{key}" for key in sorted(lacking | set(_OF_ANOTHER)))]


_UNSIMULATED = {
    "workload.spans": "is written by a system as it runs; the spans of a simulated one are in the run's folder",
    "host_telemetry.": "reads this machine, and a simulation measures none",
    "instrument.subtract_rtt": "is about the way to a server, and a simulation has no network",
}
"""Why flags of these keys say nothing of a simulation."""


def refuse_unsimulated(given: Mapping[str, object]) -> None:
    """Raises PlanError for flags of a simulation that measure this machine or the way to a server, neither of which is part of
    what is simulated. The keys of a plan, which is shared, are left aside."""
    problems = [
        Problem(name, f"{why}: leave it out")
        for name, value in given.items()
        if value
        for key, why in _UNSIMULATED.items()
        if BY_NAME[name].key.startswith(key)
    ]
    if problems:
        raise PlanError(problems)


def read(given: Mapping[str, object]) -> tuple[list[tuple[Flag, object]], list[Problem]]:
    """Read flags as the command line gave them, `{"--rate": "20", "--slo": ["..."], "--no-stream": True}`.

    None, False and an empty list mean: not given. Gives each flag with its value, in the order given, and every problem.
    """
    values: list[tuple[Flag, object]] = []
    problems: list[Problem] = []
    for name, raw in given.items():
        if raw is None or raw is False or (isinstance(raw, list | tuple) and not raw):
            continue
        flag = BY_NAME.get(name)
        if flag is None:
            near = difflib.get_close_matches(name, BY_NAME, n=1)
            problems.append(Problem(name, f"no such flag{f'; did you mean {near[0]}?' if near else ''}"))
        elif flag.switch:
            values.append((flag, flag.value))
        else:
            texts = list(raw) if isinstance(raw, list | tuple) else [raw]
            parsed = [value for text in texts for value in _parse(flag, str(text), problems)]
            if parsed:
                values.append((flag, _joined(flag, parsed)))
    return values, problems


def _parse(flag: Flag, text: str, problems: list[Problem]) -> list[object]:
    try:
        return [flag.parse(text)]
    except ValueError as error:
        problems.append(Problem(flag.name, str(error)))
        return []


def _joined(flag: Flag, parsed: list[object]) -> object:
    if not flag.repeat:
        return parsed[-1]
    if all(isinstance(value, dict) for value in parsed):
        return {key: value for one in parsed if isinstance(one, dict) for key, value in one.items()}
    return parsed
