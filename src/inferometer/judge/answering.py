"""Which model answered, by the name that each answer gives.

| the names that a run's answers give                          | says                                                |
| ------------------------------------------------------------ | --------------------------------------------------- |
| none                                                         | na                                                  |
| that of the probe's answer, or the one asked for             | pass                                                |
| another in some measured answers                             | fail: not the system that was asked for             |
| another in all of the run, warm-up included, and that alone  | unsure: an alias that the probe's answer, or a start |
|                                                              | without one, did not tell, or another model         |

A plan asks for one model. Only answers that succeeded are looked at: a refusal may be the words of the guardrail that made it.
"""

from __future__ import annotations

import numpy as np

from inferometer.judge.verdict import Check
from inferometer.measure.record import Record

KEPT = 150
"""Characters of a name that are compared: a record keeps fewer than a probe."""


def answered_as(record: Record, expected: str | None, *, probed: bool) -> Check:
    """Share of the measured answers that name another model. `expected`: the name that the probe was answered with, or asked
    for; None: not known, so that the run's first name is taken. `probed`: there was one."""
    names = tuple(name[:KEPT] for name in record.answered_as.names)
    known = record.ok & (record.answered_as.codes >= 0)
    measured = record.measured & known
    if not measured.any():
        return Check("answered_as", "na", None, 0.0)
    alone = len({names[code] for code in np.unique(record.answered_as.codes[known])}) == 1
    first = names[record.answered_as.codes[known][0]]
    wanted = first if expected is None or (alone and not probed) else expected[:KEPT]
    others = np.array([name != wanted for name in (*names, wanted)])[record.answered_as.codes] & measured
    count, share = int(others.sum()), float(others.sum() / measured.sum())
    facts = {"expected": wanted, "named": int(measured.sum()), "others": count}
    if not count:
        return Check("answered_as", "pass", share, 0.0, facts=facts)
    facts["other"] = names[record.answered_as.codes[np.flatnonzero(others)[0]]]
    return Check("answered_as", "unsure" if alone else "fail", share, 0.0, facts=facts)
