"""Machines beside a load: what is read of this one, how it is exposed, and what exporters' names come to."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_play import SECOND, START, at, store_of
from prometheus_client.parser import text_string_to_metric_families

from inferometer.telemetry import amd, nvidia
from inferometer.telemetry.accelerator_readings import AcceleratorState, Vendor
from inferometer.telemetry.accelerators import Accelerators
from inferometer.telemetry.bounded_server import TimedReader
from inferometer.telemetry.machine import this_machine
from inferometer.telemetry.machines.agent import CONTENT_TYPE, MOST_REQUESTS, TIMEOUT_S, Agent
from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.local import LocalMachine, Part, RoleTime, stalled
from inferometer.telemetry.machines.meters import AcceleratorPart, MeterPart, kind_of, opened
from inferometer.telemetry.machines.side_by_side import LATE_S, LONGEST_OF_A_COUNTER_S, Patience, SideBySide
from inferometer.telemetry.machines.terms import (
    BY_FAMILY,
    COUNTERS,
    OURS,
    SOURCES,
    needed_labels,
    value_range,
)
from inferometer.telemetry.machines.tracks import MachineTracks, machine_tracks
from inferometer.telemetry.metrics.series import collect
from inferometer.telemetry.power.meters import open_meter
from inferometer.telemetry.power.readings import FailureCode, Meter, MeterFailed, PowerReading

VECTORS = Path(__file__).parent.parent / "vectors" / "machines"


def tracks_of(*bodies: str) -> MachineTracks:
    """A reading a second; times in ns from START."""
    (found,) = machine_tracks(store_of(*bodies), START)
    return found


def only(found: MachineTracks, term: str, **labels: str) -> list[float]:
    """The values of the one track."""
    (track,) = found.of(term, **labels)
    return [float(value) for value in track.values]


@given(
    data=st.data(),
    term=st.sampled_from(sorted(one.term for one in OURS)),
    label=st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=20),
)
def test_what_is_exposed_is_read_again(data: st.DataObject, term: str, label: str) -> None:
    """Law: any value that can be and any label go through our own reader, and the Prometheus client's, unchanged."""
    least, largest = value_range(term)
    value = data.draw(st.floats(max(least, -1e15), min(largest, 1e15)))
    labels = dict.fromkeys(needed_labels(term) or ("zone",), label)
    text = Text()
    text.add(term, value, labels)
    (family,) = text_string_to_metric_families(str(text))
    assert [(sample.labels, sample.value) for sample in family.samples] == [(labels, value)]
    if "\n" not in label and label.isprintable() and term != "meter_age":  # which is of other readings
        (track,) = tracks_of(str(text)).of(term)
        assert list(track.values) == [value]


def test_a_reading_that_is_not_there_has_no_line() -> None:
    """Law: null is not 0."""
    text = Text()
    text.add("temperature", None)
    assert str(text) == ""


@pytest.mark.parametrize("family", sorted(name.family for names in SOURCES.values() for name in names))
def test_a_series_without_the_labels_that_it_needs_is_left_out_and_named(family: str) -> None:
    """Law: of every name that is known, a line without any label gives a track that needs none, or is named."""
    _, name = BY_FAMILY[family]
    value = max(1.0, value_range(name.term)[0]) / name.scale
    found = tracks_of(f"# TYPE {family} gauge\n{family} {value}\n")
    for track in found.tracks:
        assert set(needed_labels(track.term)) <= track.labels.keys()
    assert found.tracks or found.left_out[0].startswith(f"{family}: no label for its ")


def test_a_value_that_is_no_reading_is_left_out_and_named() -> None:
    """Law: a thermal level is one of four, and a number that stands for none is none in any unit."""
    found = tracks_of(
        "inferometer_host_thermal_level -5\ninferometer_host_cores 2\n"
        'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0"} 9223372036854775794\n'
    )
    assert [track.term for track in found.tracks] == ["cores"]
    assert found.left_out == (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION: values that are no reading",
        "inferometer_host_thermal_level: values that are no reading",
    )


