"""`inferometer serve`: the reference server by itself. Its options are the server's own (server/__main__.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from inferometer.cli.command import Command
from inferometer.server import fault_specs
from inferometer.server.__main__ import ARGUMENTS, Argument, run

HELP = """\
Run a reference LLM server until Ctrl-C: the interfaces of OpenAI, Anthropic and Ollama in front of a model of an engine that
logs what it actually did. See docs/server.md.
"""
EXAMPLES = (
    "inferometer serve",
    "inferometer serve --port 8001 --preset a100-8b --set max_batch=32",
    "inferometer serve --fault hang:share=0.1",
)


def _number(argument: Argument) -> Callable[[str], str | int | float]:
    """What reads a number in the range of its option."""

    def number(text: str) -> str | int | float:
        try:
            return argument.read(str(text))
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return number


def _options() -> Iterator[click.Option]:
    for one in ARGUMENTS:
        choices = {int(text) if one.kind is int else text: None for text in one.choices}
        kind = str if one.kind is str else _number(one)
        numeral = {str: None, int: "INTEGER", float: "FLOAT"}[one.kind]
        yield click.Option(
            [one.flag, one.name],
            type=None if one.switch else click.Choice(list(choices)) if choices else kind,
            default=None if one.repeat else False if one.switch else one.default,
            is_flag=one.switch,
            multiple=one.repeat,
            metavar=None if one.switch else one.metavar or (None if choices else numeral),
            help=f"{one.help} May be repeated." if one.repeat else one.help,
            show_default=not one.switch,
        )


command = Command(
    "serve",
    callback=lambda **given: run(given),
    help=HELP,
    epilog=f"\b\nFaults (docs/faults.md):\n{fault_specs.manual()}",
    examples=EXAMPLES,
    params=list(_options()),
)
