"""The way to the server as reports show it: its round trips, and TTFT less the shortest of them beside TTFT as measured."""

from __future__ import annotations

from dataclasses import dataclass

from inferometer.documents.run_facts import RoundTrips, TripTimes
from inferometer.documents.summary import Summary
from inferometer.metrics.catalogue import METRICS
from inferometer.metrics.statistics import STATISTICS, Stats
from inferometer.report.figures import clean, figure

UNMEASURED = "not measured"
TITLE = "TTFT less the round trip"
HEAD = ("In ms", "n", *STATISTICS.values())

_TIMED_BY = {"kernel": "by the kernel", "client": "by the client, whose own time is in them"}
_WHO = "so they end where TCP does, at a proxy if there is one"
_ONE_WAY = "a single way takes between nothing and all of it"


def told(summary: Summary) -> str:
    """All round trips in one line (draft 4.7.3)."""
    if summary.run.simulated:
        return "none: simulated, without a network"
    trips = summary.round_trips
    if trips is None:
        return UNMEASURED
    parts = [f"TCP handshakes timed {_TIMED_BY[trips.timed_by]}, {_WHO}: {_handshakes(trips)}"]
    if trips.request is not None:
        requests = [("before the load", trips.request_before), ("behind it", trips.request_after)]
        asked = ", ".join(f"{when} {_times(one)}" for when, one in requests)
        parts.append(f"{clean(trips.request)}, by the client: {asked}")
    return "; ".join([*parts, _ONE_WAY])


def _handshakes(trips: RoundTrips) -> str:
    stages = (
        ("before the load", trips.before),
        ("while measuring", trips.during),
        ("behind it", trips.after),
    )
    return ", ".join(f"{when} {_times(one)}" for when, one in stages)


def _times(one: TripTimes | None) -> str:
    if one is None:
        return UNMEASURED
    lost = [f"{figure(one.repeated)} sent again"] if one.repeated else []
    if one.failed:
        lost.append(f"{figure(one.failed)} failed: {clean(one.problem or '')}")
    few = f" ({'; '.join(lost)})" if lost else ""
    if not one.count:
        return f"none{few}"
    times = "/".join(figure(value) for value in (one.least_ms, one.p50_ms, one.p99_ms))
    return f"{times} ms (least/P50/P99 of {figure(one.count)}){few}"


def adjustment(summary: Summary) -> str | None:
    """What was adjusted, in a clause; None: nothing."""
    less = summary.ttft_less_round_trip
    if less is None:
        return None
    return (
        f"TTFT less the shortest round trip, {figure(less.round_trip_ms)} ms, stands beside TTFT as measured; "
        "nothing else is adjusted"
    )


@dataclass(frozen=True, slots=True)
class Adjusted:
    """TTFT as measured, and less the round trip: rows under HEAD, and what they mean."""

    rows: tuple[tuple[str, Stats], ...]
    words: str


def adjusted(summary: Summary) -> Adjusted | None:
    """Both, if the plan asks for it. Without rows where nothing could be subtracted, and the words say why."""
    if not summary.plan.instrument.subtract_rtt or summary.run.simulated:
        return None
    less, measured = summary.ttft_less_round_trip, summary.metrics.ttft_ms
    if less is None or measured is None:
        why = "no TTFT was measured" if measured is None else "no round trip was measured"
        return Adjusted((), f"Nothing was subtracted: {why}.")
    title, by = METRICS["ttft_ms"].title, figure(less.round_trip_ms)
    rows = ((f"{title}, as measured", measured), (f"{title}, less {by} ms", less.ttft_ms))
    return Adjusted(rows, " ".join([_meaning(by), *_cautions(summary)]))


def _meaning(by: str) -> str:
    return (
        f"{by} ms is the shortest round trip of all TCP handshakes: a request spends so much on its way at least, however both "
        "ways share it. So the lower row is an upper bound of the server's own time. It is worked out from the upper row, and "
        "no check, objective or comparison uses it."
    )


def _cautions(summary: Summary) -> list[str]:
    less, trips = summary.ttft_less_round_trip, summary.round_trips
    found = []
    if summary.sut.url is None:
        found.append("The server was on this machine: there is hardly a network to subtract.")
    if trips is not None and trips.timed_by == "client":
        found.append("The client timed the handshakes, so that its own time is subtracted too.")
    if less is not None and less.below_zero:
        were = "request was" if less.below_zero == 1 else "requests were"
        found.append(
            f"{figure(less.below_zero)} {were} answered sooner than that, which leaves less than zero: that round trip was not "
            "theirs, as where a route changes or a proxy answers by itself."
        )
    return found


def line(summary: Summary) -> str | None:
    """Both medians and P99 in a line; None: not asked for."""
    both, less = adjusted(summary), summary.ttft_less_round_trip
    if both is None or not both.rows or less is None:
        return None if both is None else f"{TITLE}: {both.words}"
    measured, adjusted_to = (
        ", ".join(f"{STATISTICS[key]} {figure(getattr(stats, key))}" for key in ("p50", "p99"))
        for _, stats in both.rows
    )
    said = f"{TITLE} of {figure(less.round_trip_ms)} ms: {adjusted_to} ms; as measured: {measured} ms."
    return " ".join([said, *_cautions(summary)])
