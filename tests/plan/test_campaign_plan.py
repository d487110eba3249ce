"""The plan of a campaign: what is asked is what is saved, and what is wrong is named where it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inferometer.errors import PlanError, RecordError
from inferometer.plan.campaign import ALL, ORDER, campaign, of_values, to_json
from inferometer.plan.procedure_parameters import NAMES, Tests, quickened


def problems(*args: object, **options: object) -> dict[str, str]:
    with pytest.raises(PlanError) as caught:
        campaign(*args, **options)  # type: ignore[arg-type]  # each case gives what it needs
    return {problem.where: problem.message for problem in caught.value.problems}


def test_all_are_the_ten_tests_of_section_5() -> None:
    """In the order in which one needs what another found."""
    chosen = campaign(["all"]).names
    assert len(chosen) == len(ALL) == 10
    assert chosen[:2] == ("throughput", "capacity")
    assert set(ORDER) == set(NAMES.values()) == {*ALL, "cold-start"}


def test_a_test_named_twice_is_carried_out_once() -> None:
    """However they are named."""
    assert campaign(["itl", "all", "itl", "cold-start"]).names == ORDER


@pytest.mark.parametrize("quick", [False, True])
def test_a_saved_campaign_is_the_same_campaign(tmp_path: Path, quick: bool) -> None:
    """Every default is written out, and reads back."""
    file = tmp_path / "plan.yaml"
    file.write_text(
        "load: {rate: 3}\ntests: {capacity: {ttft_p99_ms: 700}}\n"
        "switch: {prefix_cache: {enabled: {command: 'true'}, disabled: {ask: 'off, please'}}}\n"
    )
    whole = campaign(
        ["capacity", "prefix-cache"], file, {"--rate": "4"}, ["capacity.initial=16"], quick=quick
    )
    assert whole.plan.load.rate == 4
    assert (whole.tests.capacity.initial, whole.tests.capacity.ttft_p99_ms) == (16, 700)
    saved = to_json(whole)
    assert of_values(json.loads(saved), "tests.json") == whole
    assert to_json(of_values(json.loads(saved), "tests.json")) == saved


def test_a_quick_run_keeps_what_was_asked_for() -> None:
    """Its numbers stand in for defaults only."""
    asked = {"ttft": {"requests": 777}, "capacity": {"initial": 3}}
    quick = Tests.model_validate(quickened(asked))
    assert quick.ttft.requests == 777
    assert quick.capacity.initial == 3
    assert quick.capacity.duration_s < Tests().capacity.duration_s


def test_every_quick_number_differs_from_its_default_and_is_one_that_may_be_asked_for() -> None:
    """A quick run that is as long as a whole one is none; `concurrency` and such are quick by being small."""
    whole, quick = Tests(), Tests.model_validate(quickened({}))
    for name in type(whole).model_fields:
        for key in type(getattr(whole, name)).quick:
            assert getattr(getattr(quick, name), key) != getattr(getattr(whole, name), key), (name, key)


def test_what_is_wrong_is_named_at_its_line(tmp_path: Path) -> None:
    """All of it at once: tests, ways, and the plan's own parts."""
    file = tmp_path / "plan.yaml"
    file.write_text(
        "load: {rate: -1}\n"
        "tests:\n"
        "  capacity:\n"
        "    initial: 0\n"
        "    fast: yes\n"
        "switch:\n"
        "  prefix_cache:\n"
        "    enabled: {command: a, ask: b}\n"
    )
    found = problems(["capacity"], file)
    assert [where.removeprefix(f"{file}:") for where in found] == [
        "4: tests.capacity.initial",
        "5: tests.capacity.fast",
        "8: switch.prefix_cache.enabled",
        "1: load.rate",
    ]
    assert "ttft_p99_ms" in found[f"{file}:5: tests.capacity.fast"]


def test_what_is_no_test_or_no_parameter_is_refused() -> None:
    """With what there is."""
    assert "prefix-cache" in problems(["prefix"])["prefix"]
    assert "test.name=value" in problems(["ttft"], parameters=["requests=3"])["--param requests=3"]
    assert "tests.nothing" in problems(["ttft"], parameters=["nothing.requests=3"])
    assert "tests.ttft.requests" in problems(["ttft"], parameters=["ttft.requests=many"])


def test_a_parameter_on_the_command_line_is_of_a_chosen_test(tmp_path: Path) -> None:
    """Law: --param of a test that is not carried out is refused; in a file, which may serve several campaigns, it is not."""
    found = problems(
        ["ttft"], parameters=["capacity.initial=16", "prefix-cache.requests=9", "ttft.requests=9"]
    )
    assert list(found) == ["--param capacity.initial=16", "--param prefix-cache.requests=9"]
    assert "add capacity" in found["--param capacity.initial=16"]
    file = tmp_path / "plan.yaml"
    file.write_text("tests: {capacity: {initial: 16}}\n")
    assert campaign(["ttft"], file).tests.capacity.initial == 16


