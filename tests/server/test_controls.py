"""What can be changed while the server runs, by the page and against engines that have more and less."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest
from serving import QUICK

from inferometer.server.controls import SETTINGS, Controls, Setting, State, controls_of
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.fixed_script import Beat, Metronome
from inferometer.server.model_loading import Residence
from inferometer.server.openai import ApiError
from inferometer.server.truth_log import Entry, TruthLog

Serve = Callable[..., int]
CHAT = {"model": "reference", "messages": [{"role": "user", "content": "x"}]}


class Richer:
    """An engine with a prefix cache and guardrails, and with blocks that cannot be changed to an odd number."""

    def __init__(self) -> None:
        self.has: dict[str, Setting] = {"kv_blocks": 8, "prefix_cache": True, "guardrails": False}
        self.flushed = 0
        self.told = 0, 0

    def settings(self) -> dict[str, Setting]:
        """What it has."""
        return dict(self.has)

    def capacity(self) -> int | None:
        """Ten tokens a block."""
        return int(self.has["kv_blocks"]) * 10

    def change(self, changes: dict[str, Setting], now: int, longest: int) -> None:
        """All or none."""
        if int(changes.get("kv_blocks", 0)) % 2:
            raise ValueError("kv_blocks must be even here")
        self.has.update(changes)
        self.told = now, longest

    def flush_cache(self, now: int) -> None:
        """Counted."""
        assert now == self.told[0]
        self.flushed += 1


def state_of(engine: Any, longest: int = 0) -> tuple[State, TruthLog, Residence]:
    truth, residence = TruthLog(1_000), Residence()
    entry = Entry("a", None, "chat", True, 1, 1, 1)
    entry.ended.append(1)
    truth.add(entry)
    return State(controls_of(engine), residence, truth, lambda: longest), truth, residence


def change(state: State, **fields: Any) -> None:
    state.change(json.dumps(fields).encode())


def refused(state: State, **fields: Any) -> int:
    with pytest.raises(ApiError) as caught:
        change(state, **fields)
    return caught.value.status


def test_the_engine_lets_its_capacity_and_its_cache_be_changed() -> None:
    """Four settings, which it takes for the next iteration."""
    engine: Engine[Any] = Engine(Settings(), 0)
    state, _, _ = state_of(engine)
    change(state, max_batch=3, prefill_budget=77, kv_blocks=5, prefix_cache=True, flush_cache=True)
    assert engine.settings == Settings(max_batch=3, token_budget=77, kv_blocks=5, prefix_caching=True)
    assert state.capacity == 5 * 16
    shown = state.show(1, 2)
    assert [shown[name] for name in SETTINGS] == [3, 77, 5, True, False]
    assert (shown["running"], shown["waiting"]) == (1, 2)


def test_guardrails_are_those_the_server_was_started_with() -> None:
    """Off is all of them off; on is all of them as they were, however often. Without any, on is 400 and says what to set."""
    guarded = Settings(input_check_ns=5, output_check_tokens=3, output_check_ns=7, refusal_share=0.5)
    engine: Engine[Any] = Engine(guarded, 0)
    state, _, _ = state_of(engine)
    for on in (True, False, False, True, False, True):
        change(state, guardrails=on)
        assert state.show(0, 0)["guardrails"] is on
        assert engine.settings.guarded is on
        assert (engine.settings == guarded) is on
    assert engine.settings == guarded
    bare: Engine[Any] = Engine(Settings(output_check_ns=7), 0)  # a check of no tokens is none
    state, _, _ = state_of(bare)
    change(state, guardrails=False)
    with pytest.raises(ApiError, match="--set input_check") as caught:
        change(state, guardrails=True, max_batch=1)
    assert caught.value.status == 400
    assert bare.settings == Settings(output_check_ns=7)


def test_guardrails_of_one_side_alone() -> None:
    """`input` and `output` each leave the other's off, whatever was on before, and are shown as asked; where the server has
    none of that side it is 400, and nothing changes."""
    guarded = Settings(input_check_ns=5, output_check_tokens=3, output_check_ns=7, refusal_share=0.5)
    engine: Engine[Any] = Engine(guarded, 0)
    state, _, _ = state_of(engine)
    sides = {
        "input": replace(guarded, output_check_tokens=0),
        "output": replace(guarded, input_check_ns=0, refusal_share=0),
    }
    for asked in ("input", "output", True, "output", False, "input", True):
        change(state, guardrails=asked)
        assert state.show(0, 0)["guardrails"] == asked
        assert engine.settings == sides.get(str(asked), guarded if asked is True else engine.settings)
        assert engine.settings.guarded is (asked is not False)
    change(state, max_batch=7)
    assert (state.show(0, 0)["guardrails"], engine.settings.max_batch) == (True, 7)
    assert refused(state, guardrails="both") == 400
    half: Engine[Any] = Engine(replace(guarded, output_check_tokens=0), 0)
    state, _, _ = state_of(half)
    with pytest.raises(ApiError, match="without output guardrails"):
        change(state, guardrails="output", max_batch=1)
    assert state.show(0, 0)["guardrails"] is True


def test_a_cache_too_small_for_a_request_under_way_is_400_and_nothing_changes() -> None:
    """Be it with the engine or, `longest`, still waiting for the model."""
    engine: Engine[Any] = Engine(Settings(), 0)
    state, truth, _ = state_of(engine, longest=60)
    assert refused(state, kv_blocks=3, max_batch=1, reset_truth=True) == 400
    key = object()
    engine.submit(key, 50, 31, 0)
    assert refused(state, kv_blocks=5, max_batch=1, reset_truth=True) == 400
    assert (engine.settings, len(truth)) == (Settings(), 1)
    change(state, kv_blocks=6)
    engine.cancel(key, 0)
    change(state, kv_blocks=4)


@pytest.mark.parametrize(
    "fields", [{"max_batch": 5}, {"prefill_budget": 5}, {"max_batch": 5, "kv_blocks": 2}]
)
def test_what_an_engine_does_not_have_is_501_and_nothing_changes(fields: dict[str, Any]) -> None:
    """Not even what stands beside it."""
    engine = Richer()
    state, truth, residence = state_of(engine)
    assert refused(state, guardrails=True, reset_truth=True, loaded=False, **fields) == 501
    assert (engine.has["guardrails"], len(truth), residence.loaded) == (False, 1, True)


def test_a_fixed_script_has_nothing_to_change() -> None:
    """But for the model and the log, which are the server's."""
    state, truth, residence = state_of(Metronome(Beat(1), 0))
    assert [state.show(0, 0)[name] for name in SETTINGS] == [None] * 5
    assert state.capacity is None
    for field in ({"max_batch": 3}, {"kv_blocks": 9}, {"guardrails": False}, {"flush_cache": True}):
        assert refused(state, **field) == 501
    change(state, loaded=False, reset_truth=True)
    assert (len(truth), residence.loaded) == (0, False)
    change(state, loaded=True)
    assert residence.loaded


