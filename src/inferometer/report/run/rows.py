"""Rows and sentences that the console, Markdown and HTML share: the system under test, the client and the run; the server's own
metrics; conversations."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.summary import CalibrationCited, Lost, MetricsEndpointAccount, Summary, Sut
from inferometer.measure.breakdown import Conversations, OfTurn
from inferometer.measure.instrument import Loss
from inferometer.measure.load_hosts import LoadHost
from inferometer.measure.server import Server, Timed
from inferometer.metrics.catalogue import METRICS
from inferometer.metrics.statistics import Stats
from inferometer.report.figures import (
    ABSENT,
    UNDECLARED,
    UNKNOWN,
    Row,
    clean,
    figure,
    interval,
    marked,
    moment,
    share,
    size,
    statistic,
    text,
)
from inferometer.telemetry.host import Environment
from inferometer.telemetry.slowdowns import Slowed
from inferometer.units import NS_PER_MS

BOUNDARIES = {"engine": "Model Engine", "gateway": "Gateway", "compound": "Compound"}


def model(sut: Sut) -> str:
    """Model name and, where declared, version."""
    return text(sut.model) + (f" ({text(sut.model_version)})" if sut.model_version else "")


def hardware(sut: Sut) -> str:
    """`GPU type x count`, or that it was not declared."""
    if sut.accelerator is None:
        return UNDECLARED
    if sut.accelerator_count == 0:
        return f"{text(sut.accelerator)}, no accelerator"
    return f"{text(sut.accelerator)} x {text(sut.accelerator_count, 'count ' + UNDECLARED)}"


def server(sut: Sut, *, simulated: bool) -> str:
    """Where the requests went."""
    return text(sut.url, "a simulated engine" if simulated else "the embedded reference server")


def boundary(sut: Sut) -> str:
    """The SUT boundary (draft 4.1)."""
    return UNDECLARED if sut.boundary is None else BOUNDARIES[sut.boundary]


def guardrails(summary: Summary) -> str:
    """Draft 4.8.1, and whether any request was refused."""
    refused = summary.requests.by_error.get("refused", 0)
    return f"{declared_guardrails(summary.sut)}, refused requests {figure(refused)}"


def declared_guardrails(sut: Sut) -> str:
    """Draft 4.8.1, as declared."""
    declared = sut.guardrails
    state = {None: UNDECLARED, True: "on", False: "off"}
    return (
        f"input filter {state[declared.input_filter]}, output filter {state[declared.output_filter]}, "
        f"systems {text(declared.names, UNDECLARED)}"
    )


def system(summary: Summary) -> list[Row]:
    """The system under test: as `declared_system`, and whether any request was refused."""
    return declared_system(summary.sut, guardrails(summary), simulated=summary.run.simulated)


def declared_system(sut: Sut, guarded: str, *, simulated: bool) -> list[Row]:
    """The system under test, as declared (draft 4.1, 5.1.2.3), and what the server reported of itself. `guarded`: the text of
    its guardrails."""
    return [
        *([("Kind", "simulated: a model of an engine in virtual time, no server")] if simulated else []),
        ("Model", model(sut)),
        ("Server", server(sut, simulated=simulated)),
        ("Boundary", boundary(sut)),
        ("Software", text(sut.software, UNDECLARED)),
        ("Quantization", text(sut.quantization, UNDECLARED)),
        ("Hardware", hardware(sut)),
        ("Accelerator memory", text(sut.accelerator_memory, UNDECLARED)),
        ("Prefix caching", text(sut.prefix_caching, UNDECLARED)),
        ("Prefix cache before the run", text(sut.cache_state)),
        ("Guardrails", guarded),
        ("Notes", text(sut.notes, "none")),
        ("Seen: server header", text(sut.observed.server, "none")),
        ("Seen: models served", text(sut.observed.models, "none")),
        *_answered_as(sut),
    ]


def _answered_as(sut: Sut) -> list[Row]:
    """That the server named another model in its answer than the one asked for: which it is, it alone knows."""
    named = sut.observed.answered_as
    if named is None:
        return []
    return [("Seen: model of an answer", f"{text(named)}: an alias of {text(sut.model)}, or another model")]


def client(summary: Summary) -> list[Row]:
    """The machine that measured, and how well it kept up; or simulated, where there is nothing to keep up with."""
    kept_up = [("Instrument", "simulated")] if summary.run.simulated else _kept_up(summary)
    return [("Inferometer", text(summary.version)), *machine(summary.environment), *kept_up]


def machine(env: Environment) -> list[Row]:
    """The machine that measured."""
    return [
        ("Python", text(env.python)),
        ("System", f"{text(env.os)}, kernel {text(env.kernel)}, {text(env.machine)}"),
        ("Processor", f"{text(env.cpu)}, {text(env.cores)} cores"),
        ("Memory", size(env.memory_bytes)),
    ]


def _kept_up(summary: Summary) -> list[Row]:
    instrument = summary.instrument
    lag, late = instrument.receive_lag_ms, summary.load.lateness_ms
    return [
        ("Workers", text(instrument.workers)),
        *_hosts(instrument.hosts),
        ("CPU of each worker", _shares(instrument.cpu_fraction)),
        ("Waiting for a core", _shares(instrument.run_delay_fraction)),
        (
            "CPU of the other processes",
            _shares(() if instrument.own_cpu is None else (instrument.own_cpu.fraction,)),
        ),
        ("Workers that died", _dead(instrument.dead_workers)),
        ("Receive lag P99", _ms(lag)),
        ("Lateness P99", _ms(late)),
        ("Lateness by cause", lateness(summary)),
        (
            "Longest stall",
            f"{figure(instrument.stall_max_ms)} ms" if instrument.stall_max_ms is not None else UNKNOWN,
        ),
        ("Calibration", calibration(instrument.calibration)),
    ]


def _hosts(hosts: Sequence[LoadHost]) -> list[Row]:
    """Which hosts sent the load: their workers, and how well their clocks were known."""
    return [(f"Load host {text(one.name)}", _host(one)) for one in hosts]


def _host(host: LoadHost) -> str:
    last = host.first + host.workers - 1
    theirs = f"worker {host.first}" if host.workers == 1 else f"workers {host.first} to {last}"
    said = [theirs, f"{text(host.environment.cpu)}, {text(host.environment.cores)} cores"]
    if host.clock is not None:
        bound, drift = host.clock.bound_ns / NS_PER_MS, host.clock.drift_ppm
        said.append(f"clock known to within {figure(bound)} ms, its rate {drift:+.1f} ppm")
    if host.round_trip_before is not None and host.round_trip_before.p50_ms is not None:
        said.append(f"round trip to the server {figure(host.round_trip_before.p50_ms)} ms")
    if host.slowed is not None and host.slowed.at_all:
        said.append(f"held back {slowed(host.slowed)}")
    if host.lost is not None:
        said.append(f"lost while the load ran: {text(host.lost)}")
    return "; ".join(said)


def slowed(found: Slowed) -> str:
    """What slowed a host down, in words."""
    heat = found.thermal and f"{figure(found.thermal)} times by its hardware"
    limit = found.held_ms and f"{figure(found.held_ms)} ms by its CPU limit"
    return " and ".join(one for one in (heat, limit) if one)


LATENESS_CAUSES = {
    "scheduling": "taken up late by the client",
    "socket": "getting onto a connection",
    "back_pressure": "back-pressure of the server or the network",
}


def lateness(summary: Summary) -> str:
    """What lateness was made of: each cause with its share of all lateness and its P99."""
    shares, parts = summary.load.lateness_shares, summary.load.lateness_causes_ms
    if shares is None or parts is None:
        return ABSENT
    return "; ".join(
        f"{words} {share(getattr(shares, name))}, P99 {_ms(getattr(parts, name))}"
        for name, words in LATENESS_CAUSES.items()
    )


def _shares(values: Sequence[float | None]) -> str:
    return ", ".join(share(value) for value in values) or ABSENT


def _dead(workers: Sequence[Loss]) -> str:
    return "; ".join(map(_death, workers)) or "none"


def _death(one: Loss) -> str:
    during = "measurement" if one.phase == 1 else "warm-up"
    return (
        f"worker {one.worker} in the {during} (exit code {text(one.exit_code)}): {share(one.load_share)} of the load, "
        f"{figure(one.kept)} requests on record, {figure(one.lost)} lost"
    )


ENDS = {
    "instrument": "the next load was too much",
    "server": "not reached, the reference server ended the climb",
    "ladder": "not reached, no higher load was tried",
}


def calibration(cited: CalibrationCited | None) -> str:
    """What certifies the instrument on its machine, and how this run's load compares."""
    if cited is None:
        return "no certificate for this machine"
    load, limits = cited.load, cited.limits
    dimensions = (
        (
            ("token events/s", load.token_events_s, limits.token_events_s),
            ("requests/s", load.requests_s, limits.requests_s),
        )
        if cited.by != "whole_answers_s"
        else (("whole answers/s", load.whole_answers_s, limits.whole_answers_s),)
    )
    parts = [
        f"{name} {figure(own)}, certified {figure(limit.per_worker)} ({ENDS[limit.ended_by]})"
        for name, own, limit in dimensions
        if limit is not None
    ]
    of = f"certificate {clean(cited.id)} of {moment(cited.date)}, over {cited.transport}"
    said = f"{of}; for each worker: {'; '.join(parts)}"
    rung = cited.rung
    if rung is None or rung.e2e_ms is None:
        return said
    if rung.ttft_ms is None:
        return f"{said}; at the nearest load not below: error of E2E P99 {figure(rung.e2e_ms.p99)} ms"
    errors = f"error of TTFT mean {figure(rung.ttft_ms.mean)} ms, P99 {figure(rung.ttft_ms.p99)} ms"
    if rung.itl_ms is not None:
        errors += f", of ITL P99 {figure(rung.itl_ms.p99)} ms"
    return f"{said}; at the nearest load not below: {errors}"