def test_a_search_on_the_command_line_is_made_by_a_chosen_test(tmp_path: Path) -> None:
    """Law: --param search.NAME is refused unless a chosen test, with its parameters, reads it; those that do are named."""
    for names, parameters in (
        (["ttft"], []), (["long-context", "cold-start"], []), (["capacity"], ["search.level_s=5"]),
        (["tradeoff"], ["tradeoff.capacity_rate=9"]),
        (["throughput"], ["throughput.loop=closed", "search.resolution=0.2"]),
    ):  # fmt: skip
        asked = parameters if any("search" in one for one in parameters) else [*parameters, "search.longer=0"]
        found = problems(names, parameters=asked)
        assert list(found) == [f"--param {asked[-1]}"], names
        assert "itl" in found[f"--param {asked[-1]}"]
    for names, parameters in (
        (["itl"], []), (["capacity", "ttft"], []), (["ttft"], ["ttft.percent=[50]"]), (["throughput"], []),
    ):  # fmt: skip
        assert campaign(names, None, None, [*parameters, "search.longer=0"]).tests.search.longer == 0
    file = tmp_path / "plan.yaml"
    file.write_text("tests: {search: {longer: 0}}\n")
    assert campaign(["ttft"], file).tests.search.longer == 0


def test_a_system_is_pushed_past_its_capacity_only_by_whoever_owns_it() -> None:
    """Draft 7.4; the reference engine is everybody's own."""
    elsewhere = {"--url": "http://localhost:1"}
    assert "--i-own-this-system" in problems(["all"], None, elsewhere)
    assert campaign(["memory-pressure"], None, elsewhere, own_system=True).own_system
    assert campaign(["memory-pressure"]).names == ("memory-pressure",)
    assert campaign(["ttft"], None, elsewhere).names == ("ttft",)


PERCENTAGES = [
    f"{field.alias or test}.{name}"
    for test, field in Tests.model_fields.items()
    for name in type(field.default).model_fields
    if "percent" in name
]


@pytest.mark.parametrize("parameter", PERCENTAGES)
def test_a_percentage_makes_a_load_that_can_be_offered(parameter: str) -> None:
    """Law: of whatever test, a level is a thousandth of the system's capacity at least; less is refused before anything is
    sent."""
    test, name = parameter.split(".")
    part = next(field.default for key, field in Tests.model_fields.items() if (field.alias or key) == test)
    many = isinstance(getattr(part, name), tuple)
    for percent in (0.0999, 1e-9, 0, -5):
        given = f"{parameter}={[percent] if many else percent}"
        found = problems([test], parameters=[given])
        assert "must be at least 0.1" in found[f"tests.{parameter}{'.0' if many else ''}"]
    assert campaign([test], None, None, [f"{parameter}={[0.1] if many else 0.1}"]).names == (test,)


def test_a_file_of_another_kind_is_refused() -> None:
    """By its schema."""
    with pytest.raises(RecordError, match="schema"):
        of_values({"schema": "inferometer/plan/1"}, "plan.json")


def test_classes_that_are_refused_are_not_missed_as_well() -> None:
    """Each problem once, in words: nobody has to guess why a list of two holds none."""
    with pytest.raises(PlanError) as wrong:
        campaign(["fairness"], None, None, ['fairness.classes=[{"name": "a"}, {"name": "b"}]'])
    told = [str(problem) for problem in wrong.value.problems]
    assert len(told) == 6
    assert all("is missing" in one for one in told)


@pytest.mark.parametrize("quick", [False, True])
def test_fairness_that_was_named_takes_no_workload_without_classes(quick: bool) -> None:
    """Law: it would not offer it, and a quick run's own numbers for its classes are nobody's choice of them."""
    chosen = {"--workload": "conversation"}
    with pytest.raises(PlanError, match="classes of its own"):
        campaign(["fairness"], None, chosen, quick=quick)
    classes = [
        {"name": name, "input_tokens": [64, 128], "output_tokens": [16, 32], "share": 0.5} for name in "ab"
    ]
    given = [f"fairness.classes={json.dumps(classes)}"]
    assert campaign(["fairness"], None, chosen, given, quick=quick).names == ("fairness",)
    assert "fairness" in campaign(["all"], None, chosen, quick=quick).names


def test_lengths_of_long_contexts_are_measured_in_ascending_order() -> None:
    """However they were given (draft 5.9.3), each once."""
    found = campaign(["long-context"], None, None, ["long-context.lengths=[256, 64, 128, 64]"])
    assert found.tests.long_context.lengths == (64, 128, 256)
