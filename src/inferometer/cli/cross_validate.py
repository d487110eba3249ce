"""`inferometer cross-validate`: an engine's own figures beside the client's."""

from __future__ import annotations

from pathlib import Path

import click

from inferometer.cli.command import Command
from inferometer.cli.engine_options import flags_of, reached, resulting
from inferometer.errors import PlanError, Problem

EXAMPLES = (
    "inferometer cross-validate --url http://localhost:8000",
    "inferometer cross-validate --url http://localhost:11434 --model llama3.2 --runs 10 --json",
)
EXITS = (
    "0 done, 2 usage, 4 the engine shows nothing of its own to compare with, 5 the engine could not be reached or failed, "
    "130 interrupted"
)


@click.command("cross-validate", cls=Command, examples=EXAMPLES, exits=EXITS)
@click.option("--url", required=True, metavar="URL", help="The engine's base URL.")
@click.option(
    "--model", metavar="MODEL", help="The model to request. Default: the one that the engine lists."
)
@click.option(
    "--engine",
    metavar="NAME",
    help="The engine's adapter, such as vllm or ollama. Default: the engine that answers there.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=5,
    metavar="N",
    help="Measured requests of each kind. Default: 5.",
)
@click.option(
    "--prompt",
    default="code",
    metavar="NAME",
    help="The prompt: code, tool-call, reasoning or long. Default: code.",
)
@click.option("--api", metavar="API", help="HTTP interface. Default: the adapter's, or chat.")
@reached
@resulting("cross-validation.json")
def command(
    url: str,
    model: str | None,
    engine: str | None,
    runs: int,
    prompt: str,
    api: str | None,
    api_key_env: str | None,
    timeout: str | None,
    out: Path,
    as_json: bool,
    quiet: bool,
) -> int:
    """Compare an engine's own counters and timings with the client's clock, streamed and not: what does the client add?"""
    import os

    from inferometer.cli.terminal import Screen, show_cross_validation
    from inferometer.drive.credentials import headers, read_key
    from inferometer.engines.adapters.registry import ADAPTERS
    from inferometer.plan.parse import build
    from inferometer.studies.bench_engine import LiveEngine
    from inferometer.studies.cross_validation import FILE, cross_validate, recognise
    from inferometer.workload import bench_prompts

    if engine is not None and engine not in ADAPTERS:
        raise PlanError([Problem("--engine", f"{engine!r} has no adapter: choose of {', '.join(ADAPTERS)}")])
    named = {one.name: one for one in bench_prompts.PROMPTS}
    if prompt not in named:
        raise PlanError([Problem("--prompt", f"has no prompt {prompt!r}: choose of {', '.join(named)}")])
    options = flags_of(timeout, api_key_env)
    target = build(None, {"--url": url, "--api": api or "chat", **options}, environ=os.environ).target
    assert target.url is not None
    adapter, version, remarks = recognise(target.url, headers(target, read_key(target, os.environ)))
    found = None if adapter is None else adapter.key
    if engine is not None:
        same = found == engine
        adapter, version, remarks = ADAPTERS[engine], version if same else None, []
    interface = api or ("chat" if adapter is None else adapter.interface)
    name = "engine" if adapter is None else adapter.key
    live = LiveEngine(name, name, target.url, model, adapter, found, api=interface, options=options)
    done = cross_validate(
        live, named[prompt], runs, out, Screen(quiet=quiet), remarks=remarks, version=version
    )
    show_cross_validation(done.document, done.folder / FILE, as_json=as_json)
    return done.exit_code
