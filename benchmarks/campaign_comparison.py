"""How often `inferometer compare` of campaigns finds a difference that is none, and how often one that is there: in simulation.

One pool of campaigns is of the preset `testbed`, another of the same engine with all its costs 6 % higher, each campaign with a
seed of its own, the same seeds in both pools. From these, comparisons of N repeats a side are drawn:

| comparison | sides                                                                                     | truth      |
| ---------- | ----------------------------------------------------------------------------------------- | ---------- |
| A/A        | 2 N campaigns of the first pool, at disjoint seeds, which are numbered as if they were pairs | none       |
| planted    | N campaigns of the first pool, and those of the second at the same seeds                  | 6 % slower |

An A/A comparison of a simulated engine at equal seeds would be of equal numbers; at disjoint seeds all chances differ, those of
the workload too, which real repeats share. Comparisons of one pool share campaigns, so their rates are less certain than as many
independent ones. The tests are quick ones with short requests: rates of false differences do not depend on that, the power does.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from inferometer.documents.comparison import FigureVerdict
from inferometer.plan.campaign import Campaign, EngineChoice, campaign
from inferometer.run.ui import Ui
from inferometer.studies.campaign import conduct_in

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
