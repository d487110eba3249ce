"""Faults as they are asked for, and who meets them: data, without a server."""

from __future__ import annotations

import pytest

from inferometer.errors import PlanError
from inferometer.server.__main__ import main, parse
from inferometer.server.fault_specs import KINDS, Fault, Faults, manual
from inferometer.server.fault_specs import parse as faults_of


def shares(specs: list[str], count: int = 4000, *, stream: bool = True, seed: int = 0) -> dict[str, float]:
    """What share of `count` requests meets each fault."""
    faults = Faults(faults_of(specs), seed)
    met = [faults.met_by(number, stream) for number in range(count)]
    labels = [one.label for one in met if one is not None]
    return {label: labels.count(label) / count for label in set(labels)}


@pytest.mark.parametrize("name", [name for name in KINDS if name != "status"])
def test_a_bare_name_is_a_fault_with_defaults(name: str) -> None:
    """It hits every request from the first on."""
    (fault,) = faults_of([name])
    assert (fault.name, fault.share, fault.skip) == (name, 1.0, 0)
    assert set(fault.values) == set(KINDS[name].parameters)


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ("reset:after=3", {"after": 3}),
        ("glue=4", {"events": 4}),
        ("glue:events=4", {"events": 4}),
        ("wrong-usage=-2", {"by": -2}),
        ("trickle:bytes=1,ms=0.5", {"bytes": 1, "ms": 0.5}),
        ("html:status=502", {"status": 502}),
    ],
)
def test_parameters_are_read_in_either_spelling(spec: str, values: dict[str, float]) -> None:
    """A fault with one parameter that matters takes it after an equals sign."""
    (fault,) = faults_of([spec])
    assert dict(fault.values) == values


def test_a_share_and_a_start_are_read() -> None:
    """Behind either spelling."""
    for spec in ("glue=4,share=0.25,skip=3", "glue:events=4,skip=3,share=0.25"):
        assert faults_of([spec]) == (Fault("glue", {"events": 4}, 0.25, 3),)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("resett", "refuse, drop, reset"),
        ("", "refuse, drop, reset"),
        ("reset:aftr=1", "write reset:after=N,share=N,skip=N"),
        ("reset:after", "not a whole number"),
        ("reset:after=1.5", "not a whole number"),
        ("reset:after=-1", "not between 0 and"),
        ("reset:", "no parameter ''"),
        ("reset=1", "no bare value"),
        ("reset:after=1,after=2", "twice"),
        ("glue=1", "not between 2 and"),
        ("html:status=404", "200 or 502"),
        ("trickle:ms=nan", "not between"),
        ("hang:share=1.5", "not between 0 and 1"),
        ("no-done:share=often", "not a number"),
        ("status", "the shares come to 0"),
        ("status:429=0.8,500=0.4", "the shares come to 1.2"),
        ("status:418=0.5", "CODE=SHARE"),
        ("refuse:share=0.5", "no parameter 'share'"),
    ],
)
def test_a_wrong_spec_is_refused_with_the_choices(spec: str, words: str) -> None:
    """PlanError with flag, spec, and what can be written instead."""
    with pytest.raises(PlanError) as caught:
        faults_of([spec])
    (problem,) = caught.value.problems
    assert problem.where == "--fault"
    assert repr(spec) in problem.message
    assert words in problem.message


def test_everything_wrong_is_told_at_once_with_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is served."""
    assert main(["--fault", "nonsense", "--fault", "reset:after=x", "--fault", "hang"]) == 2
    assert [line.split("'")[1] for line in capsys.readouterr().err.splitlines()] == [
        "nonsense",
        "reset:after=x",
    ]


def test_the_command_line_takes_several() -> None:
    """In the order given; without any, none."""
    asked = parse(["--fault", "hang:share=0.1", "--fault", "no-done"]).faults
    assert [fault.name for fault in asked] == ["hang", "no-done"]
    assert parse([]).faults == ()


def test_the_manual_names_every_fault_and_parameter() -> None:
    """`--help` shows it."""
    for name, kind in KINDS.items():
        assert f"  {name}" in manual()
        assert kind.does in manual()


def test_shares_come_out_as_asked() -> None:
    """Each fault hits its share of those that the ones before it left."""
    found = shares(["reset:share=0.2", "status:429=0.2,503=0.1", "hang:share=0.5"])
    expected = {"reset": 0.2, "status:429": 0.8 * 0.2, "status:503": 0.8 * 0.1, "hang": 0.8 * 0.7 * 0.5}
    assert found == pytest.approx(expected, abs=0.03)


def test_the_same_seed_hits_the_same_requests_and_another_seed_others() -> None:
    """A draw depends on seed, place and number, and on nothing that was drawn before."""
    specs = faults_of(["reset:share=0.3"])
    hits = [
        [number for number in range(200) if Faults(specs, seed).met_by(number, True)] for seed in (1, 1, 2)
    ]
    assert hits[0] == hits[1] != hits[2]


def test_the_first_requests_can_be_spared() -> None:
    """`skip` numbers meet nothing; drops are counted by connection."""
    faults = Faults(faults_of(["hang:skip=5", "drop:skip=2"]), 0)
    assert [number for number in range(8) if faults.met_by(number, True)] == [5, 6, 7]
    assert [number for number in range(4) if faults.drops(number)] == [2, 3]


def test_faults_of_streams_pass_whole_answers_by() -> None:
    """Which a later fault may then hit."""
    assert shares(["broken-chunk", "html:share=1"], 10, stream=False) == {"html": 1.0}
    assert shares(["broken-chunk", "html"], 10) == {"broken-chunk": 1.0}


def test_the_earliest_refusal_counts() -> None:
    """And without one the server listens for good."""
    assert Faults(faults_of(["refuse:after=9", "refuse=4"]), 0).refuse_after == 4
    assert Faults(faults_of(["hang"]), 0).refuse_after is None
