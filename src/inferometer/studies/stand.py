"""Test stands: where a system is measured, and brought into the states that tests ask for.

| stand     | measures with | switches                                                                             |
| --------- | ------------- | ------------------------------------------------------------------------------------ |
| `Live`    | run/conduct   | the reference engine by itself, anything else by the plan's ways (plan/switching.py) |
| `Virtual` | simulator     | the engine's settings                                                                |

The load time of a server that is started (draft 4.5.3) is from just before its way of starting is taken to the first answer
that says it is well: of `/health`, or of `/v1/models` where there is no such thing, asked every POLL_S. The embedded engine is
started as a new process that loads its model first, unless its setting `preloaded` is off. A simulated one takes its `load`.

Each run's plan declares the filters that are on (draft 4.8.1). Those of the reference engine and of a simulated one follow from
its settings and the configuration it was switched to; of any other system a test declares what it switched.

A state that the system confirms is `verified`. One that only a command, a call or a person was told to make is `declared`.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from inferometer.client.http_client import Client, Response, Unanswered
from inferometer.client.trust import context
from inferometer.drive.credentials import headers, read_key
from inferometer.drive.probe import client_of, endpoint
from inferometer.errors import CannotSwitch, PeerError, PlanError
from inferometer.journal.redact import Redactor
from inferometer.plan.campaign import Campaign, EngineChoice
from inferometer.plan.schema import Plan
from inferometer.plan.switching import Call, Switching, Way
from inferometer.plan.target import Target, secret_name
from inferometer.procedures.step import Switched
from inferometer.run.conduct import conduct
from inferometer.run.evaluate import RunResult
from inferometer.run.facts import filters_of
from inferometer.run.simulate import simulate
from inferometer.run.ui import Ui
from inferometer.server.embedded import Embedded
from inferometer.server.engine.settings import Guards
from inferometer.server.http_reply import PRODUCT
from inferometer.simulation.engine import Chosen, choose
from inferometer.studies.calm import CALM_MS, await_calm
from inferometer.studies.certificate import cited_certificate
from inferometer.units import NS_PER_S

ANSWER_S = 10.0
POLL_S = 0.02
PATIENCE_S = 600.0
"""For the embedded engine to start."""
LEAST_SECRET = 8
"""Characters of a value in the environment that is struck out of words: a shorter one is in too many of them."""
NO_HEALTH = (404, 405, 501)
IN_PATH, IN_QUERY = "/%:@!$&'()*+,;=~", "/%:@!$&'()*+,;=~?-._[]"
"""What stays as it is in a URL's path and query."""

START = {"prefix_cache": "disabled", "guardrails": "baseline"}
"""How the reference engine begins a campaign, and what it is brought back to after each test (usual_states)."""
RUNNING = {"server": "started"}


def usual_states(engine: Chosen) -> dict[str, str]:
    """How a campaign finds what it starts itself. The guardrails of a system are a part of it, and on in every test but that of
    their cost; those of an engine are switched on for that test alone."""
    on = engine.system is not None and engine.guarded
    return START | ({"guardrails": "full"} if on else {})


Confirm = Callable[[str], None]
"""Shows a person what is to be done, and returns when it is done. Raises EOFError when there is nobody."""


class Stand(Protocol):
    """Where a campaign takes place."""

    simulated: bool

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """Carry a plan out; its folder lies in `out`. Raises PeerError, PlanError."""

    def switch(self, what: str, state: str) -> Switched:
        """Bring the system into a state. Raises CannotSwitch, PeerError."""

    def usual(self, what: str) -> str | None:
        """The state that a system is in when no test asks for another; None: not known."""

    def settle(self) -> None:
        """Wait until the client's machine is on time, within bounds."""


