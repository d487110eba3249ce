"""Lengths of requests, counted as they pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from inferometer.documents.workload import LengthTally, PromptFile
from inferometer.workload.prompts import Prompt


class Lengths:
    """The lengths of the prompts that pass, and of their answers, as asked for."""

    def __init__(self) -> None:
        self._input, self._output = Tally(), Tally()
        self._passed = False

    def of(self, made: Iterable[Prompt]) -> Iterator[Prompt]:
        """The prompts as they are."""
        self._passed = True
        for prompt in made:
            self._input.add(prompt.requested)
            self._output.add(prompt.output)
            yield prompt

    def facts(self, file: PromptFile) -> PromptFile:
        """The account of the file that they are of, with their lengths once one has passed."""
        if not self._passed:
            return file
        return msgspec.structs.replace(
            file, input_tokens=self._input.facts(), output_tokens=self._output.facts()
        )


class Tally:
    """Count, mean, standard deviation (n - 1) and range of whole numbers, exact whatever their number."""

    def __init__(self) -> None:
        self.n = self._sum = self._squares = 0
        self._low: int | None = None
        self._high: int | None = None

    def add(self, value: int) -> None:
        """One more."""
        self.n += 1
        self._sum += value
        self._squares += value * value
        self._low = value if self._low is None else min(self._low, value)
        self._high = value if self._high is None else max(self._high, value)

    def facts(self) -> LengthTally | None:
        """None when nothing was added."""
        if self._low is None or self._high is None:
            return None
        spread = self._squares * self.n - self._sum * self._sum
        std = math.sqrt(spread / (self.n * (self.n - 1))) if self.n > 1 else None
        return LengthTally(n=self.n, mean=self._sum / self.n, std=std, min=self._low, max=self._high)
