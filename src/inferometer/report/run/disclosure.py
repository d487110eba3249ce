"""What was measured, on what, and how: the rows a reader needs to judge or repeat a run, for Markdown and HTML alike.

The draft makes these mandatory: tokenizer and counting rule (4.4), seed and lengths (4.3.3), chunking and ITL option (4.6),
clocks (4.7), guardrails (4.8), warm-up (4.5), all five TTFT percentiles with their sample count (5.1.4), prefix caching
(5.1.2.3), deviations (appendix C). What nobody declared or measured is said in those words: a blank would read as "none".
All text that came from outside passes `figures.clean`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.plan.declarations import BOS_EOS, NO_ADJUSTMENT, TOOLS, UNCOUNTED
from inferometer.report import wording
from inferometer.report.figures import ABSENT, clean, figure, moment, seconds, share, size
from inferometer.report.run import steadiness, workload

Row = tuple[str, str]
Summary = Mapping[str, Any]

UNDECLARED = "not declared"
UNMEASURED = "not measured"
UNKNOWN = "not known"

BOUNDARIES = {"engine": "Model Engine", "gateway": "Gateway", "compound": "Compound"}

ITL_METHODS = {
    "direct": "direct: over 90 % of the events carry one token, each gap between events is a gap between tokens (draft B.2.1)",
    "chunk": "chunk: gaps between events that may carry several tokens (draft 4.6.3, option A)",
}

SPECIAL_TOKENS = {False: f"{BOS_EOS}; {TOOLS}", True: f"{UNCOUNTED}; {TOOLS}"}
"""Draft 4.4.3; True: no tokenizer was declared."""

CLOCKS = {
    "kernel": "kernel receive time of the bytes that complete each event (SO_TIMESTAMPNS), put on the monotonic clock",
    "user": "monotonic clock of the client, read right after each poll and before any decoding",
    "virtual": "simulated: the model's own instants in virtual time; no clock was read",
}


def text(value: object, absent: str = UNKNOWN) -> str:
    """Any value on one clean line; `absent` for None and for nothing."""
    if value is None or value in ("", [], {}, ()):
        return absent
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return figure(value, trim=True)
    if isinstance(value, list | tuple):
        return ", ".join(text(part, absent) for part in value)
    return clean(
        json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, Mapping) else value
    )


def _planned(summary: Summary, part: str, name: str) -> object:
    inside = summary["plan"].get(part)
    return inside.get(name) if isinstance(inside, Mapping) else None


def model(summary: Summary) -> str:
    """Model name and, where declared, version."""
    sut = summary["sut"]
    return " ".join(
        [text(sut["model"]), *([f"({text(sut['model_version'])})"] if sut["model_version"] else [])]
    )


def hardware(summary: Summary) -> str:
    """`GPU type x count`, or that nobody declared it."""
    sut = summary["sut"]
    if sut["accelerator"] is None:
        return UNDECLARED
    if sut["accelerator_count"] == 0:
        return f"{text(sut['accelerator'])}, no accelerator"
    return f"{text(sut['accelerator'])} x {text(sut['accelerator_count'], 'count ' + UNDECLARED)}"


def server(summary: Summary) -> str:
    """Where the requests went."""
    ours = "a simulated engine" if summary["run"]["simulated"] else "the embedded reference server"
    return text(summary["sut"]["url"], ours)


def load(summary: Summary) -> str:
    """The load in a few words: `open loop, 20 requests/s, poisson arrivals`."""
    offered = summary["load"]["offered"]
    if summary["load"]["model"] == "closed":
        return f"closed loop, {text(offered.get('concurrency'), 'an unknown number')} in flight"
    arrival = offered.get("arrival") or _planned(summary, "load", "arrival")
    if arrival == "trace":
        mean = offered.get("rate")
        often = "all at once" if mean is None else f"{text(mean)} requests/s on average"
        return f"open loop, arrivals of a trace, {often}"
    burstiness = offered.get("burstiness") or _planned(summary, "load", "burstiness")
    process = "Poisson" if arrival == "poisson" else text(arrival)
    words = f"open loop, {text(offered.get('rate'))} {text(offered.get('rate_of'), 'requests')}/s, {process} arrivals"
    if summary["load"]["model"] == "users":
        each = f"{text(offered.get('user_rate'))} requests/s each"
        words = f"{text(offered.get('users'))} users, {each}, who wait for their answers, {process} arrivals"
    return f"{words} (burstiness {text(burstiness)})" if arrival == "gamma" else words


def measured(summary: Summary) -> str:
    """One sentence: how many requests, to what, in which load, of which lengths, for how long."""
    sut, requests = summary["sut"], summary["requests"]
    lengths = [_planned(summary, "workload", name) for name in ("input_tokens", "output_tokens")]
    asked = (
        f" Prompts of {text(lengths[0])} tokens, answers of {text(lengths[1])} tokens."
        if all(lengths)
        else ""
    )
    if summary["load"]["trace"] is not None:
        asked = f" Lengths are those of the trace {clean(summary['load']['trace']['file'])}."
    elif summary["workload"]["prompts"] is not None:
        asked = f" Prompts from the file {clean(summary['workload']['prompts']['file'])}."
    elif summary["by_class"]:
        asked = f" Requests of {figure(len(summary['by_class']))} classes."
    return (
        f"{figure(requests['sent'])} requests to {text(sut['model'], 'a model of unknown name')} at {server(summary)} "
        f"({text(sut['api'])}, {'streamed' if sut['stream'] else 'not streamed'}, {text(sut['protocol'])}), "
        f"{load(summary)}{_lasting(summary)}.{asked}"
    )


def _lasting(summary: Summary) -> str:
    duration = summary["window"]["duration_s"]
    return "" if duration is None else f", in {seconds(duration)}"


def requests(summary: Summary) -> str:
    """How the requests ended."""
    counts = summary["requests"]
    ended = (f"{figure(counts[name])} {name}" for name in ("sent", "completed", "failed", "cancelled"))
    classes = ", ".join(f"{clean(name)} {figure(count)}" for name, count in counts["by_error"].items())
    return ", ".join(ended) + (f" (failures: {classes})" if classes else "")


def guardrails(summary: Summary) -> str:
    """Draft 4.8.1, and whether any request was refused."""
    declared = summary["sut"]["guardrails"]
    state = {None: UNDECLARED, True: "on", False: "off"}
    refused = summary["requests"]["by_error"].get("refused", 0)
    return (
        f"input filter {state[declared['input_filter']]}, output filter {state[declared['output_filter']]}, "
        f"systems {text(declared['names'], UNDECLARED)}, refused requests {figure(refused)}"
    )


def deviations(summary: Summary) -> list[str]:
    """Where the run parts from the methodology: in everything if it was simulated; every check that did not pass, and every
    declaration that is missing."""
    found = [f"{word}: {means}" for word, means in wording.marks(summary)]
    found += [
        f"{wording.title(check)}: {wording.sentence(check)}"
        for check in wording.ordered(summary["verdict"]["checks"])
        if check["status"] in ("fail", "unsure", "note")
    ]
    found += [f"Workload: {clean(part)}." for part in summary["workload"]["deviations"]]
    sut = summary["sut"]
    names = {
        "boundary": "SUT boundary",
        "software": "software",
        "accelerator": "hardware",
        "prefix_caching": "prefix caching",
    }
    missing = [words for name, words in names.items() if sut[name] is None]
    if sut["guardrails"]["input_filter"] is None or sut["guardrails"]["output_filter"] is None:
        missing.append("guardrails")
    if missing:
        found.append(f"Not declared: {', '.join(missing)}.")
    return [*found, *_unspecified(summary)]


def _unspecified(summary: Summary) -> list[str]:
    """What of draft 4.3.1 is missing (D-4.3-custom-full)."""
    about = summary["workload"]
    lacking = [
        f"{clean(item['name']).lower()} ({clean(item['id'])})"
        for item in about["items"]
        if item["id"] in about["missing"]
    ]
    return [f"The workload is not fully specified (draft 4.3.1): {', '.join(lacking)}."] if lacking else []


def system(summary: Summary) -> list[Row]:
    """The system under test, as declared (draft 4.1, 5.1.2.3), and what the server said of itself."""
    sut = summary["sut"]
    return [
        *(
            [("Kind", "simulated: a model of an engine in virtual time, no server")]
            if summary["run"]["simulated"]
            else []
        ),
        ("Model", model(summary)),
        ("Server", server(summary)),
        ("Boundary", BOUNDARIES.get(sut["boundary"], UNDECLARED)),
        ("Software", text(sut["software"], UNDECLARED)),
        ("Quantization", text(sut["quantization"], UNDECLARED)),
        ("Hardware", hardware(summary)),
        ("Accelerator memory", text(sut["accelerator_memory"], UNDECLARED)),
        ("Prefix caching", text(sut["prefix_caching"], UNDECLARED)),
        ("Prefix cache before the run", text(sut["cache_state"])),
        ("Guardrails", guardrails(summary)),
        ("Notes", text(sut["notes"], "none")),
        ("Seen: server header", text(sut["observed"]["server"], "none")),
        ("Seen: models served", text(sut["observed"]["models"], "none")),
    ]


def method(summary: Summary) -> list[Row]:
    """The mandatory disclosures."""
    return [*_asked(summary), *_counted(summary), *_timed(summary)]


def _asked(summary: Summary) -> list[Row]:
    trace = summary["load"]["trace"]
    name, seed = _planned(summary, "workload", "name"), _planned(summary, "workload", "seed")
    based_on = _planned(summary, "workload", "based_on")
    named = f"{text(name)}, based on {text(based_on)}" if based_on else text(name)
    return [
        ("Load", load(summary)),
        ("Requests", requests(summary)),
        ("Workload", f"{named}{_made_of(summary)}" if trace is None else "lengths of the trace"),
        *((clean(item["name"]), text(item["value"], UNDECLARED)) for item in summary["workload"]["items"]),
        *workload.rows(summary["workload"]),
        *([] if trace is None else _trace(trace)),
        ("Seed", UNKNOWN if seed is None else clean(seed)),
    ]


ORDERS = {
    "file": "in the file's order",
    "shuffled": "in a drawn order",
    "sampled": "drawn with replacement",
}


def _made_of(summary: Summary) -> str:
    """Classes, or the file the prompts are from and how often it was gone through."""
    file, sent = summary["workload"]["prompts"], summary["requests"]["sent"]
    classes = ", ".join(clean(one["name"]) for one in summary["by_class"])
    if file is None:
        return f", of the classes {classes}" if classes else ""
    order = ORDERS.get(str(_planned(summary, "workload", "order")), UNKNOWN)
    said = f": {figure(file['rows'])} prompts from {clean(file['file'])} (SHA-256 {clean(file['sha256'])}), {order}"
    if sent > file["rows"]:
        said += f"; {figure(sent)} requests, so prompts were used again, {figure(sent / file['rows'], 3)} times on average"
    return said + (f"; classes {classes}" if classes else "")


def _trace(trace: Mapping[str, Any]) -> list[Row]:
    end = "its last row" if trace["end_s"] is None else f"{text(trace['end_s'])} s"
    failed = (
        f"; {figure(trace['failed'])} rows that had failed when recorded are left out"
        if trace["failed"]
        else ""
    )
    prefixes = "as its hash ids or texts say" if trace["shares_prefixes"] else "none"
    return [
        (
            "Trace",
            f"{clean(trace['file'])}, format {clean(trace['format'])}, SHA-256 {clean(trace['sha256'])}",
        ),
        (
            "Trace: replayed",
            f"{figure(trace['rows'])} arrivals from {text(trace['start_s'])} s to {end} of trace time, "
            f"{text(trace['speed'])} times as fast as recorded{failed}",
        ),
        ("Trace: shared prefixes", prefixes),
        (
            "Trace: made in time",
            f"{figure(trace['unprepared'])} requests were not yet made when due"
            + (f", by up to {figure(trace['unprepared_ms'])} ms" if trace["unprepared"] else ""),
        ),
    ]


def _counted(summary: Summary) -> list[Row]:
    tokens = summary["tokens"]
    tokenizer, prompt, output = tokens["tokenizer"], tokens["prompt"], tokens["output"]
    return [
        (
            "Tokenizer",
            f"{text(tokenizer['name'])}, version {text(tokenizer['version'])}, vocabulary {text(tokenizer['vocab_size'])}, "
            f"source {text(tokenizer['source'])}, method {text(tokenizer['method'])}",
        ),
        (
            "Token counts",
            f"from {text(tokens['count_source'])}; {SPECIAL_TOKENS[tokenizer['kind'] == 'none']}{_system(summary)}"
            + "".join(
                f"; declared: {said}"
                for key in ("bos_eos", "system_prompt", "tools")
                if (said := _declared(summary, key))
            ),
        ),
        (
            "Prompt tokens, mean",
            f"asked {figure(prompt['asked_mean'])}, sent {figure(prompt['sent_mean'])}"
            f"{_yardstick(tokenizer)}, server counted {figure(prompt['server_mean'])}, missed {figure(prompt['misses'])}; "
            f"{_template(prompt)}",
        ),
        (
            "Output tokens, mean",
            f"asked {figure(output['asked_mean'])}, server counted {figure(output['server_mean'])}, "
            f"client counted {_by_client(tokenizer, output)}, missed {figure(output['misses'])}",
        ),
        (
            "Chunking",
            f"{share(tokens['single_token_share'])} of {figure(tokens['events'])} events carry one token; "
            f"mean {figure(tokens['tokens_per_event'])} tokens an event",
        ),
        ("ITL option", ITL_METHODS.get(tokens["itl_method"], text(tokens["itl_method"]))),
        ("Gaps between tokens", steadiness.gaps(summary["itl_shape"])),
    ]


def _system(summary: Summary) -> str:
    """Whether there is a system prompt, as far as it is known."""
    said = next(
        (one["value"] for one in summary["workload"]["items"] if one["id"] == "D-4.3.1-system-prompt"), None
    )
    if said is None:
        return ""
    return "; there is no separate system prompt" if said == "none" else f"; system prompt {clean(said)}"


def _yardstick(tokenizer: Mapping[str, Any]) -> str:
    return " by the yardstick" if tokenizer["kind"] == "none" else ""


def _template(prompt: Mapping[str, Any]) -> str:
    """What the lengths asked for are lengths of."""
    if prompt["template"] is None:
        return "the lengths asked for are those of the text alone, without the chat template"
    return (
        f"the lengths asked for include the chat template, {figure(prompt['template'])} tokens by the server's count of one "
        "short request before the start"
    )


def _by_client(tokenizer: Mapping[str, Any], output: Mapping[str, Any]) -> str:
    """The client's own count, or why there is none."""
    if output["local_mean"] is not None:
        return figure(output["local_mean"])
    return {"none": "nothing (not applicable: no tokenizer)", "server": "nothing (the server was gone)"}.get(
        tokenizer["kind"], figure(None)
    )


