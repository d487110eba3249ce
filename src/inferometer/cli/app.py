"""The commands put together, and the one place where exceptions become words on stderr."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Sequence
from typing import Any

import click

import inferometer
from inferometer.cli.outlet import tell
from inferometer.errors import (
    InferometerError,
    MachineError,
    PlanError,
    Problem,
    in_words,
    machine_fault,
    shortage_of,
)
from inferometer.printable import printable

COMMANDS = {
    "run": "Measure a server and judge whether the numbers can be trusted.",
    "test": "Carry out tests of the IETF draft, and judge their results.",
    "simulate": "Execute a plan on a model of an engine, in virtual time.",
    "compare": "Compare systems, from existing runs or by measuring them in turn.",
    "detect": "Find the engines that run on this machine.",
    "doctor": "Check whether this machine is fit for measuring.",
    "bench": "Measure engines side by side, and rank them.",
    "cross-validate": "Compare an engine's own figures with the client's.",
    "calibrate": "Certify up to which load the instrument is accurate on this machine.",
    "workload": "Write, show or verify the requests of a plan as a file.",
    "serve": "Run the reference server.",
    "rerun": "Repeat the run or campaign of a report.",
    "history": "Results over time: list, plot, check for regressions.",
    "report": "Write the reports of a run again.",
    "export": "Export a run in the formats of other programs.",
    "compliance": "Check a run against the IETF draft's rules, or list the rules.",
    "metrics": "Server metrics: exports from raw scrapes.",
    "cluster": "Load hosts on other machines: tokens, and manifests for Kubernetes.",
    "telemetry": "The state of this machine, for a run on another one.",
    "worker": "Send load for a run that another machine conducts.",
    "recover": "Rebuild the results of a run whose process was killed.",
}

_FILES = {"test": "procedure", "cross-validate": "cross_validate"}
"""Commands whose file has another name than theirs: tools take a file named test for tests, and modules have no hyphens."""

EXAMPLES = """\b
Examples:
  inferometer run
      measure the embedded reference server: no set-up, about a minute
  inferometer run --url http://localhost:8000 --model my-model --rate 20 --requests 2000
      send a server 20 requests per second, as Poisson arrivals
"""


class _Commands(click.Group):
    """Imports a command's file when that command is named. The contexts are click's to pass and not ours to need."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        file = _FILES.get(cmd_name, cmd_name)
        command: click.Command = importlib.import_module(f"inferometer.cli.{file}").command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):  # from the table: help imports no command
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Commands,
    help=EXAMPLES + "\nA measuring instrument for LLM serving that proves its own numbers.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(inferometer.__version__, prog_name="inferometer", message="%(prog)s %(version)s")
def group() -> None:
    """The group of all commands."""


_RECOVER = "`inferometer recover` rebuilds the results of a run folder that was started"


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line; gives the exit code."""
    try:
        _check(arguments)
        code: Any = group.main(arguments, prog_name="inferometer", standalone_mode=False)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.ClickException as wrong:
        _show(wrong)
        return 2
    except InferometerError as wrong:
        return _reported(wrong)
    except (KeyboardInterrupt, click.Abort) as wrong:
        tell("; ".join(("interrupted", *(_notes(wrong) or [_RECOVER]))))
        return 130
    except (OSError, MemoryError) as wrong:
        tell(in_words(wrong))
        return 2 if shortage_of(wrong) is None else MachineError.exit_code
    except Exception as wrong:
        if shortage_of(wrong) is not None:
            tell("; ".join((in_words(wrong), *_notes(wrong))))
            return MachineError.exit_code
        tell("This is a bug in inferometer. Please report it with the following text.\n")
        tell(traceback.format_exc())
        return 70
    return code if isinstance(code, int) else 0


def _check(arguments: Sequence[str]) -> None:
    """Raises PlanError for a word that is no text: no URL, file of Arrow's or document can hold it."""
    shown = {word: word.encode("utf-8", "backslashreplace").decode() for word in arguments}
    if faults := [
        Problem(known, "holds bytes that are no UTF-8") for word, known in shown.items() if word != known
    ]:
        raise PlanError.first(faults)


def _reported(wrong: InferometerError) -> int:
    """An error of ours in words; gives the exit code."""
    fault = machine_fault(wrong)
    if fault is None and isinstance(wrong, PlanError):
        _list(wrong)
        for note in _notes(wrong):
            tell(note)
        return wrong.exit_code
    tell("; ".join((str(fault or wrong), *_notes(wrong))))
    return 130 if isinstance(wrong.__cause__, KeyboardInterrupt) else (fault or wrong).exit_code


def _list(wrong: PlanError) -> None:
    """The problems of a plan, a line each."""
    count = len(wrong.problems) + wrong.more
    tell("This plan cannot be carried out:" if count == 1 else f"This plan has {count:,} problems:")
    for problem in wrong.problems:
        tell(f"  {problem}")
    if wrong.more:
        tell(f"  and {wrong.more:,} more")


def _show(wrong: click.ClickException) -> None:
    """The library's own words, which repeat the command line."""
    if isinstance(wrong, click.UsageError) and wrong.ctx is not None:
        tell(f"{wrong.ctx.get_usage()}\nTry '{wrong.ctx.command_path} --help' for help.\n")
    tell(f"Error: {printable(' '.join(wrong.format_message().split()))}")


def _notes(wrong: BaseException) -> list[str]:
    """What was added on the way up: how to go on. click raises an Abort from a KeyboardInterrupt, which has it then."""
    notes: list[str] = getattr(wrong, "__notes__", [])
    return notes if notes or wrong.__cause__ is None else _notes(wrong.__cause__)
