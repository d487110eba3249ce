"""What a saved plan reaches beyond the reference engine: a report is there to be passed on, so the files that it names, the
commands that it would run, whom it would contact and what it would send may be the words of a stranger.

| of a plan                                      | reaches                                               | in virtual time |
| ---------------------------------------------- | ----------------------------------------------------- | --------------- |
| prompts, sessions, dataset, file, trace        | a file whose text becomes prompts                     | yes             |
| tasks                                          | the same, and if the plan allows it, commands and     | the file        |
|                                                | judges; a file of spans                               |                 |
| a tokenizer that does not ship with us         | a file, or a download from Hugging Face               | yes             |
| the server's URL, headers and body             | whom requests go to, and what else is in them         | no              |
| key, certificates, metrics                     | files, variables, and whom they are shown to          | no              |
| meters of power                                | a command that is run, and a URL                      | no              |
| of a campaign: ways to switch, memory pressure | the shell, other URLs, and a system that may fail     | no              |

A member of a plan that names something outside it belongs here (tests/plan/test_reach.py holds the schema to that).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from inferometer.addresses import shown
from inferometer.errors import PlanError, Problem
from inferometer.plan.campaign import OWN_SYSTEM, Campaign
from inferometer.plan.part import Values
from inferometer.plan.rerun import Simulated
from inferometer.plan.schema import (
    AUTO_TOKENIZER,
    NO_TOKENIZER,
    SERVER_TOKENIZER,
    SHIPPED_TOKENIZERS,
    Plan,
)
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.switching import Switching
from inferometer.plan.task_rules import place_to_listen
from inferometer.plan.workload import PromptsWorkload, StandardWorkload, TasksWorkload

Reached = tuple[str, str]
"""The place in the plan, and what would be done, each on one line, with nothing in it that a terminal obeys or hides."""

_OWN = (AUTO_TOKENIZER, NO_TOKENIZER, SERVER_TOKENIZER, *SHIPPED_TOKENIZERS)


def reach(found: Plan | Campaign | Simulated) -> list[Reached]:
    """All that carrying this out would read, run, contact and send, but for the reference engine; empty: nothing."""
    plan = found if isinstance(found, Plan) else found.plan
    reached = [*_files(plan), *_tokenizer(plan)]
    if isinstance(found, Simulated) or (isinstance(found, Campaign) and found.simulated):
        return reached
    reached += [*_server(plan), *_metrics(plan), *_meters(plan)]
    if isinstance(found, Campaign):
        reached += _switches(found.switch)
        if found.own_system and OWN_SYSTEM in found.names and plan.target.url is not None:
            reached.append((OWN_SYSTEM, f"would push {_as_is(plan.target.url)} past its capacity"))
    return reached


def permit(found: Plan | Campaign | Simulated, *, trust: bool, say: Callable[[str], None]) -> None:
    """Say what carrying this out would reach, a line at a time. Raises PlanError where that is something, and not trusted."""
    reached = reach(found)
    if reached:
        say("Beyond the reference engine this report reaches:")
    for place, what in reached:
        say(f"  {place}: {what}")
    if reached and not trust:
        raise PlanError([Problem("--trust", "give this flag if all of that is to be done")])


def refuse(found: Plan | Campaign | Simulated) -> None:
    """Raises PlanError where carrying this out would reach anything."""
    if problems := [Problem(place, what) for place, what in reach(found)]:
        raise PlanError(problems)


def _files(plan: Plan) -> Iterator[Reached]:
    workload = plan.workload
    use = "would be read, and prompts be made of it"
    made = workload.file is not None  # of these, and then they are in it
    if isinstance(workload, PromptsWorkload) and not made:
        yield "workload.prompts", f"{_as_is(workload.prompts)} {use}"
    if isinstance(workload, TasksWorkload):
        yield from _tasks(workload, use)
    if isinstance(workload, SessionsWorkload):
        yield "workload.sessions", f"{_as_is(workload.sessions)} would be read, and its steps be sent"
    if isinstance(workload, StandardWorkload) and workload.dataset is not None and not made:
        part = "" if workload.dataset_subset is None else f", of it {_as_is(workload.dataset_subset)},"
        yield "workload.dataset", f"{_as_is(workload.dataset)}{part} {use}"
    if workload.file is not None:
        more = "; so would the tokenizer that it names"
        yield "workload.file", f"{_as_is(workload.file)} would be read, and its requests be sent{more}"
    if plan.trace is not None and plan.trace.file is not None:
        yield "trace.file", f"{_as_is(plan.trace.file)} would be read, and its load be replayed"


def _tasks(workload: TasksWorkload, use: str) -> Iterator[Reached]:
    yield "workload.tasks", f"{_as_is(workload.tasks)} {use}"
    if workload.task_commands:
        yield (
            "workload.task_commands",
            f"the commands that {_as_is(workload.tasks)} names would be run, and the judges that it names be sent the answers",
        )
    if place_to_listen(workload.spans) is not None:
        yield "workload.spans", f"would {_as_is((workload.spans or '').replace(':', ' at ', 1))}, for spans"
    elif workload.spans is not None:
        yield "workload.spans", f"{_as_is(workload.spans)} would be read, and spans be taken from it"


def _tokenizer(plan: Plan) -> Iterator[Reached]:
    name = plan.tokenizer.name
    if name not in _OWN:
        yield (
            "tokenizer.name",
            f"{_as_is(name)} would be read if it is a path that exists, and else be downloaded from Hugging Face",
        )


def _server(plan: Plan) -> Iterator[Reached]:
    target = plan.target
    to = "the embedded server" if target.url is None else _as_is(target.url)
    if target.url is not None:
        yield "target.url", f"requests would be sent to {to}"
        yield from _sent("target", target.headers, target.extra_body)
        if target.session_header is not None:
            yield (
                "target.session_header",
                f"{_as_is(target.session_header)} would be sent with them, with an id of each session",
            )
        if target.websocket is not None:
            sent = f"{json.dumps(target.websocket.request)} with prompts"
            yield "target.websocket", f"{_as_is(sent)} would be sent to {_as_is(target.websocket.path)} there"
        for one in plan.workload.classes:
            yield from _sent(f"workload.classes.{one.name}", one.headers, one.extra_body)
        if not target.tls_verify:
            yield "target.tls_verify", f"the certificate of {to} would not be verified"
    if target.api_key_env is not None:
        yield "target.api_key_env", f"the key in {_as_is(target.api_key_env)} would be sent to {to}"
    if target.api_key_file is not None:
        yield (
            "target.api_key_file",
            f"{_as_is(target.api_key_file)} would be read, and the key in it be sent to {to}",
        )
    if target.tls_ca_file is not None:
        yield (
            "target.tls_ca_file",
            f"{_as_is(target.tls_ca_file)} would be read, and what it certifies trusted",
        )


def _sent(place: str, headers: Mapping[str, str], body: Values) -> Iterator[Reached]:
    for name, value in headers.items():
        yield f"{place}.headers", f"{_as_is(f'{name}: {value}')} would be sent with them"
    if body:
        yield f"{place}.extra_body", f"{_as_is(json.dumps(body))} would be sent with them"


def _metrics(plan: Plan) -> Iterator[Reached]:
    wanted = plan.server_metrics
    if not wanted.enabled:
        return
    for one in wanted.named():
        to, place = _as_is(shown(one.url)), "server_metrics"
        yield place, f"{to} would be asked for metrics"
        for name, value in one.headers.items():
            yield place, f"the header {_as_is(name)}: {_as_is(value)} would be sent to {to}"
        if one.token_env is not None:
            header = "" if one.token_header is None else f" as {_as_is(one.token_header)}"
            yield place, f"the token in {_as_is(one.token_env)} would be sent to {to}{header}"
        for file in (one.ca_file, one.cert_file, one.key_file):
            if file is not None:
                yield place, f"{_as_is(file)} would be read for the connection to {to}"
        if one.tls_verify is False:
            yield place, f"the certificate of {to} would not be verified"


def _meters(plan: Plan) -> Iterator[Reached]:
    """A meter of this machine is a local reading, as its load is; a command is run, and a wall meter is asked."""
    for meter in plan.host_telemetry.power:
        if meter.startswith("command:"):
            yield (
                "host_telemetry.power",
                f"would run, at every reading: {_as_is(meter.removeprefix('command:').strip())}",
            )
        elif "://" in meter:
            yield "host_telemetry.power", f"{_as_is(meter)} would be asked for power"


def _switches(switching: Switching) -> Iterator[Reached]:
    for what in type(switching).model_fields:
        for state, way in getattr(switching, what).items():
            place = f"switch.{what}.{state}"
            if way.command is not None:
                yield place, f"the shell would run: {_as_is(way.command)}"
            if way.http is not None:
                body = "" if way.http.body is None else f" with {_as_is(json.dumps(way.http.body))}"
                yield place, f"would be called: {way.http.method} {_as_is(way.http.url)}{body}"
            if way.ask is not None:
                yield place, f"you would be asked: {_as_is(way.ask)}"


def _as_is(text: str) -> str:
    """All of a text, with an escape for whatever does not show: a line break would hide the rest of a command."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
