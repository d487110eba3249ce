"""The metrics scraped during a run: what the plan says of it as the scraper's job, and what came of it as facts of the run.

Stamps of scrapes and of requests are on one clock. The record's times are monotonic; those of scrapes are that clock plus one
offset, read once before the load (`clock_offset_ns`): the wall clock's time, but no step of the wall clock moves them.

    timestamp_ns = t_monotonic + clock_offset_ns
"""

from __future__ import annotations

import base64
import contextlib
import os
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import quote, unquote, urlsplit

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from inferometer import __version__, whole_file
from inferometer.addresses import secrets_of, shown
from inferometer.documents.run_facts import PhaseTimes, RunFacts, ScrapedEndpoint, ScrapingAccount
from inferometer.documents.summary import MetricsEndpointAccount
from inferometer.drive import clock
from inferometer.drive import probe as probing
from inferometer.drive.credentials import headers, merged
from inferometer.engines.interface import JsonObject
from inferometer.errors import PlanError, Problem, check_machine
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.journal.seal import record_parts
from inferometer.plan.saved import resolved
from inferometer.plan.schema import Plan
from inferometer.plan.server_metrics import MetricsEndpoint, own_endpoint
from inferometer.printable import printable_lines
from inferometer.run.facts import read_facts, write_facts
from inferometer.run.scraped_endpoints import endpoint_accounts
from inferometer.telemetry.machines.tracks import THIS_MACHINE, MachineTracks, machine_tracks
from inferometer.telemetry.metrics import exports
from inferometer.telemetry.metrics.document import Period, Wanted
from inferometer.telemetry.metrics.entries import Export
from inferometer.telemetry.metrics.estimators import ESTIMATORS
from inferometer.telemetry.metrics.fetch import LARGEST, TIMEOUT_S
from inferometer.telemetry.metrics.normalised import Translated, translate
from inferometer.telemetry.metrics.record import read
from inferometer.telemetry.metrics.scraper_messages import (
    SHORTEST_SECRET,
    Endpoint,
    EndpointAccount,
    Job,
    LocalReadings,
)
from inferometer.telemetry.metrics.scraper_process import Scraping
from inferometer.telemetry.metrics.series import Store, collect_from
from inferometer.units import seconds_to_ns

TAIL_S = 2.0
"""From the end of the load to the last scrape: engines that count in other processes, or every so many iterations, need a
moment to show what they did (AIPerf waits as long). Meanwhile the record is sealed, so that little of it is waited for."""
NAMES = {Phase.WARMUP: "warmup", Phase.MEASURE: "profiling"}
ROWS = {Phase.WARMUP: [Phase.WARMUP, Phase.PROBE], Phase.MEASURE: [Phase.MEASURE]}
"""The phases as AIPerf and the record of scrapes call them."""


