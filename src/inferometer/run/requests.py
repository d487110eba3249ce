"""A plan's requests as bytes: drawn, written and hashed before they are due. What is sent is what was written here.

    plan -> workload -> engines (how a body is spelled) -> journal (requests.arrow)

All of a drawn workload is written before the load starts; of a trace what can be, the rest ahead of the clock (replay.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from inferometer.documents.run_facts import RequestFacts
from inferometer.journal import schedule as schedules
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.plan.arrivals import phase_instants
from inferometer.plan.schema import Load, Plan
from inferometer.run.replay import Ahead, Announce, Clock, Replayed, nobody
from inferometer.run.request_writer import (
    SEED_STEP,
    SEED_STEPS,
    RequestWriter,
    Served,
    lead_salt,
    probes,
    scheduled,
    warm_salt,
)
from inferometer.run.session_requests import SessionRequests
from inferometer.run.warmup import SPARE, Rows
from inferometer.workload import tokenizers
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.context_limit import Room
from inferometer.workload.nonces import NONCES
from inferometer.workload.prompts import Contexts, Fingerprint, Prompt
from inferometer.workload.request_statistics import Account
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.sources import AnySource, Batch, Rendering, RequestSource, TraceRows
from inferometer.workload.turn_schedule import Place, arranged

POOL_FACTOR = 4
POOL_FLOOR = 1000
"""A closed loop that ends by time alone gets this many prompts, or POOL_FACTOR a slot, and goes through them again."""
MOST_WARM = 1_000_000
"""Requests of a warm-up that are made; where its tokens need more, these are sent again."""


def requests_of(
    plan: Plan,
    source: AnySource,
    served: Served,
    tokenizer: tokenizers.Tokenizer,
    folder: RunFolder,
    salt: int,
    clock: Clock,
    limit: Room | None = None,
) -> RequestWriter:
    """What writes this plan's requests: all before the start, or those of a trace ahead of the `clock` (monotonic, ns).

    `limit`: what each drawn request has to have room in. All are then written at once, and the first without is a PlanError.
    """
    if isinstance(source, SessionRows):
        return SessionRequests(plan, source, served, tokenizer, folder, salt)
    if not isinstance(source, TraceRows):
        return Requests(plan, source, served, tokenizer, folder, salt, limit)

    def compose(salt: int) -> Composer:
        return Composer(plan.workload, tokenizer, salt, served.prompt_format)

    write = partial(scheduled, plan, served)
    probing = partial(probes, plan, served, tokenizer, salt)
    return Replayed(plan, source, folder, salt, compose, write, probing, clock)


def contexts_of(
    plan: Plan, source: RequestSource, tokenizer: tokenizers.Tokenizer, salt: int
) -> Contexts | None:
    """The prefixes that the measured requests share in a run with this salt, if its warm-up is to have them."""
    if not plan.load.warmup or not plan.load.warmup_prefixes:
        return None
    places = _places(plan, source, Phase.MEASURE)
    if places is None:
        count = len(_due(plan.load, plan.workload.seed, source.pool, warm=False))
        return source.contexts(tokenizer, count, salt % NONCES)
    return source.contexts(tokenizer, len(places), salt % NONCES, [place.turn > 0 for place in places])


def with_enough_warm_up(plan: Plan, source: RequestSource, contexts: Contexts | None) -> Plan:
    """The plan with as many requests of warm-up as are made: those asked for, or as many more as the tokens asked for may take
    by the lengths of answers, and as it takes to send every shared prefix once."""
    load, answers = plan.load, source.answers
    if source.pool is not None or not load.warmup:
        return plan
    tokens = 0
    if answers is not None:
        tokens = math.ceil((1 if answers.exact else SPARE) * load.warmup_tokens / answers.mean)
    turns = 1 if plan.workload.turns is None else plan.workload.turns.most()
    shared = 0 if contexts is None else len(contexts.cover) * turns
    warmup = max(load.warmup, min(MOST_WARM, max(tokens, shared)))
    return plan.model_copy(update={"load": load.model_copy(update={"warmup": warmup})})


class Requests:
    """Every request as bytes: first the warm-up's, then the measurement's behind them, its lead-in first.

    All are written before the load starts. Where one could be too long for the model (`limit`), all are written before
    anything else, and that one is a PlanError.
    """

    appended: int | None = None
    ahead: Ahead | None = None

    def __init__(
        self,
        plan: Plan,
        source: RequestSource,
        target: Served,
        tokenizer: tokenizers.Tokenizer,
        folder: RunFolder,
        salt: int,
        limit: Room | None = None,
    ) -> None:
        self.salt = salt
        self._limit = limit
        self.fingerprint: str | None = None
        spec = plan.workload
        self._account = Account(spec.published, repeatable=spec.repeatable_prompts)
        self.warm_rows = Rows(0, 0, indivisible=spec.turns is not None)
        self.rows = self.measured = 0
        self.warm, self.total = plan.load.warmup, plan.load.requests
        self._plan, self._target, self._tokenizer, self._folder = plan, target, tokenizer, folder
        self._source = source
        self._warm: list[schedules.Scheduled] = []
        if limit is not None:
            if plan.load.warmup:
                self._make_warm_up()
            self._write()

    def warm_up(self) -> None:
        """See RequestWriter."""
        if self.fingerprint is None:
            self._make_warm_up()
            schedules.write(self._folder.schedule, self._warm)

    def measurement(self, announce: Announce = nobody) -> None:
        """See RequestWriter: all of them."""
        del announce
        if self.fingerprint is None:
            self._write()

    def _make_warm_up(self) -> None:
        plan = self._plan
        contexts = contexts_of(plan, self._source, self._tokenizer, self.salt)
        enough = with_enough_warm_up(plan, self._source, contexts)
        self.warm = enough.load.warmup
        prompts, due = self._requests(enough, Phase.WARMUP, warm_salt(self.salt), contexts)
        shapes: list[Prompt] = []
        passing = _noted(self._account.before(prompts), shapes)
        self._warm = list(scheduled(plan, self._target, Phase.WARMUP, 0, passing, due))
        first = len(self._warm)
        self._warm += probes(plan, self._target, self._tokenizer, self.salt, shapes, first)
        self.rows = len(self._warm)
        self.warm_rows = replace(self.warm_rows, requests=first, probes=self.rows - first)

    def _lead_in(self) -> list[schedules.Scheduled]:
        plan = self._plan
        contexts = contexts_of(plan, self._source, self._tokenizer, self.salt)
        warmed = plan.model_copy(update={"load": plan.load.model_copy(update={"warmup": self.warm})})
        made, due = self._requests(warmed, Phase.LEAD, lead_salt(self.salt), contexts)
        prompts, count = list(made), len(due)
        if plan.workload.turns is None:
            count = plan.load.lead_in if prompts else 0
            slots = plan.load.concurrency or 1
            prompts = [_cut(prompts[at % len(prompts)], at, slots) for at in range(count)]
        first = len(self._warm)
        return list(scheduled(plan, self._target, Phase.LEAD, first, prompts, [None] * count))

    def _write(self) -> None:
        lead = self._lead_in() if self._plan.load.lead_in else []
        prompts, due = self._requests(self._plan, Phase.MEASURE, self.salt)
        first, self.measured = len(self._warm) + len(lead), len(due)
        self.rows = first + self.measured
        fingerprint = Fingerprint()
        passing = self._account.of(fingerprint.of(self._source.counted(prompts)))
        measured = scheduled(self._plan, self._target, Phase.MEASURE, first, passing, due)
        schedules.write(self._folder.schedule, chain(self._warm, lead, measured))
        self.fingerprint = str(fingerprint)

    def facts(self) -> RequestFacts:
        """See RequestWriter."""
        made = self.fingerprint is not None
        return RequestFacts(
            self.fingerprint,
            self._account.facts() if made else None,
            self._account.prefixes if made else None,
            self._source.facts(),
        )

    def _requests(
        self, plan: Plan, phase: Phase, salt: int, contexts: Contexts | None = None
    ) -> tuple[Iterator[Prompt], Sequence[int | None]]:
        target = self._target
        rendering = Rendering(self._tokenizer, target.prompt_format, target.template or 0)
        made, due = drawn(plan, self._source, rendering, phase, salt, contexts)
        if self._limit is not None:
            what = {Phase.WARMUP: "warm-up ", Phase.LEAD: "lead-in "}.get(phase, "")
            made = self._limit.checked(self._plan.workload, made, what)
        return made, due


def drawn(
    plan: Plan,
    source: RequestSource,
    rendering: Rendering,
    phase: Phase,
    salt: int,
    contexts: Contexts | None = None,
) -> tuple[Iterator[Prompt], Sequence[int | None]]:
    """The prompts of one phase, made as they are taken, and their due offsets (ns; None in closed loop). `contexts`: see
    Batch."""
    seed, warm = plan.workload.seed, phase is not Phase.MEASURE
    skip = 0
    for before in (Phase.MEASURE, Phase.WARMUP)[: SEED_STEPS[phase]]:
        skip += source.rows_before(partial(_rows_of_file, plan, source, before, skip))
    # Warm-up draws its own prompts; its arrivals are another stream of the same seed.
    own = seed + SEED_STEPS[phase] * SEED_STEP
    places = _places(plan, source, phase, own, skip, contexts)
    if places is not None:
        due: Sequence[int | None] = [one.due_ns for one in places]
    elif phase is Phase.LEAD:
        spare = source.spare
        due = [None] * (plan.load.lead_in if spare is None else min(spare, plan.load.lead_in))
    else:
        due = _due(plan.load, seed, source.pool, warm=warm)
    batch = Batch(len(due), salt % NONCES, own, warm, skip, places or (), contexts)
    return source.prompts(rendering, batch), due


def _cut(prompt: Prompt, at: int, slots: int) -> Prompt:
    """The `at`-th request of a lead-in. The first answers end one after the other, each slot's after another share of its
    length, as those do that are found under way in a loop that has long been running. Otherwise all slots start in step, and
    stay so where answers are alike. Two tokens at least, if as many are wanted: an answer of one is no stream."""
    least = min(2, prompt.output)
    return replace(prompt, output=max(least, prompt.output * (at + 1) // slots)) if at < slots else prompt


def _places(
    plan: Plan,
    source: RequestSource,
    phase: Phase,
    seed: int | None = None,
    skip: int = 0,
    contexts: Contexts | None = None,
) -> list[Place] | None:
    """Where the requests of a phase stand; None: each for itself. A lead-in has a conversation for each slot."""
    load, alone, warm = plan.load, plan.workload.turns is None, phase is not Phase.MEASURE
    if alone and load.model != "users":
        return None
    count = load.warmup if warm else load.requests
    if count is None and load.model == "closed":
        count = source.pool or _pool(load)
    sessions = source.sessions(
        plan.workload.seed if seed is None else seed, skip, warmup=warm, contexts=contexts
    )
    if phase is Phase.LEAD:
        count, sessions = source.spare, islice(sessions, load.concurrency)
    return arranged(load, plan.workload.seed, sessions, count, warm=warm, alone=alone)


def _rows_of_file(plan: Plan, source: RequestSource, phase: Phase, skip: int) -> int:
    """How many rows of a file of prompts a phase takes, those behind the first `skip`."""
    seed = plan.workload.seed
    places = _places(plan, source, phase, seed + SEED_STEPS[phase] * SEED_STEP, skip)
    if places is None:
        return len(_due(plan.load, seed, source.pool, warm=phase is Phase.WARMUP))
    return len(places) if plan.workload.turns is None else sum(place.turn == 0 for place in places)


def _due(load: Load, seed: int, pool: int | None, *, warm: bool) -> Sequence[int | None]:
    """When each request of a phase is due (ns from its start; None in closed loop, where nobody knows).

    `pool`: as many as there are for a closed loop that ends by time alone, if that is decided.
    """
    if load.model == "open":
        due: list[int | None] = phase_instants(load, seed, warmup=warm).tolist()
        return due
    if warm:
        return [None] * load.warmup
    return [None] * (load.requests or pool or _pool(load))


def _pool(load: Load) -> int:
    """Prompts of a closed loop that ends by time alone."""
    return max(POOL_FLOOR, POOL_FACTOR * (load.concurrency or 1))


def _noted(prompts: Iterable[Prompt], shapes: list[Prompt]) -> Iterator[Prompt]:
    """The prompts as they pass; of each is kept what it asks for, and no word."""
    for prompt in prompts:
        shapes.append(
            Prompt("", prompt.requested, 0, prompt.output, "", None, prompt.request_class, prompt.fields)
        )
        yield prompt
