"""What two keys of a plan forbid each other. One fault a rule, with every key it involves.

Messages name keys in braces (`{load.rate}`); whoever words them puts there what the user wrote: the flag or the plan's key.
A rule is data about a whole plan, so it is also how a plan made in code is checked: `check(plan)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.engines.interface import fits, takers
from inferometer.errors import PlanError, Problem
from inferometer.plan.fault import Fault
from inferometer.plan.lengths import Empirical
from inferometer.plan.schema import (
    AUTO_TOKENIZER,
    NO_TOKENIZER,
    REFERENCE_TOKENIZER,
    SERVER_TOKENIZER,
    Guardrails,
    Load,
    Plan,
)
from inferometer.plan.server_metrics import ServerMetrics
from inferometer.plan.session_rules import session_faults
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.target import MAPPED, Target
from inferometer.plan.task_rules import task_faults
from inferometer.plan.workload import AnyWorkload, LengthsWorkload, StandardWorkload, TraceWorkload

MOST_REQUESTS = 10_000_000
LONGEST_S = 604_800
LEAST_PROBES = 3


def faults(plan: Plan) -> list[Fault]:
    """Every rule that the plan breaks."""
    traced = plan.trace is not None or plan.load.arrival == "trace"
    return [
        *(_trace(plan) if traced else _load(plan.load)),
        *_sizes(plan.load),
        *_warm_up(plan.load),
        *_target(plan.target),
        *_carrier(plan.target),
        *_bodies(plan),
        *_guardrails(plan.sut.guardrails),
        *_classes(plan.workload),
        *_handshakes(plan),
        *_made(plan.workload),
        *_texts(plan.workload),
        *_turns(plan),
        *session_faults(plan),
        *task_faults(plan),
        *_across(plan),
        *_server_metrics(plan.server_metrics),
    ]


def _server_metrics(wanted: ServerMetrics) -> Iterator[Fault]:
    for key, given in (("urls", wanted.urls), ("endpoints", wanted.endpoints)):
        if given and not wanted.enabled:
            yield Fault(
                (f"server_metrics.{key}", "server_metrics.enabled"),
                f"choose one: {{server_metrics.{key}}} names endpoints to scrape, "
                "{server_metrics.enabled} disables scraping",
            )


def check(plan: Plan) -> Plan:
    """Give the plan back if it breaks no rule; else raise PlanError with all of them."""
    found = faults(plan)
    if found:
        raise PlanError([Problem(fault.keys[0], fault.worded()) for fault in found])
    return plan


def _load(load: Load) -> Iterator[Fault]:
    if load.users is not None or load.user_rate is not None or load.model == "users":
        yield from _users(load)
    elif load.rate is not None and load.concurrency is not None:
        yield Fault(
            ("load.rate", "load.concurrency", "load.model"),
            "choose one: {load.rate} is open loop (so many a second, whatever the server does), "
            "{load.concurrency} is closed loop (so many in flight)",
        )
    elif load.model == "open" and load.rate is None:
        instead = "; {load.concurrency} belongs to closed loop" if load.concurrency is not None else ""
        yield Fault(
            ("load.rate", "load.model", "load.concurrency"),
            f"open loop needs a rate: set {{load.rate}} to requests per second{instead}",
        )
    elif load.model == "closed" and load.rate is not None:
        yield Fault(
            ("load.rate", "load.model"), "closed loop has no rate: leave {load.model} out, or set it to open"
        )
    alone = load.rate is None and load.users is None
    if load.model == "closed" and alone and (load.arrival != "poisson" or load.burstiness != 1):
        key = "load.arrival" if load.arrival != "poisson" and load.burstiness == 1 else "load.burstiness"
        yield Fault(
            (key, "load.arrival", "load.burstiness", "load.model", "load.rate", "load.concurrency"),
            f"only open loop and users have arrivals: {{{key}}} needs {{load.rate}}, or {{load.users}}",
        )
    elif load.arrival != "gamma" and load.burstiness != 1:
        yield Fault(
            ("load.burstiness", "load.arrival"),
            f"{load.arrival} arrivals have no burstiness: set {{load.arrival}} to gamma, or leave {{load.burstiness}} out",
        )


def _users(load: Load) -> Iterator[Fault]:
    """So many users, each at a rate, and no other load beside."""
    for key, other in (("load.rate", load.rate), ("load.concurrency", load.concurrency)):
        if other is not None:
            yield Fault(
                ("load.users", key, "load.user_rate"),
                f"choose one: {{load.users}} are so many users at a rate each, {{{key}}} is another load",
            )
            return
    for key, missing in (("load.users", load.users is None), ("load.user_rate", load.user_rate is None)):
        if missing:
            yield Fault(
                (key, "load.users", "load.user_rate", "load.model"),
                "users need their number and the rate of each: set {load.users} and {load.user_rate} (requests a second)",
            )
            return
    if load.model != "users":
        yield Fault(
            ("load.users", "load.model"),
            "{load.users} is a separate load model: omit {load.model}, or set it to users",
        )


def _trace(plan: Plan) -> Iterator[Fault]:
    """What a trace decides, nothing else may."""
    trace, load, workload = plan.trace, plan.load, plan.workload
    if trace is None or trace.file is None:
        parts = ("trace.speed", "trace.start_s", "trace.end_s", "trace.format", "trace.file", "load.arrival")
        yield Fault(parts, "a trace needs its file: {trace.file}")
        return
    if trace.end_s is not None and trace.end_s <= trace.start_s:
        yield Fault(
            ("trace.end_s", "trace.start_s"),
            f"the window is empty: {{trace.end_s}} ({trace.end_s:g} s) must be after {{trace.start_s}} ({trace.start_s:g} s)",
        )
    when = "the trace determines when requests are sent ({trace.file}): leave {%s} out"
    for key, wrong, hint in (
        ("load.rate", load.rate is not None, ", or set {trace.speed}"),
        ("load.concurrency", load.concurrency is not None, ""),
        ("load.users", load.users is not None or load.user_rate is not None, ", or set {trace.speed}"),
        ("load.duration_s", load.duration_s is not None, ", or set {trace.end_s}"),
        ("load.model", load.model != "open" and load.arrival == "trace", ""),
        ("load.arrival", load.arrival != "trace", ""),
        ("load.burstiness", load.burstiness != 1, ""),
    ):
        if wrong:
            yield Fault((key, "trace.file"), when % key + hint)
    if not isinstance(workload, TraceWorkload):
        yield Fault(
            ("workload.kind", "workload.name", "trace.file"),
            "the trace determines what is sent ({trace.file}): leave {workload.kind} out",
        )


def _sizes(load: Load) -> Iterator[Fault]:
    """Bounds that keep a schedule within memory and a week."""
    rate, key_of_rate = load.offered_rate, "load.user_rate" if load.model == "users" else "load.rate"
    if rate is None:
        return
    if load.requests is None and load.duration_s is not None and rate * load.duration_s > MOST_REQUESTS:
        yield Fault(
            ("load.duration_s", key_of_rate, "load.requests"),
            f"{rate:g} a second for {load.duration_s:g} s is {rate * load.duration_s:,.0f} requests; "
            f"the most is {MOST_REQUESTS:,}",
        )
    for key, count in (("load.requests", load.requests), ("load.warmup", load.warmup)):
        bounded = key == "load.requests" and load.duration_s is not None
        if count and not bounded and count / rate > LONGEST_S:
            yield Fault(
                (key, key_of_rate),
                f"{count} requests at {rate:g} a second take {count / rate / 86_400:.1f} days; the most is 7",
            )


def _warm_up(load: Load) -> Iterator[Fault]:
    """What goes on behind a warm-up's requests needs some; a cold start has none of it."""
    more = [key for key in ("warmup_tokens", "warmup_probes") if getattr(load, key)]
    if load.cold_start:
        for key in (*(["warmup"] if load.warmup else []), *more):
            yield Fault(
                (f"load.{key}", "load.cold_start"),
                f"{{load.cold_start}} measures from the first request on: leave {{load.{key}}} out, or set it to 0",
            )
    elif 0 < load.warmup_probes < LEAST_PROBES:
        yield Fault(
            ("load.warmup_probes",),
            f"{LEAST_PROBES} probes in a row have to agree: set {{load.warmup_probes}} to {LEAST_PROBES} or more, or to 0",
        )
    elif not load.warmup:
        for key in more:
            yield Fault(
                (f"load.{key}", "load.warmup"),
                f"{{load.{key}}} is about a warm-up, and there is none: set {{load.warmup}} to 1 or more",
            )


