"""A plan's recorded sessions: read through once, and then given out in the plan's order, as often as wanted."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.documents.workload import SessionFile, SourceFacts
from inferometer.errors import PlanError, Problem
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.workload.agent_sessions.readers import reader_of
from inferometer.workload.agent_sessions.recorded_lines import refusal, unreadable
from inferometer.workload.agent_sessions.session import AgentSession
from inferometer.workload.agent_sessions.step_room import check_room
from inferometer.workload.agent_sessions.stored_sessions import (
    Encoding,
    SessionStore,
    StoredSession,
    Unsendable,
)

if TYPE_CHECKING:
    from inferometer.plan.schema import Plan
    from inferometer.workload.context_limit import Room
    from inferometer.workload.tokenizers import Tokenizer


class SessionRows:
    """See Source: the sessions of a file. `answers`: see RequestSource."""

    trace: None = None
    answers: None = None
    classes: tuple[str, ...] = ()

    def __init__(
        self, workload: SessionsWorkload, store: SessionStore, about: SessionFile, most: int | None = None
    ) -> None:
        """`most`: steps that are sent before and in the measurement; None: not known."""
        self._workload, self._store, self._about, self._most = workload, store, about, most

    @property
    def pool(self) -> int:
        """The steps of all sessions: what a load sends whose end the plan does not name."""
        return self._about.steps

    def sizes(self, seed: int, skip: int = 0) -> Iterator[int]:
        """How many steps each session has, without end, in the order in which they are taken."""
        return (self._store.steps[number] for number in self._numbers(seed, skip))

    def sessions(self, seed: int, skip: int = 0) -> Iterator[tuple[StoredSession, int]]:
        """The sessions in that order, without end, and of each how often it was taken before."""
        taken = array("i", bytes(4 * len(self._store)))
        for number in self._numbers(seed, skip):
            yield self._store.session(number), taken[number]
            taken[number] += 1

    def _numbers(self, seed: int, skip: int) -> Iterator[int]:
        """As rows of a file of prompts are taken (workload/prompt_file_requests.py). `skip`: sessions that the file's order
        begins behind."""
        rng = random.Random(seed)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)
        count = len(self._store)
        if self._workload.order == "sampled":
            while True:
                yield rng.randrange(count)
        order = list(range(count))
        if self._workload.order == "file":
            yield from islice(order, skip % count, None)
        while True:
            if self._workload.order == "shuffled":
                rng.shuffle(order)
            yield from order

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """See Source: any will do."""

    def limit(self, tokenizer: Tokenizer, room: Room) -> Room | None:
        """See Source: the longest steps are looked at here."""
        check_room(self._store, self._sent(), self._about.file, tokenizer, room)
        return None

    def _sent(self) -> Sequence[int]:
        """The sessions that are sent whole, where the file's order and a number of requests say so; else all."""
        every = range(len(self._store))
        most = self._most
        if self._workload.order != "file" or most is None:
            return every
        ends = accumulate(self._store.steps)
        return every[: sum(1 for _ in takewhile(lambda end: end <= most, ends))]

    def facts(self) -> SourceFacts:
        """See Source."""
        return SourceFacts(self.classes, sessions=self._about)


def read(plan: Plan, workload: SessionsWorkload) -> tuple[Plan, SessionRows]:
    """A plan's sessions, all of them read and validated; the plan with its file's hash and format, and as many requests as the
    file has steps where it names no end. Raises PlanError."""
    path = Path(workload.sessions).expanduser()
    reader = reader_of(path, workload.sessions_format)
    sha256, size = _digest(path)
    if workload.sessions_sha256 not in (None, sha256):
        message = f"is another file than the plan's: its SHA-256 is {sha256}, not {workload.sessions_sha256}"
        raise PlanError([Problem(f"{path.name} (workload.sessions_sha256)", message)])
    interface = plan.target.interface
    encoding = Encoding(
        server=workload.replies == "server",
        plain=not interface.takes_tools,
        system_apart=interface.system_apart,
    )
    store, counts = SessionStore(), Counter[str]()
    for session in reader.sessions(path):
        if workload.output_tokens is None:
            _check_output(path, session)
        try:
            stored = encoding.stored(session)
        except Unsendable as cause:
            raise refusal(path, session.line, f"steps[{cause.step}].{cause.field}", str(cause)) from None
        store.add(stored)
        _count(counts, session, stored)
    if not len(store):
        raise PlanError([Problem(path.name, "holds no session")])
    about = SessionFile(
        file=path.name, format=reader.name, sha256=sha256, bytes=size, sessions=len(store),
        steps=counts["steps"], branching=counts["branching"], with_tools=counts["tools"], images=counts["images"],
        without_reply=counts["unanswered"],
    )  # fmt: skip
    pinned = workload.model_copy(update={"sessions_sha256": sha256, "sessions_format": reader.name})
    load = plan.load
    if "requests" not in load.model_fields_set and load.duration_s is None:
        kept = {key: getattr(load, key) for key in load.model_fields_set}
        load = type(load).model_validate(kept | {"requests": about.steps})
    most = None if load.requests is None or load.duration_s is not None else load.requests + load.warmup
    return plan.model_copy(update={"workload": pinned, "load": load}), SessionRows(pinned, store, about, most)


def _check_output(path: Path, session: AgentSession) -> None:
    for number, step in enumerate(session.steps):
        if step.output_tokens is None:
            raise refusal(
                path,
                session.line,
                f"steps[{number}].output_tokens",
                "is missing: record it, or give one for all such steps with --output-tokens",
            )


def _count(counts: Counter[str], session: AgentSession, stored: StoredSession) -> None:
    """What a report says of a file's sessions. `stored`: as it is sent, where an image is found sooner."""
    tools = unanswered = 0
    branching = False
    for number, step in enumerate(session.steps):
        if not branching:
            branching = step.after != ((number - 1,) if number else ())
        if step.reply is None:
            unanswered += 1
        elif step.reply.get("tool_calls"):
            tools += 1
        if b'"image_url"' in stored.steps[number].own:
            counts["images"] += sum(
                _images(content) for one in step.messages if isinstance(content := one.get("content"), list)
            )
    counts["steps"] += len(session.steps)
    counts["branching"] += branching
    counts["tools"] += tools
    counts["unanswered"] += unanswered


def _images(parts: Sequence[object]) -> int:
    return sum(isinstance(part, dict) and part.get("type") == "image_url" for part in parts)


def _digest(path: Path) -> tuple[str, int]:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return digest, file.tell()
    except OSError as cause:
        raise unreadable(path, cause) from cause
