"""How all commands show their help: what they do, options under headings with the common ones first, exit codes, examples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from inferometer.plan.server_metrics import FORMATS

if TYPE_CHECKING:  # commands without a plan do not wait for it
    from inferometer.plan.flags import Flag

WIDTH = 110
"""The most columns that help takes of a wide terminal."""
COMMON = "Common options"


class GroupedOption(click.Option):
    """An option that stands under a heading."""

    def __init__(self, *words: Any, group: str = COMMON, **more: Any) -> None:
        super().__init__(*words, **more)
        self.group = group


class Command(click.Command):
    """A command with its options in groups and its examples last."""

    def __init__(self, name: str, *, examples: Sequence[str] = (), exits: str = "", **more: Any) -> None:
        super().__init__(name, **more)
        self.context_settings = {"max_content_width": WIDTH, **self.context_settings}
        self.examples, self.exits = examples, exits

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each group under its heading; what has none, with `--help`, stands last."""
        from inferometer.plan.part import Group

        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (*get_args(Group), "Options")}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups[getattr(parameter, "group", "Options")].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Exit codes, then examples."""
        super().format_epilog(ctx, formatter)
        if self.exits:
            with formatter.section("Exit codes"):
                formatter.write_text(self.exits)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def option(flag: Flag, *, hidden: bool = False) -> click.Option:
    """A flag of the plan as an option of a command. `hidden`: it is taken, and not offered."""
    return GroupedOption(
        [flag.name],
        group=flag.group,
        is_flag=flag.switch,
        multiple=flag.repeat and not flag.switch,
        default=None if not flag.switch else False,
        metavar=None if flag.switch else flag.metavar,
        help=flag.help,
        hidden=hidden,
    )


# `--server-metrics-formats json csv` beside `--server-metrics-formats json --server-metrics-formats csv`: click's options take
# one word each, and other tools' users write the first.


_FORMATS = re.compile(rf"({'|'.join(FORMATS)}|,)+$")
LISTS = {
    "--server-metrics": re.compile(r"https?://|[^/\s]+:\d+(/|$)"),
    "--server-metrics-formats": _FORMATS,
    "--formats": _FORMATS,
}
"""Flags that are followed by several words, and what a further word looks like: a plan's path is none."""


class Lists(Command):
    """A command whose lists may be written so."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, of the words with every flag written out."""
        return super().parse_args(ctx, repeated(args))


def repeated(args: Sequence[str]) -> list[str]:
    """The words, with its flag before each further word of a list."""
    made: list[str] = []
    flag, first = None, False
    for word in args:
        if word.startswith("--"):
            flag, first = (word, True) if word in LISTS else (None, False)
        elif flag is not None and first:
            first = False
        elif flag is not None and LISTS[flag].match(word):
            made.append(flag)
        else:
            flag = None
        made.append(word)
    return made
