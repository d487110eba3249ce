"""What can be changed while the server runs: `GET` and `PATCH /inferometer/state`.

An engine says what it has through `Controls`, a compound system what tests switch; the rest answers 501. A change is checked as
a whole before any of it is made.

| field            | is                                                                                     |
| ---------------- | -------------------------------------------------------------------------------------- |
| `max_batch`      | requests decoded together, at least 1                                                  |
| `prefill_budget` | tokens of one iteration, at least 1 (`token_budget`)                                   |
| `kv_blocks`      | blocks of the KV cache, at least 1                                                     |
| `prefix_cache`   | whether prompts are looked up in the cache                                             |
| `guardrails`     | whether input and output pass those that the server was started with; or `input`, `output` |
| `loaded`         | whether the model is in memory (model_loading.py)                                          |
| `flush_cache`    | true, in a change only: forget all cached prefixes                                     |
| `reset_truth`    | true, in a change only: forget the truth log, as `DELETE /inferometer/truth` does      |

Whole numbers are 2^31 - 1 at most. What the engine does not have is null in the answer to `GET`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import msgspec

from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import GUARDRAILS, LARGEST, Guards
from inferometer.server.fixed_script import Metronome
from inferometer.server.http_reply import JsonObject
from inferometer.server.model_loading import Residence
from inferometer.server.openai import ApiError
from inferometer.server.systems.compound import Compound
from inferometer.server.systems.settings import guarded_by
from inferometer.server.truth_log import TruthLog

SETTINGS = ("max_batch", "prefill_budget", "kv_blocks", "prefix_cache", "guardrails")
"""All settings an engine may have."""

Setting = int | bool | str

_AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]


@runtime_checkable
class Controls(Protocol):
    """What an engine lets be changed while it runs."""

    def settings(self) -> dict[str, Setting]:
        """The settings it has, of SETTINGS, and their values of this moment."""

    def capacity(self) -> int | None:
        """The longest prompt and answer together that its cache holds at this moment, in tokens; None: any."""

    def change(self, changes: dict[str, Setting], now: int, longest: int) -> None:
        """Take on these values at `now` (ns), all or none; only settings it has are given. Raises ValueError for a value it
        cannot. `longest`: tokens of the longest request that has been let in and is still to come.
        """

    def flush_cache(self, now: int) -> None:
        """Forget all cached prefixes. Called only where it has the setting `prefix_cache`."""


_FIELDS = {
    "max_batch": "max_batch",
    "prefill_budget": "token_budget",
    "kv_blocks": "kv_blocks",
    "prefix_cache": "prefix_caching",
}
"""What can be changed of engine.Engine by a value, and what its settings call it. Each is looked at anew in every iteration."""


class _OfEngine:
    """The controls of engine.Engine. Its guardrails are those it has when this is made: switched off, they are remembered."""

    def __init__(self, engine: Engine[Any]) -> None:
        self._engine = engine
        self._full = engine.settings
        self._guards: Guards = engine.settings.guarded

    def settings(self) -> dict[str, Setting]:
        settings = self._engine.settings
        return {
            **{name: getattr(settings, field) for name, field in _FIELDS.items()},
            "guardrails": self._guards,
        }

    def capacity(self) -> int | None:
        return self._engine.settings.capacity_tokens

    def change(self, changes: dict[str, Setting], now: int, longest: int) -> None:
        values: dict[str, Any] = {_FIELDS[name]: value for name, value in changes.items() if name in _FIELDS}
        guards: Any = changes.get("guardrails", self._guards)
        if "guardrails" in changes:
            values |= self._full.guarded_by(guards)
        engine = self._engine
        engine.change(dataclasses.replace(engine.settings, **values), max(now, engine.now), longest)
        self._guards = guards

    def flush_cache(self, now: int) -> None:
        self._engine.flush(max(now, self._engine.now))


class _OfSystem:
    """The controls of a compound system: what tests switch. Guardrails are its own and its engine's; tasks under way keep those
    of its own that they began with."""

    def __init__(self, system: Compound[Any]) -> None:
        self._system = system
        self._full, self._of_engine = system.settings, system.engine.settings
        self._guards: Guards = any(system.settings.guards(system.name)) or system.engine.settings.guarded

    def settings(self) -> dict[str, Setting]:
        return {
            "prefix_cache": self._system.engine.settings.prefix_caching,
            "guardrails": self._guards,
        }

    def capacity(self) -> int | None:
        return None  # a call that the engine cannot hold fails its task

    def change(self, changes: dict[str, Setting], now: int, longest: int) -> None:
        del longest  # the cache keeps its size
        system, engine = self._system, self._system.engine
        guards: Any = changes.get("guardrails", self._guards)
        settings = system.settings
        values: dict[str, Any] = {
            "prefix_caching": changes.get("prefix_cache", engine.settings.prefix_caching)
        }
        if "guardrails" in changes:
            settings, guarded = guarded_by(system.name, self._full, self._of_engine, guards)
            values |= {name: getattr(guarded, name) for name in GUARDRAILS}
        engine.change(dataclasses.replace(engine.settings, **values), max(now, engine.now))
        system.change(settings)
        self._guards = guards

    def flush_cache(self, now: int) -> None:
        self._system.engine.flush(max(now, self._system.engine.now))


class _Fixed:
    """The controls of an engine that has none."""

    def settings(self) -> dict[str, Setting]:
        return {}

    def capacity(self) -> int | None:
        return None

    def change(self, changes: dict[str, Setting], now: int, longest: int) -> None:
        """There is nothing to change."""

    def flush_cache(self, now: int) -> None:
        """There is none."""


def controls_of(engine: Engine[Any] | Metronome[Any] | Compound[Any] | Controls) -> Controls:
    """The controls of an engine: its own if it has them."""
    if isinstance(engine, Engine):
        return _OfEngine(engine)
    if isinstance(engine, Compound):
        return _OfSystem(engine)
    return engine if isinstance(engine, Controls) else _Fixed()


class _Change(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body of a change."""

    max_batch: _AtLeastOne | None = None
    prefill_budget: _AtLeastOne | None = None
    kv_blocks: _AtLeastOne | None = None
    prefix_cache: bool | None = None
    guardrails: bool | Literal["input", "output"] | None = None
    loaded: bool | None = None
    flush_cache: bool = False
    reset_truth: bool = False


