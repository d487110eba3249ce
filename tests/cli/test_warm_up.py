"""The warm-up as runs carry it out: its volume, its probes, what it leaves in the server's cache, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inferometer.calibration.certificate import NO_CERTIFICATE
from inferometer.documents.summary import WarmUpCount, WarmUpVolume
from inferometer.drive.progress_counters import Progress
from inferometer.errors import PlanError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.plan import saved
from inferometer.plan.parse import build
from inferometer.run.conduct import conduct
from inferometer.run.evaluate import RunResult, evaluate, recover
from inferometer.run.simulate import simulate
from inferometer.server.embedded import Embedded
from inferometer.simulation.engine import choose

SMALL: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "5", "--requests": "8"}


class Nobody:
    """A Ui that tells nobody."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


def test_a_reference_server_that_runs_already_is_measured_and_goes_on_running(tmp_path: Path) -> None:
    """Two runs find their requests in one server's log; neither ends it, and both plans name no server."""
    with Embedded(tmp_path / "server.txt") as server:
        for _ in range(2):
            finding = conduct(
                build(None, SMALL | {"--warmup": "2"}),
                tmp_path / "runs",
                Nobody(),
                certificate=NO_CERTIFICATE,
                embedded=server,
            )
            assert finding.summary.requests.completed == 8
            assert saved.read(RunFolder.open(finding.folder).plan).target.url is None
            assert str(finding.summary.sut.software).endswith("embedded reference server")
        assert len(server.truth().splitlines()) >= 2 * (8 + 2)


FLAGS: dict[str, object] = {
    "--input-tokens": "20", "--output-tokens": "uniform(3,9)", "--seed": "5", "--concurrency": "4", "--requests": "40",
    "--warmup": "10",
}  # fmt: skip


def simulated(out: Path, flags: dict[str, object], *settings: str, file: Path | None = None) -> RunResult:
    """One simulation."""
    return simulate(build(file, flags), choose(None, settings), out, Nobody())


def test_a_warm_up_goes_on_until_its_tokens_are_there_and_three_probes_agree(tmp_path: Path) -> None:
    """Volume, drain, and a simulated engine without jitter: identical probes take equally long, so three are enough."""
    finding = simulated(tmp_path, FLAGS | {"--warmup-tokens": "200", "--warmup-probes": "12"}, "jitter=0")
    warm = finding.summary.warm_up
    assert (warm.asked, warm.reached, warm.drained) == (WarmUpVolume(10, 200), True, True)
    assert (warm.output_tokens or 0) >= 200
    assert warm.completed == warm.requests >= 10
    probes = warm.probes
    assert (probes.stable, len(probes.after_ms)) == (True, 3)
    assert probes.variation is not None
    assert probes.variation < 0.1
    assert finding.summary.requests.sent == 40
    assert finding.summary.requests.warmup == WarmUpCount(warm.requests, warm.completed)


def test_the_measured_requests_do_not_depend_on_the_warm_up(tmp_path: Path) -> None:
    """Whatever goes before, the same requests are measured, at the same instants from the start on."""
    fingerprints = {
        simulated(tmp_path, FLAGS | more).summary.workload.fingerprint
        for more in ({}, {"--warmup": "0"}, {"--warmup-tokens": "500"}, {"--warmup-probes": "3"})
    }
    assert len(fingerprints) == 1


def test_probes_ask_for_the_same_lengths_and_share_no_beginning(tmp_path: Path) -> None:
    """As bytes: one length asked each way, a nonce in every one, no two alike; one at a time, before and behind the warm-up."""
    finding = simulated(tmp_path, FLAGS | {"--warmup-probes": "5"}, "prefix_caching=true", "block_tokens=1")
    schedule = Schedule(RunFolder.open(finding.folder).schedule).table
    probes = [row for row in schedule.to_pylist() if row["phase"] == Phase.PROBE]
    assert len(probes) == 6
    assert len({(row["input_tokens_asked"], row["output_tokens_asked"]) for row in probes}) == 1
    nonces = {
        row["body"][row["nonce_at"] : row["nonce_at"] + row["nonce_len"]] for row in schedule.to_pylist()
    }
    assert len(nonces) == len(schedule)
    record = read_table(RunFolder.open(finding.folder).record, RECORD).to_pylist()
    sent = sorted((row for row in record if row["phase"] == Phase.PROBE), key=lambda row: row["t_taken"])
    warm = [row for row in record if row["phase"] == Phase.WARMUP]
    assert sent[0]["t_end"] <= min(row["t_taken"] for row in warm)
    for row in sent[1:]:
        alone = [one for one in record if one is not row]
        assert all(one["t_end"] <= row["t_taken"] or one["t_taken"] >= row["t_end"] for one in alone)
        assert row["t_taken"] >= max(one["t_end"] for one in warm)


