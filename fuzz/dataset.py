"""Datasets of both kinds, as JSON Lines, JSON, Parquet and Arrow: texts that can be sent, the same each time, or a problem."""

from __future__ import annotations

from fuzz.bounds import bounded_memory
from fuzz.place import lain
from fuzz.problems import told
from inferometer.errors import PlanError
from inferometer.workload.datasets.pool import Pool, load
from inferometer.workload.datasets.preprocessing import LONGEST, READERS

FORMS = ("jsonl", "json", "parquet", "arrow")
KINDS = tuple(READERS)
MOST = 16
"""Texts kept: less than a file of this size can hold, so that some are drawn."""


def check(data: bytes) -> None:
    """The first byte chooses form and kind; the rest is the file."""
    if not data:
        return
    which, form = divmod(data[0], len(FORMS))
    path = str(lain(f"dataset.{FORMS[form]}", data[1:]))
    kind = KINDS[which % len(KINDS)]

    def read() -> Pool | None:
        try:
            return load.__wrapped__(path, kind, None, MOST)
        except PlanError as error:
            told(error)
            return None

    with bounded_memory():
        pool = read()
    assert read() == pool
    if pool is None:
        return
    facts = pool.facts
    assert 0 < len(pool.items) == facts.sampled <= min(MOST, facts.texts)
    for item in pool.items:
        assert 0 < len(item.prompt) <= LONGEST
        f"{item.prompt}{item.answer}".encode()
