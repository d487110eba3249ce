"""What can be changed while the server runs: `GET` and `PATCH /inferometer/state`.

An engine says what it has through `Controls`; the rest answers 501. A change is checked as a whole before any of it is made.

| field            | is                                                                                     |
| ---------------- | -------------------------------------------------------------------------------------- |
| `max_batch`      | requests decoded together, at least 1                                                  |
| `prefill_budget` | tokens of one iteration, at least 1 (`token_budget`)                                   |
| `kv_blocks`      | blocks of the KV cache, at least 1                                                     |
| `prefix_cache`   | whether prompts are looked up in the cache                                             |
| `guardrails`     | whether input and output pass them                                                     |
| `loaded`         | whether the model is in memory (residence.py)                                          |
| `flush_cache`    | true, in a change only: forget all cached prefixes                                     |
| `reset_truth`    | true, in a change only: forget the truth log, as `DELETE /inferometer/truth` does      |

What the engine does not have is null in the answer to `GET`.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Protocol, runtime_checkable

import msgspec

from inferometer.server.engine.engine import Engine
from inferometer.server.metronome import Metronome
from inferometer.server.openai import ApiError
from inferometer.server.residence import Residence
from inferometer.server.truth import TruthLog

SETTINGS = ("max_batch", "prefill_budget", "kv_blocks", "prefix_cache", "guardrails")
"""All settings an engine may have."""

_AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


@runtime_checkable
class Controls(Protocol):
    """What an engine lets be changed while it runs."""

    def settings(self) -> dict[str, int | bool]:
        """The settings it has, of SETTINGS, and their values of this moment."""

    def change(self, changes: dict[str, int | bool]) -> None:
        """Take on these values, all or none; only settings it has are given. Raises ValueError for a value it cannot."""

    def flush_cache(self) -> None:
        """Forget all cached prefixes. Called only where it has the setting `prefix_cache`."""


_FIELDS = {"max_batch": "max_batch", "prefill_budget": "token_budget", "prefix_cache": "prefix_caching"}
"""What can be changed of engine.Engine, and what its settings call it. Each is looked at anew for every iteration."""


class _OfEngine:
    """The controls of engine.Engine. The size of its cache and its guardrails stay as they were set: requests count on them."""

    def __init__(self, engine: Engine[Any]) -> None:
        self._engine = engine

    def settings(self) -> dict[str, int | bool]:
        return {name: getattr(self._engine.settings, field) for name, field in _FIELDS.items()}

    def change(self, changes: dict[str, int | bool]) -> None:
        values: dict[str, Any] = {_FIELDS[name]: value for name, value in changes.items()}
        self._engine.change(dataclasses.replace(self._engine.settings, **values))

    def flush_cache(self) -> None:
        self._engine.flush()


class _Fixed:
    """The controls of an engine that has none."""

    def settings(self) -> dict[str, int | bool]:
        return {}

    def change(self, changes: dict[str, int | bool]) -> None:
        """There is nothing to change."""

    def flush_cache(self) -> None:
        """There is none."""


def controls_of(engine: Engine[Any] | Metronome[Any] | Controls) -> Controls:
    """The controls of an engine: its own if it has them."""
    if isinstance(engine, Engine):
        return _OfEngine(engine)
    return engine if isinstance(engine, Controls) else _Fixed()


class _Change(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body of a change."""

    max_batch: _AtLeastOne | None = None
    prefill_budget: _AtLeastOne | None = None
    kv_blocks: _AtLeastOne | None = None
    prefix_cache: bool | None = None
    guardrails: bool | None = None
    loaded: bool | None = None
    flush_cache: bool = False
    reset_truth: bool = False


class State:
    """What `/inferometer/state` shows and changes."""

    def __init__(self, controls: Controls, residence: Residence, truth: TruthLog) -> None:
        self._controls = controls
        self._residence = residence
        self._truth = truth
        self._decode = msgspec.json.Decoder(_Change).decode

    def show(self, running: int, waiting: int) -> dict[str, object]:
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
                self._controls.change(changes)
            except ValueError as error:
                raise ApiError(400, str(error)) from error
        if asked.flush_cache:
            self._controls.flush_cache()
        if asked.loaded is not None:
            (self._residence.load if asked.loaded else self._residence.unload)()
        if asked.reset_truth:
            self._truth.reset()
