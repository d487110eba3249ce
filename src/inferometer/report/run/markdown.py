"""report.md: the draft's minimum report (appendix C.1) line for line, then the disclosures it leaves out.

C.1 is plain text, so it stands in a code fence. Throughput under a TTFT limit and maximum throughput come from a search over
load levels; a single run has neither, and a number taken from its one level would be invented.
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.summary import Summary
from inferometer.measure.agent_sessions import AgentSessions
from inferometer.measure.breakdown import Conversations
from inferometer.measure.series import LengthHistograms
from inferometer.measure.server import Server
from inferometer.measure.tasks import TasksAccount
from inferometer.metrics.catalogue import METRICS
from inferometer.metrics.statistics import STATISTICS
from inferometer.report import checks, workload
from inferometer.report.figures import (
    MARK,
    UNDECLARED,
    UNMEASURED,
    bucket,
    clean,
    figure,
    interval,
    statistic,
    statistic_interval,
    stats_of,
    text,
    with_mark,
)
from inferometer.report.run import agent_sessions, disclosure, machines, round_trip, rows, tasks
from inferometer.report.run.error_bounds import ERROR_HEAD, error_rows
from inferometer.report.run.throughput import RATE_HEAD, rate_rows
from inferometer.report.tables import bullets, escaped, markdown_table

MET = {True: "met", False: "not met", None: "undecided"}
_POINTS = ("p50", "p90", "p95", "p99", "p99_9")


def minimum_report(summary: Summary) -> str:
    """Appendix C.1 with its lines in its order."""
    offered = summary.load.offered
    closed = summary.load.model == "closed"
    pace = (
        f"closed-loop concurrency {text(offered.concurrency)}"
        if closed
        else f"open-loop {text(offered.rate)} req/s"
    )
    if summary.load.model == "users" or offered.rate_of in ("conversations", "sessions"):
        pace = disclosure.load(summary)
    sut = summary.sut
    sent, answered = summary.requests.sent, summary.requests.completed
    unanswered = [disclosure.of_those_answered(sent, answered)] if answered < sent else []
    adjusted = [] if (line := round_trip.adjustment(summary)) is None else [f"{line} (draft 4.7.3)"]
    notes = [
        *disclosure.deviations(summary),
        *unanswered,
        *adjusted,
        "Guardrails: " + rows.guardrails(summary),
    ]
    lines = [
        "=== LLM Benchmark Report (Minimum) ===",
        *(f"{word}: {means}" for word, means in checks.marks(summary)),
        "",
        "System Identification:",
        f"- Model: {rows.model(sut)}",
        f"- Hardware: {rows.hardware(sut)}",
        f"- Software: {text(sut.software, UNDECLARED)}",
        f"- SUT Boundary: {rows.boundary(sut)}",
        "",
        "Test Configuration:",
        f"- Workload: {text(summary.plan.workload.name)}",
        f"- Load Model: {pace}",
        f"- Request Count: {figure(summary.requests.sent)}",
        f"- Test Duration: {_with_unit(summary.window.duration_s, 'seconds')}",
        "",
        "Key Results:",
        f"- TTFT P50: {_statistic(summary, 'ttft_ms', 'p50')}",
        f"- TTFT P99: {_statistic(summary, 'ttft_ms', 'p99')}",
        f"- TPOT P50: {_statistic(summary, 'tpot_ms', 'p50')}",
        f"- TPOT P99: {_statistic(summary, 'tpot_ms', 'p99')}",
        f"- Max Throughput: {UNMEASURED}",
        f"- Throughput at P99 TTFT < 500ms: {UNMEASURED}",
        "",
        "Notes:",
        *(f"- {note}" for note in notes),
        "",
        "=== End Report ===",
    ]
    # A fence inside outside text would end ours.
    return "\n".join(clean(line).replace("```", "'''") for line in lines)


def _with_unit(value: float | None, unit: str) -> str:
    return UNMEASURED if value is None else f"{figure(value)} {unit}"


def _statistic(summary: Summary, name: str, key: str) -> str:
    return _with_unit(statistic(stats_of(summary, name), key), disclosure.unit_of(summary, METRICS[name]))


def _results(summary: Summary) -> str:
    head, keys = ["Metric", "n", *STATISTICS.values()], list(STATISTICS)
    rows: list[list[str]] = []
    for name, metric in METRICS.items():
        stats = stats_of(summary, name)
        if stats is not None:
            cells = [with_mark(stats, key) for key in keys]
            rows.append([f"{metric.title} ({disclosure.unit_of(summary, metric)})", figure(stats.n), *cells])
    table = _numbers(head, rows)
    note = f"{MARK} fewer samples than this percentile needs; take it as a rough figure."
    rates = [[f"{row.title} ({row.unit})", *row.cells] for row in rate_rows(summary)]
    return "\n\n".join((table, note, *_adjusted(summary), _numbers(RATE_HEAD, rates), *_errors(summary)))


def _adjusted(summary: Summary) -> list[str]:
    """TTFT as measured and less the round trip, where that is asked for."""
    both = round_trip.adjusted(summary)
    if both is None:
        return []
    cells = [
        [label, figure(stats.n), *(with_mark(stats, key) for key in STATISTICS)] for label, stats in both.rows
    ]
    table = [_numbers(round_trip.HEAD, cells)] if cells else []
    return [f"### {round_trip.TITLE}", *table, both.words]


def _errors(summary: Summary) -> list[str]:
    """The bounds of the instrument's own error, where the record has them."""
    rows = error_rows(summary)
    if not rows:
        return []
    return [
        "Largest error of the instrument itself, by what is known of each event:",
        _numbers(ERROR_HEAD, rows),
    ]


