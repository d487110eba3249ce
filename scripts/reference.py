"""The reference pages that are drawn from the code: `docs/cli.md` from the commands, `docs/plan.schema.json` from the plan.

    python -m scripts.reference

Tests hold both files to what this writes (tests/test_reference.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from inferometer.cli.app import COMMANDS, group
from inferometer.plan.saved import json_schema

DOCS = Path(__file__).parent.parent / "docs"
HEAD = """# Command line

All commands and flags, drawn from the program by `python -m scripts.reference`. Keys of a plan file are those of
[plan.schema.json](plan.schema.json). Exit codes are explained in [exit-codes.md](exit-codes.md).
"""


def schema() -> str:
    """The JSON Schema of a plan file."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """The page on the command line."""
    parts, context = [HEAD], click.Context(group)
    for name, brief in COMMANDS.items():
        command = group.get_command(context, name)
        assert command is not None, "a name of the table"
        parts += [f"## inferometer {name}\n\n{brief}\n"]
        inner = command.commands if isinstance(command, click.Group) else {name: command}
        for other, one in inner.items():
            if other != name:
                parts.append(f"### inferometer {name} {other}\n")
            parts += _tables(one)
    return "\n".join(parts)


def _tables(command: click.Command) -> Iterator[str]:
    """One table for each group of options."""
    groups: dict[str, list[str]] = {}
    context = click.Context(command)
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            words, said = (text.replace("|", "\\|") for text in record)
            groups.setdefault(getattr(parameter, "group", "Options"), []).append(f"| `{words}` | {said} |")
    for name, rows in sorted(groups.items(), key=lambda item: item[0] != "Common options"):
        yield "\n".join([f"**{name}**\n", "| flag | what it does |", "| --- | --- |", *rows, ""])


def main() -> None:
    """Write both."""
    (DOCS / "cli.md").write_text(page(), encoding="utf-8")
    (DOCS / "plan.schema.json").write_text(schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