def _ms(stats: Stats | None) -> str:
    return ABSENT if stats is None else f"{figure(stats.p99)} ms"


def run(summary: Summary) -> list[Row]:
    """Which run this is."""
    about = summary.run
    return [
        ("Run", text(about.id)),
        ("Started", moment(about.started)),
        ("Ended", moment(about.ended)),
        ("Plan", text(about.plan_hash)),
        ("Time", "simulated" if about.simulated else "real"),
        ("Interrupted", text(about.interrupted)),
    ]


TURN_HEAD = ("Turn", "Sent", "Completed", "Prompt tokens", "of them repeated", "From cache")
_TURN_LATENCIES = tuple((name, key) for name in ("ttft_ms", "e2e_ms") for key in ("p50", "p90", "p99"))
TURN_LATENCY_HEAD = tuple(f"{words} {key}" for words in ("TTFT", "Latency") for key in ("P50", "P90", "P99"))

_SERVER_TIMES = ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "queue_ms", "prefill_ms")
_SERVER_ALONE = {"queue_ms": "Time in the queue", "prefill_ms": "Prefill"}
_SERVER_POINTS = ("mean", "p50", "p90", "p99")
SERVER_HEAD = ("n", "Mean", "P50", "P90", "P99")
ABOUT = "~"
"""In front of an estimate."""


