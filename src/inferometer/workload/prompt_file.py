"""A file of prompts of one's own, JSONL or CSV: read through once before anything is sent, then row by row where it is needed.

A file whose first line that is not blank begins with `{` is JSONL: an object a line. Any other is CSV: the first line names the
fields, an empty cell is as good as none, and `messages`, `sampling` and `extra_body` are JSON in their cells. UTF-8 both.

| field           | is                                                                                                   |
| --------------- | ---------------------------------------------------------------------------------------------------- |
| `prompt`        | text; a row has either this or                                                                       |
| `messages`      | OpenAI's list of `{"role": ..., "content": ...}`, content being text; chat only                      |
| `output_tokens` | tokens to answer with; not needed where the plan says it                                             |
| `system`        | a system prompt before it; chat only                                                                 |
| `class`         | a name under which the report counts the row; at most 127 different ones                             |
| `priority`      | the body's `priority`                                                                                |
| `sampling`      | sampling parameters, as in a plan's classes                                                          |
| `extra_body`    | further fields of the body                                                                           |

Every row is validated. What is wrong is told with the file's base name, the line and the field, MOST_PROBLEMS at most, and
never with a prompt's words.
"""

from __future__ import annotations

import csv
import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar, Literal

from pydantic import FailFast, Field, ValidationError, ValidationInfo, field_validator, model_validator

from inferometer import foreign_json
from inferometer.engines.interface import JsonObject, takers
from inferometer.errors import PlanError, Problem
from inferometer.plan.lengths import LONGEST
from inferometer.plan.part import NUMBER, Part
from inferometer.plan.request_class import MOST_CLASSES, ClassName
from inferometer.plan.target import Body, Fields, Priority, Sampling, fields_of, refuse_twice
from inferometer.plan.wording import reason, refusals
from inferometer.whole_file import check_regular

Chat = tuple[tuple[str, str], ...]
"""Role and text of each message."""

MOST_PROBLEMS = 20
LONGEST_LINE = 32 << 20
"""Bytes; more is no prompt."""
MOST_MEMBERS = 1_000
"""Of an object: each that nobody knows is an error of its own."""

_JSON_CELLS = ("messages", "sampling", "extra_body", "criterion")
_BOM = b"\xef\xbb\xbf"


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is no text") from None
    if "\0" in value:
        raise ValueError("holds a NUL character, which servers do not take")
    return value


class FirstWrong(FailFast):
    """Of a list, the first wrong item is named alone: there may be millions. Hashable, as what stands in a union has to be."""

    def __hash__(self) -> int:
        return hash(FirstWrong)


class Line(Part):
    """What a line holds, or a message in it."""

    @model_validator(mode="before")
    @classmethod
    def _few_members(cls, values: object) -> object:
        if isinstance(values, dict):
            for one in (values, *values.values()):
                if isinstance(one, dict) and len(one) > MOST_MEMBERS:
                    raise ValueError(f"an object in it has {len(one):,} members: at most {MOST_MEMBERS:,}")
        return values


class Message(Line):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str

    @field_validator("content")
    @classmethod
    def _sound(cls, content: str) -> str:
        return _text(content)


class Row(Line):
    """One row, as it stands in the file. `text_field`: what the field of its text is called there."""

    text_field: ClassVar[str] = "prompt"
    noun: ClassVar[str] = "prompt"
    example: ClassVar[str] = '{"prompt": "Say hello", "output_tokens": 20}'

    prompt: str | None = None
    messages: Annotated[tuple[Message, ...], FirstWrong()] | None = None
    output_tokens: Annotated[int, Field(ge=1, le=LONGEST), NUMBER] | None = None
    system: str | None = None
    class_: Annotated[ClassName | None, Field(alias="class")] = None
    priority: Priority | None = None
    sampling: Sampling = Sampling()
    extra_body: Body = Field(default_factory=dict)

    @field_validator("prompt", "system")
    @classmethod
    def _sound(cls, text: str | None) -> str | None:
        return None if text is None else _text(text)

    @field_validator("extra_body")
    @classmethod
    def _once(cls, extra: Fields, info: ValidationInfo) -> Fields:
        return refuse_twice(extra, info.data.get("sampling"), info.data.get("priority"))

    @property
    def chat(self) -> Chat:
        """Role and text of each message, the system prompt first."""
        before = () if self.system is None else (("system", self.system),)
        if self.messages is None:
            return (*before, ("user", self.prompt or ""))
        return (*before, *((one.role, one.content) for one in self.messages))

    @property
    def time_limit_s(self) -> float | None:
        """What the request may take at the most; None: what the plan says."""
        return None

    @property
    def key(self) -> str | None:
        """What no other row of its file may be called; None: rows have no names."""
        return None

    @property
    def fields(self) -> Fields:
        """The fields of its body beside everybody's."""
        return fields_of(self.sampling, self.priority, self.extra_body)