@pytest.mark.parametrize(
    "line",
    [
        "inferometer_host_cores 0",
        "inferometer_host_cores -8",
        "inferometer_host_speed_limit_ratio 41",
        'inferometer_host_cpu_hertz{which="highest"} 3.2e15',
        "node_cpu_scaling_frequency_hertz 0",
        "node_thermal_zone_temp 61000",
        "node_hwmon_temp_celsius -273.1",
        'node_cpu_seconds{cpu="0",mode="user"} -3',
        "node_memory_MemTotal_bytes -1",
        'DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1980000000',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0"} 2147483632',
    ],
)
def test_what_no_processor_can_show_is_left_out_and_named(line: str) -> None:
    """Law: counts, frequencies, shares and temperatures have the limits of what is built."""
    found = tracks_of(f"{line}\n")
    assert not found.tracks
    assert found.left_out == (f"{line.partition('{')[0].split()[0]}: values that are no reading",)


def test_processors_are_as_many_as_an_exporter_lists() -> None:
    """Law: unless it says itself how many there are, or lists none by itself."""
    typed = "# TYPE node_cpu_seconds_total counter\n"
    listed = typed + "".join(
        f'node_cpu_seconds_total{{cpu="{one}",mode="{mode}"}} 5\n' for one in "012" for mode in "ab"
    )
    assert only(tracks_of(listed), "cores") == [3.0]
    assert only(tracks_of(listed + "inferometer_host_cores 64\n"), "cores") == [64.0]
    assert not tracks_of(typed + 'node_cpu_seconds_total{mode="user"} 5\n').of("cores")


