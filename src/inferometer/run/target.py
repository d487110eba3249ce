"""The server under test: found, probed, and described as far as a run needs to talk to it."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from ipaddress import ip_address

from inferometer.client.trust import H2, HTTP1, context
from inferometer.drive import probe as probing
from inferometer.drive.channel import RequestHead
from inferometer.drive.channel_kinds import Protocol, protocol_of
from inferometer.drive.credentials import headers, merged
from inferometer.drive.exchange import DECODERS
from inferometer.drive.grpc_probe import GrpcProbe, grpc_fields
from inferometer.engines import dialect as dialects
from inferometer.errors import PeerError, PlanError, Problem
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import Redactor
from inferometer.measure.lengths import TEMPLATE_TOKENS
from inferometer.plan.schema import AUTO_TOKENIZER, SERVER_TOKENIZER, Plan
from inferometer.plan.workload import LengthsWorkload, StandardWorkload
from inferometer.run import own_tokens
from inferometer.run.facts import with_known_sut
from inferometer.run.request_writer import PromptFormat, Served, generation_of, greeting_of
from inferometer.run.scraping import secrets_of_run
from inferometer.server.embedded import Embedded
from inferometer.telemetry.processes import listening, process_of_port
from inferometer.workload import tokenizers
from inferometer.workload.context_limit import Room
from inferometer.workload.sources import Source
from inferometer.workload.tokenizer_learned import Learned
from inferometer.workload.tokenizer_none import AsIds

MOST_MODELS, LONGEST_NAME = 1_000, 500
"""Of a listing, as a run keeps it; the names of an engine's own interface are bounded alike (engines/adapters/fields.py)."""
OFFERED, SHOWN_OF_A_NAME = 20, 60
"""Models that an error offers, and characters of a name that is too long."""


@dataclass(frozen=True, slots=True)
class Target(Served):
    """The server as the probe found it, and what is needed to talk to it."""

    endpoint: probing.Endpoint = field(kw_only=True)
    protocol: Protocol = field(kw_only=True, default="http/1.1")
    family: int = field(kw_only=True)
    address: tuple[str | int, ...] = field(kw_only=True)


def embedded_server(
    plan: Plan, running: Embedded | None, folder: RunFolder, stack: ExitStack
) -> Embedded | None:
    """The reference server of a plan that names no server: the one that runs, or one that ends with the run."""
    if plan.target.url is not None:
        return None
    return running or stack.enter_context(Embedded(folder.log))


def engine_processes(target: Target, embedded: Embedded | None) -> tuple[int, ...]:
    """The first process of the server, where it is on this machine and the system shows which it is."""
    if embedded is not None:
        return (embedded.pid,)
    if not ip_address(str(target.address[0]).partition("%")[0]).is_loopback:
        return ()
    pid = process_of_port(target.endpoint.port, listening())
    return () if pid is None else (pid,)


def load_tokenizer(plan: Plan, source: Source) -> tokenizers.Tokenizer | None:
    """The plan's tokenizer; None if the server's own is to be used. Raises PlanError."""
    left_open = plan.tokenizer.name == AUTO_TOKENIZER and plan.target.url is not None
    if left_open or plan.tokenizer.name == SERVER_TOKENIZER:
        return None
    tokenizer = tokenizers.load(plan.tokenizer)
    source.check_tokenizer(tokenizer)
    return tokenizer


def reach(
    plan: Plan,
    source: Source,
    embedded: Embedded | None,
    key: str | None,
    tokenizer: tokenizers.Tokenizer | None,
    stack: ExitStack,
    note: Callable[[str], None],
    gone: str | None = None,
) -> tuple[Target, tokenizers.Tokenizer]:
    """Find the plan's server, or the embedded one, and probe it. Raises PeerError, PlanError.

    Without a `tokenizer` the server's own is used: the probe stays open until `stack` ends, because it counts the answers.
    `gone`: why its /tokenize is not to be used where the plan leaves it open.
    """
    url = plan.target.url if embedded is None else embedded.url()
    assert url is not None
    if embedded is None:
        extra = "" if plan.load.cold_start else ", with one short request"
        note(f"querying the server for its models{extra}")
    probe = stack.enter_context(open_probe(plan, url, key))
    target, tokenizer = inspect(plan, source, probe, tokenizer, note, gone)
    place = "the embedded reference server" if embedded else target.endpoint.url
    note(f"{target.model} at {place}")
    return target, tokenizer


