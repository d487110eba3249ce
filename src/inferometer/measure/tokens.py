"""How many tokens went in and came out, who counted them, and how many one event carries.

Source of a request's output count n, the first that exists (draft 4.4.2, docs/definitions.md):

| method      | 1                                        | 2                          | 3                         |
| ----------- | ---------------------------------------- | -------------------------- | ------------------------- |
| `native`    | the server's usage                       | the tokenizer over the text| max(1, characters // 4)   |
| `reference` | the declared tokenizer over the joined text | the server's usage      | max(1, characters // 4)   |

The last is flagged as an estimate. A compound system's usage counts what its user never sees (draft 4.1.3): there the
tokenizer alone counts, and a text that it did not count has no count. Never the number of events. A usage count of 0 beside
text is no count: some servers send zeros for "unknown". Of a prompt likewise: the server's usage and then what was sent, or
what was sent alone; a prompt that neither counted has no count.

Reasoning may be counted and not sent: its tokens are made and take time, but no event has them. Where usage gives their number
and the stream has no event of them, what is said of events (how many tokens one holds, the pace after the first) is said of
the others alone.

Tokens per event (draft B.2.1). A request with e text events and t tokens, each event holding at least one, has at least
2 e - t events of exactly one token: if only k were single, t would be at least k + 2 (e - k). The share of single-token
events is summed from that bound, so it may be understated, never overstated; an end-of-sequence token that is counted but
carries no text (t = e + 1) costs one event a request.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from inferometer.journal.schema import EventClass
from inferometer.measure.large_arrays import held
from inferometer.measure.record import Column, Floats, Ints, Mask, Record, counted

CHARS_PER_TOKEN = 4


class CountSource(enum.StrEnum):
    """Who counted a request's output tokens."""

    SERVER = "server usage"
    TOKENIZER = "tokenizer"
    ESTIMATE = "estimate"


_SOURCES = tuple(CountSource)


@dataclass(frozen=True, slots=True)
class Counts:
    """Token counts, one entry a sample, NaN where there is none; `source` indexes CountSource, -1: nobody counted.

    `streamed`, `server_streamed`: of `output` and `server_output` those that can be in the answer's events; `reasoning`: how
    many of `server_output` are reasoning by usage, sent or not, 0 where it says nothing.
    """

    input: Floats
    output: Floats
    source: Ints
    server_input: Floats
    server_output: Floats
    local_output: Floats
    streamed: Floats
    server_streamed: Floats
    reasoning: Floats

    @property
    def answers_known(self) -> bool:
        """Whether each answer was counted."""
        return not bool(np.isnan(self.output).any())

    @property
    def prompts_known(self) -> bool:
        """Whether each prompt was counted."""
        return not bool(np.isnan(self.input).any())

    def by_source(self) -> dict[str, int]:
        """Samples counted by each source, absent ones left out."""
        tally = np.bincount(self.source[self.source >= 0], minlength=len(_SOURCES))
        return {str(name): int(n) for name, n in zip(_SOURCES, tally, strict=True) if n}


def count(record: Record, rows: Ints, *, reference: bool) -> Counts:
    """Count the tokens of `rows`, all of which succeeded. `reference`: by the declared tokenizer, whatever the server says."""
    chars = record.text_chars[rows].values
    server = held(_positive(record.usage_output[rows], chars > 0))
    local = held(_floats(record.output_tokens_local[rows]))
    estimate = np.maximum(1, chars // CHARS_PER_TOKEN).astype(np.float64)
    nobody = len(_SOURCES) - 1
    if record.system_usage is not None:
        estimate, nobody = np.full(len(rows), np.nan), -1
    order = [(local, 1), (server, 0)] if reference else [(server, 0), (local, 1)]
    known, values, sources = zip(*((~np.isnan(of), of, source) for of, source in order), strict=True)
    everyone = np.ones(len(rows), np.bool_)
    server_input = held(_positive(record.usage_input[rows], everyone))
    sent = record.input_tokens[rows]
    # Steps of recorded sessions are as long as the server counts: nobody else did.
    ours = np.isnan(server_input) | (reference & ~np.isnan(sent))
    output = held(np.select(known, values, estimate))
    source = held(np.select(known, sources, nobody).astype(np.int64))
    reasoning = held(
        np.minimum(record.usage_reasoning.values[rows].astype(np.float64), np.nan_to_num(server))
    )
    withheld = np.where(_has_reasoning(record)[rows], 0.0, reasoning)
    return Counts(
        input=held(np.where(ours, sent, server_input)),
        output=output,
        source=source,
        server_input=server_input,
        server_output=server,
        local_output=local,
        streamed=held(output - np.where(source == _SOURCES.index(CountSource.SERVER), withheld, 0.0)),
        server_streamed=held(server - withheld),
        reasoning=reasoning,
    )


def _has_reasoning(record: Record) -> Mask:
    """Which requests have an event of reasoning."""
    found: Mask = counted(record.event_class == EventClass.REASONING, record.event_offsets) > 0
    return found


def _floats(column: Column) -> Floats:
    return np.where(column.valid, column.values.astype(np.float64), np.nan)


def _positive(column: Column, impossible_zero: Mask) -> Floats:
    """The column, NaN where null, or where it says 0 although there plainly was something."""
    return np.where((column.values <= 0) & impossible_zero, np.nan, _floats(column))


def off_by_more(counted: Floats, requested: Floats, at_least: float, share: float) -> Mask:
    """Where |counted - asked| exceeds max(at_least, share x asked). NaN counts are no miss."""
    return np.abs(counted - requested) > np.maximum(at_least, share * requested)


def single_token_share(events: Ints, tokens: Floats) -> float | None:
    """Least share of text events holding exactly one token; requests with NaN tokens are left out; None if none is left."""
    known = ~np.isnan(tokens)
    total = int(events[known].sum())
    if total == 0:
        return None
    single = np.clip(2 * events[known] - tokens[known], 0, events[known])
    return float(single.sum()) / total
