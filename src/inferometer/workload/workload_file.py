"""A workload that was made: the requests of a plan, with everything that they say, as a file that can be run. There are
two spellings with the same content and the same hashes:

| file    | the header                                            | a row                                                   |
| ------- | ----------------------------------------------------- | ------------------------------------------------------- |
| `.jsonl`| the first line                                        | a line: the columns that are there, in COLUMNS' order   |
| `.arrow`| the schema's metadata, under `inferometer`, as JSON   | a row of an Arrow IPC file; what is not there is null   |

| hash          | of                                                      | so it                                        |
| ------------- | ------------------------------------------------------- | -------------------------------------------- |
| `rows_sha256` | the lines of all rows, each with its newline            | finds any change of a row, or of their order |
| `digest`      | the header as canonical JSON, `digest` itself left out  | names the file, rows too: a plan pins it     |
| `fingerprint` | the measured requests without nonces (prompts.py)       | is what the reports of runs name             |

Rows are the warm-up's, then the measurement's. Nonces stand in the rows as they came from the header's salt, with their places,
so that a run can write its own over them: the nonce with `offset` o is (s + o) mod 10^9 in a run with salt s. The fingerprint
leaves out `length` characters, or ids, from `at` on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pyarrow as pa
from pydantic import Field, PlainSerializer, PlainValidator, ValidationError, model_validator

from inferometer import foreign_json
from inferometer.documents.part import from_data, optional, to_data
from inferometer.documents.workload import PrefixHits, PromptFile, SourceFacts, TextSource, TokenizerFacts
from inferometer.engines.interface import INTERFACES
from inferometer.errors import InstrumentError, PlanError, Problem, check_machine
from inferometer.foreign_tables.arrow import check_arrow
from inferometer.foreign_tables.cells import as_values
from inferometer.foreign_tables.limits import TooLarge
from inferometer.plan.part import Part
from inferometer.plan.request_class import ClassName
from inferometer.plan.target import Api, Body
from inferometer.plan.version_1 import own_keys
from inferometer.plan.wording import reason, refusals
from inferometer.plan.workload import AnyWorkload, workload_of
from inferometer.units import NS_PER_MS
from inferometer.whole_file import check_regular
from inferometer.workload.nonces import NONCES
from inferometer.workload.prompt_file import LONGEST_LINE, MOST_PROBLEMS, FirstWrong, Line, Message
from inferometer.workload.prompts import Prompt
from inferometer.workload.turn_schedule import Place

VERSION: Literal["workload/2"] = "workload/2"
READABLE = (VERSION, "workload/1")
"""Version 1, of inferometer 0.1.0, did not name the kind of the workload."""
FORMATS = ("arrow", "jsonl")
NAME = "workload"
BATCH = 256
"""Rows of a record batch."""

PHASES = ("warmup", "measure")
PhaseName = Literal["warmup", "measure"]
Text = str | list[int]
Fields = dict[str, Any]
"""Members of a row or a header, as its JSON has them."""
Value = Callable[[str | Sequence[int]], int]
"""From a nonce as it stands in a prompt to its number (prompts.valuer)."""

ARROW: dict[str, pa.DataType] = {
    "phase": pa.string(),
    "index": pa.int64(),
    "prompt": pa.string(),
    "ids": pa.list_(pa.uint32()),
    "messages": pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])),
    "input_tokens": pa.int64(),
    "input_tokens_sent": pa.int64(),
    "input_tokens_shared": pa.int64(),
    "group": pa.int64(),
    "output_tokens": pa.int64(),
    "class": pa.string(),
    "extra_body": pa.string(),
    "nonces": pa.list_(
        pa.struct([(name, pa.int64()) for name in ("message", "at", "length", "offset")]),
    ),
    "session": pa.int64(),
    "turn": pa.int64(),
    "turns": pa.int64(),
    "think_ms": pa.int64(),
    "input_tokens_repeated": pa.int64(),
    "input_tokens_known": pa.int64(),
    "replies": pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])),
}
COLUMNS = tuple(ARROW)

_Count = Annotated[int, Field(ge=0, lt=2**31)]  # as wide as in the schedule (journal/schema.py)
_Turn = Annotated[int, Field(ge=0, lt=2**15)]
_Hash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


def _held(kind: type) -> tuple[PlainValidator, PlainSerializer]:
    """How a part of a document (documents/) stands in a header."""

    def read(value: object) -> object:
        return value if isinstance(value, kind) else from_data(value, kind)

    return PlainValidator(read), PlainSerializer(to_data)


class Nonce(Line):
    """Where a nonce stands: in which message (0 where there is one text), from which character or id on. See the head."""

    message: _Count
    at: _Count
    length: Annotated[int, Field(ge=1, lt=2**31)]
    offset: Annotated[int, Field(ge=0, lt=NONCES)]


class Row(Line):
    """One request. Its text is `prompt`, `ids` or `messages`; `group`: of those that share a prefix with it."""

    phase: PhaseName
    index: _Count
    prompt: str | None = None
    ids: Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], FirstWrong()] | None = None
    messages: Annotated[tuple[Message, ...], FirstWrong()] | None = None
    input_tokens: _Count
    input_tokens_sent: _Count
    input_tokens_shared: _Count = 0
    group: _Count | None = None
    output_tokens: Annotated[int, Field(ge=1, lt=2**31)]
    class_: Annotated[ClassName | None, Field(alias="class")] = None
    extra_body: Body | None = None
    nonces: Annotated[tuple[Nonce, ...], FirstWrong()] = ()
    session: _Count | None = None
    turn: _Turn = 0
    turns: Annotated[_Turn, Field(ge=1)] = 1
    think_ms: _Count = 0
    input_tokens_repeated: _Count = 0
    input_tokens_known: _Count = 0
    replies: Annotated[tuple[Message, ...], FirstWrong()] | None = None

    @property
    def place(self) -> Place | None:
        """Which turn of which conversation it is; None: it stands alone."""
        if self.session is None:
            return None
        return Place(self.session, self.turn, self.turns, self.think_ms * NS_PER_MS)

    @property
    def reply(self) -> tuple[tuple[str, str], ...] | None:
        """The recorded reply to it; None: the server's is repeated."""
        return None if self.replies is None else tuple((one.role, one.content) for one in self.replies)

    @model_validator(mode="after")
    def _one_text(self) -> Row:
        if sum(text is not None for text in (self.prompt, self.ids, self.messages)) != 1:
            raise ValueError("a row has one of prompt, ids and messages")
        texts = self.parts
        for one in self.nonces:
            if one.message >= len(texts) or one.at + one.length > len(texts[one.message]):
                raise ValueError("nonces: one lies outside the text")
        return self

    @property
    def parts(self) -> list[Text]:
        """Its texts, with their nonces: the messages', or the one it has."""
        if self.messages is not None:
            return [one.content for one in self.messages]
        return [self.prompt if self.prompt is not None else self.ids or []]

    def bare(self) -> Text:
        """What it says, without nonces."""
        return joined(without(self.parts, [(one.message, one.at, one.length) for one in self.nonces]))