def open_probe(plan: Plan, url: str, key: str | None) -> probing.Probe:
    """The client for untimed requests to this plan's server. Raises PlanError."""
    endpoint = probing.endpoint(url)
    dialect = dialects.load(plan.target.api, plan.target.form)
    tls = _trust(plan, H2 if dialect.interface.grpc else HTTP1) if endpoint.scheme == "https" else None
    redact = Redactor(secrets_of_run(plan, key))
    lines = headers(plan.target, key, dialect)
    patience_s = min(plan.target.probe_timeout_s, plan.target.timeout_s)
    made = GrpcProbe if dialect.interface.grpc else probing.Probe
    return made(dialect, endpoint, lines, tls, patience_s, redact)


def _trust(plan: Plan, alpn: Sequence[str]) -> ssl.SSLContext:
    try:
        return context(plan.target.tls_verify, plan.target.tls_ca_file, alpn)
    except (OSError, ssl.SSLError) as cause:
        raise PlanError([Problem("--ca-file", f"contains no readable certificates ({cause})")]) from cause


def inspect(
    plan: Plan,
    source: Source,
    probe: probing.Probe,
    tokenizer: tokenizers.Tokenizer | None,
    note: Callable[[str], None],
    gone: str | None = None,
) -> tuple[Target, tokenizers.Tokenizer]:
    """Find out what is served there, and that it answers a request of this plan's kind. Raises PeerError, PlanError.

    Without a `tokenizer` the server's own is the plan's, or whoever counts is left open, and is found here too. Before a cold
    start nothing is generated (draft 4.5.3): what only an answer would tell stays unknown. `gone`: see reach.
    """
    wanted, endpoint = plan.target, probe.endpoint
    family, address = probing.resolve(endpoint, wanted.connect_timeout_s)
    listing = probe.models()
    models = listing.models
    names = [_as_text(name) for name in models.names[:MOST_MODELS]]
    model = _chosen(wanted.model, listing)
    cold = plan.load.cold_start
    dialect = dialects.load(wanted.api, wanted.form)
    reply = probing.Reply(dialect.length_fields[0], None) if cold else _try_requests(plan, probe, model)
    left_open = tokenizer is None and plan.tokenizer.name == AUTO_TOKENIZER
    if tokenizer is None:
        tokenizer = AsIds() if left_open else tokenizers.load(plan.tokenizer, probe.tokenizer(model))
    prompt_format: PromptFormat = "text"
    if wanted.interface.takes_ids and not plan.workload.text_only and tokenizer.kind != "server":
        highest = max(set(range(tokenizer.vocab_size)) - tokenizer.reserved)
        known = highest < models.vocabularies.get(model, highest + 1)
        requested = plan.workload.prompt_format == "ids" or not wanted.interface.takes_text
        if known and (requested if cold else probe.takes_ids(model, [highest, highest])):
            prompt_format = "ids"
        elif requested:
            words = f"{model} does not accept token ids up to {highest}"
            if not wanted.interface.takes_text:
                raise PlanError([Problem("--tokenizer", f"{words}; choose the model's own tokenizer")])
            raise PlanError([Problem("--prompt-format", f"{words}; use text")])
    if prompt_format == "text" and not wanted.interface.takes_text:
        raise PlanError([Problem("--api", f"{wanted.api} takes token ids, and this plan's prompts are text")])
    context = models.contexts.get(model)
    if left_open and prompt_format == "text":
        tokenizer = own_tokens.settled(plan, source, probe, model, reply, context, note, gone)
    around = _template_around(reply, tokenizer) if prompt_format == "text" else None
    template = None if tokenizer.kind == "none" else _template(plan, around)
    target = Target(
        model, names, listing.server, prompt_format, reply.length_field, template,
        greeting=reply.prompt_tokens,
        answered_as=_other_name(reply, model, note),
        room=_further_messages(plan, probe, model, reply, _context_limit(plan, context, prompt_format, around, tokenizer)),
        endpoint=endpoint, protocol=protocol_of(wanted.interface, wanted.http), family=family, address=address,
    )  # fmt: skip
    return target, tokenizer


