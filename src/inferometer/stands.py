"""Test stands: where a system is measured, and brought into the states that tests ask for.

| stand     | measures with | switches                                                                             |
| --------- | ------------- | ------------------------------------------------------------------------------------ |
| `Live`    | conductor     | the reference engine by itself, anything else by the plan's ways (plan/switching.py) |
| `Virtual` | simulator     | the engine's settings                                                                |

A state that the system confirms is `verified`. One that only a command, a call or a person was told to make is `declared`.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx

from inferometer.conductor import Finding, Ui, conduct
from inferometer.drive.probe import endpoint
from inferometer.drive.secret import headers, read_key
from inferometer.errors import CannotSwitch, PeerError
from inferometer.plan.campaign import Campaign, EngineChoice
from inferometer.plan.schema import Plan, Target
from inferometer.plan.switching import Switching, Way
from inferometer.procedures.step import Switched
from inferometer.server.embedded import Embedded
from inferometer.server.engine.settings import Guards, Settings
from inferometer.server.wire import PRODUCT
from inferometer.simulation.engine import Chosen, choose
from inferometer.simulator import simulate

ANSWER_S = 10.0
POLL_S = 0.5

START = {"prefix_cache": "disabled", "guardrails": "baseline"}
"""How the reference engine begins a campaign, and what it is brought back to after each test."""

Asked = Callable[[str], None]
"""Shows a person what is to be done, and returns when it is done. Raises EOFError when there is nobody."""


class Stand(Protocol):
    """Where a campaign takes place."""

    simulated: bool

    def measure(self, plan: Plan, out: Path) -> Finding:
        """Carry a plan out; its folder lies in `out`. Raises PeerError, PlanError."""

    def switch(self, what: str, state: str) -> Switched:
        """Bring the system into a state. Raises CannotSwitch, PeerError."""

    def usual(self, what: str) -> str | None:
        """The state that a system is in when no test asks for another; None: not known."""


class Virtual:
    """An engine in virtual time. Each run has an engine of its own, so a cache is never left filled by the run before."""

    simulated = True

    def __init__(self, engine: Chosen, ui: Ui) -> None:
        self._full, self._engine, self._ui = engine.settings, engine, ui
        for what, state in START.items():
            self.switch(what, state)

    def usual(self, what: str) -> str | None:
        """See Stand."""
        return START.get(what)

    def measure(self, plan: Plan, out: Path) -> Finding:
        """See Stand."""
        return simulate(plan, self._engine, out, self._ui)

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        if what == "prefix_cache":
            changes: dict[str, Any] = {"prefix_caching": state != "disabled"}
        elif what == "guardrails":
            changes = _guards(self._full, state)
        else:
            raise CannotSwitch(f"a simulated engine has no {what} to be {state}")
        self._engine = Chosen(self._engine.preset, dataclasses.replace(self._engine.settings, **changes))
        return Switched("verified", "setting of the simulated engine")


def _guards(full: Settings, state: str) -> dict[str, float]:
    """The guardrail settings of a configuration, of an engine whose production has all of `full`. Raises CannotSwitch."""
    try:
        return full.guarded_by(_GUARDS[state])
    except ValueError as why:
        raise CannotSwitch(str(why)) from why


class Live:
    """A server over the network, or the embedded reference server, which runs as long as the stand. Use as a context
    manager."""

    simulated = False

    def __init__(
        self, plan: Plan, engine: EngineChoice, switching: Switching, ui: Ui, log: Path, asked: Asked
    ) -> None:
        self._plan, self._switching, self._ui, self._asked = plan, switching, ui, asked
        self._stack = ExitStack()
        self._embedded = None
        if plan.target.url is None:
            choose(
                engine.preset, engine.settings
            )  # refuses what makes no engine, before a process is started
            flags = [
                "--preset",
                engine.preset,
                *(word for setting in engine.settings for word in ("--set", setting)),
            ]
            self._embedded = self._stack.enter_context(Embedded(log, *flags))
            for what, state in START.items():
                self._by_itself(what, state)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def usual(self, what: str) -> str | None:
        """See Stand. Of a server over the network, what its plan declares."""
        if self._embedded is not None:
            return START.get(what)
        sut = self._plan.sut
        if what == "prefix_cache":
            return sut.prefix_caching
        filters = sut.guardrails.input_filter, sut.guardrails.output_filter
        return _FILTERS.get(filters) if what == "guardrails" else None

    def measure(self, plan: Plan, out: Path) -> Finding:
        """See Stand."""
        return conduct(plan, out, self._ui, embedded=self._embedded)

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        way = self._switching.way(what, state)
        if way is not None:
            return self._by_way(way, what, state)
        if what != "server" and self._is_ours():
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

    def _client(self) -> httpx.Client:
        target: Target = self._plan.target
        verify: Any = target.tls_ca_file or target.tls_verify
        own = headers(target, read_key(target, os.environ))
        return httpx.Client(base_url=self._url(), headers=own, verify=verify, timeout=ANSWER_S)

    def _is_ours(self) -> bool:
        try:
            with self._client() as client:
                answer = client.get("/inferometer/state")
        except httpx.HTTPError:
            return False
        return answer.status_code == 200 and answer.headers.get("server", "").startswith(PRODUCT)

    def _by_itself(self, what: str, state: str) -> Switched:
        """The reference engine: told, and asked afterwards."""
        wanted: dict[str, Any] = (
            {"prefix_cache": state != "disabled"}
            if what == "prefix_cache"
            else {"guardrails": _GUARDS[state]}
        )
        told = wanted | ({"flush_cache": True} if what == "prefix_cache" else {})
        try:
            with self._client() as client:
                answer = client.patch("/inferometer/state", json=told)
                seen = client.get("/inferometer/state").json()
        except (httpx.HTTPError, ValueError) as cause:
            raise PeerError(f"the reference engine does not answer: {cause}") from cause
        if answer.status_code != 200 or any(seen.get(key) != value for key, value in wanted.items()):
            raise CannotSwitch(f"the reference engine does not switch {what} to {state}: {answer.text[:300]}")
        shown = ", ".join(f"{key} {value}" for key, value in wanted.items())
        return Switched("verified", "the reference engine, by /inferometer/state", f"it shows: {shown}")

    def _by_way(self, way: Way, what: str, state: str) -> Switched:
        if way.command is not None:
            how = _command(way.command, way.patience_s)
        elif way.http is not None:
            how = _call(way)
        else:
            assert way.ask is not None
            try:
                self._asked(way.ask)
            except EOFError as cause:
                raise CannotSwitch(f"{what}: {state} asks a person, and there is none: {way.ask}") from cause
            how = "a person, who was asked"
        if (what, state) != ("server", "stopped"):
            self._wait(way.patience_s, what, state)
        return Switched("declared", how)

    def _wait(self, patience_s: float, what: str, state: str) -> None:
        """Until the server answers; a restart takes its time. Raises CannotSwitch."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            try:
                with self._client() as client:
                    if client.get("/v1/models").status_code < 500:
                        return
            except httpx.HTTPError:
                pass
            time.sleep(POLL_S)
        raise CannotSwitch(
            f"the server did not answer within {patience_s:g} s after {what} was switched to {state}"
        )


