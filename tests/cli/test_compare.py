"""`inferometer compare` from run folders to exit codes. The sides are simulated, so the true difference is known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import pytest
from commands import finish
from comparing import FLAGS, Listener, simulated, simulated_side

from inferometer.cli.app import run
from inferometer.documents.schemas.__main__ import generated
from inferometer.errors import PeerError, PlanError, RecordError
from inferometer.plan import saved
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.run.evaluate import RunResult
from inferometer.run.ui import Ui
from inferometer.run.write_workload import make
from inferometer.studies.campaign_comparison import compare_campaign_folders
from inferometer.studies.comparison import (
    Measure,
    Question,
    compare_folders,
    compare_live,
    folders,
    interleave,
    turns,
)
from inferometer.workload.sources import sourced

TOKENS = Question(metrics=("tpot_p50", "success_rate"))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Three runs each: the baseline, itself with other luck, one whose steps take half as long again."""
    place = tmp_path_factory.mktemp("sides")
    made = {
        "old": simulated_side(place / "old"),
        "same": simulated_side(place / "same", "jitter=0.021"),
        "slow": simulated_side(place / "slow", "step_base=3ms"),
    }
    return {name: str(path) for name, path in made.items()}


def test_a_slower_engine_is_a_regression_and_its_like_is_not(sides: dict[str, str]) -> None:
    """The step of 2 ms made 3: TPOT about 50 % longer, exit 6; the other way about better, exit 0; A/A nothing, exit 0."""
    worse = compare_folders([sides["old"], sides["slow"]], TOKENS)
    assert (worse.document.outcome, worse.exit_code) == ("regression", 6)
    tpot = next(one for one in worse.document.contrasts[0].metrics if one.name == "tpot_p50")
    assert tpot.relative == pytest.approx(0.5, abs=0.1)
    assert tpot.baseline is not None
    assert tpot.side is not None
    assert tpot.baseline.n == tpot.side.n == 3
    better = compare_folders([sides["slow"], sides["old"]], TOKENS)
    assert (better.document.outcome, better.exit_code) == ("no_regression", 0)
    same = compare_folders([sides["old"], sides["same"]], Question())
    assert (same.document.outcome, same.exit_code) == ("no_regression", 0)
    assert {one.verdict for one in same.document.contrasts[0].metrics} == {"no_difference"}


def test_the_figures_are_those_of_the_runs_summaries(sides: dict[str, str]) -> None:
    """A run is one value, taken from its summary, and stands in the order of its folder."""
    found = compare_folders([sides["old"], sides["slow"]], Question()).document
    folders = sorted(Path(sides["slow"]).iterdir())
    summaries = [json.loads((one / "summary.json").read_text()) for one in folders]
    metrics = {one.name: list(one.side.values) for one in found.contrasts[0].metrics if one.side}
    assert metrics["ttft_p99"] == [one["metrics"]["ttft_ms"]["p99"] for one in summaries]
    assert metrics["output_tok_s"] == [one["throughput"]["output_tok_s"] for one in summaries]
    assert metrics["success_rate"] == [1.0, 1.0, 1.0]
    assert [one.seed for one in found.sides[1].runs] == [1, 2, 3]


def test_noise_measured_on_the_same_system_is_the_floor(sides: dict[str, str]) -> None:
    """Its difference from the baseline, for each figure; below it nothing is called a difference."""
    criteria = Question(metrics=("tpot_p50",), noise=(sides["slow"],))
    found = compare_folders([sides["old"], sides["same"]], criteria).document
    floor = found.contrasts[0].metrics[0].floor
    assert floor is not None
    assert floor.value >= 0
    statuses = {item.code: item.status for item in found.checklist}
    assert statuses["noise"] == "violated"  # it is no run of the baseline's system
    assert "tpot_p50" in found.method.noise_moves


def test_a_side_is_a_folder_a_list_or_a_folder_of_folders(sides: dict[str, str]) -> None:
    """All three name the same runs; fewer of them are no claim (exit 4)."""
    old, slow = ([str(one) for one in sorted(Path(sides[name]).iterdir())] for name in ("old", "slow"))
    whole = compare_folders([sides["old"], sides["slow"]], TOKENS).document
    listed = compare_folders([",".join(old), ", ".join(slow)], TOKENS).document
    assert listed.contrasts == whole.contrasts
    one = compare_folders([old[0], slow[0]], TOKENS)
    assert (one.document.outcome, one.exit_code) == ("no_claim", 4)


