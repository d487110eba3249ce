"""From an engine's names to ours: every engine is told by its names, and what several series say is put together rightly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.telemetry.metrics.engine_names import COUNTERS, ENGINES, HISTOGRAMS, TERMS, Engine, detect
from inferometer.telemetry.metrics.normalised import Translated, translate
from inferometer.telemetry.metrics.record import Scrape, read
from inferometer.telemetry.metrics.series import Store, collect

VECTORS = Path(__file__).parent.parent / "vectors" / "metrics"
URL = "http://h/metrics"
S = 1_000_000_000


def told(bodies: list[str], own: bool = True, offset_ns: int = 0) -> Translated:
    """One endpoint that said this, a second apart."""
    store = collect(Scrape(URL, (at + 1) * S, body) for at, body in enumerate(bodies))
    (found,) = translate(store, frozenset({URL} if own else ()), offset_ns)
    return found


def body(kind: str, family: str, samples: dict[str, float]) -> str:
    suffix = "_total" if kind == "counter" else ""
    rows = [f"{family}{suffix}{{{labels}}} {value!r}" for labels, value in samples.items()]
    return "\n".join([f"# TYPE {family}{suffix} {kind}", *rows, ""])


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_an_engine_is_told_by_any_of_its_names(engine: Engine) -> None:
    """Its newest names, its oldest, and a single one of them; no other engine's names are taken for it."""
    newest = {source.families[0] for source in engine.terms.values()}
    oldest = {source.families[-1] for source in engine.terms.values()}
    for names in (newest, oldest, *({name} for name in newest)):
        assert detect(names) is engine
    assert set(engine.terms) <= set(TERMS)


def test_of_names_that_nobody_has_nothing_is_said() -> None:
    """An exporter of something else is no engine."""
    assert detect({"node_cpu_seconds", "process_start_time_seconds"}) is None
    assert detect(set()) is None
    assert translate(Store(), frozenset(), 0) == []


@given(
    st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=12),
    st.integers(0, 11),
    st.lists(st.integers(0, 10_000), min_size=3, max_size=3),
)
def test_a_counter_is_what_was_added_whoever_began_anew(
    steps: list[list[int]], again: int, start: list[int]
) -> None:
    """Three ranks that start anywhere and grow; one of them begins anew once. The sum misses nothing that was scraped."""
    values, added, resets = list(start), 0, 0
    bodies = [body("counter", "vllm:prompt_tokens", {f'engine="{k}"': values[k] for k in range(3)})]
    for at, grown in enumerate(steps):
        for rank in range(3):
            before = values[rank]
            values[rank] = grown[rank] if at == again and rank == 1 else before + grown[rank]
            shown = values[rank] < before  # an anew that has outgrown the old value cannot be seen
            resets += shown
            added += values[rank] if shown else values[rank] - before
        bodies.append(body("counter", "vllm:prompt_tokens", {f'engine="{k}"': values[k] for k in range(3)}))
    found = told(bodies)
    assert found.tracks["prompt_tokens"].values.tolist()[-1] == pytest.approx(added)
    assert np.all(np.diff(found.tracks["prompt_tokens"].values) >= 0)
    assert found.resets == resets


def test_ranks_that_begin_anew_at_once_go_back_once_and_replicas_in_turn_again_and_again() -> None:
    """What is counted are scrapes at which something went back, not the series that did."""

    def text(value: float) -> str:
        ranks = {f'engine="{k}"': value + k for k in range(4)}
        return body("counter", "vllm:prompt_tokens", ranks) + body("counter", "vllm:generation_tokens", ranks)

    assert told([text(value) for value in (50.0, 60.0, 0.0, 10.0)]).resets == 1
    assert told([text(value) for value in (50.0, 10.0, 60.0, 20.0, 70.0, 30.0)]).resets == 3


def test_a_counter_that_appears_late_began_at_nothing() -> None:
    """prometheus_client shows a labelled counter first when it counts first: that first count is not lost."""
    family = "vllm:request_success"
    bodies = [
        body("counter", family, {'finished_reason="stop"': 5.0}),
        body("counter", family, {'finished_reason="stop"': 6.0, 'finished_reason="length"': 3.0}),
        body("counter", family, {'finished_reason="stop"': 6.0, 'finished_reason="abort"': 2.0}),
    ]
    found = told(bodies)
    assert found.tracks["succeeded"].values.tolist() == [0, 4, 4]
    assert found.tracks["failed"].values.tolist() == [0, 0, 2]