class Virtual:
    """An engine in virtual time. Each run has an engine of its own, so a cache is never left filled by the run before. Of those
    after a start only the first loads its model, where it does so late, and has slow steps."""

    simulated = True

    def __init__(self, engine: Chosen, ui: Ui) -> None:
        self._full, self._engine, self._ui = engine, engine, ui
        self._cold = True
        self._usual = usual_states(engine)
        for what, state in self._usual.items():
            self.switch(what, state)

    def usual(self, what: str) -> str | None:
        """See Stand."""
        return (self._usual | RUNNING).get(what)

    def settle(self) -> None:
        """See Stand. Virtual time has no machine."""

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        engine = self._engine
        if not self._cold:
            warm = dataclasses.replace(engine.settings, preloaded=True, cold_steps=0)
            engine = dataclasses.replace(engine, settings=warm)
        finding = simulate(plan, engine, out, self._ui)
        self._cold = False
        return finding

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        if what == "server":
            return (
                self._start()
                if state == "started"
                else Switched("verified", _simulated(self._engine), "it is gone")
            )
        if what == "prefix_cache":
            settings = dataclasses.replace(self._engine.settings, prefix_caching=state != "disabled")
            self._engine = dataclasses.replace(self._engine, settings=settings)
        elif what == "guardrails":
            guarded = _guarded(self._full, state)
            settings = dataclasses.replace(
                guarded.settings, prefix_caching=self._engine.settings.prefix_caching
            )
            self._engine = dataclasses.replace(guarded, settings=settings)
        else:
            raise CannotSwitch(f"{_simulated(self._engine)} has no {what} to be {state}")
        return Switched("verified", f"setting of {_simulated(self._engine)}")

    def _start(self) -> Switched:
        self._cold = True
        load_ns = self._full.settings.load_ns if self._full.settings.preloaded else 0
        return Switched("verified", _simulated(self._engine), "its setting load", load_ns / NS_PER_S)


def _simulated(engine: Chosen) -> str:
    return "the simulated engine" if engine.system is None else "the simulated system"


def _guarded(full: Chosen, state: str) -> Chosen:
    """An engine, or a system on one, in a configuration of its guardrails; in production it has all of `full`. Raises
    CannotSwitch."""
    try:
        return full.guarded_by(_GUARDS[state])
    except ValueError as why:
        raise CannotSwitch(str(why)) from why


