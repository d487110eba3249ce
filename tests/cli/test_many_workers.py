"""Any number of workers is one load: what arrives, as the server saw it, does not tell how many sent it.

Counts are taken in bins much longer than the noise of a scheduler, and limits are generous: the seeds are fixed, so that the
instants due are the same each time, and a load that is not the one asked for (workers that send in step, say) is far outside.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import only, run
from numpy.typing import NDArray

from inferometer.drive.pacer import deal, slots_of
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.plan.arrivals import instants
from inferometer.plan.schema import Load

RATE, COUNT = 100.0, 400
BIN_S = 0.05
ALPHA = 1e-4
Instants = NDArray[np.int64]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The reference server as a process of its own: 5 tokens take 50 ms."""
    flags = [
        *("--set", "prefill_base=1ms"),
        *("--set", "prefill_per_token=0us"),
        *("--set", "step_base=10ms"),
        *("--set", "jitter=0"),
    ]
    command = [sys.executable, "-m", "inferometer.server", "--until-stdin-closes", *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
        process.communicate(timeout=30)


def seen_by(
    server: str, *arguments: str, out: Path
) -> tuple[list[dict[str, Any]], dict[str, list[Any]], Schedule]:
    """Measure the server: its own record of the streamed requests, ours, and the schedule."""
    truth = f"{server}/inferometer/truth"
    with urllib.request.urlopen(urllib.request.Request(truth, method="DELETE"), timeout=30):
        pass
    flags = ["--warmup", "0", "--input-tokens", "20", "--output-tokens", "5", "--quiet"]
    run("run", "--url", server, *arguments, *flags, out=out)
    with urllib.request.urlopen(truth, timeout=30) as response:
        rows = [json.loads(line) for line in response.read().splitlines()]
    folder = RunFolder.open(only(out))
    record = (
        read_table(folder.record, RECORD)
        .select(["index", "phase", "worker", "t_intended", "outcome"])
        .to_pydict()
    )
    return [row for row in rows if row["stream"]], record, Schedule(folder.schedule)


def counts(at_ns: Instants, start: int, count: int = int(COUNT / RATE / BIN_S)) -> NDArray[np.int64]:
    """Arrivals in bins of BIN_S from `start` on."""
    edges = start + np.arange(count + 1) * int(BIN_S * 1e9)
    return np.histogram(at_ns, edges)[0]


def dispersion(at_ns: Instants, start: int) -> float:
    """Variance over mean of the counts: 1 for a Poisson process, with a standard deviation of sqrt(2 / (bins - 1))."""
    found = counts(at_ns, start)
    return float(found.var(ddof=1) / found.mean())


def distance_from_exponential(at_ns: Instants) -> float:
    """Kolmogorov and Smirnov's D of the gaps against an exponential distribution of mean 1 / RATE."""
    gaps = np.sort(np.diff(np.sort(at_ns)) / 1e9 * RATE)
    n, expected = len(gaps), 1 - np.exp(-gaps)
    steps = np.arange(n + 1) / n
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))


def is_poisson(at_ns: Instants, start: int) -> bool:
    """Does neither the dispersion (4.5 standard deviations) nor the gaps (KS at ALPHA) contradict a Poisson process?"""
    bins = COUNT / RATE / BIN_S
    furthest = math.sqrt(-math.log(ALPHA / 2) / 2 / (len(at_ns) - 1))
    spread = abs(dispersion(at_ns, start) - 1) <= 4.5 * math.sqrt(2 / (bins - 1))
    return spread and distance_from_exponential(at_ns) <= furthest


def drawn(seed: int, rate: float, count: int, **more: Any) -> Instants:
    load = Load.model_validate({"model": "open", "rate": rate, "requests": count, **more})
    return instants(load, seed, count, None)


