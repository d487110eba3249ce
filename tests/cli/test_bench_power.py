"""`inferometer bench --power`: an engine's power is that of its own meter, or null with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from bench_command import ENGINE, bench
from commands import only, run
from hypothesis import given
from hypothesis import strategies as st
from serving import serving
from shipped_schemas import shipped

from inferometer.cli.bench import _meters
from inferometer.studies.bench_engine import LiveEngine
from inferometer.telemetry.machines.meters import names_of


@pytest.fixture
def address() -> Iterator[str]:
    with serving(engine=ENGINE) as port:
        yield f"http://127.0.0.1:{port}"


def test_power_beside_each_engine_is_its_own_and_names_the_meter(address: str, tmp_path: Path) -> None:
    """Law: M6 is the mean of what the meter said, M7 the median speed by it, and the record of the run has the readings."""
    _, document, _ = bench(
        tmp_path, "--runs", "6", "--power", "command:echo 40", first=address, second=address
    )
    jsonschema.validate(document, shipped("bench"))
    for engine in document["engines"]:
        metadata = engine["metadata"]
        assert metadata["power_watts"] == pytest.approx(40)
        assert metadata["power_source"].startswith("command, machine: ")
        assert engine["tok_per_sec_per_watt"] == pytest.approx(engine["tok_per_sec"]["median"] / 40)
        assert "power_unread" not in {one["code"] for one in engine["remarks"]}


def test_power_that_no_meter_gives_is_null_with_its_reason(address: str, tmp_path: Path) -> None:
    """Law: the engine is measured all the same."""
    flags = ("--runs", "6", "--power", "command:no-such-meter")
    code, document, _ = bench(tmp_path, *flags, here=address)
    (engine,) = document["engines"]
    assert (engine["ended"], code in (0, 3, 4)) == ("measured", True)
    assert (engine["metadata"]["power_watts"], engine["tok_per_sec_per_watt"]) == (None, None)
    (remark,) = [one for one in engine["remarks"] if one["code"] == "power_unread"]
    assert "no-such-meter" in remark["facts"]["why"]


def test_power_of_two_plugs_is_no_engines(address: str, tmp_path: Path) -> None:
    """Law: where two meters cover the same, neither is taken for the engine's, and a remark names both."""
    meters = ("--power", "command:echo 100", "--power", "command:echo 300")
    _, document, _ = bench(tmp_path, "--runs", "6", *meters, here=address)
    (engine,) = document["engines"]
    assert (engine["metadata"]["power_watts"], engine["tok_per_sec_per_watt"]) == (None, None)
    (remark,) = [one for one in engine["remarks"] if one["code"] == "power_of_several"]
    assert remark["facts"]["meters"] == "command, command#2"


def test_power_by_a_meter_that_is_named_is_its_engines(address: str, tmp_path: Path) -> None:
    """Law: each engine's own meter decides, beside whatever meters all of them have, and the others' are not read with it."""
    named = (
        "--power",
        "first=command:echo 100",
        "--power",
        "second=command:echo 300 ",
        "--power",
        "command:echo 7",
    )
    _, document, _ = bench(tmp_path, "--runs", "6", *named, first=address, second=address)
    watts = {one["label"]: one["metadata"]["power_watts"] for one in document["engines"]}
    assert watts == pytest.approx({"first": 100, "second": 300})
    plans = [
        json.loads(path.read_text())["host_telemetry"]["power"]
        for path in only(tmp_path).glob("runs/*/plan.json")
    ]
    assert sorted(plans) == [["command:echo 100", "command:echo 7"], ["command:echo 300", "command:echo 7"]]


def test_why_an_engines_own_meter_failed_is_told_without_the_others(address: str, tmp_path: Path) -> None:
    """Law: its power is null whatever the others show, and the words are those of its own meter."""
    meters = (
        "--power",
        "here=command:no-such-meter",
        "--power",
        "command:echo 7",
        "--power",
        "command:echo volts",
    )
    _, document, _ = bench(tmp_path, "--runs", "6", *meters, here=address)
    (engine,) = document["engines"]
    assert engine["metadata"]["power_watts"] is None
    (remark,) = [one for one in engine["remarks"] if one["code"] == "power_unread"]
    assert "no-such-meter" in remark["facts"]["why"]
    assert "volts" not in remark["facts"]["why"]


@pytest.mark.parametrize("wrong", ["other=command:echo 1", "=command:echo 1", "here=volts"])
def test_a_meter_of_no_engine_and_one_that_is_none_are_refused(
    wrong: str, address: str, tmp_path: Path
) -> None:
    """Law: before anything is measured, and the flag is named."""
    code, stdout, stderr = run("bench", "--url", f"here={address}", "--power", wrong, out=tmp_path)
    assert (code, stdout) == (2, "")
    assert "power" in stderr


@given(
    st.text("abcz.-_/: ", min_size=1, max_size=8).filter(str.strip),
    st.sampled_from(
        ["auto", "nvml:0,2", "http://plug/p?id=1&a=b#x", "https://p", "command:read --pin=1", "powermetrics"]
    ),
)
def test_a_meter_is_split_from_its_engines_name(name: str, meter: str) -> None:
    """Law: a name before a meter, of whatever characters, is found; a meter by itself has none, whatever signs are in it."""
    assert _meters([meter]) == ({}, (meter,))
    assert _meters([f"{name}={meter}", meter]) == ({name.strip(): (meter,)}, (meter,))


def test_an_engines_own_meters_are_known_by_the_names_of_their_readings() -> None:
    """Law: those of `opened`, in the order of the plan."""
    plan = ("http://a/1", "command:x", "https://b", "http://a/1", "command:y")
    assert names_of(("https://b", "command:y"), plan) == {"http#2", "command#2"}
    assert names_of(("http://a/1",), plan) == {"http"}
    assert names_of(("rapl",), plan) == set()


def test_power_of_an_engine_elsewhere_is_no_meters_of_this_machine() -> None:
    """Law: its plan has wall meters alone, whatever was asked for."""
    elsewhere = LiveEngine("a", "a", "http://192.0.2.1:1", options={"--power": ("rapl", "command:echo 1")})
    assert elsewhere._plan("m").host_telemetry.power == ("command:echo 1",)
    here = LiveEngine("a", "a", "http://127.0.0.1:1", options={"--power": ("rapl",)})
    assert here._plan("m").host_telemetry.power == ("rapl",)


def test_a_meter_that_is_none_and_power_of_phases_are_refused(address: str, tmp_path: Path) -> None:
    """Before anything is measured."""
    for words in (("--power", "volts"), ("--agentic", "--power", "auto")):
        code, stdout, stderr = run("bench", "--url", f"here={address}", *words, out=tmp_path)
        assert (code, stdout) == (2, "")
        assert "power" in stderr
