"""`--server-metrics-formats json csv` beside `--server-metrics-formats json --server-metrics-formats csv`: click's options take
one word each, and other tools' users write the first."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from inferometer.cli.command import Command
from inferometer.plan.server_metrics import FORMATS

LISTS = {
    "--server-metrics": re.compile(r"https?://|[^/\s]+:\d+(/|$)"),
    "--server-metrics-formats": re.compile(rf"({'|'.join(FORMATS)}|,)+$"),
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
