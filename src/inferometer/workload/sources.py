"""Where a plan's requests come from, and what is known of them: drawn from lengths, texts or classes, or rows of a file.

| the workload has             | made by                   |
| ---------------------------- | ------------------------- |
| lengths and random tokens    | prompts.py                |
| a standard's natural text    | natural.py                |
| `classes`                    | mixture.py                |
| `prompts`                    | prompt_file.py and own.py |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inferometer.errors import PlanError, Problem
from inferometer.workload import mixture, natural, own, prompts, texts
from inferometer.workload.prompt_file import PromptFile, survey
from inferometer.workload.prompts import Prompt
from inferometer.workload.room import Room, check_trace, may_exceed

if TYPE_CHECKING:
    from inferometer.plan.schema import Plan, Workload
    from inferometer.workload.tokenizers import Tokenizer
    from inferometer.workload.traces.survey import Survey


@dataclass(slots=True)
class Source:
    """The requests of one plan. `file`: where they are rows of one; `asked`: lengths of those made for the measurement.

    `chat`: a system prompt is a message of its own. `texts`: whose words prompts of natural text are (texts.py).
    """

    file: PromptFile | None = None
    classes: tuple[str, ...] = ()
    chat: bool = False
    texts: dict[str, Any] | None = None
    asked: dict[str, Tally] = field(default_factory=dict)

    def check(self, plan: Plan, trace: Survey | None, tokenizer: Tokenizer, room: Room | None) -> Room | None:
        """The room again where a request that is not made yet could lack it: then each has to be looked at.

        Raises PlanError where a row of a file or of the `trace` has no room in the model (None: its context is not known).
        """
        if room is None:
            return None
        if trace is not None:
            assert plan.trace is not None
            check_trace(plan.trace, trace, tokenizer, room)
            return None
        if self.file is not None:
            tight = own.check_lengths(plan.workload, tokenizer, self.file, room)
        else:
            tight = may_exceed(plan.workload, room)
        return room if tight else None

    def prompts(
        self,
        spec: Workload,
        tokenizer: Tokenizer,
        n: int,
        salt: int,
        prompt_format: Literal["ids", "text"],
        template: int = 0,
        skip: int = 0,
    ) -> Iterator[Prompt]:
        """The first `n` prompts. `skip`: as many that were, or will be, measured; a file in its order goes on behind them."""
        if self.file is not None:
            return own.generate(spec, tokenizer, self.file, n, salt, skip)
        if spec.classes:
            return mixture.generate(spec, tokenizer, n, salt, prompt_format, template)
        if spec.content.text is not None:
            return natural.generate(spec, tokenizer, n, salt, prompt_format, template, chat=self.chat)
        return prompts.generate(spec, tokenizer, n, salt, prompt_format, template)

    def counted(self, made: Iterable[Prompt]) -> Iterator[Prompt]:
        """The prompts of the measurement, whose lengths are noted as they pass."""
        self.asked = {"input_tokens": Tally(), "output_tokens": Tally()}
        for prompt in made:
            self.asked["input_tokens"].add(prompt.asked)
            self.asked["output_tokens"].add(prompt.output)
            yield prompt

    def facts(self) -> dict[str, Any]:
        """What run.json and the reports say of it: the classes' names and, of a file, all but its words."""
        file = self.file
        if file is None:
            return {"classes": list(self.classes), "prompts": None, "texts": self.texts}
        found = {
            "file": file.name,
            "format": file.format,
            "sha256": file.sha256,
            "bytes": file.size,
            "rows": len(file),
            "with_system_prompt": file.systems,
            **{name: tally.facts() for name, tally in self.asked.items()},
        }
        return {"classes": list(self.classes), "prompts": found, "texts": None}


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

    def facts(self) -> dict[str, Any] | None:
        """As plain data; None when nothing was added."""
        if not self.n:
            return None
        spread = self._squares * self.n - self._sum * self._sum
        std = math.sqrt(spread / (self.n * (self.n - 1))) if self.n > 1 else None
        return {"n": self.n, "mean": self._sum / self.n, "std": std, "min": self._low, "max": self._high}


def sourced(plan: Plan) -> tuple[Plan, Source]:
    """The plan with the SHA-256 of its file of prompts, and where its requests come from; its files have been read through.

    Raises PlanError where a file or a dataset is unsound, or the file of prompts is another than the plan's.
    """
    spec = plan.workload
    if spec.prompts is None:
        whose = texts.facts(spec) if spec.content.text is not None else None
        names = tuple(one.name for one in spec.classes)
        return plan, Source(None, names, plan.target.api == "chat", whose)
    path = Path(spec.prompts).expanduser()
    found = survey(path, chat=plan.target.api == "chat", needs_output=spec.default_output is None)
    if spec.prompts_sha256 not in (None, found.sha256):
        told = f"is another file than the plan's: its SHA-256 is {found.sha256}, not {spec.prompts_sha256}"
        raise PlanError([Problem(f"{found.name} (workload.prompts_sha256)", told)])
    pinned = spec.model_copy(update={"prompts_sha256": found.sha256})
    return plan.model_copy(update={"workload": pinned}), Source(found, found.classes)
