"""What the server said of itself while it was measured, from the scrapes of its metrics in our terms (telemetry/metrics).

| figure               | over                                                                                                  |
| -------------------- | ----------------------------------------------------------------------------------------------------- |
| levels and shares    | the scrapes between the first measured request's start and the last one's end, each alike             |
| counters, histograms | from the last scrape before the first measured request to the last of all: a lead-out, and the last   |
|                      | of a lead-in, are among them, as no scrape comes between a slot's requests                            |
| `Whole`              | from the last scrape before anything was sent to the last of all: all requests, warm-up included      |

A term is taken from the target's own endpoint; where that has none, from all others of the first engine that shows it; where
its counters went back more than RESETS_MOST times, from the others of its engine. Levels
and counts are added, and of shares the largest (`prefix_hit_rate`: the mean) counts. Counts of a server that began anew in
between are what it showed, and less than what it did; of one whose counters went back more often there are none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from inferometer.measure.load import Span, thirds
from inferometer.measure.record import Floats, Ints, Mask, Record
from inferometer.measure.ttft_gap import Buckets, ttft_gap_ms
from inferometer.telemetry.metrics.engine_names import COUNTERS
from inferometer.telemetry.metrics.estimators import BEST, ESTIMATORS
from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Observed, bracket, with_overflow
from inferometer.telemetry.metrics.normalised import Grown, Track, Translated
from inferometer.units import NS_PER_MS, NS_PER_S

POINTS_MOST = 600
"""Points of a drawn series; more would be narrower than a pixel."""

RESETS_MOST = 1
"""How often counters may go back in a run. A server may begin anew once; more often, and it is a balancer's address where now
one replica answers and now another, and what its counters seem to add is the difference between replicas, over and over."""

SHOWN = ("p50", "p90", "p95", "p99")


@dataclass(frozen=True, slots=True)
class Level:
    """A gauge over the measured phase: mean and maximum of its scrapes, and the last of them."""

    mean: float
    max: float
    end: float


@dataclass(frozen=True, slots=True)
class Timed:
    """A histogram over the measured phase, in ms: observations, their exact mean, percentiles estimated from its buckets.

    `between`: by percentile the bounds between which it certainly lies; the second is None above the last finite bound.
    """

    n: int
    mean: float
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    between: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndpointSeen:
    """One endpoint: whose names it shows, its good scrapes, those that gave nothing, the longest time between two good ones,
    and how often a counter of it went back."""

    url: str
    engine: str
    own: bool
    scrapes: int
    dropped: int
    longest_gap_s: float | None
    resets: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Where a term was taken from: the target's own endpoint or so many others, whether their engine's names for it are known
    from a running server, and how often their counters went back."""

    own: bool
    seen: bool
    endpoints: int
    resets: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A total by the server, and by the client: `low`, and `high` if requests whose usage is not known did all they might."""

    server: float
    low: float
    high: float
    taken: Taken


@dataclass(frozen=True, slots=True)
class Whole:
    """All that was sent, warm-up included, as both sides counted it. None: a side does not know.

    TTFT in ms, means over `server_n` and `client_n` first tokens; the client's is to the first text of any kind. `ttft_taken`
    is where the server's is from. `ttft_gap_ms`: the client's less the server's over the requests of both; the bounds where one
    side has more. `went_back`: how often the counters did that tokens would be of, where that is why no total
    of tokens is there.
    """

    prompt_tokens: Pair | None
    generation_tokens: Pair | None
    server_ttft_ms: float | None
    server_n: int
    client_ttft_ms: float | None
    client_n: int
    ttft_taken: Taken | None
    went_back: int | None
    ttft_gap_ms: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Preempted:
    """Preemptions by the server's metrics, over the measured phase: `events`, requests that were preempted once at least, those
    of them that ended with all their tokens, and the tokens that were lost from the KV cache. None where the server does not
    count it."""

    events: float
    requests: float | None
    finished: float | None
    discarded: float | None


@dataclass(frozen=True, slots=True)
class Server:
    """The server by its own metrics. `engine`: whose metric names they are; `seen`: these names were held against a running
    server. `whole`: both sides' totals; None where the scrapes do not enclose the load."""

    # `engine` and `seen` are of the target's own endpoint, or of the first; what a check rests on has its own (`Taken`).
    # `queue` and `running` in requests; `queue_thirds` are means of the thirds of the load span; tokens and requests were added
    # over the measured phase. None where the server does not show it.
    engine: str
    seen: bool
    endpoints: tuple[EndpointSeen, ...]
    running: Level | None
    queue: Level | None
    queue_thirds: tuple[float, ...] | None
    kv_usage: Level | None
    preemptions: float | None
    prefix_hit_share: float | None
    prompt_tokens: float | None
    generation_tokens: float | None
    succeeded: float | None
    failed: float | None
    ttft_ms: Timed | None
    itl_ms: Timed | None
    tpot_ms: Timed | None
    e2e_ms: Timed | None
    queue_ms: Timed | None
    whole: Whole | None
    prefill_ms: Timed | None = None


