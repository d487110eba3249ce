"""Campaigns carried out as the command does, in virtual time, and the headlines of the same campaign on an honest engine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.played import Silent
from benchmarks.trial.campaigns.situation import NEAR, Statement, Truth, Truths, statements
from benchmarks.trial.campaigns.stands import plain
from inferometer.documents.campaign import Campaign
from inferometer.errors import PlanError
from inferometer.plan.campaign import campaign
from inferometer.report.campaign.titles import headline
from inferometer.server.engine.settings import Settings
from inferometer.studies.campaign import carry_out, foreseen
from inferometer.studies.stand import Virtual

ENGINE = Settings(
    step_base_ns=40e6,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=80e3,
    jitter=0.05,
    max_batch=16,
    kv_blocks=20_000,
    prefix_caching=True,
    input_check_ns=30e6,
    output_check_tokens=4,
    output_check_ns=20e6,
)
"""Some 18 requests of LENGTHS a second. A prompt of 200 tokens takes 16 ms beside iterations of 40 ms."""
LENGTHS = {"--api": "completions", "--input-tokens": "uniform(100,300)", "--output-tokens": "16"}
FIXED = LENGTHS | {"--input-tokens": "200"}
STANDARD = {"--api": "completions"}
"""The default workload: of a test with classes or prefixes of its own, and where the workload is to be that."""

SIZES: dict[str, dict[str, object]] = {
    "search": {"level_s": 15, "pilot_requests": 96},
    "throughput": {"duration_s": 15, "limit_requests": 200, "limit_levels": 3, "reference_requests": 60},
    "ttft": {"requests": 1_000, "rates": [9]},
    "itl": {"requests": 150, "percent": [50], "output_tokens": 60},
    "tradeoff": {"duration_s": 30, "percent": [20, 50, 70, 90, 110], "most_percent": 120},
    "capacity": {"ttft_p99_ms": 600, "duration_s": 15, "completions_per_slot": 10, "output_tokens": 16},
    "prefix-cache": {"requests": 150, "throughput_s": 5, "output_tokens": 16},
    "guardrail": {
        "percent": [50],
        "duration_s": 20,
        "throughput_s": 10,
        "configurations": ["baseline", "input"],
    },
    "fairness": {"duration_s": 30, "requests_per_class": 40},
    "long-context": {"lengths": [512, 1024, 2048, 3072, 4096, 6144], "requests": 20, "output_tokens": 4},
    "memory-pressure": {
        "ttft_p99_ms": 600,
        "level_s": 10,
        "duration_s": 10,
        "requests": 100,
        "completions_per_slot": 10,
        "initial": 16,
        "percent": [125],
        "input_tokens": LENGTHS["--input-tokens"],
        "output_tokens": 16,
    },
}
"""Parameters by test, as a plan file has them: a twentieth of the defaults or so, for a situation takes seconds then."""
OF_THEIR_OWN = {"fairness", "prefix-cache", "cold-start"}
"""Tests that take the default workload here."""
SEED, TRUTH_SEED = 1, 987_654


@dataclass(frozen=True, slots=True)
class Asked:
    """A campaign as the command line asks for it. `parameters`: over those of SIZES."""

    names: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    flags: tuple[tuple[str, str], ...] = tuple(LENGTHS.items())
    quick: bool = False


def asked(
    *names: str, parameters: Sequence[str] = (), flags: Mapping[str, str] | None = None, quick: bool = False
) -> Asked:
    """A campaign; without flags, with the workload of its tests."""
    chosen = flags or (STANDARD if OF_THEIR_OWN & {*names} else LENGTHS)
    return Asked(names, tuple(parameters), tuple(chosen.items()), quick)


def carried(wanted: Asked, stand: Virtual, seed: int = SEED) -> Campaign:
    """The campaign's document. Raises PlanError."""
    flags = dict(wanted.flags) | {"--seed": str(seed)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = folder / "plan.json"
        plan.write_text(json.dumps({} if wanted.quick else {"tests": SIZES}), "utf-8")
        whole = campaign(
            wanted.names, plan, flags, wanted.parameters, simulated=True, quick=wanted.quick, own_system=True
        )
        foreseen(whole)
        return carry_out(whole, stand, folder, Silent(), "inferometer test").document


def said(wanted: Asked, stand: Callable[[], Virtual], seed: int = SEED) -> tuple[Statement, ...]:
    """What it says; of a plan that is refused, that."""
    try:
        return statements(carried(wanted, stand(), seed))
    except PlanError as why:
        return (Statement("-", "REFUSED", None, None, tuple(one.where for one in why.problems)),)


@lru_cache(maxsize=64)
def honest(wanted: Asked, engine: Settings, seed: int = TRUTH_SEED) -> Mapping[str, float]:
    """By test the headline of the same campaign with other requests on an engine that is as it says."""
    found = {}
    for test in carried(wanted, plain(engine), seed).tests:
        first = headline(test)
        if first is not None and isinstance(first.value, int | float):
            found[test.test] = float(first.value)
    return found


def as_on(wanted: Asked, engine: Settings, near: float = NEAR, apart: float = 0.0) -> Callable[[], Truths]:
    """The truths of a campaign: what an honest one says."""
    return lambda: {test: Truth(value, near, apart) for test, value in honest(wanted, engine).items()}