def _target(target: Target) -> Iterator[Fault]:
    if target.api_key_env is not None and target.api_key_file is not None:
        yield Fault(
            ("target.api_key_file", "target.api_key_env"),
            "choose one place for the key: {target.api_key_env} or {target.api_key_file}",
        )
    if not target.tls_verify and target.tls_ca_file is not None:
        yield Fault(
            ("target.tls_ca_file", "target.tls_verify"),
            "choose one: {target.tls_ca_file} verifies the server's certificate, {target.tls_verify} does not",
        )
    if target.url is None or not target.url.startswith("https:"):
        for key, used in (
            ("target.tls_verify", not target.tls_verify),
            ("target.tls_ca_file", target.tls_ca_file),
        ):
            if used:
                yield Fault(
                    (key, "target.url"), "is about TLS, and the server's URL does not begin with https://"
                )


def _carrier(target: Target) -> Iterator[Fault]:
    """What carries the load, and whether the interface goes over it."""
    streams = target.streams_per_connection
    if streams is not None and target.http != "2":
        yield Fault(
            ("target.streams_per_connection", "target.http"),
            "only HTTP/2 carries several requests at once: {target.streams_per_connection} needs {target.http} 2",
        )
    if target.interface.grpc and target.http != "2":
        yield Fault(
            ("target.http", "target.api"),
            f"{target.api} is gRPC, which needs HTTP/2: leave {{target.http}} out",
        )
    if target.url is None and not target.interface.embedded:
        yield Fault(
            ("target.url", "target.api"),
            f"the reference server does not speak {target.api}: set {{target.url}}",
        )
    if target.interface.over_websocket and target.http != "1.1":
        yield Fault(
            ("target.http", "target.api"),
            f"a WebSocket begins with HTTP/1.1: {{target.api}} {target.api} takes no other {{target.http}}",
        )
    if target.interface.mapped and target.websocket is None:
        yield Fault(
            ("target.api", "target.websocket"),
            f"{target.api} is for messages that the plan file describes: set {{target.websocket}}",
        )
    if target.websocket is not None and not target.interface.mapped:
        yield Fault(
            ("target.websocket", "target.api"),
            f"is about {MAPPED}, and {{target.api}} is {target.api}",
        )
    if target.interface.only_streams and not target.stream:
        yield Fault(
            ("target.stream", "target.api"),
            f"{{target.api}} {target.api} has no whole answers: leave out {{target.stream}}",
        )
    if streams is not None and streams > 1 and target.connection == "new":
        yield Fault(
            ("target.streams_per_connection", "target.connection"),
            "choose one: {target.streams_per_connection} above 1 shares connections, "
            "{target.connection} new gives each request its own",
        )


