"""A closed loop is entered from its steady state and left in it: lead-in and lead-out, in virtual time and on a live server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, finish, only
from simulating import Nobody, simulated, timeless

from inferometer.documents.part import to_data
from inferometer.drive.pacer import Hit
from inferometer.drive.share import Assignment
from inferometer.drive.shares import share_of
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import PULSE, RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.measure.load import Span, Sweep, spans, within
from inferometer.measure.record import Record
from inferometer.measure.samples import Samples
from inferometer.measure.throughput import of_load, output_tok_s
from inferometer.plan.lead_in import LEAD_PER_SLOT
from inferometer.plan.parse import build
from inferometer.run.evaluate import RunResult, recover
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

SLOTS = 16
FLAGS: dict[str, object] = {
    "--input-tokens": "uniform(60,300)",
    "--output-tokens": "uniform(8,40)",
    "--concurrency": str(SLOTS),
    "--warmup": "20",
}
HEADLINES = (("ttft_ms", "mean"), ("ttft_ms", "p50"), ("ttft_ms", "p99"), ("e2e_ms", "mean"))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    columns = [
        "index",
        "phase",
        "worker",
        "cycle",
        "outcome",
        "t_submit",
        "t_end",
        "output_tokens_asked",
        "session",
        "turn",
    ]
    return list(read_table(RunFolder(folder).record, RECORD).select(columns).to_pylist())


def of(rows: list[dict[str, Any]], phase: Phase) -> list[dict[str, Any]]:
    return [row for row in rows if row["phase"] == phase]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A simulated closed loop of 200 requests."""
    return simulated(tmp_path_factory.mktemp("runs"), FLAGS | {"--requests": "200"})


def record_of(folder: Path) -> Record:
    tables = read_table(RunFolder(folder).record, RECORD), read_table(RunFolder(folder).pulse, PULSE)
    return Record.from_tables(*tables, timestamp_source="virtual")


@pytest.mark.parametrize("slots", [16, 64])
def test_the_headline_of_a_closed_loop_does_not_depend_on_the_number_of_requests(
    slots: int, tmp_path: Path
) -> None:
    """The same engine: TTFT and latency of 1,000 and of 4,000 requests agree within their intervals, and within a fifth."""
    told: dict[int, Any] = {}
    for count in (1000, 4000):
        flags = FLAGS | {"--concurrency": str(slots), "--requests": str(count), "--seed": str(count)}
        told[count] = to_data(simulated(tmp_path, flags).summary)["metrics"]
    for metric, statistic in HEADLINES:
        one, other = (told[count][metric] for count in (1000, 4000))
        assert abs(one[statistic] / other[statistic] - 1) < 0.2, (metric, statistic)
        spans = one["ci95"].get(statistic), other["ci95"].get(statistic)
        if None not in spans:
            assert max(span[0] for span in spans) <= min(span[1] for span in spans), (metric, statistic)


def test_answers_of_one_length_do_not_keep_the_slots_in_lockstep(tmp_path: Path) -> None:
    """Slots that start together would end together, and each of their prompts would wait for all others'. P99 TTFT then is that
    of the first wave, as a cold start shows it: here it is less than half of that."""
    flags = FLAGS | {"--output-tokens": "40", "--requests": "300", "--warmup": "0"}
    entered = simulated(tmp_path, flags).summary
    plan = build(None, flags)
    cold = plan.model_copy(update={"load": plan.load.model_copy(update={"cold_start": True})})
    burst = simulate(cold, choose(None, ()), tmp_path, Nobody()).summary
    assert entered.metrics.ttft_ms is not None
    assert burst.metrics.ttft_ms is not None
    assert (burst.requests.lead_in, burst.requests.lead_out) == (0, 0)
    assert entered.metrics.ttft_ms.p99 < burst.metrics.ttft_ms.p99 / 2


def test_measured_requests_meet_full_slots_from_their_beginning_to_their_end(result: RunResult) -> None:
    """As many are measured as asked for. While any of them is in flight all slots are taken, but for the client's reaction."""
    record = record_of(result.folder)
    sweep = Sweep(record)
    span = Span(int(record.t_send.values[record.measured].min()), int(record.t_end[record.measured].max()))
    assert int(record.measured.sum()) == 200
    assert sweep.maximum() == SLOTS
    mean = sweep.mean(span)
    assert mean is not None
    assert mean > 0.98 * SLOTS
    lead_in = record.lead & (record.cycle == 0)
    assert (record.t_submit.values[lead_in] <= span.start).all()
    assert (record.t_submit.values[record.lead & ~lead_in] < span.end).all()
    requests = result.summary.requests
    assert requests.lead_in == int(lead_in.sum()) == LEAD_PER_SLOT * SLOTS
    assert requests.lead_out == int(record.lead.sum()) - requests.lead_in > 0
    assert (requests.sent, requests.completed, requests.warmup.sent) == (200, 200, 20)


def test_the_lead_in_is_of_the_measured_workload_and_no_prompt_recurs(result: RunResult) -> None:
    """Its rows stand before the measured ones. The first answers of the slots are cut, each to another share; no two requests
    begin alike, those of the lead-out neither, so that no prefix cache knows one of them."""
    schedule = Schedule(result.folder / "requests.arrow").table.to_pylist()
    rows = [row for row in schedule if row["phase"] == Phase.LEAD]
    assert [row["index"] for row in rows] == list(range(20, 20 + LEAD_PER_SLOT * SLOTS))
    first = [row["output_tokens_asked"] for row in rows[:SLOTS]]
    assert all(asked <= max(2, 40 * (at + 1) / SLOTS) for at, asked in enumerate(first))
    assert all(8 <= row["output_tokens_asked"] <= 40 for row in rows[SLOTS:])
    share = share_of(Schedule(result.folder / "requests.arrow"), Assignment(Phase.MEASURE, SLOTS))
    sent = read_table(RunFolder(result.folder).record, RECORD).to_pylist()
    hits = [Hit(row["index"], row["cycle"], 0) for row in sent if row["phase"] in (Phase.MEASURE, Phase.LEAD)]
    assert len({share.body(hit) for hit in hits}) == len(hits) > 230


