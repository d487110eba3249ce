"""The warm-up as a procedure (draft 4.5.1, 4.5.2), the same for a real run and a simulated one; and what a record says of it.

    one probe -> the warm-up's requests, and again while tokens are missing -> drain -> probe after probe until three agree

A probe is one request with nothing else in flight. All ask for the same lengths and share no prefix with anything. What counts
is its latency from the request's last byte to the end of the answer: that is all of the server's work, prefill and
generation, where a first token alone would say nothing of the latter. Three probes in a row agree if, of the three,

    (max - min) / median < 0.1

Where neither the tokens nor the agreement come within bounds, the run goes on, and says so. Of a server that hangs there is
nothing to measure: where no request has succeeded for as long as one may take, and some have failed, the run ends (`Patience`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inferometer.documents.summary import WarmUp, WarmUpProbes, WarmUpVolume
from inferometer.documents.workload import WarmPrefixes
from inferometer.errors import PeerError
from inferometer.journal.schema import Outcome, Phase
from inferometer.measure.record import Ints
from inferometer.measure.server import track
from inferometer.plan.schema import Load
from inferometer.telemetry.metrics.normalised import Translated
from inferometer.units import NS_PER_MS, NS_PER_S

IN_A_ROW = 3
VARIATION = 0.10
MOST_TIMES = 10
"""Answers may be shorter than asked: the warm-up's requests are sent again, but no more than so many times as many in all."""
SPARE = 1.1
"""So many times as many requests are asked again as answers like those before would take."""


LEAST_PATIENCE_S = 60.0


class Patience:
    """Of a warm-up: it is over once no request has succeeded for `timeout_s`, LEAST_PATIENCE_S at least, while others failed.

    Instants in monotonic ns. `over` is asked several times a second, with the totals so far.
    """

    def __init__(self, timeout_s: float) -> None:
        self._limit_s = max(timeout_s, LEAST_PATIENCE_S)
        self._latest: tuple[int, int, int] | None = (
            None  # when the latest success was seen, and the totals then
        )
        self.spent = False

    def over(self, ok: int, failed: int, now: int) -> bool:
        """Whether it is over; from then on it stays so."""
        if self._latest is None or ok > self._latest[1]:
            self._latest = now, ok, failed
        since, _, failed_then = self._latest
        self.spent = self.spent or (failed > failed_then and now - since >= self._limit_s * NS_PER_S)
        return self.spent

    def refuse(self) -> None:
        """Raises PeerError if it is over."""
        if self.spent:
            raise PeerError(
                f"the warm-up was ended: no request succeeded for {self._limit_s:g} s, and others failed. Does the server "
                "hang? The run folder has what was sent (`inferometer recover`)."
            )


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of the schedule that are sent as one: `first` up to before `stop`. `cycle`: how often they were sent before."""

    phase: Phase
    first: int
    stop: int
    cycle: int = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """Where in the schedule a warm-up stands: its requests, then its probes. `indivisible`: they wait for each other's
    answers, so that no part of them can be sent alone."""

    requests: int
    probes: int
    indivisible: bool


Play = Callable[[Part], bool]
"""Sends a part and waits until all of it has ended. Whether to go on."""
Ended = Callable[[], pa.Table]
"""All that has ended so far: OUTCOME's columns."""
Count = Callable[[Sequence[str]], Sequence[int | None]]
"""The tokens of each text, None where nobody could count it."""


def warm_up(
    load: Load,
    rows: Rows,
    play: Play,
    ended: Ended,
    count: Count,
    drained: Callable[[], None],
    *,
    usage: bool = True,
) -> bool:
    """Carry the warm-up out. `drained` is called when nothing of it is in flight any more. `usage`: see `volume`. Whether the
    run goes on."""
    probe, end = rows.requests, rows.requests + rows.probes
    if rows.probes:
        if not play(Part(Phase.PROBE, probe, probe + 1)):
            return False
        probe += 1
    if not _volume(load, rows, play, lambda: volume(ended(), count, usage=usage)):
        return False
    drained()
    after: list[float | None] = []
    while probe < end and not settled(after):
        if not play(Part(Phase.PROBE, probe, probe + 1)):
            return False
        after.append(latency_ms(ended(), probe))
        probe += 1
    return True


def _volume(load: Load, rows: Rows, play: Play, found: Callable[[], tuple[int, int]]) -> bool:
    """All rows once, and then as many of them again as are missing, where tokens are asked for. `found`: requests and tokens
    so far."""
    if not play(Part(Phase.WARMUP, 0, rows.requests)):
        return False
    sent, cycle, before = rows.requests, 0, (0, 0)
    while load.warmup_tokens:
        done, tokens = found()
        missing = max(
            load.warmup - done,
            math.ceil(SPARE * (load.warmup_tokens - tokens) * done / tokens) if tokens else rows.requests,
        )
        left = MOST_TIMES * rows.requests - sent
        if missing <= 0 or (done, tokens) == before or left < 1:
            break
        number = rows.requests if rows.indivisible else min(missing, left, rows.requests)
        cycle, before = cycle + 1, (done, tokens)
        if not play(Part(Phase.WARMUP, 0, number, cycle)):
            return False
        sent += number
    return True