def test_other_requests_are_not_compared(sides: dict[str, str], tmp_path: Path) -> None:
    """Other seeds, or another load: exit 3, with what to do; an INVALID run is 3 as well."""
    seeds = simulated_side(tmp_path / "seeds", seeds=(4, 5, 6))
    found = compare_folders([sides["old"], str(seeds)], TOKENS)
    assert (found.document.outcome, found.exit_code) == ("not_comparable", 3)
    assert "seeds" in found.document.conclusion
    load = simulated_side(tmp_path / "load", rate="70")
    found = compare_folders([sides["old"], str(load)], TOKENS)
    violated = {item.code for item in found.document.checklist if item.status == "violated"}
    assert "load" in violated
    assert found.exit_code == 3


def test_what_cannot_be_asked_is_refused_at_once(sides: dict[str, str], tmp_path: Path) -> None:
    """All mistakes together; a run on both sides, or simulated again with its seed, is no second run."""
    with pytest.raises(PlanError) as wrong:
        compare_folders(
            [sides["old"]], Question(metrics=("speed",), prices=("C=1", "A=free"), threshold=-1.0)
        )
    places = [problem.where for problem in wrong.value.problems]
    assert places == ["SIDES", "--metric", "--threshold", "--price", "--price", "--price-source"]
    with pytest.raises(PlanError, match="named twice"):
        compare_folders([sides["old"], sides["old"]], TOKENS)
    again = simulated_side(tmp_path, seeds=(1, 1))
    with pytest.raises(PlanError, match="the same run again"):
        compare_folders([sides["old"], str(again)], TOKENS)
    with pytest.raises(RecordError, match="neither a run folder"):
        compare_folders([sides["old"], str(tmp_path / "none")], TOKENS)


@pytest.mark.parametrize(
    ("document", "read"),
    [
        ("plan.json", folders),
        ("campaign.json", lambda side: compare_campaign_folders([side, side], Question())),
    ],
)
def test_no_run_is_read_from_outside_a_side(
    document: str, read: Callable[[str], object], tmp_path: Path
) -> None:
    """Law: a folder of runs or of campaigns may be a stranger's, and a link in it leads to another folder of the user's."""
    side, elsewhere = tmp_path / "side", tmp_path / "elsewhere"
    for place in (side / "own", elsewhere):
        place.mkdir(parents=True)
        (place / document).write_text("{}")
    (side / "x").symlink_to(elsewhere)
    with pytest.raises(RecordError, match=r"side/x: is a link.*leads out of"):
        read(str(side))


def test_a_side_may_hold_links_within_it_and_be_reached_by_one(tmp_path: Path) -> None:
    """Law: what the user names is followed, and so is what stays in it."""
    side = tmp_path / "side"
    (side / "one").mkdir(parents=True)
    (side / "one" / "plan.json").write_text("{}")
    (side / "two").symlink_to(side / "one")
    (tmp_path / "link").symlink_to(side)
    assert folders(str(tmp_path / "link")) == [tmp_path / "link" / "one", tmp_path / "link" / "two"]


def test_a_run_without_a_summary_says_how_to_make_one(tmp_path: Path) -> None:
    """Damaged, missing, or of another version."""
    side = simulated_side(tmp_path / "a", seeds=(1,))
    other = simulated_side(tmp_path / "b", seeds=(1,))
    (summary,) = other.glob("*/summary.json")
    for content in ("{", '{"schema": "inferometer/summary/999"}'):
        summary.write_text(content)
        with pytest.raises(RecordError, match="inferometer report"):
            compare_folders([str(side), str(other)], TOKENS)


@pytest.mark.parametrize("name", ["summary.json", "requests.parquet", "pulse.parquet", "plan.json"])
def test_files_of_another_run_are_refused(name: str, sides: dict[str, str], tmp_path: Path) -> None:
    """The figures of one run are never taken for another's: the file is named."""
    one, *others = sorted(Path(sides["slow"]).iterdir())
    mixed = tmp_path / "mixed"
    shutil.copytree(one, mixed)
    shutil.copy(others[0] / name, mixed / name)
    with pytest.raises(RecordError, match=name):
        compare_folders([sides["old"], ",".join(map(str, (mixed, *others)))], TOKENS)


def test_a_copy_of_a_run_is_no_second_run(sides: dict[str, str], tmp_path: Path) -> None:
    """Neither on its own side, where it would make runs look alike, nor on another."""
    one, *others = map(str, sorted(Path(sides["slow"]).iterdir()))
    copied = str(shutil.copytree(one, tmp_path / "again"))
    for side in ([one, copied, *others], [copied, *others]):
        baseline = sides["old"] if len(side) > 3 else sides["slow"]
        with pytest.raises(PlanError, match="counts once"):
            compare_folders([baseline, ",".join(side)], TOKENS)