def segments(chat: Chat) -> list[tuple[Chat, Chat]]:
    """A chat as turns: the messages up to a user's last one in a row, and the assistant's that follow it, if any do."""
    found: list[tuple[list[tuple[str, str]], list[tuple[str, str]]]] = [([], [])]
    has_user = False
    for role, text in chat:
        if role == "assistant" and has_user:
            found[-1][1].append((role, text))
            continue
        if found[-1][1]:
            found.append(([], []))
        has_user = has_user or role == "user"
        found[-1][0].append((role, text))
    return [(tuple(own), tuple(answer)) for own, answer in found]


def fields_in(kind: type[Row]) -> tuple[str, ...]:
    """The names of a row's fields, as they stand in a file."""
    return tuple(info.alias or name for name, info in kind.model_fields.items())


FIELDS = fields_in(Row)


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A file that was read through and found sound. `at`, `lines` and `turns`: of each row, its first byte, its line (from 1)
    and, as a conversation, its turns.

    `classes`: their names, in the order in which they first come. `systems`: rows with a system prompt. `size`: in bytes.
    """

    path: Path = field(repr=False)
    format: Literal["jsonl", "csv"]
    sha256: str
    size: int
    at: array[int] = field(repr=False)
    lines: array[int] = field(repr=False)
    turns: array[int] = field(repr=False)
    header: tuple[str, ...]
    classes: tuple[str, ...]
    systems: int
    kind: type[Row] = Row

    def __len__(self) -> int:
        return len(self.at)

    @property
    def name(self) -> str:
        """Without its folder."""
        return self.path.name

    def rows(self, numbers: Iterable[int]) -> Iterator[Row]:
        """These rows, counted from 0, in this order. Raises PlanError if the file is another by now."""
        with self.path.open("rb") as file:
            for number in numbers:
                file.seek(self.at[number])
                try:
                    values = next(_records(file, self.format, self.header)).values
                    yield self.kind.model_validate(values)
                except (StopIteration, ValueError, csv.Error):
                    raise self.problem(number, None, "has changed since it was read") from None

    def problem(self, number: int, name: str | None, message: str) -> PlanError:
        """What is wrong with a field of a row."""
        where = f"{self.name}:{self.lines[number]}"
        return PlanError([Problem(where if name is None else f"{where}: {name}", message)])


@dataclass(slots=True)
class _Record:
    """One row as the format gives it: where it begins, its line relative to the reader's first, its values."""

    at: int
    line: int
    values: JsonObject


def survey(path: Path, *, chat: bool, needs_output: bool, kind: type[Row] = Row) -> PromptFile:
    """Read a file through. `chat`: the plan asks for chats; `needs_output`: it names no output length of its own; `kind`: what
    its rows are.

    Raises PlanError with what is wrong with it.
    """
    return _Survey(path, chat, needs_output, kind).read()


