"""`inferometer test`: the draft's tests, one, several or all. Its flags are those of `run`, and some about the tests."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inferometer.addresses import shown
from inferometer.cli.command import Lists, option
from inferometer.cli.indexing import remembered
from inferometer.cli.outlet import tell
from inferometer.cli.run import outputs
from inferometer.plan.flags import FLAGS, refuse_unsimulated

if TYPE_CHECKING:
    from inferometer.plan.campaign import Campaign

EXITS = "0 VALID, 2 plan, 3 INVALID, 4 INCONCLUSIVE, 5 the server failed, refused or could not be switched, 130 interrupted"

EXAMPLES = (
    "inferometer test ttft --url http://localhost:8000 --model my-model --rate 10",
    "inferometer test throughput capacity --param capacity.ttft_p99_ms=500",
    "inferometer test all --quick",
    "inferometer test all --simulate --preset a100-8b",
    "inferometer test throughput itl guardrail --simulate --system rag --tasks tasks.jsonl --rate 2",
    "inferometer test throughput ttft --quick --repeats 3",
    "inferometer test prefix-cache --plan plan.yaml",
)

HELP = """\
Carry out tests of the IETF draft "Benchmarking Methodology for Large Language Model Serving" (work in progress): ttft,
throughput, tradeoff, itl, capacity, fairness, prefix-cache, memory-pressure, long-context, guardrail, or all of them; or
cold-start. Without --url the reference engine is tested.
"""

OWN = [
    click.Option(
        ["--plan"], type=click.Path(path_type=Path), metavar="FILE",
        help="A plan file, which may also have the parts `tests` and `switch`.",
    ),
    click.Option(
        ["--param", "parameters"], multiple=True, metavar="TEST.NAME=VALUE",
        help="A parameter of a test, for example capacity.ttft_p99_ms=500. May be repeated.",
    ),
    click.Option(
        ["--repeats"], type=int, metavar="N",
        help="Carry the whole campaign out N times, each with its own seed, to compare it with `compare`. Default: once.",
    ),
    click.Option(["--quick"], is_flag=True, help="Short runs, for trying out; the report lists the deviations."),
    click.Option(["--simulate"], is_flag=True, help="In virtual time, on a model of an engine: nothing is measured."),
    click.Option(["--preset"], metavar="NAME", help="The reference engine to test or simulate. Default: testbed."),
    click.Option(
        ["--set", "settings"], multiple=True, metavar="KEY=VALUE",
        help="Change a setting of that engine, or of the system. May be repeated.",
    ),
    click.Option(
        ["--system"], metavar="NAME",
        help="A reference system of several steps on that engine: agent or rag (docs/reference-systems.md).",
    ),
    click.Option(
        ["--i-own-this-system", "own_system"], is_flag=True,
        help="Confirm that you may push the system past its capacity; required by memory-pressure.",
    ),
    click.Option(
        ["--redact"], type=click.Choice(["capacity"]), multiple=True, help="Write a copy for sharing without these figures."
    ),
]  # fmt: skip


def _test(
    names: tuple[str, ...],
    plan: Path | None,
    parameters: tuple[str, ...],
    repeats: int | None,
    quick: bool,
    simulate: bool,
    preset: str | None,
    settings: tuple[str, ...],
    system: str | None,
    own_system: bool,
    redact: tuple[str, ...],
    out: Path,
    index: str | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    from inferometer.plan.campaign import EngineChoice, campaign

    flags = {flag.name: given[flag.parameter] for flag in FLAGS}
    if simulate:
        refuse_unsimulated(flags)
    whole = campaign(
        names, plan, flags, parameters,
        environ=None if simulate else os.environ,
        quick=quick, simulated=simulate, own_system=own_system, redact=redact,
        engine=EngineChoice(**({"preset": preset} if preset else {}), settings=settings, system=system),
    )  # fmt: skip
    if system is not None:
        from inferometer.studies.system_declared import with_system_declared

        whole = with_system_declared(whole)
    if repeats is not None:
        from inferometer.studies.repeats import check_repeats

        check_repeats(repeats)
    if repeats is None or repeats == 1:
        return test(whole, out, index, as_json=as_json, quiet=quiet)
    return _repeated(whole, repeats, out, index, as_json=as_json, quiet=quiet)


def test(whole: Campaign, out: Path, index: str | None, *, as_json: bool, quiet: bool) -> int:
    """Carry a campaign out and show what came of it; the exit code."""
    from inferometer.cli.terminal import Screen, show_campaign
    from inferometer.studies.campaign import conduct_campaign

    _foresee(whole)
    tested = conduct_campaign(whole, out, Screen(quiet=quiet), _ask, told(sys.argv[1:]))
    show_campaign(tested.document, tested.folder, as_json=as_json, redacted=bool(whole.redact))
    remembered(index, out, [tested.folder])
    return tested.exit_code


def _repeated(
    whole: Campaign, repeats: int, out: Path, index: str | None, *, as_json: bool, quiet: bool
) -> int:
    """Carry a campaign out several times, and show what came of them."""
    from inferometer.cli.terminal import Screen, show_repeats
    from inferometer.studies.repeats import conduct_repeats

    _foresee(whole)
    command = partial(_of_one_repeat, sys.argv[1:])
    repeated = conduct_repeats(whole, repeats, out, Screen(quiet=quiet), _ask, command)
    documents = [one.document for one in repeated.repeats]
    show_repeats(documents, repeats, repeated.folder, as_json=as_json)
    if repeated.problem is not None:
        tell(repeated.problem)
    remembered(index, out, [repeated.folder])
    return repeated.exit_code


def _foresee(whole: Campaign) -> None:
    from inferometer.studies.campaign import foreseen

    for line in foreseen(whole):  # also with --quiet: nobody should find out afterwards
        tell(line)


def _of_one_repeat(arguments: Sequence[str], repeat: Campaign) -> str:
    """The command line that carries out this repeat alone: with its seed, which the last `--seed` decides."""
    words: list[str] = []
    for before, word in zip(["", *arguments], arguments, strict=False):
        if "--repeats" not in (before, word) and not word.startswith("--repeats="):
            words.append(word)
    if repeat.plan.workload.file is None:
        words += ["--seed", str(repeat.plan.workload.seed)]
    return told(words)


def told(arguments: Sequence[str]) -> str:
    """The command line as a report may repeat it: only the addresses of metrics may hold a password."""
    flag, words = "--server-metrics", []
    for before, word in zip(["", *arguments], arguments, strict=False):
        name, equals, value = word.partition("=")
        if before == flag:
            words.append(shown(word))
        else:
            words.append(name + equals + shown(value) if (name, equals) == (flag, "=") else word)
    return shlex.join(["inferometer", *words])


def _ask(what: str) -> None:
    """Raises EOFError where nobody can answer."""
    if not sys.stdin.isatty():
        raise EOFError
    tell(f"\n{what}\nThen press Enter. ", end="")
    sys.stdin.readline()


command = Lists(
    "test",
    callback=_test,
    help=HELP,
    exits=EXITS,
    examples=EXAMPLES,
    params=[
        click.Argument(["names"], nargs=-1, required=True, metavar="NAME..."),
        *OWN,
        *(option(flag) for flag in FLAGS),
        *outputs(),
    ],
)
