"""report.html: one file that needs no network, for someone who has never seen such a report. html_page.py makes it safe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inferometer.documents.summary import Objective, Summary
from inferometer.measure.series import RunSeries
from inferometer.measure.server import Server
from inferometer.metrics.catalogue import METRICS, RATES, TABLE
from inferometer.metrics.statistics import STATISTICS, Interval
from inferometer.plan.saved import resolved
from inferometer.printable import json_text
from inferometer.report import checks, workload
from inferometer.report.figures import (
    ABSENT,
    DASH,
    MARK,
    THIN,
    UNMEASURED,
    bucket,
    clean,
    figure,
    interval,
    marked,
    moment,
    share,
    statistic_interval,
    stats_of,
    table_of,
)
from inferometer.report.html_page import (
    Cell,
    Context,
    Picture,
    Strip,
    Table,
    check_table,
    picture,
    render_page,
    statistic_cell,
    table,
)
from inferometer.report.run import agent_sessions, charts, disclosure, machines, round_trip, rows, tasks
from inferometer.report.run.error_bounds import ERROR_HEAD, bound_of, error_rows, rounded_up
from inferometer.report.run.throughput import RATE_HEAD, rate_rows

MET = {True: "met", False: "not met", None: "undecided"}


@dataclass(frozen=True, slots=True)
class Headline:
    """A number of the first screen."""

    label: str
    value: str
    unit: str
    interval: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check as the page shows it. `kind`: its status, a class of the style sheet."""

    status: str
    kind: str
    title: str
    value: str
    limit: str
    sentence: str
    advice: str | None


def _percentile(summary: Summary, name: str, key: str) -> Headline:
    stats, label = stats_of(summary, name), f"{METRICS[name].short} {STATISTICS[key]}"
    unit = disclosure.unit_of(summary, METRICS[name])
    if stats is None:
        return Headline(label, ABSENT, unit, note=UNMEASURED)
    value, few = marked(stats, key)
    notes = [f"only {figure(stats.n)} samples"] if few else []
    if (bound := bound_of(summary, name, key)) is not None:
        notes.append(f"instrument's error at most {rounded_up(bound)} ms")
    return Headline(label, value, unit, _bounds(getattr(stats.ci95, key)), ", ".join(notes))


def _bounds(bounds: Interval | None) -> str:
    return interval(bounds) if bounds else ""


def pace_metric(summary: Summary) -> str:
    """ITL where every gap was seen (direct or server stamps), else TPOT, which does not depend on how tokens were chunked."""
    every_gap = summary.tokens.itl_method == "direct" and summary.metrics.itl_ms is not None
    return "itl_ms" if every_gap else "tpot_ms"


def headline(summary: Summary) -> list[Headline]:
    """The numbers of the first screen, each with its interval where there is one."""
    pace, rates = pace_metric(summary), summary.throughput
    return [
        _percentile(summary, "ttft_ms", "p50"),
        _percentile(summary, "ttft_ms", "p99"),
        _percentile(summary, pace, "p50"),
        _percentile(summary, pace, "p99"),
        Headline(
            "Output",
            figure(rates.output_tok_s),
            "tok/s" if (by := disclosure.counted_by(summary)) is None else f"tok/s, {by}",
            _bounds(rates.ci95.output_tok_s),
            UNMEASURED if rates.output_tok_s is None else "",
        ),
        _requests(summary),
    ]


def _requests(summary: Summary) -> Headline:
    counts = summary.requests
    note = f"{figure(counts.failed)} failed"
    note += f", {figure(counts.cancelled)} cancelled" if counts.cancelled else ""
    failed = ""
    if counts.failed_share_ci95:
        low, high = counts.failed_share_ci95
        failed = f"{share(low)} {DASH} {share(high)} failed"
    return Headline("Requests", figure(counts.completed), "ok", failed, note)


def _results(summary: Summary, label: str, names: Iterable[str]) -> Table:
    rows = []
    for name in names:
        stats, metric = stats_of(summary, name), METRICS[name]
        title = Cell(metric.title, unit=disclosure.unit_of(summary, metric), hint=metric.means)
        count = ABSENT if stats is None else figure(stats.n)
        rows.append([title, count, *(statistic_cell(stats, key) for key in STATISTICS)])
    return table(label, ["Metric", "n", *STATISTICS.values()], rows)


def _rates(summary: Summary) -> Table:
    rows = [[Cell(row.title, unit=row.unit), *row.cells] for row in rate_rows(summary)]
    return table("Throughput", ["Rate", *RATE_HEAD[1:]], rows, kind="")