def _chosen(wanted: str | None, listing: probing.Listing) -> str:
    """The model to request: the plan's, or the only one that the server lists. Raises PlanError."""
    names = listing.models.names
    if wanted is not None:
        return wanted
    if len(names) != 1:
        none = "the server lists none" + (f" ({listing.missing})" if listing.missing else "")
        raise PlanError([Problem("--model", f"choose a model: {offer(names) if names else none}")])
    (model,) = names
    if len(model) > LONGEST_NAME:
        what = f"a model whose name begins {model[:SHOWN_OF_A_NAME]!r} and has {len(model):,} characters"
    elif model != _as_text(model):
        what = f"{_as_text(model)}, which holds half of a surrogate pair and is no text"
    else:
        return model
    raise PlanError([Problem("--model", f"the server lists {what}; name a model")])


def offer(names: Sequence[str]) -> str:
    """The first of many names, each as far as it can be read, and how many more there are."""
    shown = [_as_text(name) for name in names[:OFFERED]]
    more = f" and {len(names) - OFFERED:,} more" if len(names) > OFFERED else ""
    return ", ".join(shown) + more


def _other_name(reply: probing.Reply, model: str, note: Callable[[str], None]) -> str | None:
    """The model that the server says answered, if that is another name than the one asked for; the person watching is told."""
    named = None if reply.model is None else _as_text(reply.model)
    if named is None or named == model:
        return None
    note(f"asked for {model}, the server says that {named} answered: an alias of it, or another model")
    return named


def _as_text(name: str) -> str:
    """A model's name as it can be shown: JSON may hold half of a surrogate pair, which is escaped, and a megabyte, which is
    cut."""
    return name[:LONGEST_NAME].encode("utf-8", "backslashreplace").decode()


def _try_requests(plan: Plan, probe: probing.Probe, model: str) -> probing.Reply:
    """One short request, and one for each class: a field that the server refuses is better found now. Raises PeerError."""
    fields = [{}, *(one.fields for one in plan.workload.classes)]
    replies = [probe.try_out(greeting_of(plan, model, each)) for each in fields]
    for reply in replies:
        _refuse_strays(plan, probe, reply)
    return replies[0]


def _refuse_strays(plan: Plan, probe: probing.Probe, reply: probing.Reply) -> None:
    """Messages of a WebSocket do not say whose they are. Raises PeerError."""
    described, advice = plan.target.interface.mapped, []
    if reply.before:
        words = f"before any request the server sends {reply.before!r}, which would be taken for an answer"
    elif reply.behind and plan.target.connection != "new":
        words = (
            f"behind the message that ends an answer the server sends {reply.behind!r}, which would be taken for the next "
            "answer on that connection"
        )
        advice = ["--connection new gives each request a connection of its own."]
        if described:
            advice.insert(0, "Let target.websocket.end describe the last message of an answer.")
    else:
        return
    if described and not plan.target.interface.greets:
        advice.insert(0, "If it belongs to no answer, set target.websocket.greets.")
    raise PeerError(f"{probe.endpoint.url}: {words}.", " ".join(advice))


def _template_around(reply: probing.Reply, tokenizer: tokenizers.Tokenizer) -> int | None:
    """Tokens that the server counts beyond the text of the probe's message; None if it did not report them.

    Also None if that is negative: another tokenizer than the model's, or a count of something else; the run's checks report it.
    """
    if isinstance(tokenizer, Learned):
        return tokenizer.learned.template
    if reply.prompt_tokens is None:
        return None
    extra = reply.prompt_tokens - len(tokenizer.encode(probing.GREETING))
    return extra if extra >= 0 else None