def _handshakes(plan: Plan) -> Iterator[Fault]:
    """Header lines over WebSockets are those of a handshake, which requests of all classes share."""
    if not plan.target.interface.over_websocket:
        return
    for at, one in enumerate(plan.workload.classes):
        if one.headers:
            yield Fault(
                (f"workload.classes[{at}].headers", "target.api"),
                "a WebSocket's header lines are those of its connection, for requests of all classes: use target.headers",
            )


PLANNED = {
    "temperature": "workload.temperature",
    "ignore_eos": "workload.ignore_eos",
    "min_tokens": "workload.min_tokens",
    "stream_options": "target.stream",
}
"""Fields of a body that the plan decides, with its keys. Those that no kind of workload does without stand in target.py."""


def _bodies(plan: Plan) -> Iterator[Fault]:
    """What is merged into every request would contradict what the plan, and so the report, says of it."""
    body = plan.target.extra_body
    for name in sorted(PLANNED.keys() & body.keys()):
        if body[name] is None:  # takes a field away that a server refuses
            continue
        yield Fault(
            ("target.extra_body", PLANNED[name]),
            f"{{target.extra_body}} cannot set {name}, which the plan decides: use {{{PLANNED[name]}}}",
        )
    places = [
        ("target.extra_body", body),
        *(("workload.classes", one.fields) for one in plan.workload.classes),
    ]
    if plan.target.interface.history_field is not None:
        name, none = plan.target.interface.history_field
        for place, fields in places:
            if fields.get(name, none) != none:
                yield Fault(
                    (place, "target.api"),
                    f"{{{place}}} cannot set {name}: earlier requests would stand before each prompt, which would have other "
                    "lengths than the plan's",
                )
    described = plan.target.websocket
    if described is None:
        return
    for place, fields in places:
        if lost := sorted(described.filled & fields.keys()):
            yield Fault(
                (place, "target.websocket"),
                f"{{{place}}} would replace {', '.join(lost)} of the request that {{target.websocket}} describes",
            )


