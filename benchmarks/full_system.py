"""How often the interval of a maximum throughput holds the truth: the runs with a full system alone, of many seeds.

A search for the maximum spends most of its time on levels that only have to agree. What its answer and interval come of are two
runs with a full system. Here those are the reference engine's model itself, in closed loop, without client, journal and judge,
which takes a tenth of the time. Lengths are those of Synthetic-Uniform; a run has a lead-in of two requests a slot, lasts 300 s
or 500 requests, and its first tenth does not count. Its thirds go through procedures/plateau.capacity, as a search's do.

The truth is the mean of longer runs of other seeds, each adjusted for the lengths that it happened to draw (least squares of
the logarithm of throughput on those of their means, over all runs), since the workload's are known: 320 and 160 tokens.

    python -m benchmarks.full_system PRESET SEEDS [--truths N]
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
from dataclasses import dataclass

import msgspec
import numpy as np

from benchmarks.maximum import TRUTH_SEED
from benchmarks.played import measured, plan_of, stand_of
from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.summary import Summary
from inferometer.measure.steady import Steady
from inferometer.procedures.plateau import Capacity, Rung, capacity
from inferometer.procedures.setup import closed_loop, without_warm_up
from inferometer.procedures.step import Measured, PerformedRun, Run
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.presets import PRESETS
from inferometer.units import NS_PER_S

SECONDS, REQUESTS, SEED_STEP = 300.0, 500, 50
SLOTS = {"testbed": 64, "m4-laptop-8b": 64, "tiny-cpu": 512}
"""In flight where the climb ends; elsewhere 512."""
INPUT, OUTPUT = (128, 512), (64, 256)


@dataclass(frozen=True, slots=True)
class Full:
    """A run: tokens and requests per second in each third, and the lengths of the answers that ended and of all prompts."""

    output_tok_s: tuple[float, ...]
    request_s: tuple[float, ...]
    answers: np.ndarray
    prompts: np.ndarray

    @property
    def mean(self) -> float:
        """Output tokens a second."""
        return math.fsum(self.output_tok_s) / len(self.output_tok_s)


def settings_of(preset: str) -> Settings:
    """A preset as a campaign begins with it: without guardrails and without a prefix cache."""
    found = PRESETS[preset]
    return dataclasses.replace(found, prefix_caching=False, **found.guarded_by(False))  # type: ignore[arg-type]


def full(settings: Settings, slots: int, seed: int, requests: int | None = None) -> Full:
    """A closed loop. `requests`: so many, in place of SECONDS."""
    random, engine = np.random.default_rng(seed), Engine[list[int]](settings, seed)
    sent: list[list[int]] = []
    now, begun, until = 0, 0, math.inf
    times, tokens, ends = list[int](), list[int](), list[tuple[int, int, int]]()

    def send(share: float = 1.0) -> None:
        prompt, answer = (
            int(random.integers(INPUT[0], INPUT[1] + 1)),
            int(random.integers(OUTPUT[0], OUTPUT[1] + 1)),
        )
        request = [prompt, answer]
        sent.append(request)
        engine.submit(request, prompt, max(1, round(share * answer)), now)

    for slot in range(slots):
        send((slot + 1) / slots)
    while now < until:
        due = engine.next_due()
        assert due is not None
        now = due
        emission = engine.advance(now)
        assert emission is not None
        times.append(emission.at)
        tokens.append(sum(count for _, _, count, _ in emission.tokens))
        for request, _, _, end in emission.tokens:
            if end:
                ends.append((now, request[0], request[1]))
                if not begun and len(sent) >= 3 * slots:
                    begun = now
                    if requests is None:
                        until = now + max(SECONDS, _seconds(ends, now)) * NS_PER_S
                if begun and requests is not None and len(sent) >= 3 * slots + requests:
                    until = now
                send()
    edges = np.linspace(begun + 0.1 * (now - begun), now, 4)
    third_s = (edges[1] - edges[0]) / NS_PER_S
    out = np.histogram(times, bins=edges, weights=tokens)[0] / third_s
    ended = np.array([one for one in ends if one[0] >= begun])
    done = np.histogram(ended[:, 0], bins=edges)[0] / third_s
    return Full(tuple(out.tolist()), tuple(done.tolist()), ended[:, 2], ended[:, 1])


def _seconds(ends: list[tuple[int, int, int]], now: int) -> float:
    """What REQUESTS take, by the lead-in."""
    later = ends[len(ends) // 2 :]
    return REQUESTS * (now - later[0][0]) / NS_PER_S / max(1, len(later) - 1)


@functools.cache
def _any() -> Summary:
    plan = closed_loop(without_warm_up(plan_of(1)), 4, requests=20)
    return measured(stand_of("tiny-cpu"), plan)


def found(*runs: Full) -> Capacity:
    """The capacity by two runs, as a search has it: the climb's few answers are left out."""
    done = [_performed(one) for one in runs]
    top = Rung(done[0], 1, runs[0].mean, 0.0)
    return capacity([top], top, done)