def conversations_line(conversations: Conversations) -> str:
    """How many conversations there were, and how they ended."""
    ends = [f"{figure(conversations.finished)} had all their turns"]
    if conversations.broken:
        ends.append(f"{figure(conversations.broken)} ended with a turn that failed")
    if conversations.cut:
        were = "was" if conversations.cut == 1 else "were"
        ends.append(f"{figure(conversations.cut)} {were} still going on when the load ended")
    left = f"; so {figure(conversations.left_out)} turns were not sent" if conversations.left_out else ""
    many = "conversation" if conversations.begun == 1 else "conversations"
    return f"{figure(conversations.begun)} {many}: {', '.join(ends)}{left}."


def turn_rows(conversations: Conversations) -> list[tuple[list[str], list[tuple[str, bool]]]]:
    """For each turn its counts under TURN_HEAD, and its latencies in ms under TURN_LATENCY_HEAD, each with whether samples are
    few."""
    return [
        (_turn_counts(turn), [marked(getattr(turn, name), key) for name, key in _TURN_LATENCIES])
        for turn in conversations.by_turn
    ]


def _turn_counts(turn: OfTurn) -> list[str]:
    return [
        f"{figure(turn.turn)}{' and later' if turn.and_later else ''}",
        figure(turn.sent),
        figure(turn.completed),
        ABSENT if turn.input_tokens is None else figure(turn.input_tokens.mean),
        figure(turn.repeated_mean),
        share(turn.cached_share),
    ]


def ttft_by_turn(conversations: Conversations, most: int = 6) -> str:
    """The median TTFT of the first turns in one line, in ms."""
    return ", ".join(
        f"{turn.turn}: {figure(turn.ttft_ms.p50)}"
        for turn in conversations.by_turn[:most]
        if turn.ttft_ms is not None
    )


def server_line(server: Server) -> str:
    """Queue, KV cache and preemptions in a sentence."""
    parts = [
        f"{figure(level.mean, 3, trim=True)} {word} (at most {figure(level.max)})"
        for level, word in ((server.running, "running"), (server.queue, "waiting"))
        if level is not None
    ]
    if server.kv_usage is not None:
        parts.append(f"KV cache {share(server.kv_usage.mean)} in use (at most {share(server.kv_usage.max)})")
    if server.preemptions is not None:
        parts.append(f"{figure(server.preemptions)} preemption{'' if server.preemptions == 1 else 's'}")
    if server.prefix_hit_share is not None:
        parts.append(f"prefix hits {share(server.prefix_hit_share)}")
    return f"By the server's own metrics: {', '.join(parts) or 'nothing of its load'}."


