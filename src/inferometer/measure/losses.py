"""What a run lost with the workers that died.

| the plan                                          | a worker's requests            | lost with it                        |
| ------------------------------------------------- | ------------------------------ | ----------------------------------- |
| open loop; closed loop by a number of requests    | known before the start         | those without a row                 |
| closed loop that a time may end; interrupted runs | as many as its slots came to   | those it had sent without a row     |

What it had sent is known from its counters, up to 50 ms before its death: in the second case at least so many were lost, and
its slots stood empty from then on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from inferometer.journal.schema import Phase
from inferometer.measure.record import Death, Record


@dataclass(frozen=True, slots=True)
class Loss(Death):
    """What became of a dead worker's measured requests: `kept` are on record, `lost` (at least) are not."""

    kept: int
    lost: int


def losses(record: Record) -> tuple[Loss, ...]:
    """What was lost with each worker that died, in the order of their deaths."""
    return tuple(_loss(record, death) for death in record.deaths)


def _loss(record: Record, death: Death) -> Loss:
    its = record.worker == death.worker
    kept = int((its & record.measured).sum())
    if death.requests is not None and not record.interrupted:
        lost = death.requests - kept
    else:  # a worker that died in the warm-up has sent none of the measured ones
        lost = death.sent - int(its.sum()) if death.phase == Phase.MEASURE else 0
    return Loss(**asdict(death), kept=kept, lost=max(0, lost))