def _numbers(head: Sequence[str], rows: list[list[str]]) -> str:
    """A table of numbers: all but the first column are set to the right."""
    return markdown_table(head, rows, [False, *[True] * (len(head) - 1)])


def _ttft(summary: Summary) -> str:
    """All five TTFT percentiles with intervals and sample count (draft 5.1.4.1, 5.1.4.3), then by input length (5.1.4.2)."""
    stats = summary.metrics.ttft_ms
    if stats is None:
        return f"TTFT was {UNMEASURED}."
    rows = [["all", figure(stats.n), *(figure(statistic(stats, key)) for key in _POINTS)]]
    rows.append(["95 % interval", "", *(statistic_interval(stats, key) for key in _POINTS)])
    for part in summary.ttft_by_input:
        tokens = bucket(part.from_tokens, part.to_tokens)
        rows.append([tokens, figure(part.n), *(figure(statistic(part, key)) for key in _POINTS)])
    return _numbers(["Input tokens", "n", "P50", "P90", "P95", "P99", "P99.9"], rows)


def _by_class(summary: Summary) -> str:
    """What each class of requests met, and how long its prompts and answers were."""
    latency = ("TTFT", "TPOT", "Latency")
    head = ["Class", "Sent", "Completed", *(f"{name} {key}" for name in latency for key in ("P50", "P99"))]
    rows, lengths = [], []
    for one in summary.by_class:
        counts, prompt, output = one.requests, one.prompt, one.output
        cells = [
            with_mark(of, key) for of in (one.ttft_ms, one.tpot_ms, one.e2e_ms) for key in ("p50", "p99")
        ]
        rows.append([one.name, figure(counts.sent), figure(counts.completed), *cells])
        means = [prompt.asked_mean, prompt.sent_mean, prompt.server_mean]
        means += [output.asked_mean, output.server_mean, output.local_mean]
        lengths.append([one.name, *map(figure, means)])
    about = ["Class", "Prompt asked", "sent", "server", "Output asked", "server", "client"]
    return f"{_numbers(head, rows)}\n\nIn ms. Mean lengths in tokens:\n\n{_numbers(about, lengths)}"


def _by_turn(conversations: Conversations) -> str:
    """What each turn of the conversations met."""
    head = [*rows.TURN_HEAD, *rows.TURN_LATENCY_HEAD]
    turns = [
        [*counts, *(value + (MARK if few else "") for value, few in cells)]
        for counts, cells in rows.turn_rows(conversations)
    ]
    line = rows.conversations_line(conversations)
    return f"{line}\n\n{_numbers(head, turns)}\n\nLatencies in ms; mean tokens."


def _agent_sessions(sessions: AgentSessions) -> list[str]:
    """What became of recorded sessions, their figures, and their steps by position and by agent."""
    parts = [f"## {agent_sessions.TITLE}", escaped(agent_sessions.line(sessions))]
    figures = [
        [words, *cells, *(value + (MARK if few else "") for value, few in points)]
        for words, cells, points in agent_sessions.figure_rows(sessions)
    ]
    if figures:
        parts.append(_numbers(agent_sessions.FIGURE_HEAD, figures))
    parts += [
        _numbers(agent_sessions.SHARE_HEAD, agent_sessions.share_rows(sessions)),
        agent_sessions.explained(sessions),
    ]
    for of, groups in (
        (agent_sessions.POSITION_HEAD, sessions.by_position),
        (agent_sessions.AGENT_HEAD, sessions.by_agent),
    ):
        head = [of, *agent_sessions.STEP_HEAD, *agent_sessions.LATENCY_HEAD]
        steps = [
            [*counts, *(value + (MARK if few else "") for value, few in cells)]
            for counts, cells in agent_sessions.step_rows(groups)
        ]
        parts += [_numbers(head, steps), agent_sessions.STEPS_EXPLAINED] if steps else []
    return parts


def _tasks(summary: Summary, account: TasksAccount) -> str:
    """How many tasks succeeded, by class and by criterion, and what their system did meanwhile."""
    parts = [escaped(tasks.line(summary) or ""), escaped(tasks.SCOPE)]
    parts += [_numbers(tasks.GROUP_HEAD, tasks.group_rows(account)), "Latencies in ms."]
    if account.by_criterion:
        parts.append(_numbers(tasks.CRITERION_HEAD, tasks.criterion_rows(account)))
    if account.traced is not None:
        parts.append(escaped(tasks.traced_line(account.traced, account)))
        parts.append(_numbers(tasks.STEP_HEAD, tasks.step_rows(account.traced)))
    return "\n\n".join(parts)