def preempted(scraped: Sequence[Translated], record: Record) -> Preempted | None:
    """What `scraped` counts of preemptions of a record's load, lead-in and lead-out included; None where it counts none."""
    if not scraped or not record.measured.any():
        return None
    begin = int(record.t_taken[record.of_load].min())
    events = _added(scraped, "preemptions", begin)
    requests, finished, discarded = (
        _added(scraped, term, begin)
        for term in ("preempted_requests", "preempted_finished", "discarded_tokens")
    )
    return None if events is None else Preempted(events, requests, finished, discarded)


def server_seen(
    scraped: Sequence[Translated], record: Record, load: Span | None, *, streamed: bool
) -> Server | None:
    """What `scraped` comes to for the requests of a record; None where no endpoint's names are known, or nothing was sent.

    `load`: the span of the load, for the thirds.
    """
    if not scraped or not record.measured.any():
        return None
    begin, end = int(record.t_taken[record.measured].min()), int(record.t_end[record.measured].max())
    first = next((one for one in scraped if one.own), scraped[0])
    hits, queries = (_added(scraped, term, begin) for term in ("prefix_hits", "prefix_queries"))
    rate = _level(track(scraped, "prefix_hit_rate"), begin, end)
    share = hits / queries if hits is not None and queries else None
    return Server(
        engine=first.engine,
        seen=first.verified,
        endpoints=tuple(_endpoint(one) for one in scraped),
        running=_level(track(scraped, "running"), begin, end),
        queue=_level(track(scraped, "waiting"), begin, end),
        queue_thirds=_thirds(track(scraped, "waiting"), load),
        kv_usage=_level(track(scraped, "kv_usage"), begin, end),
        prefix_hit_share=rate.mean if share is None and rate is not None else share,
        preemptions=_added(scraped, "preemptions", begin),
        prompt_tokens=_added(scraped, "prompt_tokens", begin),
        generation_tokens=_added(scraped, "generation_tokens", begin),
        succeeded=_added(scraped, "succeeded", begin),
        failed=_added(scraped, "failed", begin),
        ttft_ms=_timed(scraped, "ttft", begin),
        itl_ms=_timed(scraped, "itl", begin),
        tpot_ms=_timed(scraped, "tpot", begin),
        e2e_ms=_timed(scraped, "e2e", begin),
        queue_ms=_timed(scraped, "queue", begin),
        whole=_whole(scraped, record, streamed=streamed),
        prefill_ms=_timed(scraped, "prefill", begin),
    )


def _endpoint(one: Translated) -> EndpointSeen:
    gap = float(np.diff(one.times).max()) / NS_PER_S if len(one.times) > 1 else None
    return EndpointSeen(one.url, one.engine, one.own, len(one.times), one.dropped, gap, one.resets)


