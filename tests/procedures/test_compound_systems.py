"""The tests of draft section 5 of a compound system (4.1.3), against what the system's own settings and log of steps say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from procedures.driving import Ran, Silent, carried_out

from inferometer.plan.campaign import Campaign, EngineChoice
from inferometer.plan.schema import Plan
from inferometer.simulation.engine import choose
from inferometer.studies.stand import Virtual
from inferometer.studies.system_declared import with_system_declared

QUESTIONS = (
    "What is 12*(3+4)?",
    "Explain Little's law.",
    "Explain the median.",
    "What is 17*3 now? Explain the mean.",
    "Search for queueing theory.",
)
ENGINE = ("jitter=0", "max_batch=4", "step_base=10ms", "step_per_request=0.25ms")
SEARCH = {"search": {"level_s": 10, "pilot_requests": 16, "pilot_concurrency": 8, "least_requests": 20}}


def tasks(folder: Path) -> dict[str, Any]:
    """A workload of tasks with answers of 50 tokens and more."""
    path = folder / "tasks.jsonl"
    rows = [
        {"task": f"t{n}", "input": text, "output_tokens": 60 + 10 * n, "criterion": {"regex": "."}}
        for n, text in enumerate(QUESTIONS)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return {"tasks": str(path)}


def of_system(
    folder: Path, system: str, name: str, wanted: dict[str, Any], *settings: str, **plan: Any
) -> tuple[Ran, Virtual]:
    """A test of a system in virtual time, as `inferometer test --simulate --system` makes it; and where it took place."""
    engine = EngineChoice(preset="tiny-cpu", settings=(*ENGINE, *settings), system=system)
    given = Plan.model_validate(
        {"workload": tasks(folder), "load": {"rate": 2}, "sut": {"boundary": "compound"}, **plan}
    )
    whole = with_system_declared(Campaign(names=(name,), plan=given, engine=engine))
    stand = Virtual(choose(engine.preset, engine.settings, engine.system), Silent())
    return carried_out(
        folder, name, plan=whole.plan, tests=SEARCH | {name: wanted}, quick=True, stand=stand
    ), stand


def steps_of(ran: Ran, folder: Path, test: str, part: str) -> list[list[dict[str, Any]]]:
    """The log of steps of each run of this part, as the system wrote it."""
    names = [run["run"] for run in ran.test(test)["runs"] if run["part"] == part]
    return [
        [
            json.loads(line)
            for line in (folder / "runs" / name / "system_steps.jsonl").read_text().splitlines()
        ]
        for name in names
    ]


def test_guardrails_cost_what_they_are_set_to(tmp_path: Path) -> None:
    """Law: one of 40 ms on each side adds 40 ms to TTFT, 40 ms to the end and 80 ms in all, whatever the load; each
    configuration runs the guardrails that it declares, and the system is left with those that it had."""
    wanted = {"percent": [30, 60], "duration_s": 20, "throughput_s": 10, "concurrency": 16}
    ran, stand = of_system(tmp_path, "rag", "guardrail", wanted, "guardrail=40ms")
    for share in (30, 60):
        for name, truth in (("input", 40), ("output", 40), ("full", 80)):
            assert ran.value("guardrail", f"{name}_overhead_{share}") == pytest.approx(truth, abs=0.01)
    for one, log in zip(
        ran.of("guardrail", "level"), steps_of(ran, tmp_path, "guardrail", "level"), strict=True
    ):
        declared = one["sut"]["guardrails"]
        passed = {step["name"] for step in log if step["kind"] == "guardrail"}
        sides = {"input_guardrail": declared["input_filter"], "output_guardrail": declared["output_filter"]}
        assert passed == {name for name, on in sides.items() if on}
    assert stand.usual("guardrails") == "full"
    assert stand._engine.guards == (True, True)
    assert "nothing that a filter is to stop" not in json.dumps(ran.test("guardrail"))


def test_a_system_without_guardrails_says_so(tmp_path: Path) -> None:
    """Law: no configuration of an agent can be reached, and the test is undecided with the reason."""
    wanted = {"percent": [30], "duration_s": 5, "throughput_s": 5, "concurrency": 4}
    ran, stand = of_system(tmp_path, "agent", "guardrail", wanted)
    assert ran.test("guardrail")["verdict"]["status"] == "INCONCLUSIVE"
    assert "the agent system was started without" in json.dumps(ran.test("guardrail")["refused"])
    assert stand.usual("guardrails") == "baseline"


def test_guardrails_of_a_system_are_a_part_of_it_in_other_tests(tmp_path: Path) -> None:
    """Law: a test that is not about them measures the system as it was set up, and declares them."""
    ran, _ = of_system(tmp_path, "rag", "ttft", {"rates": [2], "requests": 20}, "output_guardrail=off")
    (level,), (log,) = ran.of("ttft", "level"), steps_of(ran, tmp_path, "ttft", "level")
    assert {step["name"] for step in log if step["kind"] == "guardrail"} == {"input_guardrail"}
    declared = level["sut"]["guardrails"]
    assert (declared["input_filter"], declared["output_filter"]) == (True, False)


def test_each_cold_start_has_a_task_of_its_own_and_the_logs_times(tmp_path: Path) -> None:
    """Law: load time is the setting, latency the log's time to the first token; tasks are drawn, start after start."""
    ran, _ = of_system(
        tmp_path, "agent", "cold-start", {"starts": 6}, "load=3s", "cold_steps=3", "cold_factor=5"
    )
    rows, sent = ran.rows("cold-start", "starts"), set()
    for row, first, second in zip(
        rows,
        steps_of(ran, tmp_path, "cold-start", "first"),
        steps_of(ran, tmp_path, "cold-start", "second"),
        strict=True,
    ):
        assert row["load_s"] == 3
        for seen, log in ((row["cold_ms"], first), (row["warm_ms"], second)):
            (answer,) = [step for step in log if step["name"] == "answer"]
            assert seen == pytest.approx((answer["first_token_ns"] - answer["task_began_ns"]) / 1e6)
            sent.add(answer["prompt_tokens"])
        assert row["cold_ms"] > row["warm_ms"]
    assert len(sent) > 1
    assert len(ran.rows("cold-start", "tasks")) == 12


