"""Whether the way to the server stayed as it was: its round trip before the load against that behind it.

Each TTFT and E2E has one round trip in it at least, so one that changes moves them with nothing changed at the server. While
the load lasts, a longer one may be the load's own doing; when it has ended, that is over. A note: what the requests met is what
was measured.
"""

from __future__ import annotations

from inferometer.documents.run_facts import RoundTrips
from inferometer.judge.verdict import Check

CHANGED_MS, CHANGED_SHARE = 1.0, 0.5
"""Accepted, whichever is larger: what TTFT hardly shows, and half of the shorter median, which ten handshakes of a busy network
differ by at times."""


def round_trip(trips: RoundTrips | None) -> Check:
    """By how much the medians of handshakes before and behind the load differ, ms."""
    before = None if trips is None else trips.before.p50_ms
    after = None if trips is None or trips.after is None else trips.after.p50_ms
    if trips is None or before is None or after is None:
        return Check("round_trip", "na", None, CHANGED_MS, "ms")
    limit, changed = max(CHANGED_MS, CHANGED_SHARE * min(before, after)), abs(after - before)
    facts = {"before": before, "after": after}
    if trips.during is not None and trips.during.p50_ms is not None:
        facts["during"] = trips.during.p50_ms
    return Check("round_trip", "note" if changed > limit else "pass", changed, limit, "ms", facts)