def _with(scraped: Sequence[Translated], term: str) -> list[Translated]:
    """The endpoints that a term is taken from."""
    having = [one for one in scraped if term in one.tracks or term in one.histograms]
    own = next((one for one in having if one.own), None)
    if own is None:
        return [one for one in having if one.engine == having[0].engine]
    replicas = [one for one in having if not one.own and one.engine == own.engine]
    return replicas if replicas and _alternates(own) else [own]


def _alternates(one: Translated) -> bool:
    """Whether its counters are of several servers in turn, and no total comes of them."""
    return one.resets > RESETS_MOST


def _taken(scraped: Sequence[Translated], term: str) -> Taken:
    used = _with(scraped, term)
    return Taken(
        own=any(one.own for one in used),
        seen=all(one.verified for one in used),
        endpoints=len(used),
        resets=sum(one.resets for one in used),
    )


def track(scraped: Sequence[Translated], term: str) -> Track | None:
    """A level, share or counter of the server over time, such as `waiting`, its queue depth; None where it shows none.

    Of several endpoints, at every scrape of one of them, with what the others said last.
    """
    used = [one for one in _with(scraped, term) if term in one.tracks]
    if term in COUNTERS and any(_alternates(one) for one in used):
        return None
    tracks = [one.tracks[term] for one in used]
    if len(tracks) < 2:
        return tracks[0] if tracks else None
    start = max(int(one.times[0]) for one in tracks)
    times: Ints = np.unique(np.concatenate([one.times for one in tracks]))
    times = times[times >= start]
    rows = np.stack([one.values[np.searchsorted(one.times, times, "right") - 1] for one in tracks])
    values = (
        rows.max(axis=0)
        if term == "kv_usage"
        else rows.mean(axis=0)
        if term == "prefix_hit_rate"
        else rows.sum(axis=0)
    )
    return Track(times, values)


def _level(series: Track | None, begin: int, end: int) -> Level | None:
    if series is None:
        return None
    values = series.values[(series.times >= begin) & (series.times <= end)]
    return Level(float(values.mean()), float(values.max()), float(values[-1])) if len(values) else None


def _thirds(series: Track | None, load: Span | None) -> tuple[float, ...] | None:
    if series is None or load is None:
        return None
    parts = [
        series.values[(series.times >= part.start) & (series.times <= part.end)] for part in thirds(load)
    ]
    return tuple(float(part.mean()) for part in parts) if all(len(part) for part in parts) else None


def _base(times: Ints, begin: int) -> int | None:
    """The last scrape before `begin`; None where there is none: then what was counted by then is not known."""
    before = int(np.searchsorted(times, begin, "right")) - 1
    return before if before >= 0 else None


def _added(scraped: Sequence[Translated], term: str, begin: int) -> float | None:
    """What a counter added from the last scrape before `begin` to the last of all."""
    used = [one for one in _with(scraped, term) if term in one.tracks]
    tracks = [one.tracks[term] for one in used]
    bases = [_base(one.times, begin) for one in tracks]
    if not tracks or any(base is None for base in bases) or any(_alternates(one) for one in used):
        return None
    return float(sum(one.values[-1] - one.values[base] for one, base in zip(tracks, bases, strict=True)))


def _grown(scraped: Sequence[Translated], term: str) -> list[Grown]:
    used = [one for one in _with(scraped, term) if term in one.histograms]
    return [] if any(_alternates(one) for one in used) else [one.histograms[term] for one in used]


def _mean_s(increments: Sequence[Grown], begin: int) -> tuple[float, float] | None:
    """Observations and their sum in s, added since `begin`; None also of a sum below zero, which is none of durations."""
    bases = [_base(one.times, begin) for one in increments]
    if not increments or any(base is None for base in bases):
        return None
    pairs = list(zip(increments, bases, strict=True))
    count = float(sum(one.counts[-1] - one.counts[base] for one, base in pairs))
    total = float(sum(one.sums[-1] - one.sums[base] for one, base in pairs))
    return (count, total) if total >= 0 else None


