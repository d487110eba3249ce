"""Datasets of the user's: every format gives the same texts, what is kept is as told, and what is wrong is named."""

from __future__ import annotations

import json
import re
import struct
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from inferometer.documents.workload import DatasetFile, TextSource
from inferometer.errors import PlanError
from inferometer.plan.workload import StandardWorkload
from inferometer.workload.datasets import functions, pool, rows
from inferometer.workload.datasets.files import find
from inferometer.workload.datasets.functions import prompts
from inferometer.workload.datasets.pool import Pool
from inferometer.workload.datasets.preprocessing import LONGEST, Item
from inferometer.workload.natural_text import generate
from inferometer.workload.texts import facts
from inferometer.workload.tokenizers import Tokenizer


def load(
    path: Path,
    kind: Any = "sharegpt",
    subset: str | None = None,
    most: int = pool.MOST,
    cache: Path | None = None,
) -> Pool:
    return pool.load(str(path), kind, subset, most, cache)


def turns(*said: tuple[str, str]) -> dict[str, Any]:
    return {"id": "x_0", "conversations": [{"from": who, "value": text} for who, text in said]}


DIALOGUES = [
    turns(("human", "How tall is it?\n"), ("gpt", "Eight metres."), ("human", "And wide?"), ("gpt", "Two.")),
    turns(("system", "Be kind."), ("human", " Hello "), ("gpt", "Hi there")),
    turns(("gpt", "Continued: yes."), ("human", "Why?"), ("gpt", "Because — so ☃.")),
    turns(("human", "Nobody answers")),
    turns(("human", "  "), ("gpt", "What?")),
    turns(("gpt", "Alone")),
    turns(),
    turns(("human", "x" * (LONGEST + 1)), ("gpt", "Long")),
]
KEPT = (
    Item("How tall is it?", "Eight metres."),
    Item("Hello", "Hi there"),
    Item("Why?", "Because — so ☃."),
)
LEFT_OUT = {"no assistant's turn": 2, "empty": 1, "no person's turn before an assistant's": 1, "too long": 1}


def as_json(path: Path, data: list[Any]) -> Path:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False))
    return path