def _adjusted(summary: Summary) -> Context | None:
    """TTFT as measured and less the round trip, where that is asked for."""
    both = round_trip.adjusted(summary)
    if both is None:
        return None
    rows = [
        [label, figure(stats.n), *(statistic_cell(stats, key) for key in STATISTICS)]
        for label, stats in both.rows
    ]
    shown = table(round_trip.TITLE, round_trip.HEAD, rows) if rows else None
    return {"title": round_trip.TITLE, "table": shown, "words": both.words}


def _objectives(slos: tuple[Objective, ...]) -> Table:
    rows = [
        [
            Cell(clean(slo.expr), kind="code"),
            Cell(MET[slo.met], kind=f"met {MET[slo.met].replace(' ', '-')}"),
            figure(slo.value),
            interval(slo.ci),
        ]
        for slo in slos
    ]
    head = ["Objective", "Result", "Value", "95 % interval"]
    return table("Objectives", head, rows, [False, False, True, True], kind="")


def _intervals(summary: Summary) -> Table:
    rows = []
    for name in table_of(summary):
        stats, metric = stats_of(summary, name), METRICS[name]
        if stats is not None:
            bounds = [statistic_interval(stats, key) for key in ("mean", "p50", "p90", "p95", "p99")]
            rows.append([Cell(metric.title, unit=disclosure.unit_of(summary, metric)), *bounds])
    return table("Intervals", ["Metric", "Mean", "P50", "P90", "P95", "P99"], rows)


def _errors(summary: Summary) -> Table:
    return table("Largest error of the instrument itself", ERROR_HEAD, error_rows(summary))


def _by_input(summary: Summary) -> Table | None:
    """TTFT by input length: the range, the number of samples, percentiles, and the strip beside the numbers."""
    top = max((part.p99 for part in summary.ttft_by_input if part.p99 is not None), default=0.0) or 1.0
    rows = []
    for part in summary.ttft_by_input:
        points = {"p50": part.p50, "p95": part.p95, "p99": part.p99}
        at = {key: f"{value / top * 100:.1f}" for key, value in points.items() if value is not None}
        cells = [statistic_cell(part, key) for key in ("p50", "p90", "p95", "p99", "p99_9")]
        strip = Cell("", strip=Strip(**at) if len(at) == len(points) else None)
        length = Cell(bucket(part.from_tokens, part.to_tokens))
        rows.append((length, Cell(figure(part.n)), *cells, strip))
    if not rows:
        return None
    head = ("Input tokens", "n", "P50, ms", "P90", "P95", "P99", "P99.9", "P50 to P99")
    return Table(
        "Time to first token by input length",
        head,
        tuple(rows),
        ("", "num", "num", "num", "num", "num", "num", "strip"),
    )


def _by_class(summary: Summary) -> tuple[Table, Table] | None:
    """A row for each class of requests: counts and latencies in ms; mean lengths in tokens."""
    if not summary.by_class:
        return None
    latencies, lengths = [], []
    for one in summary.by_class:
        cells = [
            statistic_cell(stats, key)
            for stats in (one.ttft_ms, one.tpot_ms, one.e2e_ms)
            for key in ("p50", "p90", "p99")
        ]
        counts, prompt, output = one.requests, one.prompt, one.output
        latencies.append([clean(one.name), figure(counts.sent), figure(counts.failed), *cells])
        means = [prompt.asked_mean, prompt.sent_mean, prompt.server_mean]
        means += [output.asked_mean, output.local_mean, output.server_mean]
        lengths.append([clean(one.name), *map(figure, means)])
    keys = [f"{name} {key}" for name in ("TTFT", "TPOT", "Latency") for key in ("P50", "P90", "P99")]
    about = ["Mean tokens", "Prompt asked", "sent", "server", "Output asked", "client", "server"]
    return (
        table("Latency by class", ["Class", "Sent", "Failed", *keys], latencies),
        table("Lengths by class", about, lengths),
    )


def _by_turn(summary: Summary) -> tuple[str, Table] | None:
    """How the conversations ended, and a row for each turn: counts, and latencies in ms."""
    if summary.conversations is None or summary.agent_sessions is not None:
        return None
    turns = [
        [*counts, *(Cell(*latency) for latency in latencies)]
        for counts, latencies in rows.turn_rows(summary.conversations)
    ]
    head = [*rows.TURN_HEAD, *rows.TURN_LATENCY_HEAD]
    return rows.conversations_line(summary.conversations), table("By turn", head, turns)


