"""What the report draws: distributions, a timeline, lateness. Plain numbers, few of them whatever the size of the run.

Nothing here is smoothed and nothing counted twice: histogram counts add up to the samples, and the timeline's output_tok_s
times the bin width adds up to the output tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from inferometer.journal.schema import Outcome
from inferometer.measure.large_arrays import slices
from inferometer.measure.load import Span, Sweep, lateness_ms, spans
from inferometer.measure.machine_series import MachineCurve, machine_curves
from inferometer.measure.measurement import samples_of
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.samples import Samples
from inferometer.measure.server import Points, server_series
from inferometer.measure.stats import percentile
from inferometer.measure.throughput import Arrivals, of_load, output_tok_s, request_s
from inferometer.plan.length_histogram import LengthHistogram, histogram
from inferometer.plan.schema import Plan
from inferometer.telemetry.machines.tracks import MachineTracks
from inferometer.telemetry.metrics.normalised import Translated
from inferometer.units import NS_PER_S

HIST_BINS = 60
SKEW = 4.0
"""P99.9 over median from which equal bins would put half of all samples into two or three of them."""

CDF_POINTS = 400
TIMELINE_BINS = 300
LATENESS_POINTS = 1_500

BIN_FLOOR_S = 0.05
"""Narrower timeline bins would show single decode steps, not throughput."""

TOKENS_PER_BIN = 50
"""Fewer tokens a bin would draw counting noise."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Samples of a latency in ms: a histogram (`counts` between `edges`, one more of these) and the empirical distribution: the
    share `p` of samples is at or below `x`. All are empty without samples."""

    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    x: tuple[float, ...] = ()
    p: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """The run in bins of `bin_s` seconds. `t_s`: the middle of each bin; rates per second, TTFT in ms, `in_flight` the mean
    number of requests, `errors` how many failed."""

    bin_s: float
    t_s: tuple[float, ...]
    output_tok_s: tuple[float, ...]
    in_flight: tuple[float, ...]
    requests_s: tuple[float, ...]
    ttft_p50_ms: tuple[float | None, ...]
    ttft_p99_ms: tuple[float | None, ...]
    errors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LatenessPoints:
    """Lateness in ms of requests over the time at which they were sent."""

    t_s: tuple[float, ...] = ()
    ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LengthHistograms:
    """Lengths of prompts and answers; None: there are none."""

    input_tokens: LengthHistogram | None = None
    output_tokens: LengthHistogram | None = None


@dataclass(frozen=True, slots=True)
class RunSeries:
    """All that is drawn of a run. Times `t_s` are in s from the first measured send. `timeline`: None where nothing was sent;
    `server`: by the names of `server_series`, only what the server's metrics have."""

    ttft_ms: Distribution = Distribution()
    itl_ms: Distribution = Distribution()
    chunk_gap_ms: Distribution = Distribution()
    tpot_ms: Distribution = Distribution()
    e2e_ms: Distribution = Distribution()
    timeline: Timeline | None = None
    lateness: LatenessPoints = LatenessPoints()
    lengths: LengthHistograms = LengthHistograms()
    server: Mapping[str, Points] = field(default_factory=dict)
    machines: tuple[MachineCurve, ...] = ()


def series(
    plan: Plan,
    record: Record,
    samples: Samples | None = None,
    server_metrics: Sequence[Translated] = (),
    machines: Sequence[MachineTracks] = (),
) -> RunSeries:
    """All plot series of a record. `samples`: those of `samples_of`, if already taken; `server_metrics`: the scrapes."""
    samples = samples_of(plan, record) if samples is None else samples
    sweep = Sweep(record)
    run = spans(record, sweep, None, None).run
    gaps, direct = _distribution(samples.ordered_gaps), samples.itl_method == "direct"
    return RunSeries(
        ttft_ms=_distribution(samples.ordered_ttft),
        itl_ms=gaps if direct else Distribution(),
        chunk_gap_ms=Distribution() if direct else gaps,
        tpot_ms=_distribution(samples.ordered_tpot),
        e2e_ms=_distribution(samples.ordered_e2e),
        timeline=_timeline(record, samples, sweep, run),
        lateness=_lateness(record, sweep, run),
        lengths=_lengths(record, samples),
        server={} if run is None else server_series(server_metrics, run.start),
        machines=() if run is None else machine_curves(machines, run.start),
    )


def _lengths(record: Record, samples: Samples) -> LengthHistograms:
    """Histograms of lengths: `asked` and `sent` of all requests sent; `counted` of those that succeeded: by the server, or of
    answers that it did not count, as the results do."""
    sent, counts = record.measured, samples.counts
    asked = record.input_tokens_asked[sent]
    output = np.where(np.isnan(counts.server_output), counts.output, counts.server_output)
    return LengthHistograms(
        histogram(
            {
                "asked": asked[asked > 0],
                "sent": record.input_tokens[sent],
                "counted": counts.server_input,
            }
        ),
        histogram({"asked": record.output_tokens_asked[sent], "counted": output}),
    )


def _distribution(ascending: Floats) -> Distribution:
    return Distribution(*_histogram(ascending), *_cdf(ascending)) if len(ascending) else Distribution()