class Scrapes:
    """The scraper of one run, or none if the plan wants none: then every method does nothing. Use as a context manager."""

    def __init__(self, plan: Plan, folder: RunFolder) -> None:
        self._path = folder.scrapes
        wanted = plan.server_metrics.enabled or plan.host_telemetry.wanted
        self._scraping = Scraping(folder.log) if wanted else None
        self._tail_ns = seconds_to_ns(
            TAIL_S if plan.target.url is not None else 0
        )  # our own server counts at once
        self._last_ns: int | None = None
        self._job: Job | None = None

    def __enter__(self) -> Scrapes:
        """Use as a context manager."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        if self._scraping is not None:
            self._scraping.__exit__(kind, error, trace)

    def brief(
        self,
        plan: Plan,
        target: probing.Endpoint,
        key: str | None,
        *,
        at_once: bool,
        engine: Sequence[int] = (),
    ) -> ScrapingAccount | None:
        """Begin with the baseline, for which `ready` waits, unless it has begun; what is known so far. `at_once`: the server's
        metrics do not lag; `engine`: its first processes, as far as they are on this machine."""
        if self._scraping is None:
            return None
        if self._job is None:
            if at_once and not plan.server_metrics.named():
                self._tail_ns = seconds_to_ns(0)
            self._job = job_of(plan, target, key, str(self._path), clock.realtime_offset_ns(), engine=engine)
            self._scraping.brief(self._job)
        return self._account([EndpointAccount(url=one.shown, own=one.own) for one in self._job.endpoints])

    def ready(self) -> list[str]:
        """Wait until every endpoint was tried; a line for people about each that gave no metrics."""
        if self._scraping is None or self._job is None:
            return []
        ready = self._scraping.ready()
        if ready is None or not ready.endpoints:
            self._tail_ns = seconds_to_ns(0)
        own = {one.shown for one in self._job.endpoints if one.own}
        if ready is None:
            return ["the metrics scraper has died; log.txt in the run folder has the reason"]
        return [
            f"the server exposes no metrics at {url} ({reason})"
            if url in own
            else f"no metrics from {url} ({reason}); retrying"
            for url, reason in ready.failures.items()
        ]

    def mark(self, phase: Phase, *, begins: bool) -> None:
        """A phase is about to begin, or has ended: every endpoint is scraped now."""
        if self._scraping is not None:
            self._scraping.mark(NAMES[phase], NAMES[phase] if begins else None)
            self._last_ns = None if begins else clock.monotonic_ns()

    def cpu_s(self) -> float | None:
        """CPU time that the scraper has taken so far; None without one."""
        return None if self._scraping is None else self._scraping.cpu_s()

    def end(self, *, interrupted: bool) -> ScrapingAccount | None:
        """The last scrape, TAIL_S after the load unless that was interrupted; the account."""
        if self._scraping is None:
            return None
        if self._last_ns is not None and not interrupted:
            time.sleep(max(0, self._last_ns + self._tail_ns - clock.monotonic_ns()) / 1e9)
        done = self._scraping.end()
        return replace(self._account(done.endpoints), cpu_s=done.cpu_s, failed=done.failed)

    def _account(self, endpoints: list[EndpointAccount]) -> ScrapingAccount:
        assert self._job is not None, "brief first"
        return ScrapingAccount(
            interval_s=self._job.interval_ns / 1e9,
            clock_offset_ns=self._job.clock_offset_ns,
            endpoints=tuple(
                msgspec.convert(endpoint, ScrapedEndpoint, from_attributes=True) for endpoint in endpoints
            ),
        )


def settle(folder: RunFolder, account: ScrapingAccount | None = None) -> None:
    """Add to the facts of a sealed run the scraper's account, where it lived to give one, and when each phase ran. Raises
    RecordError for a record that is damaged: the run may be a stranger's (`recover`)."""
    facts = read_facts(folder)
    found = account or facts.server_metrics
    if found is not None:
        found = replace(found, phases=_phases(folder, found.clock_offset_ns))
        write_facts(folder, replace(facts, server_metrics=found))


def _phases(folder: RunFolder, offset_ns: int) -> dict[str, PhaseTimes]:
    """Of each phase with requests, when the first was taken up and the last ended (wall clock, ns). Probes are warm-up. Raises
    RecordError."""
    found: dict[str, PhaseTimes] = {}
    for part in record_parts(folder.record, ("phase", "t_taken", "t_end")):
        for phase, name in NAMES.items():
            rows = part.filter(pc.is_in(part["phase"], pa.array(ROWS[phase], pa.int8())))
            if rows.num_rows:
                start = pc.min(rows["t_taken"]).as_py() + offset_ns
                end = pc.max(rows["t_end"]).as_py() + offset_ns
                before = found.get(name, PhaseTimes(start_ns=start, end_ns=end))
                found[name] = PhaseTimes(start_ns=min(start, before.start_ns), end_ns=max(end, before.end_ns))
    return {name: found[name] for name in NAMES.values() if name in found}


@dataclass(frozen=True, slots=True)
class Exported:
    """What the endpoints said in our terms, of servers and of machines, what came of scraping each, and sentences for people
    about what went wrong."""

    translated: list[Translated]
    machines: list[MachineTracks]
    endpoints: tuple[MetricsEndpointAccount, ...]
    notes: list[str]


def exported(folder: RunFolder, plan: Plan, facts: RunFacts) -> Exported:
    """Make a sealed run's exports.

    Nothing that servers said ends a report of what the client measured: the reason is in the run's log. A lack of
    descriptors or space does, since checks would miss what they could not read: raises MachineError.
    """
    account = facts.server_metrics
    try:
        store = collected(folder, facts)
        export(store, folder, plan, facts)
        translated = in_our_terms(store, plan, account)
        machines = [] if store is None or account is None else machine_tracks(store, account.clock_offset_ns)
        lacking = None if account is None else account.failed
        notes = (
            [f"the record of the server's metrics is incomplete: {lacking}"]
            if isinstance(lacking, str)
            else []
        )
        return Exported(translated, machines, endpoint_accounts(account, store, translated), notes)
    except Exception as wrong:  # whatever it is: the run's own record stands without it
        if not isinstance(wrong, MemoryError):  # their size may be what servers said
            check_machine(wrong)
        with contextlib.suppress(OSError):
            said = printable_lines("".join(traceback.format_exception(wrong)))
            whole_file.append(folder.log, f"server metrics are left out:\n{said}")
        note = f"the server's metrics are omitted from the report ({type(wrong).__name__}); the reason is in {folder.log}"
        return Exported([], [], endpoint_accounts(account, None, []), [note])


