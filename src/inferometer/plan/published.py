"""What a redacted report publishes of a plan's values: the fields marked as harmless (plan/part.py).

| value                                            | published                                     |
| ------------------------------------------------ | --------------------------------------------- |
| of a field marked as harmless                    | as it is; a part within it, field by field    |
| of any other field                               | withheld, unless it is empty                  |
| name of a class of requests, unless the draft's  | by number: `class 1`                          |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from inferometer.plan.part import Part, Values, harmless, parts_in
from inferometer.plan.procedure_parameters import Fairness
from inferometer.plan.workload import KINDS, AnyWorkload, kind_of

DRAFTED = frozenset(one.name for one in Fairness().classes)
"""Names of classes that draft 5.6.2 gives: they tell nothing of the tester."""


class ClassNames:
    """The classes of requests that a tester named, by number in the order of their first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def of(self, name: str) -> str:
        """`class 1` and so on; a name of the draft's stays."""
        if name in DRAFTED:
            return name
        return self._numbers.setdefault(name, f"class {len(self._numbers) + 1}")

    def within(self, text: str) -> str:
        """A label, cell or key of a test by classes: the class's name it consists of, begins or ends with is replaced."""
        for name, number in sorted(self._numbers.items(), key=lambda item: -len(item[0])):
            titled = name[:1].upper() + name[1:]
            for shown, instead in ((name, number), (titled, number.capitalize())):
                if text == shown:
                    return instead
                for mark in (" Class ", ", ", " "):
                    if text.startswith(shown + mark):
                        return instead + (" " if mark == " Class " else mark) + text[len(shown + mark) :]
            if text.endswith(f"_{name}"):
                return text.removesuffix(name) + number.replace(" ", "_")
        return text


def workload(values: Values, names: ClassNames, withheld: str) -> Values:
    """The values of a plan's workload. `withheld` stands where one is left out."""
    kind = KINDS.get(kind_of(values))
    return {} if kind is None else part(kind, values, names, withheld)


def part(kind: type[BaseModel], values: Values, names: ClassNames, withheld: str) -> Values:
    """The values of one part of a plan, or of a test's parameters."""
    published = harmless(kind)
    return {
        name: within(_part_of(kind, name), value, names, withheld)
        if name in published
        else (withheld if value not in (None, "", [], {}) else value)
        for name, value in values.items()
    }


def _part_of(kind: type[BaseModel], name: str) -> type[Part] | None:
    """The part that a field holds, or holds several of."""
    return next(parts_in(kind.model_fields[name].annotation), None)


def within(kind: type[Part] | None, value: Any, names: ClassNames, withheld: str) -> Any:
    """A value that is a part of this kind, several of them, or (`kind` None) none."""
    if kind is None:
        return value
    if isinstance(value, Mapping):
        found = part(kind, dict(value), names, withheld)
        if "name" in found:  # parts within a workload or a test's parameters that have one are classes
            found["name"] = names.of(str(found["name"]))
        return found
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [within(kind, one, names, withheld) for one in value]
    return value


def in_own_words(one: AnyWorkload) -> bool:
    """Whether what is disclosed of a workload has words of the tester's: a declaration, a file's name, names of classes."""
    values = one.model_dump(mode="json")
    names = ClassNames()
    return workload(values, names, "") != values
