"""How often `inferometer compare` would cry wolf, and how often it would see the wolf: sides drawn from known distributions.

A side is n runs of 300 requests: TTFT log-normal (sigma 0.6) with 2 % of the requests ten times as long, TPOT log-normal
(sigma 0.15), 8 gaps an answer, one request in a thousand fails. A seed makes its run up to some per cent slower on every side,
as its workload would; a run has its own luck besides, in one of three kinds. With a true difference, all latencies of the
second side are longer by so much. Of each comparison the deciding figures are worked out, and its
answer is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.figure import Figure, Note, at_most
from benchmarks.loads import Bench
from inferometer.documents.summary import DeclaredGuardrails, Observed, Sut
from inferometer.judge.comparison.bootstrap import Pooled, Sampled
from inferometer.judge.comparison.compare import DECIDING, FIGURES, Comparison, Criteria, Run, compare
from inferometer.judge.comparison.equivalence import Instrument, RunFacts, TokenCounting
from inferometer.plan.schema import Plan
from inferometer.plan.schema import Sut as DeclaredSut

REQUESTS, GAPS = 300, 8
SEED_SPREAD = 0.03
KINDS = ("calm", "noisy", "hiccups")
RUNS = (3, 5)
TRIALS, QUICK_TRIALS = 500, 20
FEWER = 2
"""Of the trials that are not about the null alone, one in so many."""
REPLICATES = 100
"""Of the bootstrap: fewer than in a real comparison, for speed; its interval is as wide."""
SLOWER = 0.1


def luck(kind: str, rng: np.random.Generator) -> float:
    """How much slower a run is than its system: 2 % or 8 % (standard deviations), or 40 % every tenth and else 2 %."""
    if kind == "hiccups" and rng.random() < 0.1:
        return 1.4
    return float(np.exp(rng.normal(0, 0.08 if kind == "noisy" else 0.02)))


def drawn(seed: int, slower: float, rng: np.random.Generator, *, requests: int = REQUESTS) -> Run:
    """A run that is by this factor slower than the system is on average."""
    tail = np.where(rng.random(requests) < 0.02, 10.0, 1.0)
    ttft = slower * tail * 50 * np.exp(0.6 * rng.standard_normal(requests))
    tpot = slower * 20 * np.exp(0.15 * rng.standard_normal(requests))
    gaps = np.repeat(tpot, GAPS) * np.exp(0.2 * rng.standard_normal(requests * GAPS))
    e2e = ttft + tpot * GAPS
    success = (rng.random(requests) > 0.001).astype(np.float64)
    rate = 1_600 / slower
    values = {"output_tok_s": rate, "request_s": rate / GAPS, "success_rate": float(success.mean())}
    named = {"ttft": ttft, "tpot": tpot, "e2e": e2e}
    for name, array in named.items():
        values[f"{name}_mean"] = float(array.mean())
        for p in (50, 95, 99) if name == "ttft" else (50, 99):
            values[f"{name}_p{p}"] = float(np.percentile(array, p))
    values["itl_p99"] = float(np.percentile(gaps, 99))
    pooled = {name: Pooled.one_each(array) for name, array in {**named, "success": success}.items()}
    pooled["itl"] = Pooled(gaps, np.arange(requests + 1) * GAPS)
    rates = {"output_tok_s": rate, "request_s": rate / GAPS}
    return Run(facts_of(seed), values, Sampled(requests, pooled, rates))


PLAN = Plan(sut=DeclaredSut(boundary="engine", accelerator="H100", accelerator_count=1))
SUT = Sut(
    boundary="engine",
    model_version=None,
    quantization=None,
    software=None,
    accelerator="H100",
    accelerator_count=1,
    accelerator_memory=None,
    prefix_caching=None,
    cache_state="unknown",
    guardrails=DeclaredGuardrails(input_filter=None, output_filter=None, names=()),
    notes=None,
    model="m",
    url=None,
    api="chat",
    stream=True,
    protocol="HTTP/1.1 with server-sent events",
    observed=Observed(server=None, models=()),
)


def facts_of(seed: int) -> RunFacts:
    """A run under a plan with every default, and that seed."""
    return RunFacts(
        id=f"run-{seed}",
        seed=seed,
        started_ns=seed,
        ended_ns=seed + 1,
        status="VALID",
        reasons=(),
        interrupted=False,
        simulated=False,
        fingerprint=f"sha256:{seed}",
        plan=PLAN,
        sut=SUT,
        tokens=TokenCounting("reference", "cl100k_base", "tokenizer", "direct"),
        instrument=Instrument("kernel", "0.1.0"),
    )


def trial(
    kind: str,
    runs: int,
    slower: float,
    seed: int,
    *,
    noise: bool = False,
    requests: int = REQUESTS,
    figures: Collection[str] = tuple(FIGURES),
) -> Comparison:
    """One comparison of `runs` runs a side, the second side truly slower by `slower`, with A/A runs if `noise`."""
    rng = np.random.default_rng(seed)
    shared = np.exp(rng.normal(0, SEED_SPREAD, runs))

    def side(factor: float) -> list[Run]:
        made = [
            drawn(at, factor * float(shared[at]) * luck(kind, rng), rng, requests=requests)
            for at in range(runs)
        ]
        return [
            replace(run, values={name: run.values[name] for name in figures if name in run.values})
            for run in made
        ]

    baseline, other = side(1.0), side(1.0 + slower)
    again = (tuple(side(1.0)),) if noise else ()
    return compare([baseline, other], Criteria(noise=again, seed=seed, replicates=REPLICATES))


def answer(kind: str, runs: int, slower: float, seed: int, *, noise: bool = False) -> str:
    """The outcome of one comparison, of the deciding figures alone: no other touches it."""
    return trial(kind, runs, slower, seed, noise=noise, figures=DECIDING).outcome


def null(bench: Bench) -> Iterator[Figure | Note]:
    """The share of comparisons that answer "regression" where there is none, and where all is 10 % slower."""
    trials = QUICK_TRIALS if bench.quick else TRIALS
    for kind in KINDS:
        for runs in RUNS:
            figure = partial(
                Figure, unit="%", digits=1, grid="answer: regression", line=f"{kind}, {runs} runs a side"
            )
            for label, slower, noise, goal in (
                ("no difference", 0.0, False, at_most(5)),
                ("none, with A/A", 0.0, True, at_most(5)),
                ("10 % slower", SLOWER, False, None),
            ):
                some = range(trials // (FEWER if slower or noise else 1))
                found = [answer(kind, runs, slower, at, noise=noise) for at in some]
                assert set(found) <= {"regression", "no_regression"}
                yield figure(label=label, value=100 * found.count("regression") / len(some), goal=goal)
