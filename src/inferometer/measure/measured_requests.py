"""The measured requests of a sealed record, one value for each: what generations of engines are made from.

| by the client's clock | is                                                                          |
| --------------------- | --------------------------------------------------------------------------- |
| TTFT                  | from the last byte of the request (`t_submit`) to the first text of any kind |
| total                 | from the same instant to the end of the answer (`t_end`)                     |

Arrivals are the kernel's stamps where it gives any.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from inferometer.journal.schema import Outcome, Phase
from inferometer.measure.bench_metrics import Durations, client_durations
from inferometer.measure.record import TEXT_CLASSES
from inferometer.units import NS_PER_MS

COLUMNS = (
    "phase",
    "index",
    "t_submit",
    "t_end",
    "event_ns",
    "event_class",
    "first_text",
    "outcome",
    "finish_reason",
    "text",
    "text_chars",
    "usage_input",
    "usage_output",
    "usage_cached",
    "server_total_ns",
    "server_prefill_ns",
    "server_decode_ns",
)
"""What is read of a record (journal/schema.py)."""


EARLY_GAPS = 3
LEAST_GAPS = 8
"""For a usual gap to be told from the first ones."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The longest of the EARLY_GAPS gaps after the first text, and the mean of all others up to the end, ms."""

    longest_ms: float
    usual_ms: float


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    """One request. `row`: its place in the record; `index`: among those sent; `first_text_ns` and
    `last_text_ns`: None without a text of a stream, and `pause` also with few.

    Instants are on the run's clock, ns. Tokens are the engine's counts, and `own_*_ns` its durations, each None where it does
    not report it. `characters`: of the answer's text.
    """

    row: int
    index: int
    outcome: str
    submitted_ns: int | None
    first_text_ns: int | None
    ended_ns: int
    finish_reason: str | None
    characters: int
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    own_total_ns: int | None
    own_prefill_ns: int | None
    own_decode_ns: int | None
    pause: Pause | None = None
    last_text_ns: int | None = None

    @property
    def answered(self) -> bool:
        """Whether it succeeded."""
        return self.outcome == Outcome.OK

    @property
    def total_ms(self) -> float | None:
        """By the client; None of a request that was never sent whole."""
        return None if self.submitted_ns is None else (self.ended_ns - self.submitted_ns) / NS_PER_MS

    @property
    def client(self) -> Durations | None:
        """M2, M3 and M5 by the client's clock; None without a first text of a stream."""
        total = self.total_ms
        if total is None or self.submitted_ns is None or self.first_text_ns is None:
            return None
        return client_durations((self.first_text_ns - self.submitted_ns) / NS_PER_MS, total)


def measured_requests(record: pa.Table) -> tuple[MeasuredRequest, ...]:
    """Those of a record with COLUMNS, in order of sending."""
    found = []
    for at, row in enumerate(record.select(COLUMNS).to_pylist()):
        if row["phase"] != Phase.MEASURE:
            continue
        first, events = row["first_text"], row["event_ns"]
        found.append(
            MeasuredRequest(
                row=at,
                index=row["index"],
                outcome=row["outcome"],
                submitted_ns=row["t_submit"],
                first_text_ns=events[first] if 0 <= first < len(events) else None,
                ended_ns=row["t_end"],
                finish_reason=row["finish_reason"],
                characters=(row["text_chars"] or 0) if row["text"] is None else len(row["text"]),
                prompt_tokens=row["usage_input"],
                output_tokens=row["usage_output"],
                cached_tokens=_cached(row["usage_cached"], row["usage_input"]),
                own_total_ns=row["server_total_ns"],
                own_prefill_ns=row["server_prefill_ns"],
                own_decode_ns=row["server_decode_ns"],
                pause=_pause(events[first:]) if first >= 0 else None,
                last_text_ns=_last_text(events, row["event_class"] or b""),
            )
        )
    return tuple(found)


def _cached(cached: int | None, prompt: int | None) -> int | None:
    """More cached tokens than the prompt has are no count."""
    return None if cached is not None and prompt is not None and cached > prompt else cached


def _pause(events: Sequence[int]) -> Pause | None:
    """Of the instants from the first text on, ns."""
    gaps = [after - before for before, after in itertools.pairwise(events)]
    if len(gaps) < LEAST_GAPS:
        return None
    longest = max(gaps[:EARLY_GAPS])
    return Pause(longest / NS_PER_MS, (sum(gaps) - longest) / (len(gaps) - 1) / NS_PER_MS)


def _last_text(events: Sequence[int], classes: bytes) -> int | None:
    texts = [at for at, kind in zip(events, classes, strict=False) if kind in TEXT_CLASSES]
    return texts[-1] if texts else None
