"""`inferometer bench --agentic`: from its flags to its result."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:
    from inferometer.documents.agentic import Restart
    from inferometer.studies.bench_choice import Wanted
    from inferometer.studies.bench_engine import LiveEngine


@dataclass(frozen=True, slots=True)
class AgenticFlags:
    """The flags of the agentic mode, as they were given."""

    repeats: int | None = None
    long_tokens: int | None = None
    salt: str | None = None
    restarts: tuple[str, ...] = ()
    restart_required: bool = False

    def refuse(self) -> None:
        """Raises PlanError for a flag that was given without --agentic."""
        given = {
            "--repeats": self.repeats,
            "--long-tokens": self.long_tokens,
            "--salt": self.salt,
            "--restart": self.restarts,
            "--restart-required": self.restart_required,
        }
        for name, value in given.items():
            if value is not None and value is not False and value != ():
                raise PlanError([Problem(name, "is for --agentic: add that, or leave this out")])


@dataclass(frozen=True, slots=True)
class Setting:
    """What the agentic mode has in common with the other one."""

    tokenizer: str | None
    force: bool
    out: Path
    as_json: bool
    quiet: bool


def run_agentic(flags: AgenticFlags, wanted: Wanted, setting: Setting) -> int:
    """Carry it out and print it; the exit code."""
    from inferometer.cli.terminal import Screen, show_agentic
    from inferometer.studies.agentic import AgenticQuestion, Surroundings, conduct_agentic
    from inferometer.studies.bench_choice import engines_of
    from inferometer.studies.bench_gate import RealClock
    from inferometer.studies.detection import Local
    from inferometer.studies.engine_tokens import TokenCounter
    from inferometer.studies.local_engines import instances
    from inferometer.telemetry.machine import this_machine
    from inferometer.workload.agentic_prompts import LONG_TOKENS

    question = AgenticQuestion(
        salt=flags.salt or secrets.token_hex(8),
        repeats=flags.repeats or 1,
        long_tokens=LONG_TOKENS if flags.long_tokens is None else flags.long_tokens,
        force=setting.force,
        restart_required=flags.restart_required,
    )
    if setting.tokenizer is not None:
        from inferometer.plan.schema import Tokenizer
        from inferometer.workload import tokenizers

        tokenizer = tokenizers.load(Tokenizer(name=setting.tokenizer))
        sized_by = f"the tokenizer {tokenizer.name}"
        counter = TokenCounter(lambda text: len(tokenizer.encode(text)), sized_by)
        question = replace(question, counter=counter)
    # A tokenizer that is learned from the engine would send it text before the cold phase.
    wanted = replace(wanted, options={**wanted.options, "--tokenizer": "none"})
    machine = this_machine()
    with ExitStack() as stack:
        engines = engines_of(wanted, stack)
        keys = {one.name: one.found or (one.adapter.key if one.adapter else one.name) for one in engines}
        around = Surroundings(
            machine=machine,
            swap=machine.swap,
            duplicates=lambda name: instances(Local.now(), keys[name]),
            clock=RealClock(),
            restarts=restarts_of(flags.restarts, engines),
        )
        done = conduct_agentic(question, engines, around, setting.out, Screen(quiet=setting.quiet))
    show_agentic(done.document, done.folder, as_json=setting.as_json)
    return done.exit_code


def restarts_of(given: Sequence[str], engines: Sequence[LiveEngine]) -> dict[str, Callable[[Path], Restart]]:
    """How to restart engines, by label. Raises PlanError."""
    from inferometer.addresses import is_loopback
    from inferometer.studies.bench_engine import file_name
    from inferometer.studies.bench_gate import RealClock
    from inferometer.studies.engine_restart import LiveServer, command, restart

    found: dict[str, Callable[[Path], Restart]] = {}
    for text in given:
        name, equals, words = text.partition("=")
        if not equals or not words.strip():
            raise PlanError([Problem("--restart", "needs ENGINE=COMMAND: vllm='systemctl restart vllm'")])
        mine = [one for one in engines if name in (one.name, one.label)]
        if not mine:
            names = ", ".join(dict.fromkeys(one.name for one in engines))
            raise PlanError([Problem("--restart", f"there is no engine {name[:40]!r} here: {names}")])
        command(words, Path())  # words that cannot be parted are refused before anything is sent
        for one in mine:

            def again(folder: Path, one: LiveEngine = one, words: str = words) -> Restart:
                log = folder / f"restart-{file_name(one.label)}.log"
                server = LiveServer(one.url, local=is_loopback(one.url))
                return restart(command(words, log), server, RealClock())

            found[one.label] = again
    return found
