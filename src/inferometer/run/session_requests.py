"""The requests of recorded sessions as bytes: the schedule and beside it `steps.arrow`, written before the load starts.

    sessions in the plan's order -> when each begins (arrivals, slots, users) -> bodies of its steps (engines) -> both files

The nonce of a run stands at the head of the first text of each step that goes on with none: what a server has kept of another
run is of no use to it, and what sessions of this one have in common remains so. A session that is sent again has another.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from typing import NamedTuple, Protocol

import msgspec

from inferometer.documents.run_facts import RequestFacts
from inferometer.engines import dialect as dialects
from inferometer.engines.dialect import messages_bytes, with_hole
from inferometer.journal import steps as step_files
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import in_columns
from inferometer.journal.schema import SCHEDULE, Phase
from inferometer.journal.steps import Both
from inferometer.plan.arrivals import phase_instants, user_instants
from inferometer.plan.schema import Load, Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.run.replay import Ahead, Announce, nobody
from inferometer.run.request_writer import (
    SEED_STEP,
    SEED_STEPS,
    Served,
    generation_of,
    lead_salt,
    probes,
    warm_salt,
)
from inferometer.run.warmup import Rows
from inferometer.units import NS_PER_MS, seconds_to_ns
from inferometer.workload import lengths
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.agent_sessions.stored_sessions import StoredSession, StoredStep
from inferometer.workload.nonces import NONCES, STRIDE
from inferometer.workload.prompts import Prompt
from inferometer.workload.tokenizers import Tokenizer

_OWN = ("user", "inferometer-own-messages-go-here")
_LINE_END = b"\\n"
_OUTPUT, _DELAY = (SCHEDULE.names.index(name) for name in ("output_tokens_asked", "think_ns"))


class Digest(Protocol):
    """One of hashlib's."""

    def update(self, data: bytes, /) -> None:
        """Take these bytes in."""


class Begin(NamedTuple):
    """When a session begins (ns from the phase's start; None: when a slot is free), whose it is, and how many of its steps are
    sent."""

    due_ns: int | None
    user: int | None
    steps: int


def begins(
    load: Load, seed: int, sizes: Iterator[int], requests: int | None, *, warm: bool
) -> Iterator[Begin]:
    """The sessions of a phase, as long as there are arrivals and steps: `requests` of those at most, so that the last session
    may be cut. None needs a load that ends by time."""
    starts: Iterator[tuple[int | None, int | None]] = repeat((None, None))
    if load.model == "open":
        starts = ((due, None) for due in phase_instants(load, seed, warmup=warm).tolist())
    elif load.model == "users":
        starts = _of_users(load, seed, warm=warm)
    left = requests
    for (due, user), size in zip(starts, sizes, strict=False):
        taken = size if left is None else min(size, left)
        yield Begin(due, user, taken)
        if left is not None:
            left -= taken
            if not left:
                return


def _of_users(load: Load, seed: int, *, warm: bool) -> Iterator[tuple[int, int]]:
    """The next session is that user's whose next instant comes first; with a duration, until there is none before its end."""
    assert load.users is not None, "a plan that was checked"
    end = seconds_to_ns(load.duration_s) if load.duration_s is not None and not warm else None
    instants = [user_instants(load, seed, user, stream=int(warm)) for user in range(load.users)]
    waiting = [(next(one), user) for user, one in enumerate(instants)]
    heapq.heapify(waiting)
    while end is None or waiting[0][0] < end:
        due, user = waiting[0]
        yield due, user
        heapq.heapreplace(waiting, (next(instants[user]), user))


