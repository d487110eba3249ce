"""`inferometer bench`: engines measured one after the other, by asiai's methodology."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.cli.command import Command
from inferometer.cli.engine_options import flags_of, reached, resulting
from inferometer.cli.indexing import indexed, remembered
from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:
    from inferometer.workload.bench_prompts import Count

EXAMPLES = (
    "inferometer bench --engines ollama,llamacpp --model qwen3:8b",
    "inferometer bench --url vllm=http://localhost:8000 --url llamacpp=http://localhost:8080",
    "inferometer bench --url ollama=http://localhost:11434 --compare llama3.2 --compare qwen3:8b",
    "inferometer bench --url vllm=http://localhost:8000 --prompts code,long --contexts 4k,16k --runs 5",
    "inferometer bench --url llamacpp=http://localhost:8080 --agentic --repeats 3",
)
EXITS = (
    "0 VALID, 2 usage, 3 INVALID or refused by the pre-flight gate, 4 INCONCLUSIVE, 5 an engine could not be reached or "
    "failed, 130 interrupted"
)


@click.command("bench", cls=Command, examples=EXAMPLES, exits=EXITS)
@click.option(
    "--engines",
    metavar="NAMES",
    help="Engines on this machine, with commas between: vllm,llamacpp,mlx-lm. Default: all that run.",
)
@click.option(
    "--url", "urls", multiple=True, metavar="NAME=URL", help="An engine and its base URL. May be repeated."
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]MODEL",
    help="The model to request, of all engines or of one. Default: the one that the engine lists.",
)
@click.option(
    "--compare",
    multiple=True,
    metavar="MODEL",
    help="Measure this model too, on each engine. May be repeated.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 100),
    default=3,
    metavar="N",
    help="Measured runs of each prompt. Default: 3.",
)
@click.option(
    "--prompts",
    metavar="NAMES",
    help="Prompts to measure: code, tool-call, reasoning, long, or none, with commas between. Default: these four.",
)
@click.option(
    "--contexts",
    metavar="SIZES",
    help="Context fills to measure as well, in tokens: 4k,16k,32k,64k.",
)
@click.option(
    "--tokenizer",
    metavar="NAME",
    help="Size context fills in its tokens: a tokenizer.json, its folder or org/name. Default: the first engine's /tokenize.",
)
@click.option("--api", metavar="API", help="HTTP interface of engines without an adapter. Default: chat.")
@reached
@click.option("--agentic", is_flag=True, help="Measure reuse of a long system prompt instead: eight phases.")
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    metavar="N",
    help="With --agentic: carry the phases out N times, with other text each. Default: 1.",
)
@click.option(
    "--long-tokens",
    type=int,
    metavar="N",
    help="With --agentic: size of the long message. Default: 50000, or what the model's context leaves.",
)
@click.option("--salt", metavar="TEXT", help="With --agentic: what the prompts follow from. Default: random.")
@click.option(
    "--restart",
    "restarts",
    multiple=True,
    metavar="ENGINE=COMMAND",
    help="With --agentic: restart this engine first, by this command. May be repeated.",
)
@click.option(
    "--restart-required",
    is_flag=True,
    help="With --agentic: do not measure an engine that was not restarted.",
)
@click.option(
    "--check-output",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Compare the engines' answers with each other's, or with a JSON file of answers by prompt.",
)
@click.option(
    "--power",
    multiple=True,
    metavar="[NAME=]METER",
    help="Read power beside each engine's run, or one's: auto, nvml, a wall meter's URL, ... as in run. May be repeated.",
)
@click.option("--force", is_flag=True, help="Measure even where the pre-flight gate refuses.")
@indexed
@resulting("bench.json")
def command(
    engines: str | None,
    urls: tuple[str, ...],
    models: tuple[str, ...],
    compare: tuple[str, ...],
    runs: int,
    prompts: str | None,
    contexts: str | None,
    tokenizer: str | None,
    api: str | None,
    api_key_env: str | None,
    timeout: str | None,
    agentic: bool,
    repeats: int | None,
    long_tokens: int | None,
    salt: str | None,
    restarts: tuple[str, ...],
    restart_required: bool,
    check_output: str | None,
    power: tuple[str, ...],
    force: bool,
    out: Path,
    index: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Measure engines side by side: each alone, one request at a time, with the same prompts, and rank them."""
    from inferometer.cli.bench_agentic import AgenticFlags, Setting, run_agentic
    from inferometer.cli.terminal import Screen, show_bench
    from inferometer.engines.adapters.registry import ADAPTERS
    from inferometer.studies.bench import Question, conduct_bench
    from inferometer.studies.bench_answers import reference_answers
    from inferometer.studies.bench_choice import Wanted, engines_of
    from inferometer.studies.bench_gate import RealClock
    from inferometer.studies.engine_tokens import sized
    from inferometer.telemetry.machine import this_machine
    from inferometer.telemetry.machine_class import laptop_class
    from inferometer.workload import bench_prompts

    named = tuple(_named(one) for one in urls)
    names_of_engines = _listed("--engines", engines, "no engine: leave it out to measure all that run")
    own, usual = _models(models, [*(name for name, _ in named), *names_of_engines], ADAPTERS)
    if not all(one.strip() for one in compare):
        raise PlanError([Problem("--compare", "names no model")])
    meters, shared = _meters(power)
    options = {**flags_of(timeout, api_key_env), "--power": shared or None}
    wanted = Wanted(named, names_of_engines, own, usual, compare, api, options, meters)
    flags = AgenticFlags(repeats, long_tokens, salt, restarts, restart_required)
    if agentic:
        if prompts is not None or contexts is not None or check_output is not None:
            problem = "has its own prompts: leave out --prompts, --contexts and --check-output"
            raise PlanError([Problem("--agentic", problem)])
        if power:
            raise PlanError([Problem("--agentic", "has no figure of power: leave out --power")])
        return run_agentic(flags, wanted, Setting(tokenizer, force, out, as_json, quiet))
    flags.refuse()
    given = _listed("--prompts", prompts, "no prompt: write none for none") or bench_prompts.NAMES
    names = [name for name in given if name != "none"]
    count, sized_by = _counter(tokenizer)
    sizes = () if contexts is None else bench_prompts.sizes(contexts)
    chosen = bench_prompts.chosen(names, sizes, count)
    if not chosen:
        raise PlanError(
            [Problem("--prompts", "leaves nothing to measure: name prompts, or sizes with --contexts")]
        )
    answers = None if check_output is None else reference_answers(Path(check_output)) if check_output else {}
    machine = this_machine()
    with ExitStack() as stack:
        chosen_engines = engines_of(wanted, stack)
        if count is None:
            chosen, by_engine = sized(names, sizes, chosen_engines)
            sized_by = by_engine or sized_by
        question = Question(
            chosen, runs, sized_by if sizes else None, force, laptop_class(machine.chip()), answers
        )
        benched = conduct_bench(question, chosen_engines, machine, RealClock(), out, Screen(quiet=quiet))
    show_bench(benched.document, benched.folder, as_json=as_json)
    remembered(index, out, [benched.folder])
    return benched.exit_code


