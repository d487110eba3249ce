"""By how much the server's output tokens differ from the client's own counts, answer by answer.

Sums agree where one answer is counted too high and the next as much too low, and still no figure per token of either is right.
So differences are summed apart for the answers that the server counts higher, and for those that it counts lower; the larger
of the two sums is what does not cancel. As much as an answer may miss its length by (lengths.OUTPUT_MISS) is left to the sums
of all answers: a text that is encoded again has a token more or less.

| against     | of the client's own                                                                              |
| ----------- | ------------------------------------------------------------------------------------------------ |
| `events`    | events with text, or those and the deltas that may be part of a character, whichever is nearer    |
| `tokenizer` | tokens of the text                                                                               |
| `both`      | what lies between the two is no difference                                                       |

One end-of-sequence token more is none of an answer that ended by itself. `words`: how many words the answers have more than
tokens by the server's count; no tokenizer makes one token of two. `estimated`: the share of the answers, or of their tokens if
that is more, that was estimated because nobody counted them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.lengths import OUTPUT_MISS
from inferometer.measure.record import Floats, Ints, Mask
from inferometer.measure.tokens import Counts, CountSource

_ESTIMATE = tuple(CountSource).index(CountSource.ESTIMATE)


@dataclass(frozen=True, slots=True)
class CountGaps:
    """See the head; the first four in tokens."""

    events: float
    tokenizer: float
    both: float
    words: float
    estimated: float


def count_gaps(
    counts: Counts, events: Floats, silent: Floats, words: Ints, ended: Mask, lossy: Mask
) -> CountGaps:
    """One entry a sample: `events` with text, `silent` ones beside them that may be tokens, `words` of the text, whether it
    `ended` by itself, and whether its text is `lossy`, so that it cannot be encoded again."""
    server, stop = counts.server_output, ended.astype(np.float64)
    local = np.where(lossy, np.nan, counts.local_output)
    told = ~np.isnan(server)
    n = len(server)
    estimates = counts.source == _ESTIMATE
    total = float(np.nansum(counts.output))
    share = float(counts.output[estimates].sum()) / total if total else 0.0
    return CountGaps(
        events=_uncancelled(server, events, events + silent + stop),
        tokenizer=_uncancelled(server, local, local + stop),
        both=_uncancelled(server, np.fmin(events, local), np.fmax(events, local) + stop),
        words=float(np.maximum(words - server, 0.0)[told].sum()),
        estimated=max(share, float(estimates.sum()) / n) if n else 0.0,
    )


def _uncancelled(server: Floats, least: Floats, most: Floats) -> float:
    """The larger of two sums: what single answers have beyond `most`, and short of `least`. NaN counts are left out."""
    slack = np.maximum(OUTPUT_MISS[0], OUTPUT_MISS[1] * server)
    over, under = server - most, least - server
    return max(float(np.nansum(np.where(off > slack, off, 0.0))) for off in (over, under))
