"""`inferometer workload make|show|verify`: a plan's requests as a file, its statistics, and whether it is the one meant."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inferometer.cli.command import Command, option
from inferometer.cli.outlet import say, say_json, tell
from inferometer.plan.flags import FLAGS, Flag

DIFFERENT = 3
"""Exit code of a file that is not what it says, or not the one that a report names."""
_ELSEWHERE = ("workload.file", "load.drain_s", "workload.ignore_eos")


def _concerns(flag: Flag) -> bool:
    """Whether a flag of `run` has a say in which requests are made."""
    part = flag.key.partition(".")[0]
    return flag.key == "target.api" or (
        part in ("workload", "tokenizer", "load") and flag.key not in _ELSEWHERE
    )


MAKING = tuple(flag for flag in FLAGS if _concerns(flag))

MAKE_EXAMPLES = (
    "inferometer workload make --workload conversation --requests 2000 --out chat",
    "inferometer workload make plan.yaml --out chat",
    "inferometer run --workload-file chat/workload.arrow",
)
MAKE = """\
Write the requests of a plan into DIR, as workload.arrow and workload.jsonl, without a server. The same plan gives the same
bytes on any machine. PLAN is a YAML file or a plan.json; flags override it.
"""

SHOW_EXAMPLES = (
    "inferometer workload show chat",
    "inferometer workload show chat --html chat.html",
    "inferometer workload show runs/20260102T030405Z-run --json",
)
SHOW = """\
Show the content of a workload file, or what a run sent: seed, hashes, lengths, and shared prefixes. WHERE is a file, its
folder, or a run's folder.
"""

VERIFY_EXAMPLES = (
    "inferometer workload verify chat/workload.jsonl",
    "inferometer workload verify chat/workload.jsonl runs/20260102T030405Z-run",
)
VERIFY = """\
Compute a file's hashes from its rows, and compare them with those in its header, and with the one that a report names.
REPORT is a run's folder, or its summary.json or run.json. In a folder, both files are verified.
"""
_PATH = click.Path(path_type=Path)


def _make(plan: Path | None, out: Path, quiet: bool, **given: Any) -> int:
    from inferometer.plan.parse import build
    from inferometer.run.write_workload import make

    # Without the environment: the keys and files of a server that is not asked need not be there.
    resolved = build(plan, {flag.name: given[flag.parameter] for flag in MAKING})
    header = make(resolved, out, lambda text: None if quiet else tell(text))
    say(
        f"{header.requests} requests, and {header.warmup} of warm-up: {out}/workload.arrow, {out}/workload.jsonl"
    )
    say(f"fingerprint {header.fingerprint}")
    say(f"digest      {header.digest}")
    return 0


def _show(where: Path, as_json: bool, html: Path | None) -> int:
    from rich.console import Console

    from inferometer.documents.part import from_data
    from inferometer.documents.workload import DrawnRequests
    from inferometer.documents.workload_listing import WorkloadListing
    from inferometer.report.workload import page
    from inferometer.report.workload_listing import render
    from inferometer.run.write_workload import pictured, show

    if html is not None:
        drawn = from_data({"published": [], **pictured(where)}, DrawnRequests)
        html.write_text(page(where.resolve().name, drawn), encoding="utf-8")
        return 0
    facts = show(where)
    if as_json:
        say_json(facts)
    else:
        render(from_data(facts, WorkloadListing), Console())
    return 0


def _verify(file: Path, report: Path | None, as_json: bool) -> int:
    from inferometer.documents.workload_listing import HashCheck
    from inferometer.report.workload_listing import verified
    from inferometer.run.write_workload import files, verify

    checked = [(one.name, verify(one, report)) for one in files(file)]
    same = all(check.same for _, checks in checked for check in checks)
    if as_json:
        said = [{"file": name, "checks": [asdict(one) for one in checks]} for name, checks in checked]
        say_json({"same": same, "files": said})
    else:
        found = [
            (name, [HashCheck(one.what, one.said, one.found) for one in checks]) for name, checks in checked
        ]
        say("\n\n".join("\n".join(verified(name, checks)) for name, checks in found))
    return 0 if same else DIFFERENT


_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print it as JSON.")

make_command = Command(
    "make",
    callback=_make,
    help=MAKE,
    examples=MAKE_EXAMPLES,
    short_help="Write the requests of a plan.",
    params=[
        click.Argument(["plan"], required=False, type=_PATH),
        *(option(flag) for flag in MAKING),
        click.Option(
            ["--out"],
            type=click.Path(path_type=Path, file_okay=False),
            required=True,
            metavar="DIR",
            help="Folder for the two files.",
        ),
        click.Option(["--quiet"], is_flag=True, help="No progress on stderr."),
    ],
)
show_command = Command(
    "show",
    callback=_show,
    help=SHOW,
    examples=SHOW_EXAMPLES,
    short_help="Show its content.",
    params=[
        click.Argument(["where"], type=_PATH),
        _JSON,
        click.Option(["--html"], type=_PATH, metavar="FILE", help="Write it as a page with charts instead."),
    ],
)
verify_command = Command(
    "verify",
    callback=_verify,
    help=VERIFY,
    examples=VERIFY_EXAMPLES,
    short_help="Compare it with its hashes, and with a report.",
    exits="0 it matches, 2 it cannot be read, 3 it does not match, or was changed",
    params=[
        click.Argument(["file"], type=_PATH),
        click.Argument(["report"], required=False, type=_PATH),
        _JSON,
    ],
)

command = click.Group(
    "workload",
    commands=[make_command, show_command, verify_command],
    help="Write the requests of a plan as a file, show its content, or verify it against a report.",
)