def variation(latencies: Sequence[float | None]) -> float | None:
    """(max - min) / median of the last three; None where there are fewer, or one of them failed."""
    last = [one for one in latencies[-IN_A_ROW:] if one is not None]
    return (max(last) - min(last)) / median(last) if len(last) == IN_A_ROW and median(last) > 0 else None


def settled(latencies: Sequence[float | None]) -> bool:
    """Whether the last three latencies agree."""
    found = variation(latencies)
    return found is not None and found < VARIATION


def volume(outcomes: pa.Table, count: Count, *, usage: bool = True) -> tuple[int, int]:
    """The successful requests of the warm-up, and their output tokens: as the server counts them, or else by `count`. Without
    `usage` by `count` alone: a compound system counts what nobody sees."""
    rows = outcomes.select(["phase", "outcome", "usage_output", "text"]).to_pylist()
    done = [one for one in rows if one["phase"] == Phase.WARMUP and one["outcome"] == Outcome.OK]
    told = sum(one["usage_output"] or 0 for one in done if usage)
    silent = [one for one in done if one["usage_output"] is None or not usage]
    texts = [one["text"] for one in silent if one["text"] is not None]
    return len(done), told + sum(tokens or 0 for tokens in count(texts))


def latency_ms(outcomes: pa.Table, index: int) -> float | None:
    """End-to-end latency of the request in this row of the schedule; None where it did not succeed."""
    found = outcomes.filter(pc.field("index") == index).select(["outcome", "t_submit", "t_end"]).to_pylist()
    return _latency_ms(*found[0].values()) if found else None


def _latency_ms(outcome: str, submit_ns: int | None, end_ns: int) -> float | None:
    return float(end_ns - submit_ns) / NS_PER_MS if outcome == Outcome.OK and submit_ns is not None else None


class _Sent(msgspec.Struct):
    """A row of the record, of a request before the measurement."""

    phase: int
    outcome: str
    usage_output: int | None
    output_tokens_local: int | None
    t_taken: int
    t_submit: int | None
    t_end: int
    input_tokens_asked: int | None
    output_tokens_asked: int | None

    @property
    def latency_ms(self) -> float | None:
        """As of any outcome."""
        return _latency_ms(self.outcome, self.t_submit, self.t_end)


WARM_UP_COLUMNS = _Sent.__struct_fields__
"""What `warm_up_summary` reads of a record."""


def _gauge(scraped: Sequence[Translated], term: str, begin: int | None, end: float) -> float | None:
    """What the server itself said between two instants, at the first scrape there; None: nothing."""
    series = track(scraped, term) if scraped else None
    if series is None or begin is None:
        return None
    at = int(np.searchsorted(series.times, begin))
    return float(series.values[at]) if at < len(series.times) and series.times[at] < end else None


def warm_up_summary(
    load: Load,
    rows: pa.Table,
    taken: Ints,
    prefixes: WarmPrefixes | None,
    scraped: Sequence[Translated] = (),
    *,
    usage: bool = True,
) -> WarmUp:
    """`warm_up` of the summary. `rows`: those of a sealed record that are not measured, WARM_UP_COLUMNS; `taken`: when each
    request of the record was taken up (ns). `prefixes`: what run.json says of them. `scraped`: the server's own metrics over
    the run. `usage`: see `volume`."""
    plain = msgspec.convert(rows.to_pylist(), list[_Sent])
    warm = [one for one in plain if one.phase == Phase.WARMUP]
    done = [one for one in warm if one.outcome == Outcome.OK]
    counts = [
        one.output_tokens_local if one.usage_output is None or not usage else one.usage_output for one in done
    ]
    tokens = sum(count or 0 for count in counts)
    uncounted = bool(counts) and all(count is None for count in counts)
    end = max((one.t_end for one in warm), default=None)
    later = taken[taken >= end] if end is not None else taken[:0]
    next_ns: float = int(later.min()) if len(later) else math.inf
    return WarmUp(
        asked=WarmUpVolume(load.warmup, load.warmup_tokens),
        requests=len(warm),
        completed=len(done),
        output_tokens=None if uncounted else tokens,
        reached=len(done) >= load.warmup and tokens >= load.warmup_tokens,
        drained=all(one.outcome != Outcome.CANCELLED for one in warm) if warm else None,
        waiting=_gauge(scraped, "waiting", end, next_ns),
        running=_gauge(scraped, "running", end, next_ns),
        prefixes=prefixes,
        probes=_probes(load, [one for one in plain if one.phase == Phase.PROBE], warm),
        skipped=load.cold_start,
    )


def _probes(load: Load, probes: Sequence[_Sent], warm: Sequence[_Sent]) -> WarmUpProbes:
    """Those before the first request of the warm-up, and those behind it, in their order. Times in ms."""
    begun = min((one.t_taken for one in warm), default=math.inf)
    ordered = sorted(probes, key=lambda one: one.t_taken)
    before = [one.latency_ms for one in ordered if one.t_taken < begun]
    after = [one.latency_ms for one in ordered if one.t_taken >= begun]
    stable = settled(after)
    return WarmUpProbes(
        most=load.warmup_probes,
        input_tokens=ordered[0].input_tokens_asked if ordered else None,
        output_tokens=ordered[0].output_tokens_asked if ordered else None,
        before_ms=before[0] if before else None,
        after_ms=tuple(after),
        variation=variation(after),
        limit=VARIATION,
        stable=stable if stable or 0 < load.warmup_probes <= len(after) else None,
    )
