"""Names of engines in little room: with a model's name in them they can be longer than a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inferometer.report.figures import clean

Names = Mapping[str, str]
"""What to call each engine, by its label."""

LONGEST = 40
"""Characters of a name where it stands in sentences, legends and rows of figures; the table of engines has it whole."""
_GAP = "..."


def shortened(labels: Sequence[str], room: int = LONGEST) -> dict[str, str]:
    """Each label in at most `room` characters (8 or more), those of different labels different where the room allows it.

    The middle is left out first, for engine and model stand at the ends; then the end; then the start.
    """
    whole = {label: clean(label) for label in labels}
    ways: tuple[Callable[[str, int], str], ...] = (_middle, _end, _start)
    for way in ways:
        made = {label: name if len(name) <= room else way(name, room) for label, name in whole.items()}
        if len(set(made.values())) == len(made):
            return made
    numbers = {label: f" #{at}" for at, label in enumerate(whole, 1)}
    return {label: _end(name, room - len(numbers[label])) + numbers[label] for label, name in whole.items()}


def _middle(name: str, room: int) -> str:
    tail = (room - len(_GAP)) // 2
    return name[: room - len(_GAP) - tail] + _GAP + name[len(name) - tail :]


def _end(name: str, room: int) -> str:
    return name if len(name) <= room else name[: room - len(_GAP)] + _GAP


def _start(name: str, room: int) -> str:
    return _GAP + name[len(name) - room + len(_GAP) :]