class Declared(Part):
    """The plan's tokenizer; its name is None where it is a path."""

    name: str | None
    method: Literal["reference", "native"]


class From(Part):
    """Where requests came from (sources.py)."""

    classes: tuple[ClassName, ...]
    prompts: Fields | None
    texts: Fields | None

    def facts(self) -> SourceFacts:
        """The same, typed."""
        return SourceFacts(self.classes, optional(self.prompts, PromptFile), optional(self.texts, TextSource))

    @model_validator(mode="after")
    def _is_known(self) -> From:
        self.facts()
        return self


class Header(Part):
    """What a file says before its rows.

    `workload` is the plan's part. Figures that are not here are worked out from the rows when they are wanted.
    """

    inferometer: Literal["workload/1", "workload/2"] = VERSION
    workload: Fields
    api: Api
    prompt_format: Literal["ids", "text"]
    declared: Declared
    tokenizer: Annotated[TokenizerFacts, *_held(TokenizerFacts)]
    salt: Annotated[int, Field(ge=0, lt=NONCES)]
    warmup: _Count
    requests: _Count
    prefix_hits: Annotated[PrefixHits, *_held(PrefixHits)]
    source: From
    fingerprint: _Hash
    rows_sha256: _Hash
    digest: str = ""

    @property
    def spec(self) -> AnyWorkload:
        """The plan's workload part. Raises ValidationError."""
        first = self.inferometer == "workload/1"
        return workload_of(own_keys(self.workload) if first else self.workload)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes' names."""
        return self.source.classes

    def sealed(self) -> Header:
        """With the digest that belongs to it."""
        said = self.model_dump(mode="json", exclude={"digest"})
        return self.model_copy(update={"digest": f"sha256:{hashlib.sha256(_canonical(said)).hexdigest()}"})