def collected(folder: RunFolder, facts: RunFacts) -> Store | None:
    """A sealed run's record of scrapes; None if there is none. Raises RecordError."""
    account = facts.server_metrics
    if account is None or "profiling" not in account.phases or not folder.scrapes.is_file():
        return None
    urls = [one.url for one in account.endpoints]  # also of those that never answered
    return collect_from(lambda: read(folder.scrapes), urls)


def in_our_terms(store: Store | None, plan: Plan, account: ScrapingAccount | None) -> list[Translated]:
    """What the endpoints said, in our terms and on the clock of the run's record."""
    if store is None or account is None:
        return []
    own = {one.url for one in account.endpoints if one.own}
    if plan.target.url is not None:
        own.add(shown(own_endpoint(probing.endpoint(plan.target.url).url)))
    return translate(store, frozenset(own), account.clock_offset_ns)


def export(store: Store | None, folder: RunFolder, plan: Plan, facts: RunFacts) -> Export | None:
    """Make the plan's exports from a run's record of scrapes; the JSON one as data, None if there is nothing to export.

    Needs the record and the facts alone, so that a report made again makes these again too.
    """
    account = facts.server_metrics
    if store is None or account is None or not plan.server_metrics.enabled:
        return None
    wanted = plan.server_metrics
    of_servers = {url: one for url, one in store.endpoints.items() if url != THIS_MACHINE}
    periods = {name: Period(times.start_ns, times.end_ns) for name, times in account.phases.items()}
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"inferometer:{facts.id}:{facts.started_wall_ns}"))
    requested = Wanted(
        period=periods["profiling"],
        estimator=ESTIMATORS[wanted.histogram_estimator],
        slice_ns=seconds_to_ns(wanted.slice_s),
        warmup=periods.get("warmup"),
        version=__version__,
        benchmark_id=identity,
        input_config=_configuration(plan, facts, identity),
    )
    return exports.export(Store(of_servers), requested, wanted.formats, folder.path)


def _configuration(plan: Plan, facts: RunFacts, identity: str) -> JsonObject:
    """The run's configuration by the document's names, and as the plan that it is."""
    load = {
        "concurrency": plan.load.concurrency,
        "request_rate": plan.load.rate,
        "request_count": plan.load.requests,
    }
    return {
        "model": facts.model,
        "url": plan.target.url,
        "loadgen": {name: value for name, value in load.items() if value is not None},
        "benchmark_id": identity,
        "server_metrics": [shown(one.url) for one in plan.server_metrics.named()],
        "inferometer_plan": resolved(plan),
    }


def job_of(
    plan: Plan,
    target: probing.Endpoint,
    key: str | None,
    record: str,
    offset_ns: int,
    environ: Mapping[str, str] = os.environ,
    engine: Sequence[int] = (),
) -> Job:
    """The scraper's job: the target's own endpoint first, unless the plan names it, then the plan's, then this machine. Raises
    PlanError for a token that `environ` lacks. `engine`: see `Scrapes.brief`."""
    wanted = plan.server_metrics
    own, named = own_endpoint(target.url), wanted.named() if wanted.enabled else ()
    endpoints = [_named(plan, one, target, key, environ) for one in named]
    if wanted.enabled and own not in {one.url for one in named}:
        usual = MetricsEndpoint(url=own, timeout_s=wanted.timeout_s, max_body_mib=wanted.max_body_mib)
        endpoints.insert(0, _named(plan, usual, target, key, environ))
        endpoints[0].own = True
    if plan.host_telemetry.wanted:
        endpoints.append(_this_machine(plan, engine))
    _tell_apart(endpoints)
    return Job(
        record=record,
        endpoints=endpoints,
        interval_ns=seconds_to_ns(wanted.interval_s),
        clock_offset_ns=offset_ns,
        timeout_s=max(one.timeout_s or TIMEOUT_S for one in endpoints),
        secrets=secrets_of_run(plan, key, environ),
    )