def as_lines(path: Path, data: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n\n" for row in data))
    return path


def as_parquet(path: Path, data: list[Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(data), path, row_group_size=2)
    return path


def as_arrow(path: Path, data: list[Any]) -> Path:
    table = pa.Table.from_pylist(data)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return path


WRITERS: dict[str, Callable[[Path, list[Any]], Path]] = {
    "a.json": as_json,
    "lines.json": as_lines,
    "a.jsonl": as_lines,
    "a.parquet": as_parquet,
    "a.arrow": as_arrow,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_dialogues(name: str, tmp_path: Path) -> None:
    """The first turn of a person that an assistant's follows, and the answer; the rest is counted; the hash is the file's."""
    path = WRITERS[name](tmp_path / name, DIALOGUES)
    found = load(path)
    assert found.items == KEPT
    told = found.facts
    assert (told.rows, told.texts, told.sampled, told.left_out) == (8, 3, 3, LEFT_OUT)
    assert told.sha256 == sha256(path.read_bytes()).hexdigest()
    assert told.files == (DatasetFile(name=name, bytes=path.stat().st_size, sha256=told.sha256),)
    assert (told.name, told.revision, told.subset) == (name, None, None)


@given(
    st.lists(
        st.dictionaries(st.text(max_size=9), st.text(max_size=40) | st.integers(), max_size=3), max_size=12
    ),
    st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_an_array_is_read_the_same_however_it_is_cut(data: list[dict[str, Any]], chunk: int) -> None:
    """Row by row, with chunks of a few bytes, and whatever the white space: what json.loads would give."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(
            json.dumps(data, indent=chunk % 3, ensure_ascii=chunk % 2 == 0), "utf-8", "surrogatepass"
        )
        assert [row for _, row in rows.read(path, "x.json", (), chunk)] == data


PYTHON = '''
import os

class Tree:
    def grow(
        self,
        height,
    ) -> int:
        """Grow."""

        def inner():
            return 1

        return height + inner()

    def small(self): return 1


async def fetch(url):
    # one
    # two
    return url
'''
SCRIPT = """
import x from "y";

export async function load(url: string): Promise<void> {
  const a = () => {
    return 1;
  };
  return a();
}

const run = async (x) => {
  await x;
  done();
};

function open() {
  return
"""


def test_functions_are_found_by_lines_and_indentation() -> None:
    """The front half of each function, odd line included, without common indentation; nested and short ones are none."""
    found = list(prompts(PYTHON, "Python"))
    assert found == [
        'def grow(\n    self,\n    height,\n) -> int:\n    """Grow."""',
        "async def fetch(url):\n    # one",
    ]
    assert list(prompts(SCRIPT, "TypeScript")) == [
        "export async function load(url: string): Promise<void> {\n  const a = () => {\n    return 1;",
        "const run = async (x) => {\n  await x;",
    ]


@given(
    st.text(alphabet="def function(){}=>\n\t  abc:", max_size=300), st.sampled_from(["Python", "JavaScript"])
)
def test_a_prompt_is_text_of_its_file_and_never_white_space(source: str, language: str) -> None:
    """Whatever the file: no error, no prompt that is empty or begins or ends in white space, each line from the file."""
    for prompt in prompts(source, language):
        assert prompt == prompt.strip() != ""
        assert all(line.strip() in source for line in prompt.splitlines())


SCRIPT_BEGINS = re.compile(
    r"[ \t]*(?:export +)?(?:default +)?"
    r"(?:(?:async +)?function\b.*|(?:const|let|var) +\w+ *(?::[^=]+)?= *(?:async *)?(?:\(.*\)|\w+)[^=]*=>) *\{\s*$"
)
"""The rule of functions.py as one pattern, whose time is the square of a line's length and more."""
WORDS = [
    "export",
    "default",
    "async",
    "function",
    "const",
    "let",
    " ",
    "  ",
    "\t",
    "a",
    "=",
    "=>",
    "(",
    ")",
    ":",
    "{",
    "}",
]


@given(
    st.lists(st.sampled_from(WORDS), max_size=14).map("".join),
    st.sampled_from(["", "{", " {", "=> {", "=>{ "]),
)
@example("const a: b = async (c)", " => {")
@example("const a = async", "=> {")
@settings(max_examples=500)
def test_a_function_of_a_script_begins_as_the_rule_has_it(begin: str, end: str) -> None:
    """Law: the pieces find what the pattern finds."""
    assert bool(functions._script_begins(begin + end)) == bool(SCRIPT_BEGINS.match(begin + end))


def test_a_line_that_nearly_begins_a_function_is_not_read_for_hours() -> None:
    """Its time is that of its length: by the pattern these would take hours."""
    for line in (
        "function" + " " * 1_000_000,
        "const a = (" + ")" * 1_000_000 + "=",
        "let a:" + " :" * 500_000 + "{",
    ):
        assert list(prompts(line, "JavaScript")) == []


@pytest.mark.parametrize("column", ["lang", "language"])
def test_the_stack_is_cut_down_to_functions_of_three_languages(column: str, tmp_path: Path) -> None:
    """Rows in another language, and those without a function, are left out and counted."""
    data = [
        {"content": PYTHON, column: "Python", "size": 1},
        {"content": SCRIPT, column: "typescript", "size": 2},
        {"content": "fn main() {}", column: "Rust", "size": 3},
        {"content": "x = 1", column: "Python", "size": 4},
    ]
    found = load(as_parquet(tmp_path / "data.parquet", data), "the-stack")
    assert [item.prompt.split("(")[0] for item in found.items] == [
        "def grow", "async def fetch", "export async function load", "const run = async ",
    ]  # fmt: skip
    assert found.facts.left_out == {"another language": 1, "no function": 1}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "[{}]", ["a.json, row 1", "'conversations'"]),
        ("a.json", '[\n{"conversations": []},\n 7]', ["row 2", "line 3", "object"]),
        ("a.json", '[{"conversations": 5}]', ["conversations must be a list"]),
        ("a.json", '[{"conversations": [{"from": "gpt"}]}]', ["conversations[0]", "value"]),
        (
            "a.json",
            '[{"conversations": [{"from": "gpt", "value": null}]}]',
            ["conversations[0].value", "text"],
        ),
        ("a.json", '[{"conversations": []}\n{}]', ["a.json, line 2", "]"]),
        ("a.json", '[{"conversations": []},\n{"conv', ["a.json, line 2", "no JSON array"]),
        ("a.json", "[", ["a.json, line 1"]),
        ("a.json", "", ["no text is left of 0 rows", "there are none"]),
        ("a.json", "[]", ["no text is left of 0 rows"]),
        ("a.jsonl", '{"conversations": []}\n{bad', ["a.jsonl, line 2", "no JSON"]),
        ("a.jsonl", '{"conversations": []}\n', ["no text is left of 1 rows", "no assistant's turn 1"]),
        ("a.jsonl", '{"text": 1}', ["a.jsonl, line 1", "'conversations'"]),
        ("a.jsonl", b"\xff\xfe", ["a.jsonl", "UTF-8"]),
        ("a.json", b'[{"conversations": "\xff"}]', ["a.json", "UTF-8"]),
        ("a.parquet", b"PAR1 no", ["a.parquet", "cannot be read as parquet"]),
        ("a.arrow", b"nothing", ["a.arrow", "cannot be read as arrow"]),
    ],
)
def test_what_is_wrong_is_named_by_file_place_and_field(
    name: str, content: str | bytes, words: list[str], tmp_path: Path
) -> None:
    """A PlanError at --dataset, whose words lead to the spot."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(PlanError) as caught:
        load(path)
    assert [problem.where for problem in caught.value.problems] == ["--dataset"]
    assert [word for word in words if word not in str(caught.value)] == []
    assert str(tmp_path) not in str(caught.value)


def test_offsets_that_point_elsewhere_are_refused(tmp_path: Path) -> None:
    """They would be followed, out of the file's memory: the process would end."""
    for number, offsets in enumerate(((0, 1 << 30, 4), (0, -5, 4), (3, 1, 4))):
        buffers = [None, pa.py_buffer(struct.pack("<3i", *offsets)), pa.py_buffer(b"text")]
        content = pa.Array.from_buffers(pa.string(), 2, buffers)
        batch = pa.record_batch({"content": content, "lang": ["Python", "Python"]})
        path = tmp_path / f"{number}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        with pytest.raises(PlanError, match=r"arrow: cannot be read"):
            load(path, "the-stack")


def test_a_text_in_very_many_cells_is_refused(tmp_path: Path) -> None:
    """A dictionary holds it once; as prompts each has its own."""
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * 256, pa.int8()), pa.array(["x" * (5 << 20)]))
    table = pa.table({"content": cells, "lang": ["C"] * 256})
    write_arrow(table, tmp_path / "a.arrow")
    pq.write_table(table, tmp_path / "a.parquet", dictionary_pagesize_limit=1 << 30)
    for name in ("a.arrow", "a.parquet"):
        with pytest.raises(PlanError, match=rf"{name}: .*1\.0 GiB"):
            load(tmp_path / name, "the-stack")


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
def test_a_column_that_is_there_twice_is_refused(tmp_path: Path, name: str) -> None:
    """Nobody can tell which is meant."""
    table = pa.table([["x"], ["y"], ["C"]], ["content", "content", "lang"])
    (write_arrow if name == "a.arrow" else pq.write_table)(table, tmp_path / name)
    with pytest.raises(PlanError, match=f"{name}: cannot be read as .*names a column twice"):
        load(tmp_path / name, "the-stack")


