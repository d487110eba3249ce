"""A plan file: YAML (or JSON, which `plan.json` is) read into plain values, with the line of every key.

Two things go beyond `yaml.safe_load`: a key given twice is a problem instead of silently the last one, and every key and list
item keeps its line for error messages. A file that is JSON is read by the JSON rules, for YAML 1.1 reads some JSON differently
(`1e-05` is text to it), and a saved plan has to come back exactly.

Either way the values are held to the same limits (`check`): what is made of them takes time with their number, and a number or
a text that cannot be written down cannot be named in a message either.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from inferometer import foreign_json
from inferometer.errors import Problem, check_machine
from inferometer.plan.part import Values

Key = tuple[str | int, ...]
"""Where in a document: names of mappings and indices of lists, from the top."""

MOST_BYTES = 1 << 20
_MOST_NODES = 20_000
"""Keys and values."""
_DEEPEST = 40
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MERGE = "tag:yaml.org,2002:merge"
_AMBIGUOUS = re.compile(r"[-+]?(0[0-9_]+|[0-9_]+(:[0-9]+)+(\.[0-9_]*)?)")
"""Numbers that YAML 1.1 reads in base 8 and in base 60, and others as decimal numbers and as times."""
_MOST_DIGITS = sys.int_info.default_max_str_digits
_BEYOND = 10**_MOST_DIGITS
_STUMBLES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML raises beside its own errors, for text that is not of the kind its tag names: `!!bool foo`, `!!int ''`."""


@dataclass(slots=True)
class Document:
    """The file's values, the 1-based line of each key, and what is wrong with it. `readable`: its values are all known."""

    name: str
    values: Values = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True
    noted: dict[Key, int] = field(default_factory=dict)
    unwalked: str | None = None
    """JSON whose lines nobody has asked for yet: to find them takes ten times as long as to read it."""

    @property
    def lines(self) -> dict[Key, int]:
        """The line of each key and list item; of JSON that YAML 1.1 cannot read, of those before that place."""
        if self.unwalked is not None:
            text, self.unwalked = self.unwalked, None
            _lined(text, self)
        return self.noted

    def refuse(self, message: str, line: int | None = None, *, fatal: bool = True) -> None:
        """Note a problem, at a line if it has one. After a fatal one the values are not to be trusted."""
        self.problems.append(Problem(self.name if line is None else f"{self.name}:{line}", message))
        self.readable = self.readable and not fatal