def _performed(one: Full) -> PerformedRun:
    whole = _any()
    assert whole.steady is not None
    assert whole.metrics.output_tokens is not None
    told: Steady = dataclasses.replace(
        whole.steady, output_thirds_tok_s=one.output_tok_s, request_thirds_s=one.request_s
    )
    lengths = dataclasses.replace(
        whole.metrics.output_tokens,
        n=len(one.answers),
        mean=float(one.answers.mean()),
        std=float(one.answers.std()),
    )
    seen = msgspec.structs.replace(
        whole,
        steady=told,
        throughput=msgspec.structs.replace(whole.throughput, output_tok_s=one.mean),
        metrics=msgspec.structs.replace(whole.metrics, output_tokens=lengths),
    )
    step = Run(plan_of(1), "saturated", Conditions(concurrency=1), Note("climb"))
    return PerformedRun(step, Measured("run", seen))


def truth(runs: list[Full], others: list[Full]) -> tuple[float, float]:
    """Output tokens a second at the workload's mean lengths, and the standard error of that; `others` help with the slopes."""
    every = [*runs, *others]
    means = np.log(
        [(one.prompts.mean() / np.mean(INPUT), one.answers.mean() / np.mean(OUTPUT)) for one in every]
    )
    rates = np.log([one.mean for one in every])
    centred = means - means.mean(axis=0)
    slopes, *_ = np.linalg.lstsq(centred, rates - rates.mean(), rcond=None)
    left = (rates - means @ slopes)[: len(runs)]
    return float(np.exp(left.mean())), float(np.exp(left.mean()) * left.std(ddof=1) / math.sqrt(len(left)))


def main() -> None:
    """A line of JSON."""
    flags = argparse.ArgumentParser()
    flags.add_argument("preset", choices=sorted(PRESETS))
    flags.add_argument("seeds", type=int)
    flags.add_argument("--truths", type=int, default=6)
    asked = flags.parse_args()
    settings, slots = settings_of(asked.preset), SLOTS.get(asked.preset, 512)
    pairs = [
        (full(settings, slots, SEED_STEP * 100 * seed), full(settings, slots, SEED_STEP * 100 * seed + 1))
        for seed in range(1, asked.seeds + 1)
    ]
    long = [full(settings, slots, TRUTH_SEED + number, 10_000) for number in range(asked.truths)]
    true, error = truth(long, [one for pair in pairs for one in pair])
    answers = [found(*pair) for pair in pairs]
    request_s = true / float(np.mean(OUTPUT))
    held = [one.output_ci is not None and one.output_ci[0] <= true <= one.output_ci[1] for one in answers]
    also = [
        one.request_ci is not None and one.request_ci[0] <= request_s <= one.request_ci[1] for one in answers
    ]
    print(
        json.dumps(
            {
                "preset": asked.preset, "seeds": asked.seeds, "truth": true, "error": error, "request_s": request_s,
                "tokens": {
                    "worst": max(abs(one.output_tok_s / true - 1) for one in answers), "held": sum(held),
                    "half": [(one.output_ci[1] / one.output_ci[0] - 1) / 2 for one in answers if one.output_ci],
                    "answers": [one.output_tok_s for one in answers],
                },
                "requests": {
                    "worst": max(abs(one.request_s / request_s - 1) for one in answers), "held": sum(also),
                    "half": [(one.request_ci[1] / one.request_ci[0] - 1) / 2 for one in answers if one.request_ci],
                },
            }
        ),
        flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
