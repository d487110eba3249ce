"""Figures of machines over a span, from readings at whatever instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.machine_series import machine_curves
from inferometer.measure.machines import grown, longest_gap_s, machine_seen, machines_seen
from inferometer.measure.measurement import samples_of
from inferometer.telemetry.machines.terms import OURS
from inferometer.telemetry.machines.tracks import THIS_MACHINE, MachineTrack, MachineTracks

S = 1_000_000_000
BEGIN, END = 10 * S, 20 * S


def track(term: str, values: Mapping[float, float], **labels: str) -> MachineTrack:
    """Values by the second at which they were read."""
    times = np.array([round(second * S) for second in values], np.int64)
    return MachineTrack(term, labels, times, np.array(list(values.values()), float))


def machine(
    *tracks: MachineTrack, url: str = THIS_MACHINE, latencies: Sequence[int] = (), offset_ns: int = 0
) -> MachineTracks:
    """A machine with these, read whenever one of them was."""
    times = np.unique(np.concatenate([one.times for one in tracks]))
    took = np.array(latencies or [-1] * len(times), np.int64)
    return MachineTracks(url, "inferometer", times, took, 0, offset_ns, tracks)


def ticks(rate: float, start: float = 0.0, until: int = 31) -> dict[float, float]:
    """A counter that grows steadily, a reading a second."""
    return {float(second): start + rate * second for second in range(until)}


@given(
    rate=st.floats(0, 1e6),
    start=st.floats(0, 1e9),
    at=st.lists(st.floats(0.1, 29.9), unique_by=lambda second: round(second * 1e6), min_size=0, max_size=20),
)
def test_what_a_steady_counter_added_does_not_depend_on_when_it_was_read(
    rate: float, start: float, at: list[float]
) -> None:
    """Law: whatever the instants, if they enclose the span."""
    seconds = sorted({0.0, *at, 30.0})
    found = grown(track("sent", {second: start + rate * second for second in seconds}), BEGIN, END)
    assert found == pytest.approx(10 * rate, rel=1e-6, abs=1e-3 + 1e-6 * start)


def test_a_counter_that_began_anew_counts_from_nothing() -> None:
    """Law: 12 s before the fall and 18 s behind it, at 2 a second."""
    values = {
        float(second): 100.0 + 2 * second if second < 15 else 2.0 * (second - 14) for second in range(31)
    }
    assert grown(track("sent", values), BEGIN, END) == pytest.approx(20.0)


@pytest.mark.parametrize("seconds", [[11, 25], [5, 19], [12], []])
def test_a_counter_whose_readings_do_not_enclose_the_span_is_not_known(seconds: list[int]) -> None:
    """Law: nothing is extrapolated."""
    assert grown(track("sent", {float(second): 1.0 for second in seconds}), BEGIN, END) is None


class Counted(dict[str, str]):
    """Labels that count how often one is looked up."""

    looks = 0

    def get(self, *key: Any) -> Any:
        """As a dict."""
        Counted.looks += 1
        return super().get(*key)


def looks_of(devices: int) -> int:
    """How many labels are looked up to measure so many accelerators."""
    terms = ("accelerator_busy", "accelerator_hertz", "accelerator_temperature", "accelerator_memory_used")
    tracks = [
        replace(made, labels=Counted(made.labels))
        for term in terms
        for number in range(devices)
        for made in [track(term, {0.0: 0.5, 1.0: 0.5, 2.0: 0.5}, device=str(number))]
    ]
    Counted.looks = 0
    assert len(machine_seen(machine(*tracks), 0, 2 * S).accelerators) == devices
    return Counted.looks


def test_the_work_is_in_proportion_to_the_accelerators() -> None:
    """Law: each accelerator's readings are found without those of all others: an exporter may have thousands."""
    assert looks_of(400) <= 11 * looks_of(40)