def test_requests_that_the_drain_limit_cut_are_failures(tmp_path: Path) -> None:
    """As in the run's own success rate."""
    cut = simulated_side(tmp_path / "cut", rate="40", duration="2", requests=None, drain="0.01")
    plain = simulated_side(tmp_path / "plain", rate="40", duration="2", requests=None)
    found = compare_folders([str(plain), str(cut)], TOKENS).document.contrasts[0].metrics
    side = next(one.side for one in found if one.name == "success_rate")
    summaries = [json.loads((one / "summary.json").read_text()) for one in sorted(cut.iterdir())]
    assert side is not None
    assert list(side.values) == [one["success_rate"]["value"] for one in summaries]
    assert min(side.values) < 1


def test_the_command_writes_all_its_forms(sides: dict[str, str], tmp_path: Path) -> None:
    """Tables on stdout, or JSON that keeps to the schema; JUnit and Markdown beside; the exit code is the outcome's."""
    junit, markdown = tmp_path / "compare.xml", tmp_path / "compare.md"
    sides_and_flags = [sides["old"], sides["slow"], "--metric", "tpot_p50", "--threshold", "10"]
    code, stdout, stderr = finish(
        "compare", *sides_and_flags, "--junit", str(junit), "--markdown", str(markdown)
    )
    assert (code, stderr) == (6, "")
    assert "REGRESSION  B against A: worse in TPOT P50" in stdout
    assert max(map(len, stdout.splitlines())) <= 80
    assert Xml.parse(junit).getroot().get("failures") == "1"
    assert markdown.read_text().startswith("# REGRESSION\n")


