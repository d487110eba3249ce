"""Repeats of a campaign: each is whole, each has its own seed, and nothing measured is lost."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from commands import finish
from msgspec.structs import replace
from procedures.driving import Silent
from rich.console import Console

from inferometer.errors import PeerError, PlanError
from inferometer.plan.campaign import Campaign, campaign
from inferometer.plan.rerun import again
from inferometer.report.campaign.repeats import render_repeats
from inferometer.run.ui import Ui
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import Tested, carry_out
from inferometer.studies.repeats import Conduct, Repeated, conduct_repeats, repeat_of
from inferometer.studies.stand import Confirm, Virtual

FLAGS: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "4", "--rate": "20", "--seed": "7"}


def small() -> Campaign:
    return campaign(["ttft"], None, FLAGS, ["ttft.requests=40"], simulated=True, quick=True)


def virtual(folder: Path, one: Campaign, ui: Ui, confirm: Confirm, command: str) -> Tested:
    stand = Virtual(Chosen("tiny-cpu", Settings(step_base_ns=5e6)), Silent())
    return carry_out(one, stand, folder, ui, command)


def ending(at: int, why: BaseException) -> Conduct:
    """What carries campaigns out until repeat `at`, from 0, which ends so."""
    begun: list[Path] = []

    def conduct(folder: Path, one: Campaign, ui: Ui, confirm: Confirm, command: str) -> Tested:
        begun.append(folder)
        if len(begun) > at:
            raise why
        return virtual(folder, one, ui, confirm, command)

    return conduct


def repeated(out: Path, repeats: int, conduct: Conduct = virtual) -> Repeated:
    return conduct_repeats(
        small(), repeats, out, Silent(), lambda _: None, lambda one: "inferometer test", conduct
    )


def test_each_repeat_is_a_whole_campaign_with_its_own_seed(tmp_path: Path) -> None:
    """It can be carried out again alone, and comes to its own answer."""
    found = repeated(tmp_path, 3)
    assert [one.folder.parent for one in found.repeats] == [found.folder] * 3
    assert [one.document.reproduction.seeds for one in found.repeats] == [(7,), (1_000_007,), (2_000_007,)]
    prints = {run.fingerprint for one in found.repeats for test in one.document.tests for run in test.runs}
    assert len(prints) == sum(len(test.runs) for one in found.repeats for test in one.document.tests)
    for number, one in enumerate(found.repeats):
        assert again(one.folder) == repeat_of(small(), number)
    assert len({one.document.id for one in found.repeats}) == 3


def test_repeats_of_equal_plans_have_equal_seeds() -> None:
    """So that the repeats of two systems pair; and the first is the plan itself."""
    assert repeat_of(small(), 0) == small()
    assert [repeat_of(small(), 2).plan.workload.seed for _ in range(2)] == [2_000_007] * 2


@pytest.mark.parametrize(
    ("why", "code"), [(KeyboardInterrupt(), 130), (PeerError("no answer"), 5)], ids=["ctrl-c", "server"]
)
def test_what_was_measured_before_the_end_is_kept(tmp_path: Path, why: BaseException, code: int) -> None:
    """Two repeats of four, whole, with the exit code of what ended the third; in the first there is nothing to keep."""
    found = repeated(tmp_path, 4, ending(2, why))
    assert len(found.repeats) == 2
    assert all((one.folder / "campaign.json").is_file() for one in found.repeats)
    assert found.exit_code == code
    out = io.StringIO()
    render_repeats([one.document for one in found.repeats], 4, Console(file=out, width=60), "there")
    assert "2 of 4 repeats were carried out." in out.getvalue()
    with pytest.raises(type(why)):
        repeated(tmp_path, 4, ending(0, why))


@pytest.mark.parametrize("repeats", [0, -1, 1_001])
def test_a_number_of_repeats_that_is_none_is_refused(tmp_path: Path, repeats: int) -> None:
    """Before anything is made."""
    with pytest.raises(PlanError, match="--repeats"):
        repeated(tmp_path, repeats)
    assert list(tmp_path.iterdir()) == []


def test_the_command_shows_all_repeats_and_ends_with_the_worst_of_them(tmp_path: Path) -> None:
    """On 60 columns; as JSON a campaign a line; and each names the command that repeats it alone."""
    flags = [word for pair in FLAGS.items() for word in pair]
    words = ["test", "ttft", "--simulate", "--quick", *flags, "--param", "ttft.requests=20", "--repeats", "2"]
    code, text, _ = finish(*map(str, words), "--out", str(tmp_path), "--quiet", COLUMNS="60")
    documents = [json.loads(path.read_bytes()) for path in sorted(tmp_path.glob("*/*/campaign.json"))]
    worst = {"VALID": 0, "INVALID": 3, "INCONCLUSIVE": 4}
    assert code == max((worst[one["verdict"]["status"]] for one in documents), key=[0, 4, 3].index)
    assert max(map(len, text.splitlines()[:-1])) <= 60
    assert "seed 7" in text
    assert "seed 1000007" in text
    commands = [one["reproduction"]["command"] for one in documents]
    assert all("--repeats" not in command for command in commands)
    code, text, _ = finish(*map(str, words), "--out", str(tmp_path), "--quiet", "--json")
    assert [json.loads(line)["schema"] for line in text.splitlines()] == ["inferometer/campaign/4"] * 2


def shown(*repeats: Repeated) -> str:
    """What is printed of these repeats together."""
    documents = [one.document for each in repeats for one in each.repeats]
    out = io.StringIO()
    render_repeats(documents, len(documents), Console(file=out, width=100), "there")
    return " ".join(out.getvalue().split())


def test_repeats_on_a_system_that_changes_between_them_are_said_to_differ(tmp_path: Path) -> None:
    """Half as slow again is; the same system is not."""

    def slow(folder: Path, one: Campaign, ui: Ui, confirm: Confirm, command: str) -> Tested:
        stand = Virtual(Chosen("tiny-cpu", Settings(step_base_ns=7.5e6)), Silent())
        return carry_out(one, stand, folder, ui, command)

    usual, changed = repeated(tmp_path / "usual", 3), repeated(tmp_path / "changed", 1, slow)
    assert "repeats differ" not in shown(usual)
    assert "ttft: repeats differ by more than their own intervals explain" in shown(usual, changed)


def test_an_invalid_repeat_is_not_in_the_mean(tmp_path: Path) -> None:
    """It is counted, and its number is not."""
    found = repeated(tmp_path, 2)
    first, second = (one.document for one in found.repeats)
    tests = tuple(replace(test, verdict=replace(test.verdict, status="INVALID")) for test in second.tests)
    out = io.StringIO()
    render_repeats([first, replace(second, tests=tests)], 2, Console(file=out, width=100), "there")
    assert "1 INVALID" in out.getvalue()
    assert "(of 1)" in out.getvalue()
