"""Words: every check has a sentence for every status it can take."""

from __future__ import annotations

from typing import Any

import pytest

from inferometer.documents.verdict import CheckResult
from inferometer.judge.judge import CHECKS
from inferometer.metrics import catalogue as metrics
from inferometer.report import check_sentences, checks

WORST = {
    "fail": "host_clocks host_lateness "
    "error_rate prompt_length output_length token_counts lateness receive_lag error_bound worker_cpu load_exact "
    "arrival_rate "
    "arrival_dispersion arrival_lag1 concurrency_held cache_hits clock_step workers_alive streamed answered_as "
    "session_steps session_gaps session_context session_cache",
    "unsure": "session_context session_ends session_cache task_results "
    "error_rate output_length token_counts samples_p99 tokens_per_event interrupted few_samples "
    "stationary drift calibration first_wave filling clock_step answered_as",
    "note": "samples_p99_9 tokens_per_event warmup ttft_variants stale_connections calibration workload_lengths users_held "
    "server_queue drift arrival_rate arrival_dispersion arrival_lag1 own_cpu round_trip throttled "
    "session_cache",
}
"""The checks by the statuses, other than pass and na, that the judge may give them."""

PAIRS = [(code, status) for status, codes in WORST.items() for code in codes.split()]
CODES = sorted({code for code, _ in PAIRS})


def check(code: str, status: str, **changes: Any) -> CheckResult:
    members = {
        "code": code,
        "status": status,
        "value": 0.1234,
        "limit": 0.05,
        "unit": None,
        "facts": {},
        "message": "",
        **changes,
    }
    return CheckResult(**members)


@pytest.mark.parametrize(
    ("code", "status"), PAIRS + [(code, status) for code in CODES for status in ("pass", "na")]
)
def test_every_check_has_its_own_sentence_for_every_status_it_can_take(code: str, status: str) -> None:
    """No check falls back on the general sentence, and no placeholder is left open."""
    assert status in check_sentences.CHECKS[code].says
    said = checks.message(check(code, status))
    assert said[0].isupper() or said[0].isdigit()
    assert said.endswith(".")
    assert "{" not in said


def test_a_check_is_worded_in_the_units_of_its_entry() -> None:
    """Each kind of wording of a check is one of its units; a rate is written as a plain number."""
    kinds: dict[str, set[str]] = {}
    for name, wording in check_sentences.CHECKS.items():
        kinds.setdefault(name.partition(":")[0], set()).add(wording.kind)
    units = {one.code: {"number" if unit == "1/s" else unit for unit in one.units} for one in CHECKS}
    assert kinds.keys() <= units.keys()
    assert {code: kinds[code] for code in kinds if kinds[code] != units[code]} == {}


@pytest.mark.parametrize(("code", "status"), [pair for pair in PAIRS if pair[1] != "note"])
def test_a_check_that_decides_says_what_to_do(code: str, status: str) -> None:
    """A reader of INVALID or INCONCLUSIVE is told the next step."""
    assert checks.advice(check(code, status))


@pytest.mark.parametrize(
    "code",
    [code for code in CODES if code not in ("workers_alive", "interrupted", "ttft_variants", "calibration")],
)
def test_value_and_limit_stand_in_the_sentence_of_the_status_that_counts(code: str) -> None:
    """A claim comes with its number: value and limit are both named, where the check has both."""
    status = "fail" if (code, "fail") in PAIRS else "note" if (code, "note") in PAIRS else "unsure"
    said = checks.sentence(check(code, status))
    assert checks.value(check(code, status)) in said
    assert checks.limit(check(code, status)) in said


@pytest.mark.parametrize("status", ["pass", "fail", "na"])
@pytest.mark.parametrize(
    ("code", "facts", "shown"),
    [
        ("lateness", {"loop": "closed"}, "12.3\u202f%"),
        ("lateness", {"loop": "open"}, "0.1234 ms"),
        ("receive_lag", {"source": "kernel"}, "12.3\u202f%"),
        ("receive_lag", {"source": "user"}, "0.1234 ms"),
    ],
)
def test_a_check_of_two_kinds_is_worded_for_the_kind_that_was_made(
    code: str, facts: dict[str, str], shown: str, status: str
) -> None:
    """A share of time is never printed as milliseconds, nor the other way round."""
    made = check(code, status, facts=facts)
    assert checks.value(made) == shown
    assert status == "na" or shown in checks.sentence(made)


