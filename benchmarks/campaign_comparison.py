"""How often `inferometer compare` of campaigns finds a difference that is none, and how often one that is there: in simulation.

One pool of campaigns is of the preset `testbed`, another of the same engine with all its costs 6 % higher, each campaign with a
seed of its own, the same seeds in both pools. From these, comparisons of N repeats a side are drawn:

| comparison | sides                                                                                        | truth      |
| ---------- | -------------------------------------------------------------------------------------------- | ---------- |
| A/A        | 2 N campaigns of the first pool, at disjoint seeds, which are numbered as if they were pairs | none       |
| planted    | N campaigns of the first pool, and those of the second at the same seeds                     | 6 % slower |

An A/A comparison of a simulated engine at equal seeds would be of equal numbers; at disjoint seeds all chances differ, those of
the workload too, which real repeats share. Comparisons of one pool share campaigns, so their rates are less certain than those
of as many independent ones; DRAWN of the possible ones are drawn. The tests are quick ones with short requests.

    python -m benchmarks.campaign_comparison FOLDER SEED...   # the campaigns of both pools at these seeds, but for those there
    python -m benchmarks.campaign_comparison FOLDER           # what comparisons of the campaigns in FOLDER come to
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from inferometer.cli.terminal import Screen
from inferometer.errors import RecordError
from inferometer.judge.comparison.campaigns import CampaignCriteria, Repeat, compare_campaigns
from inferometer.plan.campaign import Campaign, EngineChoice, campaign
from inferometer.run.ui import Ui
from inferometer.studies.campaign import conduct_in
from inferometer.studies.campaign_comparison import read

SLOWER = (
    "step_base=10.6ms", "step_per_request=0.265ms", "prefill_base=2.12ms", "prefill_per_token=21.2us",
    "prefill_attention=0.212ns",
)  # fmt: skip
POOLS: dict[str, tuple[str, ...]] = {"a": (), "slower": SLOWER}
REPEATS = (3, 5)
DRAWN = 400
"""Comparisons of a kind."""
NAMES = ("throughput", "capacity", "ttft", "long-context")
FLAGS: dict[str, object] = {
    "--input-tokens": "uniform(60,140)",
    "--output-tokens": "uniform(8,24)",
    "--rate": "20",
}
PARAMETERS = (
    "ttft.requests=200",
    "capacity.output_tokens=16",
    "capacity.ttft_p99_ms=300",
    "long-context.lengths=[256,512,1024]",
)


def plan_of(pool: str, seed: int) -> Campaign:
    """One campaign of a pool."""
    return campaign(
        NAMES, None, FLAGS | {"--seed": str(seed)}, PARAMETERS,
        quick=True, simulated=True, engine=EngineChoice(preset="testbed", settings=POOLS[pool]),
    )  # fmt: skip


def known(folder: Path) -> dict[str, dict[int, Repeat]]:
    """The campaigns in `folder` by pool and seed; without those that were broken off or that this version does not read."""
    found: dict[str, dict[int, Repeat]] = {pool: {} for pool in POOLS}
    for path in sorted(folder.glob("*/campaign.json")):
        pool, _, seed = path.parent.name.rpartition("-")
        try:
            found[pool][int(seed)] = read(path)
        except RecordError as cause:
            print(f"left out: {cause}", file=sys.stderr)
    return found


def carry_out(
    folder: Path, seeds: Sequence[int], ui: Ui, wanted: Callable[[str, int], Campaign] = plan_of
) -> None:
    """The campaigns of both pools at these seeds, but for those there; one that was broken off is made again. Their runs are
    not kept."""
    done = known(folder)
    for seed in seeds:
        for pool in POOLS:
            if seed in done[pool]:
                continue
            place = folder / f"{pool}-{seed}"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            conduct_in(place, wanted(pool, seed), ui, lambda _: None, f"benchmarks {pool} {seed}")
            shutil.rmtree(place / "runs")


Sides = tuple[list[Repeat], list[Repeat]]


def numbered(side: Iterable[Repeat]) -> list[Repeat]:
    """The campaigns as repeats 1, 2, 3 ... of one plan, whatever their seeds were."""
    return [replace(one, facts=replace(one.facts, seed=at)) for at, one in enumerate(side, start=1)]


def null_sides(pool: Sequence[Repeat], repeats: int) -> Iterator[Sides]:
    """Two sides of campaigns of one pool, none of them twice."""
    rng = np.random.default_rng(repeats)
    for _ in range(DRAWN if len(pool) >= 2 * repeats else 0):
        drawn = [pool[at] for at in rng.permutation(len(pool))[: 2 * repeats]]
        yield numbered(drawn[:repeats]), numbered(drawn[repeats:])


def planted_sides(pool: Mapping[int, Repeat], slower: Mapping[int, Repeat], repeats: int) -> Iterator[Sides]:
    """Campaigns of both pools at the same seeds."""
    rng, seeds = np.random.default_rng(repeats), sorted(set(pool) & set(slower))
    for _ in range(DRAWN if len(seeds) >= repeats else 0):
        drawn = [seeds[at] for at in rng.permutation(len(seeds))[:repeats]]
        yield [pool[seed] for seed in drawn], [slower[seed] for seed in drawn]


def verdicts(sides: Iterable[Sides], metrics: tuple[str, ...]) -> Counter[str]:
    """How often each deciding figure was called what, and how often any of them was called worse or better."""
    found: Counter[str] = Counter()
    for pair in sides:
        contrast = compare_campaigns(pair, CampaignCriteria(metrics)).contrasts[0]
        decided = [one for one in contrast if one.deciding]
        found["comparisons"] += 1
        found["any difference"] += any(one.verdict in ("better", "worse") for one in decided)
        found["any worse"] += any(one.verdict == "worse" for one in decided)
        found.update(f"{one.name}: {one.verdict}" for one in decided)
    return found


def main(folder: Path, seeds: Sequence[int]) -> None:
    """Make campaigns, or print what comparisons of them come to."""
    if seeds:
        carry_out(folder, seeds, Screen(quiet=True))
        return
    pools = known(folder)
    print({name: len(found) for name, found in pools.items()})
    for repeats in REPEATS:
        for metrics in ((), *((name,) for name in NAMES)):
            asked = ", ".join(metrics) or "all headlines"
            sides = {
                "A/A": null_sides(list(pools["a"].values()), repeats),
                "planted": planted_sides(pools["a"], pools["slower"], repeats),
            }
            for kind, pairs in sides.items():
                found = verdicts(pairs, metrics)
                print(f"{repeats} repeats, {asked}, {kind}: {dict(sorted(found.items()))}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(one) for one in sys.argv[2:]])
