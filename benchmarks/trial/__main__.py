"""`python -m benchmarks.trial [sockets | campaigns [WORD...]]`: the whole trial, or the part over sockets, or that of campaigns
(of which the family or the name holds a WORD), as the tables of docs/trial.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.trial import Trial, campaigns, effect, found, held, loopback, status
from benchmarks.trial.campaigns.situation import found as carried_out
from benchmarks.trial.defects import Found


def page(done: Trial) -> Iterator[str]:
    """The tables, line by line."""
    bending = done.bending
    caught = len(bending) - len(done.believed)
    yield "| | |"
    yield "| --- | --- |"
    yield f"| defects planted | {len(done.planted)} |"
    yield f"| that bend a headline by more than 5 % | {len(bending)} |"
    yield f"| of these not VALID | {caught} ({100 * caught / max(1, len(bending)):.1f} %) |"
    yield f"| clean runs | {len(done.clean)} |"
    refused = len(done.refused)
    yield f"| of these not VALID | {refused} ({100 * refused / max(1, len(done.clean)):.2f} %) |"
    yield ""
    yield from planted(done.planted)
    if done.refused:
        yield ""
        yield "| clean run | verdict | decided by |"
        yield "| --- | --- | --- |"
        for name, said, codes in done.refused:
            yield f"| {name} | {said} | {', '.join(f'`{code}`' for code in codes)} |"


def planted(cases: Iterable[Found]) -> Iterator[str]:
    """A row for each defect."""
    yield "| family | defect | headline bent most | verdict | decided by |"
    yield "| --- | --- | --- | --- | --- |"
    for one in cases:
        reasons = ", ".join(f"`{code}`" for code in one.case.reasons)
        yield f"| {one.defect.family} | {one.defect.name} | {effect(one)} | {status(one)} | {reasons} |"


def of_campaigns(words: Sequence[str]) -> Iterator[str]:
    """A row for each test of each campaign as it ends, then the counts."""
    yield from campaigns.HEAD
    done = []
    for one in campaigns.situations():
        if not words or any(word in f"{one.family} {one.name}" for word in words):
            done.append(carried_out(one))
            yield from campaigns.rows(done[-1])
    yield ""
    yield from campaigns.counts(done)


def main() -> int:
    """Print the page's tables."""
    part, *words = sys.argv[1:] or [""]
    if part == "campaigns":
        lines = of_campaigns(words)
    else:
        lines = planted(found(one) for one in loopback.defects()) if part == "sockets" else page(held())
    for line in lines:
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
