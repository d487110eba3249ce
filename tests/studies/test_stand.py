"""Test stands: a state is verified where the system says so itself, declared where somebody was told, and refused where
nobody can."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from procedures.driving import Silent

from inferometer.errors import CannotSwitch
from inferometer.journal.folder import RunFolder
from inferometer.plan.campaign import EngineChoice
from inferometer.plan.saved import read
from inferometer.plan.schema import Plan
from inferometer.plan.switching import STATES, Switching
from inferometer.plan.target import Target
from inferometer.server.embedded import Embedded
from inferometer.server.presets import TESTBED
from inferometer.simulation.engine import Chosen, choose
from inferometer.studies.stand import Live, Stand, Virtual


def nobody(what: str) -> None:
    raise EOFError(what)


def live(tmp_path: Path, url: str | None = None, ways: object = None, asked: object = nobody) -> Live:
    plan = Plan(target=Target(url=url))
    switching = Switching.model_validate(ways or {})
    return Live(plan, EngineChoice(), switching, Silent(), tmp_path / "log.txt", asked)  # type: ignore[arg-type]  # a function


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A reference server that somebody else started."""
    with Embedded(tmp_path_factory.mktemp("server") / "log.txt", "--preset", "testbed") as running:
        yield running.url()


def test_the_reference_engine_switches_by_itself_and_says_so(tmp_path: Path) -> None:
    """Everything that tests switch, into every state but the process's own; it begins with all of it off."""
    with live(tmp_path) as stand:
        before = httpx.get(f"{stand._url()}/inferometer/state").json()
        assert (before["prefix_cache"], before["guardrails"]) == (False, False)
        for what in ("prefix_cache", "guardrails"):
            for state in STATES[what]:
                switched = stand.switch(what, state)
                assert switched.status == "verified"
                assert switched.evidence
        after = httpx.get(f"{stand._url()}/inferometer/state").json()
        assert (after["prefix_cache"], after["guardrails"]) == (True, True)
        assert stand.usual("prefix_cache") == "disabled"


def test_a_reference_server_elsewhere_switches_by_itself_too(tmp_path: Path, server: str) -> None:
    """It is known by what it answers."""
    with live(tmp_path, server) as stand:
        assert stand.switch("prefix_cache", "enabled").status == "verified"
        assert httpx.get(f"{server}/inferometer/state").json()["prefix_cache"] is True
        assert stand.usual("prefix_cache") is None


def test_a_command_is_run_by_the_shell_and_declared(tmp_path: Path, server: str) -> None:
    """A way in the plan goes before what the server could do by itself."""
    mark = tmp_path / "done"
    ways = {"prefix_cache": {"enabled": {"command": f"echo on > {shlex.quote(str(mark))} && true"}}}
    with live(tmp_path, server, ways) as stand:
        switched = stand.switch("prefix_cache", "enabled")
    assert switched.status == "declared"
    assert "command" in switched.how
    assert mark.read_text() == "on\n"


def test_a_command_may_leave_a_server_running_behind_it(tmp_path: Path, server: str) -> None:
    """What it started holds its output open, and is not waited for: it ends with the pipe that this test holds."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    behind = f"exec 3< {shlex.quote(str(pipe))}; cat <&3 & true"
    try:
        with live(
            tmp_path, server, {"prefix_cache": {"enabled": {"command": behind, "patience_s": 10}}}
        ) as stand:
            assert stand.switch("prefix_cache", "enabled").status == "declared"
    finally:
        os.close(held)


def test_a_call_is_made_and_declared(tmp_path: Path, server: str) -> None:
    """With its method and body."""
    call = {"url": f"{server}/inferometer/state", "method": "PATCH", "body": {"prefix_cache": False}}
    with live(tmp_path, server, {"prefix_cache": {"disabled": {"http": call}}}) as stand:
        assert stand.switch("prefix_cache", "disabled").status == "declared"
    assert httpx.get(f"{server}/inferometer/state").json()["prefix_cache"] is False


def test_a_person_is_asked_in_the_plans_words(tmp_path: Path, server: str) -> None:
    """And believed."""
    heard: list[str] = []
    with live(
        tmp_path, server, {"guardrails": {"full": {"ask": "all filters on, please"}}}, heard.append
    ) as stand:
        assert stand.switch("guardrails", "full").status == "declared"
    assert heard == ["all filters on, please"]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ({"command": "echo no such service; exit 3"}, "exit code 3.*\n.*no such service"),
        ({"command": "sleep 30", "patience_s": 0.2}, "did not end within"),
        ({"http": {"url": "http://127.0.0.1:1/"}}, "failed"),
        ({"ask": "please"}, "there is none"),
    ],
)
def test_what_does_not_work_says_why(tmp_path: Path, server: str, way: object, words: str) -> None:
    """No traceback, and the test ends with what was learned."""
    with (
        live(tmp_path, server, {"guardrails": {"full": way}}) as stand,
        pytest.raises(CannotSwitch, match=words),
    ):
        stand.switch("guardrails", "full")


def test_a_call_that_is_refused_says_by_what(tmp_path: Path, server: str) -> None:
    """The status and the beginning of the answer."""
    call = {"url": f"{server}/inferometer/state", "method": "PATCH", "body": {"nonsense": 1}}
    with (
        live(tmp_path, server, {"guardrails": {"full": {"http": call}}}) as stand,
        pytest.raises(CannotSwitch, match="400"),
    ):
        stand.switch("guardrails", "full")


def test_a_password_in_a_calls_url_is_refused_before_it_could_be_written_down() -> None:
    """The plan is saved, and the report says how the system was switched."""
    with pytest.raises(ValueError, match="password"):
        Switching.model_validate({"guardrails": {"full": {"http": {"url": "http://me:secret@localhost/"}}}})


@pytest.mark.parametrize(
    "way",
    [
        {"http": {"url": "http://localhost/", "body": {"deep": [{"password": "secret"}]}}},
        {"http": {"url": "http://localhost/", "body": "sk-abcdefghijk"}},
        {"command": "curl -H 'Authorization: Bearer abcdef' localhost"},
        {"command": "curl http://me:secret@localhost"},
    ],
)
def test_a_secret_in_a_body_or_a_command_is_refused_too(way: object) -> None:
    """For the same reason; the message does not repeat it."""
    with pytest.raises(ValueError, match="looks like a secret"):
        Switching.model_validate({"guardrails": {"full": way}})


@pytest.mark.parametrize(
    "command",
    [
        'curl -H "Authorization: Bearer $KEY" localhost',
        "curl http://me:$PASSWORD@localhost",
        "systemctl restart basic vllm-plain --api-key-env KEY",
    ],
)
def test_a_command_may_name_the_variable_that_holds_a_key(command: str) -> None:
    """That is what a plan's author is told to write."""
    assert Switching.model_validate({"guardrails": {"full": {"command": command}}})


