"""Systems that change during a campaign, fall beyond saturation, refuse, prefer, stutter, or begin cold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.headlines.fairness import ONE_AT_A_TIME, PLANTED
from benchmarks.headlines.tradeoff import falling
from benchmarks.trial.campaigns.carrying import ENGINE, LENGTHS, STANDARD, Asked, as_on, asked, honest, said
from benchmarks.trial.campaigns.situation import CAMPAIGN, NO_TRUTH, Situation, Truth, Truths
from benchmarks.trial.campaigns.stands import Alter, Changing, Recalling, Rewriting, plain, slowing
from inferometer.server.engine.settings import Settings
from inferometer.units import NS_PER_S

TIMES = ("step_base_ns", "prefill_per_token_ns", "input_check_ns", "output_check_ns")


def slower(engine: Settings, factor: float) -> Settings:
    """Everything takes so many times as long."""
    return replace(engine, **{name: getattr(engine, name) * factor for name in TIMES})


def _after(parts: Sequence[str], factor: float) -> Alter:
    """As it is in these runs, by how their names begin; slower in all others."""
    return lambda name, number, settings: (
        settings if name.startswith(tuple(parts)) else slower(settings, factor)
    )


def changing(
    name: str,
    wanted: Asked,
    alter: Alter,
    truths: Callable[[], Truths],
    named: Sequence[str] = (),
) -> Situation:
    """An engine that changes from run to run."""
    carry_out = partial(said, wanted, partial(Changing, ENGINE, alter))
    return Situation(name, "changing system", carry_out, truths, tuple(named))


def _changing() -> Iterator[Situation]:
    long = LENGTHS | {"--output-tokens": "60"}
    gaps = asked(
        "throughput",
        "itl",
        parameters=["itl.percent=[85]", "itl.output_tokens=null", "itl.requests=500"],
        flags=long,
    )

    def first_alone() -> Truths:
        return {
            "throughput": Truth(honest(asked("throughput", flags=long), ENGINE)["throughput"]),
            CAMPAIGN: NO_TRUTH,
        }

    yield changing(
        "half as slow again after `throughput`", gaps, _after(["throughput"], 1.5), first_alone,
        ["maximum_not_sustained"],
    )  # fmt: skip
    levels = asked(
        "throughput", "ttft", parameters=["ttft.percent=[120]", "ttft.rates=[]", "ttft.requests=1500"]
    )
    yield changing(
        "a third faster after `throughput`", levels, _after(["throughput"], 0.67), lambda: {CAMPAIGN: NO_TRUTH},
        ["maximum_exceeded"],
    )  # fmt: skip

    def between() -> Truths:
        fast = honest(asked("throughput"), ENGINE)["throughput"]
        return {"throughput": Truth(0.87 * fast, 0.2)}

    yield changing(
        "2 % slower with each run of `throughput`", asked("throughput"),
        lambda name, number, settings: slower(settings, 1.02**number), between,
    )  # fmt: skip
    capacity = asked("capacity")
    yield changing(
        "a third slower after the third run of `capacity`", capacity,
        lambda name, number, settings: slower(settings, 1.0 if number < 3 else 1.33),
        as_on(capacity, slower(ENGINE, 1.33)),
    )  # fmt: skip
    caches = asked("prefix-cache")
    yield changing(
        "a third slower after the pass without a cache", caches,
        lambda name, number, settings: slower(settings, 1.33 if name.endswith(("cold", "warm", "again")) else 1.0),
        as_on(caches, ENGINE, apart=10.0), ["drifted_between"],
    )  # fmt: skip
    filters = asked("guardrail")
    yield changing(
        "a third slower after the baseline of `guardrail`", filters,
        lambda name, number, settings: slower(settings, 1.33 if settings.guarded or name.endswith("again") else 1.0),
        as_on(filters, ENGINE), ["drifted_between"],
    )  # fmt: skip


def _slowing() -> Iterator[Situation]:
    """Within a run: no latency is that of the system as it was before, or after."""
    for test, factor in (("ttft", 1.3), ("itl", 1.3)):
        yield Situation(
            f"a third slower from the middle of each run on, `{test}`", "changing system",
            partial(said, asked(test), partial(Rewriting, ENGINE, slowing(factor))), lambda test=test: {test: NO_TRUTH},  # type: ignore[misc]  # bound here
            ("drift",),
        )  # fmt: skip


def _between_runs() -> Iterator[Situation]:
    """Changes from one run of a test to the next, of which only runs at one load tell."""
    equal = ["changed_at_equal_load"]
    capacity, throughput, lengths = (asked(test) for test in ("capacity", "throughput", "long-context"))
    yield changing(
        "half as slow again in every second run of `capacity`", capacity,
        lambda name, number, settings: slower(settings, 1.5 if number % 2 else 1.0),
        lambda: {"capacity": NO_TRUTH}, equal,
    )  # fmt: skip
    yield changing(
        "half as slow again from the sixth run of `throughput` on", throughput,
        lambda name, number, settings: slower(settings, 1.0 if number < 5 else 1.5),
        lambda: {"throughput": NO_TRUTH}, equal,
    )  # fmt: skip
    for factor, does in ((1.1, "slower"), (0.9, "faster")):
        yield changing(
            f"10 % {does} with each length of `long-context`", lengths,
            lambda name, number, settings, by=factor: slower(settings, by ** max(0, number - 1)),  # type: ignore[misc]  # bound here
            as_on(lengths, ENGINE), ["drifted_between"],
        )  # fmt: skip
    levels = asked("ttft", parameters=["ttft.percent=[80]", "ttft.rates=[]"])
    yield changing(
        "half as slow again in the search for the 100 % of `ttft` alone", levels,
        lambda name, number, settings: slower(settings, 1.5 if "base" in name else 1.0),
        lambda: {"ttft": NO_TRUTH}, equal,
    )  # fmt: skip
    yield changing(
        "1.6 times as slow in the mix of `fairness`", asked("fairness"),
        lambda name, number, settings: slower(settings, 1.6 if name.endswith("mixed") else 1.0),
        lambda: {"fairness": NO_TRUTH}, ["mix_overloaded"],
    )  # fmt: skip


def _recalling() -> Iterator[Situation]:
    wanted = asked("ttft", parameters=["ttft.rates=[6, 7]"])
    yield Situation(
        "knows prompts by their ends, and says nothing", "recalled answers",
        partial(said, wanted, partial(Recalling, ENGINE)), as_on(wanted, ENGINE),
    )  # fmt: skip


def _falling() -> Iterator[Situation]:
    engine = falling("testbed").settings
    lengths = {
        "--api": "completions",
        "--input-tokens": "uniform(8,16)",
        "--output-tokens": "uniform(300,500)",
    }
    opened = asked("throughput", flags=lengths)
    codes = ("throughput_collapses", "throughput_collapses_with_backlog", "lowest_load_not_sustained")
    yield Situation(
        "half as much with 64 in flight, open loop", "falling throughput", partial(said, opened, partial(plain, engine)),
        lambda: {"throughput": NO_TRUTH}, codes,
    )  # fmt: skip
    closed = asked("throughput", parameters=["throughput.loop=closed"], flags=lengths)
    yield Situation(
        "half as much with 64 in flight, closed loop", "falling throughput", partial(said, closed, partial(plain, engine)),
        as_on(closed, engine),
    )  # fmt: skip


def _refusing() -> Iterator[Situation]:
    for limit in (1, 4):
        engine = replace(ENGINE, queue_limit=limit)
        wanted = asked("throughput")
        yield Situation(
            f"turns requests away that find {limit} waiting", "queue limit", partial(said, wanted, partial(plain, engine)),
            as_on(wanted, engine, near=0.15), ("system_never_full", "fewest_in_flight_failed"),
        )  # fmt: skip
    full = replace(ENGINE, queue_limit=1)
    busy = asked("ttft", parameters=["ttft.rates=[30]"])
    yield Situation(
        "turns away half of what `ttft` offers", "queue limit", partial(said, busy, partial(plain, full)),
        lambda: {"ttft": NO_TRUTH}, ("failures",),
    )  # fmt: skip


def _unfair() -> Iterator[Situation]:
    """Each with the index that `python -m benchmarks.headlines.fairness` finds (docs/tests.md)."""
    indices = {"in turn": 0.643, "one of two equal classes first": 0.239, "short before long": None}
    for name, (policy, lengths, percent) in PLANTED.items():
        classes = [
            f'{{"name": "{each}", "input_tokens": [{low}, {high}], "output_tokens": [16, 32], "share": {share}, '
            f'"priority": {number}}}'
            for number, (each, (low, high), share) in enumerate(
                zip(("first", "second"), lengths, (0.8, 0.2), strict=True)
            )
        ]
        wanted = asked(
            "fairness", flags=STANDARD,
            parameters=[
                f"fairness.classes=[{', '.join(classes)}]", f"fairness.percent={percent}",
                "fairness.duration_s=60", "fairness.requests_per_class=100",
            ],
        )  # fmt: skip
        index, unfair = indices[name], name != "in turn"
        truth = Truth(index, 0.5) if index is not None else None
        yield Situation(
            f"`fairness`: {name}", "scheduler",
            partial(said, wanted, partial(plain, replace(ONE_AT_A_TIME, policy=policy, draft_tokens=0, step_base_ns=2e6))),
            lambda truth=truth: {} if truth is None else {"fairness": truth},  # type: ignore[misc]  # bound here
            says=("significantly_unfair",) if unfair else (),
            never=() if unfair else ("significantly_unfair", "class_behind"),
        )  # fmt: skip


STUTTER = ", ".join(["0ms"] * 8 + ["400ms"] * 6).replace(" ", "")
"""One iteration of ten takes 400 ms longer."""


def _stuttering() -> Iterator[Situation]:
    engine = replace(ENGINE, noise=STUTTER)
    for test in ("ttft", "itl", "capacity", "throughput"):
        slow = {"ttft": ["ttft.rates=[3]"], "capacity": ["capacity.ttft_p99_ms=1500"]}.get(test, [])
        longer = {"ttft": ["ttft.requests=4000"], "itl": ["itl.requests=1000"]}.get(test, [])
        wanted, longest = asked(test, parameters=slow), asked(test, parameters=[*slow, *longer])
        yield Situation(
            f"one iteration of ten 400 ms longer, `{test}`", "two service times",
            partial(said, wanted, partial(plain, engine)), as_on(longest, engine, near=0.15),
        )  # fmt: skip


def _cold() -> Iterator[Situation]:
    late = replace(ENGINE, preloaded=False, load_ns=5e9, cold_steps=20, cold_factor=10)
    wanted = asked("ttft")
    yield Situation(
        "loads for 5 s, 20 slow iterations, `ttft`", "cold start", partial(said, wanted, partial(plain, late)),
        as_on(wanted, ENGINE), quick=True,
    )  # fmt: skip
    first = late.load_ns + late.cold_factor * honest_first_ns(late)
    yield Situation(
        "loads at the first request", "cold start", partial(said, asked("cold-start"), partial(plain, late)),
        lambda: {"cold-start": Truth(1000 * first / NS_PER_S, 0.15)}, quick=True,
    )  # fmt: skip
    early = replace(late, preloaded=True)
    yield Situation(
        "loads before it is healthy", "cold start", partial(said, asked("cold-start"), partial(plain, early)),
        lambda: {"cold-start": Truth(early.load_ns / NS_PER_S, 0.01)},
    )  # fmt: skip


def honest_first_ns(engine: Settings) -> float:
    """The first token of a request that is alone, of the mean length of the default workload."""
    return engine.step_base_ns + 320 * engine.prefill_per_token_ns


def situations() -> Iterator[Situation]:
    """All of them."""
    for part in (
        *(_changing, _slowing, _between_runs, _recalling, _falling),
        *(_refusing, _unfair, _stuttering, _cold),
    ):
        yield from part()