def _guardrails(declared: Guardrails) -> Iterator[Fault]:
    if declared.names and declared.input_filter is False and declared.output_filter is False:
        yield Fault(
            ("sut.guardrails",),
            "names filters, and says that neither requests nor answers are filtered: omit the names, or set "
            "input_filter or output_filter to true",
        )


def _classes(workload: AnyWorkload) -> Iterator[Fault]:
    """Each class of a mixture needs a name of its own."""
    names = [one.name for one in workload.classes]
    for at, name in enumerate(names):
        if name in names[:at]:
            yield Fault(
                (f"workload.classes[{at}].name",),
                f"another class is named {name!r}: class names must be unique",
            )


def _made(workload: AnyWorkload) -> Iterator[Fault]:
    """A digest belongs to a file."""
    if not isinstance(workload, TraceWorkload) and workload.file is None and workload.file_sha256 is not None:
        yield Fault(
            ("workload.file_sha256", "workload.file"),
            "is about a workload file: set {workload.file}",
        )


def _texts(workload: AnyWorkload) -> Iterator[Fault]:
    """What needs texts of a dataset, or is about them."""
    if isinstance(workload, StandardWorkload):
        yield from _dataset(workload)
    lengths = [length for one in workload.classes for length in (one.input_tokens, one.output_tokens)]
    if any(isinstance(length, Empirical) for length in lengths):
        yield Fault(("workload.classes",), "the lengths of a class are drawn: none can be empirical")
    if isinstance(workload, StandardWorkload | LengthsWorkload):
        yield from _empirical(workload)


def _dataset(workload: StandardWorkload) -> Iterator[Fault]:
    if workload.dataset is not None and workload.content.dataset is None:
        yield Fault(
            ("workload.dataset", "workload.name"),
            "{workload.dataset} is for conversation (ShareGPT) and code-completion (The Stack): set {workload.name} to one",
        )
    for key in ("dataset_subset", "dataset_version"):
        if getattr(workload, key) is not None and workload.dataset is None:
            yield Fault(
                (f"workload.{key}", "workload.dataset"), f"{{workload.{key}}} is about a {{workload.dataset}}"
            )


def _empirical(workload: StandardWorkload | LengthsWorkload) -> Iterator[Fault]:
    whose = workload.content.dataset
    given = isinstance(workload, StandardWorkload) and workload.dataset is not None
    known = {
        "input_tokens": whose == "the-stack" or (whose == "sharegpt" and given),
        "output_tokens": whose == "sharegpt" and given,
    }
    for key, there in known.items():
        if isinstance(getattr(workload, key), Empirical) and not there:
            yield Fault(
                (f"workload.{key}", "workload.name", "workload.dataset"),
                f"no text says what an empirical {{workload.{key}}} is here: give a distribution, for example "
                "uniform(128,512), or set {workload.name} to conversation with a {workload.dataset}",
            )


