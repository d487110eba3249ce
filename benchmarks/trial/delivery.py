"""Buffering on the way: text that something between the engine and the client holds back, and passes on in lumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.trial.defects import CLOSED, OPEN, Defect, Plant, chosen, in_record
from benchmarks.trial.playing import MS, Ints
from benchmarks.trial.records import Recorded

Proxy = Callable[[Ints, np.random.Generator], Ints]
"""From the instants at which an answer's tokens were sent (ns) to those at which they arrive."""

EVENT_BYTES = 160
"""Of a chat's event."""
HELD = ("streamed", "tokens_per_event")


def whole(sent: Ints, random: np.random.Generator) -> Ints:
    """Everything is held until the end."""
    found: Ints = np.repeat(sent[-1:], len(sent))
    return found


def two_flushes(sent: Ints, random: np.random.Generator) -> Ints:
    """All but the last token is held until the end."""
    found: Ints = np.append(whole(sent, random)[:-1], sent[-1] + MS // 5)
    return found


def halves(sent: Ints, random: np.random.Generator) -> Ints:
    """Two lumps: half-way and at the end."""
    half = len(sent) // 2
    found: Ints = np.where(np.arange(len(sent)) < half, sent[half - 1], sent[-1])
    return found


def one_by_one(sent: Ints, random: np.random.Generator) -> Ints:
    """Everything is held until the end, and then each event sent by a call of its own."""
    found: Ints = sent[-1] + np.arange(len(sent)) * 15_000
    return found


def paced(sent: Ints, random: np.random.Generator) -> Ints:
    """Everything is held until the end, and then sent as if it had just been made, 1 ms apart."""
    found: Ints = sent[-1] + np.arange(len(sent)) * MS
    return found


def every(size: int) -> Proxy:
    """So many events are collected, and then sent together."""

    def proxy(sent: Ints, random: np.random.Generator) -> Ints:
        last = np.minimum((np.arange(len(sent)) // size + 1) * size, len(sent)) - 1
        found: Ints = sent[last]
        return found

    return proxy


def in_turn(held: Proxy, apart_ms: float) -> Proxy:
    """What another proxy sends together is sent one event after the other, so far apart."""

    def proxy(sent: Ints, random: np.random.Generator) -> Ints:
        together, number = held(sent, random), np.arange(len(sent))
        first = np.maximum.accumulate(np.where(np.diff(together, prepend=-1) > 0, number, 0))
        found: Ints = np.maximum.accumulate(together + (number - first) * round(apart_ms * MS))
        return found

    return proxy


def by_bytes(size: int) -> Proxy:
    """A buffer of so many bytes is sent when it is full."""
    return every(max(1, size // EVENT_BYTES))


def by_time(each_ms: float) -> Proxy:
    """A buffer is sent every so often."""

    def proxy(sent: Ints, random: np.random.Generator) -> Ints:
        each = round(each_ms * MS)
        offset = int(random.integers(0, each))
        flushes = ((sent + offset) // each + 1) * each - offset
        found: Ints = np.minimum(flushes, np.maximum(sent[-1], sent))
        return found

    return proxy


def first_held(sent: Ints, random: np.random.Generator) -> Ints:
    """The first five tokens are held until there are five: what looks for stop words does."""
    found = sent.copy()
    found[:5] = sent[min(4, len(sent) - 1)]
    return found


def first_through(sent: Ints, random: np.random.Generator) -> Ints:
    """The first token is let through, all others are held until the end."""
    found: Ints = np.append(sent[:1], np.repeat(sent[-1:], len(sent) - 1))
    return found


def slow_start(sent: Ints, random: np.random.Generator) -> Ints:
    """The first 4 KiB are held, and what follows goes straight through."""
    found = sent.copy()
    held = 4096 // EVENT_BYTES
    found[:held] = sent[min(held, len(sent)) - 1]
    return found


def acknowledged_late(sent: Ints, random: np.random.Generator) -> Ints:
    """Small packets wait for an acknowledgement that the receiver delays by 40 ms."""
    each = 40 * MS
    at = sent[0] + ((sent - sent[0]) + each - 1) // each * each
    found: Ints = np.minimum(at, np.maximum(sent[-1], sent))
    return found


def ended(recorded: Recorded, events: list[Any]) -> Ints:
    """The end of each answer, after its last event; of one without events, as it was."""
    pairs = zip(events, recorded.columns["t_end"], strict=True)
    return np.array([int(times[-1]) + 5_000 if len(times) else int(end) for times, end in pairs])


def through(proxy: Proxy, share: float = 1.0) -> Plant:
    """The record behind this proxy, of a share of the answers. The role's event is let through."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        events: list[Any] = []
        held = chosen(random, len(recorded.measured), share)
        for times, one in zip(recorded.columns["event_ns"], held, strict=True):
            arrived = proxy(times[1:], random) if one and len(times) > 1 else times[1:]
            events.append(np.append(times[:1], arrived))
        return recorded.but(event_ns=events, t_end=ended(recorded, events))

    return plant


def defects() -> Iterator[Defect]:
    """Every kind of buffer, and shares of answers behind one."""
    family = "buffering"
    kinds: dict[str, Proxy] = {
        "whole answers held": whole,
        "two flushes, the last token apart": two_flushes,
        "two halves": halves,
        "held, then sent one by one": one_by_one,
        "held, then sent 1 ms apart": paced,
        "every 2 events": every(2),
        "every 3 events": every(3),
        "every 8 events": every(8),
        "every 25 events": every(25),
        "every 2 events, sent 0.15 ms apart": in_turn(every(2), 0.15),
        "every 8 events, sent 0.3 ms apart": in_turn(every(8), 0.3),
        "every 25 events, sent 1 ms apart": in_turn(every(25), 1),
        "flushed every 100 ms, sent 0.3 ms apart": in_turn(by_time(100), 0.3),
        "first five tokens held, sent 0.3 ms apart": in_turn(first_held, 0.3),
        "1 KiB buffer": by_bytes(1024),
        "4 KiB buffer": by_bytes(4096),
        "flushed every 20 ms": by_time(20),
        "flushed every 100 ms": by_time(100),
        "first five tokens together": first_held,
        "first 4 KiB together": slow_start,
        "all but the first token held": first_through,
        "small packets acknowledged after 40 ms": acknowledged_late,
    }
    for name, proxy in kinds.items():
        yield in_record(name, family, through(proxy), HELD, quick=name in QUICK)
    yield in_record("whole answers held, closed loop", family, through(whole), HELD, CLOSED)
    yield in_record("every 8 events, closed loop", family, through(every(8)), HELD, CLOSED)
    for share in (0.4, 0.2, 0.1, 0.05, 0.02, 0.009, 0.005):
        name = f"{share:.1%} of the answers held whole"
        yield in_record(name, family, through(whole, share), HELD, OPEN, quick=share == 0.1)
    name = "3 % of the answers, every 25 events"
    yield in_record(name, family, through(every(25), 0.03), HELD)
    name = "3 % of the answers, every 25 events, sent 1 ms apart"
    yield in_record(name, family, through(in_turn(every(25), 1), 0.03), HELD)
    name = "5 % of the answers held, then sent 1 ms apart"
    yield in_record(name, family, through(paced, 0.05), HELD)


QUICK = (
    "two flushes, the last token apart",
    "every 8 events",
    "every 8 events, sent 0.3 ms apart",
    "held, then sent 1 ms apart",
)
