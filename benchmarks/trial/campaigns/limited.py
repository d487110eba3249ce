"""Systems with a budget: tokens at full speed that are used up and come back with time, as those of burstable machines and of
rate limits; and prefix caches with room for less than what requests share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.played import Silent
from benchmarks.trial.campaigns.carrying import ENGINE, as_on, asked, said
from benchmarks.trial.campaigns.situation import NO_TRUTH, Situation
from benchmarks.trial.campaigns.stands import PRESET, plain
from benchmarks.trial.campaigns.systems import slower
from inferometer.plan.schema import Plan
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.server.engine.emission import Emission
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.simulation.generation import Generation
from inferometer.studies.stand import Virtual
from inferometer.units import NS_PER_S

FAMILY = "budget"
FULL_TOK_S = 288.0
"""Output tokens per second of ENGINE, saturated."""
FACTOR = 2.0
"""How many times as long everything takes once the budget is used up."""


@dataclass(slots=True)
class Budget:
    """Tokens at full speed: `most` at first and at most, `per_second` come back."""

    most: float
    per_second: float = FULL_TOK_S / FACTOR
    left: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.most

    def spend(self, tokens: int, seconds: float) -> None:
        """So many tokens were made in this time."""
        self.left = max(0.0, min(self.most, self.left + seconds * self.per_second) - tokens)


class Rationed(Engine[Generation]):
    """An engine with a budget. Once it is used up, everything takes FACTOR times as long, or new requests are turned away,
    until a tenth of it is back."""

    def __init__(self, settings: Settings, seed: int, budget: Budget, *, refuses: bool) -> None:
        super().__init__(settings, seed)
        self._budget, self._refuses = budget, refuses
        self._fast, self._since, self._spent = settings, 0, False

    def submit(
        self,
        key: Generation,
        prompt_tokens: int,
        max_tokens: int,
        now: int,
        *,
        hashes: Sequence[int] = (),
        priority: int = 0,
    ) -> bool:
        """See Engine."""
        self._account(0, now)
        if self._refuses and self._spent:
            return False
        return super().submit(key, prompt_tokens, max_tokens, now, hashes=hashes, priority=priority)

    def advance(self, now: int) -> Emission[Generation] | None:
        """See Engine."""
        emission = super().advance(now)
        if emission is not None:
            self._account(sum(count for _, _, count, _ in emission.tokens), emission.at)
        return emission

    def _account(self, tokens: int, at: int) -> None:
        seconds = max(0, at - self._since) / NS_PER_S if self._since else 0.0
        self._budget.spend(tokens, seconds)
        self._since = max(at, self._since)
        left = self._budget.left
        spent = left <= 0 or (self._spent and left < self._budget.most / 10)
        if spent != self._spent:
            self._spent = spent
            if not self._refuses:
                self.change(slower(self._fast, FACTOR) if spent else self._fast, self._since)


class OnBudget(Virtual):
    """Runs on engines with a budget of so many seconds at full speed: full again with each run, or one for all of them."""

    def __init__(self, seconds: float, *, refills: bool = True, refuses: bool = False) -> None:
        super().__init__(Chosen(PRESET, ENGINE), Silent())
        self._tokens = seconds * FULL_TOK_S * (1 - 1 / FACTOR)
        self._refills, self._refuses = refills, refuses
        self._budget = Budget(self._tokens)

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        budget = Budget(self._tokens) if self._refills else self._budget
        return simulate(
            plan, self._engine, out, Silent(),
            model=lambda settings, seed: Rationed(settings, seed, budget, refuses=self._refuses),
        )  # fmt: skip


LONGER = ["throughput.duration_s=60"]
"""Four times as long a level, so that the budget is a lesser part of what it can hold."""


def _maxima() -> Iterator[Situation]:
    """The truth is the slower of two speeds, which lasts. A rate that uses the budget up in just a level is held for a level,
    and is so much more: a share of it that falls with the length of levels."""
    lasting = slower(ENGINE, FACTOR)
    codes = ("drift", "stationary", "changed_at_equal_load", "wide_interval")
    for seconds, parameters in ((3, []), (8, []), (13, []), (8, LONGER)):
        levels = 60 if parameters else 15
        yield Situation(
            f"half as fast after {seconds} s of full load, levels of {levels} s, `throughput`", FAMILY,
            partial(said, asked("throughput", parameters=parameters), partial(OnBudget, seconds)),
            as_on(asked("throughput"), lasting), codes,
        )  # fmt: skip
    yield Situation(
        "half as fast after 100 s of full load in all runs, `throughput`", FAMILY,
        partial(said, asked("throughput"), partial(OnBudget, 100, refills=False)),
        as_on(asked("throughput"), lasting), codes,
    )  # fmt: skip
    yield Situation(
        "turns requests away after 8 s of full load, levels of 60 s, `throughput`", FAMILY,
        partial(said, asked("throughput", parameters=LONGER), partial(OnBudget, 8, refuses=True)),
        as_on(asked("throughput"), lasting, near=0.15), codes,
    )  # fmt: skip
    capacity = asked("capacity")
    yield Situation(
        "half as fast after 8 s of full load, `capacity`", FAMILY, partial(said, capacity, partial(OnBudget, 8)),
        as_on(capacity, lasting, apart=1.0), codes,
    )  # fmt: skip


def _latencies() -> Iterator[Situation]:
    """At a load that uses the budget up within the run, no latency is that of one system."""
    for test, parameters in (
        ("ttft", ["ttft.rates=[14]"]),
        ("itl", ["itl.percent=[95]", "itl.requests=400"]),
    ):
        yield Situation(
            f"half as fast after 8 s of full load, `{test}`", FAMILY,
            partial(said, asked(test, parameters=parameters), partial(OnBudget, 8)),
            lambda test=test: {test: NO_TRUTH}, ("drift", "stationary"), quick=test == "ttft",  # type: ignore[misc]  # bound here
        )  # fmt: skip
    yield Situation(
        "turns requests away after 8 s of full load, `ttft`", FAMILY,
        partial(said, asked("ttft", parameters=["ttft.rates=[14]"]), partial(OnBudget, 8, refuses=True)),
        lambda: {"ttft": NO_TRUTH}, ("failures", "error_rate"),
    )  # fmt: skip


def _evicting() -> Iterator[Situation]:
    """The truth is what as small a cache saves of other requests."""
    for blocks in (1_000, 400):
        engine = replace(ENGINE, kv_blocks=blocks)
        wanted = asked("prefix-cache")
        yield Situation(
            f"room for {16 * blocks:,} tokens alone", "prefix cache", partial(said, wanted, partial(plain, engine)),
            as_on(wanted, engine, apart=10.0),
        )  # fmt: skip


def situations() -> Iterator[Situation]:
    """All of them."""
    for part in (_maxima, _latencies, _evicting):
        yield from part()
