"""Where a plan's requests come from: one source for each kind of workload, which makes them and knows what is known of them.

| source          | workload                             | its requests are made by                        |
| --------------- | ------------------------------------ | ----------------------------------------------- |
| `RandomTokens`  | `lengths`, or a standard's of tokens | prompts.py                                      |
| `NaturalText`   | a standard's of natural text         | natural_text.py                                 |
| `Mixture`       | `mixture`                            | mixture.py                                      |
| `PromptRows`    | `prompts`                            | prompt_file.py and prompt_file_requests.py      |
| `SessionRows`   | `sessions`                           | run/session_requests.py                         |
| `WorkloadRows`  | any that was made before, in a file  | workload_file.py and workload_file_source.py    |

A trace's requests are made while the run lasts (run/replay.py): of `TraceRows` it is only known which they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

from inferometer.documents.workload import PromptFile, SourceFacts, WorkloadFile
from inferometer.errors import PlanError, Problem
from inferometer.plan.lengths import Distribution
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import (
    AnyRows,
    LengthsWorkload,
    MixtureWorkload,
    StandardWorkload,
    TasksWorkload,
    reseeded,
)
from inferometer.workload import (
    mixture,
    natural_text,
    prompt_file,
    prompt_file_requests,
    prompts,
    sessions,
    task_file,
    texts,
    tokenizers,
    workload_file_source,
)
from inferometer.workload.agent_sessions import source as agent_sessions
from inferometer.workload.context_limit import Room, check_trace, may_exceed
from inferometer.workload.length_tally import Lengths
from inferometer.workload.parallel import DEFAULT, Processes
from inferometer.workload.prompts import Contexts, Prompt
from inferometer.workload.traces.survey import Survey
from inferometer.workload.traces.survey import survey as trace_survey
from inferometer.workload.turn_schedule import ONE_TURN, Place, Session, drawn
from inferometer.workload.workload_file import Made

if TYPE_CHECKING:
    from inferometer.plan.schema import Plan, Trace
    from inferometer.workload.tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class Rendering:
    """How prompts are written: counted by whom, as ids or text. `template`: tokens of those asked for that the server adds.
    `processes`: when other processes help."""

    tokenizer: Tokenizer
    prompt_format: Literal["ids", "text"]
    template: int = 0
    processes: Processes = DEFAULT


@dataclass(frozen=True, slots=True)
class Batch:
    """Which requests: the first `count` of a phase, drawn by `seed`, with the nonces of `salt`.

    `places`: where they stand, if any is a turn of a conversation or a certain user's. `skip`: as many rows of a file of
    prompts that were, or will be, measured; in its order it goes on behind them. `contexts`: the shared prefixes of the
    measurement, for a warm-up that is to have those.
    """

    count: int
    salt: int
    seed: int
    warmup: bool = False
    skip: int = 0
    places: Sequence[Place] = ()
    contexts: Contexts | None = None

    @property
    def continued(self) -> list[bool]:
        """Which requests go on with the conversation before."""
        return [place.turn > 0 for place in self.places]


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known of answers before they are drawn: their mean length in tokens, and whether each has just that."""

    mean: float
    exact: bool