class State:
    """What `/inferometer/state` shows and changes. `longest`: tokens, prompt and answer together, of the longest request that
    waits for the model and is not with the engine yet; 0 if there is none. Changes happen at the instant that `residence` was
    told last.
    """

    def __init__(
        self, controls: Controls, residence: Residence, truth: TruthLog, longest: Callable[[], int]
    ) -> None:
        self._controls = controls
        self._longest = longest
        self._residence = residence
        self._truth = truth
        self._decode = msgspec.json.Decoder(_Change).decode

    @property
    def capacity(self) -> int | None:
        """The longest prompt and answer together that the engine can take now, in tokens; None: any."""
        return self._controls.capacity()

    @property
    def starting(self) -> bool:
        """The model is loaded for the first time, before the server says that it is well."""
        return self._residence.starting

    @property
    def loaded(self) -> bool:
        """The model is in memory, or on its way there."""
        return self._residence.loaded

    def switch(self, loaded: bool) -> None:
        """Load the model, or let it go once nobody uses it."""
        (self._residence.load if loaded else self._residence.unload)()

    def show(self, running: int, waiting: int) -> JsonObject:
        """Everything, with the engine's queue of this moment."""
        settings = self._controls.settings()
        return {
            **{name: settings.get(name) for name in SETTINGS},
            "loaded": self._residence.loaded,
            "load_ns": self._residence.load_ns,
            "running": running,
            "waiting": waiting,
            "truth": {"requests": len(self._truth), "forgotten": self._truth.forgotten},
        }

    def change(self, body: bytes) -> None:
        """Make the changes that a body asks for. Raises ApiError, and then nothing has changed."""
        try:
            asked = self._decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ApiError(400, f"the request body is not as it should be: {error}") from error
        settings = self._controls.settings()
        changes = {name: value for name in SETTINGS if (value := getattr(asked, name)) is not None}
        missing = [name for name in changes if name not in settings]
        if asked.flush_cache and "prefix_cache" not in settings:
            missing.append("flush_cache")
        if missing:
            raise ApiError(501, f"this engine has no {', no '.join(missing)}", missing[0], "not_implemented")
        if changes:
            try:
                self._controls.change(changes, self._residence.now, self._longest())
            except ValueError as error:
                raise ApiError(400, str(error)) from error
        if asked.flush_cache:
            self._controls.flush_cache(self._residence.now)
        if asked.loaded is not None:
            self.switch(asked.loaded)
        if asked.reset_truth:
            self._truth.reset()
