"""The map of the rooms, held to the code: who may import whom, no cycles, budgets, and prose that names what exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from inferometer.engines.interface import INTERFACES

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "inferometer"

ALLOWED: dict[str, set[str]] = {
    # A room may import the rooms to its right, itself, and those of EVERYWHERE.
    "protocol": set(),
    "metrics": set(),
    "plan": {"engines", "journal", "metrics"},
    "journal": set(),
    "client": {"protocol"},
    "telemetry": {"client", "journal", "protocol"},
    "workload": {"documents", "engines", "plan"},
    "engines": {"journal", "protocol"},
    "drive": {"client", "plan", "protocol", "engines", "journal"},
    "measure": {"plan", "journal", "metrics", "telemetry"},
    "documents": {"measure", "metrics", "plan", "telemetry"},
    "procedures": {"documents", "measure", "metrics", "plan"},
    "judge": {"documents", "plan", "measure", "metrics"},
    "report": {"documents", "plan", "measure", "metrics", "judge", "telemetry"},
    "server": {"client", "protocol", "workload"},
    "simulation": {"drive", "engines", "journal", "server"},
    "calibration": {"documents", "journal", "plan", "telemetry"},
    "cluster": {"calibration", "client", "documents", "drive", "journal", "measure", "plan", "telemetry"},
    "run": {
        "client", "cluster", "documents", "drive", "engines", "journal", "judge", "measure", "plan", "report", "server",
        "simulation", "telemetry", "workload",
    },
    "exports": {
        "client", "documents", "engines", "journal", "measure", "metrics", "report", "run", "telemetry",
    },
    "studies": {
        "calibration", "client", "documents", "drive", "engines", "journal", "judge", "measure", "metrics", "plan",
        "procedures", "report", "run", "server", "simulation", "telemetry", "workload",
    },
    "cli": {
        "cluster", "documents", "drive", "engines", "exports", "journal", "judge", "plan", "report", "run", "server",
        "simulation", "studies", "telemetry", "workload",
    },
    "addresses": set(),
    "errors": set(),
    "foreign_json": set(),
    "foreign_tables": set(),
    "isolation": set(),
    "printable": set(),
    "units": set(),
    "whole_file": set(),
}  # fmt: skip
EVERYWHERE = {
    "addresses",
    "errors",
    "foreign_json",
    "foreign_tables",
    "isolation",
    "printable",
    "units",
    "whole_file",
    "",
}
FORBIDDEN_NAMES = {"common", "utils", "helpers", "models", "base", "schemas"}
CLOCKS = {"time", "datetime"}
FILE_LINES = 600
BODY_LINES = 60


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0].removesuffix(".py") if parts[0] != "__init__.py" else ""


def imported_rooms(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "inferometer":
                second = name.split(".")[1] if "." in name else ""
                found.add(second if second in ALLOWED else "")
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_room_may(path: Path) -> None:
    """The arrows of the architecture run one way."""
    here = room(path)
    if here == "":
        return
    others = imported_rooms(ast.parse(path.read_text())) - {here} - EVERYWHERE
    assert others <= ALLOWED[here]


def test_the_allowed_imports_have_no_circle() -> None:
    """Taking away rooms that import nothing, again and again, leaves none."""
    left = {name: set(others) for name, others in ALLOWED.items()}
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert left == {}


def test_no_file_imports_itself_through_others() -> None:
    """The same for files: each can be understood after those that it imports. Imports for types alone count too."""
    left = {_dotted(path): _imported_files(path) for path in modules()}
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert left == {}


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def _imported_files(path: Path) -> set[str]:
    known, found = {_dotted(one) for one in modules()}, set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & known if inner & known else {node.module}
    return (found & known) - {_dotted(path)}


def test_every_room_is_on_the_map_and_none_is_a_drawer() -> None:
    """A folder without a line in the table, or named after nothing, is a mistake."""
    rooms = {room(path) for path in modules()} - {""}
    assert rooms == set(ALLOWED)
    stems = {path.stem for path in modules()} | rooms
    assert not {stem for stem in stems if stem.strip("_") in FORBIDDEN_NAMES}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_and_its_functions_keep_their_budgets(path: Path) -> None:
    """A file 600 lines, a function body 60."""
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.body[0].lineno + 1 <= BODY_LINES, node.name


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_rooms_with_a_clock_read_one(path: Path) -> None:
    """Time is an argument: client, cluster, drive, server and telemetry read clocks and open sockets; run, studies and cli
    read the time of day; no other room does either."""
    if room(path) in ("client", "cluster", "drive", "server", "telemetry", "run", "studies", "cli"):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {
                ("time", "time"), ("time", "time_ns"), ("time", "monotonic"), ("time", "monotonic_ns"),
                ("time", "perf_counter"), ("datetime", "now"), ("socket", "socket"),
            }  # fmt: skip


def test_no_code_outside_the_dialects_compares_the_name_of_an_interface() -> None:
    """Outside engines/, and the reference server on the wire's other side, no code compares an interface's name with one."""
    names = set(INTERFACES)
    for path in modules():
        if room(path) in ("engines", "server"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                literals = {
                    leaf.value for side in sides for leaf in ast.walk(side) if isinstance(leaf, ast.Constant)
                }
                assert not literals & names, f"{path}:{node.lineno}"


def test_a_plan_reads_the_table_of_interfaces_and_no_dialect() -> None:
    """plan and workload import engines/interface.py and engines/message_form.py, which import nothing of ours."""
    tables = ("interface", "message_form")
    for path in modules():
        if room(path) in ("plan", "workload"):
            for line in re.findall(r"inferometer\.engines\S*", path.read_text()):
                assert line in {f"inferometer.engines.{name}" for name in tables}, path
    for name in tables:
        assert "inferometer" not in (SOURCE / "engines" / f"{name}.py").read_text()


def test_the_figure_in_the_docs_is_the_table_here() -> None:
    """docs/architecture.md shows the allowed imports as they are."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    shown = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE))
    expected = {name: ", ".join(sorted(others)) or "nothing" for name, others in ALLOWED.items()}
    assert {name: cell.strip() for name, cell in shown.items()} == expected


def test_a_choice_of_words_is_defined_once() -> None:
    """No two files define a type of the same name and the same literals: one would be changed without the other."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = ast.unparse(node.value)
                if value.startswith("Literal["):
                    places.setdefault((node.targets[0].id, value), []).append(path.name)
    assert not {name: found for (name, _), found in places.items() if len(found) > 1}