def _timed(summary: Summary) -> list[Row]:
    sut, instrument, window = summary["sut"], summary["instrument"], summary["window"]
    return [
        (
            "Protocol",
            f"{text(sut['protocol'])}, {text(sut['api'])}, {'streamed' if sut['stream'] else 'not streamed'}",
        ),
        ("Time stamps", CLOCKS.get(instrument["timestamp_source"], UNKNOWN)),
        ("Clocks", _clocks(summary)),
        *_warm_up(summary["warm_up"]),
        (
            "Prefix caching",
            f"{text(sut['prefix_caching'], UNDECLARED)}; cache before the run: {text(sut['cache_state'])} (declared); "
            f"cached prompt tokens {_cached(summary)}; best possible {workload.best_hits(summary['workload']['prefix_hits'])}",
        ),
        ("Guardrails", guardrails(summary)),
        (
            "Window",
            f"{seconds(window['duration_s'])} from {moment(window['start'])}. {text(window['definition'])}",
        ),
        ("Steady window", _steady(window)),
        ("Steady state", steadiness.steady(summary["steady"])),
    ]


def _warm_up(warm: Mapping[str, Any]) -> list[Row]:
    """The procedure that was followed (draft 4.5)."""
    if warm["skipped"]:
        return [("Warm-up", "COLD START: no warm-up, by intent")]
    asked, probes = warm["asked"], warm["probes"]
    said = (
        f"{figure(warm['requests'])} requests sent, {figure(warm['completed'])} completed, "
        f"{figure(warm['output_tokens'])} output tokens, kept apart; asked for: {figure(asked['requests'])} requests"
    )
    said += f" and {figure(asked['output_tokens'])} output tokens" if asked["output_tokens"] else ""
    said += "" if warm["reached"] else ", not reached"
    if warm["drained"] is not None:
        said += "; all had ended before the measurement" if warm["drained"] else "; not all of them ended"
    if warm["waiting"] is not None or warm["running"] is not None:
        said += (
            f"; the server then said: waiting {figure(warm['waiting'])}, running {figure(warm['running'])}"
        )
    if warm["requests"] and warm["prefixes"] not in (None, "none shared"):
        said += f"; shared prefixes: {warm['prefixes']}"
    return [("Warm-up", said), ("Warm-up verified", _probes(probes))]