def test_answers_shorter_than_asked_are_made_up_for_with_further_requests(tmp_path: Path) -> None:
    """One token an answer: the same rows go round again with other nonces, until the tokens are there."""
    plan = build(None, FLAGS | {"--warmup-tokens": "60"})
    lengths = dict.fromkeys(range(200), (20, 1))
    finding = simulate(plan, choose(None, ()), tmp_path, Nobody(), lengths)
    warm = finding.summary.warm_up
    assert warm.reached
    assert 60 <= (warm.output_tokens or 0) == warm.completed <= 66
    record = read_table(RunFolder.open(finding.folder).record, RECORD).to_pylist()
    cycles = [row["cycle"] for row in record if row["phase"] == Phase.WARMUP]
    assert max(cycles) > 0
    assert {row["cycle"] for row in record if row["phase"] == Phase.MEASURE} == {0}


def test_a_volume_out_of_reach_ends_and_is_told(tmp_path: Path) -> None:
    """No endless warm-up: the run is measured all the same, and check and report say what is missing."""
    plan = build(None, FLAGS | {"--output-tokens": "50", "--warmup-tokens": "500", "--warmup-probes": "4"})
    # Of 50 tokens asked for one comes, but of every second probe, which is a row behind the ten of the warm-up.
    lengths = {row: (20, 40 if row > 10 and row % 2 else 1) for row in range(200)}
    finding = simulate(plan, choose(None, ()), tmp_path, Nobody(), lengths)
    warm = finding.summary.warm_up
    assert (warm.reached, warm.probes.stable, len(warm.probes.after_ms)) == (False, False, 4)
    assert warm.requests == 100
    assert finding.summary.requests.sent == 40
    (check,) = (one for one in finding.summary.verdict.checks if one.code == "warmup")
    assert check.status == "note"
    assert "was not reached" in check.message
    assert "had not stabilised" in check.message
    assert "not reached" in (finding.folder / "report.md").read_text()


SHARED = """
load: {concurrency: 1, requests: 30, warmup: 2, warmup_prefixes: %s}
workload:
  classes:
    - {name: a, input_tokens: 20, output_tokens: 2, shared_prefix: {tokens: 64, groups: 3}}
    - {name: b, input_tokens: 20, output_tokens: 2, shared_prefix: {tokens: 96, share: 0.5}}
"""
OWN = """
load: {concurrency: 1, requests: 6, warmup: 2, warmup_prefixes: %s}
workload: {prompts: PROMPTS, output_tokens: 2}
"""
STANDARD = """
load: {concurrency: 1, requests: 6, warmup: 2, warmup_prefixes: %s}
workload: {name: code-completion, output_tokens: 2, input_tokens: 80}
"""
TURNS = """
load: {concurrency: 1, requests: 12, warmup: 2, warmup_prefixes: %s}
workload:
  turns: 2
  classes:
    - {name: a, input_tokens: 20, output_tokens: 2, shared_prefix: {tokens: 64, groups: 2}}
"""