@pytest.mark.parametrize("system", ["agent", "rag"])
def test_gaps_are_those_of_what_the_user_sees(system: str, tmp_path: Path) -> None:
    """Law: all gaps of a level sum up to the log's time from first tokens to the ends of tasks, the wait for an output
    guardrail included, which is what a user sees."""
    wanted = {"percent": [50], "requests": 60}
    ran, _ = of_system(tmp_path, system, "itl", wanted)
    (level,), (log,) = ran.of("itl", "level"), steps_of(ran, tmp_path, "itl", "level")
    answers = [step for step in log if step["name"] == "answer"]
    spans = sum(step["task_ended_ns"] - step["first_token_ns"] for step in answers) / 1e6
    stats = level["itl_shape"]["itl_ms"]
    assert stats["n"] == sum(step["completion_tokens"] - 1 for step in answers)
    assert stats["n"] * stats["mean"] == pytest.approx(spans, rel=1e-6)
    assert ran.value("itl", "itl_p99_50") == pytest.approx(stats["p99"])


def test_gaps_between_events_of_unknown_size_are_called_times_between_chunks(tmp_path: Path) -> None:
    """Law: with another tokenizer than the model's own nobody knows how many tokens an event carries. The figure has the name
    that it can have, the report does not claim several, and 4.6.2 is kept, since that is reported."""
    wanted = {"percent": [50], "requests": 60}
    other = {"tokenizer": {"name": "o200k_base", "method": "reference"}}
    ran, _ = of_system(tmp_path, "agent", "itl", wanted, **other)
    document = ran.test("itl")
    labels = {value["name"]: value["label"] for value in document["values"]}
    assert labels["itl_p99_50"] == "Time Between Chunks P99 at 50 %"
    assert ran.value("itl", "itl_p99_50") > 0
    assert any("how many tokens an event carries is not known" in note for note in document["notes"])
    assert "several tokens an event" not in json.dumps(document["notes"])
    assert "D-4.6.2-chunk" not in json.dumps(document["compliance"]["deviations"])


def test_usage_of_hidden_steps_moves_no_result(tmp_path: Path) -> None:
    """Law: throughput is of the text that was streamed: a system that states half of its tokens has the same results, and the
    report tells how many of its tasks succeeded."""
    wanted = {"saturated_runs": 1, "limit_levels": 1}
    found = []
    for share in ("0", "1"):
        folder = tmp_path / share
        folder.mkdir()
        ran, _ = of_system(folder, "agent", "throughput", wanted, f"false_usage={share}")
        found.append(ran)
    true, false = found
    assert true.test("throughput")["values"] == false.test("throughput")["values"]
    assert true.value("throughput", "max_output_tok_s") > 0
    rows = true.rows("throughput", "tasks")
    assert all(row["succeeded"] == row["completed"] > 0 for row in rows)
    assert "no statement about the quality" in json.dumps(true.test("throughput")["notes"])
