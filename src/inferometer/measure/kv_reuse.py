"""How much of a step's prompt its session had computed before, and how much of that the server took from its prefix cache.

By the server's own counts of the step s and of the step e that it goes on with; i and o are prompt and answer tokens:

| of s     | tokens                                                                                             |
| -------- | -------------------------------------------------------------------------------------------------- |
| possible | min(i_s, i_e), and o_e less its reasoning if the server's own answer is repeated                   |
| best     | the same less the prompt's last token, in whole blocks: what a cache without limit finds           |
| seen     | min(cached, possible): what the server says that it found, of what its session had computed        |

A step that goes on with none repeats nothing: 0, 0, 0. What is cached beyond `possible` was known from elsewhere: a chat
template, the same tools in front of other conversations, an earlier run. A recorded reply is new to the server, whatever it
answered itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats, Ints, Mask
from inferometer.measure.samples import Samples
from inferometer.measure.session_steps import NONE, SessionRuns

BLOCK = 16
"""Tokens of a block, where the engine does not state them: what most hold by default, vLLM among them."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Tokens of each entry of the runs, NaN where not known: its prompt, what of it was cached, and the three above. `told`:
    all of them are known; `extending`: it goes on with another step."""

    prompt: Floats
    cached: Floats
    possible: Floats
    best: Floats
    seen: Floats
    told: Mask
    extending: Mask


def reuse_of(runs: SessionRuns, samples: Samples, block: int = BLOCK) -> Reuse:
    """Of all entries; see the head. `block`: tokens of a block."""
    graph, entries = runs.graph, len(runs.row)
    sample = sample_of(runs, samples)
    prompt, answer = (np.full(entries, np.nan) for _ in range(2))
    ok = sample >= 0
    prompt[ok] = samples.counts.server_input[sample[ok]]
    answer[ok] = (samples.counts.server_output - samples.counts.reasoning)[sample[ok]]
    cached = np.full(entries, np.nan)
    column = samples.record.usage_cached
    cached[ok] = np.where(column.valid, column.values, np.nan)[samples.rows[sample[ok]]]
    extends = graph.extends[runs.place]
    extending = extends != NONE
    first = runs.offsets[:-1][runs.run] if entries else np.zeros(0, np.int64)
    earlier = np.where(extending, first + extends - graph.head[runs.place], 0)
    had = np.zeros(entries)
    if entries:
        own = graph.own_reply[runs.place[earlier]]
        had = np.where(extending, prompt[earlier] + np.where(own, answer[earlier], 0.0), 0.0)
    possible = np.minimum(prompt, had)
    best = np.maximum(np.floor(np.minimum(possible, prompt - 1) / block), 0.0) * block
    return Reuse(
        prompt,
        cached,
        possible,
        best,
        np.minimum(cached, possible),
        ~np.isnan(cached) & ~np.isnan(possible),
        extending,
    )


def sample_of(runs: SessionRuns, samples: Samples) -> Ints:
    """The sample of each entry; NONE where it did not succeed."""
    place = np.full(len(runs.record) + 1, NONE, np.int64)  # the last one is that of entries without a row
    place[samples.rows] = np.arange(len(samples))
    return place[runs.row]
