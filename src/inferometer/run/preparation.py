"""All that is ready before the load starts: the server found, who counts its tokens, every request written.

A server's /tokenize may stop answering while prompts are made to its count. Where the plan leaves open who counts, nobody asked
for that interface: the server is then taken for one without it (run/own_tokens.py), and every request is made anew. Where the
plan names it, or a trace is replayed, whose requests are made while the run lasts, the run ends.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.run_facts import RunFacts, ScrapingAccount
from inferometer.errors import TokenizerGone
from inferometer.journal.folder import RunFolder
from inferometer.plan.schema import AUTO_TOKENIZER, Plan
from inferometer.run.facts import first_facts, write_facts
from inferometer.run.replay import Announce
from inferometer.run.request_writer import RequestWriter
from inferometer.run.requests import requests_of
from inferometer.run.target import Target
from inferometer.run.ui import Ui
from inferometer.telemetry.clock_state import clock_synchronisation
from inferometer.workload import tokenizers
from inferometer.workload.nonces import NONCES
from inferometer.workload.sources import AnySource, TraceRows

MANY_REQUESTS = 10_000
"""From this number on it is announced that they are generated: it takes more than a second."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run begins with."""

    target: Target
    tokenizer: tokenizers.Tokenizer
    schedule: RequestWriter
    facts: RunFacts


Find = Callable[[str | None], tuple[Target, tokenizers.Tokenizer]]
"""Finds the server and who counts its tokens; told why its /tokenize is not to be used, or None."""


def prepared(
    plan: Plan,
    source: AnySource,
    find: Find,
    brief: Callable[[Target], ScrapingAccount | None],
    folder: RunFolder,
    announce: Announce,
    ui: Ui,
    started: int,
    certificate: CertificateLookup,
) -> Prepared:
    """Find the server, have its metrics scraped, write the requests. `announce`: tells the workers how much of a trace is
    written. Raises PeerError, PlanError."""

    def made(gone: str | None) -> Prepared:
        target, tokenizer = find(gone)
        scraped = brief(target)
        limit = None if target.room is None else source.limit(tokenizer, target.room)
        if limit is not None:
            ui.note(
                f"{target.model} has a context of {limit.context:,} tokens: generating all requests first"
            )
        salt = secrets.randbelow(NONCES)
        schedule = requests_of(plan, source, target, tokenizer, folder, salt, time.monotonic_ns, limit)
        facts = replace(
            first_facts(plan, folder, target, tokenizer, schedule, source.trace, started),
            server_metrics=scraped,
            calibration=certificate.facts(),
            clock_state=clock_synchronisation(),
        )
        write_facts(folder, facts)
        _generate(schedule, announce, ui, warmed=plan.load.warmup > 0)
        return Prepared(target, tokenizer, schedule, facts)

    try:
        return made(None)
    except TokenizerGone as cause:
        if isinstance(source, TraceRows):
            raise
        if plan.tokenizer.name != AUTO_TOKENIZER:
            raise TokenizerGone(f"{cause}. Without --tokenizer, its usage would do.") from cause
        return made(str(cause))


def _generate(schedule: RequestWriter, announce: Announce, ui: Ui, *, warmed: bool) -> None:
    """Write the requests of both phases before either: whatever else runs beside the workers takes time from them. Connections
    are opened later, since a server may close those that stay idle for seconds."""
    if (schedule.total or 0) >= MANY_REQUESTS:
        ui.note(f"generating {schedule.total:,} requests")
    if warmed:
        schedule.warm_up()
    schedule.measurement(announce)
