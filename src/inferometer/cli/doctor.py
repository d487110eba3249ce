"""`inferometer doctor`: is this machine fit to measure on?"""

from __future__ import annotations

import click

from inferometer.cli.command import Command
from inferometer.cli.outlet import say_json

EXAMPLES = ("inferometer doctor", "inferometer doctor --json > doctor.json")
EXITS = "0 nothing to mend, 2 usage, 4 something to mend, 130 interrupted"


@click.command("doctor", cls=Command, examples=EXAMPLES, exits=EXITS)
@click.option("--json", "as_json", is_flag=True, help="Print inferometer/doctor/1 as JSON instead of text.")
def command(as_json: bool) -> int:
    """Check whether this machine is fit for measuring: memory, heat, frequency, clock, limits, engines that run twice, other
    load, and the instrument's own timer and stamps. Changes nothing; takes about two seconds.
    """
    from inferometer.cli.terminal import show_doctor
    from inferometer.documents.part import to_data
    from inferometer.studies.doctor import doctor, exit_code

    document = doctor()
    if as_json:
        say_json(to_data(document))
    else:
        show_doctor(document)
    return exit_code(document)