class Live:
    """A server over the network, or the embedded reference server, which runs as long as the stand. Use as a context
    manager."""

    simulated = False

    def __init__(
        self, plan: Plan, engine: EngineChoice, switching: Switching, ui: Ui, log: Path, confirm: Confirm
    ) -> None:
        self._plan, self._switching, self._ui, self._confirm = plan, switching, ui, confirm
        self._log, self._starts_server = log, plan.target.url is None
        self._embedded: Embedded | None = None
        if self._starts_server:
            # Refuses what makes no engine, before a process is started.
            self._full = choose(engine.preset, engine.settings, engine.system)
            self._usual = usual_states(self._full)
            self._states = dict(self._usual)
            words = (word for setting in engine.settings for word in ("--set", setting))
            system = () if engine.system is None else ("--system", engine.system)
            self._flags = ["--preset", engine.preset, *system, *words]
            self._loading = ["--load-at-start"] if self._full.settings.preloaded else []
            self._embedded = Embedded(log, *self._flags)
            self._restate()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *exc: object) -> None:
        self._end()

    def _restate(self) -> None:
        """Bring the embedded engine, as it was just begun, into the states that it was in before."""
        for what, state in self._states.items():
            self._by_itself(what, state)

    def _end(self) -> None:
        running, self._embedded = self._embedded, None
        if running is not None:
            running.__exit__()

    def usual(self, what: str) -> str | None:
        """See Stand. Of a server over the network, what its plan declares."""
        if self._starts_server:
            return (self._usual | RUNNING).get(what)
        sut = self._plan.sut
        if what == "server":
            return RUNNING[what] if self._switching.way(what, RUNNING[what]) else None
        if what == "prefix_cache":
            return sut.prefix_caching
        filters = sut.guardrails.input_filter, sut.guardrails.output_filter
        return _FILTERS.get(filters) if what == "guardrails" else None

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        if self._starts_server and not self._switching.guardrails:
            plan = self._disclosing(plan)
        return conduct(plan, out, self._ui, certificate=cited_certificate(plan), embedded=self._embedded)

    def settle(self) -> None:
        """See Stand."""
        begun = time.monotonic()
        late = await_calm().p99_ms
        if late > CALM_MS:
            waited = time.monotonic() - begun
            self._ui.note(
                f"the client's machine is still late by {late:.1f} ms (P99) after {waited:.0f} s of waiting"
            )

    def _disclosing(self, plan: Plan) -> Plan:
        """The plan with the filters that the embedded engine has on, whatever it declared of them (draft 4.8.1)."""
        on = _guarded(self._full, self._states["guardrails"])
        filters = filters_of(dataclasses.asdict(on.settings), on.guards)
        sut = plan.sut.model_copy(update={"guardrails": filters})
        return plan.model_copy(update={"sut": sut})

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        way = self._switching.way(what, state)
        if way is not None:
            return self._by_way(way, what, state)
        if what == "server" and self._starts_server:
            return self._process(state)
        if what != "server" and self._is_inferometer():
            return self._by_itself(what, state)
        raise CannotSwitch(
            f"nobody knows how to bring the system into the state {what}: {state}. Say it in the plan: "
            f"switch.{what}.{state} with a command, an http call, or ask (docs/tests.md)"
        )

    def _url(self) -> str:
        if self._embedded is not None:
            return self._embedded.url()
        assert self._plan.target.url is not None
        return endpoint(self._plan.target.url).url

    def _client(self) -> Client:
        target: Target = self._plan.target
        lines = headers(target, read_key(target, os.environ))
        tls = partial(context, target.tls_verify, target.tls_ca_file)
        return client_of(endpoint(self._url()), lines, tls, ANSWER_S)

    def _is_inferometer(self) -> bool:
        try:
            with self._client() as client:
                answer = client.get("/inferometer/state")
        except Unanswered:
            return False
        return answer.status == 200 and answer.header(b"server").startswith(PRODUCT)

    def _process(self, state: str) -> Switched:
        """The embedded engine: its process ended, or begun anew. It is well before its states are made again."""
        self._end()
        if state == "stopped":
            return Switched("verified", "the reference engine's process was ended", "it has exited")
        begun = time.monotonic()
        self._embedded = Embedded(self._log, *self._flags, *self._loading)
        self._wait(PATIENCE_S, what="server", state=state)
        seconds = time.monotonic() - begun
        self._restate()
        how = "the reference engine, as a new process"
        return Switched("verified", how, f"well after {seconds:.3f} s", seconds)

    def _by_itself(self, what: str, state: str) -> Switched:
        """The reference engine: told, and asked afterwards."""
        wanted: dict[str, Any] = (
            {"prefix_cache": state != "disabled"}
            if what == "prefix_cache"
            else {"guardrails": _GUARDS[state]}
        )
        change = wanted | ({"flush_cache": True} if what == "prefix_cache" else {})
        try:
            with self._client() as client:
                answer = client.send_json("PATCH", "/inferometer/state", change)
                state_now = client.get("/inferometer/state").json()
        except (Unanswered, ValueError) as cause:
            raise PeerError(f"the reference engine does not answer: {cause}") from cause
        reached = isinstance(state_now, dict) and wanted.items() <= state_now.items()
        if answer.status != 200 or not reached:
            raise CannotSwitch(
                f"the reference engine does not switch {what} to {state}: {self._redactor().short(answer.text(), 300)}"
            )
        if self._starts_server:
            self._states[what] = state
        shown = ", ".join(f"{key} {value}" for key, value in wanted.items())
        return Switched("verified", "the reference engine, by /inferometer/state", f"it shows: {shown}")

    def _by_way(self, way: Way, what: str, state: str) -> Switched:
        begun = time.monotonic()
        how = self._go(way, what, state)
        self._wait(way.patience_s, what=what, state=state)
        if what != "server":
            return Switched("declared", how)
        if state == "stopped":
            return Switched("verified", how, "it answers no more")
        seconds = time.monotonic() - begun
        return Switched("verified", how, f"well after {seconds:.3f} s", seconds)

    def _go(self, way: Way, what: str, state: str) -> str:
        if way.command is not None:
            return _command(way.command, way.patience_s, self._redactor())
        if way.http is not None:
            return _call(way, self._redactor())
        assert way.ask is not None
        try:
            self._confirm(way.ask)
        except EOFError as cause:
            raise CannotSwitch(f"{what}: {state} asks a person, and there is none: {way.ask}") from cause
        return "a person, who was asked"

    def _redactor(self) -> Redactor:
        """Of the key, and of what commands may read from the environment by a name that is a secret's."""
        named = [
            value for name, value in os.environ.items() if secret_name(name) and len(value) >= LEAST_SECRET
        ]
        key = read_key(self._plan.target, os.environ)
        return Redactor([*named, *([key] if key else [])])

    def _wait(self, patience_s: float, *, what: str, state: str) -> None:
        """Until the server says that it is well, or no longer does if it is to be stopped; either takes its time. Raises
        CannotSwitch."""
        stopped = (what, state) == ("server", "stopped")
        end = time.monotonic() + patience_s
        with self._client() as client:
            while time.monotonic() < end:
                if _well(client) != stopped:
                    return
                time.sleep(POLL_S)
        found = "still answered" if stopped else "did not answer"
        raise CannotSwitch(f"the server {found} {patience_s:g} s after {what} was switched to {state}")