def _agent_sessions(summary: Summary) -> Context | None:
    """What became of recorded sessions, their figures, and their steps by position and by agent."""
    sessions = summary.agent_sessions
    if sessions is None:
        return None
    figures = [
        [words, *cells, *(Cell(*point) for point in points)]
        for words, cells, points in agent_sessions.figure_rows(sessions)
    ]
    groups = (
        (agent_sessions.POSITION_HEAD, sessions.by_position),
        (agent_sessions.AGENT_HEAD, sessions.by_agent),
    )
    return {
        "title": agent_sessions.TITLE,
        "line": agent_sessions.line(sessions),
        "figures": table("Figures of sessions", agent_sessions.FIGURE_HEAD, figures) if figures else None,
        "shares": table(
            "Shares and rates of sessions",
            agent_sessions.SHARE_HEAD,
            agent_sessions.share_rows(sessions),
            kind="",
        ),
        "explained": agent_sessions.explained(sessions),
        "steps": [
            table(
                f"Steps by {of.lower()}",
                [of, *agent_sessions.STEP_HEAD, *agent_sessions.LATENCY_HEAD],
                [
                    [*counts, *(Cell(*latency) for latency in latencies)]
                    for counts, latencies in agent_sessions.step_rows(steps)
                ],
            )
            for of, steps in groups
            if steps
        ],
        "steps_explained": agent_sessions.STEPS_EXPLAINED,
    }


def _tasks(summary: Summary) -> Context | None:
    """How many tasks succeeded, by class and by criterion, and what their system did meanwhile."""
    account = summary.tasks
    if account is None:
        return None
    traced = account.traced
    groups = table(tasks.TITLE, tasks.GROUP_HEAD, tasks.group_rows(account))
    criteria = tasks.criterion_rows(account)
    return {
        "line": tasks.line(summary),
        "scope": tasks.SCOPE,
        "groups": groups,
        "criteria": table("Answers by criterion", tasks.CRITERION_HEAD, criteria) if criteria else None,
        "traced": None if traced is None else tasks.traced_line(traced, account),
        "steps": None if traced is None else table("Steps", tasks.STEP_HEAD, tasks.step_rows(traced)),
    }


def _machines(summary: Summary) -> list[tuple[str, Table]]:
    """The figures of each machine that was read, under whose they are."""
    return [
        (
            machines.title(one),
            table(machines.title(one), machines.HEAD, machines.figures(one), [False, False], kind=""),
        )
        for one in machines.seen(summary)
    ]


def _server(summary: Summary) -> Context | None:
    """The server by its own metrics, and what came of each endpoint; None where nothing was scraped."""
    server, endpoints = summary.server, rows.endpoint_rows(summary)
    if server is None and not endpoints:
        return None
    right = [False, False, True, True, True, False]
    return {
        "endpoints": table("Endpoints of metrics", rows.ENDPOINT_HEAD, endpoints, right)
        if endpoints
        else None,
        "line": None,
        **({} if server is None else _server_figures(summary, server)),
    }


def _server_figures(summary: Summary, server: Server) -> Context:
    """What the server said of itself, beside the client's figures."""
    times = []
    for title, theirs, ours in rows.server_times(summary):
        times.append([title, "server", *theirs])
        times += [["", "client", *ours]] if ours else []
    right = [False, False, *[True] * len(rows.SERVER_HEAD)]
    head = ["In ms", "By", *rows.SERVER_HEAD]
    counts = rows.server_counts(server)
    return {
        "line": rows.server_line(server),
        "times": table("Latency by server and client", head, times, right) if times else None,
        "estimates": rows.SERVER_ESTIMATES,
        "counts": table(
            "Totals by server and client", ["Warm-up included", "Server", "Client"], counts, kind=""
        )
        if counts
        else None,
        "seen": server.seen,
        "engine": clean(server.engine),
    }


def _check_rows(summary: Summary) -> list[CheckRow]:
    return [
        CheckRow(
            checks.STATUS[check.status],
            check.status,
            checks.title(check),
            ABSENT if check.value is None else checks.value(check),
            ABSENT if check.limit is None else checks.limit(check),
            checks.sentence(check),
            checks.advice(check),
        )
        for check in checks.ordered(summary.verdict.checks)
    ]


