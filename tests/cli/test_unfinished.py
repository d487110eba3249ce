"""What is under way, or was killed before its document was written: commands say so, and how to read what there is of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import SMALL, finish, only
from procedures.driving import Silent

from inferometer.drive.progress_counters import Progress
from inferometer.errors import RecordError
from inferometer.journal import hold
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.plan.campaign import campaign
from inferometer.plan.parse import build
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose
from inferometer.studies.campaign import conduct_in

NAMES = ("ttft", "long-context")
PARAMETERS = (
    "ttft.requests=20",
    "ttft.rates=[5]",
    "long-context.lengths=[64, 128]",
    "long-context.requests=3",
)


class Looking(Silent):
    """A Ui that looks, at each line and each progress, whether a folder is held."""

    def __init__(self, out: Path) -> None:
        super().__init__()
        self.out = out
        self.held: set[bool] = set()

    def note(self, text: str) -> None:
        """See Ui."""
        del text
        self.look()

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""
        del phase, progress, total
        self.look()

    def look(self) -> None:
        """Note whether each journal there is held."""
        self.held |= {hold.held(journal) for journal in self.out.glob("*/journal")}


def test_a_run_holds_its_journal_from_its_folder_to_its_report(tmp_path: Path) -> None:
    """Law: whoever looks while a command makes a run, also before and after its workers write, sees that it goes on."""
    ui = Looking(tmp_path)
    simulate(build(None, {"--requests": "20", "--warmup": "4"}), choose(None, ()), tmp_path, ui)
    assert ui.held == {True}
    assert not hold.held(only(tmp_path) / "journal")


@pytest.mark.parametrize("command", ["report", "compliance"])
def test_a_run_under_way_is_called_that(command: str, tmp_path: Path) -> None:
    """Law: a record that is still to come is not missing, and nobody is told to recover it."""
    assert finish("simulate", *SMALL, "--requests", "8", "--warmup", "0", "--out", str(tmp_path))[0] == 4
    folder = RunFolder(only(tmp_path))
    folder.record.unlink()
    (folder.path / "summary.json").unlink()
    with hold.joined(folder.journal):
        code, _, stderr = finish(command, str(folder.path))
    assert code == 2
    assert "under way" in stderr
    assert "missing" not in stderr
    assert "inferometer recover" not in stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick simulated campaign of two tests."""
    folder = tmp_path_factory.mktemp("campaign")
    requested = campaign(NAMES, None, None, PARAMETERS, simulated=True, quick=True)
    conduct_in(folder, requested, Silent(), lambda _: None, "inferometer test")
    return folder


@pytest.fixture
def killed(whole: Path, tmp_path: Path) -> Path:
    """The campaign as a kill within its first test leaves it: the request, a run that was over, and one that was cut off."""
    folder = tmp_path / "campaign"
    (folder / "runs").mkdir(parents=True)
    os.link(whole / "tests.json", folder / "tests.json")
    for number, run in enumerate(sorted((whole / "runs").iterdir())[:2]):
        place = folder / "runs" / f"{number}"
        place.mkdir()
        os.link(run / "plan.json", place / "plan.json")
        if number == 0:
            os.link(run / "summary.json", place / "summary.json")
    return folder


@pytest.mark.parametrize("command", ["report", "recover", "compliance"])
def test_a_campaign_killed_within_its_first_test_says_which_and_how_to_read_its_runs(
    command: str, killed: Path
) -> None:
    """Law: every run is named with the command that reads it."""
    code, _, stderr = finish(command, str(killed))
    assert code == 2
    assert "was ended within its first test, ttft" in stderr
    assert f"`inferometer report` reads each run that is over: {killed / 'runs' / '0'}" in stderr
    assert f"`inferometer recover` rebuilds each that was cut off: {killed / 'runs' / '1'}" in stderr
    assert f"`inferometer rerun {killed}`" in stderr


def test_a_campaign_in_its_first_test_is_under_way(killed: Path) -> None:
    """Law: while its command lives, it holds the campaign's folder, and nobody is told to recover or to repeat it."""
    with hold.joined(killed):
        code, _, stderr = finish("report", str(killed))
    assert code == 2
    assert "is under way within its first test, ttft" in stderr
    assert "recover" not in stderr
    assert "rerun" not in stderr


def test_a_campaign_holds_its_folder_while_it_lasts(tmp_path: Path) -> None:
    """And gives it back at its end."""

    class Campaign(Looking):
        def look(self) -> None:
            self.held.add(hold.held(self.out))

    ui = Campaign(tmp_path)
    requested = campaign(NAMES[:1], None, None, PARAMETERS[:2], simulated=True, quick=True)
    conduct_in(tmp_path, requested, ui, lambda _: None, "inferometer test")
    assert ui.held == {True}
    assert not hold.held(tmp_path)


def test_a_campaign_killed_within_a_later_test_names_that_test_and_its_runs(
    killed: Path, whole: Path, tmp_path: Path
) -> None:
    """Law: what the report of the tests before it has nothing of is named beside it."""
    out = tmp_path / "first"
    out.mkdir()
    requested = campaign(NAMES[:1], None, None, PARAMETERS[:2], simulated=True, quick=True)
    conduct_in(out, requested, Silent(), lambda _: None, "inferometer test")
    assert "within the test" not in finish("report", str(out))[2]
    os.replace(killed / "tests.json", out / "tests.json")
    os.rename(killed / "runs" / "1", out / "runs" / "later")
    code, stdout, stderr = finish("report", str(out), "--json")
    assert code in (0, 3, 4)
    assert [test["test"] for test in json.loads(stdout)["tests"]] == ["ttft"]
    assert "was ended within the test long-context" in stderr
    assert f"`inferometer recover` rebuilds each that was cut off: {out / 'runs' / 'later'}" in stderr


def test_a_folder_of_nothing_of_ours_is_only_called_no_run(tmp_path: Path) -> None:
    """No advice for what is unknown."""
    with pytest.raises(RecordError, match=r"not a run folder \(it holds no plan.json\)$"):
        RunFolder.open(tmp_path)


def test_a_journal_that_lost_its_end_makes_no_run_that_reached_its_own(tmp_path: Path) -> None:
    """Law: a run that ended, but whose journal did not reach the disk whole, is interrupted; never VALID by what is left."""
    load = ["--requests", "60", "--concurrency", "4", "--warmup", "0"]
    finish("simulate", *SMALL, *load, "--index", "none", "--out", str(tmp_path))
    folder = RunFolder(only(tmp_path))
    stream = folder.journal / "worker-0.arrows"
    os.truncate(stream, stream.stat().st_size - 8)  # no more than the mark of its end
    folder.record.unlink()
    code, _, words = finish("recover", str(folder.path))
    assert code == 130
    assert "journal/worker-0.arrows: not whole, or missing" in words
    summary = json.loads((folder.path / "summary.json").read_bytes())
    assert summary["run"]["interrupted"]
    assert "interrupted" in {one["code"] for one in summary["verdict"]["reasons"]}
    assert summary["verdict"]["status"] != "VALID"