def _template(plan: Plan, extra: int | None) -> int | None:
    """The chat template's tokens, if lengths are to include them and they are known. Raises PlanError."""
    if not plan.workload.count_template or extra is None:
        return None
    lengths = [one.input_tokens for one in plan.workload.classes]
    if isinstance(plan.workload, StandardWorkload | LengthsWorkload):
        lengths = [plan.workload.input_tokens]
    shortest = min(lengths, key=lambda length: length.mean())
    if extra >= shortest.mean():
        # More is no template to the checks of the run (measure/lengths.py).
        other = ", or use --count-template no" if extra <= TEMPLATE_TOKENS else ""
        raise PlanError(
            [
                Problem(
                    "--input-tokens",
                    f"the server's chat template adds {extra} tokens to every prompt, too many for "
                    f"{shortest} in total: request longer prompts{other}",
                )
            ]
        )
    return extra


def _context_limit(
    plan: Plan,
    context: int | None,
    prompt_format: PromptFormat,
    around: int | None,
    tokenizer: tokenizers.Tokenizer,
) -> Room | None:
    """The model's context limit, if the server reports it. `around`: tokens that the server puts around a text, if known."""
    if context is None:
        return None
    native = with_known_sut(plan, None).tokenizer.own and tokenizer.kind != "none"
    room = Room(context, native or prompt_format == "ids", tokenizer.name, around or 0 if native else 0)
    if not isinstance(tokenizer, Learned):
        return room
    learned = tokenizer.learned
    return replace(room, counter="the learned ratio", least=learned.low / learned.ratio)


def _further_messages(
    plan: Plan, probe: probing.Probe, model: str, reply: probing.Reply, room: Room | None
) -> Room | None:
    """The context limit with what the template puts around the messages that a turn repeats and around a system prompt, where
    the plan has them and prompts are counted as the model counts them. One short request each. Raises PeerError."""
    if room is None or not room.exact or reply.prompt_tokens is None:
        return room
    if not plan.target.interface.applies_template:
        return room
    alone, greeting = reply.prompt_tokens, reply.prompt_tokens - room.template
    said = ("user", probing.GREETING)

    def more(*before: tuple[str, str]) -> int:
        wanted = generation_of(plan, model, probing.GREETING, 1, messages=(*before, said))
        counted = probe.try_out(wanted, reply.length_field).prompt_tokens
        return 0 if counted is None else max(0, counted - alone - len(before) * greeting)

    if plan.workload.turns is not None:
        room = replace(room, exchange=more(said, ("assistant", probing.GREETING)))
    sharing = plan.workload.content.sharing if isinstance(plan.workload, StandardWorkload) else None
    if sharing is not None and sharing.system:
        room = replace(room, system=more(("system", probing.GREETING)))
    return room


def request_heads(plan: Plan, target: Target, key: str | None) -> list[RequestHead]:
    """What all requests have in common: one head for all or, of classes with header lines of their own, one for each. Of
    WebSockets it is what their handshakes have."""
    wanted, classes = plan.target, plan.workload.classes
    dialect = dialects.load(wanted.api, wanted.form)
    method, ours = "GET", {"Host": target.endpoint.host_header, "User-Agent": "inferometer"}
    if not dialect.interface.over_websocket:
        method = "POST"
        streamed = DECODERS[dialect.interface.framing].CONTENT_TYPES[0]
        if dialect.interface.grpc:
            ours |= grpc_fields(wanted.timeout_s)
        else:
            accepted = streamed if wanted.stream else "application/json"
            ours |= {"Accept": accepted, "Content-Type": "application/json"}
    common = merged(ours, headers(wanted, key, dialect))
    path = target.endpoint.base + dialect.interface.target(target.model)
    own = [one.headers for one in classes] if any(one.headers for one in classes) else [{}]
    return [RequestHead(method, path, merged(common, lines), target.endpoint.scheme) for lines in own]