@pytest.mark.parametrize("watts", [-500, 140737488355328])
def test_a_power_that_no_machine_draws_is_left_out_and_named(watts: int) -> None:
    """Law: an exporter's readings have the limits of our own meters."""
    found = tracks_of(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0"}} {watts}\n')
    assert not found.tracks
    assert found.left_out == ("DCGM_FI_DEV_POWER_USAGE: values that are no reading",)


def test_this_machine_is_read_under_common_terms() -> None:
    """What every Linux and macOS machine shows, of a process that is there and of one that is not."""
    machine = LocalMachine(this_machine(), {"client": [os.getpid()], "engine": [2**22 + 1]})
    found = tracks_of(machine.text(), machine.text())
    for term in ("cpu_seconds", "memory_available", "memory_total", "received", "process_cpu", "process_rss"):
        assert found.of(term), term
    assert {track.labels["role"] for track in found.of("process_rss")} == {"client"}
    (cpu,) = found.of("cpu_seconds", mode="user")
    assert cpu.values[0] <= cpu.values[1]


def test_children_of_one_role_are_not_counted_for_another() -> None:
    """Law: an engine that this program started is the engine's, once."""
    parent = os.getppid()
    both = LocalMachine(this_machine(), {"engine": [os.getpid()], "client": [parent]}).text()
    alone = LocalMachine(this_machine(), {"client": [os.getpid()]}).text()
    engine = only(tracks_of(both), "process_rss", role="engine")[0]
    assert engine == pytest.approx(only(tracks_of(alone), "process_rss", role="client")[0], rel=0.2)


@given(
    st.lists(
        st.dictionaries(st.integers(0, 4), st.floats(0, 9), min_size=1, max_size=5), min_size=1, max_size=8
    )
)
def test_a_process_that_ends_takes_back_no_time(steps: list[dict[int, float]]) -> None:
    """Law: after each reading the total is what all processes, there or not, have spent as far as was read."""
    spent: dict[int, float] = {}
    role = RoleTime()
    for step in steps:
        for process, more in step.items():
            spent[process] = spent.get(process, 0.0) + more
        assert role.after({process: spent[process] for process in step}) == pytest.approx(sum(spent.values()))
    assert role.after({}) is None


def test_time_lost_to_waiting_is_the_kernels_total() -> None:
    """Documentation/accounting/psi.rst, in microseconds; what is no such line is passed over."""
    text = "some avg10=0.00 avg60=0.12 avg300=0.05 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"
    assert list(stalled(text)) == [("some", 1.5), ("full", 0.25)]
    assert list(stalled("some avg10=0.00 total=x\nnone total=3\n")) == []


def test_a_node_exporters_names_are_ours() -> None:
    """Counters are added over processors, swap is what is not free, and the clock is the machine's."""
    found = tracks_of((VECTORS / "node_exporter.txt").read_text())
    assert found.exporter == "node_exporter"
    assert only(found, "cpu_seconds", mode="user") == [78.0]
    assert only(found, "cpu_seconds", mode="idle") == [2011.0]
    assert only(found, "stalled_seconds", resource="memory", kind="some") == [1.5]
    assert only(found, "stalled_seconds", resource="memory", kind="full") == [0.25]
    assert only(found, "temperature", zone="0") == [61.0]
    assert only(found, "received", device="eth0") == [123456000.0]
    assert only(found, "swap_total") == [1e9]
    assert only(found, "clock") == [1750000000.5]


def test_a_dcgm_exporters_names_are_ours() -> None:
    """Units become bytes, shares, Hz and J; the bits of the reasons become reasons: 36 is power cap and heat."""
    found = tracks_of((VECTORS / "dcgm_exporter.txt").read_text())
    assert found.exporter == "dcgm-exporter"
    assert only(found, "accelerator_memory_used", device="0") == [70000.0 * (1 << 20)]
    assert only(found, "accelerator_busy", device="0") == pytest.approx([0.97])
    assert only(found, "accelerator_hertz", device="0") == [1.755e9]
    assert only(found, "power", meter="dcgm", scope="accelerator", device="0") == [512.25]
    assert only(found, "energy", device="0") == pytest.approx([98765432.1])
    reasons = {
        track.labels["reason"] for track in found.of("accelerator_throttled") if track.values[0] == 1.0
    }
    assert reasons == {"sw_power_cap", "sw_thermal"}


@given(
    st.dictionaries(st.sampled_from(["", "1", "2", "3"]), st.floats(1, 700), min_size=1),
    st.sampled_from(["GPU_I_ID", "pod", "container"]),
    st.integers(0, 255),
)
def test_a_gpu_is_one_however_often_it_is_listed(users: dict[str, float], label: str, reasons: int) -> None:
    """Law: instances of a divided GPU and pods on a GPU show the board's readings, which count once."""
    lines = []
    for number, (user, watts) in enumerate(users.items()):
        labels = f'gpu="0",UUID="GPU-a",{label}="{user}"'
        lines.append(f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {watts}\n")
        lines.append(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 80\n")
        bits = reasons if number == 0 else 0
        lines.append(f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{{labels}}} {bits}\n")
        lines.append(f"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{{labels}}} {bits}\n")
    found = tracks_of("".join(sorted(lines)))
    assert only(found, "power", device="0") == [max(users.values())]
    assert only(found, "accelerator_busy", device="0") == [0.8]
    assert only(found, "accelerator_reasons", device="0") == [reasons]


def test_gpus_of_one_number_on_two_hosts_are_two_and_so_are_those_after_an_exchange() -> None:
    """Law: a host name and a UUID tell GPUs apart, and a line without them is of the first."""

    def line(watts: int, **labels: str) -> str:
        given = ",".join(f'{name}="{value}"' for name, value in {"gpu": "0", **labels}.items())
        return f"DCGM_FI_DEV_POWER_USAGE{{{given}}} {watts}\n"

    def devices(*bodies: str) -> dict[str, list[float]]:
        return {one.labels["device"]: list(one.values) for one in tracks_of(*bodies).of("power")}

    assert devices(line(1, Hostname="n") + line(2, Hostname="m")) == {"n:0": [1.0], "m:0": [2.0]}
    assert devices(line(1, UUID="a"), line(2, UUID="b")) == {"0": [1.0], "0#2": [2.0]}
    assert devices(line(1, UUID="a"), line(2)) == {"0": [1.0, 2.0]}


def test_two_readings_of_one_zone_are_the_hotter_and_parts_of_a_sum_are_added() -> None:
    """Law: 45 and 47 degrees are no 92; the seconds of two processors are a sum."""
    body = (
        'node_thermal_zone_temp{type="a",zone="0"} 45\nnode_thermal_zone_temp{type="b",zone="0"} 47\n'
        "# TYPE node_cpu_seconds_total counter\n"
        'node_cpu_seconds_total{cpu="0",mode="user"} 4\nnode_cpu_seconds_total{cpu="1",mode="user"} 5\n'
    )
    assert only(tracks_of(body), "temperature") == [47.0]
    assert only(tracks_of(body), "cpu_seconds") == [9.0]


NO_THROTTLING = 0x1 | 0x2 | 0x100


@given(st.lists(st.integers(0, (1 << 50) - 1), min_size=1, max_size=5))
def test_each_bit_is_a_reason_but_those_that_are_none(readings: list[int]) -> None:
    """Law: a device is throttled in just the readings with a bit that is neither idle, nor chosen clocks, nor a display's."""
    found = tracks_of(*(f'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{gpu="1"}} {bits}\n' for bits in readings)).of(
        "accelerator_throttled"
    )
    slow = np.sum([track.values for track in found], axis=0)
    assert list(slow) == [(bits & ~NO_THROTTLING).bit_count() for bits in readings]


@pytest.mark.parametrize(
    ("vendor", "reasons"), [("nvidia", (*nvidia.REASONS, "unknown_0x800")), ("amd", amd.REASONS)]
)
def test_each_reason_of_a_vendor_is_read_as_it_was_given(vendor: Vendor, reasons: tuple[str, ...]) -> None:
    """Law: a reason that held in one of two readings has that share, and without any it is known that none held."""

    class Boards:
        """One board, slow in its first reading."""

        slow: tuple[str, ...] = reasons

        def read(self) -> tuple[AcceleratorState, ...]:
            """Its state."""
            state = AcceleratorState("0", vendor, throttle=self.slow)
            self.slow = ()
            return (state,)

        def close(self) -> None:
            """Nothing."""

    part, bodies = AcceleratorPart(Boards), []
    for _ in range(2):
        text = Text()
        part(text)
        bodies.append(str(text))
    found = {one.labels["reason"]: list(one.values) for one in tracks_of(*bodies).of("accelerator_throttled")}
    assert found == {reason: [1.0, 0.0] for reason in reasons}
    assert tracks_of(bodies[1]).of("accelerator_throttled")


def test_an_engines_endpoint_is_no_machine() -> None:
    """Law: where no name is known nothing is said."""
    assert (
        machine_tracks(store_of("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n"), 0)
        == []
    )


def test_times_are_on_the_runs_clock() -> None:
    """Law: a stamp is the scrape's, less the offset of the wall clock."""
    bodies = [at(second, f"node_memory_MemAvailable_bytes {second}\n") for second in (1, 3)]
    (found,) = machine_tracks(collect(bodies), START)
    (track,) = found.of("memory_available")
    assert list(track.times) == [1 * SECOND, 3 * SECOND]


@contextmanager
def serving(token: str | None = None, text: str = "x 1\n") -> Iterator[int]:
    with Agent("127.0.0.1", 0, lambda: text, token) as agent:
        thread = threading.Thread(target=agent.serve_forever)
        thread.start()
        try:
            yield agent.server_address[1]
        finally:
            agent.shutdown()
            thread.join()


def asked(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
    finally:
        connection.close()


def test_the_agent_serves_the_readings_and_its_time() -> None:
    """One page, in Prometheus' format, behind its clock."""
    with serving(text="inferometer_host_memory_available_bytes 5.0\n") as port:
        status, kind, body = asked(port)
        assert (status, kind) == (200, CONTENT_TYPE)
        assert only(tracks_of(body), "memory_available") == [5.0]
        assert tracks_of(body).of("clock")
        assert asked(port, "/other")[0] == 404
        assert asked(port, method="HEAD")[2] == ""
        assert asked(port, method="POST")[0] == 501


@pytest.mark.parametrize(
    ("given", "status"), [(None, 401), ("Bearer secret", 200), ("Bearer Secret", 401), ("secret", 401)]
)
def test_the_agent_shows_nothing_without_its_token(given: str | None, status: int) -> None:
    """Law: the exact token, or 401 and no reading."""
    with serving("secret") as port:
        found = asked(port, **({} if given is None else {"Authorization": given}))
        assert found[0] == status
        assert ("x 1" in found[2]) == (status == 200)


def test_the_agent_outlives_clients_that_say_nothing_or_rubbish() -> None:
    """More connections than it serves at a time, and bytes that are no request: the next client is served."""
    with serving() as port:
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        for one in silent:
            one.close()
        with socket.create_connection(("127.0.0.1", port)) as one:
            one.sendall(b"\x00\xff" * 100 + b"\r\n\r\n")
            one.recv(1 << 16)
        assert asked(port)[0] == 200


def test_the_agent_serves_a_whole_request_while_slow_ones_hold_all_places() -> None:
    """Law: connections whose heads are not whole, as many as there are places and more, shut nobody out."""
    with serving("secret") as port:
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(2 * MOST_REQUESTS)]
        try:
            for one in slow[-MOST_REQUESTS:]:
                one.sendall(b"GET /metrics HT")
            for _ in range(3):
                assert asked(port, Authorization="Bearer secret")[0] == 200
        finally:
            for one in slow:
                one.close()


@given(gaps=st.lists(st.floats(0, 2 * TIMEOUT_S), min_size=1, max_size=20))
def test_a_head_has_one_limit_of_time_however_its_bytes_come(gaps: list[float]) -> None:
    """Law: bytes are taken up to the instant that its beginning sets, and none behind it."""
    now = 0.0
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = TimedReader(ours, TIMEOUT_S, lambda: now)
        reader.begin()
        for gap in gaps:
            now += gap
            theirs.sendall(b"G")
            if now >= TIMEOUT_S:
                with pytest.raises(TimeoutError):
                    reader.read(1)
                return
            assert reader.read(1) == b"G"


def test_counters_are_called_so() -> None:
    """Law: a term is a counter in the text as in the table."""
    for one in OURS:
        text = Text()
        text.add(one.term, 1.0)
        assert (" counter\n" in str(text)) == (one.term in COUNTERS)


@dataclass
class Planted:
    """A meter that reads what it is told, or fails."""

    readings: list[tuple[PowerReading, ...] | MeterFailed]
    name: str = "planted"

    def read(self) -> tuple[PowerReading, ...]:
        """The next."""
        one = self.readings.pop(0)
        if isinstance(one, MeterFailed):
            raise one
        return one

    def close(self) -> None:
        """Nothing."""


def test_a_meter_that_fails_says_why_and_is_read_again() -> None:
    """Law: no reading is a reason in the record, and what comes back counts again."""
    reading = PowerReading(
        meter="planted",
        scope="accelerator",
        device="0",
        watts=40.0,
        joules=7.0,
        method="counter",
        wraps_at=9.0,
    )
    part = MeterPart(
        "x", lambda _: Planted([(reading,), MeterFailed("planted", "vanished", 'it said "no"'), (reading,)])
    )
    bodies = []
    for _ in range(3):
        text = Text()
        part(text)
        bodies.append(str(text))
    found = tracks_of(*bodies)
    (power,) = found.of("power", meter="planted", scope="accelerator", device="0", method="counter")
    assert [int(at) // SECOND for at in power.times] == [0, 2]
    assert only(found, "energy_range") == [9.0, 9.0]
    (failed,) = found.of("meter_failed")
    assert (failed.labels["code"], failed.labels["words"]) == ("vanished", 'planted: it said "no"')


SECRETS = ("hunter2", "secret-dir", "corp-host", "bobs-office", "127.0.0.1")


@pytest.mark.parametrize(
    "spec",
    [
        "command:/home/alice/secret-dir/read-meter --pin hunter2",
        f"command:{sys.executable} -c 'import sys; sys.exit(\"token=hunter2 at corp-host\")'",
        f"command:{sys.executable} -c 'print(\"hunter2\")'",
        "http://plug-in-bobs-office.invalid/hunter2",
        "http://127.0.0.1:9/hunter2",
    ],
)
def test_what_others_read_of_a_failing_meter_are_fixed_words(spec: str) -> None:
    """Law: paths, arguments, what a command said and names of hosts stay on the meter's machine, where each is told once."""
    told: list[str] = []
    (parts,) = opened([spec], Patience(20.0), told.append)
    body = ""
    for _ in range(2):
        text = Text()
        parts(text)
        body += str(text)
    assert "inferometer_host_power_meter_failed" in body or "meter_failed" in body
    assert not [one for one in SECRETS if one in body]
    assert len(told) == 1
    assert any(one in told[0] for one in SECRETS)


@pytest.mark.parametrize("code", get_args(FailureCode))
def test_every_code_of_a_failure_has_words_for_others(code: FailureCode) -> None:
    """Law: none falls back to what the meter said."""
    part = MeterPart("x", lambda _: Planted([MeterFailed("planted", code, "hunter2")]), tell=lambda _: None)
    text = Text()
    part(text)
    assert f'code="{code}"' in str(text)
    assert "hunter2" not in str(text)


def test_a_wall_meters_host_is_not_shown_to_others() -> None:
    """Law: its reading is, under a name that says nothing; other devices keep theirs."""
    for meter, device in (("http", "meter"), ("nvml", "plug-in-bobs-office")):
        reading = PowerReading(meter, "machine", "plug-in-bobs-office", 40.0)
        part = MeterPart("x", lambda _, reading=reading: Planted([(reading,)]), tell=lambda _: None)  # type: ignore[misc]
        text = Text()
        part(text)
        (power,) = tracks_of(str(text)).of("power")
        assert power.labels["device"] == device


QUICK = PowerReading("quick", "machine", "0", 5.0)
SLOW = PowerReading("slow", "machine", "0", 7.0, 11.0, "counter", 99.0)


class Held(Planted):
    """A meter that answers when it may, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__([])
        self.go, self.asked = threading.Event(), 0

    def read(self) -> tuple[PowerReading, ...]:
        """Its reading, later."""
        self.asked += 1
        assert self.go.wait(20.0)
        self.go.clear()
        return (SLOW,)


class Bench:
    """A quick meter and one that is held, read together at times of our own."""

    def __init__(self) -> None:
        self.held, self.now, self.bodies = Held(), 0.0, list[str]()
        self.patience = Patience(0.0)
        parts = [
            MeterPart("quick", lambda _: Planted([(QUICK,)] * 99)),
            MeterPart("slow", lambda _: self.held),
        ]
        names = {id(part): part.name for part in parts}
        self.read = SideBySide(parts, self.late, lambda one: names[id(one)], self.patience, lambda: self.now)

    def late(self, part: Part, found: Text) -> None:
        """What stands in a text for a part that has not answered."""
        assert isinstance(part, MeterPart)
        found.add("meter_failed", 1, {"meter": part.name, "code": "timeout", "words": "late"})

    def body(self, at_s: float, patience_s: float) -> None:
        """One text more, at a time and with a patience in s."""
        self.now, self.patience.seconds = at_s, patience_s
        text = Text()
        self.read(text)
        self.bodies.append(str(text))

    def let_go(self, at_s: float) -> None:
        """The reading that is held ends; the next is held again."""
        self.now = at_s
        (reading,) = self.read.under_way
        self.held.go.set()
        reading.result(20.0)


def test_a_meter_that_hangs_takes_no_reading_from_the_others() -> None:
    """Law: what an earlier text left behind is not waited for, however patient a text is, and not asked again."""
    bench = Bench()
    bench.body(0.0, 0.2)
    for second in range(1, 5):
        bench.body(second, 3600.0)
    found = tracks_of(*bench.bodies)
    assert only(found, "power", meter="quick") == [5.0] * 5
    (failed,) = found.of("meter_failed", meter="slow")
    assert [int(one) // SECOND for one in failed.times] == [second for second in range(5) if second >= LATE_S]
    assert bench.held.asked == 1
    bench.held.go.set()


@pytest.mark.parametrize("took", [0.75, LONGEST_OF_A_COUNTER_S, 1.5, 20.25])
def test_what_a_meter_reads_late_stands_at_the_time_at_which_it_was_read(took: float) -> None:
    """Law: in the middle of its reading, whichever text brings it; a counter only where that is its instant."""
    bench = Bench()
    bench.body(0.0, 0.2)
    bench.let_go(took)
    last = int(took) + 1
    bench.body(last, 0.0)
    found = tracks_of(*([bench.bodies[0]] + ["x 1\n"] * (last - 1) + [bench.bodies[1]]))
    (power,) = found.of("power", meter="slow")
    energy = next(iter(found.of("energy", meter="slow")), None)
    assert power.values[0] == 7.0
    assert power.times[0] == round(took / 2 * SECOND)
    assert (energy is not None) == (took <= LONGEST_OF_A_COUNTER_S)
    assert energy is None or energy.times[0] == power.times[0]
    assert not found.of("meter_age")


def test_a_text_that_waits_for_all_has_what_was_left_behind() -> None:
    """Law: nothing that a meter still brings within its limit of time is lost at the end of a run."""
    bench = Bench()
    bench.body(0.0, 0.2)
    bench.patience.for_all = True
    threading.Timer(0.05, bench.held.go.set).start()
    bench.body(1.0, 20.0)
    found = tracks_of(*bench.bodies)
    assert only(found, "power", meter="slow") == [7.0]


def test_a_state_of_an_accelerator_is_terms() -> None:
    """Law: what is known has a line in common units, what is not has none; each reason is there or not."""

    class Boards:
        """One board."""

        def read(self) -> tuple[AcceleratorState, ...]:
            """Its state."""
            return (
                AcceleratorState(
                    "0",
                    "nvidia",
                    "H100",
                    memory_used_bytes=5,
                    utilisation_percent=50.0,
                    throttle=("hw_thermal",),
                ),
            )

        def close(self) -> None:
            """Nothing."""

    text = Text()
    AcceleratorPart(Boards)(text)
    found = tracks_of(str(text))
    assert only(found, "accelerator", device="0", vendor="nvidia", name="H100") == [1.0]
    assert only(found, "accelerator_busy") == [0.5]
    assert not found.of("accelerator_hertz")
    assert {
        one.labels["reason"]: one.values[0] for one in found.of("accelerator_throttled") if one.values[0]
    } == {"hw_thermal": 1.0}


@pytest.mark.parametrize("spec", ["command:echo 'x", "http://[", "nonsense", "planted"])
def test_whatever_a_meter_meets_is_its_own_failure(spec: str) -> None:
    """Law: an error that no meter foresees is a reason in the record, and the readings of others are beside it."""

    def broken(name: str) -> Meter:
        if name == "planted":
            raise ZeroDivisionError("no such thing\x1b[2J")
        return open_meter(name)

    def no_library() -> Accelerators:
        raise RuntimeError("a driver's own error")

    text = Text()
    SideBySide([AcceleratorPart(no_library), MeterPart(spec, broken), lambda found: found.add("clock", 5.0)])(
        text
    )
    found = tracks_of(str(text))
    assert found.of("clock")
    failed = found.of("meter_failed")
    assert {one.labels["meter"] for one in failed} == {"accelerators", kind_of(spec)}
    assert all(one.labels["words"].isprintable() for one in failed)
