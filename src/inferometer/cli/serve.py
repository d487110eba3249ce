"""`inferometer serve`: the reference server by itself. Its options are the server's own; see `inferometer serve --help`."""

from __future__ import annotations

import click


@click.command("serve", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(options: tuple[str, ...]) -> int:
    """Run the reference server until Ctrl-C."""
    from inferometer.server.__main__ import main

    return main(list(options), "inferometer serve")