def test_a_richer_engine_speaks_for_itself() -> None:
    """Through the protocol, with the instant and what still waits; its own refusals are 400."""
    engine = Richer()
    assert isinstance(engine, Controls)
    state, _, residence = state_of(engine, longest=9)
    residence.tell(123)
    change(state, kv_blocks=4, prefix_cache=False, guardrails=True, flush_cache=True)
    assert engine.has == {"kv_blocks": 4, "prefix_cache": False, "guardrails": True}
    assert (engine.flushed, engine.told, state.capacity) == (1, (123, 9), 40)
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
        assert client.patch(path, json={"guardrails": True}).status_code == 400
        body = {"model": "reference", "prompt": "x", "max_tokens": 5}
        assert client.post("/v1/completions", json=body).json()["usage"]["completion_tokens"] == 5
        assert client.get(path).json()["truth"] == {"requests": 1, "forgotten": 0}
        assert client.patch(path, json={"reset_truth": True}).json()["truth"]["requests"] == 0
        assert client.delete(path).status_code == 405


def client_of(port: int) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60)


def test_how_long_a_request_may_be_follows_the_cache(serve: Serve) -> None:
    """In every list and every interface; growing ends at --max-model-len, and block by block a request fits or is 400."""
    port = serve(engine=replace(QUICK, kv_blocks=4, draft_tokens=2), max_model_len=100)
    path = "/inferometer/state"
    with client_of(port) as client:
        for blocks, limit in ((4, 62), (2, 30), (6, 94), (50, 100)):
            assert client.patch(path, json={"kv_blocks": blocks}).json()["kv_blocks"] == blocks
            assert client.get("/v1/models").json()["data"][0]["max_model_len"] == limit
            assert client.get("/api/ps").json()["models"][0]["context_length"] == limit
            for more, status in ((0, 200), (1, 400)):
                length = limit - 20 + more
                answers = [
                    client.post("/v1/completions", json={"prompt": [7] * 20, "max_tokens": length}),
                    client.post("/v1/responses", json={"input": "x", "max_output_tokens": length + 12}),
                    client.post(
                        "/api/chat",
                        json=CHAT | {"stream": False, "options": {"num_predict": length + 12}},
                    ),
                ]
                assert [answer.status_code for answer in answers] == [status] * 3
            assert answers[0].json()["error"]["code"] == "context_length_exceeded"