@dataclass(frozen=True, slots=True)
class Made:
    """A file of requests that can be read, in the order of its rows."""

    path: Path = field(repr=False)
    format: Literal["arrow", "jsonl"]
    header: Header

    @property
    def name(self) -> str:
        """Without its folder."""
        return self.path.name

    @property
    def digest(self) -> str:
        """The digest's hexadecimal digits."""
        return self.header.digest.removeprefix("sha256:")

    def rows(self, phase: PhaseName) -> Iterator[Row]:
        """The rows of a phase. Raises PlanError if the file is another by now."""
        first = 0 if phase == "warmup" else self.header.warmup
        count = self.header.warmup if phase == "warmup" else self.header.requests
        for number, (_, values) in enumerate(islice(_stream(self), first, first + count), first):
            try:
                yield Row.model_validate(values)
            except ValidationError:
                raise PlanError([Problem(_where(self, number), "has changed since it was read")]) from None


def row_of(
    prompt: Prompt, phase: PhaseName, index: int, classes: Sequence[str], salt: int, value: Value
) -> Fields:
    """A prompt as a row; `salt` is the one its nonces were made with."""
    kind, text = ("prompt", prompt.content) if isinstance(prompt.content, str) else ("ids", prompt.content)
    chat = prompt.messages
    return {
        "phase": phase,
        "index": index,
        kind: None if chat is not None else text,
        "messages": None if chat is None else [{"role": role, "content": said} for role, said in chat],
        "input_tokens": prompt.requested,
        "input_tokens_sent": prompt.sent,
        "input_tokens_shared": prompt.shared or None,
        "group": prompt.group if prompt.group >= 0 else None,
        "output_tokens": prompt.output,
        "class": None if prompt.request_class is None else classes[prompt.request_class],
        "extra_body": prompt.fields,
        "nonces": _nonces(prompt, salt, value) or None,
        **_placed(prompt),
    }


def _placed(prompt: Prompt) -> Fields:
    """What a row says of a turn. Whose it is, and when, is the load's and stands in no file."""
    place = prompt.place
    if place is None or place.session is None:
        return {}
    reply = prompt.reply
    return {
        "session": place.session,
        "turn": place.turn,
        "turns": place.turns,
        "think_ms": place.think_ns // NS_PER_MS or None,
        "input_tokens_repeated": prompt.repeated or None,
        "input_tokens_known": prompt.known or None,
        "replies": None if reply is None else [{"role": role, "content": said} for role, said in reply],
    }


def joined(parts: list[Text]) -> Text:
    """The texts as one, as Prompt.content has them."""
    return "\n".join(cast(list[str], parts)) if isinstance(parts[0], str) else parts[0]


def without(parts: Sequence[Text], places: Sequence[tuple[int, int, int]]) -> list[Text]:
    """The texts without what stands at these places: in which text, from where on, and for how long."""
    left = list(parts)
    for number, at, length in sorted(places, reverse=True):
        left[number] = left[number][:at] + left[number][at + length :]  # type: ignore[operator] # both are of one kind
    return left


def _nonces(prompt: Prompt, salt: int, value: Value) -> list[dict[str, int]]:
    """Where the nonces of a prompt stand: those places without which it says what it says bare."""
    if not prompt.nonce:
        return []
    content = prompt.content
    mark: Text = prompt.nonce if isinstance(content, str) else [int(one) for one in prompt.nonce.split(",")]
    size = len(mark)
    bare = content[size:] if prompt.bare is None else prompt.bare
    if prompt.messages is not None:
        parts: list[Text] = [text for _, text in prompt.messages]
        user = next(at for at, (role, _) in enumerate(prompt.messages) if role == "user")
        tries = [sorted({(0, 0), (user, 0)})]
    else:
        parts = [content]
        tries = [[(0, 0)], *([(0, 0), (0, at)] for at in _places(content, mark, prompt.shared))]
    for places in tries:
        for length in (size, size + 1):  # prompts of a file have it on a line of its own
            if joined(without(parts, [(*place, length) for place in places])) == bare:
                return [
                    {
                        "message": number,
                        "at": at,
                        "length": length,
                        "offset": (value(parts[number][at : at + size]) - salt) % NONCES,
                    }
                    for number, at in places
                ]
    raise InstrumentError("a prompt was made whose nonces are not where they should be")


def _places(content: Text, mark: Text, shared: int) -> Iterator[int]:
    """Where the request's own nonce may stand behind a shared prefix."""
    if not isinstance(content, str):
        yield shared
        return
    at = content.find(cast(str, mark), len(mark))
    while at >= 0:
        yield at
        at = content.find(cast(str, mark), at + 1)


# Writing.


