"""`python -m benchmarks.trial`: the whole trial as the tables of docs/trial.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.trial import Trial, effect, held


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
    yield "| family | defect | headline bent most | verdict | decided by |"
    yield "| --- | --- | --- | --- | --- |"
    for one in done.planted:
        wrong = " (wrong)" if one.bends and one.believed else ""
        reasons = ", ".join(f"`{code}`" for code in one.case.reasons)
        yield f"| {one.defect.family} | {one.defect.name} | {effect(one)} | {one.case.status}{wrong} | {reasons} |"
    if done.refused:
        yield ""
        yield "| clean run | verdict | decided by |"
        yield "| --- | --- | --- |"
        for name, status, codes in done.refused:
            yield f"| {name} | {status} | {', '.join(f'`{code}`' for code in codes)} |"


def main() -> int:
    """Print the page's tables."""
    for line in page(held()):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
