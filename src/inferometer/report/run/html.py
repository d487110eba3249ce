"""report.html: one file that needs no network, for someone who has never seen such a report. html_page.py makes it safe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inferometer.metrics.catalogue import METRICS, RATES, TABLE
from inferometer.metrics.statistics import STATISTICS
from inferometer.report import wording
from inferometer.report.figures import (
    ABSENT,
    DASH,
    MARK,
    THIN,
    clean,
    figure,
    interval,
    marked,
    moment,
    share,
)
from inferometer.report.html_page import render
from inferometer.report.run import conversations, disclosure, server
from inferometer.report.run.markdown import bucket
from inferometer.report.workload_charts import of_run

Context = dict[str, Any]


def _number(label: str, value: float | None, unit: str, bounds: Any, note: str = "") -> dict[str, str]:
    return {
        "label": label,
        "value": figure(value),
        "unit": unit,
        "interval": interval(bounds) if bounds else "",
        "note": note,
    }


def _percentile(summary: Mapping[str, Any], name: str, key: str) -> dict[str, str]:
    stats, metric = summary["metrics"][name], METRICS[name]
    label = f"{metric.short} {STATISTICS[key]}"
    if stats is None:
        return _number(label, None, "ms", None, disclosure.UNMEASURED)
    few = f"only {figure(stats['n'])} samples" if marked(stats, key)[1] else ""
    return _number(label, stats[key], "ms", stats["ci95"].get(key), few)


def pace_metric(summary: Mapping[str, Any]) -> str:
    """ITL where every gap was seen (direct or server stamps), else TPOT, which does not depend on how tokens were chunked."""
    seen = (
        summary["tokens"]["itl_method"] in ("direct", "server") and summary["metrics"]["itl_ms"] is not None
    )
    return "itl_ms" if seen else "tpot_ms"


def headline(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """The numbers of the first screen, each with its interval where there is one."""
    pace = pace_metric(summary)
    rates, counts = summary["throughput"], summary["requests"]
    bounds = (rates.get("ci95") or {}).get("output_tok_s")
    failed = _number("Requests", counts["completed"], "ok", None, f"{figure(counts['failed'])} failed")
    if counts["cancelled"]:
        failed["note"] += f", {figure(counts['cancelled'])} cancelled"
    if counts.get("failed_share_ci95"):
        low, high = counts["failed_share_ci95"]
        failed["interval"] = f"{share(low)} {DASH} {share(high)} failed"
    return [
        _percentile(summary, "ttft_ms", "p50"),
        _percentile(summary, "ttft_ms", "p99"),
        _percentile(summary, pace, "p50"),
        _percentile(summary, pace, "p99"),
        _number(
            "Output",
            rates["output_tok_s"],
            "tok/s",
            bounds,
            disclosure.UNMEASURED if rates["output_tok_s"] is None else "",
        ),
        failed,
    ]


def _result_rows(summary: Mapping[str, Any], names: tuple[str, ...]) -> list[Context]:
    rows = []
    for name in names:
        stats = summary["metrics"][name]
        cells = [marked(stats, key) for key in STATISTICS]
        count = ABSENT if stats is None else figure(stats["n"])
        title = METRICS[name].title
        rows.append(
            {
                "title": title,
                "unit": METRICS[name].unit,
                "means": METRICS[name].means,
                "n": count,
                "cells": cells,
            }
        )
    return rows


def _rate_rows(summary: Mapping[str, Any]) -> list[Context]:
    rates = summary["throughput"]
    return [
        {
            "title": rate.title,
            "unit": rate.unit,
            "steady": figure(rates[name]),
            "interval": interval((rates.get("ci95") or {}).get(name)),
            "whole": figure(rates["whole_run"][name]),
        }
        for name, rate in RATES.items()
        if not rate.optional or rates[name] is not None
    ]


def _intervals(summary: Mapping[str, Any]) -> list[Context]:
    found = []
    for name in TABLE:
        stats = summary["metrics"][name]
        if stats is not None:
            bounds = [interval(stats["ci95"].get(key)) for key in ("mean", "p50", "p90", "p95", "p99")]
            found.append({"title": METRICS[name].title, "unit": METRICS[name].unit, "bounds": bounds})
    return found


def _by_input(summary: Mapping[str, Any]) -> list[Context]:
    """Rows of TTFT by input length, with positions from 0 to 100 for the range strip beside the numbers."""
    parts = summary["ttft_by_input"]
    top = max((part["p99"] for part in parts if part["p99"] is not None), default=0.0) or 1.0
    rows = []
    for part in parts:
        at = {key: part[key] / top * 100 for key in ("p50", "p95", "p99") if part[key] is not None}
        cells = [marked(part, key) for key in ("p50", "p90", "p95", "p99", "p99_9")]
        strip = {key: f"{place:.1f}" for key, place in at.items()} if len(at) == 3 else None
        rows.append({"bucket": bucket(part), "n": figure(part["n"]), "cells": cells, "strip": strip})
    return rows


def _by_class(summary: Mapping[str, Any]) -> list[Context]:
    """A row for each class of requests: counts, latencies in ms, mean lengths in tokens."""
    rows = []
    for one in summary["by_class"]:
        counts = one["requests"]
        cells = [
            marked(one[name], key)
            for name in ("ttft_ms", "tpot_ms", "e2e_ms")
            for key in ("p50", "p90", "p99")
        ]
        means = [(part, key) for part, second in (("prompt", "sent_mean"), ("output", "local_mean"))
                 for key in ("asked_mean", second, "server_mean")]  # fmt: skip
        rows.append(
            {
                "name": clean(one["name"]),
                "sent": figure(counts["sent"]),
                "failed": figure(counts["failed"]),
                "cells": cells,
                "lengths": [figure(one[part][key]) for part, key in means],
            }
        )
    return rows


def _by_turn(told: Mapping[str, Any] | None) -> Context | None:
    """How the conversations ended, and a row for each turn: counts, and latencies in ms."""
    if told is None:
        return None
    return {
        "sentence": conversations.sentence(told),
        "head": conversations.HEAD,
        "latencies": conversations.LATENCY_HEAD,
        "rows": conversations.rows(told),
    }


def _check_rows(summary: Mapping[str, Any]) -> list[Context]:
    return [
        {
            "status": wording.STATUS.get(str(check["status"]), clean(check["status"]).upper()),
            "class": str(check["status"]) if check["status"] in wording.STATUS else "note",
            "title": wording.title(check),
            "code": clean(check["code"]),
            "value": ABSENT if check["value"] is None else wording.quantity(check, "value"),
            "limit": ABSENT if check["limit"] is None else wording.quantity(check, "limit"),
            "sentence": wording.sentence(check),
            "advice": wording.advice(check),
        }
        for check in wording.ordered(summary["verdict"]["checks"])
    ]


def _caption(summary: Mapping[str, Any], name: str) -> str:
    """What a distribution shows, in a sentence: caption for all, alternative text for those who cannot see it."""
    stats, metric = summary["metrics"][name], METRICS[name]
    if stats is None:
        return f"{metric.title} was {disclosure.UNMEASURED}."
    what = "gaps" if name == "itl_ms" else "requests"
    return (
        f"{metric.title} of {figure(stats['n'])} {what}: half lie at or below {figure(stats['p50'])} ms, "
        f"99{THIN}% at or below {figure(stats['p99'])} ms, the largest is {figure(stats['max'])} ms."
    )


def _lateness_caption(summary: Mapping[str, Any]) -> str:
    stats = summary["load"]["lateness_ms"]
    if summary["run"]["simulated"]:
        return "In virtual time every request leaves when it is due."
    if stats is None:
        return "Lateness was not measured."
    return (
        f"How long after its due time each request left: 99{THIN}% at most {figure(stats['p99'])} ms, "
        f"the largest {figure(stats['max'])} ms. Of all lateness: {disclosure.lateness(summary)}. "
        f"Where there are many requests, the latest of each moment are drawn."
    )


def _drawn(summary: Mapping[str, Any], series: Mapping[str, Any]) -> Context:
    """What the charts need beside the series: marks at the percentiles, the steady window, the lateness limit."""
    marks = {}
    for name in ("ttft_ms", "itl_ms", "tpot_ms"):
        stats = summary["metrics"][name]
        marks[name] = {key: stats[key] for key in ("p50", "p99")} if stats else {}
    # In a closed loop the check's limit is a share of time, which is no height in this chart.
    timed = (
        check
        for check in summary["verdict"]["checks"]
        if check["code"] == "lateness" and check["unit"] == "ms"
    )
    limits = [check["limit"] for check in timed]
    window = summary["window"]
    return {
        "pace": pace_metric(summary),
        "series": series,
        "marks": marks,
        "steady": [window["steady_start_s"], window["steady_end_s"]],
        "lateness_limit_ms": limits[0] if limits else None,
    }


def _context(summary: Mapping[str, Any]) -> Context:
    verdict, pace = summary["verdict"], pace_metric(summary)
    over = wording.marks(summary)
    rest = tuple(name for name in METRICS if name not in TABLE and summary["metrics"][name] is not None)
    named = {name: metric.title for name, metric in (METRICS | RATES).items()}
    checks = _check_rows(summary)
    objectives = [
        {"expr": clean(slo["expr"]), "met": {True: "met", False: "not met", None: "undecided"}[slo["met"]]}
        | {"value": figure(slo["value"]), "interval": interval(slo["ci"]), "limit": figure(slo["limit"])}
        for slo in summary["slos"]
    ]
    return {
        "run": {"name": clean(summary["run"]["name"]), "id": clean(summary["run"]["id"])},
        "started": moment(summary["run"]["started"]),
        "version": clean(summary["version"]),
        "status": verdict["status"],
        "meaning": wording.meaning(summary),
        "over": [{"word": word, "means": means} for word, means in over],
        "page_title": "".join(f"{word}, " for word, _ in over)
        + f"{verdict['status']}: {clean(summary['run']['name'])}",
        "reasons": [check for check in checks if check["class"] in ("fail", "unsure")],
        "tally": {name: sum(check["class"] == name for check in checks) for name in wording.STATUS},
        "measured": disclosure.measured(summary),
        "headline": headline(summary),
        "statistics": list(STATISTICS.values()),
        "results": _result_rows(summary, TABLE),
        "more": _result_rows(summary, rest),
        "rates": _rate_rows(summary),
        "intervals": _intervals(summary),
        "objectives": objectives,
        "by_input": _by_input(summary),
        "by_class": _by_class(summary),
        "by_turn": _by_turn(summary["conversations"]),
        "checks": checks,
        "pace_title": METRICS[pace].title,
        "captions": {
            "ttft": _caption(summary, "ttft_ms"),
            "pace": _caption(summary, pace),
            "late": _lateness_caption(summary),
        },
        "facts": {
            "System under test": disclosure.system(summary),
            "Method": disclosure.method(summary),
            "Client": disclosure.client(summary),
            "Run": disclosure.run(summary),
        },
        "deviations": disclosure.deviations(summary),
        "definitions": [
            (named.get(name, name), name, means) for name, means in summary["definitions"].items()
        ],
        "plan": json.dumps(summary["plan"], indent=2, ensure_ascii=False),
        "mark": MARK,
    }


def render_html(summary: Mapping[str, Any], series: Mapping[str, Any]) -> str:
    """The whole of report.html.

    Raises:
        ValueError: `series` holds NaN or an infinity.
    """
    about = of_run(summary, series.get("lengths"))
    context = _context(summary) | {"workload": about, "server": server.section(summary, series.get("server"))}
    plan = None if summary["run"]["simulated"] else summary["plan"]  # for `rerun`; an engine is not in it
    return render(
        "report.html.j2",
        _drawn(summary, series) | {"workload": about["data"], "plan": plan},
        context,
        "report.js",
    )
