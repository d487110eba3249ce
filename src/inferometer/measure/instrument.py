"""How the instrument itself did: receive lag, CPU share, stalls, clock steps, and workers that died. (Lateness: load.py.)

receive lag  user time minus kernel time of the bytes, the largest of each request
CPU share    CPU time / elapsed time of a worker, between the pulses that enclose the measured phase
run delay    time a worker was ready to run and had no core, as a share of the same elapsed time
stall        the longest time a worker spent between two polls
clock step   the largest change of CLOCK_REALTIME against the monotonic clock between two pulses of a worker; kernel stamps
             are converted with that offset, so a step moves them by as much
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from inferometer.journal.schema import Phase
from inferometer.measure.error_bound import ErrorBounds, error_bounds
from inferometer.measure.load import Span, Spans
from inferometer.measure.record import Column, Death, OwnCpu, Pulse, Record, TimestampSource
from inferometer.measure.samples import Samples
from inferometer.measure.stats import describe
from inferometer.metrics.statistics import Stats
from inferometer.units import NS_PER_MS

ENOUGH_GAPS = 100
"""Gaps of promptly read requests that say how often the server itself writes two tokens at once."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """The instrument's own numbers; `cpu_fraction` and `run_delay_fraction` have one entry a worker, None if not known.

    `error_bounds`: how wrong each headline may be through the instrument; None in a record that does not say. `merged_share`:
    share of token gaps that reading late is estimated to have made zero, see `_merged_share`.
    """

    timestamp_source: TimestampSource
    workers: int
    receive_lag_ms: Stats | None
    merged_share: float | None
    cpu_fraction: tuple[float | None, ...]
    run_delay_fraction: tuple[float | None, ...]
    stall_max_ms: float | None
    clock_step_ms: float | None
    dead_workers: tuple[Loss, ...]
    own_cpu: OwnCpu | None = None
    error_bounds: ErrorBounds | None = None


def instrument(record: Record, samples: Samples, spans: Spans) -> Instrument:
    """Read the workers' pulses, the requests' lags and what is known of each event."""
    run = spans.run
    pulse = record.pulse
    dead = np.array([death.worker for death in record.deaths], np.int64)
    workers = np.unique(np.concatenate((pulse.worker, record.worker, dead)))
    if record.simulated:
        return _modelled(record, samples, spans) if record.client_modelled else NOTHING
    cpu = Column(pulse.cpu_ns, np.ones(len(pulse.cpu_ns), np.bool_))
    heard = record.measured & (np.diff(record.event_offsets) > 0)
    return Instrument(
        timestamp_source=record.timestamp_source,
        workers=len(workers),
        receive_lag_ms=describe(record.lag_ns[heard] / NS_PER_MS),
        merged_share=_merged_share(samples),
        cpu_fraction=tuple(_fraction(pulse, cpu, int(one), run) for one in workers),
        run_delay_fraction=tuple(_fraction(pulse, pulse.run_delay_ns, int(one), run) for one in workers),
        stall_max_ms=_stall_max_ms(pulse, run),
        clock_step_ms=_clock_step_ms(pulse),
        dead_workers=losses(record),
        own_cpu=record.own_cpu,
        error_bounds=error_bounds(samples, spans),
    )


NOTHING = Instrument("virtual", 1, None, None, (None,), (None,), None, None, ())
"""Virtual time: there was no instrument, so nothing is known of one. 0 would read as perfect."""


def _modelled(record: Record, samples: Samples, spans: Spans) -> Instrument:
    """Virtual time with a client that reads late: only that is known of it."""
    heard = record.measured & (np.diff(record.event_offsets) > 0)
    return replace(
        NOTHING,
        timestamp_source="modelled",
        receive_lag_ms=describe(record.lag_ns[heard] / NS_PER_MS),
        merged_share=_merged_share(samples),
        error_bounds=error_bounds(samples, spans),
    )


def _merged_share(samples: Samples) -> float | None:
    """Share of all gaps between tokens that late reading made zero; None without gaps.

    Two tokens found by one read share a stamp, so their gap is zero; but servers also write several events at once. Only
    requests read late at least once (delivery.py) can have been merged by us, and the zeros of the others show what the server
    does: share = (zeros among the late - gaps of the late x zero share of the others) / all gaps, not below 0.
    """
    gaps, sizes = samples.event_gaps, np.maximum(samples.text_events - 1, 0)
    if not len(gaps) or not samples.streamed:
        return None
    zero = gaps == 0
    late = np.repeat(samples.read_late, sizes)
    others = ~late
    usual = float(zero[others].mean()) if others.sum() >= ENOUGH_GAPS else 0.0
    return max(0.0, (float(zero[late].sum()) - usual * float(late.sum())) / len(zero))


def _fraction(pulse: Pulse, spent: Column, worker: int, run: Span | None) -> float | None:
    """Growth of a counter of ns over elapsed time, between the worker's pulses that enclose the run."""
    mine = np.flatnonzero(pulse.worker == worker)
    if len(mine) < 2:
        return None
    t = pulse.t_ns[mine]
    first, last = 0, len(mine) - 1
    if run is not None:
        first = max(first, int(np.searchsorted(t, run.start, side="right")) - 1)
        last = min(last, int(np.searchsorted(t, run.end, side="left")))
    if first >= last or t[last] <= t[first]:
        return None
    ends = spent[mine[[first, last]]]
    return float(ends.values[1] - ends.values[0]) / float(t[last] - t[first]) if ends.valid.all() else None


def _stall_max_ms(pulse: Pulse, run: Span | None) -> float | None:
    """Over the pulses of the measured phase, and the one after it, which still speaks of it."""
    if len(pulse.t_ns) == 0:
        return None
    chosen = np.ones(len(pulse.t_ns), np.bool_)
    if run is not None:
        for worker in np.unique(pulse.worker):
            mine = np.flatnonzero(pulse.worker == worker)
            last = min(int(np.searchsorted(pulse.t_ns[mine], run.end)), len(mine) - 1)
            chosen[mine] = (pulse.t_ns[mine] >= run.start) & (np.arange(len(mine)) <= last)
    return float(pulse.stall_max_ns[chosen].max(initial=0)) / NS_PER_MS


def _clock_step_ms(pulse: Pulse) -> float | None:
    if len(pulse.t_ns) == 0:
        return None
    same_worker = pulse.worker[1:] == pulse.worker[:-1]
    steps = np.abs(np.diff(pulse.clock_offset_ns))[same_worker]
    return float(steps.max(initial=0)) / NS_PER_MS


# What a run lost with the workers that died.
#
# | the plan                                          | a worker's requests            | lost with it                        |
# | ------------------------------------------------- | ------------------------------ | ----------------------------------- |
# | open loop; closed loop by a number of requests    | known before the start         | those without a row                 |
# | closed loop that a time may end; interrupted runs | as many as its slots came to   | those it had sent without a row     |
#
# What it had sent is known from its counters, up to 50 ms before its death: in the second case at least so many were lost, and
# its slots stood empty from then on. Requests of a lead-in or lead-out that it took with it are counted among them.


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
