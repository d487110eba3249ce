"""The checklist of 6.1 and 6.4: each item sees what it is about, and only a MUST forbids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from comparing import facts_of, planned
from msgspec import structs

from inferometer.documents.comparison import Item
from inferometer.documents.summary import Observed
from inferometer.judge.comparison.equivalence import (
    Declared,
    RunFacts,
    accelerators,
    checklist,
    differences,
    forbidden,
    normalised_by,
    pairs,
)
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan

A = [facts_of(seed) for seed in (1, 2, 3)]


def items(*sides: list[RunFacts], **declared: Any) -> dict[str, Item]:
    return {item.code: item for item in checklist(sides, Declared(**declared))}


def all_of(change: Callable[[RunFacts], RunFacts]) -> list[RunFacts]:
    return [change(run) for run in A]


def sut(run: RunFacts, **values: Any) -> RunFacts:
    return replace(run, sut=structs.replace(run.sut, **values))


def test_equal_sides_pass_and_only_what_nobody_can_see_stays_open() -> None:
    """Seen or declared all, but for production, which only a person knows."""
    open_items = {code: item.status for code, item in items(A, A).items() if item.status != "satisfied"}
    assert open_items == {"boundary": "declared", "hardware": "declared", "production": "unknown"}
    assert items(A, A, production=True)["production"].status == "declared"


@pytest.mark.parametrize(
    ("code", "change", "forbids"),
    [
        ("workload", lambda run: replace(run, fingerprint="sha256:other"), True),
        ("workload", lambda run: replace(run, seed=run.seed + 1), True),
        ("boundary", lambda run: sut(run, boundary="gateway"), True),
        ("load", lambda run: planned(run, "load", concurrency=99), True),
        ("specification", lambda run: planned(run, "workload", temperature=0.7), False),
        ("specification", lambda run: planned(run, "target", stream=False), False),
        ("duration", lambda run: planned(run, "load", requests=77), False),
        ("duration", lambda run: replace(run, interrupted=True), False),
        ("warmup", lambda run: planned(run, "load", warmup=7), False),
        ("success", lambda run: planned(run, "target", timeout_s=1.0), False),
        ("success", lambda run: replace(run, plan=build(None, {"--slo": ["ttft_p99<1ms"]})), False),
        ("one_kind", lambda run: replace(run, simulated=True), True),
    ],
)
def test_each_item_sees_what_it_is_about(
    code: str, change: Callable[[RunFacts], RunFacts], forbids: bool
) -> None:
    """Changed on one side, it alone is violated; a MUST forbids the comparison."""
    found = items(A, all_of(change))
    assert {name for name, item in found.items() if item.status == "violated"} == {code}
    assert found[code].forbids is forbids


def test_what_is_not_said_contradicts_nothing_and_proves_nothing() -> None:
    """None on one side, or on both, is unknown; memory may be left out if nobody names it."""
    silent = all_of(lambda run: sut(run, boundary=None, accelerator_count=None))
    for found in (items(A, silent), items(silent, silent)):
        assert (found["boundary"].status, found["hardware"].status) == ("unknown", "unknown")
    named = all_of(lambda run: sut(run, accelerator_memory="80 GB"))
    assert items(A, named)["hardware"].status == "unknown"
    assert items(named, named)["hardware"].status == "declared"


def test_hardware_that_differs_has_to_be_normalised() -> None:
    """By accelerators declared on all sides, or by prices of all sides; else it forbids (6.1, 6.2)."""
    other = all_of(lambda run: sut(run, accelerator="L4", accelerator_count=2))
    assert (items(A, other)["hardware"].status, normalised_by([A, other], Declared())) == ("satisfied", "gpu")
    priced = {0: 3.0, 1: 1.0}
    assert normalised_by([A, other], Declared(prices=priced)) == "price"
    cpu = all_of(lambda run: sut(run, accelerator="cpu", accelerator_count=0))
    assert accelerators(cpu) is None
    assert items(A, cpu)["hardware"].forbids
    assert items(A, cpu, prices=priced)["hardware"].status == "satisfied"
    assert items(A, cpu, prices={0: 3.0})["hardware"].forbids


def test_tokens_are_counted_alike_or_said_not_to_be() -> None:
    """Another way or tokenizer is violated; the models' own, of different models, unknown; cl100k_base is recommended."""
    assert items(A, A)["token_count"].facts.recommended

    def counted(run: RunFacts, **values: Any) -> RunFacts:
        return replace(run, tokens=replace(run.tokens, **values))

    native = all_of(lambda run: counted(run, method="native"))
    assert items(A, native)["token_count"].status == "violated"
    found = items(native, native)["token_count"]
    assert (found.status, found.facts.recommended) == ("satisfied", False)
    other = [sut(run, model="other") for run in native]
    assert items(native, other)["token_count"].status == "unknown"
    assert not items(A, native)["token_count"].forbids


