"""What writers of a plan's requests have in common: what they know of the server, how a request is spelled, and what they
offer a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from inferometer.journal.schema import Phase
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Plan
from inferometer.plan.workload import LengthsWorkload
from inferometer.run.replay import Ahead, Announce
from inferometer.run.warmup import Rows
from inferometer.units import seconds_to_ns
from inferometer.workload import tokenizers
from inferometer.workload.context_limit import Room
from inferometer.workload.nonces import NONCES
from inferometer.workload.prompts import Prompt, generate
from inferometer.workload.turn_schedule import Place

PromptFormat = Literal["ids", "text"]
SEED_STEP = 1_000_003
"""Warm-up and lead-in draw their own prompts, so that the measured ones are the reference stream from its first on."""
SEED_STEPS = {Phase.MEASURE: 0, Phase.WARMUP: 1, Phase.LEAD: 2}


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


def warm_salt(salt: int) -> int:
    """Half-way round, so that no nonce of the warm-up begins like one of the measurement."""
    return (salt + NONCES // 2) % NONCES


def probe_salt(salt: int) -> int:
    """A quarter round on, for the same reason."""
    return (salt + NONCES // 4) % NONCES


def lead_salt(salt: int) -> int:
    """Three quarters round, for the same reason."""
    return (salt + 3 * (NONCES // 4)) % NONCES


def probes(
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
    yield from scheduled(plan, target, Phase.PROBE, first, alike, [0] * (1 + plan.load.warmup_probes))


def scheduled(
    plan: Plan,
    target: Served,
    phase: Phase,
    first: int,
    prompts: Iterable[Prompt],
    due: Iterable[int | None],
) -> Iterator[schedules.Scheduled]:
    """Prompts of a phase as the schedule has them, from row `first` on."""
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
            timeout_ns=None if prompt.timeout_s is None else seconds_to_ns(prompt.timeout_s),
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
