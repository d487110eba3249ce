"""A plan's requests as bytes: drawn, written and hashed before they are due. What is sent is what was written here.

    plan -> workload -> engines (how a body is spelled) -> journal (requests.arrow)

All of a drawn workload is written before the load starts; of a trace what can be, the rest ahead of the clock (replay.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Literal, Protocol

from inferometer.documents.run_facts import RequestFacts
from inferometer.drive.probe import GREETING, GREETING_ID
from inferometer.engines import dialect as dialects
from inferometer.engines.dialect import (
    Dialect,
    GenerationRequest,
    Messages,
    is_system,
    messages_bytes,
)
from inferometer.engines.interface import JsonObject
from inferometer.journal import schedule as schedules
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.plan.arrivals import phase_instants
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Load, Plan
from inferometer.plan.workload import LengthsWorkload
from inferometer.run.replay import Ahead, Announce, Clock, Replayed, nobody
from inferometer.run.warmup import SPARE, Rows
from inferometer.workload import tokenizers
from inferometer.workload.context_limit import Room
from inferometer.workload.nonces import NONCES
from inferometer.workload.prompts import Contexts, Fingerprint, Prompt, generate
from inferometer.workload.request_statistics import Account
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.sources import Batch, Rendering, RequestSource, TraceRows
from inferometer.workload.turn_schedule import Place, arranged

PromptFormat = Literal["ids", "text"]

POOL_FACTOR = 4
POOL_FLOOR = 1000
"""A closed loop that ends by time alone gets this many prompts, or POOL_FACTOR a slot, and goes through them again."""
SEED_STEP = 1_000_003
"""Warm-up and lead-in draw their own prompts, so that the measured ones are the reference stream from its first on."""
SEED_STEPS = {Phase.MEASURE: 0, Phase.WARMUP: 1, Phase.LEAD: 2}
MOST_WARM = 1_000_000
"""Requests of a warm-up that are made; where its tokens need more, these are sent again."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a server serves, and how it wants to be asked."""

    model: str
    models: list[str]
    server: str | None
    prompt_format: PromptFormat
    length_field: str
    template: int | None = None
    """Tokens the server puts around a text, where lengths asked for include them and the probe learned how many."""
    greeting: int | None = field(default=None, kw_only=True)
    """Tokens the server counted in the probe's greeting, its chat template included; None: not known."""
    room: Room | None = field(default=None, kw_only=True)
    """What the model takes, prompt and answer together; None: not known."""
    answered_as: str | None = field(default=None, kw_only=True)
    """The model that the server said answered, where that is another name than `model`."""


class RequestWriter(Protocol):
    """The requests of a plan as bytes on disk: the warm-up's, then behind them the measurement's.

    `rows` are written so far. The warm-up has `warm` requests, the measurement `measured`, or `total` as far as that is known
    beforehand. `appended`: the row with which a measurement begins that is written while it runs;
    None: it is written before.
    """

    salt: int
    rows: int
    measured: int
    warm: int
    total: int | None
    warm_rows: Rows

    @property
    def appended(self) -> int | None:
        """See above."""

    @property
    def ahead(self) -> Ahead | None:
        """What writes on while the load runs; None: all is written before."""

    def warm_up(self) -> None:
        """Write the warm-up's requests, unless they are."""

    def measurement(self, announce: Announce = ...) -> None:
        """Write the measurement's requests, unless they are, or as many as it takes for it to begin."""

    def facts(self) -> RequestFacts:
        """What is known of the requests so far."""