def test_what_a_command_says_is_told_without_keys(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that echoes its environment, as `set -x` does, puts no key into a report: not even the end of one, cut."""
    key = "first-half-of-a-key" + "x" * 300
    monkeypatch.setenv("SOME_API_KEY", key)
    with (
        live(
            tmp_path, server, {"guardrails": {"full": {"command": 'echo "$SOME_API_KEY"; exit 1'}}}
        ) as stand,
        pytest.raises(CannotSwitch) as why,
    ):
        stand.switch("guardrails", "full")
    assert "xxx" not in str(why.value)
    assert "[redacted]" in str(why.value)


def test_a_server_that_nobody_can_switch_is_named_with_what_to_write(tmp_path: Path) -> None:
    """The key of the plan that is missing."""
    with (
        live(tmp_path, "http://127.0.0.1:1") as stand,
        pytest.raises(CannotSwitch, match=r"switch\.prefix_cache\.enabled"),
    ):
        stand.switch("prefix_cache", "enabled")


def test_a_virtual_engine_has_the_settings_of_its_state() -> None:
    """Guardrails one by one, and the cache."""
    stand = Virtual(Chosen("testbed", TESTBED), Silent())
    seen = {}
    for state in STATES["guardrails"]:
        assert stand.switch("guardrails", state).status == "verified"
        settings = stand._engine.settings
        seen[state] = (settings.input_check_ns > 0, settings.output_check_tokens > 0)
    assert seen == {
        "baseline": (False, False),
        "input": (True, False),
        "output": (False, True),
        "full": (True, True),
    }
    stand.switch("prefix_cache", "disabled")
    assert not stand._engine.settings.prefix_caching
    stand.switch("prefix_cache", "enabled")
    assert stand._engine.settings.prefix_caching


FILTERS = {"baseline": (False, False), "input": (True, False), "output": (False, True), "full": (True, True)}
"""By configuration of draft 5.10.2: whether prompts and answers are checked."""
CHECKED = ("input_check=2ms", "output_check_tokens=8", "output_check=1ms")


@pytest.mark.parametrize("declared", [{}, {"input_filter": False, "output_filter": True, "names": ["mine"]}])
@pytest.mark.parametrize("real", [True, False])
def test_each_run_discloses_the_filters_that_were_on(
    tmp_path: Path, real: bool, declared: dict[str, object]
) -> None:
    """Draft 4.8.1, on the embedded engine and in virtual time, whatever the plan declares: by its summary, and by the plan that
    is saved with a run on a real engine; a simulation saves its engine instead."""
    plan = Plan.model_validate(
        {
            "sut": {"guardrails": declared},
            "workload": {"input_tokens": 20, "output_tokens": 4},
            "load": {"requests": 2, "rate": 50, "warmup": 0},
        }
    )
    engine = EngineChoice(preset="tiny-cpu", settings=CHECKED)
    with ExitStack() as stack:
        stand: Stand = Virtual(choose(engine.preset, engine.settings), Silent())
        if real:
            log = tmp_path / "log.txt"
            stand = stack.enter_context(Live(plan, engine, Switching(), Silent(), log, nobody))
        for state, filters in FILTERS.items():
            stand.switch("guardrails", state)
            found = stand.measure(plan, tmp_path / state)
            rails = found.summary.sut.guardrails
            assert (rails.input_filter, rails.output_filter) == filters
            assert len(rails.names) == sum(filters)
            saved = read(RunFolder.open(found.folder).plan).sut.guardrails
            assert not real or (saved.input_filter, saved.output_filter) == filters