def test_workers_in_step_would_be_found_out() -> None:
    """Law: the laws below can fail: two workers that draw from one seed, each at half the rate, are no Poisson process."""
    for seed in range(20):
        assert is_poisson(drawn(seed, RATE, COUNT), 0)
        half = drawn(seed, RATE / 2, COUNT // 2)
        assert not is_poisson(np.sort(np.concatenate((half, half + 1_000))), 0)


@pytest.mark.parametrize(
    ("workers", "arrival"), [(1, "poisson"), (2, "poisson"), (8, "poisson"), (8, "gamma"), (2, "constant")]
)
def test_an_open_loop_is_one_process_however_many_workers_send_it(
    workers: int, arrival: str, server: str, tmp_path: Path
) -> None:
    """Law: the instants due are those drawn for one worker, anchored once, and none arrives before it is due; where the machine
    held nobody up, the server counts what is due, and a Poisson process is one at the server too.

    An arrival that is late over the edge of a bin counts in the next one, and the burstier the process, the more arrivals there
    are in a bin: the tolerance is relative to the dispersion of what is due. The three processes stay far apart in it."""
    flags = ["--rate", str(RATE), "--requests", str(COUNT), "--seed", "5", "--workers", str(workers)]
    flags += ["--burstiness", "0.5"] if arrival == "gamma" else ["--arrival", arrival]
    due = drawn(5, RATE, COUNT, arrival=arrival, burstiness=0.5 if arrival == "gamma" else 1)
    for attempt in range(3):
        truth, record, schedule = seen_by(server, *flags, out=tmp_path / str(attempt))
        assert schedule.table["due_ns"].to_pylist() == due.tolist()
        assert sorted(record["index"]) == list(range(COUNT))
        starts = {at - int(due[row]) for row, at in zip(record["index"], record["t_intended"], strict=True)}
        assert len(starts) == 1
        assert Counter(record["worker"]) == {one: len(range(one, COUNT, workers)) for one in range(workers)}
        (start,) = starts
        arrived = np.sort(np.array([row["received_ns"] for row in truth], np.int64))
        assert len(arrived) == COUNT
        late = np.sort(arrived - due - start)
        assert late[0] >= 0
        if late[-1] < BIN_S * 1e9 and late[int(COUNT * 0.99)] < BIN_S * 1e9 / 5:
            break
    else:
        pytest.skip("the machine is too busy to keep any load: three runs were held up for longer than a bin")
    bursts = dispersion(due, 0)
    assert abs(dispersion(arrived, start) - bursts) < 0.3 * max(1.0, bursts)
    if arrival == "poisson":
        assert is_poisson(arrived, start)


@pytest.mark.parametrize(("slots", "workers"), [(5, 2), (3, 8), (8, 8)])
def test_a_closed_loop_holds_its_slots_over_all_workers(
    slots: int, workers: int, server: str, tmp_path: Path
) -> None:
    """Law: the server never sees more than C in flight, sees C, and C nearly always; workers share slots and requests."""
    n = 25 * slots + 1
    flags = ["--concurrency", str(slots), "--requests", str(n), "--workers", str(workers)]
    truth, record, _ = seen_by(server, *flags, out=tmp_path)
    assert set(record["outcome"]) == {"ok"}
    assert record["phase"].count(Phase.MEASURE) == n
    assert len(truth) == len(record["phase"])
    changes = sorted([(row["received_ns"], 1) for row in truth] + [(row["ended_ns"], -1) for row in truth])
    at, held = np.array([time for time, _ in changes]), np.cumsum([change for _, change in changes])
    assert held.max() == slots
    full = at <= max(row["received_ns"] for row in truth)
    lasting = np.diff(at[full])
    assert (held[full][:-1] * lasting).sum() / lasting.sum() > slots / 2
    shares = Counter(
        worker
        for worker, phase in zip(record["worker"], record["phase"], strict=True)
        if phase == Phase.MEASURE
    )
    for worker in range(workers):
        assert shares[worker] == len(deal(n, worker, workers, slots))
        assert abs(shares[worker] - n * slots_of(worker, workers, slots) / slots) < 1