def _caption(summary: Summary, name: str) -> str:
    """What a distribution shows, in a sentence."""
    stats, metric = stats_of(summary, name), METRICS[name]
    if stats is None:
        return f"{metric.title} was {UNMEASURED}."
    what = "gaps" if METRICS[name].pooled else "requests"
    return (
        f"{metric.title} of {figure(stats.n)} {what}: half lie at or below {figure(stats.p50)} ms, "
        f"99{THIN}% at or below {figure(stats.p99)} ms, the largest is {figure(stats.max)} ms."
    )


def _lateness_caption(summary: Summary) -> str:
    stats = summary.load.lateness_ms
    if summary.run.simulated:
        return "In virtual time every request leaves when it is due."
    if stats is None:
        return "Lateness was not measured."
    return (
        f"Lateness is how long after its due time each request left: 99{THIN}% at most {figure(stats.p99)} ms, "
        f"the largest {figure(stats.max)} ms. Of all lateness: {rows.lateness(summary)}. "
        f"Where there are many requests, the latest of each moment are drawn."
    )


def _distributions(summary: Summary, series: RunSeries) -> list[tuple[tuple[Picture, ...], str]]:
    """For each latency its charts and what they show, in a sentence."""
    names = ("ttft_ms", pace_metric(summary), "e2e_ms")
    return [
        (tuple(map(picture, charts.distributions(summary, series, name))), _caption(summary, name))
        for name in names
    ]


def _checks(rows: Sequence[CheckRow]) -> Table:
    return check_table(
        "Checks",
        ("Status", "Check", "Value", "Limit", "In words"),
        [
            (
                Cell(row.status, kind="tag"),
                row.title,
                row.value,
                row.limit,
                Cell(row.sentence, advice=row.advice or ""),
            )
            for row in rows
        ],
        ("", "", "num", "num", "words"),
        [row.kind for row in rows],
    )


def _verdict(summary: Summary) -> Context:
    rows = _check_rows(summary)
    banners = checks.marks(summary)
    over = "".join(f"{word}, " for word, _ in banners)
    return {
        "status": summary.verdict.status,
        "meaning": checks.meaning(summary),
        "over": banners,
        "page_title": f"{over}{summary.verdict.status}: {clean(summary.run.name)}",
        "reasons": [row for row in rows if row.kind in ("fail", "unsure")],
        "tally": {status: sum(row.kind == status for row in rows) for status in checks.STATUS},
        "applied": sum(row.kind != "na" for row in rows),
        "checks": _checks(rows),
    }


def _method(summary: Summary) -> Context:
    named = {name: metric.title for name, metric in (METRICS | RATES).items()}
    return {
        "facts": {
            "System under test": rows.system(summary),
            "Method": disclosure.method(summary),
            "Client": rows.client(summary),
            "Run": rows.run(summary),
        },
        "deviations": disclosure.deviations(summary),
        "definitions": [(named.get(name, name), name, means) for name, means in summary.definitions.items()],
        "plan": json_text(resolved(summary.plan), indent=2),
    }


def render_html(summary: Summary, series: RunSeries) -> str:
    """The whole of report.html. Raises ValueError: the plan holds NaN or an infinity."""
    further = tuple(name for name in METRICS if name not in TABLE and stats_of(summary, name) is not None)
    context = {
        "run": {"name": clean(summary.run.name), "id": clean(summary.run.id)},
        "started": moment(summary.run.started),
        "version": clean(summary.version),
        "measured": disclosure.measured(summary),
        "headline": headline(summary),
        "pace_title": METRICS[pace_metric(summary)].title,
        "results": _results(summary, "Results", table_of(summary)),
        "more": _results(summary, "Further metrics", further) if further else None,
        "adjusted": _adjusted(summary),
        "rates": _rates(summary),
        "intervals": _intervals(summary),
        "errors": _errors(summary),
        "objectives": _objectives(summary.slos) if summary.slos else None,
        "distributions": _distributions(summary, series),
        "over_time": list(map(picture, charts.over_time(summary, series))),
        "late": _lateness_caption(summary),
        "by_server": list(map(picture, charts.by_server(summary, series))),
        "by_machine": list(map(picture, charts.by_machine(summary, series))),
        "server": _server(summary),
        "machines": _machines(summary),
        "by_input": _by_input(summary),
        "by_class": _by_class(summary),
        "by_turn": _by_turn(summary),
        "agent_sessions": _agent_sessions(summary),
        "tasks": _tasks(summary),
        "workload": workload.of_run(summary, series.lengths),
        "mark": MARK,
        **_verdict(summary),
        **_method(summary),
    }
    plan = None if summary.run.simulated else resolved(summary.plan)  # for `rerun`; an engine is not in it
    return render_page("report.html.j2", {"plan": plan}, context)