def _timed(scraped: Sequence[Translated], term: str, begin: int) -> Timed | None:
    found = _grown(scraped, term)
    added = _mean_s(found, begin)
    if added is None or added[0] <= 0:
        return None
    points: dict[str, float | None] = dict.fromkeys(SHOWN)
    between: dict[str, tuple[float, float | None]] = {}
    if len(found) == 1 and found[0].les:  # buckets of several endpoints need not be the same
        observed = _observed(found[0], begin)
        estimates = ESTIMATORS[BEST](observed)
        if estimates is not None:
            named = dict(zip(PERCENTILES, estimates.tolist(), strict=True))
            for name in SHOWN:
                low, high = bracket(observed, int(name[1:]))
                points[name] = min(max(named[int(name[1:])], low), high) * 1_000
                between[name] = low * 1_000, high * 1_000 if math.isfinite(high) else None
    return Timed(round(added[0]), added[1] / added[0] * 1_000, **points, between=between)


def _observed(grown: Grown, begin: int) -> Observed:
    base = _base(grown.times, begin)
    assert base is not None, "a histogram that was added up"
    bounds, buckets = with_overflow(grown.les, grown.buckets, grown.counts)
    return Observed(
        bounds=bounds,
        cumulative=buckets[-1] - buckets[base],
        sum=float(grown.sums[-1] - grown.sums[base]),
        count=float(grown.counts[-1] - grown.counts[base]),
        history_buckets=buckets[base:],
        history_sums=grown.sums[base:],
        history_counts=grown.counts[base:],
        within=len(grown.times) - base,
    )


def _whole(scraped: Sequence[Translated], record: Record, *, streamed: bool) -> Whole | None:
    """Both sides' totals; None where a worker took requests with it. What was not scraped again after the last request's end
    has no total."""
    if record.deaths:
        return None
    begin, end = int(record.t_taken.min()), int(record.t_end.max())

    def enclosed(term: str) -> bool:
        return all(int(one.times[-1]) >= end for one in _with(scraped, term))

    first_tokens = _grown(scraped, "ttft")
    ttft = _mean_s(first_tokens, begin) if enclosed("ttft") else None
    if ttft is not None and ttft[1] <= 0:
        ttft = None  # a first token takes time
    prompt, generation = (
        _added(scraped, term, begin) if enclosed(term) else None
        for term in ("prompt_tokens", "generation_tokens")
    )
    resets = _taken(scraped, "prompt_tokens").resets, _taken(scraped, "generation_tokens").resets
    none = prompt is None and generation is None
    seen_ms = _ttft_ms(record) if streamed else np.zeros(0)
    return Whole(
        prompt_tokens=_pair(prompt, record, _taken(scraped, "prompt_tokens"), of="input"),
        generation_tokens=_pair(generation, record, _taken(scraped, "generation_tokens"), of="output"),
        server_ttft_ms=ttft[1] / ttft[0] * 1_000 if ttft is not None and ttft[0] > 0 else None,
        server_n=0 if ttft is None else round(ttft[0]),
        client_ttft_ms=float(seen_ms.mean()) if len(seen_ms) else None,
        client_n=len(seen_ms),
        ttft_taken=_taken(scraped, "ttft") if ttft is not None else None,
        went_back=max(resets) if none and max(resets) > RESETS_MOST else None,
        ttft_gap_ms=None
        if ttft is None
        else ttft_gap_ms(seen_ms, round(ttft[0]), ttft[1] * 1_000, _buckets_ms(first_tokens, begin)),
    )


def _buckets_ms(increments: Sequence[Grown], begin: int) -> Buckets:
    """What histograms in s added since `begin`, together; None where they have none, or not the same."""
    if not increments or not increments[0].les or len({one.les for one in increments}) > 1:
        return None
    observed = [_observed(one, begin) for one in increments]
    cumulative = np.sum([one.cumulative for one in observed], axis=0)
    return observed[0].bounds * 1_000, np.diff(cumulative, prepend=0.0)


