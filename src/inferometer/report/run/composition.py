"""From what was measured and judged to the summary's parts: names change here, numbers never."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from inferometer import __version__
from inferometer.judge.arrival import ArrivalCheck
from inferometer.judge.calibration import beside
from inferometer.judge.checks import failures
from inferometer.judge.slo import SloOutcome
from inferometer.judge.verdict import Verdict
from inferometer.measure.classes import OfClass
from inferometer.measure.lengths import Lengths
from inferometer.measure.measurement import Measurement
from inferometer.measure.stats import wilson
from inferometer.plan.saved import resolved
from inferometer.plan.schema import Plan
from inferometer.plan.workload_disclosure import NAMES, disclosed, missing, requirement
from inferometer.report.run.summary import compose

WINDOWS = {
    "open-last-90": "Rates are taken over the last 90 % of the sending time. Requests sent inside it may end after it; "
    "tokens count where they arrive.",
    "closed-full-last-90": "Rates are taken over the last 90 % of the time in which all slots were full; the tail, in which "
    "they drain, is left out. Tokens count where they arrive.",
    "none": "There was no steady span, so there are no rates over it.",
}
AS_MEASURED = (
    "metrics",
    "refusals",
    "distributions",
    "itl_shape",
    "first_wave",
    "conversations",
    "steady",
    "in_flight_tokens",
)
"""Members of the summary that are parts of the measurement as they are; None stays null."""

DRAINS = {
    False: " Requests in flight when the last was sent were waited for.",
    True: " Requests in flight at the time limit were waited for up to the drain time, then cancelled.",
}


def summarise(
    plan: Plan,
    run: Mapping[str, Any],
    measurement: Measurement,
    verdict: Verdict,
    arrival: ArrivalCheck | None,
    slos: Sequence[SloOutcome],
    warm_up: Mapping[str, Any],
) -> dict[str, Any]:
    """The summary of one run. `run` holds what run.json says of it, `warm_up` what run/warmup.py says of its record."""
    return compose(
        version=__version__,
        status=verdict.status,
        checks=_plain([asdict(check) for check in verdict.checks]),
        run={
            "id": run["id"],
            "name": plan.name,
            "started": moment(run["started_wall_ns"]),
            "ended": moment(run["ended_wall_ns"]) if run.get("ended_wall_ns") else None,
            "interrupted": bool(run["interrupted"]),
            "simulated": bool(run.get("simulated")),
            "plan_hash": run["plan_hash"],
        },
        sut=_sut(plan, run),
        environment=run["environment"],
        plan=resolved(plan),
        requests=_requests(measurement, warm_up, interrupted=bool(run["interrupted"])),
        success_rate=_plain(_success(measurement, interrupted=bool(run["interrupted"]))),
        warm_up=dict(warm_up),
        window=_window(plan, measurement),
        ttft_by_input=[
            {"from": bucket.from_tokens, "to": bucket.to_tokens, "n": bucket.n}
            | {name: getattr(bucket, name) for name in ("p50", "p90", "p95", "p99", "p99_9")}
            for bucket in measurement.ttft_by_input
        ],
        workload=_workload(plan, run),
        by_class=_plain([_class(one) for one in measurement.by_class]),
        throughput={
            **asdict(measurement.throughput.steady),
            "whole_run": asdict(measurement.throughput.whole_run),
            "cached_input_share": measurement.throughput.cached_input_share,
            "cached_prefix_share": measurement.throughput.cached_prefix_share,
            "ci95": _plain(
                {
                    "output_tok_s": measurement.throughput.output_tok_s_ci,
                    "input_tok_s": measurement.throughput.input_tok_s_ci,
                    "request_s": measurement.throughput.request_s_ci,
                }
            ),
        },
        load=_plain(_load(plan, run, measurement, arrival)),
        tokens=_tokens(plan, run, measurement),
        slos=[_slo(slo) for slo in slos],
        instrument=_plain(
            {
                **asdict(measurement.instrument),
                "calibration": beside(run.get("calibration"), plan, measurement),
            }
        ),
        **{name: _as_measured(getattr(measurement, name)) for name in AS_MEASURED},
        server=_server(measurement),
        preemption=_preemption(run, measurement),
    )


def _server(measurement: Measurement) -> dict[str, Any] | None:
    found = _as_measured(measurement.server)
    return found and {name: value for name, value in found.items() if name != "preempted"}


def _preemption(run: Mapping[str, Any], measurement: Measurement) -> dict[str, Any] | None:
    """Of a simulated engine by its own counts, else by the server's metrics; None: nobody counts preemptions."""
    if run.get("preempted"):
        return {"source": "simulated engine", **run["preempted"]}
    seen = measurement.server
    if seen is None or seen.preemptions is None:
        return None
    return {"source": "server metrics", "events": seen.preemptions, **asdict(seen.preempted)}


