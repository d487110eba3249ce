"""What a run and its scraper say to each other, a JSON line a message: orders on the scraper's stdin, reports on its stdout."""

from __future__ import annotations

import msgspec

SHORTEST_SECRET = 6
"""Characters; a shorter one would be found in what is none, and the figures with it."""


class LocalReadings(msgspec.Struct, kw_only=True):
    """What to read of this machine: by role the first process of each, children of earlier roles not among those of later
    ones; the meters of power; and how often, on from the baseline."""

    roles: dict[str, list[int]]
    meters: list[str]
    interval_ns: int


class Endpoint(msgspec.Struct, kw_only=True):
    """One place to read metrics at, or this machine (`local`).

    `headers` may hold a secret, `shown` is the URL without any; `own`: nobody named it, it is
    the target's, which need not have one. `timeout_s` is that of a scrape, None: the job's; `largest` in bytes, inflated."""

    shown: str
    host: str
    port: int
    path: str
    headers: dict[str, str]
    own: bool
    tls: bool = False
    tls_verify: bool = True
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    timeout_s: float | None = None
    largest: int = 32 << 20
    local: LocalReadings | None = None


class Job(msgspec.Struct, kw_only=True):
    """What to scrape, how often, and where to write it. `clock_offset_ns`: wall clock minus monotonic clock, for all stamps.
    `timeout_s`: how long the slowest endpoint is waited for. `secrets` are struck out of every body."""

    record: str
    endpoints: list[Endpoint]
    interval_ns: int
    clock_offset_ns: int
    timeout_s: float
    secrets: list[str]


class Mark(msgspec.Struct, kw_only=True, tag="mark"):
    """Scrape now. That scrape is of `phase`; those at intervals after it are of `then`."""

    phase: str
    then: str | None


class Finish(msgspec.Struct, kw_only=True, tag="finish"):
    """Scrape a last time, and end."""


class Ready(msgspec.Struct, kw_only=True, tag="ready"):
    """Every endpoint has been tried once."""

    endpoints: int
    """How many are scraped on."""
    failures: dict[str, str]
    """Those that gave nothing: the reason by URL as shown."""


class EndpointAccount(msgspec.Struct, kw_only=True):
    """One endpoint's account: scrapes with a body and the characters of those, failures by their reason, the words of the first
    of each, and how many instants of the interval went by while a scrape was still under way. `absent`: why it was given up
    after the first try."""

    url: str
    own: bool
    scrapes: int = 0
    characters: int = 0
    errors: dict[str, int] = msgspec.field(default_factory=dict)
    words: dict[str, str] = msgspec.field(default_factory=dict)
    skipped: int = 0
    absent: str | None = None
    instead: str | None = None
    """The path that is asked instead of the URL's, where that has no metrics (fetch.py)."""


class Done(msgspec.Struct, kw_only=True, tag="done"):
    """The account. `failed`: why the record could not be written on."""

    endpoints: list[EndpointAccount]
    cpu_s: float
    failed: str | None = None


Order = Mark | Finish
Report = Ready | Done