def test_everything_can_be_changed_under_streams(serve: Serve) -> None:
    """Thirty streams, half of them preempted by a cache that shrinks and grows, checks that come and go: each is whole."""
    engine = replace(
        QUICK, step_base_ns=500_000, kv_blocks=200, output_check_tokens=3, output_check_ns=2_000_000
    )
    port = serve(engine=engine)
    path = "/inferometer/state"

    def stream(client: httpx.Client) -> str:
        body = CHAT | {"max_tokens": 60, "stream": True, "stream_options": {"include_usage": True}}
        return client.post("/v1/chat/completions", json=body).text

    with client_of(port) as client, ThreadPoolExecutor(30) as pool:
        answers = [pool.submit(stream, client) for _ in range(30)]
        for turn in range(200):
            if all(answer.done() for answer in answers):
                break
            fields = {
                "kv_blocks": (20, 200)[turn % 2],
                "guardrails": turn % 3 == 0,
                "max_batch": (64, 3)[turn % 4 == 3],
            }
            assert client.patch(path, json=fields | {"flush_cache": True}).status_code == 200
        for answer in answers:
            *_, usage, done = answer.result().strip().split("\n\n")
            assert (json.loads(usage[6:])["usage"]["completion_tokens"], done) == (60, "data: [DONE]")
        rows = [json.loads(line) for line in client.get("/inferometer/truth").text.splitlines()]
        for row in rows:
            assert row["outcome"] == "finished"
            assert len(row["model_ns"]) == len(row["sent_ns"]) == 60
            assert row["model_ns"] == sorted(row["model_ns"])
        assert client.patch(path, json={"kv_blocks": 1}).json()["kv_blocks"] == 1


def test_a_request_that_waits_for_the_model_holds_the_cache_at_its_size(serve: Serve) -> None:
    """It was let in, so a cache that could not hold it is 400; a smaller one that can is not."""
    port = serve(cold=True, load_ns=500_000_000)
    with client_of(port) as client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.post, "/v1/completions", json={"prompt": [7] * 20, "max_tokens": 20})
        path = "/inferometer/state"
        while not client.get(path).json()["loaded"]:
            assert not answer.done()
        assert client.patch(path, json={"kv_blocks": 2}).status_code == 400
        assert client.patch(path, json={"kv_blocks": 3}).status_code == 200
        assert answer.result().json()["usage"]["completion_tokens"] == 20
        assert client.patch(path, json={"kv_blocks": 2}).status_code == 200


def test_those_who_wait_for_the_model_are_refused_at_once_or_served(serve: Serve) -> None:
    """A queue of two and a batch of one: of five that come while it loads, two are served, three are told before anything else
    is sent, and none is cut off."""
    port = serve(
        cold=True, load_ns=500_000_000, engine=replace(QUICK, max_batch=1, queue_limit=2), reject_status=429
    )
    body = CHAT | {"max_tokens": 5, "stream": True}
    with client_of(port) as client, ThreadPoolExecutor(5) as pool:
        answers = [pool.submit(client.post, "/v1/chat/completions", json=body) for _ in range(5)]
        found = sorted(answer.result().status_code for answer in answers)
        assert found == [200, 200, 429, 429, 429]
        rows = [json.loads(line) for line in client.get("/inferometer/truth").text.splitlines()]
        assert [row["outcome"] for row in rows] == ["finished"] * 2


@pytest.mark.parametrize("value", [1 << 31, 2**70, 10**310, 10**4000])
@pytest.mark.parametrize("name", ["max_batch", "prefill_budget", "kv_blocks"])
def test_a_setting_has_a_largest_value(name: str, value: int) -> None:
    """Law: a larger one is the request's fault, however many digits it has, and changes nothing."""
    engine: Engine[Any] = Engine(Settings(), 0)
    state, _, _ = state_of(engine)
    before = engine.settings
    assert refused(state, **{name: value}) == 400
    assert engine.settings == before
    change(state, **{name: (1 << 31) - 1})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {**CHAT, "max_tokens": ...}),
        ("/v1/chat/completions", {**CHAT, "priority": ...}),
        ("/v1/chat/completions", {**CHAT, "n": ...}),
        ("/v1/completions", {"model": "reference", "prompt": [...]}),
        ("/v1/responses", {"model": "reference", "input": "x", "max_output_tokens": ...}),
        ("/v1/responses", {"model": "reference", "input": "x", "priority": ...}),
        ("/v1/messages", {**CHAT, "max_tokens": ...}),
        ("/v1/messages", {**CHAT, "max_tokens": 1, "priority": ...}),
        ("/api/generate", {"model": "reference", "prompt": "x", "options": {"num_predict": ...}}),
        ("/api/chat", {**CHAT, "options": {"priority": ...}}),
        ("/api/generate", {"model": "reference", "prompt": "x", "context": [...]}),
    ],
)
def test_no_number_of_a_request_is_the_servers_fault(serve: Serve, path: str, body: dict[str, Any]) -> None:
    """Law: one of any length is answered with 400, and the server goes on."""
    port = serve()
    for number in (2**70, 10**310, 10**4000):
        text = json.dumps(body, default=lambda _: "").replace('""', str(number))
        answer = httpx.post(f"http://127.0.0.1:{port}{path}", content=text, timeout=60)
        assert answer.status_code == 400, answer.text
