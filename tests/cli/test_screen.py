"""What the person watching is shown while a load runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inferometer.cli.app import run
from inferometer.cli.terminal import Screen
from inferometer.drive.progress_counters import Progress
from inferometer.journal.schema import Phase
from inferometer.plan.parse import build
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose


def test_each_phase_and_each_run_is_counted_from_its_own_start(capsys: pytest.CaptureFixture[str]) -> None:
    """Counters go on from phase to phase of a run, and begin anew with the next one, whose phase may be the same."""
    shown = Screen(quiet=False, plain_every_s=0.0)
    for phase, sent in ((Phase.WARMUP, 100), (Phase.MEASURE, 103), (Phase.MEASURE, 2), (Phase.MEASURE, 7)):
        shown.watch(phase, Progress(sent, sent, 0, 0, 10 * sent), 200)
    lines = capsys.readouterr().err.splitlines()
    assert [int(line.split(" sent")[0].split()[-1]) for line in lines] == [100, 3, 2, 7]


class Seen:
    """A Ui that keeps the progress it is shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[Phase, Progress, int | None]] = []

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""
        self.seen.append((phase, progress, total))


def test_what_is_done_of_a_phase_never_exceeds_what_is_expected_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warm-up that sends its requests again for more tokens, and a closed loop that is led in and out: each phase ends with
    all of its own requests done, and no more."""
    flags = {
        "--input-tokens": "20", "--output-tokens": "uniform(3,9)", "--concurrency": "4", "--requests": "40",
        "--warmup": "10", "--warmup-tokens": "200",
    }  # fmt: skip
    watched = Seen()
    simulate(build(None, flags), choose(None, ()), tmp_path, watched)
    shown = Screen(quiet=False, plain_every_s=0.0)
    for phase, progress, total in watched.seen:
        shown.watch(phase, progress, total)
    lines = capsys.readouterr().err.splitlines()
    counts = [tuple(map(int, re.findall(r"(\d+) of (\d+) done", line)[0])) for line in lines]
    assert all(done <= total for done, total in counts)
    warm = [count for count, line in zip(counts, lines, strict=True) if line.startswith("warming up")]
    assert warm[-1][0] == warm[-1][1] > 10
    assert counts[-1] == (40, 40)
    last = watched.seen[-1][1]
    assert last.led > 0
    assert last.ok == warm[-1][0] + 40 + last.led


HOSTILE = "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x200B, 0x202E, 0x2066, 0xFEFF]))
"""Every control character but the line break and the tab, and signs that hide or turn text."""


def test_a_servers_words_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Law: what is noted while a run goes on reaches the terminal without control characters, whoever wrote it; breaks and
    indents stay, and only the first line begins at the edge."""
    Screen(quiet=False).note(f"  one \x1b[2J{HOSTILE}model\n  two\tthree\nVALID")
    assert capsys.readouterr().err == "  one [2Jmodel\n    two three\n  VALID\n"


def test_an_error_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Law: nor do the words of the error that ends a command, with what a file or a server had in it."""
    plan = tmp_path / "plan.yaml"
    plan.write_text('load: {rate: 1}\n"a\\e[31m\\u202eb": 1\n')
    assert run(["run", str(plan)]) == 2
    said = capsys.readouterr().err
    assert "a[31mb" in said
    assert not {"\x1b", "\u202e"} & set(said)


@pytest.mark.parametrize(
    "words",
    [
        [f"--\x1b[2J{HOSTILE}no-such-option"],
        [f"\x1b]0;title\x07{HOSTILE}no-such-command"],
        ["run", f"--\x1b[31m{HOSTILE}x"],
        ["report", "a", f"b\x9b31m{HOSTILE}\nError: forged"],
        ["metrics", "replay", "x", "--start", f"1\x1b[2J{HOSTILE}"],
    ],
    ids=["option", "command", "flag", "argument", "value"],
)
def test_a_command_line_that_is_repeated_cannot_steer_the_terminal(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Law: usage errors repeat what was typed, or pasted, without control characters, on the line that is theirs."""
    assert run(words) == 2
    said = capsys.readouterr().err
    assert "Usage: " in said
    assert not set(HOSTILE) & set(said)
    assert "\nError: forged" not in said
