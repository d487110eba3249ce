"""The words of an examination: every check has them, in 80 columns and in ASCII, and a command is never broken."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from doctor_states import GOOD, UNKNOWN, engine
from rich.console import Console

from inferometer.documents.doctor import SCHEMA, Doctor, MachineState, StampSeries, TimerSeries
from inferometer.judge.doctor import examine, to_mend
from inferometer.report.doctor import WORDS, render, worded
from inferometer.telemetry.machine_readings import (
    ClockState,
    Limits,
    MemoryPressure,
    Processor,
    Swap,
    Thermal,
)

BAD = msgspec.structs.replace(
    GOOD,
    pressure=MemoryPressure("critical", 44.05, 12.3),
    swap=Swap(9_689_940_000, 777, 4096),
    swapped_out_pages=412,
    thermal=Thermal("serious", 72.0, 90),
    throttled=3,
    processor=Processor(("ondemand", "powersave"), 800.0, 3500.0, 4000.0),
    clock=ClockState(False),
    clock_step_ms=2.5,
    limits=Limits(256, 1024, 500),
    engines=(engine("ollama", 10, (11434,)), engine("ollama", 40, None), engine("vllm", 50, (8000, 8001))),
    load=msgspec.structs.replace(GOOD.load, busy_cores=3.2, stolen_cores=0.4, busiest="x\x1b[31mmas", busiest_cores=2.0),
    timer=TimerSeries(500, 0.05, 9.2, 32.0),
    stamps=StampSeries(200, 198, 2, 0.01),
)  # fmt: skip


def document(state: MachineState, system: str = "Linux") -> Doctor:
    findings = examine(state)
    checks = tuple(worded(one, system) for one in findings)
    return Doctor(SCHEMA, "2026-01-02T03:04:05+00:00", to_mend(findings), checks, state)


def printed(state: MachineState, width: int = 80, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    render(document(state), Console(file=file, width=width))
    file.flush()
    return raw.getvalue().decode(encoding)


def test_every_check_has_words_and_all_words_a_check() -> None:
    """None is left out of either."""
    assert [one.code for one in examine(GOOD)] == list(WORDS)


@pytest.mark.parametrize("state", [GOOD, UNKNOWN, BAD], ids=["good", "unknown", "bad"])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_fit_except_commands(state: MachineState, width: int) -> None:
    """A command goes on beyond the screen, so that it can be copied."""
    commands = [one.command for one in document(state).checks if one.command]
    text = printed(state, width)
    for line in text.splitlines():
        assert len(line) <= width or line.strip() in commands
    assert all(command in text for command in commands)


def test_a_pipe_without_unicode_gets_ascii() -> None:
    """And no control character of a process's name reaches a terminal."""
    text = printed(BAD, encoding="ascii")
    assert text.isascii()
    assert "\x1b" not in text


def test_what_needs_nothing_has_no_advice() -> None:
    """Good and unknown checks have a finding and a reason; those to mend have advice too."""
    for one in (*document(GOOD).checks, *document(UNKNOWN).checks, *document(BAD).checks):
        assert one.finding
        assert one.why
        assert (one.advice is not None) == (one.status in ("mend", "note"))


def test_what_is_not_known_is_not_worded_as_a_number() -> None:
    """No None, no zero that was not measured."""
    text = printed(UNKNOWN)
    assert "None" not in text
    assert text.count("not shown by this system") == 5


def test_the_conclusion_counts() -> None:
    """What is to be mended, and what could not be checked."""
    assert printed(GOOD).splitlines()[-1] == "Nothing to mend."
    assert "6 could not be checked" in " ".join(printed(UNKNOWN).split())
    assert "11 of 11 checks found something to mend" in " ".join(printed(BAD).split())


def test_a_command_is_of_the_system() -> None:
    """macOS has no /proc, no cpupower and no swapoff."""
    mac = [one.command for one in document(BAD, "Darwin").checks if one.command]
    assert mac
    assert not [
        one for one in mac if "/sys" in one or "cpupower" in one or "swapoff" in one or "--sort" in one
    ]


def test_the_page_has_every_check() -> None:
    """docs/doctor.md names each by its code and its title."""
    page = (Path(__file__).parent.parent.parent / "docs" / "doctor.md").read_text()
    for code, words in WORDS.items():
        assert f"| `{code}` | {words.title} |" in page
