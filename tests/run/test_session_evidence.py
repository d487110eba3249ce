"""A run folder of recorded agent sessions, from its files to its summary and its reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measure.conftest import pulses
from msgspec.structs import replace
from rich.console import Console
from session_play import FAN_OUT, Faults, Played, Step, play
from simulating import simulated

from inferometer.documents.part import from_json
from inferometer.documents.summary import SCHEMA, Summary
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import PULSE, RECORD, of_run
from inferometer.journal.seal import write_table
from inferometer.report.run.console import render_console
from inferometer.run.evaluate import evaluate
from inferometer.run.facts import read_facts

FLAGS: dict[str, object] = {"--requests": "30", "--rate": "10", "--warmup": "0"}
CHAINS = (
    FAN_OUT,
    (*FAN_OUT[:2], Step((0,), 0, agent="search <b>", ok=False), *FAN_OUT[3:]),
    (
        Step(agent="main"),
        *(Step((at,), at, think=10.0, tool=40.0, agent="main", visible=at == 18) for at in range(19)),
    ),
)


def folder_of(played: Played, out: Path) -> RunFolder:
    """The folder of a simulation of single requests, with the files of these sessions in it."""
    folder = RunFolder.open(simulated(out, FLAGS).folder)
    run = read_facts(folder).id
    played.write(folder.path)
    write_table(played.table().replace_schema_metadata(of_run(RECORD, run).metadata), folder.record)
    health = pulses(*({"t_ms": at, "reads": 1} for at in (0.0, 60_000.0)))
    write_table(health.replace_schema_metadata(of_run(PULSE, run).metadata), folder.pulse)
    return folder


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """Of thirty sessions of three kinds, in which a subagent was dropped once."""
    played = play([CHAINS[0 if at % 5 else at // 5 % 3] for at in range(60)], Faults(dropped={(1, 2)}))
    result = evaluate(folder_of(played, tmp_path_factory.mktemp("runs")))
    return result.folder, result.summary


def test_the_summary_has_the_sessions_and_is_read_back(summary: tuple[Path, Summary]) -> None:
    """With what became of them; its file holds the same."""
    folder, made = summary
    sessions = made.agent_sessions
    assert sessions is not None
    assert (sessions.begun, sessions.cut) == (60, 1)
    assert sessions.broken > 0
    again = from_json((folder / "summary.json").read_bytes(), Summary, SCHEMA, "summary.json")
    assert again.agent_sessions == sessions


def test_the_dropped_subagent_makes_the_run_invalid(summary: tuple[Path, Summary]) -> None:
    """By its own check, and the reports name the step."""
    folder, made = summary
    reasons = {reason.code: reason.message for reason in made.verdict.reasons}
    assert made.verdict.status == "INVALID"
    assert "step 2 (s2) of session 1" in reasons["session_steps"]
    assert {"session_gaps", "session_context"}.isdisjoint(reasons)
    for name in ("report.md", "report.html"):
        assert "(s2) of session 1" in (folder / name).read_text(encoding="utf-8").replace("\\", "")


def test_every_report_has_the_sessions(summary: tuple[Path, Summary]) -> None:
    """Console, Markdown and HTML; names of agents are text, whatever is in them."""
    folder, made = summary
    console = Console(width=120, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as said:
        render_console(made, console)
    assert "60 sessions: " in said.get()
    assert "TTFT of the task P50" in said.get()
    markdown, html = ((folder / name).read_text(encoding="utf-8") for name in ("report.md", "report.html"))
    for text in (markdown, html):
        for words in (
            "Agent sessions",
            "Context growth",
            "Time in tools",
            "KV reuse possible",
            "16 and later",
            "search",
        ):
            assert words in text
    assert "search <b>" not in html
    assert "By turn" not in html


def test_a_folder_whose_steps_are_damaged_is_refused_in_words(tmp_path: Path) -> None:
    """And one without its schedule is read as one of single requests: the record alone does not say how steps hang together."""
    folder = folder_of(play([FAN_OUT] * 3), tmp_path)
    folder.schedule.rename(folder.path / "elsewhere")
    assert evaluate(folder).summary.agent_sessions is None
    (folder.path / "elsewhere").rename(folder.schedule)
    folder.steps.write_bytes(b"nothing of the kind")
    with pytest.raises(RecordError, match="not the steps of a run"):
        evaluate(folder)


def test_a_run_of_sessions_without_its_steps_is_refused_in_words(tmp_path: Path) -> None:
    """It is no run of conversations: its sessions would be in no figure, and no check would look at them."""
    file = tmp_path / "sessions.jsonl"
    step = {"messages": [{"role": "user", "content": "Which is the longest river?"}], "output_tokens": 4}
    file.write_text(json.dumps({"session": "s", "steps": [step, step]}) + "\n", encoding="utf-8")
    flags: dict[str, object] = {"--sessions": str(file), "--rate": "10", "--warmup": "0"}
    folder = RunFolder.open(simulated(tmp_path / "runs", flags).folder)
    folder.steps.unlink()
    with pytest.raises(RecordError, match=r"steps\.arrow: is missing"):
        evaluate(folder)


def test_conversations_without_steps_are_held_to_what_they_repeat(tmp_path: Path) -> None:
    """A turn that repeats an older turn's answer fails the run; without sums in the record nothing is said."""
    chain = tuple(Step((at - 1,) if at else (), at - 1 if at else None) for at in range(4))
    for played, status in (
        (play([chain] * 3), "pass"),
        (play([chain] * 3, Faults(wrong_branch={(1, 3): 1})), "fail"),
        (play([chain] * 3, body_crc=None), "na"),
    ):
        folder = folder_of(played, tmp_path)
        folder.steps.unlink()
        made = evaluate(folder).summary
        check = next(one for one in made.verdict.checks if one.code == "session_context")
        assert check.status == status
        assert made.agent_sessions is None
        assert made.conversations is not None


def test_a_summary_without_sessions_is_read_as_before(summary: tuple[Path, Summary]) -> None:
    """A file of an earlier version has no such member."""
    folder, _ = summary
    data = json.loads((folder / "summary.json").read_bytes())
    del data["agent_sessions"]
    again = from_json(json.dumps(data), Summary, SCHEMA, "summary.json")
    assert again == replace(again, agent_sessions=None)


def test_blocks_have_the_size_of_the_simulated_engine(tmp_path: Path) -> None:
    """Law: the best that a cache finds is in whole blocks of that engine, which the report names; of a folder of which nothing
    states them 16 are assumed, and it says so."""
    said = "one two three four five six seven eight nine ten " * 12
    steps = [{"messages": [{"role": "user", "content": said}], "output_tokens": 4}] * 3
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"session": str(at), "steps": steps}) + "\n" for at in range(4)))
    flags: dict[str, object] = {"--sessions": str(path), "--concurrency": "2", "--warmup": "0"}
    settings = ("prefix_caching=on", "block_tokens=64")
    found = simulated(tmp_path / "runs", flags, *settings)
    measured = found.summary.agent_sessions
    assert measured is not None
    assert (measured.block_tokens, measured.block_stated) == (64, True)
    assert measured.reuse is not None
    assert measured.reuse.seen.value == pytest.approx(measured.reuse.best.value)
    for name in ("report.md", "report.html"):
        assert "in blocks of 64 tokens, as the engine states" in (found.folder / name).read_text()
