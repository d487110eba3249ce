"""Documents as types: what is written is read back the same, the schemas are the types', what is not known is refused."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from inferometer.documents.part import from_json, named_by_schema, to_data, to_json
from inferometer.documents.schemas.__main__ import DOCUMENTS, generated
from inferometer.documents.summary import SCHEMA, Summary
from inferometer.drive.progress_counters import Progress
from inferometer.errors import RecordError
from inferometer.journal.schema import Phase
from inferometer.plan.parse import build
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

SCHEMAS = Path(__file__).parent.parent / "src" / "inferometer" / "documents" / "schemas"


class _Silent:
    def note(self, text: str) -> None: ...

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None: ...


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    plan = build(None, {"--requests": "20", "--warmup": "2", "--rate": "20", "--slo": ["ttft_p90 < 1s"]})
    return simulate(plan, choose("tiny-cpu"), tmp_path_factory.mktemp("runs"), _Silent())


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_the_schema_in_the_package_is_the_one_the_types_give(name: str) -> None:
    """`python -m inferometer.documents.schemas` writes them anew."""
    assert (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8") == generated(name)


def test_a_summary_is_read_back_the_same(result: RunResult) -> None:
    """From its file, with every number."""
    text = (result.folder / "summary.json").read_bytes()
    again = from_json(text, Summary, SCHEMA, "summary.json")
    assert to_data(again) == to_data(result.summary) == json.loads(text)


def test_a_summary_keeps_to_its_schema(result: RunResult) -> None:
    """As other programs read it."""
    jsonschema.validate(json.loads(to_json(result.summary)), json.loads(generated("summary")))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "inferometer/summary/1"}, "'inferometer/summary/1'; this version of inferometer reads"),
        ({"schema": None}, "its format is 'None'"),
        ({"colour": "blue"}, "colour"),
        ({"id": "\ud83d"}, "summary.json: holds half of a surrogate pair at id, which is no text"),
        ({"requests": {"sent": "many"}}, r"\$\.requests"),
    ],
)
def test_what_is_not_known_is_refused_by_name(
    result: RunResult, change: dict[str, object], words: str
) -> None:
    """Another version, a member nobody defined, a value of another type."""
    text = json.dumps(to_data(result.summary) | change)
    with pytest.raises(RecordError, match=words):
        from_json(text, Summary, SCHEMA, "summary.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"schema"', "[" * 100_000])
def test_what_is_no_document_is_refused(text: str) -> None:
    """With the file's name."""
    with pytest.raises(RecordError, match=r"^summary\.json: "):
        from_json(text, Summary, SCHEMA, "summary.json")


@pytest.mark.parametrize("text", ['{"schema":"x","a":%s}', '{"a":%s,"schema":"x"}'])
def test_a_document_of_another_format_is_refused_before_it_is_read(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: no value is made of what has another schema, wherever that is in it."""

    def made(*_: object, **__: object) -> object:
        raise AssertionError("was read whole")

    monkeypatch.setattr("inferometer.foreign_json.loads", made)
    for data in ("[[],{}]", '"\\ud83d\\ude00"', "1e999"):
        with pytest.raises(RecordError, match="it: its format is 'x'; this version of inferometer reads"):
            from_json(text % data, Summary, SCHEMA, "it")
        with pytest.raises(RecordError, match="it: its format is 'x'; what is read here is"):
            named_by_schema((text % data).encode(), {SCHEMA: Summary}, "it")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "its format is 'None'"),
        ("{}", "its format is 'None'"),
        ('{"schema": 1}', "its format is '1'"),
        ('{"schema": "x", "schema": ["x"]}', "its format is"),
        ('{"schema": "x"', "is no JSON"),
        ('{"schema": "x", "a": NaN}', "NaN is no finite number"),
        ("{" + '"a":{' * 5_000 + "}" * 5_001, "is nested more than 100 levels deep"),
        (f'{{"schema": "{SCHEMA}", "a": "\\ud800"}}', "holds half of a surrogate pair at a"),
    ],
)
def test_what_is_wrong_with_a_document_is_said_as_of_one_read_whole(text: str, words: str) -> None:
    """Law: a document that names no schema is read for what is wrong with it."""
    for form in (text, text.encode()):
        with pytest.raises(RecordError, match=words):
            from_json(form, Summary, SCHEMA, "it")
