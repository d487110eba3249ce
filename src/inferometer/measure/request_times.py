"""The successful requests of a run one by one: for what no summary can tell, such as the same request in two runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.large_arrays import held
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.samples import Samples


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """One entry a sample, in the order in which they were due.

    `index`: of the request in its plan's requests, the same in each run of that plan. `classes`: the number of its class; -1:
    none. `prompt`: prompt tokens by the server's count, or ours; `ttft_ms`, `e2e_ms`; `cached`: prompt tokens that the server
    reports as taken from a cache; `shared`: those that the request has in common with others. NaN: not known.
    """

    index: Ints
    classes: Ints
    prompt: Floats
    ttft_ms: Floats
    e2e_ms: Floats
    cached: Floats
    shared: Floats

    def __len__(self) -> int:
        return len(self.index)

    def where(self, chosen: Ints) -> RequestTimes:
        """Those at these places."""
        return RequestTimes(
            self.index[chosen], self.classes[chosen], self.prompt[chosen],
            self.ttft_ms[chosen], self.e2e_ms[chosen], self.cached[chosen], self.shared[chosen],
        )  # fmt: skip


def request_times(record: Record, samples: Samples) -> RequestTimes:
    """Of the samples of a record. A schedule that was gone through again has each index once a cycle: those of the first are
    kept."""
    rows = samples.rows
    order = np.argsort(record.t_intended[rows], kind="stable")
    order = order[record.cycle[rows][order] == 0]
    rows = rows[order]
    told = record.usage_cached.valid[rows] & ~np.isnan(samples.counts.server_input[order])
    return RequestTimes(
        held(record.index[rows]),
        held(record.request_class.codes[rows].astype(np.int64)),
        held(samples.counts.input[order]),
        held(samples.ttft[order]),
        held(samples.e2e[order]),
        held(np.where(told, record.usage_cached.values[rows], np.nan).astype(np.float64)),
        held(record.input_tokens_shared[rows].astype(np.float64)),
    )
