"""The texts of a dataset, at most MOST of them in memory, and what a report says of where they came from.

Of more than MOST texts every one has the same chance to be kept (Vitter's algorithm R over the rows in their order, with a seed
of its own): the subset is the same for every plan, run and machine.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from inferometer.documents.workload import Dataset
from inferometer.workload.datasets import files as places
from inferometer.workload.datasets import rows
from inferometer.workload.datasets.files import refused
from inferometer.workload.datasets.preprocessing import READERS, Item, Kind, Unlike

MOST = 20_000
_SEED = 42


@dataclass(frozen=True, slots=True)
class Pool:
    """Texts, never none, and the facts for run.json."""

    items: tuple[Item, ...] = field(repr=False)
    facts: Dataset


@functools.lru_cache(maxsize=2)
def load(
    path: str, kind: Kind, subset: str | None = None, most: int = MOST, cache: Path | None = None
) -> Pool:
    """Read a dataset through. `cache`: the folder of the Hugging Face cache; None: huggingface_hub's own.

    Raises PlanError naming file, line or row, and field; also where nothing is left of it.
    """
    found = places.find(path, subset, cache)
    reader = READERS[kind]
    sample: list[Item] = []
    left_out: Counter[str] = Counter()
    rng = random.Random(_SEED)  # noqa: S311 (a repeatable choice is the purpose, not a secret one)
    read = kept = 0
    for file in found.paths:
        name = found.called(file)
        for place, row in rows.read(file, name, reader.columns):
            read += 1
            try:
                made = list(reader.items(row, left_out))
            except Unlike as cause:
                raise refused(f"{name}, {place}: {cause}") from cause
            for item in made:
                kept += 1
                if len(sample) < most:
                    sample.append(item)
                elif (at := rng.randrange(kept)) < most:
                    sample[at] = item
    if not sample:
        why = ", ".join(f"{reason} {count}" for reason, count in left_out.items()) or "there are none"
        raise refused(f"{found.name}: no text is left of {read} rows ({why})")
    parts = places.digests(found)  # behind the rows: what is no dataset is refused at its first
    facts = Dataset(
        kind=kind,
        name=found.name,
        revision=found.revision,
        subset=subset,
        files=parts,
        sha256=places.digest_of_all(parts),
        rows=read,
        texts=kept,
        sampled=len(sample),
        left_out=dict(left_out),
        preprocessing=reader.words,
        version=found.revision,
    )
    return Pool(tuple(sample), facts)
