"""Every metric and every rate: one entry each, the annotation of a member of `Metrics` or `Rates`.

What follows from an entry: the member of summary.json and its JSON Schema, the definition printed in every report, the row of
the result tables, the objectives that `--slo` takes, the figures that a comparison shows and which direction is better, and
the table in docs/definitions.md. The one function of a metric is the property of the same name (without `_ms`) in
measure/samples.py; that of a rate is in measure/throughput.py.

Tools disagree about where TTFT starts and stops and what ITL is, so a report that does not say it cannot be compared. Where the
IETF draft (draft-gaikwad-llm-benchmarking-methodology-00) defines a quantity, that definition is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar, get_type_hints

import msgspec

from inferometer.metrics.statistics import Stats

T = TypeVar("T")

Better = Literal["less", "more"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with a distribution: one value a request, or, if `pooled`, many.

    `short` fits a narrow terminal; `means` is one sentence; `section` is the draft's. `better`: None where neither direction
    is. `row`: it stands in the result table. `objective`: `--slo` takes it. `compared`: the statistics that a comparison
    shows. `tokens`: it depends on how tokens are counted. `waits`: it counts from the sending of a
    request, so that a wait for the server is part of it.
    """

    title: str
    short: str
    unit: Literal["ms", "tokens", "tokens/s"]
    means: str
    section: str | None = None
    better: Better | None = None
    row: bool = False
    objective: bool = False
    compared: tuple[str, ...] = ()
    tokens: bool = False
    pooled: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Rate:
    """A figure of a whole run, per second. `objective`: the unit that `--slo` may spell behind its limit; None: no objective.
    `compared`: its heading in a comparison; None: it is not compared. `optional`: not
    every run has it, and one without it does not show it. The rest: see Metric."""

    title: str
    short: str
    unit: Literal["tokens/s", "req/s"]
    means: str
    better: Better = "more"
    objective: str | None = None
    compared: str | None = None
    tokens: bool = False
    row: bool = False
    optional: bool = False