@given(factor=st.floats(0.1, 1000.0), cores=st.integers(1, 300))
def test_no_more_is_in_use_than_there_is(factor: float, cores: int) -> None:
    """Law: processors beyond those of the machine, time beyond all time and memory beyond the whole are unknown, and named."""
    there = dict.fromkeys(map(float, range(31)), float(cores))
    found = machine_seen(
        machine(
            track("cores", there),
            track("cpu_seconds", ticks(factor * cores), mode="user"),
            track("process_cpu", ticks(factor * cores), role="engine"),
            track("stalled_seconds", ticks(factor), resource="memory", kind="some"),
            track("memory_total", there),
            track("memory_available", {second: factor * of for second, of in there.items()}),
            track("accelerator_memory_total", there, device="0"),
            track(
                "accelerator_memory_used", {second: factor * of for second, of in there.items()}, device="0"
            ),
        ),
        BEGIN,
        END,
    )
    assert found.cores is not None
    assert found.memory is not None
    figures = [found.cores.busy, found.cores.busiest, found.roles[0].cores, found.stalls[0].some]
    levels = [found.memory.least_available, found.accelerators[0].memory_most]
    if not 1.2 < factor < 1.3:
        assert all((one is None) == (factor > 1.25) for one in figures)
    assert all((one is None) == (factor > 1) for one in levels)
    assert (not found.left_out) == (factor <= 1)
    assert found.cores.of == cores


@given(
    labels=st.lists(st.tuples(*[st.sampled_from("ab")] * 3), min_size=1),
    wanted=st.dictionaries(st.sampled_from("xy"), st.sampled_from("ab")),
)
def test_tracks_are_found_by_all_their_labels(
    labels: list[tuple[str, str, str]], wanted: dict[str, str]
) -> None:
    """Law: those of the term that have each label, in their order."""
    tracks = [track(term, {0.0: 1.0}, x=x, y=y) for term, x, y in labels]
    plain = [
        one for one in tracks if one.term == "a" and all(one.labels[key] == of for key, of in wanted.items())
    ]
    found = machine(*tracks).of("a", **wanted)
    assert [id(one) for one in found] == [id(one) for one in plain]


def test_gaps_that_touch_the_span_count_and_others_do_not() -> None:
    """Law: a gap that begins before the span counts whole."""
    times = np.array([0, 1 * S, 12 * S, 13 * S, 19 * S, 21 * S, 60 * S], np.int64)
    assert longest_gap_s(times, BEGIN, END) == 11.0
    assert longest_gap_s(times[:0], BEGIN, END) is None


@given(last=st.integers(12, 25))
def test_a_machine_that_is_read_in_part_says_so(last: int) -> None:
    """Law: where readings end before the measured phase does, what counters added is unknown, the rest is named, and nothing
    that was quiet until then is said to have been so to the end."""
    seconds = [float(second) for second in range(last + 1)]
    found = machine_seen(
        machine(
            track("cpu_seconds", {second: second for second in seconds}, mode="user"),
            track("accelerator_throttled", dict.fromkeys(seconds, 0.0), device="0", reason="hw_thermal"),
        ),
        BEGIN,
        END,
    )
    rest = max(0, 20 - last)
    assert found.unread_s == rest
    assert found.longest_gap_s == max(1.0, rest)
    assert found.cores is not None
    assert (found.cores.busy is None) == (rest > 0)
    assert [words.startswith(f"the last {rest} s") for words in found.left_out] == [True] * (rest > 0)
    assert ("accelerator 0" in found.silent) == (rest > 3)