def _as_measured(part: Any) -> dict[str, Any] | None:
    return None if part is None else _plain(asdict(part))


def _slo(slo: SloOutcome) -> dict[str, Any]:
    return {
        "expr": slo.expr,
        "value": slo.value,
        "limit": slo.limit,
        "met": slo.met,
        "ci": slo.ci and list(slo.ci),
    }


def _plain(value: Any) -> Any:
    """The same with lists for tuples, as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def moment(wall_ns: int) -> str:
    """ISO 8601 in UTC with milliseconds (draft 4.7.4)."""
    at = datetime.fromtimestamp(wall_ns / 1e9, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def _sut(plan: Plan, run: Mapping[str, Any]) -> dict[str, Any]:
    target = plan.target
    protocol = f"HTTP/1.1 with {target.interface.framing}" if target.stream else "HTTP/1.1"
    return {
        **plan.sut.model_dump(mode="json"),
        "model": run["model"],
        "url": target.url,
        "api": target.api,
        "stream": target.stream,
        "protocol": "none: simulated" if run.get("simulated") else protocol,
        "observed": {"server": run["server"], "models": run["models"]},
    }


def _workload(plan: Plan, run: Mapping[str, Any]) -> dict[str, Any]:
    """The seven items of draft 4.3.1, the ids of those that are missing, and what is known of whose words were sent and of what
    was drawn: of a file of prompts, a dataset or a corpus, and the account of the requests but for its histograms."""
    drawn = run.get("requests")
    items = disclosed(plan, run.get("prompts"), run.get("trace"))
    return {
        "items": [
            {"id": requirement(name), "name": words, "value": getattr(items, name)}
            for name, words in NAMES.items()
        ],
        "missing": missing(items),
        "fingerprint": run.get("fingerprint"),
        "made": run.get("made"),
        "prompts": run.get("prompts"),
        "deviations": list(plan.workload.deviations),
        "texts": run.get("texts"),
        "drawn": drawn and {name: value for name, value in drawn.items() if name != "histograms"},
        "prefix_hits": (drawn or run.get("trace") or {}).get("prefix_hits"),
    }


def _class(one: OfClass) -> dict[str, Any]:
    plain = asdict(one)
    counts = ("sent", "completed", "failed", "cancelled")
    return {
        "name": one.name,
        "requests": {name: plain[name] for name in counts},
        **{name: plain[name] for name in ("ttft_ms", "tpot_ms", "e2e_ms", "e2e_per_token_ms")},
        **{name: plain[name] for name in ("input_tokens", "output_tokens")},
        "prompt": {
            "asked_mean": one.prompt.asked_mean,
            "sent_mean": one.prompt.local_mean,
            "server_mean": one.prompt.server_mean,
        },
        "output": plain["output"],
        "waits": plain["waits"],
        "distributions": {"ttft_ms": plain["ttft_quantiles"]},
    }


def _success(measurement: Measurement, *, interrupted: bool) -> dict[str, Any]:
    """Succeeded of ended requests. Those cancelled by a person have not ended; those cancelled at the drain limit failed."""
    failed, ended = failures(measurement.requests, interrupted=interrupted)
    good = ended - failed
    return {
        "value": good / ended if ended else None,
        "ci95": wilson(good, ended),
        "succeeded": good,
        "ended": ended,
    }


def _requests(measurement: Measurement, warm_up: Mapping[str, Any], *, interrupted: bool) -> dict[str, Any]:
    seen = measurement.requests
    return {
        "sent": seen.sent,
        "completed": seen.completed,
        "failed": seen.failed,
        "cancelled": seen.cancelled,
        "by_error": seen.by_error,
        "failed_share_ci95": _plain(wilson(*failures(seen, interrupted=interrupted))),
        "warmup": {"sent": warm_up["requests"], "completed": warm_up["completed"]},
    }


def _window(plan: Plan, measurement: Measurement) -> dict[str, Any]:
    window = measurement.window
    return {
        "start": moment(window.start_wall_ns) if window.start_wall_ns is not None else None,
        "duration_s": window.duration_s,
        "definition": WINDOWS[window.definition] + DRAINS[plan.load.duration_s is not None],
        "steady_start_s": window.steady_start_s,
        "steady_end_s": window.steady_end_s,
    }


def _load(
    plan: Plan, run: Mapping[str, Any], measurement: Measurement, arrival: ArrivalCheck | None
) -> dict[str, Any]:
    seen, load = measurement.load, plan.load
    closed, users = load.model == "closed", load.model == "users"
    return {
        "model": load.model,
        "offered": {
            "rate": seen.offered_rate,
            "rate_of": None
            if closed
            else "requests"
            if users or plan.workload.turns is None
            else "conversations",
            "concurrency": load.concurrency if closed else None,
            "users": load.users if users else None,
            "user_rate": load.user_rate if users else None,
            "arrival": None if closed else load.arrival,
            "burstiness": load.burstiness if not closed and load.arrival == "gamma" else None,
        },
        "trace": _trace(plan, run.get("trace")),
        "held": measurement.held and asdict(measurement.held),
        "achieved": {
            "request_s": seen.achieved_request_s,
            "concurrency_mean": seen.concurrency_mean,
            "concurrency_max": seen.concurrency_max,
        },
        "lateness_ms": seen.lateness_ms and asdict(seen.lateness_ms),
        "lateness_causes_ms": seen.lateness_causes_ms and asdict(seen.lateness_causes_ms),
        "lateness_shares": seen.lateness_shares,
        "arrival_check": arrival
        and {
            "rate": arrival.rate,
            "rate_expected": arrival.rate_expected,
            "dispersion": arrival.dispersion,
            "dispersion_expected": list(arrival.dispersion_expected),
            "lag1": arrival.lag1,
            "lag1_limit": arrival.lag1_limit and max(abs(limit) for limit in arrival.lag1_limit),
        },
    }


def _trace(plan: Plan, found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The trace that was replayed: what run.json says of it, and the plan's window and speed."""
    if plan.trace is None or found is None:
        return None
    window = {name: getattr(plan.trace, name) for name in ("speed", "start_s", "end_s")}
    names = ("file", "format", "sha256", "rows", "failed", "span_s", "texts", "shares_prefixes")
    lengths = {name: found[name] for name in ("input_tokens", "output_tokens")}
    late = {name: found.get(name, 0) for name in ("unprepared", "unprepared_ms")}
    return {name: found[name] for name in names} | window | lengths | late


def _tokens(plan: Plan, run: Mapping[str, Any], measurement: Measurement) -> dict[str, Any]:
    tokens = measurement.tokens

    def lengths(of: Lengths, second: str, value: float | None) -> dict[str, Any]:
        return {
            "asked_mean": of.asked_mean,
            second: value,
            "server_mean": of.server_mean,
            "misses": of.misses,
            "counted": of.counted and asdict(of.counted),
        }

    return {
        "count_source": tokens.count_source,
        "tokenizer": {"kind": None, **run["tokenizer"], "method": plan.tokenizer.method},
        "itl_method": tokens.itl_method,
        "single_token_share": tokens.single_token_share,
        "events": tokens.events,
        "tokens": round(tokens.tokens),
        "tokens_per_event": tokens.tokens_per_event,
        "prompt": lengths(tokens.prompt, "sent_mean", tokens.prompt.local_mean)
        | {"template": run.get("template")},
        "output": lengths(tokens.output, "local_mean", tokens.output.local_mean),
    }
