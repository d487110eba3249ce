"""`python -m benchmarks.trial [sockets]`: the whole trial, or the part over sockets, as the tables of docs/trial.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from benchmarks.trial import Trial, effect, found, held, loopback
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
        for name, status, codes in done.refused:
            yield f"| {name} | {status} | {', '.join(f'`{code}`' for code in codes)} |"


def planted(cases: Iterable[Found]) -> Iterator[str]:
    """A row for each defect."""
    yield "| family | defect | headline bent most | verdict | decided by |"
    yield "| --- | --- | --- | --- | --- |"
    for one in cases:
        wrong = " (wrong)" if one.bends and one.believed else ""
        reasons = ", ".join(f"`{code}`" for code in one.case.reasons)
        yield f"| {one.defect.family} | {one.defect.name} | {effect(one)} | {one.case.status}{wrong} | {reasons} |"


def main() -> int:
    """Print the page's tables."""
    sockets = "sockets" in sys.argv[1:]
    for line in planted(found(one) for one in loopback.defects()) if sockets else page(held()):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