def server_times(summary: Summary) -> list[tuple[str, list[str], list[str]]]:
    """(metric, the server's figures, the client's), under SERVER_HEAD and in ms, for what the server times. The client's are
    empty where it has none."""
    found = []
    for name in _SERVER_TIMES:
        timed = getattr(summary.server, name)
        if timed is not None:
            title = METRICS[name].title if name in METRICS else _SERVER_ALONE[name]
            found.append((title, _estimated(timed), _cells(getattr(summary.metrics, name, None))))
    return found


SERVER_ESTIMATES = (
    f"{ABOUT} is an estimate from the buckets of the server's histogram; the percentile certainly lies between the bounds in "
    "brackets. The server's means are exact, and it counts failed requests too."
)


def _cells(stats: Stats | None) -> list[str]:
    if stats is None:
        return []
    return [figure(stats.n), *(figure(statistic(stats, point)) for point in _SERVER_POINTS)]


def _estimated(timed: Timed) -> list[str]:
    """The exact mean, and each percentile as an estimate with the bounds that hold for certain."""
    cells = [figure(timed.n), figure(timed.mean)]
    for point in _SERVER_POINTS[1:]:
        value, bounds = getattr(timed, point), timed.between.get(point)
        cells.append(figure(value) if value is None else ABOUT + figure(value))
        if bounds is not None:
            high = bounds[1]
            cells[-1] += f" [{interval((bounds[0], high)) if high is not None else f'> {figure(bounds[0])}'}]"
    return cells


def server_counts(server: Server) -> list[tuple[str, str, str]]:
    """(what, by the server, by the client) of everything that was sent, warm-up included."""
    totals = server.whole
    if totals is None:
        return []
    found = []
    for pair, title in ((totals.prompt_tokens, "Prompt tokens"), (totals.generation_tokens, "Output tokens")):
        if pair is not None:
            ends = [pair.low] if pair.low == pair.high else [pair.low, pair.high]
            found.append((title, figure(pair.server), " to ".join(map(figure, ends))))
    if totals.server_n:
        found.append(("First tokens", figure(totals.server_n), figure(totals.client_n)))
    return found


ENDPOINT_HEAD = ("Endpoint", "Metrics of", "Scrapes", "Lost", "Longest gap, s", "Why")


def endpoint_rows(summary: Summary) -> list[list[str]]:
    """Every endpoint that was scraped, under ENDPOINT_HEAD: good scrapes, those that gave nothing, the longest time of the
    measured phase without a good one, and the reasons with the words of the first."""
    resets = {} if summary.server is None else {one.url: one.resets for one in summary.server.endpoints}
    return [_endpoint_row(one, resets.get(one.url, 0)) for one in summary.metrics_endpoints]


def _endpoint_row(one: MetricsEndpointAccount, resets: int) -> list[str]:
    words = [_lost(lost) for lost in (*one.lost, *one.skipped_lines)]
    if one.absent is not None:
        words.append("the server's own, which exposes none")
    if one.skipped_instants:
        words.append(f"{figure(one.skipped_instants)} times the scrape before was still under way")
    if resets:
        words.append(f"counters went back {figure(resets)} times")
    if one.instead is not None:
        words.append(f"read at {clean(one.instead)}")
    return [
        clean(one.url),
        "none" if not one.scrapes else "none that are known" if one.engine is None else clean(one.engine),
        figure(one.scrapes),
        figure(sum(lost.count for lost in one.lost)),
        figure(one.longest_gap_s, 3),
        "; ".join(words),
    ]


LINE_CODES = {
    "bad_line": "lines that are no sample",
    "duplicate_series": "lines that another repeats",
    "after_eof": "lines behind # EOF",
    "too_many_series": "lines of series beyond the limit",
    "too_many_buckets": "lines of buckets beyond the limit",
}


def _lost(lost: Lost) -> str:
    what = LINE_CODES.get(lost.reason, clean(lost.reason))
    first = clean(lost.first).removeprefix("no body: ")
    return f"{figure(lost.count)} {what}" + (f" ({first})" if first and first != lost.reason else "")


def lost_lines(summary: Summary) -> list[str]:
    """A line about each endpoint that lost scrapes or lines, and each that was named and gave nothing that is known."""
    found = []
    for one in summary.metrics_endpoints:
        lost = [_lost(each) for each in (*one.lost, *one.skipped_lines)]
        if one.absent is None and (lost or not one.scrapes or (one.engine is None and not one.own)):
            known = "" if one.engine is not None or not one.scrapes else ", no metrics that are known"
            scrapes = f"{figure(one.scrapes)} scrape{'' if one.scrapes == 1 else 's'}"
            found.append(f"{clean(one.url)}: {'; '.join([scrapes + known, *lost])}.")
    return found