def test_runs_are_paired_by_seed_whatever_their_order() -> None:
    """Of one seed, in the order in which they began; other seeds, or other numbers of them, make no pairs."""
    assert pairs([A, A[::-1]]) == [(0, 2), (1, 1), (2, 0)]
    twice = [replace(A[0], started_ns=9), replace(A[0], started_ns=8)]
    assert pairs([twice, twice[::-1]]) == [(1, 0), (0, 1)]
    assert pairs([A, A[:2]]) is None


def test_a_trace_without_fingerprint_is_judged_by_its_plan() -> None:
    """Equal plans are declared to be equal, unequal ones violate."""
    nameless = all_of(lambda run: replace(run, fingerprint=None))
    assert items(A, nameless)["workload"].status == "declared"
    other = [planned(run, "workload", temperature=0.5) for run in nameless]
    assert items(A, other)["workload"].forbids


def test_interleaved_runs_were_tested_at_the_same_time() -> None:
    """In turn is unknown, and violated where resources are declared to be shared; virtual time has no before."""

    def at(start: int) -> list[RunFacts]:
        return [
            replace(run, started_ns=start + 10 * n, ended_ns=start + 10 * n + 4) for n, run in enumerate(A)
        ]

    assert items(at(0), at(5))["same_time"].status == "satisfied"
    assert items(at(0), at(100))["same_time"].status == "unknown"
    assert items(at(0), at(100), shared_resources=True)["same_time"].status == "violated"
    virtual = [[replace(run, simulated=True) for run in at(start)] for start in (0, 100)]
    assert items(*virtual)["same_time"].status == "satisfied"


def test_every_difference_is_listed_but_for_seeds_and_header_values() -> None:
    """By its key, with what each side has; what a header says stays out of reports."""
    assert differences([A, A]) == ()
    other = all_of(
        lambda run: planned(sut(run, quantization="fp8"), "target", headers={"X-Tenant": "secret"})
    )
    found = {one.key: one.values for one in differences([A, other])}
    assert found["sut.quantization"] == ((None,), ("fp8",))
    assert found["target.headers.X-Tenant"] == ((None,), ("set",))
    assert "secret" not in str(found)


def test_plans_that_must_not_be_compared_are_found_before_anything_is_measured() -> None:
    """Load, requests and boundary; another server, model or seed is what a comparison is about."""

    def plan(**flags: object) -> Plan:
        return build(None, {f"--{name}": value for name, value in flags.items()})

    base = plan(concurrency="4", url="http://127.0.0.1:1", seed="1", boundary="engine")
    assert forbidden([base, plan(concurrency="4", url="http://127.0.0.1:2", seed="2", model="b")]) == []
    assert forbidden([base, plan(concurrency="5", boundary="gateway", url="http://127.0.0.1:1")]) == [
        "load.concurrency",
        "sut.boundary",
    ]
    keys = forbidden([base, plan(**{"concurrency": "4", "output-tokens": "9"})])
    assert "workload.output_tokens" in keys


def test_runs_of_another_system_are_no_noise() -> None:
    """The A/A item is violated by a difference in the system, and not by another version of the instrument."""
    other = [sut(run, quantization="fp8") for run in A]
    newer = [replace(run, instrument=replace(run.instrument, version="9")) for run in A]
    statuses = [
        {item.code: item.status for item in checklist([A, A], Declared(), [again])}["noise"]
        for again in (other, newer)
    ]
    assert statuses == ["violated", "satisfied"]


@pytest.mark.parametrize("mixed", [0, 1])
@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"software": "SGLang 0.5"}, "violated"),
        ({"model": "another"}, "violated"),
        ({"quantization": "fp8"}, "violated"),
        ({"observed": Observed("another", ("m",))}, "violated"),
        ({"observed": Observed("vLLM", ("m",), "another")}, "unknown"),
        ({"observed": Observed("vLLM", ("m", "more"))}, "unknown"),
        ({"software": None}, "unknown"),
        ({"notes": "on Tuesday"}, "unknown"),
        ({"url": "http://other:1"}, "satisfied"),
    ],
)
def test_runs_of_several_systems_are_no_side(mixed: int, values: dict[str, Any], status: str) -> None:
    """Law: the spread of a side is that of one system, or nothing is claimed; saying nothing contradicts nothing."""
    usual = {
        "software": "vLLM 0.9",
        "quantization": "none",
        "notes": "on Monday",
        "observed": Observed("vLLM", ("m",)),
    }
    pure = [sut(run, **usual) for run in A]
    impure = [*pure[:2], sut(pure[2], **values)]
    found = items(*((impure, pure) if mixed == 0 else (pure, impure)))["one_system"]
    assert (found.status, found.forbids) == (status, status == "violated")
    assert [bool(keys) for keys in found.facts.within or ()] == [
        status == "violated" and at == mixed for at in (0, 1)
    ]