@dataclass(slots=True)
class _Drawn:
    """What is drawn of a phase's steps, each by a stream of its own: delays in place of recorded ones, and answer lengths."""

    workload: SessionsWorkload
    delays: random.Random
    outputs: random.Random

    @classmethod
    def of(cls, workload: SessionsWorkload, seed: int) -> _Drawn:
        """The streams of a seed."""
        digest = hashlib.sha256(b"inferometer steps %d" % seed).digest()
        return cls(
            workload,
            random.Random(int.from_bytes(digest, "big")),  # noqa: S311 (a repeatable stream, not a secret one)
            random.Random(seed),  # noqa: S311
        )

    def delay(self, step: StoredStep) -> tuple[int, int]:
        """The time of tools before a step, and the rest of its delay, in ns."""
        tool, think, own = step.tool_ns, step.think_ns, self.workload
        if own.tool_ms is None and own.think_ms is None:
            return tool, think
        waits = bool(step.after)
        if own.tool_ms is not None:
            drawn = waits and step.adds_results
            tool = lengths.draw(own.tool_ms, self.delays) * NS_PER_MS if drawn else 0
        if own.think_ms is not None:
            drawn = waits and not step.adds_results
            think = lengths.draw(own.think_ms, self.delays) * NS_PER_MS if drawn else 0
        return tool, think

    def output(self, step: StoredStep) -> int:
        """The tokens that its answer is to have."""
        if step.output or self.workload.output_tokens is None:
            return step.output
        return lengths.draw(self.workload.output_tokens, self.outputs)


class SessionRequests:
    """See RequestWriter: all is written before the load starts."""

    appended: int | None = None
    ahead: Ahead | None = None

    def __init__(
        self,
        plan: Plan,
        source: SessionRows,
        target: Served,
        tokenizer: Tokenizer,
        folder: RunFolder,
        salt: int,
    ) -> None:
        self.salt = salt
        self._plan, self._source, self._target, self._folder = plan, source, target, folder
        self._tokenizer = tokenizer
        workload = plan.workload
        assert isinstance(workload, SessionsWorkload), "its source is"
        self._workload = workload
        self.warm, self.total = plan.load.warmup, plan.load.requests
        self.rows = self.measured = 0
        self.warm_rows = Rows(0, 0, indivisible=True)
        self._bodies = _Bodies(plan, target)
        self._fingerprint: str | None = None

    def warm_up(self) -> None:
        """See RequestWriter."""
        if self._fingerprint is None:
            self._write(self._warm())

    def measurement(self, announce: Announce = nobody) -> None:
        """See RequestWriter: all of them."""
        del announce
        if self._fingerprint is not None:
            return
        digest = hashlib.sha256()
        warm = self._warm() if self._plan.load.warmup else iter(())
        lead = self._phase(Phase.LEAD) if self._plan.load.lead_in else iter(())
        self._write(chain(warm, lead, self._phase(Phase.MEASURE, digest)))
        self._fingerprint = f"sha256:{digest.hexdigest()}"

    def facts(self) -> RequestFacts:
        """See RequestWriter. Lengths of prompts are not drawn, and what sessions share only their owner knows."""
        return RequestFacts(self._fingerprint, None, None, self._source.facts())

    def _write(self, sessions: Iterator[list[Both]]) -> None:
        self.rows = self.measured = 0
        rows = chain.from_iterable(sessions)
        step_files.write_both(self._folder.schedule, self._folder.steps, rows)

    def _warm(self) -> Iterator[list[Both]]:
        """The warm-up's requests, and its probes behind them."""
        shapes: list[Prompt] = []
        for session in self._phase(Phase.WARMUP):
            shapes += [Prompt("", 1, 0, int(str(one[_OUTPUT])), "") for one, _ in session]
            yield session
        first = len(shapes)
        probed = list(probes(self._plan, self._target, self._tokenizer, self.salt, shapes, first))
        self.rows += len(probed)
        self.warm_rows = replace(self.warm_rows, requests=first, probes=len(probed))
        yield [(in_columns(one), None) for one in probed]

    def _begins(self, phase: Phase, skip: int) -> Iterator[Begin]:
        load, warm = self._plan.load, phase is not Phase.MEASURE
        sizes = self._source.sizes(self._seed(phase), skip)
        if phase is Phase.LEAD:  # a session for each slot
            return (Begin(None, None, size) for size in islice(sizes, load.concurrency))
        count = load.warmup if warm else load.requests
        if count is None and load.model == "closed":
            count = self._source.pool
        return begins(load, self._plan.workload.seed, sizes, count, warm=warm)

    def _seed(self, phase: Phase) -> int:
        return self._plan.workload.seed + SEED_STEPS[phase] * SEED_STEP

    def _phase(self, phase: Phase, digest: Digest | None = None) -> Iterator[list[Both]]:
        """The steps of a phase, a session at a time. What is not measured goes on behind the sessions that are."""
        skip = 0
        for before in (Phase.MEASURE, Phase.WARMUP)[: SEED_STEPS[phase]]:
            skip += sum(1 for _ in self._begins(before, skip))
        salt = {Phase.WARMUP: warm_salt, Phase.LEAD: lead_salt}.get(phase, int)(self.salt)
        seed = self._seed(phase)
        drawn = _Drawn.of(self._workload, seed)
        sessions = self._source.sessions(seed, skip)
        taken = zip(self._begins(phase, skip), sessions, strict=False)
        for number, (begin, (session, times)) in enumerate(taken):
            nonce = b"%09d" % ((salt + times * STRIDE) % NONCES)
            rows = self._session(int(phase), number, session, begin, nonce, drawn)
            if digest is not None:
                self.measured += len(rows)
                _take_in(digest, session, rows)
            self.rows += len(rows)
            yield rows

    def _session(
        self, phase: int, number: int, session: StoredSession, begin: Begin, nonce: bytes, drawn: _Drawn
    ) -> list[Both]:
        """Its rows. There may be millions of steps, and each takes a while: a tuple for each is all that is made."""
        first, salted, around = self.rows, not self._workload.repeatable_prompts, self._bodies.around
        fields, steps, due, user, head = (
            session.fields,
            len(session.steps),
            begin.due_ns,
            begin.user,
            nonce + _LINE_END,
        )
        rows: list[Both] = []
        for at, step in enumerate(session.steps[: begin.steps]):
            output = drawn.output(step)
            tool, think = drawn.delay(step)
            own, mark = step.own, step.nonce_at
            systems = tuple(step.systems) if step.systems else ()
            before, behind = around(step.model, fields[step.fields], output, systems)
            own_at = nonce_at = len(before)
            nonce_len = 0
            if mark >= 0 and salted:
                own = own[:mark] + head + own[mark:]
                nonce_at, nonce_len = own_at + mark, len(nonce)
            else:
                nonce_at = -1
            row, extends = first + at, step.extends
            rows.append((
                (
                    row, phase, due, before + own + behind, nonce_at, nonce_len, 0, 0, output, None, 0, 0,
                    number, at, steps, tool + think, user, own_at, len(own), _reply(step), None,
                ),
                (
                    row, number, at, [first + one for one in step.after], first + extends if extends >= 0 else None,
                    tool, step.visible, step.name, step.agent,
                ),
            ))  # fmt: skip
            due = None
        return rows