_FILTERS: dict[tuple[bool | None, bool | None], str] = {
    (False, False): "baseline",
    (True, False): "input",
    (False, True): "output",
    (True, True): "full",
}
_GUARDS: dict[str, Guards] = {"baseline": False, "input": "input", "output": "output", "full": True}


def _command(command: str, patience_s: float) -> str:
    """Run it by the shell, as a plan's author would; what it says is told only if it fails. Raises CannotSwitch."""
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
            words = said.read().decode(errors="replace").strip()[-300:]
            raise CannotSwitch(f"this command failed with exit code {ran.returncode}: {command}\n{words}")
    return f"command: {command}"


def _call(way: Way) -> str:
    call = way.http
    assert call is not None
    try:
        answer = httpx.request(call.method, call.url, json=call.body, timeout=way.patience_s)
    except (httpx.HTTPError, httpx.InvalidURL) as cause:
        raise CannotSwitch(f"{call.method} {call.url} failed: {cause}") from cause
    if not answer.is_success:
        raise CannotSwitch(f"{call.method} {call.url} was answered {answer.status_code}: {answer.text[:300]}")
    return f"{call.method} {call.url}"


@contextmanager
def stand_of(whole: Campaign, ui: Ui, log: Path, asked: Asked) -> Iterator[Stand]:
    """The stand that a campaign asks for. Raises PlanError."""
    engine = whole.engine
    if whole.simulated:
        yield Virtual(choose(engine.preset, engine.settings), ui)
        return
    with Live(whole.plan, engine, whole.switch, ui, log, asked) as live:
        yield live