def requests_of(
    plan: Plan,
    source: RequestSource | TraceRows,
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
    if not isinstance(source, TraceRows):
        return Requests(plan, source, served, tokenizer, folder, salt, limit)

    def compose(salt: int) -> Composer:
        return Composer(plan.workload, tokenizer, salt, served.prompt_format)

    probes = partial(_probes, plan, served, tokenizer, salt)
    return Replayed(plan, source, folder, salt, compose, partial(_scheduled, plan, served), probes, clock)


def warm_salt(salt: int) -> int:
    """Half-way round, so that no nonce of the warm-up begins like one of the measurement."""
    return (salt + NONCES // 2) % NONCES


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


def probe_salt(salt: int) -> int:
    """A quarter round on, for the same reason."""
    return (salt + NONCES // 4) % NONCES


def lead_salt(salt: int) -> int:
    """Three quarters round, for the same reason."""
    return (salt + 3 * (NONCES // 4)) % NONCES


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
        self._warm = list(_scheduled(plan, self._target, Phase.WARMUP, 0, passing, due))
        first = len(self._warm)
        self._warm += _probes(plan, self._target, self._tokenizer, self.salt, shapes, first)
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
        return list(_scheduled(plan, self._target, Phase.LEAD, first, prompts, [None] * count))

    def _write(self) -> None:
        lead = self._lead_in() if self._plan.load.lead_in else []
        prompts, due = self._requests(self._plan, Phase.MEASURE, self.salt)
        first, self.measured = len(self._warm) + len(lead), len(due)
        self.rows = first + self.measured
        fingerprint = Fingerprint()
        passing = self._account.of(fingerprint.of(self._source.counted(prompts)))
        measured = _scheduled(self._plan, self._target, Phase.MEASURE, first, passing, due)
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


def _probes(
    plan: Plan,
    target: Served,
    tokenizer: tokenizers.Tokenizer,
    salt: int,
    warm: Sequence[Prompt],
    first: int,
) -> Iterator[schedules.Scheduled]:
    """The probes of a warm-up, from row `first` on: one before it and the most there may be behind it. Each asks for what the
    middle one of its requests by length asks for, in random words, with a nonce that no other request has."""
    if not plan.load.warmup_probes or not warm:
        return
    middle = sorted(warm, key=lambda one: one.requested + one.output)[(len(warm) - 1) // 2]
    spec = LengthsWorkload(
        input_tokens=fixed(max(1, middle.requested)),
        output_tokens=fixed(max(1, middle.output)),
        seed=plan.workload.seed,
    )
    made = generate(
        spec,
        tokenizer,
        1 + plan.load.warmup_probes,
        probe_salt(salt),
        target.prompt_format,
        target.template or 0,
    )
    alike = (replace(one, request_class=middle.request_class, fields=middle.fields) for one in made)
    yield from _scheduled(plan, target, Phase.PROBE, first, alike, [0] * (1 + plan.load.warmup_probes))


def _scheduled(
    plan: Plan,
    target: Served,
    phase: Phase,
    first: int,
    prompts: Iterable[Prompt],
    due: Iterable[int | None],
) -> Iterator[schedules.Scheduled]:
    dialect = dialects.load(plan.target.api, plan.target.form)
    systems = _Systems(dialect)
    for row, (prompt, due_ns) in enumerate(zip(prompts, due, strict=True), first):
        request = replace(
            generation_of(plan, target.model, prompt.content, prompt.output, prompt.fields),
            stream=plan.target.stream,
            length_field=target.length_field,
            messages=systems.repeated(prompt),
            ident=str(row),
        )
        spelled = dialect.ids_nonce if isinstance(prompt.content, list) else str.encode
        body, nonce = dialect.body(request), spelled(prompt.nonce) if prompt.nonce else b""
        alone = schedules.Scheduled(
            row, int(phase), due_ns, body, body.find(nonce) if nonce else -1, len(nonce),
            prompt.requested, prompt.sent, prompt.output, prompt.request_class, prompt.shared,
        )  # fmt: skip
        yield alone if prompt.place is None else _placed(alone, prompt, prompt.place, dialect)


class _Systems:
    """The system prompts of the conversation that the rows are in: each turn's body has them where they are no messages."""

    def __init__(self, dialect: Dialect) -> None:
        self._apart = dialect.system_apart
        self._session: int | None = None
        self._messages: list[tuple[str, str]] = []

    def repeated(self, prompt: Prompt) -> Messages | None:
        """The prompt's messages, with the system prompts of the turns before it. A session's rows stand together."""
        place, messages = prompt.place, prompt.messages
        if not self._apart or messages is None or place is None or place.session is None:
            return messages
        if place.session != self._session or not place.turn:
            self._session, self._messages = place.session, []
        before = list(self._messages)
        self._messages += [one for one in messages if is_system(one[0])]
        return [*before, *messages]


def _placed(
    alone: schedules.Scheduled, prompt: Prompt, place: Place, dialect: Dialect
) -> schedules.Scheduled:
    """A request as the schedule has it that has a place among others."""
    if place.session is None or prompt.messages is None:
        return replace(alone, user=place.user)
    apart = dialect.system_apart
    own = messages_bytes(prompt.messages, system_apart=apart)
    return replace(
        alone,
        input_tokens_repeated=prompt.repeated,
        session=place.session,
        turn=place.turn,
        turns=place.turns,
        think_ns=place.think_ns,
        user=place.user,
        own_at=alone.body.index(own),
        own_len=len(own),
        reply=None if prompt.reply is None else messages_bytes(prompt.reply, system_apart=apart),
    )


def greeting_of(plan: Plan, model: str, fields: JsonObject | None = None) -> GenerationRequest:
    """The short request that shows how the server answers this plan's; `fields`: one class's own."""
    greeting = GREETING if plan.target.interface.takes_text else [GREETING_ID]
    return generation_of(plan, model, greeting, 1, fields)


def generation_of(
    plan: Plan,
    model: str,
    prompt: str | list[int],
    tokens: int,
    fields: JsonObject | None = None,
    messages: Messages | None = None,
) -> GenerationRequest:
    """A whole answer of so many tokens, as the plan wants all of them; `fields`: one class's own; `messages`: in place of the
    prompt."""
    return GenerationRequest(
        model,
        prompt,
        tokens,
        stream=False,
        temperature=plan.workload.temperature,
        ignore_eos=plan.workload.ignore_eos,
        min_tokens=plan.workload.min_tokens,
        extra={**plan.target.extra_body, **fields} if fields else plan.target.extra_body,
        messages=messages,
    )
