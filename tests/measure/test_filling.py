"""What an open loop's beginning keeps out of its throughput, against a load whose throughput is known: what is sent arrives."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulating import simulated

from inferometer.documents.summary import Summary
from inferometer.documents.verdict import CheckResult

ENGINE = (
    "step_base=10ms",
    "step_per_request=1us",
    "prefill_base=1us",
    "prefill_per_token=1us",
    "max_batch=512",
)
"""Fast enough for any load here, and as slow for one as for many."""
SHORT: dict[str, object] = {"--input-tokens": "20", "--warmup": "10", "--requests": "800"}
TAILED = {"--output-tokens": "lognormal(3.5,1.2,max=1500)"}
TALKS = {"--arrival": "constant", "--turns": "6", "--think-ms": "1000", "--output-tokens": "20"}


def run(out: Path, **flags: object) -> Summary:
    """A simulated run."""
    return simulated(
        out, SHORT | {f"--{key.replace('_', '-')}": value for key, value in flags.items()}, *ENGINE
    ).summary


def filled(summary: Summary) -> CheckResult:
    """The check."""
    return next(check for check in summary.verdict.checks if check.code == "filling")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("flags", "turns"),
    [({"--rate": "120", **TAILED}, 1), ({"--rate": "15", **TALKS}, 6), ({"--rate": "4", **TALKS}, 6)],
    ids=["long-tailed answers", "conversations", "conversations over a longer time"],
)
def test_what_is_missing_is_what_was_sent_and_did_not_arrive(
    flags: dict[str, str], turns: int, seed: int, tmp_path: Path
) -> None:
    """Law: the share that the check tells is the one by which the throughput is below the tokens that the load asks for."""
    summary = simulated(tmp_path, SHORT | flags | {"--seed": f"{seed}"}, *ENGINE).summary
    check, lengths, load = filled(summary), summary.metrics.output_tokens, summary.load
    assert lengths is not None
    assert summary.throughput.output_tok_s is not None
    assert load.achieved.request_s is not None
    sent = load.achieved.request_s if turns == 1 else float(flags["--rate"]) * turns
    missing = 1 - summary.throughput.output_tok_s / (sent * lengths.mean)
    assert isinstance(check.value, float)
    assert check.value == pytest.approx(missing, abs=0.04)
    assert check.status == ("unsure" if check.value > 0.05 else "pass")


def test_requests_shorter_than_the_tenth_that_does_not_count_leave_nothing_out(tmp_path: Path) -> None:
    """Law: then the server is as full at the beginning of the steady span as at its end."""
    check = filled(run(tmp_path, rate=20, output_tokens="uniform(10,50)"))
    assert (check.status, check.value) == ("pass", 0.0)


@pytest.mark.parametrize(
    "flags", [{"concurrency": 8}, {"users": 30, "user_rate": 3}], ids=["slots", "waiting users"]
)
def test_a_load_that_waits_for_answers_has_no_such_ramp(flags: dict[str, int], tmp_path: Path) -> None:
    """Law: what it sends follows from what it gets."""
    assert filled(run(tmp_path, output_tokens="uniform(10,50)", **flags)).status == "na"
