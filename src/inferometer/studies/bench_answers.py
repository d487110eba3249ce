"""The answers of a benchmark compared, from the sealed records; no text goes into the document."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from inferometer import whole_file
from inferometer.documents.bench import AnswerCheck, EngineResult, Remark
from inferometer.errors import PlanError, Problem
from inferometer.journal.folder import RunFolder, inside
from inferometer.journal.schema import RECORD, Outcome
from inferometer.journal.seal import read_table
from inferometer.measure.answer_check import ends_in_loop, overlap, stops_early

REFERENCE = "reference file"
LITTLE = 0.5
"""Overlap below which answers are worth a remark: the same model's share most of their words, unrelated texts a third."""


@dataclass(frozen=True, slots=True)
class _Answer:
    prompt: str
    text: str
    finish_reason: str | None


def reference_answers(path: Path) -> dict[str, str]:
    """A file of answers, `{"PROMPT": "TEXT", ...}`. Raises PlanError."""
    try:
        return msgspec.json.decode(whole_file.read(path), type=dict[str, str])
    except msgspec.ValidationError:
        problem = f"{path} is not an object of answers by prompt: {{'code': 'def ...'}}"
        raise PlanError([Problem("--check-output", problem)]) from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as why:
        raise PlanError([Problem("--check-output", f"{path} cannot be read as JSON: {why}")]) from why


def checked(
    results: Sequence[EngineResult], folder: Path, reference: Mapping[str, str]
) -> list[EngineResult]:
    """The results with their answers checked: against `reference`, by prompt, or where it has none the first comparable engine
    that has an answer to it. Raises RecordError."""
    answers = [_answers(one, folder) for one in results]
    return [_checked(at, results, answers, reference) for at in range(len(results))]


def comparable(results: Sequence[EngineResult], at: int) -> list[int]:
    """The places of the results whose answers are worth comparing with those of the one at `at`, itself included.

    Where a server was measured with several models, those of the same model's name: other models answer otherwise, and are not
    wrong. Else all: engines have names of their own for one model.
    """
    models: dict[str | None, set[str | None]] = {}
    for one in results:
        models.setdefault(one.url, set()).add(one.metadata.model)
    if all(len(names) < 2 for names in models.values()):
        return list(range(len(results)))
    model = results[at].metadata.model
    return [other for other, one in enumerate(results) if other == at or one.metadata.model == model]


def _answers(result: EngineResult, folder: Path) -> list[_Answer]:
    if not result.runs:
        return []
    table = read_table(RunFolder.open(inside(folder, result.runs[0])).record, RECORD)
    texts, sizes = (table.column(name).to_pylist() for name in ("text", "text_chars"))
    return [
        _Answer(one.prompt, texts[one.row] or "", one.finish_reason)
        for one in result.samples
        if one.outcome == Outcome.OK
        and one.row is not None
        and (texts[one.row] is not None or not sizes[one.row])  # else its text was not kept
    ]


def _checked(
    at: int,
    results: Sequence[EngineResult],
    answers: Sequence[Sequence[_Answer]],
    reference: Mapping[str, str],
) -> EngineResult:
    checks = []
    alike = comparable(results, at)
    for prompt in dict.fromkeys(one.prompt for one in answers[at]):
        mine = [one for one in answers[at] if one.prompt == prompt]
        others = [
            one.text for other in alike for one in answers[other] if other != at and one.prompt == prompt
        ]
        first = next((other for other in alike if any(one.prompt == prompt for one in answers[other])), at)
        against: str | None = None
        expected: list[str] = []
        if prompt in reference:
            against, expected = REFERENCE, [reference[prompt]]
            others = expected
        elif first != at:
            against = results[first].label
            expected = [next(one.text for one in answers[first] if one.prompt == prompt)]
        checks.append(_check(prompt, mine, against, expected, others))
    return msgspec.structs.replace(
        results[at], answers=tuple(checks), remarks=(*results[at].remarks, *_remarks(checks))
    )


def _check(
    prompt: str, mine: Sequence[_Answer], against: str | None, expected: Sequence[str], others: Sequence[str]
) -> AnswerCheck:
    shares = [overlap(one.text, text) for one in mine for text in expected]
    return AnswerCheck(
        prompt=prompt,
        n=len(mine),
        sha256=tuple(dict.fromkeys(hashlib.sha256(one.text.encode()).hexdigest() for one in mine)),
        against=against,
        exact=sum(one.text == text for one in mine for text in expected) if expected else None,
        overlap=math.fsum(shares) / len(shares) if shares else None,
        early_stops=sum(stops_early(one.text, one.finish_reason, others) for one in mine),
        loops=sum(ends_in_loop(one.text) for one in mine),
    )


def _remarks(checks: Sequence[AnswerCheck]) -> list[Remark]:
    remarks = []
    for one in checks:
        if one.overlap is not None and one.overlap < LITTLE:
            remarks.append(
                Remark("answers_differ", {"prompt": one.prompt, "share": one.overlap, "against": one.against})
            )
        if one.early_stops:
            remarks.append(
                Remark("early_stop", {"prompt": one.prompt, "number": one.early_stops, "of": one.n})
            )
        if one.loops:
            remarks.append(Remark("loop", {"prompt": one.prompt, "number": one.loops, "of": one.n}))
    return remarks
