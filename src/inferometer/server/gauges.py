"""What `/metrics` shows: the families of a vLLM server that this engine has an answer to, in Prometheus text format 0.0.4.

Families, their meaning and the coarse bucket bounds follow vLLM's metrics page (docs.vllm.ai, "Production metrics"); finer
bounds are added below, since this engine is faster than vLLM's lowest buckets. What vLLM does not count has names of our own,
`inferometer:`. Like vLLM, times are taken when the engine puts tokens out, not when the socket takes them, and the times of a
request's parts are counted when it ends: its wait until the first iteration that computes a part of its prompt (a filter in
front of the queue is part of it), and from there to the end of the one that completes it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

from inferometer.server.engine.preemption import Preempted
from inferometer.server.truth_log import Entry
from inferometer.units import NS_PER_S

_TTFT_BOUNDS = (
    *(0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_ITL_BOUNDS = (
    *(0.0005, 0.001, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4),
    *(0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_PART_BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2),
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0),
    *(960.0, 1920.0, 7680.0),
)
_E2E_BOUNDS = (
    *(0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)


class Load(Protocol):
    """What an engine says of itself (engine/engine.py)."""

    @property
    def running(self) -> int:
        """Requests in the batch."""

    @property
    def waiting(self) -> int:
        """Requests in the queue."""

    @property
    def kv_usage(self) -> float:
        """The share of the KV cache in use."""

    @property
    def prefix_queries(self) -> int:
        """Prompt tokens looked for in the prefix cache."""

    @property
    def prefix_hits(self) -> int:
        """Of these, found."""

    @property
    def preemptions(self) -> int:
        """Requests that lost their blocks."""

    @property
    def preempted(self) -> Preempted:
        """Whom that met, and what was lost."""


class Histogram:
    """Counts of durations by upper bound (`le`, seconds, inclusive)."""

    __slots__ = ("_bounds_ns", "bounds", "counts", "total_ns")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._bounds_ns = [round(bound * NS_PER_S) for bound in bounds]
        self.counts = [0] * (len(bounds) + 1)
        self.total_ns = 0

    def observe(self, duration_ns: int) -> None:
        """Count one duration."""
        self.counts[bisect_left(self._bounds_ns, duration_ns)] += 1
        self.total_ns += duration_ns

    def lines(self, name: str, labels: str) -> list[str]:
        """The samples in text format; `labels` is the inside of the braces."""
        rows = []
        below = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            below += count
            le = "+Inf" if bound == float("inf") else repr(bound)
            rows.append(f'{name}_bucket{{{labels},le="{le}"}} {below}')
        rows.append(f"{name}_sum{{{labels}}} {self.total_ns / NS_PER_S!r}")
        rows.append(f"{name}_count{{{labels}}} {below}")
        return rows


class Gauges:
    """Everything counted since the start."""

    def __init__(self, model: str) -> None:
        escaped = model.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        self._labels = f'engine="0",model_name="{escaped}"'
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.finished = 0
        self.aborted = 0
        self.ttft = Histogram(_TTFT_BOUNDS)
        self.itl = Histogram(_ITL_BOUNDS)
        self.e2e = Histogram(_E2E_BOUNDS)
        self.queue = Histogram(_PART_BOUNDS)
        self.prefill = Histogram(_PART_BOUNDS)

    def ended(self, entry: Entry, emitted_ns: int) -> None:
        """Count the times of a request that has ended with its last token at `emitted_ns`."""
        self.e2e.observe(emitted_ns - entry.received_ns)
        if entry.scheduled_ns is not None and entry.prefill_ns is not None:
            self.queue.observe(entry.scheduled_ns - entry.due_ns)
            self.prefill.observe(entry.prefill_ns)

    def render(self, load: Load) -> bytes:
        """The exposition, with the engine's load of this moment."""
        rows: list[str] = []
        plain: list[tuple[str, str, str, list[tuple[str, float]]]] = [
            ("num_requests_running", "gauge", "Requests in the batch or in prefill.", [("", load.running)]),
            ("num_requests_waiting", "gauge", "Requests in the queue.", [("", load.waiting)]),
            (
                "kv_cache_usage_perc",
                "gauge",
                "Share of the KV cache's blocks in use, 0 to 1.",
                [("", load.kv_usage)],
            ),
            (
                "prefix_cache_queries_total",
                "counter",
                "Prompt tokens looked for in the prefix cache.",
                [("", load.prefix_queries)],
            ),
            ("prefix_cache_hits_total", "counter", "Of these, found there.", [("", load.prefix_hits)]),
            (
                "num_preemptions_total",
                "counter",
                "Times a request lost its blocks to another.",
                [("", load.preemptions)],
            ),
            ("prompt_tokens_total", "counter", "Prompt tokens taken in.", [("", self.prompt_tokens)]),
            ("generation_tokens_total", "counter", "Tokens put out.", [("", self.generation_tokens)]),
            (
                "request_success_total",
                "counter",
                "Requests that ended, by reason.",
                [(',finished_reason="length"', self.finished), (',finished_reason="abort"', self.aborted)],
            ),
        ]
        for name, kind, text, samples in plain:
            rows += [f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} {kind}"]
            rows += [f"vllm:{name}{{{self._labels}{more}}} {value}" for more, value in samples]
        for name, text, value in _of_preemption(load.preempted):
            rows += [f"# HELP inferometer:{name} {text}", f"# TYPE inferometer:{name} counter"]
            rows.append(f"inferometer:{name}{{{self._labels}}} {value}")
        for name, text, histogram in (
            ("time_to_first_token_seconds", "From arrival to the first token.", self.ttft),
            ("inter_token_latency_seconds", "From one token of a request to its next.", self.itl),
            ("e2e_request_latency_seconds", "From arrival to the last token.", self.e2e),
            ("request_queue_time_seconds", "From arrival to the first iteration of the prompt.", self.queue),
            ("request_prefill_time_seconds", "From there to the end of the prompt's last one.", self.prefill),
        ):
            rows += [f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} histogram"]
            rows += histogram.lines(f"vllm:{name}", self._labels)
        return ("\n".join(rows) + "\n").encode()


def _of_preemption(preempted: Preempted) -> tuple[tuple[str, str, int], ...]:
    return (
        ("preempted_requests_total", "Requests that lost their blocks, once at least.", preempted.requests),
        ("preempted_finished_total", "Of these, ended with all their tokens.", preempted.finished),
        ("preempted_tokens_total", "Tokens whose keys and values were lost with them.", preempted.discarded),
    )