def _take_in(digest: Digest, session: StoredSession, rows: list[Both]) -> None:
    """Take in all that a session says but its nonces."""
    steps = session.steps[: len(rows)]
    said = [part for step in steps for part in (step.own, step.reply or b"", session.fields[step.fields])]
    told = [
        (one[_OUTPUT], one[_DELAY], step.extends, step.after)
        for (one, _), step in zip(rows, steps, strict=True)
    ]
    digest.update(b"".join(said) + msgspec.json.encode(told))


def _reply(step: StoredStep) -> bytes | None:
    """As the schedule has it."""
    if step.reply is None or step.hole < 0:
        return step.reply
    return with_hole(step.reply[: step.hole], step.reply[step.hole :])


class _Bodies:
    """What stands around a step's own messages in its body."""

    def __init__(self, plan: Plan, target: Served) -> None:
        self._plan, self._target = plan, target
        self._dialect = dialects.load(plan.target.api, plan.target.form)
        self.around = functools.lru_cache(maxsize=4096)(self._around)

    def _around(
        self, model: str | None, fields: bytes, output: int, systems: tuple[tuple[str, str], ...]
    ) -> tuple[bytes, bytes]:
        target = self._target
        request = replace(
            generation_of(
                self._plan, model or target.model, _OWN[1], output, msgspec.json.decode(fields, type=dict)
            ),
            stream=self._plan.target.stream,
            length_field=target.length_field,
            messages=(*systems, _OWN),
        )
        body = self._dialect.body(request)
        before, found, behind = body.rpartition(messages_bytes([_OWN]))
        assert found, "a body has its messages"
        return before, behind
