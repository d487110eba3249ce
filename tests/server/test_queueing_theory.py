"""The engine with one place against queueing theory: mean waiting times of long simulated runs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings

ONE_PLACE = Settings(
    step_base_ns=1,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=1_000,
    jitter=0,
    max_batch=1,
    token_budget=10**9,
    kv_blocks=10**9,
)
MEAN = 1_000  # tokens of a prompt, so that a mean service takes 1 ms
REQUESTS = 150_000


def mean_waiting(load: float, exponential: bool, engine: Settings = ONE_PLACE) -> float:
    """In units of the mean service: Poisson arrivals, answers of one token, service by prompt length."""
    draw = random.Random(11)
    model: Engine[object] = Engine(engine, 0)
    at, waited = 0.0, 0.0
    mean = MEAN * engine.prefill_per_token_ns
    arrived: dict[object, tuple[int, float]] = {}
    for number in range(REQUESTS):
        at += draw.expovariate(load / mean)
        now = round(at)
        while (due := model.next_due()) is not None and due <= now:
            waited += ended(model, due, arrived)
        tokens = max(1, round(draw.expovariate(1 / MEAN))) if exponential else MEAN
        arrived[number] = now, tokens * engine.prefill_per_token_ns
        model.submit(key(number), tokens, 1, now)
    while (due := model.next_due()) is not None:
        waited += ended(model, due, arrived)
    assert not arrived
    return waited / REQUESTS / mean


KEYS: dict[int, object] = {}


def key(number: int) -> object:
    """One object for each number: keys are compared by identity."""
    return KEYS.setdefault(number, number)


def ended(model: Engine[object], due: int, arrived: dict[object, tuple[int, float]]) -> float:
    """How long those had waited who end now."""
    emission = model.advance(max(due, model.now))
    assert emission is not None
    waited = 0.0
    for number, _, _, _ in emission.tokens:
        arrival, service = arrived.pop(number)
        waited += emission.at - arrival - service
    return waited


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_fixed_service_waits_as_in_m_d_1(load: float) -> None:
    """Pollaczek and Khinchine: W = load / (2 (1 - load)) services."""
    assert mean_waiting(load, exponential=False) == pytest.approx(load / (2 * (1 - load)), rel=0.03)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_exponential_service_waits_as_in_m_m_1(load: float) -> None:
    """W = load / (1 - load) services."""
    assert mean_waiting(load, exponential=True) == pytest.approx(load / (1 - load), rel=0.03)


def test_cutting_prompts_changes_nothing_for_a_lone_place() -> None:
    """Chunks of 250 tokens, whose steps cost next to nothing: the same M/D/1."""
    assert mean_waiting(0.6, False, replace(ONE_PLACE, token_budget=250)) == pytest.approx(0.75, rel=0.03)