def write(folder: Path, rows: Iterable[Fields], finish: Callable[[str], Header]) -> Header:
    """Write both files into a folder. `finish` gives the header when all rows have passed, from their hash. Raises OSError."""
    loose, digest = folder / f"{NAME}.rows.part", hashlib.sha256()
    parts = {kind: folder / f"{NAME}.{kind}.part" for kind in FORMATS}
    try:
        with loose.open("wb") as sink:
            for values in rows:
                line = _line(values)
                digest.update(line)
                sink.write(line)
        header = finish(f"sha256:{digest.hexdigest()}").sealed()
        with ExitStack() as stack:
            source = stack.enter_context(loose.open("rb"))
            jsonl = stack.enter_context(parts["jsonl"].open("wb"))
            arrow = stack.enter_context(_arrow_file(parts["arrow"], header))
            jsonl.write(_canonical(header.model_dump(mode="json")) + b"\n")
            while lines := list(islice(source, BATCH)):
                jsonl.writelines(lines)
                arrow.write_batch(_batch([json.loads(line) for line in lines], arrow_schema(header)))
        for kind, part in parts.items():
            os.replace(part, folder / f"{NAME}.{kind}")
        return header
    finally:
        for part in (loose, *parts.values()):
            part.unlink(missing_ok=True)


def arrow_schema(header: Header) -> pa.Schema:
    """The columns, and the header as metadata."""
    said = _canonical(header.model_dump(mode="json"))
    return pa.schema(list(ARROW.items()), metadata={b"inferometer": said})


def _arrow_file(path: Path, header: Header) -> pa.RecordBatchFileWriter:
    return pa.ipc.new_file(str(path), arrow_schema(header))


def _batch(rows: Sequence[Fields], schema: pa.Schema) -> pa.RecordBatch:
    columns = {name: [row.get(name) for row in rows] for name in COLUMNS}
    columns["extra_body"] = [
        None if one is None else _canonical(one).decode() for one in columns["extra_body"]
    ]
    return pa.record_batch([pa.array(columns[name], ARROW[name]) for name in COLUMNS], schema=schema)


def _line(values: Fields) -> bytes:
    """A row as JSON, what is not there left out."""
    return _canonical({name: values[name] for name in COLUMNS if values.get(name) is not None}) + b"\n"


def _canonical(values: Fields) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


# Reading.


def opened(path: Path) -> Made:
    """A file whose header was read. Raises PlanError where it is none of ours."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            begins = file.readline(LONGEST_LINE)
    except OSError as cause:
        raise refused(path.name, f"cannot be read: {(cause.strerror or 'unknown error').lower()}") from cause
    kind: Literal["arrow", "jsonl"] = "arrow" if begins.startswith(b"ARROW1") else "jsonl"
    said = _metadata(path) if kind == "arrow" else begins
    try:
        values = foreign_json.loads(said)
    except foreign_json.NotJSON:
        values = None
    if not isinstance(values, dict) or "inferometer" not in values:
        raise refused(path.name, "is no workload that `inferometer workload make` wrote")
    if values["inferometer"] not in READABLE:
        known = " or ".join(map(repr, READABLE))
        message = (
            f"is of a version this program does not read: {str(values['inferometer'])[:40]!r}, not {known}"
        )
        raise refused(path.name, message)
    try:
        header = Header.model_validate(values)
        assert header.spec
    except ValidationError as wrong:
        at = ".".join(map(str, refusals(wrong)[0].place))
        raise refused(f"{path.name} (header)", f"{at} is missing or cannot be read") from None
    return Made(path, kind, header)


def refused(where: str, message: str) -> PlanError:
    """What is wrong with a file."""
    return PlanError([Problem(where, message)])


@dataclass(slots=True)
class Reading:
    """What reading a file through found: its rows' hash, and what is wrong with it (MOST_PROBLEMS at most)."""

    rows_sha256: str
    problems: list[Problem]


def read_through(made: Made, see: Callable[[Row], None] = lambda _: None) -> Reading:
    """Read every row and check it; `see` is shown the sound ones."""
    header, digest = made.header, hashlib.sha256()
    check = _Check(made)
    count = 0
    for count, (line, values) in enumerate(_stream(made, check.problems.append), 1):
        digest.update(line)
        row = check.row(count - 1, values) if values is not None else None
        if row is not None:
            see(row)
        if len(check.problems) >= MOST_PROBLEMS:
            check.problems.append(Problem(made.name, "was not read any further"))
            break
    else:
        if count != header.warmup + header.requests:
            message = f"holds {count:,} rows, and its header says {header.warmup + header.requests:,}"
            check.problems.append(Problem(made.name, message))
    return Reading(f"sha256:{digest.hexdigest()}", check.problems)