def _turns(plan: Plan) -> Iterator[Fault]:
    """What conversations of several turns need, and what goes with nothing else."""
    workload = plan.workload
    if isinstance(workload, TraceWorkload | SessionsWorkload):
        return
    if workload.turns is None and workload.file is None:
        for key, used in (
            ("think_ms", workload.think_ms is not None),
            ("replies", workload.replies != "server"),
        ):
            if used:
                yield Fault(
                    (f"workload.{key}", "workload.turns"), "is about conversations: set {workload.turns}"
                )
    if workload.turns is None:
        return
    if not plan.target.interface.takes_messages:
        yield Fault(
            ("workload.turns", "target.api"),
            f"a conversation is a list of messages, which {plan.target.api} does not take: "
            f"leave {{target.api}} out, or set it to {takers(messages=True)}",
        )
    if "messages" in plan.target.extra_body:
        yield Fault(
            ("workload.turns", "target.extra_body"),
            "{target.extra_body} must not hold the messages of a conversation",
        )
    if isinstance(workload.turns, Empirical) or isinstance(workload.think_ms, Empirical):
        yield Fault(
            ("workload.turns", "workload.think_ms"), "turns and think times are drawn: none can be empirical"
        )


def _no_such_fields(plan: Plan) -> Iterator[Fault]:
    """Fields of a body that the interface's requests do not have, or not with such a value."""
    known = plan.target.interface.fields
    if known is None:
        return
    places = [("target.extra_body", plan.target.extra_body)]
    places += [("workload.classes", one.fields) for one in plan.workload.classes]
    for place, fields in places:
        wrong = sorted(name for name, value in fields.items() if not fits(known.get(name, ""), value))
        if wrong:
            yield Fault(
                (place, "target.api"),
                f"{plan.target.api} has no field for {', '.join(wrong)}, or none for such a value",
            )


def _across(plan: Plan) -> Iterator[Fault]:
    if isinstance(plan.workload, TraceWorkload) and plan.trace is None:
        yield Fault(("workload.name", "trace.file"), "{workload.name} is the trace's: it needs {trace.file}")
    if plan.workload.prompt_format == "ids" and not plan.target.interface.takes_ids:
        yield Fault(
            ("workload.prompt_format", "target.api"),
            f"{plan.target.api} takes text, not token ids: "
            f"set {{target.api}} to {takers(ids=True)} or {{workload.prompt_format}} to text",
        )
    if plan.workload.text_only and not plan.target.interface.takes_text:
        yield Fault(
            (plan.workload.chosen_by, "target.api"),
            f"{plan.target.api} takes token ids, and these prompts are text: "
            "set {target.api} to another interface, or leave {workload.prompt_format} and files of prompts out",
        )
    yield from _no_such_fields(plan)
    for key in ("ignore_eos", "min_tokens"):
        if getattr(plan.workload, key) and not plan.target.interface.takes_ignore_eos:
            yield Fault(
                (f"workload.{key}", "target.api"),
                f"{plan.target.api} has no field for it, and answers end where the model ends them: "
                f"leave {{workload.{key}}} out",
            )
    name, method = plan.tokenizer.name, plan.tokenizer.method
    if name in (AUTO_TOKENIZER, SERVER_TOKENIZER, NO_TOKENIZER) and method == "reference":
        yield Fault(
            ("tokenizer.method", "tokenizer.name"),
            f"{{tokenizer.name}} {name} leaves counting to the server, which is native: "
            f"leave {{tokenizer.method}} out, or set {{tokenizer.name}} to {REFERENCE_TOKENIZER}",
        )
    if name == SERVER_TOKENIZER and plan.workload.prompt_format == "ids":
        yield Fault(
            ("workload.prompt_format", "tokenizer.name"),
            "the server's tokenizer counts text, and its vocabulary is not known here: "
            "set {workload.prompt_format} to text, or {tokenizer.name} to the model's own tokenizer.json",
        )
    if plan.workload.count_template and not plan.tokenizer.own:
        yield Fault(
            ("workload.count_template", "tokenizer.name", "tokenizer.method"),
            "what a chat template adds is only known in the model's own tokens: "
            "set {tokenizer.name} to the model's own tokenizer, or leave {workload.count_template} out",
        )