def _ttft_ms(record: Record) -> Floats:
    """From t_submit to the first text of any kind, of every request that had one, whatever became of it later."""
    rows = np.flatnonzero((record.first_text >= 0) & record.t_submit.valid)
    at = record.event_ns[record.event_offsets[:-1][rows] + record.first_text[rows]]
    found: Floats = (at - record.t_submit.values[rows]) / NS_PER_MS
    return found


def _pair(server: float | None, record: Record, taken: Taken, *, of: str) -> Pair | None:
    """The client's total is the sum of the usage it was told. A request without usage may have been worked on up to what it
    asked for; of prompts, by as many of the server's tokens for one of ours as the others had."""
    usage = record.usage_input if of == "input" else record.usage_output
    asked = record.input_tokens_sent if of == "input" else record.output_tokens_asked
    known: Mask = usage.valid
    if server is None or not known.any():
        return None
    low = float(usage.values[known].sum())
    open_ = record.t_send.valid & ~known
    each = low / max(1.0, float(asked[known].sum())) if of == "input" else 1.0
    return Pair(server, low, low + each * float(asked[open_].sum()), taken)


@dataclass(frozen=True, slots=True)
class Points:
    """What a gauge or a rate was over time: `t_s` in s."""

    t_s: tuple[float, ...]
    values: tuple[float, ...]


def server_series(scraped: Sequence[Translated], start_ns: int) -> dict[str, Points]:
    """What can be drawn of the server on the run's timeline, thinned: `running`, `waiting`, `kv_usage`, `generation_tok_s` and
    `prefix_hit_share`, as far as its metrics have them. Times are from `start_ns`.

    `generation_tok_s` and `prefix_hit_share` are of the time since the scrape before, one interval of scraping at least.
    """
    found = {name: track(scraped, name) for name in ("running", "waiting", "kv_usage", "prefix_hit_rate")}
    generated, hits, queries = (
        track(scraped, name) for name in ("generation_tokens", "prefix_hits", "prefix_queries")
    )
    if generated is not None:
        at, grown, seconds = _steps(generated)
        found["generation_tok_s"] = Track(at, grown / seconds)
    found["prefix_hit_share"] = found.pop("prefix_hit_rate")
    if hits is not None and queries is not None and np.array_equal(hits.times, queries.times):
        (at, found_there, _), (_, looked_for, _) = _steps(hits), _steps(queries)
        some = looked_for > 0
        found["prefix_hit_share"] = Track(at[some], found_there[some] / looked_for[some])
    return {
        name: _thinned(one, start_ns) for name, one in found.items() if one is not None and len(one.times)
    }


def _steps(counter: Track) -> tuple[Ints, Floats, Floats]:
    """When, by how much and in how many seconds a counter grew, from scrape to scrape; scrapes that came out of turn, at the
    ends of phases, are passed over, for a rate over a few ms is noise."""
    if len(counter.times) < 2:
        return counter.times[:0], np.zeros(0), np.zeros(0)
    least = 0.7 * float(np.median(np.diff(counter.times)))
    kept = [0]
    for at in range(1, len(counter.times)):
        if counter.times[at] - counter.times[kept[-1]] >= least:
            kept.append(at)
    times, values = counter.times[kept], counter.values[kept]
    return times[1:], np.diff(values), np.diff(times) / NS_PER_S


def _thinned(one: Track, start_ns: int) -> Points:
    """Means of neighbours where there are more than POINTS_MOST."""
    size = -(-len(one.times) // POINTS_MOST)
    starts = np.arange(0, len(one.times), size)
    counts = np.diff(np.append(starts, len(one.times)))
    t_s = (one.times - start_ns) / NS_PER_S
    return Points(
        tuple((np.add.reduceat(t_s, starts) / counts).tolist()),
        tuple((np.add.reduceat(one.values, starts) / counts).tolist()),
    )
