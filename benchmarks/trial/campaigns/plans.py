"""Plans with few samples, with odd parameters, in another order; a system that is gone half-way; plans with nothing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks.trial.campaigns.carrying import ENGINE, LENGTHS, SEED, as_on, asked, carried, honest, said
from benchmarks.trial.campaigns.situation import CAMPAIGN, NO_TRUTH, Situation, Truth, Truths, statements
from benchmarks.trial.campaigns.stands import Vanishing, plain

WITHIN = LENGTHS | {"--slo": "ttft_p99<400ms"}


def _clean() -> Iterator[Situation]:
    system = partial(plain, ENGINE)
    apart = {"prefix-cache": 10.0, "capacity": 1.0, "memory-pressure": 1.0}
    for test in (
        "throughput", "ttft", "itl", "capacity", "prefix-cache", "guardrail", "fairness", "long-context", "memory-pressure",
    ):  # fmt: skip
        wanted = asked(test)
        near = 0.35 if test == "fairness" else 0.1
        yield Situation(
            f"`{test}`", "nothing wrong", partial(said, wanted, system),
            as_on(wanted, ENGINE, near, apart.get(test, 0.0)), clean=True, quick=test == "ttft",
        )  # fmt: skip


def _few() -> Iterator[Situation]:
    family, system = "few samples", partial(plain, ENGINE)
    many = as_on(asked("ttft"), ENGINE, 0.15)
    for seed in range(1, 4):
        wanted = asked("ttft", parameters=["ttft.requests=20"])
        yield Situation(
            f"`ttft` of 20 requests, seed {seed}", family, partial(said, wanted, system, seed), many,
            ("few_samples", "no_interval", "wide_interval"), quick=seed == 1,
        )  # fmt: skip
    short = ["capacity.duration_s=1", "capacity.completions_per_slot=1"]
    for seed in range(1, 3):
        yield Situation(
            f"`capacity` by levels of a second, seed {seed}", family,
            partial(said, asked("capacity", parameters=short), system, seed), as_on(asked("capacity"), ENGINE, 0.2),
        )  # fmt: skip
        brief = ["throughput.duration_s=1", "throughput.limit_requests=20", "search.pilot_requests=20"]
        yield Situation(
            f"`throughput` by levels of a second, seed {seed}", family,
            partial(said, asked("throughput", parameters=brief), system, seed), as_on(asked("throughput"), ENGINE, 0.15),
        )  # fmt: skip
    objective = [
        "tradeoff.duration_s=1",
        "search.least_requests=20",
        "tradeoff.percent=[20, 40, 60, 80, 90, 100, 110]",
    ]
    longer = ["tradeoff.duration_s=200", objective[-1]]
    for seed in range(1, 4):
        yield Situation(
            f"P99 objective of `tradeoff` with 20 requests, seed {seed}", family,
            partial(said, asked("tradeoff", parameters=objective, flags=WITHIN), system, seed),
            as_on(asked("tradeoff", parameters=longer, flags=WITHIN), ENGINE, 0.15),
        )  # fmt: skip
    tiny = {
        "prefix-cache": ["prefix-cache.requests=20", "prefix-cache.throughput_s=1"],
        "guardrail": ["guardrail.duration_s=1", "search.least_requests=20", "guardrail.throughput_s=1"],
        "long-context": ["long-context.requests=1"],
        "itl": ["itl.requests=3"],
        "memory-pressure": [
            "memory-pressure.level_s=1",
            "memory-pressure.completions_per_slot=1",
            "memory-pressure.duration_s=1",
        ],
        "fairness": ["fairness.duration_s=1", "fairness.requests_per_class=5"],
    }
    for test, parameters in tiny.items():
        near = {"fairness": 0.35, "memory-pressure": 0.2, "long-context": 0.15}.get(test, 0.15)
        yield Situation(
            f"`{test}` with next to no requests", family, partial(said, asked(test, parameters=parameters), system),
            as_on(asked(test), ENGINE, near, 10.0 if test == "prefix-cache" else 0.0),
        )  # fmt: skip


def _odd() -> Iterator[Situation]:
    family, system = "odd parameters", partial(plain, ENGINE)
    blocks = replace(ENGINE, block_tokens=4096, kv_blocks=200)
    yield Situation(
        "`prefix-cache` with blocks of 4,096 tokens", family, partial(said, asked("prefix-cache"), partial(plain, blocks)),
        lambda: {"prefix-cache": Truth(0.0, apart=10.0)},
    )  # fmt: skip
    yield Situation(
        "`ttft` beyond what the system can do", family, partial(said, asked("ttft", parameters=["ttft.rates=[40]"]), system),
        lambda: {"ttft": NO_TRUTH}, ("no_interval", "wide_interval"), quick=True,
    )  # fmt: skip
    yield Situation(
        "`itl` at 150 % alone", family, partial(said, asked("itl", parameters=["itl.percent=[150]"]), system),
        as_on(asked("itl", parameters=["itl.percent=[150]", "itl.requests=900"]), ENGINE),
    )  # fmt: skip
    busy = replace(ENGINE, checks_on_engine=True)
    yield Situation(
        "`guardrail` at 150 % alone, filters on the engine", family,
        partial(said, asked("guardrail", parameters=["guardrail.percent=[150]"]), partial(plain, busy)),
        lambda: {"guardrail": NO_TRUTH},
    )  # fmt: skip
    one = ["tradeoff.percent=[50]", "tradeoff.most_percent=50"]
    yield Situation(
        "`tradeoff` of one level", family, partial(said, asked("tradeoff", parameters=one), system),
        lambda: {"tradeoff": NO_TRUTH}, ("peak_not_reached",),
    )  # fmt: skip
    yield Situation(
        "`ttft` levels in falling order", family, partial(said, asked("ttft", parameters=["ttft.rates=[14, 4]"]), system),
        as_on(asked("ttft", parameters=["ttft.rates=[14]", "ttft.requests=4000"]), ENGINE),
    )  # fmt: skip
    falling = ["tradeoff.percent=[110, 90, 70, 50, 20]"]
    yield Situation(
        "`tradeoff` levels in falling order", family,
        partial(said, asked("tradeoff", parameters=falling, flags=WITHIN), system),
        as_on(asked("tradeoff", flags=WITHIN), ENGINE),
    )  # fmt: skip
    yield Situation(
        "`memory-pressure` at 50 % alone", family,
        partial(said, asked("memory-pressure", parameters=["memory-pressure.percent=[50]"]), system),
        as_on(asked("memory-pressure"), ENGINE, apart=1.0),
    )  # fmt: skip


def _order() -> Iterator[Situation]:
    """The same tests by other names first: the same campaign."""
    other, usual = asked("itl", "ttft", "throughput"), asked("throughput", "ttft", "itl")

    def truths() -> Truths:
        one_by_one = statements(carried(usual, plain(ENGINE), SEED))
        return {one.test: Truth(one.value, 1e-9) for one in one_by_one if one.value is not None}

    yield Situation(
        "tests named in another order", "order", partial(said, other, partial(plain, ENGINE)), truths, clean=True,
    )  # fmt: skip
    alone = asked("itl")
    yield Situation(
        "100 % searched for, or known by `throughput`", "order",
        partial(said, asked("throughput", "itl"), partial(plain, ENGINE)),
        lambda: {"itl": Truth(honest(alone, ENGINE)["itl"])}, clean=True,
    )  # fmt: skip


def _gone() -> Iterator[Situation]:
    yield Situation(
        "gone after `throughput`", "system that is gone",
        partial(said, asked("throughput", "ttft"), partial(Vanishing, ENGINE, "ttft")),
        lambda: {"ttft": NO_TRUTH, CAMPAIGN: NO_TRUTH}, ("partial",),
    )  # fmt: skip


def situations() -> Iterator[Situation]:
    """All of them."""
    for part in (_clean, _few, _odd, _order, _gone):
        yield from part()
