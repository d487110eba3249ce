"""A compound system in virtual time, in an engine's place: a request goes in, tokens of its answer come out later. Pure.

To its caller it is an engine (engine/engine.py) with slower answers. Inside, each request is a task: its script (scripts.py)
yields steps; calls of the model are submitted to the engine, all other steps wait for their time; when all that run together
have ended the script goes on, at the instant at which the last of them ended. Only the answering call's tokens come out. The
last of them comes when the script has ended, so that an output guardrail delays it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

from inferometer.server.engine.blocks import chain
from inferometer.server.engine.emission import GOES_ON, LENGTH, REFUSED, Emission, K, Tokens
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.preemption import Preempted
from inferometer.server.systems.scripts import SCRIPTS, shipped_index
from inferometer.server.systems.settings import SystemSettings
from inferometer.server.systems.steps import Refused, Results, Script, Step, StepKind
from inferometer.server.systems.task import StepRecord, Task, Trace, identity, pieces_of
from inferometer.units import NS_PER_S, Ns

FAILED = 3
"""How a request stands, beside those of engine/emission.py: a step failed, and no token follows."""


@dataclass(eq=False, slots=True)
class _Running(Generic[K]):
    """A task under way. `open`: steps that run; `results` of those that ran with them; `held`: the last token has come out of
    the engine, and waits."""

    key: K
    task: Task
    script: Script
    random: random.Random
    priority: int
    emitted: int = 0
    held: int = 0
    open: dict[int, _Call[K]] = field(default_factory=dict)
    results: list[str | None] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Call(Generic[K]):
    """A step under way: what the engine knows a call of the model by. `place` among those that run together."""

    running: _Running[K]
    record: StepRecord
    place: int


class Compound(Generic[K]):
    """The system `name`. `task_of`: the task that a key of the caller stands for; `ended` is told each task that has ended."""

    def __init__(
        self,
        name: str,
        engine: Engine[_Call[K]],
        settings: SystemSettings,
        seed: int,
        task_of: Callable[[K], Task],
        ended: Callable[[Task], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.engine = engine
        self._settings = settings
        self._seed = seed
        self._index = shipped_index()
        self._task_of = task_of
        self._ended = ended
        self._number = 0
        self._running: dict[int, _Running[K]] = {}
        self._timers: list[
            tuple[int, int, _Call[K]]
        ] = []  # a heap: when a step that is no call of the model ends
        self._timer = 0
        self._last_answer: str | None = None

    @property
    def settings(self) -> SystemSettings:
        """Those of tasks that arrive from now on: one under way keeps those that it began with."""
        return self._settings

    def change(self, settings: SystemSettings) -> None:
        """Take on other settings."""
        self._settings = settings

    # What an engine says of itself; requests are calls of the model, but for `running`.

    @property
    def now(self) -> int:
        """The earliest instant at which something may be told to have happened."""
        return self.engine.now

    @property
    def crowd(self) -> int:
        """About how many requests have tokens in what comes out next."""
        return self.engine.crowd

    @property
    def running(self) -> int:
        """Tasks under way."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Calls of the model that wait in the engine's queue."""
        return self.engine.waiting

    @property
    def kv_usage(self) -> float:
        """The engine's."""
        return self.engine.kv_usage

    @property
    def prefix_queries(self) -> int:
        """The engine's."""
        return self.engine.prefix_queries

    @property
    def prefix_hits(self) -> int:
        """The engine's."""
        return self.engine.prefix_hits

    @property
    def preemptions(self) -> int:
        """The engine's."""
        return self.engine.preemptions

    @property
    def preempted(self) -> Preempted:
        """The engine's."""
        return self.engine.preempted

    # Requests.

    def submit(
        self,
        key: K,
        prompt_tokens: int,  # noqa: ARG002 - each call of the model counts its own
        max_tokens: int,  # noqa: ARG002 - the question has it
        now: int,
        *,
        hashes: object = (),  # noqa: ARG002 - likewise
        priority: int = 0,
    ) -> bool:
        """A request arrives; always True. A call that the engine's queue has no room for fails, and its task with it."""
        task, settings = self._task_of(key), self._settings
        drawn = random.Random(f"{self._seed}-{self._number}")  # noqa: S311 - a simulation, not a secret
        self._number += 1
        task.began_ns = now
        own = Trace(identity(drawn, 32))  # drawn in any case: what a task meets does not depend on its trace
        task.trace = task.trace or own
        task.span_id = identity(drawn, 16)
        task.false_usage = drawn.random() < settings.false_usage
        if drawn.random() < settings.wrong_answer and self._last_answer is not None:
            task.faults.append("wrong_answer")
        if task.false_usage:
            task.faults.append("false_usage")
        script = SCRIPTS[self.name](
            task.question, settings, self._index, lambda: task.steps[-1].ended_ns / NS_PER_S
        )
        running = _Running(key, task, script, drawn, priority)
        self._running[id(key)] = running
        # Nobody is told anything yet: at the earliest, a task that ends at once ends when it is next asked for.
        self._begin(running, next(script), now)
        return True

    def cancel(self, key: K, now: int) -> bool:
        """The client is gone: its steps are given up. False if it had ended already."""
        running = self._running.pop(id(key), None)
        if running is None:
            return False
        at = max(now, self.engine.now)
        running.script.close()
        self._give_up(running, at)
        self._close(running, at, "cancelled")
        return True

    def next_due(self) -> Ns | None:
        """When something is due next; None while there is nothing to do."""
        due = self.engine.next_due()
        if self._timers and (due is None or self._timers[0][0] < due):
            return Ns(self._timers[0][0])
        return due

    def advance(self, now: int) -> Emission[K] | None:
        """What came out of the earliest event due by `now`; see Engine.advance."""
        due = self.engine.next_due()
        if self._timers and (due is None or self._timers[0][0] < due):
            if self._timers[0][0] > now:
                return None
            at, _, call = heapq.heappop(self._timers)
            out: list[Tokens[K]] = []
            if self._is_open(call):
                self._end_step(call, at, call.record.step.result, out)
            return Emission(Ns(at), out)
        emission = self.engine.advance(now)
        return None if emission is None else self._translated(emission)

    def _translated(self, emission: Emission[_Call[K]]) -> Emission[K]:
        """What of an engine's emission is of answers; the steps that it ends go on."""
        out: list[Tokens[K]] = []
        at = int(emission.at)
        for call, cached in emission.cached:
            call.record.cached_tokens = cached
        for call, _, count, end in emission.tokens:
            record, running = call.record, call.running
            if not self._is_open(call):
                continue
            record.completion_tokens += count
            if record.first_token_ns is None:
                record.first_token_ns = at
            if record.step.answer is not None:
                shown = count - bool(end)
                if shown:
                    out.append((running.key, running.emitted, shown, GOES_ON))
                    running.emitted += shown
                running.held += bool(end)
            if end:
                self._end_step(call, at, "", out)
        return Emission(emission.at, out)

    # Steps.

    def _is_open(self, call: _Call[K]) -> bool:
        running = call.running
        return self._running.get(id(running.key)) is running and running.open.get(call.place) is call

    def _begin(self, running: _Running[K], steps: tuple[Step, ...], at: int) -> None:
        """Steps that run together begin. A tool that is dropped takes no time: where all are, the first takes none, unseen."""
        running.results = [None] * len(steps)
        kept = [
            (place, step)
            for place, step in enumerate(steps)
            if step.kind is not StepKind.TOOL or not running.random.random() < self._settings.drop_tool
        ]
        if len(kept) < len(steps):
            running.task.faults.append("drop_tool")
        for place, step in kept:
            record = StepRecord(step, len(running.task.steps), identity(running.random, 16), at)
            running.task.steps.append(record)
            self._start(_Call(running, record, place), at)
        if not kept:
            nothing = StepRecord(Step(StepKind.TOOL, "dropped"), -1, "", at)
            self._wait(_Call(running, nothing, 0), at)

    def _start(self, call: _Call[K], at: int) -> None:
        step, record, running = call.record.step, call.record, call.running
        settings = self._settings
        if step.answer is None and running.random.random() < settings.step_fails:
            record.fault, record.error = "step_fails", "the step failed, as it was told to"
        if step.kind is not StepKind.LLM:
            slow = step.kind is StepKind.TOOL and running.random.random() < settings.slow_tool
            if slow:
                record.fault = record.fault or "slow_tool"
            self._wait(call, at + step.delay_ns + round(settings.slow_tool_by_ns if slow else 0))
            return
        task, encode = running.task, running.task.encode
        ids = encode(step.prompt)
        record.prompt_tokens = len(ids)
        if step.answer is not None:
            said = step.answer
            if "wrong_answer" in task.faults:
                said = self._last_answer or said
            self._last_answer = step.answer
            task.pieces = pieces_of(said, step.output_tokens, encode)
        hashes = chain(ids, self.engine.settings.block_tokens)
        begin = max(at, self.engine.now)
        try:
            taken = self.engine.submit(
                call, len(ids), step.output_tokens, begin, hashes=hashes, priority=running.priority
            )
        except ValueError as error:
            taken, record.error = False, f"the model cannot take the call: {error}"
        running.open[call.place] = call
        if not taken:
            record.error = record.error or "the engine's queue is full"
            self._wait(call, begin)

    def _wait(self, call: _Call[K], until: int) -> None:
        call.running.open[call.place] = call
        self._timer += 1
        heapq.heappush(self._timers, (until, self._timer, call))

    def _end_step(self, call: _Call[K], at: int, result: str, out: list[Tokens[K]]) -> None:
        """A step has ended: the script goes on if no other of those that run together is open."""
        running, record = call.running, call.record
        record.ended_ns = at
        del running.open[call.place]
        if record.error is not None:
            self._give_up(running, at)
            running.script.close()
            self._finish(running, at, "failed", out)
            return
        if record.number >= 0:
            running.results[call.place] = result
        if not running.open:
            self._go_on(running, running.results, at, out)

    def _go_on(self, running: _Running[K], results: Results, at: int, out: list[Tokens[K]]) -> None:
        try:
            steps = running.script.send(results)
        except StopIteration:
            self._finish(running, at, "finished", out)
        except Refused as refused:
            task = running.task
            count = len(task.encode(str(refused)))
            task.pieces = pieces_of(str(refused), min(count, task.question.max_tokens), task.encode)
            self._finish(running, at, "refused", out)
        else:
            self._begin(running, steps, at)

    def _give_up(self, running: _Running[K], at: int) -> None:
        """What runs beside a step that failed, or of a task whose client is gone, is cancelled."""
        for call in running.open.values():
            record = call.record
            record.ended_ns = at
            record.error = record.error or "cancelled"
            if record.step.kind is StepKind.LLM:
                self.engine.cancel(call, max(at, self.engine.now))
        running.open.clear()

    def _finish(self, running: _Running[K], at: int, outcome: str, out: list[Tokens[K]]) -> None:
        del self._running[id(running.key)]
        self._close(running, at, outcome)
        if outcome == "failed":
            out.append((running.key, running.emitted, 0, FAILED))
        elif outcome == "refused":
            out.append((running.key, 0, len(running.task.pieces), REFUSED))
        else:
            out.append((running.key, running.emitted, running.held, LENGTH))

    def _close(self, running: _Running[K], at: int, outcome: str) -> None:
        running.task.outcome, running.task.ended_ns = outcome, at
        self._ended(running.task)
