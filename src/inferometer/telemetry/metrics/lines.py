"""The JSONL export: one object a scrape that brought anything new, in the order of time, with the values as exposed."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec import UNSET

from inferometer.printable import printable_json
from inferometer.telemetry.metrics.entries import ScrapedValue, ScrapeLine
from inferometer.telemetry.metrics.exposition import ABSENT, HISTOGRAM, NOT_FINITE
from inferometer.telemetry.metrics.series import Endpoint, Store

TAGGED = ("warmup", "profiling")


def lines(store: Store) -> Iterator[bytes]:
    """Each line with its line feed. A baseline and a warm-up are in it; families ending in `_info` are not."""
    encode = msgspec.json.Encoder().encode
    for _, _, found in heapq.merge(
        *(_of(number, one) for number, one in enumerate(store.endpoints.values()))
    ):
        yield printable_json(encode(found)) + b"\n"


def _of(number: int, endpoint: Endpoint) -> Iterator[tuple[int, int, ScrapeLine]]:
    """Time, the endpoint's number, and the object; a scrape's changes are applied to the values before it."""
    cells = [changes for _, _, parts in endpoint.groups() for changes in parts.values()]
    scrapes = np.concatenate([np.asarray(one.at) for one in cells] or [np.empty(0, np.int64)])
    owners = np.repeat(np.arange(len(cells)), [len(one.at) for one in cells])
    values = np.concatenate([np.asarray(one.values) for one in cells] or [np.empty(0)])
    order = np.argsort(scrapes, kind="stable")
    edges = np.searchsorted(scrapes[order], np.arange(len(endpoint.times) + 1))
    now = np.full(len(cells), ABSENT)
    for at, time_ns in enumerate(endpoint.times):
        chosen = order[edges[at] : edges[at + 1]]
        now[owners[chosen]] = values[chosen]
        if not endpoint.fresh[at]:
            continue
        latency, phase = endpoint.latencies[at], endpoint.phases[at]
        yield (
            time_ns,
            number,
            ScrapeLine(
                endpoint_url=endpoint.url,
                timestamp_ns=time_ns,
                endpoint_latency_ns=latency if latency >= 0 else UNSET,
                metrics=_metrics(endpoint, now.tolist()),
                first_byte_ns=time_ns,
                benchmark_phase=phase if phase in TAGGED else UNSET,
            ),
        )


def _metrics(endpoint: Endpoint, now: list[float]) -> dict[str, list[ScrapedValue]]:
    """Family by family what one scrape said; `now` are the values of the cells in the order of `groups`."""
    made: dict[str, list[ScrapedValue]] = {}
    at = 0
    for family, labels, parts in endpoint.groups():
        values = now[at : at + len(parts)]
        at += len(parts)
        if family.name.endswith("_info") or NOT_FINITE in values:
            continue
        there = {part: value for part, value in zip(parts, values, strict=True) if value == value}
        if not there:
            continue
        named = dict(labels)
        if family.kind == HISTOGRAM:
            buckets = {part: there[part] for part in endpoint.les(parts) if part in there}
            one = ScrapedValue(named, buckets, there.get("sum", 0.0), there.get("count", 0.0))
        else:
            one = ScrapedValue(named, value=there["value"])
        made.setdefault(family.name, []).append(one)
    return made
