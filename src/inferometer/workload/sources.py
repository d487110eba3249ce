"""Where a plan's requests come from, and what is known of them: drawn from lengths, texts or classes, or rows of a file.

| the workload has             | made by                   |
| ---------------------------- | ------------------------- |
| lengths and random tokens    | prompts.py                |
| a standard's natural text    | natural_text.py                |
| `classes`                    | mixture.py                |
| `prompts`                    | prompt_file.py and prompt_file_requests.py |
| a `file` that was made       | workload_file.py and workload_file_source.py   |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inferometer.errors import PlanError, Problem
from inferometer.workload import (
    mixture,
    natural_text,
    prompt_file_requests,
    prompts,
    sessions,
    texts,
    tokenizers,
    workload_file_source,
)
from inferometer.workload.context_limit import Room, check_trace, may_exceed
from inferometer.workload.prompt_file import PromptFile, survey
from inferometer.workload.prompts import Contexts, Prompt
from inferometer.workload.turn_schedule import ONE_TURN, Place, Session, drawn
from inferometer.workload.workload_file import Made

if TYPE_CHECKING:
    from inferometer.plan.schema import Plan, Workload
    from inferometer.workload.tokenizers import Tokenizer
    from inferometer.workload.traces.survey import Survey


@dataclass(slots=True)
class Source:
    """The requests of one plan. `file`: where they are rows of one; `asked`: lengths of those made for the measurement.
    `made`: the workload that was made before, of which they are.

    `chat`: a system prompt is a message of its own. `texts`: whose words prompts of natural text are (texts.py).
    """

    file: PromptFile | None = None
    made: Made | None = None
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
            tight = (
                prompt_file_requests.check_lengths(plan.workload, tokenizer, self.file, room)
                or plan.workload.turns is not None
            )
        elif self.made is not None:
            tight = True  # its rows are there, and quickly looked at
        else:
            tight = may_exceed(plan.workload, room)
        return room if tight else None

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Raise PlanError where a workload that was made was made with another one."""
        if self.made is not None:
            workload_file_source.check_tokenizer(self.made, tokenizers.facts(tokenizer))

    def prompts(
        self,
        spec: Workload,
        tokenizer: Tokenizer,
        n: int,
        salt: int,
        prompt_format: Literal["ids", "text"],
        template: int = 0,
        skip: int = 0,
        places: Sequence[Place] = (),
        *,
        warm: bool = False,
        contexts: Contexts | None = None,
    ) -> Iterator[Prompt]:
        """The first `n` prompts, of the measurement or the warm-up (`warm`), at their `places` where they have any. `skip`: as
        many rows of a file of prompts that were, or will be, measured; in its order it goes on behind them. `contexts`: the
        shared prefixes of the measurement, for a warm-up that is to have those."""
        if self.made is not None:
            made = workload_file_source.generate(self.made, tokenizer, n, salt, warm=warm)
            return (
                (replace(one, place=place) for one, place in zip(made, places, strict=True))
                if places
                else made
            )
        if spec.turns is None:
            made = self._alone(spec, tokenizer, n, salt, prompt_format, template, skip, contexts=contexts)
            return (
                (replace(one, place=place) for one, place in zip(made, places, strict=True))
                if places
                else made
            )
        if self.file is not None:
            return prompt_file_requests.conversations(
                spec, tokenizer, self.file, places, salt, skip, contexts
            )
        same = [place.turn > 0 for place in places]
        made = self._alone(spec, tokenizer, n, salt, prompt_format, template, skip, same, contexts)
        return sessions.chained(spec, tokenizer, made, places)

    def contexts(
        self, spec: Workload, tokenizer: Tokenizer, n: int, salt: int, same: Sequence[bool] = ()
    ) -> Contexts | None:
        """The shared prefixes of a measurement of `n` requests with this salt; None: its warm-up is made already. `same`: which
        of them go on with the conversation before."""
        if self.made is not None:
            return None
        if self.file is not None:
            return prompt_file_requests.contexts(spec, self.file, n - sum(same), salt)
        if spec.classes:
            return mixture.contexts(spec, tokenizer.vocab_size, n, salt, same)
        groups = 0 if spec.content.sharing is None else spec.content.sharing.groups
        return Contexts(spec.seed, salt, [(0, group) for group in range(groups)])

    def sessions(
        self, spec: Workload, skip: int = 0, *, warm: bool = False, contexts: Contexts | None = None
    ) -> Iterator[Session]:
        """The conversations that the requests are, or one of one turn for each. `skip`, `warm`, `contexts`: see prompts."""
        if spec.turns is None:
            return repeat(ONE_TURN)
        if self.made is not None:
            return workload_file_source.sessions(self.made, warm=warm)
        return drawn(
            spec, None if self.file is None else prompt_file_requests.turns(spec, self.file, skip, contexts)
        )

    def _alone(
        self,
        spec: Workload,
        tokenizer: Tokenizer,
        n: int,
        salt: int,
        prompt_format: Literal["ids", "text"],
        template: int,
        skip: int,
        same: Sequence[bool] = (),
        contexts: Contexts | None = None,
    ) -> Iterator[Prompt]:
        """Each by itself, as if nothing had been said before. `same`: which are of the class before."""
        if self.file is not None:
            return prompt_file_requests.generate(spec, tokenizer, self.file, n, salt, skip, contexts)
        if spec.classes:
            return mixture.generate(spec, tokenizer, n, salt, prompt_format, template, same, contexts)
        if spec.content.text is not None:
            return natural_text.generate(
                spec,
                tokenizer,
                n,
                salt,
                prompt_format,
                template,
                chat=self.chat,
                same=same,
                contexts=contexts,
            )
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
        file, found = self.file, self.made
        if found is not None:
            said = found.header.source.model_dump(mode="json")
            if said["prompts"] is not None:
                said["prompts"] |= {name: tally.facts() for name, tally in self.asked.items()}
            return {
                **said,
                "made": {"file": found.name, "format": found.format, "digest": found.header.digest},
            }
        if file is None:
            return {"classes": list(self.classes), "prompts": None, "texts": self.texts, "made": None}
        about = {
            "file": file.name,
            "format": file.format,
            "sha256": file.sha256,
            "bytes": file.size,
            "rows": len(file),
            "with_system_prompt": file.systems,
            **{name: tally.facts() for name, tally in self.asked.items()},
        }
        return {"classes": list(self.classes), "prompts": about, "texts": None, "made": None}


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
    """The plan with the SHA-256 of its file of prompts, or with all that a workload made before decides, and where its requests
    come from; its files have been read through.

    Raises PlanError where a file or a dataset is unsound, or the file of prompts is another than the plan's.
    """
    if plan.workload.file is not None:
        plan, found_made = workload_file_source.taken_over(plan)
        return plan, Source(made=found_made, classes=found_made.header.classes)
    spec = plan.workload
    if spec.prompts is None:
        whose = texts.facts(spec) if spec.content.text is not None else None
        names = tuple(one.name for one in spec.classes)
        return plan, Source(classes=names, chat=plan.target.interface.takes_messages, texts=whose)
    path = Path(spec.prompts).expanduser()
    found = survey(path, chat=plan.target.interface.takes_messages, needs_output=spec.default_output is None)
    if spec.prompts_sha256 not in (None, found.sha256):
        told = f"is another file than the plan's: its SHA-256 is {found.sha256}, not {spec.prompts_sha256}"
        raise PlanError([Problem(f"{found.name} (workload.prompts_sha256)", told)])
    pinned = spec.model_copy(update={"prompts_sha256": found.sha256})
    return plan.model_copy(update={"workload": pinned}), Source(found, classes=found.classes)
