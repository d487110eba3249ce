"""How much longer the mean TTFT is at the client than by the server's metrics, over the requests that both have.

One side may have k first tokens more: a health check, another client's request, one that was given up. Which they are is not
known, so the gap has bounds. With S the sum of the server's n observations, and m = min(n_client, n_server):

    k more at the server   [mean(client) - (S - least_k) / m,   mean(client) - (S - most_k) / m]
    k more at the client   [mean(least m of the client) - S / m, mean(most m of the client) - S / m]

where most_k is the most that k of the observations can sum up to by the histogram's buckets, S at most, and least_k the least.
Without k they are one number. That the fewer are among the others is assumed: counters alone cannot show it.
"""

from __future__ import annotations

import numpy as np

from inferometer.measure.record import Floats

Bounds = tuple[float, float]
Buckets = tuple[Floats, Floats] | None
"""A histogram that was added up: upper bounds in ms, ascending, the last may be infinite; and the count
of each. None: not known."""


def ttft_gap_ms(client_ms: Floats, server_n: int, server_sum_ms: float, buckets: Buckets) -> Bounds | None:
    """The bounds in ms; None where a side has no first token. `client_ms`: TTFT of each request, shape (n_client,)."""
    common = min(len(client_ms), server_n)
    if common < 1:
        return None
    if len(client_ms) > server_n:
        ordered, server = np.sort(client_ms), server_sum_ms / common
        return float(ordered[:common].mean()) - server, float(ordered[-common:].mean()) - server
    least, most = extras_ms(server_n - common, buckets)
    client = float(client_ms.mean())
    return (
        client - (server_sum_ms - min(least, server_sum_ms)) / common,
        client - (server_sum_ms - min(most, server_sum_ms)) / common,
    )


def extras_ms(k: int, buckets: Buckets) -> Bounds:
    """The least and the most that k of the observations can sum up to, in ms; none is below 0."""
    if k == 0:
        return 0.0, 0.0
    if buckets is None or buckets[1].sum() < k:
        return 0.0, float("inf")
    upper, counts = buckets
    lower = np.concatenate(([0.0], np.maximum(upper[:-1], 0.0)))
    return _sum_of(k, lower, counts), _sum_of(k, upper[::-1], counts[::-1])


def _sum_of(k: int, values: Floats, counts: Floats) -> float:
    """The sum of the first k of `values`, each of which stands there `counts` times."""
    before = np.cumsum(counts) - counts
    taken = np.clip(k - before, 0.0, counts)
    return float(sum(n * value for n, value in zip(taken, values, strict=True) if n > 0))
