"""The round trip to the server before, during and after a run, and TTFT less the shortest beside TTFT as measured."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import COMMAND, SMALL, finish, only, run, start, wait_for_answers
from delayed_link import SERVER, delayed_link
from serving import serving

from inferometer.documents.part import from_data
from inferometer.documents.run_facts import RoundTrips
from inferometer.drive import probe as probing
from inferometer.plan.schema import Plan
from inferometer.run.round_trips import REQUESTS, RoundTripAccount
from inferometer.run.target import Target

LOAD = ["--duration", "2", "--concurrency", "2", "--warmup", "4", *SMALL]


def trips_of(summary: dict[str, Any]) -> RoundTrips:
    return from_data(summary["round_trips"], RoundTrips)


def account(port: int, **target: Any) -> RoundTripAccount:
    """Of a plan for a server on this port, which need not speak HTTP."""
    plan = Plan.model_validate({"target": {"url": f"http://127.0.0.1:{port}", **target}})
    found = Target(
        "m", ["m"], None, "text", "max_tokens", endpoint=probing.endpoint(f"http://127.0.0.1:{port}"),
        family=socket.AF_INET, address=("127.0.0.1", port),
    )  # fmt: skip
    return RoundTripAccount(plan, found, None)


def ttft_ms(folder: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Of each measured request, by its row of the record."""
    rows = pq.read_table(folder / "requests.parquet").to_pylist()
    return np.array(
        [
            (row["event_ns"][row["first_visible"]] - row["t_submit"]) / 1e6
            for row in rows
            if row["phase"] == 1 and row["outcome"] == "ok"
        ]
    )


