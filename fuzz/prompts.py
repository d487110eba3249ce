"""Files of prompts, JSON Lines and CSV: rows that come again one by one as they were read through, or a list of problems."""

from __future__ import annotations

from fuzz.bounds import bounded_memory
from fuzz.place import lain
from fuzz.problems import told
from inferometer.errors import PlanError
from inferometer.workload.prompt_file import MOST_PROBLEMS, PromptFile, segments, survey


def check(data: bytes) -> None:
    """The first byte says what the plan asks for; the rest is the file."""
    if not data:
        return
    path = lain("prompts", data[1:])
    with bounded_memory():
        try:
            file = survey(path, chat=bool(data[0] & 1), needs_output=bool(data[0] & 2))
        except PlanError as error:
            told(
                error, 3 * MOST_PROBLEMS
            )  # a row, and a file as a whole, may add some to those that end the reading
            return
    holds(file, chat=bool(data[0] & 1), size=len(data) - 1)


def holds(file: PromptFile, *, chat: bool, size: int) -> None:
    """What is said of a file that was found sound."""
    numbers = range(len(file))
    rows = list(file.rows(numbers))
    assert 0 < len(rows) == len(file)
    assert file.size == size
    assert list(file.rows(reversed(numbers))) == rows[::-1]
    for number, row in zip(numbers, rows, strict=True):
        assert chat or row.messages is None
        assert len(segments(row.chat)) == file.turns[number] > 0
        assert row.class_ is None or row.class_ in file.classes
        for _, text in row.chat:
            assert text.strip()
            text.encode()