def _named(text: str) -> tuple[str, str]:
    name, equals, url = text.partition("=")
    if not equals or "://" in name or not name.strip():
        raise PlanError(
            [Problem("--url", "needs a name before the address: for example vllm=http://localhost:8000")]
        )
    if not name.isprintable():  # two such names could look the same in every table
        raise PlanError([Problem("--url", f"an engine's name is of printable characters, not {name[:40]!r}")])
    return name.strip(), url.strip()


def _models(
    given: Sequence[str], engines: Sequence[str], known: Collection[str]
) -> tuple[dict[str, str], str | None]:
    """Each engine's own model, and the one for all others. A model's name may hold an equals sign, but not behind an engine's
    name. `engines`: those asked for, none for all that run; `known`: names of adapters. Raises PlanError."""
    own: dict[str, str] = {}
    usual: str | None = None
    for text in given:
        name, equals, model = text.partition("=")
        of_one = bool(equals) and (name in engines or name in known)
        if not (model if of_one else text).strip():
            raise PlanError([Problem("--model", f"{text!r} names no model")])
        if of_one and engines and name not in engines:
            raise PlanError([Problem("--model", f"there is no engine {name} here: {', '.join(engines)}")])
        if of_one and own.setdefault(name, model) != model:
            several = f"{name} has two models, {own[name]!r} and {model!r}: measure the second with --compare"
            raise PlanError([Problem("--model", several)])
        if not of_one and usual is not None:
            several = "several models: measure them with --compare, or name engines, NAME=MODEL"
            raise PlanError([Problem("--model", several)])
        usual = usual if of_one else text
    return own, usual


def _meters(given: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Each engine's own meters, and those that are read beside all."""
    from inferometer.plan.host_telemetry import is_meter

    own: dict[str, tuple[str, ...]] = {}
    shared: list[str] = []
    for text in given:
        name, equals, meter = text.partition("=")
        if is_meter(text) or not equals:
            shared.append(text)
        else:
            own[name.strip()] = (*own.get(name.strip(), ()), meter.strip())
    return own, tuple(shared)


def _listed(flag: str, text: str | None, empty: str) -> tuple[str, ...]:
    """The words of a list with commas; none if it was not given. Raises PlanError for a list of nothing: `$NAMES`, say, of a
    variable that is not set does not mean what leaving it out does."""
    words = tuple(word.strip() for word in (text or "").split(",") if word.strip())
    if text is not None and not words:
        raise PlanError([Problem(flag, f"{text[:20]!r} names {empty}")])
    return words


def _counter(name: str | None) -> tuple[Count | None, str]:
    """What counts the tokens of a context fill, and its name."""
    if name is None:
        return None, "4 characters a token"
    from inferometer.plan.schema import Tokenizer
    from inferometer.workload import tokenizers

    tokenizer = tokenizers.load(Tokenizer(name=name))
    return (lambda text: len(tokenizer.encode(text))), f"the tokenizer {tokenizer.name}"
