"""The standing trial of campaigns: situations of which the truth is known, and what the tests of the draft say of them.

| part       | what it plants                                                                                   |
| ---------- | ------------------------------------------------------------------------------------------------ |
| systems.py | systems that change, fall beyond saturation, refuse, prefer, stutter, begin cold                 |
| lies.py    | false counts, other lengths or models than asked for, hits of a cache that was to find nothing,  |
|            | refusals by length, switches of caches and filters that do nothing                               |
| plans.py   | few samples, odd parameters, another order, a system that is gone; nothing wrong                 |
| live.py    | a real server that is gone, or another one, between two tests                                    |

All but live.py is in virtual time. A headline that is farther from the truth than a tenth, or what the situation says, is never
VALID (situation.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.trial.campaigns import lies, limited, live, plans, systems
from benchmarks.trial.campaigns.situation import CAMPAIGN, Outcome, Situation, Statement


def situations() -> Iterator[Situation]:
    """All of them."""
    for part in (systems, limited, lies, plans, live):
        yield from part.situations()


def rows(outcome: Outcome) -> Iterator[str]:
    """The rows of docs/trial.md: of each test, and of the campaign where something is held against its verdict."""
    for one in outcome.statements:
        if one.test != CAMPAIGN or CAMPAIGN in outcome.truths or outcome.false(one):
            yield _row(outcome, one)


def _row(outcome: Outcome, one: Statement) -> str:
    situation, truth = outcome.situation, outcome.truths.get(one.test)
    value = "" if one.value is None else f"{one.value:.4g}"
    right = "" if truth is None else "none" if truth.value is None else f"{truth.value:.4g}"
    wrong = " (false)" if outcome.false(one) else ""
    codes = ", ".join(f"`{code}`" for code in one.codes)
    return f"| {situation.family} | {situation.name} | {one.test} | {value} | {right} | {one.status}{wrong} | {codes} |"


HEAD = (
    "| family | situation | test | headline | truth | verdict | decided by |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)


def counts(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """The table of counts."""
    every = list(outcomes)
    planted = [one for one in every if not one.situation.clean]
    clean = [one for one in every if one.situation.clean]
    about = [one for one in planted if one.situation.named and one.refused]
    yield "| | |"
    yield "| --- | --- |"
    yield f"| situations planted | {len(planted)} |"
    yield f"| with a false statement | {sum(bool(one.false_statements) for one in planted)} |"
    yield f"| refused, and a reason is expected | {len(about)} |"
    yield f"| of these by that reason | {sum(one.is_named for one in about)} |"
    yield f"| campaigns with nothing wrong | {len(clean)} |"
    yield f"| with a false statement | {sum(bool(one.false_statements) for one in clean)} |"
    yield f"| not VALID | {sum(one.strict for one in clean)} |"


__all__ = ["HEAD", "counts", "rows", "situations"]
