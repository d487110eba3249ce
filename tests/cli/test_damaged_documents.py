"""One member of a document replaced, removed or negated: a command that reads it has a result or refuses the file by name."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import agentics
import benches
import pytest
from commands import only
from damage import VALUES, damaged, places
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferometer.cli.app import run
from inferometer.documents.part import to_json

RUN, OTHER, CAMPAIGN, OTHER_CAMPAIGN, BENCH, OTHER_BENCH, AGENTIC = (
    "run",
    "other",
    "campaign",
    "other campaign",
    "bench",
    "other bench",
    "agentic",
)


class Reader(NamedTuple):
    """A command that reads a file of a folder, as words; FOLDER, OTHER, OTHER_CAMPAIGN, OTHER_BENCH and OUT stand for
    paths."""

    of: str
    file: str
    words: tuple[str, ...]


READERS = (
    Reader(RUN, "run.json", ("report", "FOLDER")),
    Reader(RUN, "plan.json", ("report", "FOLDER")),
    Reader(RUN, "run.json", ("rerun", "FOLDER", "--quiet", "--out", "OUT")),
    Reader(RUN, "plan.json", ("rerun", "FOLDER", "--quiet", "--out", "OUT")),
    Reader(RUN, "plan.json", ("compare", "FOLDER", "OTHER")),
    Reader(RUN, "run.json", ("compare", "FOLDER", "OTHER")),
    Reader(RUN, "summary.json", ("compare", "FOLDER", "OTHER")),
    Reader(RUN, "summary.json", ("compliance", "FOLDER")),
    Reader(RUN, "run.json", ("simulate", "--fit", "FOLDER", "--quiet", "--out", "OUT")),
    Reader(RUN, "plan.json", ("simulate", "--fit", "FOLDER", "--quiet", "--out", "OUT")),
    Reader(CAMPAIGN, "campaign.json", ("compliance", "FOLDER")),
    Reader(CAMPAIGN, "campaign.json", ("report", "FOLDER", "--redact", "capacity")),
    Reader(CAMPAIGN, "campaign.json", ("compare", "FOLDER", "OTHER_CAMPAIGN")),
    Reader(BENCH, "bench.json", ("report", "FOLDER")),
    Reader(BENCH, "bench.json", ("compare", "FOLDER", "OTHER_BENCH")),
    Reader(AGENTIC, "agentic.json", ("report", "FOLDER")),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A simulated run, another one of the same plan, two simulated campaigns, and benchmarks whose samples are planted."""
    runs, others, tests, other_tests = (
        tmp_path_factory.mktemp(name) for name in ("runs", "others", "tests", "other-tests")
    )
    for place in (runs, others):
        assert run(["simulate", "--requests", "20", "--warmup", "0", "--quiet", "--out", str(place)]) == 4
    words = [
        "test",
        "ttft",
        "--quick",
        "--simulate",
        "--param",
        "ttft.requests=20",
        "--param",
        "ttft.rates=[5]",
    ]
    run([*words, "--quiet", "--out", str(tests)])
    run([*words, "--seed", "43", "--quiet", "--out", str(other_tests)])
    folders = {
        name: tmp_path_factory.mktemp(name.replace(" ", "-")) for name in (BENCH, OTHER_BENCH, AGENTIC)
    }
    for name in (BENCH, OTHER_BENCH):
        (folders[name] / "bench.json").write_text(to_json(benches.usual()))
    (folders[AGENTIC] / "agentic.json").write_text(to_json(agentics.usual()))
    found = {RUN: only(runs), OTHER: only(others), CAMPAIGN: only(tests)}
    found[OTHER_CAMPAIGN] = only(other_tests)
    return found | folders


@pytest.mark.parametrize("reader", READERS, ids=lambda one: f"{one.words[0]}-{one.file}")
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_damaged_member_is_no_bug(
    reader: Reader,
    whole: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    data: st.DataObject,
) -> None:
    """Whatever stands in a document, the exit code is no bug's; where it is 2, the message names the file, or the file that a
    damaged name leads to, or the plan is sound and reaches what --trust has to allow."""
    document = json.loads((whole[reader.of] / reader.file).read_text())
    place = data.draw(st.sampled_from(list(places(document))))
    damaged(document, place, data.draw(st.sampled_from(VALUES)))
    folder = tmp_path_factory.mktemp("copy") / whole[reader.of].name
    shutil.copytree(whole[reader.of], folder)
    (folder / reader.file).write_text(json.dumps(document))
    others = {
        "OTHER": str(whole[OTHER]),
        "OTHER_CAMPAIGN": str(whole[OTHER_CAMPAIGN]),
        "OTHER_BENCH": str(whole[OTHER_BENCH]),
    }
    paths = {"FOLDER": str(folder), "OUT": str(folder.parent / "out"), **others}
    capsys.readouterr()
    code = run([paths.get(word, word) for word in reader.words])
    message = capsys.readouterr().err
    shutil.rmtree(folder.parent)
    assert code != 70, message
    assert code != 2 or reader.file in message or place[-1] == "file" or "\n  --trust: " in message, message


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "link": lambda place: place.symlink_to(__file__),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS, ids=lambda one: f"{one.words[0]}-{one.file}")
def test_what_is_no_regular_file_of_the_folder_is_refused_by_name(
    reader: Reader, kind: str, whole: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Law: a pipe is not waited for and not called absent, and a link out of the folder is not followed."""
    folder = tmp_path / "copy"
    shutil.copytree(whole[reader.of], folder)
    (folder / reader.file).unlink()
    KINDS[kind](folder / reader.file)
    others = {
        name.replace(" ", "_").upper(): str(path) for name, path in whole.items() if name.startswith("other")
    }
    paths = {"FOLDER": str(folder), "OUT": str(tmp_path / "out"), **others}
    capsys.readouterr()
    assert run([paths.get(word, word) for word in reader.words]) == 2
    message = capsys.readouterr().err
    assert reader.file in message
    assert "no regular file" in message or "leads out of" in message


@pytest.mark.parametrize(("setting", "value"), [("noise", True), ("step_base_ns", "1"), ("no_such", 1)])
def test_a_simulated_run_with_settings_that_make_no_engine_is_not_repeated(
    setting: str, value: object, whole: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Law: a setting of another type or name is refused before an engine is made of it."""
    folder = tmp_path / "copy"
    shutil.copytree(whole[RUN], folder)
    facts = json.loads((folder / "run.json").read_text())
    facts["engine"]["settings"][setting] = value
    (folder / "run.json").write_text(json.dumps(facts))
    assert run(["rerun", str(folder), "--quiet", "--out", str(tmp_path / "out")]) == 2
    assert "run.json: the engine's settings are damaged" in capsys.readouterr().err