class Source(Protocol):
    """Where the requests of a plan come from. Its files have been read through."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its classes."""

    @property
    def trace(self) -> Survey | None:
        """What was found in the trace that they are, if they are one's."""

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Raise PlanError where the requests were made with another one."""

    def limit(self, tokenizer: Tokenizer, room: Room) -> Room | None:
        """The context limit if some request may exceed it and each has to be looked at as it is made; else None.

        Raises PlanError where it is known that one does.
        """

    def facts(self) -> SourceFacts:
        """What run.json and the reports say of it: its classes and, of a file, all but its words."""


class RequestSource(Source, Protocol):
    """A source whose requests are all made before the load starts."""

    @property
    def pool(self) -> int | None:
        """How many requests there are to measure; None: as many as are wanted."""

    @property
    def spare(self) -> int | None:
        """How many there are for a lead-in; None: as many as are wanted."""

    @property
    def answers(self) -> Answers | None:
        """None: their lengths are not known before they are made."""

    def prompts(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        """The prompts of a batch, made as they are taken. Raises PlanError."""

    def rows_before(self, measured: Callable[[], int]) -> int:
        """How many rows of a file the warm-up leaves to the measurement (Batch.skip), which takes `measured()` of them."""

    def sessions(
        self, seed: int, skip: int = 0, *, warmup: bool = False, contexts: Contexts | None = None
    ) -> Iterator[Session]:
        """The conversations that the requests are, or one of one turn for each; see Batch."""

    def contexts(
        self, tokenizer: Tokenizer, count: int, salt: int, continued: Sequence[bool] = ()
    ) -> Contexts | None:
        """The shared prefixes of a measurement of `count` requests with this salt, of which those `continued` go on with the
        conversation before; None: its warm-up is made already."""

    def counted(self, made: Iterable[Prompt]) -> Iterator[Prompt]:
        """The prompts of the measurement, whose lengths are noted as they pass, where they are a fact of the source."""


class _Made:
    """What sources have in common whose prompts are made here, one by one."""

    trace: Survey | None = None
    pool: int | None = None
    spare: int | None = None

    def __init__(self, workload: StandardWorkload | LengthsWorkload | MixtureWorkload) -> None:
        self._workload = workload

    @property
    def classes(self) -> tuple[str, ...]:
        """See Source."""
        return tuple(one.name for one in self._workload.classes)

    @property
    def answers(self) -> Answers | None:
        """See RequestSource. The mean over all classes, by their weights."""
        lengths = self._answers()
        mean = math.fsum(length.mean() * weight for length, weight in lengths) / math.fsum(
            weight for _, weight in lengths
        )
        exact = all(length.most() == length.mean() for length, _ in lengths)
        return Answers(mean, exact) if math.isfinite(mean) and mean > 0 else None

    def prompts(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        """See RequestSource. The turns of a conversation are drawn one by one, and then chained."""
        made = self._alone(rendering, batch)
        if self._workload.turns is None:
            return placed(made, batch.places)
        return sessions.chained(reseeded(self._workload, batch.seed), rendering.tokenizer, made, batch.places)

    def rows_before(self, measured: Callable[[], int]) -> int:
        """See RequestSource: there are no rows."""
        del measured
        return 0

    def sessions(
        self, seed: int, skip: int = 0, *, warmup: bool = False, contexts: Contexts | None = None
    ) -> Iterator[Session]:
        """See RequestSource."""
        del skip, warmup, contexts  # which are about rows of a file
        return drawn(reseeded(self._workload, seed)) if self._workload.turns is not None else repeat(ONE_TURN)

    def contexts(
        self, tokenizer: Tokenizer, count: int, salt: int, continued: Sequence[bool] = ()
    ) -> Contexts | None:
        """See RequestSource: none."""
        del tokenizer, count, continued
        return Contexts(self._workload.seed, salt)

    def limit(self, tokenizer: Tokenizer, room: Room) -> Room | None:
        """See Source."""
        del tokenizer
        return room if may_exceed(self._workload.turns, self._bounds(), room) else None

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """See Source: any will do."""

    def counted(self, made: Iterable[Prompt]) -> Iterator[Prompt]:
        """See RequestSource: what is drawn is known from the plan."""
        return iter(made)

    def facts(self) -> SourceFacts:
        """See Source."""
        return SourceFacts(self.classes)

    def _alone(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        """Each prompt as if nothing had been said before."""
        raise NotImplementedError

    def _answers(self) -> list[tuple[Distribution, float]]:
        """The lengths of answers, each with its weight."""
        raise NotImplementedError

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """The longest prompt, prefix included, and the longest answer, of each class."""
        raise NotImplementedError


class RandomTokens(_Made):
    """Random tokens of drawn lengths."""

    _workload: StandardWorkload | LengthsWorkload

    def _alone(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        spec, how = reseeded(self._workload, batch.seed), rendering
        return prompts.generate(
            spec, how.tokenizer, batch.count, batch.salt, how.prompt_format, how.template, how.processes
        )

    def _answers(self) -> list[tuple[Distribution, float]]:
        return [(self._workload.output_tokens, 1.0)]

    def _bounds(self) -> Iterator[tuple[int, int]]:
        yield self._workload.input_tokens.most(), self._workload.output_tokens.most()


class NaturalText(_Made):
    """A standard workload's texts, from a corpus or a dataset. `chat`: a system prompt is a message of its own."""

    _workload: StandardWorkload

    def __init__(self, workload: StandardWorkload, *, chat: bool) -> None:
        super().__init__(workload)
        self._chat = chat
        self._texts = texts.facts(workload)

    def _alone(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        spec, how = reseeded(self._workload, batch.seed), rendering
        return natural_text.generate(
            spec, how.tokenizer, batch.count, batch.salt, how.prompt_format, how.template,
            chat=self._chat, same=batch.continued, contexts=batch.contexts, processes=how.processes,
        )  # fmt: skip

    def contexts(
        self, tokenizer: Tokenizer, count: int, salt: int, continued: Sequence[bool] = ()
    ) -> Contexts | None:
        """See RequestSource: all of them, for few requests leave one out."""
        del tokenizer, count, continued
        sharing = self._workload.content.sharing
        cover = [(0, group) for group in range(0 if sharing is None else sharing.groups)]
        return Contexts(self._workload.seed, salt, cover)

    def facts(self) -> SourceFacts:
        """See Source."""
        return SourceFacts(self.classes, texts=self._texts)

    def _answers(self) -> list[tuple[Distribution, float]]:
        return [(self._workload.output_tokens, 1.0)]

    def _bounds(self) -> Iterator[tuple[int, int]]:
        shared = self._workload.content.sharing
        prompt, answer = texts.longest(self._workload)
        yield prompt + (0 if shared is None else shared.tokens.most()), answer


class Mixture(_Made):
    """Requests of several classes."""

    _workload: MixtureWorkload

    def _alone(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        spec, how = reseeded(self._workload, batch.seed), rendering
        return mixture.generate(
            spec, how.tokenizer, batch.count, batch.salt, how.prompt_format, how.template,
            batch.continued, batch.contexts,
        )  # fmt: skip

    def contexts(
        self, tokenizer: Tokenizer, count: int, salt: int, continued: Sequence[bool] = ()
    ) -> Contexts | None:
        """See RequestSource: those that are drawn."""
        return mixture.contexts(self._workload, tokenizer.vocab_size, count, salt, continued)

    def _answers(self) -> list[tuple[Distribution, float]]:
        return [(one.output_tokens, one.weight) for one in self._workload.classes]

    def _bounds(self) -> Iterator[tuple[int, int]]:
        for one in self._workload.classes:
            prefix = one.shared_prefix.tokens if one.shared_prefix is not None else 0
            yield one.input_tokens.most() + prefix, one.output_tokens.most()


class PromptRows:
    """The rows of a file of prompts."""

    trace: Survey | None = None
    pool: int | None = None
    spare: int | None = None
    answers: Answers | None = None

    def __init__(self, workload: AnyRows, file: prompt_file.PromptFile) -> None:
        self._workload, self._file = workload, file
        self._lengths = Lengths()

    @property
    def classes(self) -> tuple[str, ...]:
        """See Source."""
        return self._file.classes

    def prompts(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        """See RequestSource."""
        spec, counter = reseeded(self._workload, batch.seed), rendering.tokenizer
        if spec.turns is not None:
            return prompt_file_requests.conversations(
                spec, counter, self._file, batch.places, batch.salt, batch.skip, batch.contexts
            )
        made = prompt_file_requests.generate(
            spec, counter, self._file, batch.count, batch.salt, batch.skip, batch.contexts
        )
        return placed(made, batch.places)

    def rows_before(self, measured: Callable[[], int]) -> int:
        """See RequestSource."""
        return measured()

    def sessions(
        self, seed: int, skip: int = 0, *, warmup: bool = False, contexts: Contexts | None = None
    ) -> Iterator[Session]:
        """See RequestSource."""
        del warmup
        spec = reseeded(self._workload, seed)
        if spec.turns is None:
            return repeat(ONE_TURN)
        return drawn(spec, prompt_file_requests.turns(spec, self._file, skip, contexts))

    def contexts(
        self, tokenizer: Tokenizer, count: int, salt: int, continued: Sequence[bool] = ()
    ) -> Contexts | None:
        """See RequestSource."""
        del tokenizer
        return prompt_file_requests.contexts(self._workload, self._file, count - sum(continued), salt)

    def limit(self, tokenizer: Tokenizer, room: Room) -> Room | None:
        """See Source."""
        close = prompt_file_requests.check_lengths(self._workload, tokenizer, self._file, room)
        return room if close or self._workload.turns is not None else None

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """See Source: any will do."""

    def counted(self, made: Iterable[Prompt]) -> Iterator[Prompt]:
        """See RequestSource."""
        self._lengths = Lengths()
        return self._lengths.of(made)

    def facts(self) -> SourceFacts:
        """See Source."""
        file = self._file
        about = PromptFile(
            file=file.name,
            format=file.format,
            sha256=file.sha256,
            bytes=file.size,
            rows=len(file),
            with_system_prompt=file.systems,
        )
        return SourceFacts(self.classes, prompts=self._lengths.facts(about))


class WorkloadRows:
    """The rows of a workload file, in the order in which they were made."""

    trace: Survey | None = None
    answers: Answers | None = None

    def __init__(self, made: Made) -> None:
        self._made, self._warmed = made, made.header.warmup > 0
        self._lengths = Lengths()

    @property
    def classes(self) -> tuple[str, ...]:
        """See Source."""
        return self._made.header.classes

    @property
    def pool(self) -> int:
        """See RequestSource."""
        return self._made.header.requests

    @property
    def spare(self) -> int:
        """See RequestSource: the rows of its warm-up; without one the measured rows, if nonces make them other prompts."""
        header = self._made.header
        return header.warmup or (0 if header.spec.repeatable_prompts else header.requests)

    def prompts(self, rendering: Rendering, batch: Batch) -> Iterator[Prompt]:
        """See RequestSource."""
        made = workload_file_source.generate(
            self._made, rendering.tokenizer, batch.count, batch.salt, warm=batch.warmup and self._warmed
        )
        return placed(made, batch.places)

    def rows_before(self, measured: Callable[[], int]) -> int:
        """See RequestSource: the warm-up has rows of its own."""
        del measured
        return 0

    def sessions(
        self, seed: int, skip: int = 0, *, warmup: bool = False, contexts: Contexts | None = None
    ) -> Iterator[Session]:
        """See RequestSource."""
        del seed, skip, contexts
        if self._made.header.spec.turns is None:
            return repeat(ONE_TURN)
        return workload_file_source.sessions(self._made, warm=warmup and self._warmed)

    def contexts(
        self, tokenizer: Tokenizer, count: int, salt: int, continued: Sequence[bool] = ()
    ) -> Contexts | None:
        """See RequestSource."""
        del tokenizer, count, salt, continued
        return None

    def limit(self, tokenizer: Tokenizer, room: Room) -> Room | None:
        """See Source: its rows are there, and quickly looked at."""
        del tokenizer
        return room

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """See Source."""
        workload_file_source.check_tokenizer(self._made, tokenizers.facts(tokenizer))

    def counted(self, made: Iterable[Prompt]) -> Iterator[Prompt]:
        """See RequestSource."""
        self._lengths = Lengths()
        return self._lengths.of(made)

    def facts(self) -> SourceFacts:
        """See Source."""
        made = self._made
        source = made.header.source.facts()
        return msgspec.structs.replace(
            source,
            prompts=None if source.prompts is None else self._lengths.facts(source.prompts),
            made=WorkloadFile(file=made.name, format=made.format, digest=made.header.digest),
        )


class TraceRows:
    """The rows of a trace."""

    classes: tuple[str, ...] = ()

    def __init__(self, trace: Trace, survey: Survey) -> None:
        self._trace = trace
        self.trace = survey

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """See Source: any will do."""

    def limit(self, tokenizer: Tokenizer, room: Room) -> Room | None:
        """See Source: all of them are looked at here."""
        check_trace(self._trace, self.trace, tokenizer, room)
        return None

    def facts(self) -> SourceFacts:
        """See Source: what is known of a trace stands elsewhere."""
        return SourceFacts(self.classes)


def placed(made: Iterator[Prompt], places: Sequence[Place]) -> Iterator[Prompt]:
    """Prompts at their places, where they have any."""
    return (replace(one, place=at) for one, at in zip(made, places, strict=True)) if places else made


AnySource: TypeAlias = RequestSource | TraceRows | agent_sessions.SessionRows
"""What a plan's requests come from."""


def sourced(plan: Plan, note: Callable[[str], None] = lambda _: None) -> tuple[Plan, AnySource]:
    """The plan with what its files decide: the hash of a file of prompts, all that a workload file says, a trace's format; and
    where its requests come from. Those files have been read through; `note` is told what takes time.

    Raises PlanError where a file or a dataset is unsound, or another than the plan's.
    """
    if plan.trace is not None:
        return _trace_rows(plan, plan.trace, note)
    workload = plan.workload
    if workload.file is not None:
        plan, made = workload_file_source.taken_over(plan)
        return plan, WorkloadRows(made)
    if isinstance(workload, AnyRows):
        return _prompt_rows(plan, workload)
    if isinstance(workload, SessionsWorkload):
        note("reading the sessions through")
        return agent_sessions.read(plan, workload)
    if isinstance(workload, MixtureWorkload):
        return plan, Mixture(workload)
    assert isinstance(workload, StandardWorkload | LengthsWorkload), "a plan that was checked"
    if isinstance(workload, StandardWorkload) and workload.content.text is not None:
        return plan, NaturalText(workload, chat=plan.target.interface.takes_messages)
    return plan, RandomTokens(workload)


def _trace_rows(plan: Plan, trace: Trace, note: Callable[[str], None]) -> tuple[Plan, TraceRows]:
    note("reading the trace through")
    survey = trace_survey(trace, plan.load.requests)
    settled = trace.model_copy(update={"format": survey.facts.format, "sha256": survey.facts.sha256})
    return plan.model_copy(update={"trace": settled}), TraceRows(settled, survey)


def rows_of(plan: Plan, workload: AnyRows) -> prompt_file.PromptFile:
    """The plan's file of prompts or tasks, read through. Raises PlanError."""
    path, chat = Path(workload.path).expanduser(), plan.target.interface.takes_messages
    needs_output = workload.output_tokens is None
    if isinstance(workload, TasksWorkload):
        kind = task_file.row_kind(commands=workload.task_commands)
        return prompt_file.survey(path, chat=chat, needs_output=needs_output, kind=kind)
    return prompt_file.survey(path, chat=chat, needs_output=needs_output)


def _prompt_rows(plan: Plan, workload: AnyRows) -> tuple[Plan, PromptRows]:
    found = rows_of(plan, workload)
    if workload.prompts_sha256 not in (None, found.sha256):
        message = (
            f"is another file than the plan's: its SHA-256 is {found.sha256}, not {workload.prompts_sha256}"
        )
        raise PlanError([Problem(f"{found.name} (workload.prompts_sha256)", message)])
    pinned = workload.model_copy(update={"prompts_sha256": found.sha256})
    return plan.model_copy(update={"workload": pinned}), PromptRows(pinned, found)