class _Survey:
    """One reading of a file, and what was found."""

    def __init__(self, path: Path, chat: bool, needs_output: bool, kind: type[Row]) -> None:
        self._path, self._chat, self._needs_output = path, chat, needs_output
        self._kind, self._fields = kind, fields_in(kind)
        self._keys: dict[str, int] = {}
        self._problems: list[Problem] = []
        self._classes: dict[str, int] = {}
        self._systems = 0
        self._at, self._lines, self._turns = array("q"), array("q"), array("q")

    def read(self) -> PromptFile:
        try:
            check_regular(self._path)  # a pipe would be waited for, and rows are read again
            with self._path.open("rb") as file:
                return self._read(file)
        except OSError as cause:
            why = (cause.strerror or "unknown error").lower()
            raise PlanError([Problem(self._path.name, f"cannot be read: {why}")]) from cause

    def _read(self, file: BinaryIO) -> PromptFile:
        digest, begins = hashlib.sha256(), _first(file)
        if not begins:  # what the rows would be is not known
            empty = "holds nothing but blank lines" if file.read(1) else "is empty"
            raise PlanError(
                [Problem(self._path.name, f"{empty}: write a {self._kind.noun} a line, as JSONL or CSV")]
            )
        kind: Literal["jsonl", "csv"] = "jsonl" if begins == b"{" else "csv"
        header, line = ((), 0) if kind == "jsonl" else self._header(file, digest.update)
        records = _records(file, kind, header, line, digest.update, self._refuse)
        for record in records:
            self._take(record)
            self._end_where_many()
        if not self._at and not self._problems:
            self._problems.append(Problem(self._path.name, f"holds no {self._kind.noun}"))
        if len(self._classes) > MOST_CLASSES:
            many = f"names {len(self._classes)} classes: at most {MOST_CLASSES}"
            self._problems.append(Problem(f"{self._path.name}: class", many))
        if self._problems:
            raise PlanError(self._problems)
        return PromptFile(
            self._path, kind, digest.hexdigest(), file.tell(), self._at, self._lines, self._turns, header,
            tuple(self._classes), self._systems, self._kind,
        )  # fmt: skip

    def _header(self, file: BinaryIO, read: Callable[[bytes], None]) -> tuple[tuple[str, ...], int]:
        lines = _Lines(file, read)
        csv.field_size_limit(LONGEST_LINE)
        name = f"{self._path.name}:1"
        try:
            header = tuple(one.strip() for one in next(csv.reader(lines), []))
        except (ValueError, csv.Error) as cause:
            raise PlanError([Problem(name, str(cause))]) from None
        wrong = [
            Problem(f"{name}: {one[:60]}", f"no such field; here are {', '.join(self._fields)}")
            for one in islice((one for one in header if one not in self._fields), MOST_PROBLEMS)
        ]
        if len(set(header)) < len(header):
            wrong.append(Problem(name, "names a field twice"))
        text = self._kind.text_field
        if not {text, "messages"} & set(header):
            wrong.append(
                Problem(name, f"a CSV file begins with a line of fields, one of them {text} or messages")
            )
        if wrong:
            raise PlanError(wrong[:MOST_PROBLEMS])
        return header, lines.number

    def _refuse(self, line: int, message: str) -> None:
        self._problems.append(Problem(f"{self._path.name}:{line}", message))
        self._end_where_many()

    def _end_where_many(self) -> None:
        if len(self._problems) >= MOST_PROBLEMS:
            raise PlanError([*self._problems, Problem(self._path.name, "was not read any further")])

    def _take(self, record: _Record) -> None:
        where = f"{self._path.name}:{record.line}"
        try:
            row = self._kind.model_validate(record.values)
        except ValidationError as wrong:
            for one in refusals(wrong)[:MOST_PROBLEMS]:
                name = foreign_json.dotted(one.place)
                unknown = f"no such field; here are {', '.join(self._fields)}"
                told = unknown if one.kind == "extra_forbidden" and len(one.place) == 1 else reason(one)
                self._problems.append(Problem(f"{where}: {name}" if name else where, told))
            return
        self._problems += [Problem(f"{where}: {name}", message) for name, message in self._across(row)]
        if row.key is not None and (first := self._keys.setdefault(row.key, record.line)) != record.line:
            self._problems.append(
                Problem(where, f"has the name of line {first}: each {self._kind.noun} has its own")
            )
        self._at.append(record.at)
        self._lines.append(record.line)
        self._turns.append(len(segments(row.chat)))
        self._systems += any(role in ("system", "developer") for role, _ in row.chat)
        if row.class_ is not None:
            self._classes.setdefault(row.class_, len(self._classes))

    def _across(self, row: Row) -> Iterator[tuple[str, str]]:
        if (row.prompt is None) == (row.messages is None):
            text = self._kind.text_field
            yield text, f"a row has either {text} or messages" + (", not both" if row.prompt else "")
        elif row.messages is not None and all(one.role != "user" for one in row.messages):
            yield "messages", "holds no message of role user"
        if row.system is not None and row.messages and any(one.role == "system" for one in row.messages):
            yield "system", "the messages hold a system prompt already: say it in one place"
        if not self._chat and (row.messages is not None or row.system is not None):
            name = "messages" if row.messages is not None else "system"
            yield (
                name,
                f"only interfaces that take messages have it: set --api to {takers(messages=True)} (target.api)",
            )
        if self._needs_output and row.output_tokens is None:
            yield "output_tokens", "is missing: say it here, or for all rows with --output-tokens"


