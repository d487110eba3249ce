"""What came of scraping each endpoint of metrics: good scrapes, what was lost and why, the longest gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inferometer.documents.run_facts import ScrapedEndpoint, ScrapingAccount
from inferometer.documents.summary import Lost, MetricsEndpointAccount
from inferometer.telemetry.machines.tracks import THIS_MACHINE
from inferometer.telemetry.metrics.exposition import Count
from inferometer.telemetry.metrics.normalised import Translated
from inferometer.telemetry.metrics.series import Endpoint, Store
from inferometer.units import NS_PER_S


def endpoint_accounts(
    account: ScrapingAccount | None, store: Store | None, translated: Sequence[Translated]
) -> tuple[MetricsEndpointAccount, ...]:
    """Every endpoint that was named, and the target's own. `store`: the record of scrapes, None if there is none that can be
    read: then what the scraper itself counted."""
    if account is None:
        return ()
    engines = {one.url: one.engine for one in translated}
    period = account.phases.get("profiling")
    ends = None if period is None else (period.start_ns, period.end_ns)
    return tuple(
        _account(one, None if store is None else store.endpoints.get(one.url), engines.get(one.url), ends)
        for one in account.endpoints
        if one.url != THIS_MACHINE
    )


def _account(
    facts: ScrapedEndpoint, recorded: Endpoint | None, engine: str | None, ends: tuple[int, int] | None
) -> MetricsEndpointAccount:
    counts = {code: Count(facts.words.get(code, ""), number) for code, number in facts.errors.items()}
    skipped: Mapping[str, Count] = {}
    if recorded is not None and (recorded.times or recorded.drops):
        counts = {
            code: Count(facts.words.get(code) or one.first, one.count) for code, one in recorded.drops.items()
        }
        skipped = recorded.skipped
    return MetricsEndpointAccount(
        url=facts.url,
        own=facts.own,
        engine=engine,
        scrapes=facts.scrapes if recorded is None else len(recorded.times),
        lost=_lost(counts),
        skipped_lines=_lost(skipped),
        skipped_instants=facts.skipped,
        longest_gap_s=None if recorded is None or ends is None else _gap_s(recorded, *ends),
        instead=facts.instead,
        absent=facts.absent,
    )


def _lost(counts: Mapping[str, Count]) -> tuple[Lost, ...]:
    """The most frequent first."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1].count, pair[0]))
    return tuple(Lost(code, one.count, one.first) for code, one in ordered)


def _gap_s(recorded: Endpoint, start_ns: int, end_ns: int) -> float:
    """The longest time of the measured phase without a good scrape."""
    times = np.asarray(recorded.times, dtype=np.int64)
    inside = times[(times > start_ns) & (times < end_ns)]
    return float(np.diff(np.concatenate([[start_ns], inside, [end_ns]])).max()) / NS_PER_S
