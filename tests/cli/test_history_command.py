"""`inferometer history` as people use it: results of simulations, their index, and what goes wrong with it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from commands import finish, only, run

from inferometer.cli import indexing
from inferometer.studies.history import keeping
from inferometer.studies.history.check import EXIT_CODES

FAST = ["--requests", "200", "--rate", "100", "--warmup", "5", "--input-tokens", "20", "--output-tokens", "5"]
QUIET = [*FAST, "--quiet"]


def history(command: str, out: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    return finish("history", command, *arguments, "--index", str(out / "history.sqlite3"), **env)


def listed(out: Path, *arguments: str) -> list[dict[str, object]]:
    code, stdout, _ = history("list", out, *arguments, "--json")
    assert code == 0
    found: list[dict[str, object]] = json.loads(stdout)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of eleven simulated runs of one plan, the last on a slower engine of the same settings otherwise."""
    out = tmp_path_factory.mktemp("runs")
    for seed in range(10):
        run("simulate", *QUIET, "--seed", str(seed), out=out)
    run("simulate", *QUIET, "--seed", "10", "--set", "step_base=9ms", out=out)
    return out


def test_what_a_run_came_to_is_in_the_index(runs: Path) -> None:
    """One entry a run, in the order of time, with the folder it is in."""
    found = listed(runs)
    assert len(found) == 11
    entries = [one["entry"] for one in found]
    assert all(isinstance(one, dict) and (runs / str(one["folder"])).is_dir() for one in entries)
    assert [one["number"] for one in found] == list(range(1, 12))


def test_a_rebuild_gives_the_same_as_the_commands_did(runs: Path) -> None:
    """The index is a cache."""
    before = listed(runs)
    code, stdout, _ = history("rebuild", runs)
    assert (code, stdout.split(":")[0]) == (0, "11 results")
    assert listed(runs) == before


def test_a_list_is_filtered_and_fits_80_columns(runs: Path) -> None:
    """By kind, verdict, model, date; columns are dropped by name, never cut."""
    _, stdout, _ = history("list", runs, "--last", "3", COLUMNS="80")
    lines = stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "8 older: --last 11 shows all." in lines
    assert listed(runs, "--kind", "bench") == []
    assert len(listed(runs, "--model", "refer")) == 11
    assert listed(runs, "--since", "2999-01-01") == []
    assert history("list", runs, "--kind", "test")[1] == "No results.\n"
    code, _, stderr = history("list", runs, "--since", "soon")
    assert (code, "'soon' is no date" in stderr) == (2, True)


def test_an_entry_is_shown_whole(runs: Path) -> None:
    """Figures, conditions and versions; a number that there is not is exit code 2."""
    _, stdout, _ = history("show", runs, "1")
    assert all(
        word in stdout for word in ("ttft_p50", "load.rate", "sut.settings", "instrument", "success_rate")
    )
    _, stdout, _ = history("show", runs, "1", "--json")
    assert json.loads(stdout)["entry"]["kind"] == "run"
    code, _, stderr = history("show", runs, "99")
    assert (code, "there is no entry 99" in stderr) == (2, True)


def test_a_check_says_what_is_not_comparable_and_why(runs: Path) -> None:
    """Other settings are another engine; ignoring them makes it a regression."""
    code, stdout, _ = history("check", runs)
    assert code == 4
    assert "differs in sut.settings" in stdout
    code, stdout, _ = history("check", runs, "10", "--json")
    document = json.loads(stdout)
    assert code == EXIT_CODES[document["outcome"]]
    assert document["results"][0]["compared"] == [
        one["number"]
        for one in listed(runs)[:9]
        if one["entry"]["verdict"] == "VALID"  # type: ignore[index]
    ]


def test_a_plot_is_drawn_in_a_terminal_and_as_a_page(runs: Path, tmp_path: Path) -> None:
    """In 80 columns, in ASCII, and as one file that loads nothing."""
    _, stdout, _ = history("plot", runs, "ttft_p50", "--ignore", "sut.settings", COLUMNS="80")
    assert "11 results, entries 1 to 11" in stdout
    page = tmp_path / "plot.html"
    assert history("plot", runs, "ttft_p50", "--html", str(page))[0] == 0
    assert "<svg" in page.read_text()
    assert "default-src 'none'" in page.read_text()
    code, _, stderr = history("plot", runs, "nothing")
    assert (code, "there are e2e_p50" in stderr) == (2, True)


def test_results_go_to_another_machine_and_back(runs: Path, tmp_path: Path) -> None:
    """As JSON Lines; a second import adds nothing, and a rebuild keeps them."""
    there = tmp_path / "there"
    there.mkdir()
    file = tmp_path / "all.jsonl"
    assert history("export", runs, "--out", str(file))[0] == 0
    assert history("import", there, str(file))[1] == "11 of 11 results were new\n"
    assert history("import", there, str(file))[1] == "0 of 11 results were new\n"
    assert history("rebuild", there)[1].startswith("11 results")
    assert history("export", there)[1] == file.read_text() == history("export", runs)[1]
    file.write_text(file.read_text().replace('"run"', '"walk"', 1))
    code, _, stderr = history("import", there, str(file))
    assert (code, f"{file}:1: " in stderr) == (2, True)


def test_a_table_is_a_row_for_each_figure(runs: Path) -> None:
    """CSV with a header."""
    _, stdout, _ = history("export", runs, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(stdout)))
    assert {row["number"] for row in rows} == {str(number) for number in range(1, 12)}
    assert all(float(row["value"]) > 0 for row in rows)