def test_half_of_a_surrogate_pair_is_left_out(tmp_path: Path) -> None:
    """JSON can hold it, and no request."""
    said = [("hello", "hi"), ("\ud800", "hi"), ("hello", "\udfff")]
    data = [
        {"conversations": [{"from": "human", "value": one}, {"from": "gpt", "value": other}]}
        for one, other in said
    ]
    (tmp_path / "a.json").write_text(json.dumps(data))
    found = load(tmp_path / "a.json")
    assert [one.prompt for one in found.items] == ["hello"]
    assert found.facts.left_out == {"half of a surrogate pair": 2}


def test_a_row_of_the_stack_without_content_or_language_is_named(tmp_path: Path) -> None:
    """By row in Parquet, where there are no lines."""
    for data, field in (
        ({"code": "x"}, "'content'"),
        ({"content": "x"}, "lang"),
        ({"content": 5, "lang": "Python"}, "content"),
    ):
        path = as_parquet(tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet", [data])
        with pytest.raises(PlanError, match=rf"{path.name}, row 1: .*{field}"):
            load(path, "the-stack")


def test_a_directory_a_subset_and_the_hugging_face_cache(tmp_path: Path) -> None:
    """Files in the order of their names, of one kind; a subset by folder or glob; a snapshot by ref, path or name."""
    repository = tmp_path / "datasets--bigcode--tiny"
    data = repository / "snapshots" / "abc123" / "data"
    for language, name in (("python", "Python"), ("rust", "Rust"), ("typescript", "TypeScript")):
        (data / language).mkdir(parents=True)
        source = SCRIPT if name == "TypeScript" else PYTHON
        as_parquet(data / language / "train-0.parquet", [{"content": source, "lang": name}])
    (data / "notes.json").write_text("not read: there is Parquet")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc123")
    whole = load(repository, "the-stack").facts
    assert (whole.name, whole.revision, whole.rows) == ("bigcode/tiny", "abc123", 3)
    assert [one.name for one in whole.files] == [
        f"data/{one}/train-0.parquet" for one in ("python", "rust", "typescript")
    ]
    lines = "".join(f"{one.sha256}  {one.name}\n" for one in whole.files)
    assert whole.sha256 == sha256(lines.encode()).hexdigest()
    for subset in ("python", "data/python", "data/python/*"):
        part = load(repository, "the-stack", subset).facts
        assert ([one.name for one in part.files], part.subset) == (
            ["data/python/train-0.parquet"],
            subset,
        )
    assert load(repository / "snapshots" / "abc123", "the-stack").facts.revision == "abc123"
    assert load(Path("bigcode/tiny"), "the-stack", cache=tmp_path).facts == whole
    cases: tuple[tuple[Path, str | None, str], ...] = (
        (repository, "java", "subset 'java'"),
        (tmp_path / "gone", None, "no file, no directory"),
        (data / "python" / "train-0.parquet", "python", "single file"),
    )
    for path, chosen, words in cases:
        with pytest.raises(PlanError, match=words):
            load(path, "the-stack", chosen)
    (repository / "refs" / "main").unlink()
    (repository / "snapshots" / "def456").mkdir()
    with pytest.raises(PlanError, match="abc123, def456"):
        load(repository, "the-stack", "python/")


def test_a_large_dataset_is_sampled_evenly_in_little_memory(tmp_path: Path) -> None:
    """Of 20,000 texts 500 are kept: from everywhere (chi-square over tenths, P = 0.001), the same ones each time, and memory
    holds those and a chunk, not the file."""
    path = tmp_path / "many.json"
    with open(path, "w") as sink:
        sink.write("[")
        for number in range(20_000):
            row = turns(("human", f"{number} " + "why " * 100), ("gpt", "so"))
            sink.write(("," if number else "") + json.dumps(row))
        sink.write("]")
    tracemalloc.start()
    found = load(path, most=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 9_000_000
    assert peak < 8_000_000
    assert (found.facts.texts, found.facts.sampled, len(found.items)) == (20_000, 500, 500)
    tenths = [
        sum(int(item.prompt.split()[0]) // 2000 == tenth for item in found.items) for tenth in range(10)
    ]
    assert sum((count - 50) ** 2 / 50 for count in tenths) < 27.9
    pool.load.cache_clear()
    assert load(path, most=500).items == found.items


def test_prompts_and_answers_are_as_long_as_the_datasets(tmp_path: Path, cl100k: Tokenizer) -> None:
    """With a dataset the workload is the standard's: whole texts as prompts, the answers' lengths as output lengths."""
    path = as_json(tmp_path / "share.json", DIALOGUES[:3])
    spec = StandardWorkload.model_validate(
        {"name": "conversation", "dataset": str(path), "repeatable_prompts": True}
    )
    assert (spec.name, spec.deviations) == ("conversation", ())
    lengths = {item.prompt: len(cl100k.encode(item.answer or "")) for item in KEPT}
    for kind, chat in (("text", True), ("ids", False)):
        prompts = list(generate(spec, cl100k, 40, 1, kind, chat=chat))  # type: ignore[arg-type]
        for prompt in prompts:
            content = prompt.content if prompt.messages is None else prompt.messages[-1][1]
            said = content if isinstance(content, str) else cl100k.decode(content[prompt.shared :])
            assert prompt.output == lengths[said]
            assert prompt.requested == prompt.sent == prompt.shared + len(cl100k.encode(said))
        assert {prompt.output for prompt in prompts} == set(lengths.values())
    salted = list(
        generate(spec.model_copy(update={"repeatable_prompts": False}), cl100k, 40, 1, "text", chat=True)
    )
    assert {(p.requested, p.output) for p in salted} <= {(p.requested, p.output) for p in prompts}
    dataset = facts(spec).dataset
    assert dataset is not None
    assert dataset.version is None
    declared = spec.model_copy(update={"dataset_version": "2023-04-12"})
    assert facts(declared) == TextSource(None, replace(dataset, version="2023-04-12"))


def test_other_lengths_over_a_dataset_are_cut_from_its_texts(tmp_path: Path, cl100k: Tokenizer) -> None:
    """A length of the plan's own goes on from text to text until it is reached, exactly."""
    path = as_json(tmp_path / "share.json", DIALOGUES[:3])
    given = {"name": "conversation", "dataset": str(path), "input_tokens": 150, "output_tokens": 9}
    for prompt in generate(StandardWorkload.model_validate(given), cl100k, 10, 1, "text", chat=True):
        assert prompt.sent == prompt.requested == 150 + prompt.shared
        assert "How tall is it?" in str(prompt.content)


def test_a_directory_with_more_in_it_than_a_dataset_is_refused_without_looking_at_all_of_it(
    tmp_path: Path,
) -> None:
    """Law: a root or a home is not walked through. Hidden directories count for nothing."""
    (tmp_path / "part").mkdir()
    rows = tmp_path / "part" / "rows.jsonl"
    rows.write_text("{}\n")
    (tmp_path / ".hidden").mkdir()
    for number in range(3):
        (tmp_path / f"{number}.txt").touch()
        (tmp_path / ".hidden" / f"{number}.jsonl").touch()
    assert find(str(tmp_path), None, most=5).paths == (rows,)
    with pytest.raises(PlanError, match=r"is no dataset, or holds several: there are more than 3 files"):
        find(str(tmp_path), None, most=3)