def secrets_of_run(plan: Plan, key: str | None, environ: Mapping[str, str] = os.environ) -> list[str]:
    """All that a run's servers are shown and none may have repeated in what is written: the target's key, and the passwords,
    tokens and credentials of its metrics endpoints, which may be one server with the target. Raises PlanError for a token that
    `environ` lacks."""
    named = plan.server_metrics.named()
    found = {secret for one in named for text in secrets_of(one.url) for secret in (text, unquote(text))}
    found |= {basic for one in named if (basic := _basic(one.url)) is not None}
    found |= {token for one in named if (token := token_of(one.token_env, environ)) is not None}
    long = {secret for secret in found if len(secret) >= SHORTEST_SECRET}
    return sorted(long | ({key} if key is not None else set()), key=len, reverse=True)


def _this_machine(plan: Plan, engine: Sequence[int]) -> Endpoint:
    """Its processes: those of the engine, if they are here, and the rest of this program's."""
    wanted = plan.host_telemetry
    roles = {"engine": list(engine)} if engine else {}
    local = LocalReadings(
        roles=roles | {"client": [os.getpid()]},
        meters=list(wanted.power),
        interval_ns=seconds_to_ns(wanted.interval_s),
    )
    return Endpoint(shown=THIS_MACHINE, host="", port=0, path="", headers={}, own=False, local=local)


def _tell_apart(endpoints: Sequence[Endpoint]) -> None:
    """Number those that differ in their credentials alone, from the second on: the record knows them by what is shown."""
    seen: Counter[str] = Counter()
    for one in endpoints:
        seen[one.shown] += 1
        if seen[one.shown] > 1:
            one.shown += f"#{seen[one.shown]}"


def _basic(url: str) -> str | None:
    """A URL's user and password as HTTP's basic credentials; None if it has none."""
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    name, _, password = user.partition(":")
    return base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode() if at else None


def _named(
    plan: Plan, one: MetricsEndpoint, target: probing.Endpoint, key: str | None, environ: Mapping[str, str]
) -> Endpoint:
    """How to ask there. The target's key and headers go to the target and nowhere else: same scheme, host and port."""
    place = probing.endpoint(one.url)
    ours = (place.scheme, place.host, place.port) == (target.scheme, target.host, target.port)
    verify = plan.target.tls_verify or place.host != target.host
    filled = one.model_copy(
        update={
            "tls_verify": verify if one.tls_verify is None else one.tls_verify,
            "ca_file": one.ca_file or plan.target.tls_ca_file,
        }
    )
    return endpoint_at(filled, environ, headers(plan.target, key) if ours else {})


def endpoint_at(
    one: MetricsEndpoint, environ: Mapping[str, str], more: Mapping[str, str] | None = None
) -> Endpoint:
    """How to ask at an endpoint, with these header lines besides. Of several credentials those of its URL count, else its
    token. Raises PlanError for a token that `environ` lacks."""
    place, parts = probing.endpoint(one.url), urlsplit(one.url)
    lines = {"User-Agent": "inferometer", "Accept": "*/*", "Accept-Encoding": "identity"}
    lines = merged(merged(lines, more or {}), one.headers)
    if (basic := _basic(one.url)) is not None:
        lines = merged(lines, {"Authorization": f"Basic {basic}"})
    elif (token := token_of(one.token_env, environ)) is not None:
        own = one.token_header
        lines = merged(lines, {"Authorization": f"Bearer {token}"} if own is None else {own: token})
    query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~?-._[]')}" if parts.query else ""
    return Endpoint(
        shown=shown(one.url),
        host=place.host,
        port=place.port,
        path=quote(parts.path, safe="/%:@!$&'()*+,;=~") + query,
        headers={"Host": place.host_header, **lines},
        own=False,
        tls=place.scheme == "https",
        tls_verify=one.tls_verify is not False,
        tls_ca_file=one.ca_file,
        tls_cert_file=one.cert_file,
        tls_key_file=one.key_file,
        timeout_s=one.timeout_s,
        largest=LARGEST if one.max_body_mib is None else int(one.max_body_mib * (1 << 20)),
    )


def token_of(
    variable: str | None, environ: Mapping[str, str], where: str = "server_metrics.token_env"
) -> str | None:
    """The token that an environment variable holds; None if none is named. Raises PlanError, which does not repeat it. `where`
    is what names the variable."""
    if variable is None:
        return None
    token = environ.get(variable, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        words = f"the environment variable {variable} is not set, or holds what a header cannot"
        raise PlanError([Problem(where, words)])
    return token