def test_tests_repeats_and_comparisons_are_in_it(tmp_path: Path) -> None:
    """A comparison of folders only where there is an index beside them; it survives a rebuild."""
    words = ["test", "ttft", "--simulate", "--quick", "--quiet", "--preset", "tiny-cpu"]
    run(*words, "--repeats", "3", out=tmp_path)
    assert [one["entry"]["kind"] for one in listed(tmp_path)] == ["test"] * 3  # type: ignore[index]
    side = str(only(tmp_path))
    finish("compare", side, side)  # refused: one campaign cannot be on two sides
    run(*words, "--repeats", "3", "--seed", "7", "--index", "none", out=tmp_path / "other")
    other = str(only(tmp_path / "other"))
    assert finish("compare", other, side)[0] == finish("compare", side, other)[0]
    kinds = [one["entry"]["kind"] for one in listed(tmp_path)]  # type: ignore[index]
    assert kinds == ["test"] * 3 + ["comparison"]
    history("rebuild", tmp_path)
    # Those of the other folder lie below this one.
    assert sorted(one["entry"]["kind"] for one in listed(tmp_path)) == ["comparison"] + ["test"] * 6  # type: ignore[index]
    assert not (tmp_path / "other" / "history.sqlite3").exists()


def test_whatever_is_wrong_with_the_index_a_run_comes_to_its_end(tmp_path: Path) -> None:
    """The exit code and the result are the same; a note says what is wrong."""
    good = run("simulate", *QUIET, "--json", "--index", "none", out=tmp_path / "good")
    assert not (tmp_path / "good" / "history.sqlite3").exists()
    assert good[2] == ""
    for place in (str(tmp_path), "/dev/null", "/proc/history.sqlite3", str(tmp_path / "no" / "index")):
        code, stdout, stderr = run("simulate", *QUIET, "--json", "--index", place, out=tmp_path / "runs")
        assert code == good[0]
        assert json.loads(stdout)["metrics"] == json.loads(good[1])["metrics"]
        assert stderr.startswith("not in the history: ")
        assert "`inferometer history rebuild` adds it later" in stderr
        assert len(stderr.splitlines()) == 1


def test_a_fault_that_nobody_foresaw_leaves_the_result_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is finished; its exit code is not the index's to change."""

    def fails(*_: object) -> None:
        raise ValueError("an odd index")

    monkeypatch.setattr(keeping, "remember", fails)
    indexing.remembered(None, tmp_path, [])
    assert capsys.readouterr().err.startswith("not in the history: an odd index; ")


def test_a_folder_has_the_last_word_about_its_result(tmp_path: Path) -> None:
    """Against a line that repeats it with other figures, imported before the folder was there."""
    run("simulate", *QUIET, out=tmp_path / "first")
    truth = listed(tmp_path / "first")
    (line,) = history("export", tmp_path / "first")[1].splitlines()
    lie = json.loads(line)
    for figure in lie["figures"]:
        figure |= {"value": 7.0, "ci95": None}
    home = tmp_path / "second"
    home.mkdir()
    (tmp_path / "lie.jsonl").write_text(json.dumps(lie) + "\n")
    assert history("import", home, str(tmp_path / "lie.jsonl"))[1] == "1 of 1 results were new\n"
    folder = only(tmp_path / "first")
    shutil.copytree(folder, home / folder.name)
    assert history("rebuild", home)[0] == 0
    assert listed(home) == truth


def test_a_damaged_index_is_made_anew_by_the_next_run(tmp_path: Path) -> None:
    """With a note; the damaged file is kept."""
    run("simulate", *QUIET, "--seed", "1", out=tmp_path)
    (tmp_path / "history.sqlite3").write_bytes(b"SQLite format 3\0" + b"\x7f" * 5000)
    code, _, stderr = run("simulate", *QUIET, "--seed", "2", out=tmp_path)
    assert code in (0, 4)
    assert "is the database of another program. It is kept as history.sqlite3.damaged-" in stderr
    assert len(listed(tmp_path)) == 2
    assert len(list(tmp_path.glob("history.sqlite3.damaged-*"))) == 1


def test_a_report_that_is_written_again_renews_its_entry(tmp_path: Path) -> None:
    """Where there is an index beside the folder; else none is made."""
    run("simulate", *QUIET, out=tmp_path)
    folder = only(tmp_path)
    finish("report", str(folder))
    assert len(listed(tmp_path)) == 1
    (tmp_path / "history.sqlite3").unlink()
    finish("report", str(folder))
    assert not (tmp_path / "history.sqlite3").exists()


def test_without_a_folder_of_results_there_is_no_history(tmp_path: Path) -> None:
    """Exit code 2, and how to name another."""
    for command in ("list", "check", "export"):
        code, _, stderr = history(command, tmp_path / "none")
        assert (code, "--index" in stderr) == (2, True)
    assert history("rebuild", tmp_path / "none")[0] == 2
    code, _, stderr = history("check", tmp_path)
    assert (code, "holds no result that can be checked" in stderr) == (2, True)


@pytest.mark.parametrize(
    "words", [["--threshold", "-1"], ["--last", "3"], ["--metric", "x"], ["--threshold", "nan"]]
)
def test_a_question_that_cannot_be_answered_is_refused(words: list[str], runs: Path) -> None:
    """Exit code 2, in words."""
    code, stdout, stderr = history("check", runs, *words)
    assert (code, stdout) == (2, "")
    assert words[0] in stderr