def test_levels_are_added_and_of_shares_the_largest_counts() -> None:
    """Two ranks: so many run in all; the fuller cache is the one that preempts."""
    text = body("gauge", "vllm:num_requests_running", {'engine="0"': 3.0, 'engine="1"': 4.0})
    text += body("gauge", "vllm:kv_cache_usage_perc", {'engine="0"': 0.2, 'engine="1"': 0.9})
    found = told([text, text], offset_ns=S // 2)
    assert found.tracks["running"].values.tolist() == [7, 7]
    assert found.tracks["kv_usage"].values.tolist() == [0.9, 0.9]
    assert found.tracks["running"].times.tolist() == [S // 2, S + S // 2]


def test_a_histogram_can_stand_for_a_counter() -> None:
    """TGI counts tokens as the sum of a histogram."""

    def text(total: float, count: int) -> str:
        rows = [f'tgi_request_generated_tokens_bucket{{le="+Inf"}} {count}']
        rows += [f"tgi_request_generated_tokens_sum {total}", f"tgi_request_generated_tokens_count {count}"]
        return "\n".join(["# TYPE tgi_request_generated_tokens histogram", *rows, ""])

    found = told([text(100.0, 4), text(160.0, 5)])
    assert (found.engine, found.verified) == ("TGI", False)
    assert found.tracks["generation_tokens"].values.tolist() == [0, 60]


def test_a_histogram_that_began_anew_counts_all_of_itself() -> None:
    """A bucket that has outgrown its old value belongs to the new life too."""

    def text(low: int, count: int, total: float) -> str:
        name = "vllm:time_to_first_token_seconds"
        rows = [f'{name}_bucket{{le="0.1"}} {low}', f'{name}_bucket{{le="+Inf"}} {count}']
        return "\n".join(
            [f"# TYPE {name} histogram", *rows, f"{name}_sum {total}", f"{name}_count {count}", ""]
        )

    found = told([text(1, 10, 5.0), text(3, 4, 0.5)])
    grown = found.histograms["ttft"]
    assert (grown.counts[-1], grown.sums[-1], grown.buckets[-1].tolist()) == (4, 0.5, [3, 4])
    assert found.resets == 1


@pytest.mark.parametrize(
    ("name", "prompt", "output"), [("vllm", 136_507, 6_537), ("llamacpp", 136_498, 6_537)]
)
def test_recorded_engines_counted_what_their_client_was_told(name: str, prompt: int, output: int) -> None:
    """A whole run each (tests/vectors/metrics): counters, from the baseline to the last scrape, equal the client's usage."""
    store = collect(read(VECTORS / f"{name}.jsonl.zst"))
    (found,) = translate(store, frozenset(), 0)
    assert found.verified
    assert found.tracks["prompt_tokens"].values[-1] == prompt
    assert found.tracks["generation_tokens"].values[-1] == output
    assert {"running", "waiting", "prefix_hits", "prefix_queries"} <= found.tracks.keys()
    assert found.resets == 0


def test_what_is_told_to_be_seen_at_vllm_is_in_the_recorded_run() -> None:
    """Every term of its table, by its newest name, but for those that only the reference server has."""
    ours = {"preempted_requests", "preempted_finished", "discarded_tokens"}
    (found,) = translate(collect(read(VECTORS / "vllm.jsonl.zst")), frozenset(), 0)
    engine = next(one for one in ENGINES if one.name == "vLLM")
    assert {*found.tracks, *found.histograms} == set(engine.terms) - ours
    assert found.histograms["ttft"].counts[-1] == 160
    assert set(found.histograms) <= set(HISTOGRAMS)
    assert {"preemptions", "succeeded"} <= set(found.tracks) & set(COUNTERS)


def test_a_server_that_says_absurd_things_is_not_believed() -> None:
    """Numbers whose sum is beyond all counting are left out, scrape by scrape; the rest stays."""
    absurd = body("gauge", "vllm:num_requests_running", {'engine="0"': 1.7e308, 'engine="1"': 1.7e308})
    sane = body("gauge", "vllm:num_requests_running", {'engine="0"': 2.0, 'engine="1"': 1.0})
    found = told([sane, absurd, sane])
    assert found.tracks["running"].values.tolist() == [3, 3]
    assert "running" not in told([absurd + body("gauge", "vllm:num_requests_waiting", {"": 1.0})]).tracks


def test_the_block_size_of_a_recorded_vllm_is_read() -> None:
    """Law: as its cache_config_info has it; what is no size, and two engines that differ, state none."""
    recorded = VECTORS / "vllm.jsonl.zst"
    (found,) = translate(collect(read(recorded)), frozenset(), 0)
    assert found.block_tokens == 128  # of a CPU
    running = body("gauge", "vllm:num_requests_running", {"": 1.0})

    def stated(*sizes: str) -> int | None:
        labels = {f'block_size="{size}",engine="{at}"': 1.0 for at, size in enumerate(sizes)}
        return told([running + body("gauge", "vllm:cache_config_info", labels)]).block_tokens

    assert (stated("32"), stated("32", "32"), stated("16", "32")) == (32, 32, None)
    assert [stated(one) for one in ("None", "0", "-1", "1e9", "9" * 30)] == [None] * 5
    assert told([running]).block_tokens is None