class _Check:
    """What a row of this file must be."""

    def __init__(self, made: Made) -> None:
        self.problems: list[Problem] = []
        self._made, self._header = made, made.header
        self._classes = set(made.header.classes)
        self._vocabulary = made.header.tokenizer.vocab_size

    def row(self, number: int, values: Fields) -> Row | None:
        """The row, or None where it is none; what is wrong is noted."""
        where = _where(self._made, number)
        try:
            row = Row.model_validate(values)
        except ValidationError as wrong:
            for one in refusals(wrong)[:MOST_PROBLEMS]:
                name = ".".join(map(str, one.place))
                unknown = one.kind == "extra_forbidden"
                told = f"no such field; here are {', '.join(COLUMNS)}" if unknown else reason(one)
                self.problems.append(Problem(f"{where}: {name}" if name else where, told))
            return None
        found = list(self._wrong(number, row))
        self.problems += [Problem(f"{where}: {name}", message) for name, message in found]
        return None if found else row

    def _wrong(self, number: int, row: Row) -> Iterator[tuple[str, str]]:
        header = self._header
        phase = PHASES[number >= header.warmup]
        index = number - header.warmup if phase == "measure" else number
        if (row.phase, row.index) != (phase, index):
            yield "index", f"is {row.phase} {row.index}, where {phase} {index} should be"
        if row.class_ is not None and row.class_ not in self._classes:
            yield "class", f"{row.class_} is none of the header's"
        if (row.ids is not None) != (header.prompt_format == "ids"):
            yield "ids", f"the header says that prompts are {header.prompt_format}"
        if row.messages is not None and not INTERFACES[header.api].takes_messages:
            yield "messages", f"the header says {header.api}, which takes no messages"
        if row.ids is not None and self._vocabulary is not None:
            high = max(row.ids, default=0)
            if high >= self._vocabulary:
                name = header.tokenizer.name
                yield "ids", f"{high} is above the vocabulary of {name}, which ends at {self._vocabulary - 1}"


def _where(made: Made, number: int) -> str:
    """A row's place: its line, or of an Arrow file its number, from 1 on."""
    return f"{made.name}:{number + 2}" if made.format == "jsonl" else f"{made.name}, row {number + 1}"


Stream = Iterator[tuple[bytes, Fields]]


def _stream(made: Made, refuse: Callable[[Problem], None] | None = None) -> Iterator[tuple[bytes, Any]]:
    """Every row as its line and its values; None for the values of what is no row, which is told to `refuse`, or raised."""

    def wrong(number: int, message: str) -> None:
        problem = Problem(_where(made, number), message)
        if refuse is None:
            raise PlanError([problem])
        refuse(problem)

    return _arrow_rows(made, wrong) if made.format == "arrow" else _lines(made, wrong)


def _lines(made: Made, wrong: Callable[[int, str], None]) -> Iterator[tuple[bytes, Any]]:
    with made.path.open("rb") as file:
        file.readline()
        number = 0
        while line := file.readline(LONGEST_LINE):
            values: Any = None
            try:
                values = foreign_json.loads(line)
                if not isinstance(values, dict):
                    wrong(number, "must be a JSON object")
                    values = None
            except foreign_json.NotJSON as cause:
                wrong(number, str(cause))
            yield line, values
            number += 1


def _arrow_rows(made: Made, wrong: Callable[[int, str], None]) -> Iterator[tuple[bytes, Any]]:
    number = 0
    try:
        with pa.OSFile(str(made.path)) as file:  # not mapped: what was read need not stay in memory
            reader = pa.ipc.open_file(file)
            for batch in map(reader.get_batch, range(reader.num_record_batches)):
                batch.validate(full=True)
                for values in as_values(batch):
                    if values["extra_body"] is not None:
                        values["extra_body"] = foreign_json.loads(values["extra_body"])
                    there = {name: value for name, value in values.items() if value is not None}
                    yield _line(there), there
                    number += 1
    except (pa.ArrowException, OSError, ValueError, TooLarge) as cause:
        check_machine(cause)
        wrong(number, f"cannot be read from here on: {_first_line(cause)}")


def _metadata(path: Path) -> bytes:
    try:
        check_arrow(path)
        with pa.memory_map(str(path)) as mapped:
            schema = pa.ipc.open_file(mapped).schema
    except (pa.ArrowException, OSError, TooLarge, UnicodeDecodeError) as cause:
        raise refused(path.name, f"cannot be read as Arrow: {_first_line(cause)}") from cause
    if not schema.remove_metadata().equals(pa.schema(list(ARROW.items()))):
        raise refused(path.name, "has other columns than a workload that `inferometer workload make` wrote")
    return bytes((schema.metadata or {}).get(b"inferometer", b""))


def _first_line(cause: Exception) -> str:
    return (str(cause).splitlines() or ["unknown error"])[0]