def test_nothing_of_the_lead_in_is_a_sample_or_warm_up_and_its_tokens_count_in_throughput(
    result: RunResult,
) -> None:
    """Output tokens per second of the steady span are those of all requests; samples are the measured requests."""
    record = record_of(result.folder)
    samples = Samples(record, streamed=True)
    assert len(samples) == 200
    assert samples.around is not None
    assert len(samples.around) == int(record.lead.sum())
    at, weights = of_load(samples, output_tok_s)
    span = spans(record, Sweep(record), SLOTS, 0.0).steady
    assert span is not None
    inside = float(weights[within(at, span)].sum()) / span.seconds
    assert result.summary.throughput.output_tok_s == pytest.approx(inside)
    assert inside > float(samples.arrival_tokens[within(samples.arrival_ns, span)].sum()) / span.seconds


def test_a_record_with_a_lead_in_is_recovered_as_it_was(result: RunResult) -> None:
    """Sealed and measured again from the journal, it gives the same summary."""
    assert timeless(recover(RunFolder(result.folder)).summary) == timeless(result.summary)


def test_conversations_are_led_in_by_one_for_each_slot(tmp_path: Path) -> None:
    """Its turns are recorded as one conversation; the measured conversations are the first after it in each slot."""
    flags = FLAGS | {"--turns": "3", "--concurrency": "4", "--requests": "30", "--warmup": "6"}
    rows = rows_of(simulated(tmp_path, flags).folder)
    lead = [row for row in of(rows, Phase.LEAD) if row["cycle"] == 0]
    assert {(row["session"], row["turn"]) for row in lead} == {
        (at, turn) for at in range(4) for turn in range(3)
    }
    assert len(of(rows, Phase.MEASURE)) == 30
    begin = min(row["t_submit"] for row in of(rows, Phase.MEASURE))
    done = [row for row in lead if row["t_end"] <= begin]
    assert any(row["turn"] == 2 for row in done)


@pytest.mark.parametrize("load", [["--requests", "40"], ["--duration", "1"]])
def test_a_live_run_is_led_in_and_its_plan_can_be_carried_out_again(load: list[str], tmp_path: Path) -> None:
    """Two workers, by count and by time: a duration counts from the first measured request, there is a lead-out, and it is of
    no more requests than were measured. `rerun` measures as much again. How soon after the last measured end a worker stops is
    for the machine to say: that it stops there is held in virtual time (tests/drive/test_pacer.py)."""
    flags = [*SMALL, "--concurrency", "4", "--warmup", "4", "--workers", "2", *load]
    finish("run", *flags, "--out", str(tmp_path / "one"))
    finish("rerun", str(only(tmp_path / "one")), "--out", str(tmp_path / "two"))
    for out in ("one", "two"):
        rows = rows_of(only(tmp_path / out))
        measured, lead = of(rows, Phase.MEASURE), of(rows, Phase.LEAD)
        assert len([row for row in lead if row["cycle"] == 0]) == 4 * LEAD_PER_SLOT
        assert {row["outcome"] for row in rows} == {"ok"}
        begin, last = (pick(row["t_submit"] for row in measured) for pick in (min, max))
        if load[0] == "--requests":
            assert len(measured) == 40
        else:
            assert 0.5e9 < last - begin < 2e9
        assert 0 < len([row for row in lead if row["cycle"]]) <= len(measured)


def test_a_workload_file_leads_in_with_the_requests_of_its_warm_up(tmp_path: Path) -> None:
    """With other nonces, as often as it takes. A file without a warm-up leads in with its measured requests, but not without
    nonces: then the cache would know them."""
    for warmup, more, expected in ((3, [], 8), (0, [], 8), (0, ["--repeatable-prompts"], 0)):
        made, out = tmp_path / f"made{warmup}{more}", tmp_path / f"ran{warmup}{more}"
        counts = ["--requests", "12", "--warmup", str(warmup), "--concurrency", "4"]
        assert finish("workload", "make", *SMALL, *counts, *more, "--out", str(made))[0] == 0
        file = made / "workload.jsonl"
        _, _, said = finish("simulate", "--workload-file", str(file), "--concurrency", "4", "--out", str(out))
        assert out.exists(), said
        lead = [row for row in of(rows_of(only(out)), Phase.LEAD) if row["cycle"] == 0]
        assert len(lead) == expected


@pytest.mark.parametrize(("user_rate", "status"), [("0.2", "na"), ("1.5", "pass"), ("50", "unsure")])
def test_users_who_mostly_wait_are_a_closed_loop_without_a_lead_in(
    user_rate: str, status: str, tmp_path: Path
) -> None:
    """Law: users who all begin at once, and wait, meet an idle server together, and the run is not VALID if that moves TTFT."""
    users: dict[str, object] = {"--users": "50", "--user-rate": user_rate, "--requests": "1000"}
    result = simulated(tmp_path, users)
    (check,) = [check for check in result.summary.verdict.checks if check.code == "first_wave"]
    assert check.status == status