class Metrics(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Statistics of each metric; None where no sample defines it. A run has either inter-token latencies or times between
    chunks; what the server or an assumption makes of gaps stands beside these under names of its own."""

    ttft_ms: Annotated[
        Stats | None,
        Metric(
            "Time to First Token",
            "TTFT",
            "ms",
            "From the moment the kernel took the last byte of the request to the arrival of the "
            "first generated token of which a reader sees something, be it answer, reasoning or tool call"
            " (draft 5.1.3.1, B.1.1).",
            section="5.1.3.1",
            better="less",
            row=True,
            objective=True,
            compared=("mean", "p50", "p95", "p99"),
            waits=True,
        ),
    ]
    e2e_ms: Annotated[
        Stats | None,
        Metric(
            "Request Latency",
            "Latency",
            "ms",
            "From the moment the kernel took the last byte of the request to the arrival of the "
            "last generated token.",
            better="less",
            row=True,
            objective=True,
            compared=("mean", "p50", "p99"),
            waits=True,
        ),
    ]
    itl_ms: Annotated[
        Stats | None,
        Metric(
            "Inter-Token Latency",
            "ITL",
            "ms",
            "Every single gap between neighbouring tokens of one answer, all answers pooled "
            "(draft 4.6.3); an article's or tool's \"ITL\" that is a mean per request is TPOT "
            "here. Not measured where tokens arrive in chunks.",
            section="4.6.3",
            better="less",
            row=True,
            objective=True,
            compared=("p99",),
            pooled=True,
        ),
    ]
    chunk_gap_ms: Annotated[
        Stats | None,
        Metric(
            "Time Between Chunks",
            "TBC",
            "ms",
            "Where tokens arrive in chunks, in the place of ITL: every gap between neighbouring chunks of one answer, all "
            "answers pooled; a chunk is what arrived together (draft 4.6.3, option A).",
            section="4.6.3",
            better="less",
            row=True,
            objective=True,
            compared=("p99",),
            pooled=True,
        ),
    ] = None
    itl_server_ms: Annotated[
        Stats | None,
        Metric(
            "Inter-Token Latency (server)",
            "ITL server",
            "ms",
            "Every gap between the instants at which the server reports to have emitted neighbouring tokens of one answer, all "
            "answers pooled: without the network and the client (draft 4.6.3, option C). Only of answers whose every "
            "token has such a stamp.",
            section="4.6.3",
            better="less",
            row=True,
            pooled=True,
        ),
    ] = None
    itl_distributed_ms: Annotated[
        Stats | None,
        Metric(
            "Inter-Token Latency (distributed)",
            "ITL distr.",
            "ms",
            "Where tokens arrive in chunks: every token has the arrival time of its chunk, so all but one gap of a chunk are "
            "zero, which understates the variance (draft 4.6.3, option B).",
            section="4.6.3",
            pooled=True,
        ),
    ] = None
    tpot_ms: Annotated[
        Stats | None,
        Metric(
            "Time per Output Token",
            "TPOT",
            "ms",
            "One figure a request: time from its first to its last token that is seen, divided by the number "
            "of tokens from one to the other less one; undefined for answers of one token or one event, and for those "
            "of which more than a twentieth of the events arrived together with the first, or more than a twentieth of "
            "the tokens may stand before the first text.",
            better="less",
            row=True,
            objective=True,
            compared=("mean", "p50", "p99"),
            tokens=True,
        ),
    ]
    request_output_tok_s: Annotated[
        Stats | None,
        Metric(
            "Per-Request Output Token Throughput",
            "tok/s each",
            "tokens/s",
            "One figure a request: its output tokens divided by its request latency, TTFT included.",
            better="more",
            row=True,
            tokens=True,
        ),
    ]
    input_tokens: Annotated[
        Stats | None,
        Metric(
            "Input Sequence Length",
            "Input",
            "tokens",
            "Prompt tokens a request, by the count source the report names; a chat template's "
            "special tokens are the server's.",
            row=True,
            tokens=True,
        ),
    ]
    output_tokens: Annotated[
        Stats | None,
        Metric(
            "Output Sequence Length",
            "Output",
            "tokens",
            "Generated tokens a request, reasoning included, by the count source the report "
            "names; never the number of events.",
            row=True,
            tokens=True,
        ),
    ]
    ttft_any_ms: Annotated[
        Stats | None,
        Metric(
            "Time to First Text",
            "TTFT any",
            "ms",
            "As TTFT, but white space counts as a first token too.",
            better="less",
            objective=True,
            waits=True,
        ),
    ]
    ttfo_ms: Annotated[
        Stats | None,
        Metric(
            "Time to First Output",
            "TTFO",
            "ms",
            "As TTFT, but only answer content counts: reasoning and tool calls do not.",
            better="less",
            objective=True,
            waits=True,
        ),
    ]
    ttfe_ms: Annotated[
        Stats | None,
        Metric(
            "Time to First Event",
            "TTFE",
            "ms",
            "As TTFT, but the first stream event of any kind counts, an empty role event too.",
            better="less",
            waits=True,
        ),
    ]
    load_server_ms: Annotated[
        Stats | None,
        Metric(
            "Model Load (server)",
            "Load server",
            "ms",
            "The part of TTFT that a request waited for the model to be loaded or scheduled, as the engine reports it "
            "with the answer (Ollama's `load_duration`; draft 5.1.4.2).",
            section="5.1.4.2",
            better="less",
        ),
    ] = None
    prefill_server_ms: Annotated[
        Stats | None,
        Metric(
            "Prefill (server)",
            "Prefill server",
            "ms",
            "The part of TTFT in which the engine computed the prompt, as it reports it with the answer (Ollama's "
            "`prompt_eval_duration`, llama.cpp's `timings.prompt_ms`; draft 5.1.4.2).",
            section="5.1.4.2",
            better="less",
        ),
    ] = None
    ttft_outside_ms: Annotated[
        Stats | None,
        Metric(
            "TTFT outside Load and Prefill",
            "TTFT outside",
            "ms",
            "One figure a request: TTFT less load and prefill as the engine reports them with the answer: the wait in its "
            "queue, its HTTP server, the network and the client. Undefined where the engine reports more than TTFT.",
            section="5.1.4.2",
            better="less",
        ),
    ] = None
    second_token_ms: Annotated[
        Stats | None,
        Metric(
            "Time to Second Token",
            "TTST",
            "ms",
            "One figure a request: from the arrival of its first token to that of its second (of its first chunk to that "
            "of its second, where tokens arrive in chunks), the gap in which an engine goes from prefill to decode.",
            better="less",
            objective=True,
        ),
    ]
    ttft_from_intended_ms: Annotated[
        Stats | None,
        Metric(
            "TTFT from Due Time",
            "TTFT due",
            "ms",
            "As TTFT, but the clock starts when the request was due, so that a late client "
            "cannot flatter the server.",
            better="less",
            objective=True,
            waits=True,
        ),
    ]
    e2e_from_intended_ms: Annotated[
        Stats | None,
        Metric(
            "Latency from Due Time",
            "Latency due",
            "ms",
            "As request latency, but the clock starts when the request was due.",
            better="less",
            objective=True,
            waits=True,
        ),
    ]
    stream_end_ms: Annotated[
        Stats | None,
        Metric(
            "Time to Stream End",
            "Stream end",
            "ms",
            "From the request's last byte to the end of the response, trailing usage events included.",
            better="less",
            waits=True,
        ),
    ]
    connect_ms: Annotated[
        Stats | None,
        Metric(
            "Connect Time",
            "Connect",
            "ms",
            "TCP handshake of the requests that opened a connection; not part of TTFT.",
            better="less",
        ),
    ]
    tls_ms: Annotated[
        Stats | None,
        Metric(
            "TLS Time",
            "TLS",
            "ms",
            "TLS handshake of the requests that opened a connection; not part of TTFT.",
            better="less",
        ),
    ]
    jitter_ms: Annotated[
        Stats | None,
        Metric(
            "Jitter",
            "Jitter",
            "ms",
            "One figure a request: the standard deviation of its gaps, between tokens or between chunks.",
            section="5.4.3",
            better="less",
        ),
    ]
    max_pause_ms: Annotated[
        Stats | None,
        Metric(
            "Longest Pause",
            "Max pause",
            "ms",
            "One figure a request: its longest gap, between tokens or between chunks.",
            section="5.4.4.2",
            better="less",
        ),
    ]


class Rates(msgspec.Struct, Generic[T], frozen=True, forbid_unknown_fields=True):
    """Of each rate: its value per second (`Rates[float]`), or its 95 % interval (`Rates[Interval]`)."""

    output_tok_s: Annotated[
        T | None,
        Rate(
            "Output Token Throughput",
            "tok/s all",
            "tokens/s",
            "Output tokens that arrived in the steady window, divided by the window's length.",
            better="more",
            objective="tok/s",
            compared="Output tok/s",
            tokens=True,
            row=True,
        ),
    ]
    input_tok_s: Annotated[
        T | None,
        Rate(
            "Input Token Throughput",
            "in tok/s all",
            "tokens/s",
            "Prompt tokens of the requests whose first token arrived in the steady window, "
            "divided by its length, cached ones too.",
            better="more",
            tokens=True,
        ),
    ]
    request_s: Annotated[
        T | None,
        Rate(
            "Request Throughput",
            "req/s all",
            "req/s",
            "Requests completed in the steady window, divided by the window's length.",
            better="more",
            objective="/s",
            compared="Requests/s",
            row=True,
        ),
    ]
    goodput_request_s: Annotated[
        T | None,
        Rate(
            "Goodput",
            "good req/s",
            "req/s",
            "Requests that completed in the steady window and met every latency objective each by itself, divided by the "
            "window's length; of several limits on one metric the loosest holds.",
            objective="/s",
            row=True,
            optional=True,
        ),
    ]


def _entries(kind: type, entry: type[T]) -> dict[str, T]:
    """The entries of a struct's members, by the member's name."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: one for name, hint in hints.items() for one in hint.__metadata__ if isinstance(one, entry)}


METRICS = _entries(Metrics, Metric)
RATES = _entries(Rates, Rate)

SUCCESS = "success_rate"
"""Succeeded among ended requests, a share of one: an objective and a compared figure beside those that entries give."""

TASK_SUCCESS = "task_success_rate"
"""Succeeded among judged tasks, a share of one, of a compound system; compared likewise (measure/tasks.py)."""
TASK_SHARE = "task_success"
"""The same of all runs of a test, in %."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A figure of recorded sessions as wholes: `of`, a member of their account (measure/agent_sessions.py). `compared`: the
    statistics that a comparison shows of a distribution; a rate, which has none, is shown as it is."""

    title: str
    short: str
    unit: Literal["ms", "sessions/s"]
    of: str
    means: str
    better: Better
    compared: tuple[str, ...] = ()


SESSION_RATES = {
    "session_s": SessionEntry(
        "Session Throughput", "Sessions/s", "sessions/s", "sessions_s",
        "Recorded sessions all of whose steps had succeeded by then, per second of the steady window.", "more",
    ),
    "session_goodput_s": SessionEntry(
        "Session Goodput", "Good sessions/s", "sessions/s", "goodput_s",
        "Of these, the sessions all of whose steps met every latency objective.", "more",
    ),
}  # fmt: skip
SESSION_METRICS = {
    "session_duration_ms": SessionEntry(
        "Session Duration", "Session", "ms", "duration_ms",
        "From the start of a recorded session to the end of its last step.", "less",
    ),
    "session_ttft_ms": SessionEntry(
        "Session TTFT", "Session TTFT", "ms", "ttft_ms",
        "From the start of a recorded session to the first token of an answer that its user sees.", "less", ("p50",),
    ),
    "session_last_answer_ms": SessionEntry(
        "Time to Last Answer", "Last answer", "ms", "last_answer_ms",
        "From the start of a recorded session to the end of the last answer that its user sees.", "less", ("p50", "p99"),
    ),
}  # fmt: skip

TABLE = tuple(name for name, metric in METRICS.items() if metric.row)
"""Metrics of the result table, in its order; rates follow them."""

CONVENTIONS = {
    "samples": "Only successful requests of the measured window are samples; failed, refused, cancelled and"
    " warm-up requests are counted but have no latency here.",
    "percentiles": "Percentiles interpolate linearly between the two nearest ordered samples.",
    "std": "Standard deviations divide by n - 1.",
    "ci95": "Intervals are 95 % confidence intervals of the served load's value; they allow for correlation in time "
    "and within requests, and are withheld where the run holds too little evidence.",
    "throughput": "Throughput counts what arrived in the steady window only: the last 90 % of the sending "
    "time, or in a closed loop of the time in which concurrency was full; the figures of the "
    "whole run stand beside it.",
}


def stem(name: str) -> str:
    """A metric's name without its unit: `ttft` of `ttft_ms`."""
    return name.removesuffix("_ms")


def definitions() -> dict[str, str]:
    """Every metric, rate and convention with its one-sentence meaning: the `definitions` of summary.json."""
    return {name: one.means for name, one in (METRICS | RATES).items()} | CONVENTIONS