def _well(client: Client) -> bool:
    """Whether a server says that it is well."""
    try:
        status = client.get("/health").status
        if status in NO_HEALTH:
            status = client.get("/v1/models").status
    except Unanswered:
        return False
    return status < 500


_FILTERS: dict[tuple[bool | None, bool | None], str] = {
    (False, False): "baseline",
    (True, False): "input",
    (False, True): "output",
    (True, True): "full",
}
_GUARDS: dict[str, Guards] = {"baseline": False, "input": "input", "output": "output", "full": True}


def _command(command: str, patience_s: float, struck: Redactor) -> str:
    """Run it by the shell, as a plan's author would; what it says is told only if it fails, and may hold what it was given.
    Raises CannotSwitch."""
    with (
        tempfile.TemporaryFile() as said
    ):  # no pipe: what it leaves running in the background would hold that open
        try:
            ran = subprocess.run(  # noqa: S602 - the plan's author wrote it for the shell
                command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                timeout=patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired as cause:
            raise CannotSwitch(f"this command did not end within {patience_s:g} s: {command}") from cause
        if ran.returncode:
            said.seek(0)
            words = struck(said.read().decode(errors="replace")).strip()[-300:]
            raise CannotSwitch(f"this command failed with exit code {ran.returncode}: {command}\n{words}")
    return f"command: {command}"


def _call(way: Way, struck: Redactor) -> str:
    call = way.http
    assert call is not None
    try:
        answer = _requested(call, way.patience_s)
    except (Unanswered, PlanError, ValueError) as cause:
        raise CannotSwitch(f"{call.method} {call.url} failed: {struck.short(str(cause), 300)}") from cause
    if not 200 <= answer.status < 300:
        said = struck.short(answer.text(), 300)
        raise CannotSwitch(f"{call.method} {call.url} was answered {answer.status}: {said}")
    return f"{call.method} {call.url}"


def _requested(call: Call, timeout_s: float) -> Response:
    """The response to a plan's own request. Raises Unanswered, or of a URL that is none, ValueError or PlanError."""
    parts = urlsplit(call.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("its URL does not begin with http:// or https:// and a host")
    path = quote(parts.path, safe=IN_PATH) or "/"
    query = f"?{quote(parts.query, safe=IN_QUERY)}" if parts.query else ""
    origin = endpoint(f"{parts.scheme}://{parts.netloc}")
    with client_of(origin, {}, partial(context, True, None), timeout_s) as client:
        if call.body is None:
            return client.request(call.method, path + query)
        return client.send_json(call.method, path + query, call.body)


@contextmanager
def stand_of(campaign: Campaign, ui: Ui, log: Path, confirm: Confirm) -> Iterator[Stand]:
    """The stand that a campaign asks for. Raises PlanError."""
    engine = campaign.engine
    if campaign.simulated:
        yield Virtual(choose(engine.preset, engine.settings, engine.system), ui)
        return
    with Live(campaign.plan, engine, campaign.switch, ui, log, confirm) as live:
        yield live
