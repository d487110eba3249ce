"""Several meters of one kind: their readings, devices and failures are told apart."""

from __future__ import annotations

import sys

import pytest
from metrics_play import START, store_of
from peers import Script, Seen, scripted, whole

from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.meters import kind_of, opened
from inferometer.telemetry.machines.side_by_side import Patience
from inferometer.telemetry.machines.tracks import MachineTracks, machine_tracks


def tracks_of(body: str) -> MachineTracks:
    """One reading."""
    (found,) = machine_tracks(store_of(body), START)
    return found


def watts(_: Seen) -> Script:
    """A wall meter's answer."""
    return Script(whole(200, b"41"))


def test_two_meters_of_one_kind_are_told_apart() -> None:
    """Law: two wall meters are two meters."""
    text = Text()
    specs = [f"command:{sys.executable} -c 'print({watts})'" for watts in (10, 20)]
    for part in opened(specs, Patience(20.0)):
        part(text)
    found = tracks_of(str(text))
    assert {one.labels["meter"]: float(one.values[0]) for one in found.of("power")} == {
        "command": 10.0,
        "command#2": 20.0,
    }


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize(
    "specs",
    [
        [f"command:{sys.executable} -c 'raise SystemExit({one})'" for one in (3, 4, 5)],
        [f"http://127.0.0.1:9/{one}" for one in range(3)],
    ],
)
def test_each_of_several_meters_that_fail_is_named(specs: list[str], others: bool) -> None:
    """Law: the words of each failure begin with the meter's own name, whoever reads them."""
    told: list[str] = []
    text = Text()
    for part in opened(specs, Patience(20.0), told.append if others else None):
        part(text)
    failed = tracks_of(str(text)).of("meter_failed")
    kind = kind_of(specs[0])
    assert [one.labels["meter"] for one in failed] == [kind, f"{kind}#2", f"{kind}#3"]
    assert all(one.labels["words"].startswith(f"{one.labels['meter']}: ") for one in failed)
    assert sorted(words.partition(":")[0] for words in told) == (
        [kind, f"{kind}#2", f"{kind}#3"] if others else []
    )


@pytest.mark.parametrize("others", [False, True])
def test_no_two_wall_meters_have_a_device_of_one_name(others: bool) -> None:
    """Law: sockets of one host, and commands, are several devices, by names that others may read too."""
    with scripted(watts) as strip, scripted(watts) as plug:
        specs = [
            *(f"command:{sys.executable} -c 'print({watts})'" for watts in (10, 20)),
            *(f"http://127.0.0.1:{strip.port}/power?socket={one}" for one in range(3)),
            f"http://127.0.0.1:{plug.port}/power",
        ]
        text = Text()
        for part in opened(specs, Patience(20.0), (lambda _: None) if others else None):
            part(text)
    found = {one.labels["meter"]: one.labels["device"] for one in tracks_of(str(text)).of("power")}
    host = "meter" if others else f"127.0.0.1:{strip.port}"
    assert (found["command"], found["command#2"]) == ("0", "0#2")
    assert [found[name] for name in ("http", "http#2", "http#3")] == [host, f"{host}#2", f"{host}#3"]
    assert found["http#4"] == ("meter#4" if others else f"127.0.0.1:{plug.port}")
    assert len(set(found.values())) == len(found) == 6
