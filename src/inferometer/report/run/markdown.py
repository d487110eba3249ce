"""report.md: the draft's minimum report (appendix C.1) line for line, then the disclosures it leaves out.

C.1 is plain text, so it stands in a code fence. Throughput under a TTFT limit and maximum throughput come from a search over
load levels; a single run has neither, and a number taken from its one level would be invented.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from inferometer.metrics.catalogue import METRICS, RATES
from inferometer.metrics.statistics import STATISTICS
from inferometer.report import wording
from inferometer.report.figures import MARK, clean, figure, interval, marked
from inferometer.report.run import conversations, disclosure, server
from inferometer.report.workload_charts import of_run

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!&])")


def cell(value: object) -> str:
    """Outside text for a Markdown cell or line: one line, every character that Markdown or HTML reads as markup escaped."""
    return (
        _SPECIAL.sub(r"\\\1", clean(value))
        .replace("\\<", "&lt;")
        .replace("\\>", "&gt;")
        .replace("\\&", "&amp;")
    )


def minimum_report(summary: Mapping[str, Any]) -> str:
    """Appendix C.1 with its lines in its order."""
    plan, offered = summary["plan"], summary["load"]["offered"]
    workload = plan["workload"]["name"] if isinstance(plan.get("workload"), Mapping) else None
    closed = summary["load"]["model"] == "closed"
    pace = (
        f"closed-loop concurrency {disclosure.text(offered.get('concurrency'))}"
        if closed
        else f"open-loop {disclosure.text(offered.get('rate'))} req/s"
    )
    if summary["load"]["model"] == "users" or offered.get("rate_of") == "conversations":
        pace = disclosure.load(summary)
    sut = summary["sut"]
    notes = [*disclosure.deviations(summary), "Guardrails: " + disclosure.guardrails(summary)]
    lines = [
        "=== LLM Benchmark Report (Minimum) ===",
        *(f"{word}: {means}" for word, means in wording.marks(summary)),
        "",
        "System Identification:",
        f"- Model: {disclosure.model(summary)}",
        f"- Hardware: {disclosure.hardware(summary)}",
        f"- Software: {disclosure.text(sut['software'], disclosure.UNDECLARED)}",
        f"- SUT Boundary: {disclosure.BOUNDARIES.get(sut['boundary'], disclosure.UNDECLARED)}",
        "",
        "Test Configuration:",
        f"- Workload: {disclosure.text(workload)}",
        f"- Load Model: {pace}",
        f"- Request Count: {figure(summary['requests']['sent'])}",
        f"- Test Duration: {_with_unit(summary['window']['duration_s'], 'seconds')}",
        "",
        "Key Results:",
        f"- TTFT P50: {_statistic(summary, 'ttft_ms', 'p50')}",
        f"- TTFT P99: {_statistic(summary, 'ttft_ms', 'p99')}",
        f"- TPOT P50: {_statistic(summary, 'tpot_ms', 'p50')}",
        f"- TPOT P99: {_statistic(summary, 'tpot_ms', 'p99')}",
        f"- Max Throughput: {disclosure.UNMEASURED}",
        f"- Throughput at P99 TTFT < 500ms: {disclosure.UNMEASURED}",
        "",
        "Notes:",
        *(f"- {note}" for note in notes),
        "",
        "=== End Report ===",
    ]
    # A fence inside outside text would end ours.
    return "\n".join(clean(line).replace("```", "'''") for line in lines)


def _with_unit(value: float | None, unit: str) -> str:
    return disclosure.UNMEASURED if value is None else f"{figure(value)} {unit}"


def _statistic(summary: Mapping[str, Any], name: str, key: str) -> str:
    stats = summary["metrics"][name]
    return _with_unit(stats[key] if stats else None, "ms")


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    body = [" | ".join(cell(value) for value in row) for row in rows]
    return "\n".join(
        ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *(f"| {line} |" for line in body)]
    )


def _results(summary: Mapping[str, Any]) -> str:
    rows: list[list[str]] = []
    for name, metric in METRICS.items():
        stats = summary["metrics"][name]
        if stats is not None:
            values = [
                text + (MARK if few else "") for text, few in (marked(stats, key) for key in STATISTICS)
            ]
            rows.append([f"{metric.title} ({metric.unit})", figure(stats["n"]), *values])
    for name, rate in RATES.items():
        value = summary["throughput"][name]
        if rate.optional and value is None:
            continue
        rows.append([f"{rate.title} ({rate.unit})", "", figure(value), *[""] * (len(STATISTICS) - 1)])
    table = _table(["Metric", "n", *STATISTICS.values()], rows)
    return f"{table}\n\n{MARK} fewer samples than this percentile needs; take it as a rough figure."


def _ttft(summary: Mapping[str, Any]) -> str:
    """All five TTFT percentiles with intervals and sample count (draft 5.1.4.1, 5.1.4.3), then by input length (5.1.4.2)."""
    stats = summary["metrics"]["ttft_ms"]
    head = ["Input tokens", "n", "P50", "P90", "P95", "P99", "P99.9"]
    keys = ("p50", "p90", "p95", "p99", "p99_9")
    if stats is None:
        return f"TTFT was {disclosure.UNMEASURED}."
    rows = [["all", figure(stats["n"]), *(figure(stats[key]) for key in keys)]]
    rows.append(["95 % interval", "", *(interval(stats["ci95"].get(key)) for key in keys)])
    for part in summary["ttft_by_input"]:
        rows.append([bucket(part), figure(part["n"]), *(figure(part[key]) for key in keys)])
    return _table(head, rows)


def _by_class(summary: Mapping[str, Any]) -> str:
    """What each class of requests met, and how long its prompts and answers were."""
    latency = ("TTFT", "TPOT", "Latency")
    head = ["Class", "Sent", "Completed", *(f"{name} {key}" for name in latency for key in ("P50", "P99"))]
    rows, lengths = [], []
    for one in summary["by_class"]:
        counts, prompt, output = one["requests"], one["prompt"], one["output"]
        cells = [
            value + (MARK if few else "")
            for name in ("ttft_ms", "tpot_ms", "e2e_ms")
            for value, few in (marked(one[name], key) for key in ("p50", "p99"))
        ]
        rows.append([one["name"], figure(counts["sent"]), figure(counts["completed"]), *cells])
        prompts = (figure(prompt[key]) for key in ("asked_mean", "sent_mean", "server_mean"))
        answers = (figure(output[key]) for key in ("asked_mean", "server_mean", "local_mean"))
        lengths.append([one["name"], *prompts, *answers])
    about = ["Class", "Prompt asked", "sent", "server", "Output asked", "server", "client"]
    return f"{_table(head, rows)}\n\nIn ms. Mean lengths in tokens:\n\n{_table(about, lengths)}"


def _by_turn(told: Mapping[str, Any]) -> str:
    """What each turn of the conversations met."""
    head = [*conversations.HEAD, *conversations.LATENCY_HEAD]
    rows = [
        [*counts, *(value + (MARK if few else "") for value, few in cells)]
        for counts, cells in conversations.rows(told)
    ]
    return f"{conversations.sentence(told)}\n\n{_table(head, rows)}\n\nLatencies in ms; mean tokens."


def _workload(summary: Mapping[str, Any]) -> str:
    """Lengths asked, sent and counted; the best prefix-hit rate possible beside the server's; requests of each prefix."""
    about = of_run(summary, None)
    parts = [
        _table(["Lengths", *about["points"]], [[label, *cells] for label, cells in about["lengths"]]),
        _table(["Prefix hits", "Share"], [[row["label"], row["value"]] for row in about["hits"]]),
        cell(about["hits_words"]),
        cell(about["sharing"]),
    ]
    if about["bars"]:
        parts.append(_table(["Prefix", "Requests"], [[row["label"], row["value"]] for row in about["bars"]]))
    elif about["curve"]:
        parts.append(cell(about["curve"]))
    return "\n\n".join(parts)