def _workload(summary: Summary) -> str:
    """Lengths asked, sent and counted; the best prefix-hit rate possible beside the server's; requests of each prefix."""
    about = workload.of_run(summary, LengthHistograms())
    parts = [
        _numbers(["Lengths", *about.points], [[label, *cells] for label, cells in about.lengths]),
        _numbers(["Prefix hits", "Share"], [[bar.label, bar.value] for bar in about.hits]),
        escaped(about.hits_words),
        escaped(about.sharing),
    ]
    if about.bars:
        parts.append(_numbers(["Prefix", "Requests"], [[bar.label, bar.value] for bar in about.bars]))
    return "\n\n".join([*parts, *([escaped(about.curve_words)] if about.curve_words else [])])


def _server(summary: Summary) -> str:
    """Queue, KV cache and preemptions, then both sides' figures; and what came of each endpoint."""
    parts = [] if summary.server is None else _server_figures(summary, summary.server)
    if endpoints := rows.endpoint_rows(summary):
        parts.append(markdown_table(rows.ENDPOINT_HEAD, endpoints, [False, False, True, True, True, False]))
    return "\n\n".join(parts)


def _machines(summary: Summary) -> list[str]:
    """The figures of each machine that was read."""
    parts = ["## Machines"] if machines.seen(summary) else []
    for one in machines.seen(summary):
        parts += [f"### {escaped(machines.title(one))}", markdown_table(machines.HEAD, machines.figures(one))]
    return parts


def _server_figures(summary: Summary, server: Server) -> list[str]:
    times = [
        [title, who, *cells]
        for title, theirs, ours in rows.server_times(summary)
        for who, cells in (("server", theirs), ("client", ours))
        if cells
    ]
    parts = [escaped(rows.server_line(server))]
    if times:
        head = ["In ms", "By", *rows.SERVER_HEAD]
        parts.append(markdown_table(head, times, [False, False, *[True] * len(rows.SERVER_HEAD)]))
        parts.append(rows.SERVER_ESTIMATES)
    if counts := rows.server_counts(server):
        parts.append(_numbers(["Warm-up included", "Server", "Client"], [[*row] for row in counts]))
    return parts


def _checks(summary: Summary) -> str:
    rows = [
        [
            checks.STATUS[check.status],
            checks.title(check),
            checks.value(check) if check.value is not None else "",
            checks.limit(check) if check.limit is not None else "",
            checks.message(check),
        ]
        for check in checks.ordered(summary.verdict.checks)
    ]
    head = ["Status", "Check", "Value", "Limit", "In words"]
    return markdown_table(head, rows, [False, False, True, True, False])


def _slos(summary: Summary) -> str:
    rows = [
        [slo.expr, MET[slo.met], figure(slo.value), interval(slo.ci), figure(slo.limit)]
        for slo in summary.slos
    ]
    head = ["Objective", "Result", "Value", "95 % interval", "Limit"]
    return markdown_table(head, rows, [False, False, True, True, True])


def _of_sessions(summary: Summary) -> list[str]:
    """Recorded sessions; conversations where there are none."""
    if summary.agent_sessions is not None:
        return _agent_sessions(summary.agent_sessions)
    return ["## By turn", _by_turn(summary.conversations)] if summary.conversations else []


def render_markdown(summary: Summary) -> str:
    """The whole of report.md."""
    verdict = summary.verdict
    parts = [
        *(line for word, means in checks.marks(summary) for line in (f"# {word}", means)),
        f"# Inferometer report: {escaped(summary.run.name)}",
        f"**{verdict.status}.** {checks.meaning(summary)}",
        bullets(reason.message for reason in verdict.reasons),
        escaped(disclosure.measured(summary)),
        "## Minimum report",
        f"```text\n{minimum_report(summary)}\n```",
        "## Disclosure",
        markdown_table(["Item", "Disclosed"], disclosure.method(summary)),
        "### TTFT percentiles (ms)",
        _ttft(summary),
        "### Deviations",
        bullets(disclosure.deviations(summary)) or "None found.",
        "The minimum report alone claims no compliance with the draft.",
        "### Checks",
        _checks(summary),
        *(["## Objectives", _slos(summary)] if summary.slos else []),
        "## Results",
        _results(summary),
        *(["## Server metrics", about_server] if (about_server := _server(summary)) else []),
        *_machines(summary),
        *(["## Tasks", _tasks(summary, summary.tasks)] if summary.tasks else []),
        "## Workload",
        _workload(summary),
        *(["## By class", _by_class(summary)] if summary.by_class else []),
        *_of_sessions(summary),
        "## System under test",
        markdown_table(["Item", "Declared"], rows.system(summary)),
        "## Client",
        markdown_table(["Item", "Value"], rows.client(summary)),
        "## Run",
        markdown_table(["Item", "Value"], rows.run(summary)),
        "## Definitions",
        "\n".join(f"- **{escaped(name)}**: {escaped(means)}" for name, means in summary.definitions.items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
