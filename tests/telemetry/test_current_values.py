"""The few figures that say how a server is: by hand, of each engine's own names, and whatever a body holds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.server.engine.preemption import Preempted
from inferometer.server.gauges import Gauges
from inferometer.telemetry.metrics.current_values import TERMS, Totals, figures, totals
from inferometer.telemetry.metrics.engine_names import ENGINES
from inferometer.telemetry.metrics.engine_names import TERMS as NAMED
from inferometer.telemetry.metrics.exposition import parse


def body(**values: float) -> Totals:
    """Of gauges and counters by name, `__` for a colon; a counter is one whose name ends in _total."""
    rows = []
    for name, value in values.items():
        shown = name.replace("__", ":")
        kind = "counter" if shown.endswith("_total") else "gauge"
        rows += [f"# TYPE {shown} {kind}", f"{shown} {value}"]
    return totals(parse("\n".join(rows) + "\n"))


@pytest.mark.parametrize(
    ("running", "waiting"),
    [
        ("vllm__num_requests_running", "vllm__num_requests_waiting"),
        ("sglang__num_running_reqs", "sglang__num_queue_reqs"),
        ("tgi_batch_current_size", "tgi_queue_size"),
        ("llamacpp__requests_processing", "llamacpp__requests_deferred"),
        ("dynamo_frontend_inflight_requests", "dynamo_frontend_queued_requests"),
        ("trtllm_num_requests_running", "trtllm_num_requests_waiting"),
    ],
)
def test_the_queue_is_found_whatever_an_engine_calls_it(running: str, waiting: str) -> None:
    """One term for each."""
    assert figures(body(**{running: 7, waiting: 3}), None, 0) == {"running": 7, "waiting": 3}


def test_a_count_is_the_sum_over_its_series_and_a_share_their_mean() -> None:
    """Two ranks of one server: 3 + 4 requests, and caches half and a quarter full."""
    rows = [
        "# TYPE vllm:num_requests_running gauge",
        *(f'vllm:num_requests_running{{engine="{rank}"}} {value}' for rank, value in enumerate((3, 4))),
        "# TYPE vllm:kv_cache_usage_perc gauge",
        *(
            f'vllm:kv_cache_usage_perc{{engine="{rank}"}} {value}'
            for rank, value in enumerate((0.5, 0.25, "NaN"))
        ),
    ]
    assert figures(totals(parse("\n".join(rows) + "\n")), None, 0) == {"running": 7, "kv_usage": 0.375}


@pytest.mark.parametrize("impossible", [-3.0, 55.0, 1e308])
def test_what_no_share_or_count_can_be_is_none(impossible: float) -> None:
    """A cache that is 5,500 % full, a queue of -3, and numbers whose sum is beyond all; what else there is stands."""
    gauges = {"vllm__kv_cache_usage_perc": impossible, "vllm__num_requests_running": 2}
    assert figures(body(**gauges), None, 0) == {"running": 2}
    if impossible != 55.0:
        assert figures(body(vllm__num_requests_waiting=impossible), None, 0) == {}
    queries = {"vllm__prefix_cache_queries_total": 100, "vllm__prefix_cache_hits_total": 300}
    none = dict.fromkeys(queries, 0)
    assert figures(body(**queries), body(**none), 1.0) == {}


def test_rates_and_ratios_are_those_of_growth() -> None:
    """100 tokens in 2 s are 50 a second; 30 of 40 tokens looked for were in the cache."""
    before = body(
        vllm__generation_tokens_total=900,
        vllm__prefix_cache_hits_total=10,
        vllm__prefix_cache_queries_total=20,
    )
    now = body(
        vllm__generation_tokens_total=1000,
        vllm__prefix_cache_hits_total=40,
        vllm__prefix_cache_queries_total=60,
    )
    assert figures(now, before, 2.0) == {"output_tok_s": 50, "prefix_hits": 0.75}
    assert figures(now, None, 0) == {}


def test_after_a_reset_nothing_is_told_of_growth() -> None:
    """A counter that went back says nothing of the time between."""
    assert figures(body(vllm__prompt_tokens_total=1), body(vllm__prompt_tokens_total=2), 1.0) == {}


NONE = Preempted()


@dataclass
class Load:
    """What the reference server's engine says of itself."""

    running: int = 2
    waiting: int = 1
    kv_usage: float = 0.25
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0
    preempted: Preempted = NONE


def test_the_reference_server_has_every_term_but_the_rate_of_hits() -> None:
    """Its means are those of what was counted between two scrapes: 10 and 30 ms to the first token."""
    gauges = Gauges("m")
    gauges.ttft.observe(500_000_000)
    before = totals(parse(gauges.render(Load()).decode()))
    for duration_ms in (10, 30):
        gauges.ttft.observe(duration_ms * 1_000_000)
    gauges.itl.observe(2_000_000)
    gauges.prompt_tokens += 10
    found = figures(totals(parse(gauges.render(Load(prefix_queries=4, prefix_hits=1)).decode())), before, 1.0)
    assert found["ttft"] == pytest.approx(0.020)
    assert found["itl"] == pytest.approx(0.002)
    assert (found["running"], found["waiting"], found["kv_usage"]) == (2, 1, 0.25)
    assert (found["input_tok_s"], found["output_tok_s"], found["prefix_hits"]) == (10, 0, 0.25)
    assert set(found) == {term.key for term in TERMS} - {"prefix_hit_rate"}


def test_figures_are_of_terms_that_there_are() -> None:
    """Those of the table of names."""
    assert {name for term in TERMS for name in (*term.of, *([term.per] if term.per else []))} <= set(NAMED)


_names = st.sampled_from(
    sorted(
        {
            name
            for engine in ENGINES
            for source in engine.terms.values()
            for name in (*source.families, *source.plus)
        }
    )
)
_bodies = st.dictionaries(_names, st.floats(allow_nan=True, allow_infinity=True), min_size=1)


def text(values: dict[str, float]) -> Totals:
    return totals(parse("".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in values.items())))


@given(_bodies, _bodies, st.floats(0, 1e6))
def test_any_body_has_figures_or_none(
    now: dict[str, float], before: dict[str, float], seconds: float
) -> None:
    """No number of a server breaks it, and no rate or ratio is below nothing."""
    found = figures(text(now), text(before), seconds)
    kinds = {term.key: term.kind for term in TERMS}
    assert all(value >= 0 for key, value in found.items() if kinds[key] in ("rate", "ratio", "mean"))