@pytest.mark.parametrize(
    ("code", "status", "facts", "said"),
    [
        ("prompt_length", "fail", {"judged_by": "growth"}, "counted only 12.3"),
        ("stale_connections", "note", {"kept": "none"}, "does not keep connections alive: 12.3"),
        ("stale_connections", "note", {"kept": "single_use"}, "12.3\u202f% of the requests found one"),
    ],
)
def test_a_second_way_to_trip_a_check_has_words_of_its_own(
    code: str, status: str, facts: dict[str, str], said: str
) -> None:
    """The sentence tells which of two things was found, with its number, and what to do."""
    made = check(code, status, facts=facts)
    assert said in checks.sentence(made)
    assert said not in checks.sentence(check(code, status))
    assert checks.advice(made)


def test_an_undecided_count_without_usage_claims_no_number() -> None:
    """Token counts are undecided for two reasons, and the sentence tells which."""
    assert "no usage" in checks.sentence(check("token_counts", "unsure", value=None))
    assert "12.3" in checks.sentence(check("token_counts", "unsure"))


def test_every_worded_check_is_one_the_judge_knows() -> None:
    """The table holds no entry that can never be used."""
    of_both_sides = {"server_tokens", "server_ttft"}  # tests/report/test_report_server.py
    assert {name.partition(":")[0] for name in check_sentences.CHECKS} == {*CODES, *of_both_sides}


def test_facts_are_told_when_they_are_there_and_not_missed_when_they_are_not() -> None:
    """A clause appears exactly when all the facts it needs are present."""
    facts = {"by_error": {"timeout": 2, "reset": 1}}
    assert "timeout 2, reset 1" in checks.sentence(check("error_rate", "fail", facts=facts))
    assert "By class" not in checks.sentence(check("error_rate", "fail"))
    assert "Asked" not in checks.sentence(check("prompt_length", "fail", facts={"asked_mean": 3}))


@pytest.mark.parametrize("status", ["pass", "fail", "unsure", "note", "na", "status of next year"])
def test_an_unknown_check_still_gets_a_true_sentence(status: str) -> None:
    """An older report program renders a newer run without failing."""
    assert checks.message(check("gpu_is_purple", status, value=None, limit=[1, 2])).startswith(
        "Gpu is purple"
    )


def test_checks_are_listed_worst_first_and_otherwise_in_order() -> None:
    """The order is stable: two runs of the same verdicts read the same."""
    statuses = ["na", "pass", "note", "fail", "unsure", "fail"]
    listed = checks.ordered([check("lateness", status, value=place) for place, status in enumerate(statuses)])
    assert [item.value for item in listed] == [3, 5, 4, 2, 1, 0]


def test_every_metric_and_convention_is_defined_in_one_sentence() -> None:
    """No row of the tables goes unexplained."""
    defined = metrics.definitions()
    assert set(metrics.METRICS) | set(metrics.RATES) <= set(defined)
    assert all(means.endswith(".") for means in defined.values())


def test_lateness_names_its_main_cause_and_the_shares_of_all() -> None:
    """The cause of what counts is told in words, and back-pressure with its share though it does not count."""
    facts = {"cause": "scheduling", "cause_share": 0.9, "scheduling_share": 0.6, "socket_share": 0.1}
    facts |= {"back_pressure_share": 0.3}
    for loop in ("open", "closed"):
        said = checks.sentence(check("lateness", "fail", facts={"loop": loop, **facts}))
        assert "started requests late (90" in said
        assert "30\u202f% back-pressure" in said


def test_a_death_is_told_with_worker_share_and_losses() -> None:
    """Which worker, of how many; how many of how many requests were its; how many are kept and how many lost."""
    facts = {"dead": [1], "exit_codes": [-9], "workers": 2, "load_share": 0.5, "kept": 30, "lost": 170}
    known = checks.sentence(check("workers_alive", "fail", facts=facts | {"theirs": 200, "total": 400}))
    assert "Died: number 1 of 2 workers" in known
    assert "200 of 400 requests: 30 are on record, 170 are lost" in known
    least = checks.sentence(check("workers_alive", "fail", facts=facts | {"at_least": True}))
    assert "170 or more are lost" in least


def test_each_worker_is_shown_beside_the_busiest() -> None:
    """A worker whose time is not known is said to be so."""
    said = checks.sentence(
        check("worker_cpu", "pass", facts={"each_share": [0.5, None], "waited_share": [0.25]})
    )
    assert "Each worker: 50\u202f%, not known." in said
    assert "without a core: 25\u202f%" in said


@pytest.mark.parametrize("status", ["pass", "note"])
def test_a_small_change_is_not_said_to_be_within_chance(status: str) -> None:
    """A statistic beyond its limit passes where the change is below 5 %: then chance alone does not explain it."""
    said = checks.message(check("drift", status, value=3.14, limit=2.08))
    assert "no change of the server's latency was both beyond chance" in said
    assert "and above 5" in said