def test_json_on_stdout_keeps_to_the_schema(
    sides: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """And is all that stands there."""
    assert run(["compare", sides["slow"], sides["old"], "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), json.loads(generated("comparison")))


def test_wrong_usage_is_told_in_words(sides: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2 with the flag named, and nothing on stdout."""
    assert run(["compare", sides["slow"], sides["old"], "--repeats", "3"]) == 2
    assert run(["compare", sides["slow"], sides["old"], "--metric", "speed"]) == 2
    assert run(["compare", sides["slow"], sides["old"], "--junit", f"{sides['old']}/none/x.xml"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "--junit: the file's folder does not exist" in shown.err
    assert "--interleave" in shown.err
    assert "there is no 'speed'" in shown.err


# Live systems, in turn.


def plans(count: int = 2) -> list[Plan]:
    names = ["old", "new", "third"][:count]
    return [build(None, FLAGS | {"--seed": "7", "--name": name}) for name in names]


def with_settings(**settings: str) -> Measure:
    """In virtual time, each plan's engine with a setting of its own."""

    def measure(plan: Plan, out: Path, ui: Ui) -> RunResult:
        given = settings.get(plan.name)
        return simulated(plan, out, ui, *([] if given is None else [given]))

    return measure


@pytest.mark.parametrize(("sides", "rounds"), [(2, 2), (2, 6), (3, 3), (3, 6)])
def test_every_side_is_as_often_at_every_place(sides: int, rounds: int) -> None:
    """Every round has all of them, and in as many rounds as sides, or a multiple, no side comes first more often."""
    order = turns(sides, rounds)
    assert all(sorted(one) == list(range(sides)) for one in order)
    for place in range(sides):
        at = [one[place] for one in order]
        assert {at.count(side) for side in range(sides)} == {rounds // sides}


def test_live_sides_are_measured_in_turn_with_the_same_seeds(tmp_path: Path) -> None:
    """A B, B A, A B; repeat k has the first plan's seed plus k on every side; what comes of it is compared."""
    listener = Listener()
    measure = with_settings(new="step_base=3ms")
    compared = compare_live(plans(), 3, tmp_path, 0, TOKENS, listener, measure)
    assert (compared.document.outcome, compared.exit_code) == ("regression", 6)
    order = [note.split(": ")[1][0] for note in listener.notes if note.startswith("round")]
    assert "".join(order) == "ABBAAB"
    assert [side.name for side in compared.document.sides] == ["A-old", "B-new"]
    (place,) = tmp_path.iterdir()
    assert sorted(one.name for one in place.iterdir()) == ["A-old", "B-new"]
    for side in place.iterdir():
        runs = sorted(side.iterdir())
        assert [saved.read(one / "plan.json").workload.seed for one in runs] == [7, 8, 9]
    again = compare_folders([str(place / "A-old"), str(place / "B-new")], TOKENS)
    assert again.document.contrasts == compared.document.contrasts


def test_every_round_of_a_workload_file_has_the_seed_of_the_file(tmp_path: Path) -> None:
    """Whether the plans were read with the file or not, no round asks for other requests than those that the file holds, and
    the plan of each run says so."""
    make(build(None, FLAGS | {"--seed": "7"}), tmp_path / "made", lambda _: None)
    given: dict[str, object] = {name: FLAGS[name] for name in ("--rate", "--requests", "--warmup")}
    given["--workload-file"] = str(tmp_path / "made" / "workload.arrow")
    unread = [build(None, given | {"--name": name}) for name in ("old", "new")]
    read = [sourced(plan)[0] for plan in unread]
    seen: list[Plan] = []

    def measure(plan: Plan, out: Path, ui: Ui) -> RunResult:
        seen.append(plan)
        return simulated(plan, out, ui)

    for sides in (unread, read):
        series = interleave(sides, 2, tmp_path / sides[0].workload.kind, 0, Listener(), measure)
        assert [sourced(plan)[0].workload.seed for plan in seen] == [7] * 4
        seeds = [saved.read(run / "plan.json").workload.seed for side in series.runs for run in side]
        assert seeds == [7] * 4
        seen.clear()


def test_plans_under_different_loads_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    """Neither a folder nor a request comes of them."""
    other = build(None, FLAGS | {"--rate": "61"})
    with pytest.raises(PlanError, match=r"load\.rate"):
        interleave([*plans(1), other], 3, tmp_path, 0, Listener(), with_settings())
    with pytest.raises(PlanError, match="--repeats"):
        interleave(plans(), 0, tmp_path, 0, Listener(), with_settings())
    assert list(tmp_path.iterdir()) == []


def ending(after: int, how: BaseException) -> Measure:
    """Measures so many times, and then this happens."""
    left = [after]

    def measure(plan: Plan, out: Path, ui: Ui) -> RunResult:
        left[0] -= 1
        if left[0] < 0:
            raise how
        return simulated(plan, out, ui)

    return measure


def test_ctrl_c_keeps_what_was_measured_and_compares_whole_rounds(tmp_path: Path) -> None:
    """Pressed in the second round: one round is compared, the odd run stays on disk, exit 130."""
    compared = compare_live(plans(), 3, tmp_path, 0, TOKENS, Listener(), ending(3, KeyboardInterrupt()))
    assert compared.exit_code == 130
    assert compared.document.outcome == "no_claim"
    assert [len(side.runs) for side in compared.document.sides] == [1, 1]
    assert len(list(tmp_path.glob("*/*/*/summary.json"))) == 3


def test_ctrl_c_while_reading_the_record_ends_it_too(tmp_path: Path) -> None:
    """The conductor then says that nothing is lost; before the first round was through, nothing can be compared."""
    error = RecordError("measured, but not reported")
    error.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        compare_live(plans(), 3, tmp_path, 0, TOKENS, Listener(), ending(1, error))


def test_a_server_that_is_gone_says_where_the_earlier_runs_are(tmp_path: Path) -> None:
    """The side, and the folder; what was measured stays."""
    with pytest.raises(PeerError, match=r"side A: refused; 3 runs before it are in .*-compare"):
        interleave(plans(), 3, tmp_path, 0, Listener(), ending(3, PeerError("refused")))
    assert len(list(tmp_path.glob("*/*/*/summary.json"))) == 3


def test_the_command_measures_live_servers_in_turn(tmp_path: Path) -> None:
    """Two plans on the embedded server, one round: no claim (exit 4), both runs on disk with one seed."""
    texts = []
    for name in ("old", "new"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            f"name: {name}\nload: {{concurrency: 2, requests: 30, warmup: 2}}\n"
            "workload: {input_tokens: 20, output_tokens: 5, seed: 3}\n"
        )
        texts.append(str(path))
    out = tmp_path / "runs"
    code, stdout, stderr = finish(
        "compare", "--interleave", *texts, "--repeats", "1", "--out", str(out), "--json"
    )
    document = json.loads(stdout)
    # A busy machine may make a run INVALID, and then no claim is made for that reason.
    assert (document["outcome"], code) in (("no_claim", 4), ("invalid", 3))
    assert "round 1 of 1: A (old)" in stderr
    assert [side["runs"][0]["seed"] for side in document["sides"]] == [3, 3]
    assert len({side["runs"][0]["fingerprint"] for side in document["sides"]}) == 1