def read(path: Path) -> Document:
    """Read a plan file. Problems, a missing file among them, are in the document; only MachineError is raised."""
    document = Document(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        check_machine(error)
        document.refuse(f"cannot be read: {(error.strerror or 'unknown error').lower()}")
        return document
    if len(data) > MOST_BYTES:
        document.refuse("is larger than 1 MiB, too large for a plan")
        return document
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        document.refuse("is not UTF-8 text", data.count(b"\n", 0, error.start) + 1)
        return document
    parse(text, document)
    return document


def parse(text: str, document: Document) -> None:
    """Fill the document from the file's text."""
    twice: list[str] = []
    exact = _json(text, twice)
    if exact is None:
        values = _yaml(text, document)
    else:
        values = _checked(exact, document)
        if document.readable and not twice:
            document.unwalked = text
        elif document.readable and not _lined(text, document):
            # JSON that YAML 1.1 cannot read has no lines, but its values are sure, unless a key was given twice.
            for key in twice:
                document.refuse(f"{key} occurs twice in one mapping", fatal=False)
    if isinstance(values, dict):
        document.values = values
    elif values is not None:
        document.refuse("is not a plan: it should have keys such as target, load and workload", 1)


def check(values: object) -> None:
    """That plain data is within the limits of a plan. Raises NotJSON."""
    foreign_json.check_depth(values)
    left, holders = _MOST_NODES, [values]
    while holders:
        one = holders.pop()
        inner = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        left -= len(inner) * (2 if isinstance(one, dict) else 1)
        if left < 0:
            raise foreign_json.NotJSON(
                f"holds more than {_MOST_NODES:,} keys and values, too many for a plan"
            )
        holders += [value for value in inner if isinstance(value, dict | list)]
    foreign_json.check_text(values)


def _checked(values: object, document: Document) -> object:
    """The values, or none where they are beyond the limits, which the document then says."""
    try:
        check(values)
    except foreign_json.NotJSON as error:
        document.refuse(str(error))
        return None
    return values


def _yaml(text: str, document: Document) -> object:
    """The values of YAML, with their lines; none where it cannot be read."""
    try:
        values = _walked(text, document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        document.refuse(f"is not valid YAML: {_quiet(error)}", None if mark is None else mark.line + 1)
        return None
    except (yaml.YAMLError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        document.refuse(f"is not valid YAML: {'nested too deeply' if deep else _first_line(error)}")
        return None
    return _checked(values, document)


def _lined(text: str, document: Document) -> bool:
    """Note the lines of JSON; whether YAML 1.1 can read it."""
    try:
        _walked(text, document)
    except (yaml.YAMLError, RecursionError):
        return False
    return True


def _walked(text: str, document: Document) -> object:
    """The values of YAML. Raises YAMLError and RecursionError."""
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except _STUMBLES as error:
        raise yaml.YAMLError(f"it cannot be read{_detail(error)}") from error
    else:
        return _Walk(loader, document).value(root, ()) if root is not None else {}
    finally:
        if loader is not None:
            loader.dispose()


def _json(text: str, twice: list[str]) -> Values | None:
    """The values, if the text is JSON; keys that one of its objects has several times go into `twice`."""
    if not text.lstrip().startswith("{"):
        return None

    def once(pairs: list[tuple[str, Any]]) -> Values:
        twice.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _quiet(error: yaml.MarkedYAMLError) -> str:
    """PyYAML's own words, without what it quotes from the file: that may be a key."""
    words = ", ".join(part for part in (error.context, error.problem) if part)
    return re.sub(r"'[^']{4,}'", "'…'", words)


def _first_line(error: Exception) -> str:
    return re.sub(r"'[^']{4,}'", "'…'", str(error).splitlines()[0]) if str(error) else "it cannot be read"


def _detail(error: Exception) -> str:
    """What a ValueError says of the text: `: month must be in 1..12`; the others are about PyYAML's own code."""
    return f": {_first_line(error)}" if isinstance(error, ValueError) else ""


class _Loader(yaml.SafeLoader):
    """Stops at the node that is one too many: all of a long file would take minutes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.composed = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """See yaml.composer.Composer."""
        self.composed += 1
        if self.composed > _MOST_NODES:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # PyYAML's stubs lack it
            raise yaml.MarkedYAMLError(problem="too much for a plan", problem_mark=mark)
        return super().compose_node(parent, index)


class _Walk:
    """YAML nodes to values, noting lines and duplicate keys on the way."""

    def __init__(self, loader: yaml.SafeLoader, document: Document) -> None:
        self.loader = loader
        self.document = document
        self.visited = 0
        self.merged: set[int] = set()

    def visit(self, node: yaml.Node, at: Key) -> None:
        """Count a node. Raises MarkedYAMLError beyond the limits: aliases and merges can make a short file endless."""
        self.visited += 1
        if self.visited > _MOST_NODES or len(at) > _DEEPEST:
            raise yaml.MarkedYAMLError(problem="too much for a plan", problem_mark=node.start_mark)

    def value(self, node: yaml.Node, at: Key) -> object:
        self.visit(node, at)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self.document.lines[(*at, index)] = item.start_mark.line + 1
                items.append(self.value(item, (*at, index)))
            return items
        if (
            isinstance(node, yaml.ScalarNode)
            and node.style is None
            and node.tag in _NUMBERS
            and _AMBIGUOUS.fullmatch(node.value)
        ):
            value = self.constructed(node)
            said = (
                f"{node.value} is ambiguous, for YAML reads it as {value}: write {value}, or quote it as text"
            )
            self.document.refuse(said, node.start_mark.line + 1, fatal=False)
        return self.constructed(node)

    def constructed(self, node: yaml.Node) -> object:
        """The value of a scalar. Raises MarkedYAMLError."""
        number = isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS
        try:
            # Before it is made: numbers in base 60 take time with the square of their length.
            long = number and len(node.value) > _MOST_DIGITS
            value = None if long else self.loader.construct_object(node)
            long = long or (type(value) is int and abs(value) >= _BEYOND)
        except _STUMBLES as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"a value is no {kind}{_detail(error)}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error
        if long:
            problem = f"a number of more than {_MOST_DIGITS:,} digits"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return value

    def mapping(self, node: yaml.MappingNode, at: Key) -> Values:
        if node.tag != self.loader.DEFAULT_MAPPING_TAG:
            raise yaml.MarkedYAMLError(problem="tags are not allowed in a plan", problem_mark=node.start_mark)
        self.merge(node, at)
        values: Values = {}
        for key_node, value_node in node.value:
            key = self.name(key_node)
            self.document.lines[(*at, key)] = key_node.start_mark.line + 1
            values[key] = self.value(value_node, (*at, key))
        return values

    def merge(self, node: yaml.MappingNode, at: Key) -> None:
        """Put what `<<` brings in front of a mapping's own keys, which win, as over those of a list of mappings its first."""
        if id(node) in self.merged:  # an alias brings the same node again
            return
        self.merged.add(id(node))
        self.note_duplicates(node, at)
        brought: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag != _MERGE:
                continue
            for one in reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]:
                self.visit(one, (*at, "<<"))
                if not isinstance(one, yaml.MappingNode):
                    raise yaml.MarkedYAMLError(problem="<< takes mappings", problem_mark=one.start_mark)
                self.merge(one, (*at, "<<"))
                for pair in one.value:
                    self.visit(pair[0], at)
                    brought.append(pair)
        node.value = [pair for pair in (*brought, *node.value) if pair[0].tag != _MERGE]

    def note_duplicates(self, node: yaml.MappingNode, at: Key) -> None:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            key, line = self.name(key_node), key_node.start_mark.line + 1
            if key in seen:
                whole = ".".join(str(part) for part in (*at, key))
                self.document.refuse(f"{whole} occurs twice, first on line {seen[key]}", line, fatal=False)
            seen[key] = line

    @staticmethod
    def name(node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be a plain word", problem_mark=node.start_mark)
        return str(node.value)