def _probes(probes: Mapping[str, Any]) -> str:
    if not probes["most"]:
        return "no"
    found = {True: "stable", False: "not stable", None: "not decided"}[probes["stable"]]
    after = ", ".join(figure(one) for one in probes["after_ms"]) or "none"
    return (
        f"{found}: end-to-end latency of single requests of {figure(probes['input_tokens'])} + "
        f"{figure(probes['output_tokens'])} tokens {figure(probes['before_ms'])} ms before, {after} ms behind (at most "
        f"{figure(probes['most'])}); (max - min) / median of the last three {share(probes['variation'])}, "
        f"limit {share(probes['limit'])}"
    )


def _clocks(summary: Summary) -> str:
    if summary["run"]["simulated"]:
        return "none: all latencies are differences of virtual time"
    adjusted = _declared(summary, "latency_adjustment") or NO_ADJUSTMENT
    return (
        "all latencies are differences on the client's one monotonic clock, so no clocks need to agree; "
        f"{adjusted}; wall clock moved {figure(summary['instrument']['clock_step_ms'])} ms during the run"
    )


def _declared(summary: Summary, name: str) -> str | None:
    """What the tester declared of this; None: nothing."""
    said = _planned(summary, "declared", name)
    return None if said is None else text(said)


def _steady(window: Mapping[str, Any]) -> str:
    start, end = window["steady_start_s"], window["steady_end_s"]
    return "none" if start is None or end is None else f"{seconds(start)} to {seconds(end)} of the window"


