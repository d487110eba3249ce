"""Prompts and answers of a benchmark: what does not fit, another size than planned, and answers that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from procedures.driving import Silent
from studies.virtual_bench import (
    Change,
    PlantedMachine,
    VirtualClock,
    VirtualEngine,
    benched,
    codes,
)

from inferometer.errors import PlanError
from inferometer.studies.bench import FILE, Question, carry_out
from inferometer.studies.bench_answers import reference_answers
from inferometer.workload.bench_prompts import context_fill


def test_a_prompt_that_the_model_has_no_room_for_is_left_out(tmp_path: Path) -> None:
    """And the engine is compared over the others."""
    done = benched(tmp_path / "b", VirtualEngine("a", context=50), VirtualEngine("b"))
    first, _ = done.document.engines
    assert "prompt_too_long" in codes(first)
    assert [one.prompt for one in first.prompts] == ["code"]
    assert done.document.rankings[0].prompts == ("code",)


def counting_prompts(tokens: int) -> Change:
    """The engine counts so many tokens in every prompt."""

    def change(row: dict[str, Any], run: int) -> None:
        row["usage_input"] = tokens

    return change


@pytest.mark.parametrize(("tokens", "missed"), [(1_000, False), (1_160, False), (1_170, True), (895, True)])
def test_a_context_fill_of_another_size_than_planned_is_named(
    tokens: int, missed: bool, tmp_path: Path
) -> None:
    """By the engine's own count, whatever sized it; a chat template is no miss."""
    engine = VirtualEngine("a", change=counting_prompts(tokens))
    folder = tmp_path / "b"
    folder.mkdir()
    question = Question((context_fill(1_000),), runs=2)
    done = carry_out(question, [engine], PlantedMachine(), VirtualClock(), folder, Silent())
    (result,) = done.document.engines
    assert ("fill_missed" in codes(result)) == missed
    assert (result.prompts[0].sized_to, result.prompts[0].prompt_tokens) == (1_000, tokens)


def answering(text: str, finish_reason: str = "stop") -> Change:
    """Answers all prompts with this text."""

    def change(row: dict[str, Any], run: int) -> None:
        row.update(text=text, finish_reason=finish_reason)

    return change


def test_answers_whose_text_was_not_kept_are_not_compared(tmp_path: Path) -> None:
    """Two texts that are not there would be the same."""
    done = {}
    for kept in (True, False):

        def change(row: dict[str, Any], run: int, kept: bool = kept) -> None:
            if not kept:
                row.update(text=None)  # its characters are counted

        engines = [VirtualEngine(name, change=change) for name in "ab"]
        done[kept] = benched(tmp_path / str(kept), *engines, answers={}).document.engines
    assert all(one.answers for one in done[True])
    assert not any(one.answers for one in done[False])


STORY = " ".join(f"word{at}" for at in range(60))


def test_wrong_answers_are_found_beside_their_speed(tmp_path: Path) -> None:
    """Another text, one that stops early and one that repeats itself; engines of the first one's words have no remark."""
    texts = {"first": STORY, "same": STORY, "other": STORY.replace("word", "x"), "short": STORY[:60]}
    engines = [VirtualEngine(label, change=answering(text)) for label, text in texts.items()]
    looping = VirtualEngine("loop", change=answering(STORY + " again and" * 20, "length"))
    done = benched(tmp_path / "b", *engines, looping, answers={})
    found = {
        one.label: codes(one) & {"answers_differ", "early_stop", "loop"} for one in done.document.engines
    }
    assert found == {
        "first": set(), "same": set(), "other": {"answers_differ"}, "short": {"answers_differ", "early_stop"},
        "loop": {"loop"},
    }  # fmt: skip
    first, same, *_ = (one.answers[0] for one in done.document.engines)
    assert (first.against, first.exact, first.overlap) == (None, None, None)
    assert (same.against, same.exact, same.overlap, same.n) == ("first", 3, 1.0, 3)
    assert first.sha256 == same.sha256
    assert b"word1" not in (done.folder / FILE).read_bytes()


def test_answers_are_held_against_a_file_where_it_has_the_prompt(tmp_path: Path) -> None:
    """Also those of a single engine; other prompts are compared across engines."""
    done = benched(tmp_path / "b", VirtualEngine("a", change=answering("short")), answers={"code": STORY})
    code, long = done.document.engines[0].answers
    assert (code.against, code.exact, code.overlap, code.early_stops) == ("reference file", 0, 0.0, 3)
    assert (long.against, long.early_stops) == (None, 0)


def test_a_file_that_holds_no_answers_is_refused(tmp_path: Path) -> None:
    """Before anything is sent."""
    path = tmp_path / "answers.json"
    for text in ("{", "[]", '{"code": 1}'):
        path.write_text(text)
        with pytest.raises(PlanError, match="--check-output"):
            reference_answers(path)