@pytest.fixture(scope="module")
def adjusted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with --subtract-rtt."""
    out = tmp_path_factory.mktemp("runs")
    with serving() as port:
        code, _, stderr = run("run", "--url", f"http://127.0.0.1:{port}", *LOAD, "--subtract-rtt", out=out)
    assert code in (0, 3, 4), stderr
    return only(out)


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "summary.json").read_text()))


def test_round_trips_are_measured_before_during_and_after(adjusted: Path) -> None:
    """Ten handshakes on either side and one a second in between; and the request that finds the models."""
    trips = trips_of(summary_of(adjusted))
    assert trips.timed_by == ("kernel" if sys.platform == "linux" else "client")
    assert trips.during is not None
    assert trips.after is not None
    assert (trips.before.count, trips.after.count) == (10, 10)
    assert trips.during.count >= 1
    assert (trips.before.failed, trips.during.failed, trips.after.failed) == (0, 0, 0)
    assert trips.request == "GET /v1/models"
    assert trips.request_before is not None
    assert trips.request_after is not None
    assert (trips.request_before.count, trips.request_after.count) == (REQUESTS, REQUESTS)
    facts = json.loads((adjusted / "run.json").read_text())
    assert from_data(facts["round_trips"], RoundTrips) == trips


def test_ttft_stays_as_measured_and_stands_beside_the_adjusted_one(adjusted: Path) -> None:
    """Law: the record and every figure made of it are those of a run without the flag; both figures are shown."""
    summary = summary_of(adjusted)
    measured, less = summary["metrics"]["ttft_ms"], summary["ttft_less_round_trip"]
    times = ttft_ms(adjusted)
    assert measured["p50"] == pytest.approx(np.quantile(times, 0.5))
    assert measured["max"] == pytest.approx(times.max())
    trip = trips_of(summary).least_ms
    assert trip is not None
    assert less["round_trip_ms"] == trip
    assert less["ttft_ms"]["p50"] == pytest.approx(measured["p50"] - trip)
    assert less["below_zero"] == int((times < trip).sum())
    for report in ("report.md", "report.html"):
        text = (adjusted / report).read_text()
        assert "TTFT less the round trip" in text
        assert "as measured" in text


def test_a_report_that_is_made_again_says_the_same(adjusted: Path) -> None:
    """From the folder alone, without a server; the console has both figures."""
    before = (adjusted / "summary.json").read_bytes()
    _, stdout, _ = finish("report", str(adjusted))
    assert (adjusted / "summary.json").read_bytes() == before
    assert "TTFT less the round trip" in " ".join(stdout.split())


def test_without_the_flag_round_trips_are_told_and_nothing_is_subtracted(tmp_path: Path) -> None:
    """The embedded server, over loopback."""
    code, stdout, stderr = run("run", "--requests", "20", "--warmup", "4", *SMALL, "--json", out=tmp_path)
    assert code in (0, 3, 4), stderr
    summary = json.loads(stdout)
    assert trips_of(summary).before.count == 10
    assert summary["ttft_less_round_trip"] is None
    assert "no adjustment was applied" in (only(tmp_path) / "report.md").read_text()
    assert "subtract_rtt" not in (only(tmp_path) / "plan.json").read_text()


def test_a_server_that_is_gone_at_the_end_costs_its_round_trips_alone() -> None:
    """In words, and without a request into nothing."""
    with serving() as port:
        way = account(port)
        assert way.before().before.count == 10
        with way.during():
            pass
    trips = way.after(interrupted=False)
    assert trips is not None
    assert trips.after is not None
    assert (trips.after.count, trips.after.failed) == (0, 1)
    assert "refused" in (trips.after.problem or "").lower()
    assert trips.request_after is None
    assert trips.least_ms == trips.before.least_ms


def test_nobody_who_ended_a_run_waits_for_its_round_trips() -> None:
    """What is known by then is kept."""
    with serving() as port:
        way = account(port)
        before = way.before()
        assert way.after(interrupted=True) == before


def test_a_server_without_a_cheap_request_still_has_handshakes() -> None:
    """A gateway without a listing: the words say what it answered."""
    with socket.create_server(("127.0.0.1", 0)) as sock:

        def refuse() -> None:
            while True:
                try:
                    connection, _ = sock.accept()
                except OSError:
                    return
                with connection:
                    if connection.recv(65_536):
                        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=refuse, daemon=True).start()
        trips = account(sock.getsockname()[1]).before()
        sock.shutdown(socket.SHUT_RDWR)
    assert trips.before.count == 10
    assert trips.request_before is not None
    assert (trips.request_before.count, trips.request_before.failed) == (0, 1)
    assert trips.request_before.problem == "what /v1/models answers is 404"


def test_what_was_known_before_the_load_outlives_the_process(tmp_path: Path) -> None:
    """Law: nothing measured is lost. A run that was killed has its round trips of before, and `recover` shows them."""
    load = ["--duration", "60", "--concurrency", "2", "--warmup", "0"]
    process = start("run", *load, *SMALL, "--quiet", out=tmp_path)
    folder = wait_for_answers(process, tmp_path, 5)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    code, _, stderr = finish("recover", str(folder))
    assert code == 130, stderr
    trips = trips_of(summary_of(folder))
    assert (trips.before.count, trips.during, trips.after) == (10, None, None)


def test_the_round_trip_of_a_slow_way_is_seen_and_subtracted(tmp_path: Path) -> None:
    """Behind 12 ms there and 7 back: no handshake and no TTFT can be shorter than 19, and what is left of TTFT is the server's.
    Only lower bounds are known: the relay and the machine add to them."""
    with delayed_link(0.012, 0.007) as link:
        server = subprocess.Popen(
            [*link.server, *COMMAND, "serve", "--host", SERVER, "--allow-remote", "--port", "8731"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            assert server.stdout is not None
            server.stdout.readline()
            url = ["--url", f"http://{SERVER}:8731", "--boundary", "gateway", "--subtract-rtt", "--quiet"]
            command = [*link.client, *COMMAND, "run", *url, *LOAD, "--out", str(tmp_path)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        finally:
            server.terminate()
            server.communicate(timeout=30)
    assert done.returncode in (0, 3, 4), done.stderr
    summary = summary_of(only(tmp_path))
    trips = trips_of(summary)
    for one in (trips.before, trips.during, trips.after, trips.request_before, trips.request_after):
        assert one is not None
        assert one.least_ms is not None
        assert one.least_ms >= 19.0
    measured, less = summary["metrics"]["ttft_ms"], summary["ttft_less_round_trip"]
    assert measured["min"] >= 19.0
    assert less["round_trip_ms"] >= 19.0
    assert less["ttft_ms"]["min"] == pytest.approx(measured["min"] - less["round_trip_ms"])
    assert measured["p50"] == pytest.approx(np.quantile(ttft_ms(only(tmp_path)), 0.5))
