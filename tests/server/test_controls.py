"""What can be changed while the server runs, by the page and against engines that have more and less."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from inferometer.server.controls import Controls, State, controls_of
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.metronome import Beat, Metronome
from inferometer.server.openai import ApiError
from inferometer.server.residence import Residence
from inferometer.server.truth import Entry, TruthLog

Serve = Callable[..., int]


class Richer:
    """An engine with a prefix cache and guardrails, and with blocks that cannot be changed to an odd number."""

    def __init__(self) -> None:
        self.has: dict[str, int | bool] = {"kv_blocks": 8, "prefix_cache": True, "guardrails": False}
        self.flushed = 0

    def settings(self) -> dict[str, int | bool]:
        """What it has."""
        return dict(self.has)

    def change(self, changes: dict[str, int | bool]) -> None:
        """All or none."""
        if changes.get("kv_blocks", 0) % 2:
            raise ValueError("kv_blocks must be even here")
        self.has.update(changes)

    def flush_cache(self) -> None:
        """Counted."""
        self.flushed += 1


def state_of(engine: Any) -> tuple[State, TruthLog, Residence]:
    truth, residence = TruthLog(1_000), Residence()
    entry = Entry("a", None, "chat", True, 1, 1, 1)
    entry.ended.append(1)
    truth.add(entry)
    return State(controls_of(engine), residence, truth), truth, residence


def change(state: State, **fields: Any) -> None:
    state.change(json.dumps(fields).encode())


def refused(state: State, **fields: Any) -> int:
    with pytest.raises(ApiError) as caught:
        change(state, **fields)
    return caught.value.status


def test_the_engine_lets_its_capacity_and_its_cache_be_changed() -> None:
    """Three settings; it takes them for the next operation, and shows null for what it does not have."""
    engine: Engine[Any] = Engine(Settings(), 0)
    state, _, _ = state_of(engine)
    change(state, max_batch=3, prefill_budget=77, prefix_cache=True, flush_cache=True)
    assert engine.settings == Settings(max_batch=3, token_budget=77, prefix_caching=True)
    shown = state.show(1, 2)
    assert (shown["max_batch"], shown["kv_blocks"], shown["prefix_cache"]) == (3, None, True)
    assert (shown["running"], shown["waiting"]) == (1, 2)


@pytest.mark.parametrize(
    "fields", [{"kv_blocks": 5}, {"guardrails": True}, {"kv_blocks": 5, "guardrails": False}]
)
def test_what_an_engine_does_not_have_is_501_and_nothing_changes(fields: dict[str, Any]) -> None:
    """Not even what stands beside it."""
    engine: Engine[Any] = Engine(Settings(), 0)
    state, truth, residence = state_of(engine)
    assert refused(state, max_batch=1, reset_truth=True, loaded=False, **fields) == 501
    assert (engine.settings, len(truth), residence.loaded) == (Settings(), 1, True)


def test_a_fixed_script_has_nothing_to_change() -> None:
    """But for the model and the log, which are the server's."""
    state, truth, residence = state_of(Metronome(Beat(1), 0))
    assert refused(state, max_batch=3) == 501
    change(state, loaded=False, reset_truth=True)
    assert (len(truth), residence.loaded) == (0, False)
    change(state, loaded=True)
    assert residence.loaded


def test_a_richer_engine_speaks_for_itself() -> None:
    """Through the protocol; its own refusals are 400."""
    engine = Richer()
    assert isinstance(engine, Controls)
    state, _, _ = state_of(engine)
    change(state, kv_blocks=4, prefix_cache=False, guardrails=True, flush_cache=True)
    assert engine.has == {"kv_blocks": 4, "prefix_cache": False, "guardrails": True}
    assert engine.flushed == 1
    assert refused(state, kv_blocks=3, flush_cache=True) == 400
    assert engine.flushed == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff", b'{"max_batch":0}', b'{"max_batch":"3"}', b'{"max_batch":1.5}', b'{"batch":3}',
     b'{"loaded":1}', b'{"prefix_cache":"on"}'],
)  # fmt: skip
def test_a_wrong_body_is_refused(body: bytes) -> None:
    """400, a name that is not known included."""
    state, _, _ = state_of(Engine(Settings(), 0))
    with pytest.raises(ApiError) as caught:
        state.change(body)
    assert caught.value.status == 400


def test_the_endpoint_shows_what_it_has_changed(serve: Serve) -> None:
    """GET, PATCH and PUT agree; the answers that follow are still whole."""
    port = serve()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
        path = "/inferometer/state"
        before = client.get(path).json()
        assert before["loaded"] is True
        for method, size in (("PATCH", 1), ("PUT", 2)):
            after = client.request(method, path, json={"max_batch": size}).json()
            assert after == {**before, "max_batch": size} == client.get(path).json()
        assert client.patch(path, json={"guardrails": True}).status_code == 501
        body = {"model": "reference", "prompt": "x", "max_tokens": 5}
        assert client.post("/v1/completions", json=body).json()["usage"]["completion_tokens"] == 5
        assert client.get(path).json()["truth"] == {"requests": 1, "forgotten": 0}
        assert client.patch(path, json={"reset_truth": True}).json()["truth"]["requests"] == 0
        assert client.delete(path).status_code == 405