def _cached(summary: Summary) -> str:
    cached = summary["throughput"]["cached_input_share"]
    return "not reported by the server" if cached is None else share(cached)


def client(summary: Summary) -> list[Row]:
    """The machine that measured, and how well it kept up; or simulated, where there is nothing to keep up with."""
    kept_up = [("Instrument", "simulated")] if summary["run"]["simulated"] else _kept_up(summary)
    return [("Inferometer", text(summary["version"])), *machine(summary["environment"]), *kept_up]


def machine(env: Mapping[str, Any]) -> list[Row]:
    """The machine that measured."""
    return [
        ("Python", text(env["python"])),
        ("System", f"{text(env['os'])}, kernel {text(env['kernel'])}, {text(env['machine'])}"),
        ("Processor", f"{text(env['cpu'])}, {text(env['cores'])} cores"),
        ("Memory", size(env["memory_bytes"])),
    ]


def _kept_up(summary: Summary) -> list[Row]:
    instrument = summary["instrument"]
    lag, late = instrument["receive_lag_ms"], summary["load"]["lateness_ms"]
    return [
        ("Workers", text(instrument["workers"])),
        ("CPU of each worker", _shares(instrument["cpu_fraction"])),
        ("Waiting for a core", _shares(instrument["run_delay_fraction"])),
        ("Workers that died", _dead(instrument["dead_workers"])),
        ("Receive lag P99", _ms(lag)),
        ("Lateness P99", _ms(late)),
        ("Lateness by cause", lateness(summary)),
        (
            "Longest stall",
            f"{figure(instrument['stall_max_ms'])} ms" if instrument["stall_max_ms"] is not None else UNKNOWN,
        ),
        ("Calibration", calibration(instrument["calibration"])),
    ]