def test_processors_are_split_into_ours_and_others() -> None:
    """Two processors busy for 1.5 of which this program has 0.5 and the engine 0.25; waiting for a disk is not busy."""
    found = machine_seen(
        machine(
            track("cpu_seconds", ticks(1.0), mode="user"),
            track("cpu_seconds", ticks(0.4), mode="system"),
            track("cpu_seconds", ticks(0.1), mode="steal"),
            track("cpu_seconds", ticks(0.3), mode="iowait"),
            track("cpu_seconds", ticks(0.2), mode="idle"),
            track("process_cpu", ticks(0.5), role="client"),
            track("process_cpu", ticks(0.25), role="engine"),
            track("cores", dict.fromkeys(map(float, range(31)), 2.0)),
        ),
        BEGIN,
        END,
    )
    assert found.cores is not None
    assert found.cores.of == 2
    assert found.cores.busy == pytest.approx(1.5)
    assert found.cores.others == pytest.approx(0.75)
    assert found.cores.stolen == pytest.approx(0.1)
    assert found.cores.busiest == pytest.approx(1.5)
    assert {role.role: round(role.cores or 0.0, 9) for role in found.roles} == {"client": 0.5, "engine": 0.25}


@given(offset_s=st.floats(-1e4, 1e4), took_ms=st.floats(0.01, 500), share=st.floats(0, 1))
def test_the_offset_of_a_clock_is_within_its_bound(offset_s: float, took_ms: float, share: float) -> None:
    """Law: wherever between request and answer the other machine read its clock. 10 us are for floats of today's time."""
    took = round(took_ms * 1e6)
    wall = 1_750_000_000 * S
    answered = 15 * S
    read_at = answered - took + round(share * took)
    value = (wall + read_at) / S + offset_s
    found = machine_seen(
        machine(
            track("clock", {15.0: value}), url="http://other:9401/metrics", latencies=[took], offset_ns=wall
        ),
        BEGIN,
        END,
    ).clock
    assert found is not None
    assert abs(found.offset_ms - offset_s * 1e3) <= found.bound_ms + 0.01


def test_throttling_is_named_with_its_reasons_and_unknown_where_nothing_says() -> None:
    """Law: no reading is not the same as no throttling."""

    def seen(*tracks: MachineTrack) -> tuple[bool | None, tuple[str, ...]]:
        found = machine_seen(machine(track("memory_available", ticks(1.0)), *tracks), BEGIN, END)
        return found.throttled, found.throttle_reasons

    half = {float(second): float(second % 2) for second in range(31)}
    never = dict.fromkeys(map(float, range(31)), 0.0)
    assert seen() == (None, ())
    assert seen(track("accelerator_throttled", never, device="0", reason="hw_thermal")) == (False, ())
    slow = track("accelerator_throttled", half, device="0", reason="hw_thermal")
    assert seen(slow) == (True, ("hw_thermal",))
    assert seen(track("cpu_throttles", ticks(0.1))) == (True, ("cpu_thermal",))
    for limit in (0.8, 0.0):
        slow = track("speed_limit", dict.fromkeys(map(float, range(31)), limit))
        assert seen(slow) == (True, ("cpu_limit",))


ALWAYS = tuple(map(float, range(31)))
SAYS = {
    "accelerator 0": track("accelerator_throttled", dict.fromkeys(ALWAYS, 0.0), device="0", reason="none"),
    "processors": track("cpu_throttles", dict.fromkeys(ALWAYS, 3.0)),
}
IS_THERE = {
    "accelerator 0": track("accelerator_busy", dict.fromkeys(ALWAYS, 0.5), device="0"),
    "processors": track("cpu_seconds", ticks(0.5), mode="user"),
}


@given(st.sets(st.sampled_from(sorted(IS_THERE)), min_size=1), st.sets(st.sampled_from(sorted(SAYS))))
def test_a_machine_was_not_slowed_down_only_if_each_part_says_so(there: set[str], says: set[str]) -> None:
    """Law: a part that is read, without a word about its throttling, is named and makes the whole unknown."""
    tracks = [IS_THERE[name] for name in sorted(there)] + [SAYS[name] for name in sorted(says & there)]
    found = machine_seen(machine(*tracks), BEGIN, END)
    assert set(found.silent) == there - says
    assert found.throttled is (None if there - says else False)