def _server(summary: Mapping[str, Any]) -> str:
    """Queue, KV cache and preemptions, then both sides' figures."""
    times = [
        [title, who, *cells]
        for title, theirs, ours in server.times(summary)
        for who, cells in (("server", theirs), ("client", ours))
        if cells
    ]
    parts = [cell(server.line(summary))]
    if times:
        parts.append(_table(["In ms", "By", *server.HEAD], times))
    if counts := server.counts(summary):
        parts.append(_table(["Warm-up included", "Server", "Client"], counts))
    return "\n\n".join([*parts, "\n".join(f"- {cell(one)}" for one in server.endpoints(summary))])


def bucket(part: Mapping[str, Any]) -> str:
    """A range of input lengths: `256 to 511`, `4096 and more`."""
    low, high = part["from"], part["to"]
    return f"{figure(low)} and more" if high is None else f"{figure(low)} to {figure(high - 1)}"


def _checks(summary: Mapping[str, Any]) -> str:
    rows = [
        [
            wording.STATUS.get(str(check["status"]), str(check["status"])),
            wording.title(check),
            wording.quantity(check, "value") if check["value"] is not None else "",
            wording.quantity(check, "limit") if check["limit"] is not None else "",
            wording.words(check),
        ]
        for check in wording.ordered(summary["verdict"]["checks"])
    ]
    return _table(["Status", "Check", "Value", "Limit", "In words"], rows)


def _slos(summary: Mapping[str, Any]) -> str:
    met = {True: "met", False: "not met", None: "undecided"}
    rows = [
        [slo["expr"], met[slo["met"]], figure(slo["value"]), interval(slo["ci"]), figure(slo["limit"])]
        for slo in summary["slos"]
    ]
    return _table(["Objective", "Result", "Value", "95 % interval", "Limit"], rows)


def render_markdown(summary: Mapping[str, Any]) -> str:
    """The whole of report.md."""
    verdict = summary["verdict"]
    parts = [
        *(line for word, means in wording.marks(summary) for line in (f"# {word}", means)),
        f"# Inferometer report: {cell(summary['run']['name'])}",
        f"**{verdict['status']}.** {wording.meaning(summary)}",
        "\n".join(f"- {cell(reason['message'])}" for reason in verdict["reasons"]),
        cell(disclosure.measured(summary)),
        "## Minimum report",
        f"```text\n{minimum_report(summary)}\n```",
        "## Disclosure",
        _table(["Item", "Disclosed"], disclosure.method(summary)),
        "### TTFT percentiles (ms)",
        _ttft(summary),
        "### Deviations",
        "\n".join(f"- {cell(line)}" for line in disclosure.deviations(summary)) or "None found.",
        "The minimum report alone claims no compliance with the draft.",
        "### Checks",
        _checks(summary),
        *(["## Objectives", _slos(summary)] if summary["slos"] else []),
        "## Results",
        _results(summary),
        *(["## Server metrics", _server(summary)] if summary["server"] else []),
        "## Workload",
        _workload(summary),
        *(["## By class", _by_class(summary)] if summary["by_class"] else []),
        *(["## By turn", _by_turn(told)] if (told := summary["conversations"]) else []),
        "## System under test",
        _table(["Item", "Declared"], disclosure.system(summary)),
        "## Client",
        _table(["Item", "Value"], disclosure.client(summary)),
        "## Run",
        _table(["Item", "Value"], disclosure.run(summary)),
        "## Definitions",
        "\n".join(f"- **{cell(name)}**: {cell(means)}" for name, means in summary["definitions"].items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