def _first(file: BinaryIO) -> bytes:
    """How the first line that is not blank begins; the file is at its start again."""
    begins = b""
    while not begins and (line := file.readline(LONGEST_LINE)):
        begins = line.removeprefix(_BOM).strip()[:1]
    file.seek(0)
    return begins


def _records(
    file: BinaryIO,
    kind: str,
    header: tuple[str, ...],
    line: int = 0,
    read: Callable[[bytes], None] = lambda _: None,
    refuse: Callable[[int, str], None] | None = None,
) -> Iterator[_Record]:
    """The rows from where the file stands on. What is no row is refused, or without `refuse` raised as ValueError."""
    lines = _Lines(file, read, line)
    csv.field_size_limit(LONGEST_LINE)
    cells = csv.reader(lines, strict=True)
    while True:
        lines.begins = -1
        try:
            if kind == "csv":
                row = next(cells)
                values = _of_cells(row, header) if row else None
            else:
                values = _of_json(next(lines))
            if values is not None:
                yield _Record(lines.begins, lines.began, values)
        except StopIteration:
            return
        except (ValueError, csv.Error) as cause:
            if refuse is None:
                raise ValueError(str(cause)) from None
            refuse(max(lines.began, 1), str(cause))
            if lines.number == 0 or isinstance(cause, _Endless):
                return


class _Endless(ValueError):
    """A line of which only the beginning was read."""


class _Lines:
    """A file's lines as text. `began`, `begins`: number and first byte of the first line since `begins` was set to -1."""

    def __init__(self, file: BinaryIO, read: Callable[[bytes], None], number: int = 0) -> None:
        self._file, self._read = file, read
        self.number = self.began = number
        self.begins = -1

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        at = self._file.tell()
        line = self._file.readline(LONGEST_LINE)
        if not line:
            raise StopIteration
        self._read(line)
        self.number += 1
        if self.begins < 0:
            self.begins, self.began = at, self.number
        # A row of CSV goes on over lines as long as a quote is open.
        if at + len(line) - self.begins >= LONGEST_LINE and (at > self.begins or not line.endswith(b"\n")):
            raise _Endless(f"is longer than {LONGEST_LINE >> 20} MiB: that is no prompt")
        try:
            return (line.removeprefix(_BOM) if at == 0 else line).decode()
        except UnicodeDecodeError:
            raise ValueError("is not UTF-8 text") from None


def _of_json(line: str) -> JsonObject | None:
    if not line.strip():
        return None
    values = foreign_json.loads(line, halves=True)
    if not isinstance(values, dict):
        raise ValueError('must be a JSON object, for example {"prompt": "Say hello", "output_tokens": 20}')
    return {name: value for name, value in values.items() if value is not None}


def _of_cells(row: list[str], header: tuple[str, ...]) -> JsonObject:
    if len(row) != len(header):
        raise ValueError(f"has {len(row)} cells, where the first line names {len(header)} fields")
    cells = {name: cell for name, cell in zip(header, row, strict=True) if cell}
    values: JsonObject = {**cells}
    for name in _JSON_CELLS:
        if name in cells:
            try:
                values[name] = foreign_json.loads(cells[name], halves=True)
            except foreign_json.NotJSON as cause:
                raise ValueError(f"{name} {cause}") from None
    return values