def test_accelerators_that_cannot_be_read_are_not_known_to_be_at_full_speed() -> None:
    """Law: a library that hangs makes the machine's throttling unknown, whatever its processors say."""
    failed = track("meter_failed", {5.0: 1.0, 15.0: 1.0}, meter="accelerators", code="timeout", words="x")
    quiet = [IS_THERE["processors"], SAYS["processors"]]
    assert machine_seen(machine(*quiet), BEGIN, END).throttled is False
    found = machine_seen(machine(*quiet, failed), BEGIN, END)
    assert (found.throttled, found.silent) == (None, ("accelerators",))
    slow = track("accelerator_throttled", dict.fromkeys(ALWAYS, 1.0), device="0", reason="hw_thermal")
    assert machine_seen(machine(*quiet, failed, slow), BEGIN, END).throttled


def test_reasons_read_outside_of_the_span_say_nothing_of_it() -> None:
    """Law: an accelerator whose last word was before the load is not known to have been at full speed."""
    before = track("accelerator_throttled", {1.0: 0.0, 2.0: 0.0}, device="0", reason="hw_thermal")
    found = machine_seen(machine(before), BEGIN, END)
    assert (found.throttled, found.silent) == (None, ("accelerator 0",))


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 20)), min_size=1, max_size=5))
def test_old_events_of_one_processor_hide_no_new_ones_of_another(counts: list[tuple[int, int]]) -> None:
    """Law: the largest growth of a processor, whatever each counted before."""
    tracks = [
        track("cpu_throttles", ticks(rate, float(start)), cpu=str(cpu))
        for cpu, (start, rate) in enumerate(counts)
    ]
    found = machine_seen(machine(*tracks), BEGIN, END)
    assert found.heat is not None
    assert found.heat.throttles == pytest.approx(10 * max(rate for _, rate in counts))
    assert found.throttled is any(rate for _, rate in counts)


def test_governors_are_those_in_force() -> None:
    """Law: an exporter's series at 0 is of a governor that could be chosen."""
    found = machine_seen(
        machine(
            *(
                track("governor", dict.fromkeys(ALWAYS, value), governor=name)
                for name, value in {"conservative": 0.0, "performance": 1.0, "powersave": 0.0}.items()
            )
        ),
        BEGIN,
        END,
    )
    assert found.heat is not None
    assert found.heat.governors == ("performance",)


def test_memory_and_swap_are_the_worst_of_the_span() -> None:
    """The least available in the span, not outside it; swap as used, or as what is not free."""
    available = {float(second): 100.0 - second if 10 <= second <= 20 else 1.0 for second in range(31)}
    for swap in (
        [track("swap_used", ticks(3.0))],
        [
            track("swap_total", dict.fromkeys(map(float, range(31)), 1e3)),
            track("swap_free", ticks(-3.0, 1e3)),
        ],
    ):
        found = machine_seen(machine(track("memory_available", available), *swap), BEGIN, END).memory
        assert found is not None
        assert found.least_available == 80.0
        assert found.swap_growth == pytest.approx(30.0)


@pytest.mark.parametrize("term", sorted({one.term for one in OURS}))
def test_readings_that_cannot_be_measured_cost_their_own_machine_alone(
    term: str, build: Any, plan_of: Any, random_rows: Any
) -> None:
    """Law: whatever a track lacks, the run has its other machines, and this one says why it has no figures."""
    record = build(*random_rows(1, 50))
    begin, end = int(record.t_taken[record.measured].min()), int(record.t_end[record.measured].max())
    times = np.linspace(begin - 10, end + 10, 9).astype(np.int64)
    bad = machine(MachineTrack(term, {}, times, np.full(9, -9.0)), url="http://bad")
    good = machine(MachineTrack("memory_available", {}, times, np.full(9, 5.0)), url="http://good")
    found = {one.url: one for one in machines_seen([bad, good], record, samples_of(plan_of(), record))}
    memory = found["http://good"].memory
    assert memory is not None
    assert memory.least_available == 5.0
    assert found["http://bad"].readings or found["http://bad"].left_out
    assert [curve.url for curve in machine_curves([bad, good], begin)][-1] == "http://good"
