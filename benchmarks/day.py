"""The reference engine over a day of its own time: `python -m benchmarks.day [--hours N] [--rate R] [--seed S]`.

The model of the engine runs without sockets, in virtual time, as behind the reference server: Poisson arrivals, prompts that
share one of fifty beginnings, answers of 1 to 256 tokens, a request in fifty given up by its client. At each full hour Python's
memory is counted (tracemalloc, after a collection), with what the engine holds: requests, KV blocks, prefixes. What a day
leaves behind shows as growth from the second hour to the last.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

from inferometer.server.engine.blocks import chain
from inferometer.server.engine.engine import Engine
from inferometer.server.presets import PRESETS

PRESET = "testbed"
HOUR_NS = 3_600 * 1_000_000_000
SHARED, LENGTHS, ANSWERS = 50, (64, 1_024), (1, 256)
GIVEN_UP = 0.02
PATIENCE_NS = 200_000_000


@dataclass(eq=False, slots=True)
class Asked:
    """A request; it is its own key."""

    number: int


@dataclass(frozen=True, slots=True)
class Hour:
    """What stands at the end of an hour."""

    hour: int
    requests: int
    tokens: int
    python_mib: float
    in_engine: int
    waiting: int
    blocks: dict[str, int]


def hours(count: int, rate: float, seed: int) -> Iterator[Hour]:
    """The hours of a day, one after the other."""
    dice = random.Random(seed)
    engine: Engine[Asked] = Engine(PRESETS[PRESET], seed)
    beginnings = [[dice.randrange(50_000) for _ in range(512)] for _ in range(SHARED)]
    now = requests = tokens = 0
    given_up: list[tuple[int, Asked]] = []
    for hour in range(1, count + 1):
        while now < hour * HOUR_NS:
            now += max(1, round(dice.expovariate(rate) * 1e9))
            while (out := engine.advance(now)) is not None:
                tokens += sum(count for _, _, count, _ in out.tokens)
            for at, key in given_up:
                if at <= now:
                    engine.cancel(key, now)
            given_up = [one for one in given_up if one[0] > now]
            asked, requests = Asked(requests), requests + 1
            length = dice.randint(*LENGTHS)
            start = dice.choice(beginnings)
            prompt = (start + [dice.randrange(50_000) for _ in range(max(0, length - 512))])[:length]
            engine.submit(asked, length, dice.randint(*ANSWERS), now, hashes=chain(prompt, 16))
            if dice.random() < GIVEN_UP:
                given_up.append((now + PATIENCE_NS, asked))
        gc.collect()
        mib = tracemalloc.get_traced_memory()[0] / (1 << 20)
        yield Hour(hour, requests, tokens, mib, engine.running, engine.waiting, engine.blocks)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--rate", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tracemalloc.start()
    began, first = time.monotonic(), None
    for one in hours(given.hours, given.rate, given.seed):
        first = one if one.hour == min(2, given.hours) else first
        print(
            f"hour {one.hour}: {one.requests:,} requests, {one.tokens:,} tokens; {one.python_mib:.2f} MiB; "
            f"{one.in_engine} running, {one.waiting} waiting; blocks {one.blocks}",
            flush=True,
        )
    assert first is not None, "an hour at least"
    print(f"grown by {one.python_mib - first.python_mib:.2f} MiB from hour {first.hour} to hour {one.hour}")
    print(
        f"{time.monotonic() - began:.0f} s of real time; {platform.platform()}, Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