LATENESS_CAUSES = {
    "scheduling": "taken up late by the client",
    "socket": "getting onto a connection",
    "back_pressure": "back-pressure of the server or the network",
}


def lateness(summary: Summary) -> str:
    """What lateness was made of: each cause with its share of all lateness and its P99."""
    shares, parts = summary["load"]["lateness_shares"], summary["load"]["lateness_causes_ms"]
    if shares is None or parts is None:
        return ABSENT
    return "; ".join(
        f"{words} {share(shares[name])}, P99 {_ms(parts[name])}" for name, words in LATENESS_CAUSES.items()
    )


def _shares(values: Sequence[float | None]) -> str:
    return ", ".join(share(value) for value in values) or ABSENT


def _dead(workers: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(map(_death, workers)) or "none"


def _death(one: Mapping[str, Any]) -> str:
    during = "measurement" if one["phase"] == 1 else "warm-up"
    return (
        f"worker {one['worker']} in the {during} (exit code {text(one['exit_code'])}): {share(one['load_share'])} of the load, "
        f"{figure(one['kept'])} requests on record, {figure(one['lost'])} lost"
    )


ENDS = {
    "instrument": "the next load was too much",
    "server": "not reached, the reference server ended the climb",
    "ladder": "not reached, no higher load was tried",
}


def calibration(found: Mapping[str, Any] | None) -> str:
    """What certifies the instrument on its machine, and how this run's load compares."""
    if found is None:
        return "no certificate for this machine"
    names = {"token_events_s": "token events/s", "requests_s": "requests/s"}
    parts = [
        f"{names[name]} {figure(found['load'][name])}, certified {figure(limit['per_worker'])} ({ENDS[limit['ended_by']]})"
        for name, limit in found["limits"].items()
    ]
    said = f"certificate {clean(found['id'])} of {moment(found['date'])}; for each worker: {'; '.join(parts)}"
    rung = found["rung"]
    if rung is None or rung["ttft_ms"] is None:
        return said
    errors = (
        f"error of TTFT mean {figure(rung['ttft_ms']['mean'])} ms, P99 {figure(rung['ttft_ms']['p99'])} ms"
    )
    if rung["itl_ms"] is not None:
        errors += f", of ITL P99 {figure(rung['itl_ms']['p99'])} ms"
    return f"{said}; at the nearest load not below: {errors}"


def _ms(stats: Mapping[str, Any] | None) -> str:
    return ABSENT if stats is None else f"{figure(stats['p99'])} ms"


def run(summary: Summary) -> list[Row]:
    """Which run this is."""
    about = summary["run"]
    return [
        ("Run", text(about["id"])),
        ("Started", moment(about["started"])),
        ("Ended", moment(about["ended"])),
        ("Plan", text(about["plan_hash"])),
        ("Time", "simulated" if about["simulated"] else "real"),
        ("Interrupted", text(about["interrupted"])),
    ]