def _histogram(ascending: Floats) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Edges and counts: bins from the least sample to P99.9, equal, or growing where P99.9 is far above the median; the last
    one takes the tail, so that it hides nothing."""
    low, high, top = float(ascending[0]), percentile(ascending, 0.999), float(ascending[-1])
    if high <= low:
        high = top if top > low else low + max(abs(low), 1.0) * 1e-3  # all samples are (nearly) equal
    skewed = low > 0 and high > SKEW * percentile(ascending, 0.5)
    edges = (np.geomspace if skewed else np.linspace)(low, high, HIST_BINS + 1)
    edges[-1] = max(edges[-1], top)
    bounds = np.searchsorted(ascending, edges[1:-1], side="left")
    counts = np.diff(np.concatenate(([0], bounds, [len(ascending)])))
    return tuple(edges.tolist()), tuple(counts.tolist())


def _cdf(ascending: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Values and shares, denser toward the tail when thinned."""
    n = len(ascending)
    if n <= CDF_POINTS:
        ranks: Ints = np.arange(1, n + 1)
    else:
        body = np.linspace(1, n, CDF_POINTS * 3 // 4)
        tail = n - np.geomspace(1, n / 10, CDF_POINTS // 4)
        ranks = np.unique(np.concatenate((body, tail)).astype(np.int64))
    return tuple(ascending[ranks - 1].tolist()), tuple((ranks / n).tolist())


def _timeline(record: Record, samples: Samples, sweep: Sweep, run: Span | None) -> Timeline | None:
    if run is None or run.seconds <= 0:
        return None
    counted = all(one.counts.answers_known for one in (samples, samples.around) if one is not None)
    tokens = float(samples.arrival_tokens.sum()) if counted else float(samples.text_events.sum())
    bins = int(max(1, min(TIMELINE_BINS, run.seconds / BIN_FLOOR_S, tokens / TOKENS_PER_BIN)))
    width = run.seconds / bins
    failed = record.measured & ~record.ok & ~record.outcome.are(Outcome.CANCELLED)
    edges = run.start + np.rint(np.linspace(0, run.end - run.start, bins + 1)).astype(np.int64)
    area = sweep.integral(edges) if len(sweep.sends) else np.zeros(bins + 1)

    def rate(arrivals: Callable[[Samples], Arrivals | None]) -> tuple[float, ...]:
        return tuple((_arrived(*of_load(samples, arrivals), run, bins) / width).tolist())

    p50, p99 = _binned_percentiles(
        samples.ttft, _bin(record.t_submit.values[samples.rows], run, bins), bins, (0.5, 0.99)
    )
    return Timeline(
        bin_s=width,
        t_s=tuple(((np.arange(bins) + 0.5) * width).tolist()),
        output_tok_s=rate(output_tok_s) if counted else (),
        in_flight=tuple((np.diff(area) / width).tolist()),
        requests_s=rate(request_s),
        ttft_p50_ms=p50,
        ttft_p99_ms=p99,
        errors=tuple(np.bincount(_bin(record.t_end[failed], run, bins), minlength=bins).tolist()),
    )


def _arrived(t_ns: Ints, weights: Floats, run: Span, bins: int) -> Floats:
    """What of `weights` arrived in each bin of the run."""
    total = np.zeros(bins)
    for part in slices(len(t_ns)):
        at = t_ns[part]
        inside = (at >= run.start) & (at <= run.end)
        total += np.bincount(_bin(at[inside], run, bins), weights[part][inside], minlength=bins)
    return total


def _bin(t_ns: Ints, run: Span, bins: int) -> Ints:
    """The bin of each instant; what falls on the run's last instant belongs to the last bin."""
    position = (t_ns - run.start) * (bins / (run.end - run.start))
    return np.clip(position.astype(np.int64), 0, bins - 1)


def _binned_percentiles(
    values: Floats, bin_of: Ints, bins: int, probabilities: tuple[float, ...]
) -> tuple[tuple[float | None, ...], ...]:
    """Percentiles (linear) of the values in each bin; None for a bin without any. NaN values are left out."""
    defined = ~np.isnan(values)
    values, bin_of = values[defined], bin_of[defined].astype(np.int16)
    values = values[np.argsort(bin_of, kind="stable")]
    bounds = np.concatenate(([0], np.cumsum(np.bincount(bin_of, minlength=bins))))
    each = [np.sort(values[a:b]) for a, b in pairwise(bounds.tolist())]
    return tuple(tuple(percentile(one, p) if len(one) else None for one in each) for p in probabilities)


def _lateness(record: Record, sweep: Sweep, run: Span | None) -> LatenessPoints:
    """Lateness over time of sending; where points are too many, the largest of each group of neighbours is kept."""
    late = lateness_ms(record)  # in order of t_submit, as sweep.sends is
    if run is None or len(late) == 0:
        return LatenessPoints()
    starts = np.unique(np.linspace(0, len(late), LATENESS_POINTS + 1).astype(np.int64)[:-1])
    kept = [int(a + np.argmax(late[a:b])) for a, b in zip(starts, [*starts[1:], len(late)], strict=True)]
    t_s = (sweep.sends[kept] - run.start) / NS_PER_S
    return LatenessPoints(tuple(t_s.tolist()), tuple(late[kept].tolist()))
