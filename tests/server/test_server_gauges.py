"""/metrics, read by Prometheus' own parser."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.gauges import Gauges, Histogram


@given(st.lists(st.integers(0, 10_000_000_000), max_size=50))
def test_buckets_are_cumulative_and_include_their_bound(durations: list[int]) -> None:
    """`le` means: this many observations were at most the bound."""
    histogram = Histogram((0.001, 0.5, 2.0))
    for duration in (*durations, 500_000_000):
        histogram.observe(duration)
    text = "# TYPE x histogram\n" + "\n".join(histogram.lines("x", 'a="b"')) + "\n"
    (family,) = text_string_to_metric_families(text)
    samples = {(s.name, s.labels.get("le")): s.value for s in family.samples}
    observed = [*durations, 500_000_000]
    for bound in ("0.001", "0.5", "2.0"):
        assert samples["x_bucket", bound] == sum(d <= float(bound) * 1e9 for d in observed)
    assert samples["x_bucket", "+Inf"] == samples["x_count", None] == len(observed)
    assert abs(samples["x_sum", None] - sum(observed) / 1e9) < 1e-6


def test_the_exposition_parses_and_carries_the_model_name_whatever_it_is() -> None:
    """Label values are escaped (text format 0.0.4), and the families have vLLM's names and kinds."""
    name = 'a"b\\c\nd'
    engine: Engine[str] = Engine(
        Settings(kv_blocks=10, max_batch=3, preemption="swap", prefix_caching=True), 0
    )
    for key in "abcdefg":
        assert engine.submit(key, 20, 20, 0)
    while engine.running < 3:
        due = engine.next_due()
        assert due is not None
        engine.advance(due)
    families = {f.name: f for f in text_string_to_metric_families(Gauges(name).render(engine).decode())}
    own = {
        key.removeprefix("inferometer:"): families.pop(key)
        for key in list(families)
        if key.startswith("inferometer:")
    }
    assert set(own) == {"preempted_requests", "preempted_finished", "preempted_tokens"}
    assert all(family.type == "counter" for family in own.values())
    kinds = {key.removeprefix("vllm:"): family.type for key, family in families.items()}
    assert kinds == {
        "num_requests_running": "gauge",
        "num_requests_waiting": "gauge",
        "kv_cache_usage_perc": "gauge",
        "prefix_cache_queries": "counter",
        "prefix_cache_hits": "counter",
        "num_preemptions": "counter",
        "prompt_tokens": "counter",
        "generation_tokens": "counter",
        "request_success": "counter",
        "time_to_first_token_seconds": "histogram",
        "inter_token_latency_seconds": "histogram",
        "e2e_request_latency_seconds": "histogram",
        "request_queue_time_seconds": "histogram",
        "request_prefill_time_seconds": "histogram",
    }
    assert [s.value for s in families["vllm:num_requests_running"].samples] == [3]
    assert [s.value for s in families["vllm:num_requests_waiting"].samples] == [4]
    assert [s.value for s in families["vllm:kv_cache_usage_perc"].samples] == [0.6]
    assert [s.value for s in families["vllm:prefix_cache_queries"].samples] == [60]
    assert all(s.labels["model_name"] == name for family in families.values() for s in family.samples)