def shared(place: Path, plan: str, wanted: bool) -> Path:
    """A plan file whose measured requests share prefixes."""
    rules = ["Answer in one word, and never say why. " * 8, "You are a parrot that has read too much. " * 8]
    rows = [
        {"messages": [{"role": "system", "content": rules[at % 2]}, {"role": "user", "content": f"{at}?"}]}
        for at in range(8)
    ]
    (place / "prompts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    path = place / "plan.yaml"
    path.write_text((plan % str(wanted).lower()).replace("PROMPTS", str(place / "prompts.jsonl")))
    return path


@pytest.mark.parametrize("plan", [SHARED, OWN, STANDARD, TURNS], ids=["classes", "own", "standard", "turns"])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_warm_up_fills_the_cache_with_the_prefixes_to_be_measured_or_leaves_it_cold(
    tmp_path: Path, plan: str, wanted: bool
) -> None:
    """By what the engine says it found: of each context the first measured request already has it cached, or has nothing."""
    finding = simulated(
        tmp_path, {}, "prefix_caching=true", "block_tokens=16", file=shared(tmp_path, plan, wanted)
    )
    assert finding.summary.warm_up.prefixes == ("populated" if wanted else "not populated")
    record = read_table(RunFolder.open(finding.folder).record, RECORD).sort_by("t_taken").to_pylist()
    bodies = Schedule(RunFolder.open(finding.folder).schedule)
    measured = [row for row in record if row["phase"] == Phase.MEASURE]
    cached = [row["usage_cached"] or 0 for row in measured]
    assert max(cached) >= 32  # there is something to share
    first: dict[str, int] = {}
    for row, found in zip(measured, cached, strict=True):
        if row["turn"] == 0:
            first.setdefault(context(bodies.body(row["index"])), found)
    if wanted:
        # Requests that share nothing, if there are any, have nothing in common with the warm-up either.
        assert sum(found >= 32 for found in first.values()) >= 2
        assert all(
            found >= 32 or not recurs
            for found, recurs in zip(first.values(), again(first, bodies, measured), strict=True)
        )
    else:
        assert max(first.values()) < 16


def again(first: dict[str, int], bodies: Schedule, measured: list[dict[str, Any]]) -> list[bool]:
    """Of each beginning, whether more than one measured request has it."""
    seen = [context(bodies.body(row["index"])) for row in measured if row["turn"] == 0]
    return [seen.count(begin) > 1 for begin in first]


def context(body: bytes) -> str:
    """What a request begins with, up to a nonce of its own: its first words tell contexts apart."""
    return str(json.loads(body)["messages"][0]["content"])[:40]


@pytest.mark.parametrize(
    "load",
    [
        {"--rate": "50"},
        {"--users": "3", "--user-rate": "20"},
        {"--turns": "2", "--concurrency": "3"},
        {"--api": "completions", "--concurrency": "3"},
        {"--trace": "TRACE"},
    ],
    ids=["open", "users", "turns", "ids", "trace"],
)
def test_every_load_has_its_warm_up_verified(tmp_path: Path, load: dict[str, object]) -> None:
    """Volume and probes whatever the load is: tokens beyond what the first round brings, and probes alone."""
    trace = tmp_path / "t.jsonl"
    rows = [{"timestamp": at / 20, "input_tokens": 20, "output_tokens": 4} for at in range(40)]
    trace.write_text("\n".join(map(json.dumps, rows)))
    lengths = (
        {}
        if "--trace" in load
        else {"--input-tokens": "20", "--output-tokens": "uniform(3,9)", "--requests": "40"}
    )
    flags = lengths | load | {"--warmup": "10", "--warmup-tokens": "150", "--warmup-probes": "5"}
    flags = {name: str(trace) if value == "TRACE" else value for name, value in flags.items()}
    warm = simulated(tmp_path / "runs", flags, "jitter=0").summary.warm_up
    assert (warm.reached, warm.drained, warm.probes.stable) == (True, True, True)
    assert (warm.output_tokens or 0) >= 150
    assert len(warm.probes.after_ms) == 3


def test_a_cold_start_is_measured_from_the_first_request_and_marked(tmp_path: Path) -> None:
    """Nothing before it, the summary says that this was the wish, and nobody who reads a report can miss it."""
    path = tmp_path / "plan.yaml"
    path.write_text("load: {cold_start: true, requests: 20, concurrency: 2}\n")
    finding = simulated(tmp_path / "runs", {"--input-tokens": "20", "--output-tokens": "3"}, file=path)
    warm = finding.summary.warm_up
    assert (warm.skipped, warm.requests, warm.drained) == (True, 0, None)
    assert "# COLD START" in (finding.folder / "report.md").read_text()
    assert "COLD START" in (finding.folder / "report.html").read_text()
    with pytest.raises(PlanError, match="cold"):
        build(path, {"--warmup": "5"})


def test_a_real_run_is_verified_and_can_be_reported_again(tmp_path: Path) -> None:
    """Two workers against the reference server: probes are on record with their stamps; a report made again says the same."""
    flags = SMALL | {
        "--warmup": "4", "--warmup-tokens": "40", "--warmup-probes": "4", "--workers": "2", "--concurrency": "4",
    }  # fmt: skip
    finding = conduct(build(None, flags), tmp_path, Nobody(), certificate=NO_CERTIFICATE)
    warm = finding.summary.warm_up
    assert warm.reached
    assert (warm.output_tokens or 0) >= 40
    assert warm.probes.before_ms is not None
    assert warm.probes.before_ms > 0
    assert 3 <= len(warm.probes.after_ms) <= 4
    assert finding.summary.requests.sent == 8
    folder = RunFolder.open(finding.folder)
    phases = read_table(folder.record, RECORD).column("phase").to_pylist()
    assert phases.count(int(Phase.PROBE)) == 1 + len(warm.probes.after_ms)
    for again in (evaluate, recover):
        assert again(folder).summary.warm_up == warm
