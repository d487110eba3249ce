"""How often `inferometer compare` of campaigns finds a difference that is none, and how often one that is there: in simulation.

One pool of campaigns is of the preset `testbed`, another of the same engine with all its costs 6 % higher, each campaign with a
seed of its own, the same seeds in both pools. From these, comparisons of N repeats a side are drawn:

| comparison | sides                                                                                        | truth      |
| ---------- | -------------------------------------------------------------------------------------------- | ---------- |
| A/A        | 2 N campaigns of the first pool, at disjoint seeds, which are numbered as if they were pairs | none       |
| planted    | N campaigns of the first pool, and those of the second at the same seeds                     | 6 % slower |

An A/A comparison of a simulated engine at equal seeds would be of equal numbers; at disjoint seeds all chances differ, those of
the workload too, which real repeats share. Comparisons of one pool share campaigns, so their rates are less certain than those
of as many independent ones. The tests are quick ones with short requests.

    python -m benchmarks.campaign_comparison FOLDER [SEED...]    makes what FOLDER lacks of both pools, and prints the rates
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from inferometer.cli.terminal import Screen
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
SEEDS = tuple(range(1, 9))
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


def carry_out_pool(pool: str, seeds: Sequence[int], folder: Path, ui: Ui) -> None:
    """The pool's campaigns at these seeds, except those that `folder` has already."""
    for seed in seeds:
        place = folder / f"{pool}-{seed}"
        if (place / "campaign.json").is_file():
            continue
        place.mkdir(parents=True)
        conduct_in(place, plan_of(pool, seed), ui, lambda _: None, f"benchmarks {pool} {seed}")


def numbered(side: Sequence[Repeat]) -> list[Repeat]:
    """The campaigns as repeats 1, 2, 3 ... of one plan, whatever their seeds were."""
    return [replace(one, facts=replace(one.facts, seed=at)) for at, one in enumerate(side, start=1)]


def null_sides(pool: Sequence[Repeat], repeats: int) -> Iterator[tuple[list[Repeat], list[Repeat]]]:
    """Every division of campaigns of one pool into two sides, each once."""
    for first in itertools.combinations(range(len(pool)), repeats):
        others = [at for at in range(len(pool)) if at not in first]
        for second in itertools.combinations(others, repeats):
            if first < second:
                yield numbered([pool[at] for at in first]), numbered([pool[at] for at in second])


def planted_sides(
    pool: Sequence[Repeat], slower: Sequence[Repeat], repeats: int
) -> Iterator[tuple[list[Repeat], list[Repeat]]]:
    """Every choice of seeds, with the campaigns of both pools."""
    for chosen in itertools.combinations(range(len(pool)), repeats):
        yield [pool[at] for at in chosen], [slower[at] for at in chosen]


def verdicts(sides: Iterator[tuple[list[Repeat], list[Repeat]]], metrics: tuple[str, ...]) -> Counter[str]:
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


def main() -> None:
    """Make the pools, and print what comparisons of them come to."""
    folder, *given = sys.argv[1:]
    seeds = tuple(map(int, given)) or SEEDS
    for pool in POOLS:
        carry_out_pool(pool, seeds, Path(folder), Screen(quiet=True))
    pools = {
        pool: [read(Path(folder) / f"{pool}-{seed}" / "campaign.json") for seed in seeds] for pool in POOLS
    }
    for repeats in (3, 4, 5):
        for metrics in ((), *((name,) for name in NAMES)):
            asked = ", ".join(metrics) or "all headlines"
            sides = {
                "A/A": null_sides(pools["a"], repeats),
                "planted": planted_sides(pools["a"], pools["slower"], repeats),
            }
            for kind, pairs in sides.items():
                if found := verdicts(pairs, metrics):
                    print(f"{repeats} repeats, {asked}, {kind}: {dict(sorted(found.items()))}", flush=True)


if __name__ == "__main__":
    main()
